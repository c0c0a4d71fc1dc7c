//! The wall-clock world: the real Linux network, seen and driven from user space.
//!
//! What is here: [`record`], which lets the kernel's own TCP talk to itself in a network namespace
//! and hands back every frame with the kernel's time stamp; and [`emulate`], which puts the core's
//! links and queues between two commands that talk through real sockets. Testbed and UDP endpoints
//! come with their issues.
//!
//! Nothing outlives the process: namespaces are anonymous, held only by the threads that made
//! them and by what they started, which dies with them, so the kernel removes them however the process
//! ends, `kill -9` included.
//!
//! Linux only; elsewhere the crate is empty.

#![cfg(target_os = "linux")]

pub mod emulate;
mod exchange;
mod namespace;
pub mod record;
mod tap;

//! The wall-clock world: the real Linux network, seen and driven from user space.
//!
//! What is here: [`record`], which lets the kernel's own TCP talk to itself in a network namespace
//! and hands back every frame with the kernel's time stamp. Emulator, testbed and UDP endpoints
//! come with their issues.
//!
//! Nothing outlives the process: namespaces are anonymous, held only by the threads that made
//! them, so the kernel removes them however the process ends, `kill -9` included.
//!
//! Linux only; elsewhere the crate is empty.

#![cfg(target_os = "linux")]

mod exchange;
mod namespace;
pub mod record;
mod tap;

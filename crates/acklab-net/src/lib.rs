//! The wall-clock world: the real Linux network, seen and driven from user space.
//!
//! What is here: [`record`], which lets the kernel's own TCP talk to itself in a network namespace
//! and hands back every frame with the kernel's time stamp; and [`emulate`], which puts the core's
//! links and queues between two commands that talk through real sockets; [`rudp`], which carries the
//! core's reliable UDP over them.
//!
//! Nothing outlives the process: namespaces are anonymous, held only by the threads that made
//! them and by what they started, which dies with them, so the kernel removes them however the process
//! ends, `kill -9` included.
//!
//! Recording and emulation are Linux's; elsewhere [`rudp`] alone is here.
//!
#![doc = include_str!("../README.md")]

#[cfg(target_os = "linux")]
pub mod emulate;
#[cfg(target_os = "linux")]
mod exchange;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
pub mod record;
pub mod rudp;
#[cfg(target_os = "linux")]
pub mod tap;
#[cfg(target_os = "linux")]
pub mod transfer;

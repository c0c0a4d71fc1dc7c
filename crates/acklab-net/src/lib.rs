//! The wall-clock world: the real Linux network, seen and driven from user space.
//!
//! What is here: [`record`], which lets the kernel's own TCP talk to itself in a network namespace
//! and hands back every frame with the kernel's time stamp; and [`emulate`], which puts the core's
//! links and queues between two commands that talk through real sockets; [`tcp`], which lets acklab's own TCP
//! talk to the kernel's; [`rudp`], which carries reliable UDP over sockets.
//!
//! Nothing outlives the process: namespaces are anonymous, held only by the threads that made
//! them and by what they started, which dies with them, so the kernel removes them however the process
//! ends, `kill -9` included.
//!
//! Recording, emulation and TCP over a device are Linux's; elsewhere [`rudp`] alone is here.
//!
#![doc = include_str!("../README.md")]
#![allow(
    missing_docs,
    reason = "not published: a line of documentation says what the name does not"
)]

#[cfg(target_os = "linux")]
pub mod emulate;
#[cfg(target_os = "linux")]
mod exchange;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
pub mod record;
pub mod rudp;
#[cfg(target_os = "linux")]
pub mod tap;
#[cfg(target_os = "linux")]
pub mod tcp;
#[cfg(target_os = "linux")]
pub mod transfer;

#[cfg(target_os = "linux")]
pub use kernel::{TUN_WITH_BURSTS, open_tun, schedule_first_in_first_out};

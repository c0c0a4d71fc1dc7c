#![doc = include_str!("../README.md")]
//!
//! ## The road of a frame
//!
//! [`Watch`](watch::Watch) asks the ring for blocks of frames and hands each frame to `acklab-trace`'s live diagnosis;
//! what that finds new is told with the processes at both ends. A [`fix`] changes what sockets do from outside and is
//! measured by a watch before and after.
//!
//! Linux alone has these doors; elsewhere the crate is empty.

#![cfg(target_os = "linux")]
#![allow(
    missing_docs,
    reason = "not published: a line of documentation says what the name does not"
)]

pub mod chosen;
mod filter;
pub mod fix;
mod kernel;
pub mod processes;
mod ring;
pub mod sockets;
pub mod told;
pub mod watch;

//! One network in several worlds, and what differs between them.
//!
//! A network's file runs in virtual time on acklab's own TCP; here the same file runs on the Linux kernel's TCP,
//! which is virtual time, too: [`linux_vt`] starts a kernel as a process, [`guest`] is what happens inside,
//! [`network`] turns nodes, links and flows into namespaces, queue disciplines and sockets.

#[cfg(target_os = "linux")]
pub mod campaign;
pub mod compare;
pub mod dataset;
pub mod exchange;
#[cfg(target_os = "linux")]
mod foreign;
#[cfg(target_os = "linux")]
pub mod guest;
pub mod job;
#[cfg(target_os = "linux")]
pub mod kernel;
#[cfg(target_os = "linux")]
pub mod linux_vt;
pub mod nagle;
pub mod network;
pub mod recorded;
pub mod report;
pub mod scenario;
#[cfg(target_os = "linux")]
pub mod script;
pub mod seen;
pub mod simulated;
#[cfg(target_os = "linux")]
pub mod store;
#[cfg(target_os = "linux")]
mod tcp_info;
pub mod truth;
#[cfg(target_os = "linux")]
pub mod virtual_kernel;
pub mod world;

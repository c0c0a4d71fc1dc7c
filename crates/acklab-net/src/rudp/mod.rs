//! Reliable UDP on real sockets: what the protocol of [`acklab_rudp`] needs of the outside.
//!
//! [`noise`] greets, with a [`passphrase`] (through CPace) or with [`keys`] and known [`peers`];
//! [`seal`] protects the packets that follow; [`OsEntropy`] gives the random bytes. docs/rudp.md,
//! section 3, specifies all of it. `socket` is the kernel's UDP, in batches; `driver` the one thread that
//! moves datagrams between sockets and a state machine, and wakes it when its time has come (Linux).

mod cpace;
#[cfg(target_os = "linux")]
pub mod driver;
mod entropy;
pub mod keys;
pub mod noise;
#[cfg(target_os = "linux")]
pub mod own;
pub mod passphrase;
pub mod peers;
pub mod seal;
#[cfg(target_os = "linux")]
pub mod socket;

pub use entropy::OsEntropy;

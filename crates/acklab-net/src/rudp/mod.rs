//! Reliable UDP on real sockets: what the protocol of [`acklab_core::rudp`] needs of the outside.
//!
//! [`noise`] greets, with a [`passphrase`] (through CPace) or with [`keys`] and known [`peers`];
//! [`seal`] protects the packets that follow; [`OsEntropy`] gives the random bytes. docs/rudp.md,
//! section 3, specifies all of it.

mod cpace;
mod entropy;
mod hex;
pub mod keys;
pub mod noise;
pub mod passphrase;
pub mod peers;
pub mod seal;

pub use entropy::OsEntropy;

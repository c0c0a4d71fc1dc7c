//! acklab's TCP on the real network: the state machine of [`acklab_tcp`], with its bytes, over a TUN
//! device.
//!
//! The same connection that runs in virtual time, of either of acklab's stacks ([`acklab_tcp::Stack`]), meets the kernel's: [`Host`] makes packets of what it
//! decides and keeps the bytes of its streams, sans-IO; [`Device`] is the link to the kernel; [`Driver`]
//! is the loop, with what streams carry ([`Payload`]). IPv4 and IPv6.

mod bytes;
mod carried;
mod device;
mod driver;
mod host;
mod payload;
mod stream;
#[cfg(test)]
mod tests;

pub use device::{Device, DeviceError, DeviceOptions};
pub use driver::{DriveError, Driven, Driver, Ended, OnFrame};
pub use host::{Host, Strays};
pub use payload::{Handle, Payload, PayloadError, Side, Taker};
pub use stream::{End, Stream, Tally};

use acklab_rudp::protect::Entropy;

use crate::rudp::OsEntropy;

/// Refuses a configuration that the stack it names cannot carry.
pub use acklab_host::config::check;

/// Random numbers of the operating system, for [`Host::new`].
pub fn random() -> impl FnMut() -> u32 {
    let mut entropy = OsEntropy::default();
    move || {
        let mut bytes = [0; 4];
        entropy.fill(&mut bytes);
        u32::from_ne_bytes(bytes)
    }
}

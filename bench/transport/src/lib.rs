//! Transports side by side over the same emulated links: acklab, quinn and the kernel's TCP.
//!
//! The program `bench-transport` runs each of them through `acklab emulate` with the same settings,
//! interleaved run by run, and over a veth pair for the CPU seconds per gigabyte. What is measured is the
//! time from connect until the sender's application knows that the receiver's application has
//! every byte.

use std::error::Error;
use std::time::Duration;

pub mod contender;
pub mod metered;
pub mod setting;
pub mod table;
pub mod trial;
pub mod veth;

/// Bytes that a peer hands to its transport at a time.
pub const CHUNK: usize = 256 * 1024;

/// Where the peers' certificate lies in their folder, and whom it names.
pub const CERTIFICATE: &str = "certificate.der";
/// Its private key.
pub const KEY: &str = "key.der";
/// Both again, as PEM.
pub const CERTIFICATE_PEM: &str = "certificate.pem";
/// See [`CERTIFICATE_PEM`].
pub const KEY_PEM: &str = "key.pem";
/// The server's name in it.
pub const NAME: &str = "localhost";

/// A sender's result line, in the words of `acklab send --format json`.
pub fn say(arrived: u64, bytes: u64, took: Duration) -> Result<(), Box<dyn Error>> {
    if arrived != bytes {
        return Err(format!("{arrived} of {bytes} bytes arrived").into());
    }
    let seconds = took.as_secs_f64();
    println!("{}", serde_json::json!({ "bytes": bytes, "seconds": seconds }));
    Ok(())
}

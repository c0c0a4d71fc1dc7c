//! The bytes of reliable UDP (docs/rudp.md section 2): packets, frames, transport parameters.
//!
//! Everything is read in place and written in place: a parsed [`Frame`] borrows from the datagram,
//! and a [`Writer`] fills the one that is to be sent, so that no packet costs an allocation. What
//! is parsed is well formed and inside the table's limits; whether it is allowed at that moment is
//! for the connection to judge. Encryption stands outside: frames are read after it was undone.

pub mod ack;
mod frame;
mod header;
mod long;
mod parameters;
mod reader;
#[cfg(test)]
mod tests;
pub mod varint;
mod writer;

pub use ack::{AckFrame, EcnCounts};
pub use frame::{Frame, Frames, Kind, ParcelHeader, PathStatus, StreamHeader};
pub use header::{SHORT_HEADER, ShortHeader, expand};
pub use long::{INITIAL_LEN, LONG_HEADER, Long, LongBody, LongError, PROLOGUE, RESET_TOKEN, TOKEN};
pub use parameters::{Parameters, ParametersError};
pub use reader::Reader;
pub use writer::Writer;

/// The bytes are none of this protocol: an unknown type, a field cut off, a count, length or value
/// beyond its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("bytes that are no frame")
    }
}

impl std::error::Error for Malformed {}

/// The longest text of CLOSE and REFUSE, bytes (docs/rudp.md sections 2 and 3).
pub const TEXT_MAX: usize = 80;

/// The largest parcel, bytes (section 7): 2^24.
pub const PARCEL_MAX: u64 = 1 << 24;

/// The longest life of an EXPIRING parcel, ms (section 7): 2^22.
pub const LIFE_MAX_MS: u64 = 1 << 22;

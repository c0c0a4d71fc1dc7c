//! One record of a capture, whatever the format.

use acklab_core::time::Time;

use super::LinkType;

/// The most bytes a frame may hold: libpcap's MAXIMUM_SNAPLEN.
pub(super) const CAPTURED_MAX: u32 = 262_144;

/// One captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its number in the file, from 1, as Wireshark counts.
    pub number: u64,
    /// Capture time; simple packet blocks, which carry none, get that of the frame before.
    pub time: Time,
    /// What its first bytes are.
    pub link: LinkType,
    /// Length on the wire, bytes.
    pub original_len: u32,
    /// The bytes captured.
    pub bytes: &'a [u8],
}

/// What a format's parser says of the next record.
pub(super) enum Record {
    /// A frame of `len` bytes, to be taken from the input, with `pad` bytes after it.
    Frame { time: Time, link: LinkType, original_len: u32, len: usize, pad: usize },
    /// The capture ends here, as it should.
    End,
}

//! The packet: 38 bytes of header, then data.
//!
//! Sequence number, acknowledgment number and length (header included), two bytes each in network order,
//! then 32 hexadecimal digits of the payload's MD5 (paper, section II; the order is the code's). The
//! checksum covers the payload and nothing else, so damage to the numbers goes unseen; and whoever reads
//! ACKs does not look at it at all, for their payload is empty.

use md5::{Digest as _, Md5};

use super::PAYLOAD;

/// Bytes before the payload.
pub const HEADER: usize = 38;

/// What a packet says apart from its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// 1 for the first packet of the file; 0 in ACKs and in the end packet.
    pub seq: u16,
    /// The number that is acknowledged; 0 in data and in the end packet.
    pub ack: u16,
}

impl Header {
    /// The packet that says the file is complete, and the answer to it.
    pub const END: Self = Self { seq: 0, ack: 0 };
}

/// The bytes of a packet.
pub fn encode(header: Header, payload: &[u8]) -> Vec<u8> {
    let length = (HEADER + payload.len()) as u16;
    let mut bytes = Vec::with_capacity(HEADER + PAYLOAD);
    for number in [header.seq, header.ack, length] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(checksum(payload).as_bytes());
    bytes.extend(payload);
    bytes
}

/// A packet's header and payload, and whether the payload has its checksum; `None` where the bytes are
/// fewer than a header. The length is not looked at, as in the authors' code.
pub fn decode(bytes: &[u8]) -> Option<(Header, &[u8], bool)> {
    let (header, payload) = bytes.split_at_checked(HEADER)?;
    let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let intact = checksum(payload).as_bytes() == &header[6..];
    Some((Header { seq: number(0), ack: number(2) }, payload, intact))
}

/// 32 lower-case hexadecimal digits.
fn checksum(payload: &[u8]) -> String {
    format!("{:x}", Md5::digest(payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_the_layout_of_the_paper() {
        let bytes = encode(Header { seq: 0x0102, ack: 0 }, b"abc");
        assert_eq!(bytes[..6], [1, 2, 0, 0, 0, 41]);
        assert_eq!(bytes[6..38], *b"900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(decode(&bytes), Some((Header { seq: 0x0102, ack: 0 }, &b"abc"[..], true)));
    }

    #[test]
    fn damage_is_seen_in_the_payload_and_nowhere_else() {
        let mut bytes = encode(Header { seq: 7, ack: 0 }, b"abc");
        bytes[38] ^= 1;
        assert_eq!(decode(&bytes).map(|(_, _, intact)| intact), Some(false));
        let mut bytes = encode(Header { seq: 7, ack: 0 }, b"abc");
        bytes[1] ^= 1;
        assert_eq!(decode(&bytes), Some((Header { seq: 6, ack: 0 }, &b"abc"[..], true)));
        assert_eq!(decode(&bytes[..37]), None);
    }
}

//! The header of short packets, 14 bytes in the clear and authenticated (docs/rudp.md section 2).

use super::{Malformed, Reader, Writer};

/// Length of the header of a short packet, bytes.
pub const SHORT_HEADER: usize = 14;

const LONG: u8 = 0x80;
const KEY_PHASE: u8 = 0x40;

/// The header of a short packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortHeader {
    /// Which of two successive keys sealed it.
    pub key_phase: bool,
    /// Destination connection id.
    pub connection: u64,
    /// Path id.
    pub path: u8,
    /// The low 32 bits of the packet number.
    pub number32: u32,
}

impl ShortHeader {
    /// Whether a datagram that begins with `first` is a short packet.
    pub const fn is_short(first: u8) -> bool {
        first & LONG == 0
    }

    /// Reads the first 14 bytes of a datagram.
    pub fn parse(datagram: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(datagram);
        let first = reader.u8()?;
        if first & !KEY_PHASE != 0 {
            return Err(Malformed);
        }
        let header = Self {
            key_phase: first & KEY_PHASE != 0,
            connection: reader.u64()?,
            path: reader.u8()?,
            number32: reader.u32()?,
        };
        // Path ids end at 254 (section 2).
        if header.path == u8::MAX { Err(Malformed) } else { Ok(header) }
    }

    /// Appends the 14 bytes.
    pub fn emit(&self, writer: &mut Writer<'_>) {
        writer.put_u8(if self.key_phase { KEY_PHASE } else { 0 });
        writer.put_u64(self.connection);
        writer.put_u8(self.path);
        writer.put_u32(self.number32);
    }
}

/// The packet number whose low 32 bits are `number32` and that is nearest to `expected`, the largest
/// received + 1 (RFC 9000 appendix A.3 with 32 bits).
pub fn expand(number32: u32, expected: u64) -> u64 {
    const WINDOW: u64 = 1 << 32;
    let candidate = (expected & !(WINDOW - 1)) | u64::from(number32);
    if candidate + WINDOW / 2 <= expected && candidate + WINDOW <= super::varint::MAX {
        candidate + WINDOW
    } else if candidate > expected + WINDOW / 2 && candidate >= WINDOW {
        candidate - WINDOW
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_number_is_taken() {
        let table = [
            (0, 0, 0),
            (5, 3, 5),
            (0xffff_ffff, 0, 0xffff_ffff),
            (0xffff_fff0, 0x1_0000_0005, 0xffff_fff0),
            (2, 0xffff_fff0, 0x1_0000_0002),
            (2, 0x1_0000_0000, 0x1_0000_0002),
            (0x8000_0000, 0x1_0000_0000, 0x1_8000_0000),
        ];
        for (low, expected, number) in table {
            assert_eq!(expand(low, expected), number, "{low:x} near {expected:x}");
        }
    }

    #[test]
    fn reserved_bits_make_it_no_packet() {
        let header =
            ShortHeader { key_phase: true, connection: 7 << 40, path: 3, number32: 0xfeed_beef };
        let mut bytes = [0; SHORT_HEADER];
        header.emit(&mut Writer::new(&mut bytes));
        assert_eq!(ShortHeader::parse(&bytes), Ok(header));
        assert_eq!(ShortHeader::parse(&bytes[..13]), Err(Malformed));
        for bit in 0..6 {
            let mut altered = bytes;
            altered[0] ^= 1 << bit;
            assert_eq!(ShortHeader::parse(&altered), Err(Malformed));
        }
    }
}

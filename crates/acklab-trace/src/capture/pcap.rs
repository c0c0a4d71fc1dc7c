//! The classic pcap format (draft-ietf-opsawg-pcap): a 24-byte header, then records.

use acklab_core::time::Time;

use super::byte_order::ByteOrder;
use super::input::Input;
use super::record::{CAPTURED_MAX, Record};
use super::{DamageKind, LinkType};

/// The parser's state: everything the file header says.
pub(super) struct Pcap {
    order: ByteOrder,
    /// Nanoseconds per unit of the fraction field.
    fraction_ns: u64,
    link: LinkType,
}

/// Whether the first four bytes are one of the four magics.
pub(super) fn is_magic(magic: [u8; 4]) -> bool {
    parse_magic(magic).is_some()
}

fn parse_magic(magic: [u8; 4]) -> Option<(ByteOrder, u64)> {
    let (big, little) = (u32::from_be_bytes(magic), u32::from_le_bytes(magic));
    match (big, little) {
        (MAGIC_MICROS, _) => Some((ByteOrder { big_endian: true }, 1_000)),
        (MAGIC_NANOS, _) => Some((ByteOrder { big_endian: true }, 1)),
        (_, MAGIC_MICROS) => Some((ByteOrder { big_endian: false }, 1_000)),
        (_, MAGIC_NANOS) => Some((ByteOrder { big_endian: false }, 1)),
        _ => None,
    }
}

impl Pcap {
    /// Takes the file header, whose magic was seen.
    pub(super) fn open(input: &mut Input<'_>) -> Result<Self, DamageKind> {
        if !input.fill(HEADER) {
            return Err(DamageKind::Cut { needed: HEADER as u64, left: input.left() as u64 });
        }
        let header = input.take(HEADER);
        let magic = [header[0], header[1], header[2], header[3]];
        let Some((order, fraction_ns)) = parse_magic(magic) else {
            return Err(DamageKind::Block("the file header has no pcap magic"));
        };
        // The upper half of the field holds the length of the frame check sequence.
        let link = LinkType((order.u32(header, 20) & 0xffff) as u16);
        Ok(Self { order, fraction_ns, link })
    }

    #[expect(clippy::inline_always, reason = "a frame returned through memory costs 10 % of a run")]
    #[inline(always)]
    pub(super) fn next_record(&mut self, input: &mut Input<'_>) -> Result<Record, DamageKind> {
        if !input.fill(RECORD) {
            return match input.left() {
                0 if input.failure().is_none() => Ok(Record::End),
                left => Err(DamageKind::Cut { needed: RECORD as u64, left: left as u64 }),
            };
        }
        let header = input.bytes(RECORD);
        let secs = u64::from(self.order.u32(header, 0));
        let fraction = u64::from(self.order.u32(header, 4));
        let captured = self.order.u32(header, 8);
        let original_len = self.order.u32(header, 12);
        if captured > CAPTURED_MAX {
            return Err(DamageKind::TooLong { length: u64::from(captured) });
        }
        let len = captured as usize;
        if !input.fill(RECORD + len) {
            let left = input.left() as u64;
            return Err(DamageKind::Cut { needed: (RECORD + len) as u64, left });
        }
        input.take(RECORD);
        let time = Time::from_nanos(secs * 1_000_000_000 + fraction * self.fraction_ns);
        Ok(Record::Frame { time, link: self.link, original_len, len, pad: 0 })
    }
}

/// draft-ietf-opsawg-pcap section 4: timestamps in microseconds.
pub(super) const MAGIC_MICROS: u32 = 0xa1b2_c3d4;
/// The same: timestamps in nanoseconds.
pub(super) const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
/// Length of the file header, bytes.
const HEADER: usize = 24;
/// Length of a record header, bytes.
const RECORD: usize = 16;

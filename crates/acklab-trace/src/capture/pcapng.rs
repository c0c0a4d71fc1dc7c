//! The pcapng format (draft-ietf-opsawg-pcapng): blocks in sections.

use acklab_core::time::Time;

use super::byte_order::ByteOrder;
use super::input::Input;
use super::record::{CAPTURED_MAX, Record};
use super::{DamageKind, LinkType};

/// The section header's block type, a palindrome: the same in both byte orders.
pub(super) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// The parser's state: the section it is in.
pub(super) struct Pcapng {
    order: ByteOrder,
    interfaces: Vec<Interface>,
    last_time: Time,
}

#[derive(Clone, Copy)]
struct Interface {
    link: LinkType,
    snap_len: u32,
    resolution: Resolution,
    offset_s: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// Units of so many nanoseconds.
    Times(u64),
    /// So many units per nanosecond.
    Per(u64),
    /// Units of 2^-n seconds.
    Binary(u32),
}

impl Pcapng {
    /// A parser before its first section header.
    pub(super) fn new() -> Self {
        Self {
            order: ByteOrder { big_endian: false },
            interfaces: Vec::new(),
            last_time: Time::ZERO,
        }
    }

    pub(super) fn next_record(&mut self, input: &mut Input<'_>) -> Result<Record, DamageKind> {
        loop {
            if !input.fill(BLOCK) {
                return match input.left() {
                    0 if input.failure().is_none() => Ok(Record::End),
                    left => Err(DamageKind::Cut { needed: BLOCK as u64, left: left as u64 }),
                };
            }
            let head = input.bytes(BLOCK);
            if head[..4] == MAGIC {
                self.enter_section(input)?;
                continue;
            }
            let (kind, length) = (self.order.u32(head, 0), self.order.u32(head, 4));
            if length < BLOCK as u32 || !length.is_multiple_of(4) {
                return Err(DamageKind::Block(
                    "a block's length is not a multiple of 4 from 12 on",
                ));
            }
            match kind {
                ENHANCED_PACKET | OBSOLETE_PACKET | SIMPLE_PACKET => {
                    return self.packet(input, kind, length);
                }
                INTERFACE => self.add_interface(input, length)?,
                _ => skip(input, length)?,
            }
        }
    }

    fn enter_section(&mut self, input: &mut Input<'_>) -> Result<(), DamageKind> {
        const BYTE_ORDER: u32 = 0x1a2b_3c4d;
        need(input, 28)?;
        let head = input.bytes(28);
        let magic = [head[8], head[9], head[10], head[11]];
        self.order = match (u32::from_be_bytes(magic), u32::from_le_bytes(magic)) {
            (BYTE_ORDER, _) => ByteOrder { big_endian: true },
            (_, BYTE_ORDER) => ByteOrder { big_endian: false },
            _ => return Err(DamageKind::Block("a section header has no byte-order magic")),
        };
        let length = self.order.u32(head, 4);
        if length < 28 || !length.is_multiple_of(4) {
            return Err(DamageKind::Block("a section header has an impossible length"));
        }
        if self.order.u16(head, 12) != 1 {
            return Err(DamageKind::Block("a section has a major version other than 1"));
        }
        self.interfaces.clear();
        skip(input, length)
    }

    fn add_interface(&mut self, input: &mut Input<'_>, length: u32) -> Result<(), DamageKind> {
        if length < 20 {
            return Err(DamageKind::Block("an interface description is too short"));
        }
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(DamageKind::Block("a section describes more than 4096 interfaces"));
        }
        let body = block(input, self.order, length)?;
        let mut interface = Interface {
            link: LinkType(self.order.u16(body, 8)),
            snap_len: self.order.u32(body, 12),
            resolution: Resolution::Times(1_000),
            offset_s: 0,
        };
        let mut options = &body[16..body.len() - 4];
        while options.len() >= 4 {
            let code = self.order.u16(options, 0);
            let len = usize::from(self.order.u16(options, 2));
            let Some(value) = options.get(4..4 + len) else { break };
            match (code, value) {
                (OPT_END, _) => break,
                (OPT_RESOLUTION, &[resolution, ..]) => {
                    interface.resolution = Resolution::parse(resolution)?;
                }
                (OPT_OFFSET, &[_, _, _, _, _, _, _, _]) => {
                    let (a, b) = (self.order.u32(value, 0), self.order.u32(value, 4));
                    interface.offset_s = self.order.join(a, b) as i64;
                }
                _ => {}
            }
            options = options.get(4 + len.next_multiple_of(4)..).unwrap_or(&[]);
        }
        self.interfaces.push(interface);
        skip(input, length)
    }

    #[inline]
    fn packet(
        &mut self,
        input: &mut Input<'_>,
        kind: u32,
        length: u32,
    ) -> Result<Record, DamageKind> {
        let header: usize = if kind == SIMPLE_PACKET { 12 } else { 28 };
        if (length as usize) < header + 4 {
            return Err(DamageKind::Block("a packet block is too short"));
        }
        let body = block(input, self.order, length)?;
        let order = self.order;
        let id = match kind {
            ENHANCED_PACKET => order.u32(body, 8) as usize,
            OBSOLETE_PACKET => usize::from(order.u16(body, 8)),
            _ => 0,
        };
        let Some(interface) = self.interfaces.get(id) else {
            return Err(DamageKind::Block("a packet names an interface that was not described"));
        };
        let (captured, original_len) = if kind == SIMPLE_PACKET {
            let original = order.u32(body, 8);
            let snap = if interface.snap_len == 0 { u32::MAX } else { interface.snap_len };
            (original.min(snap).min(length - 16), original)
        } else {
            let ticks = (u64::from(order.u32(body, 12)) << 32) | u64::from(order.u32(body, 16));
            self.last_time = interface.time(ticks);
            (order.u32(body, 20), order.u32(body, 24))
        };
        if captured > CAPTURED_MAX {
            return Err(DamageKind::TooLong { length: u64::from(captured) });
        }
        let len = captured as usize;
        if header + len + 4 > length as usize {
            return Err(DamageKind::Block("a packet is longer than its block"));
        }
        let (time, link) = (self.last_time, interface.link);
        input.take(header);
        Ok(Record::Frame { time, link, original_len, len, pad: length as usize - header - len })
    }
}

impl Resolution {
    /// if_tsresol: 10^-n, or 2^-n where the top bit is set.
    fn parse(raw: u8) -> Result<Self, DamageKind> {
        let n = u32::from(raw & 0x7f);
        match (raw & 0x80 != 0, n) {
            (false, 0..=9) => Ok(Self::Times(10_u64.pow(9 - n))),
            (false, 10..=28) => Ok(Self::Per(10_u64.pow(n - 9))),
            (true, 0..=63) => Ok(Self::Binary(n)),
            _ => Err(DamageKind::Block("an interface has an impossible time resolution")),
        }
    }
}

impl Interface {
    #[inline]
    fn time(&self, ticks: u64) -> Time {
        let nanos = match self.resolution {
            Resolution::Times(ns) => ticks.saturating_mul(ns),
            Resolution::Per(units) => ticks / units,
            Resolution::Binary(n) => {
                u64::try_from((u128::from(ticks) * 1_000_000_000) >> n).unwrap_or(u64::MAX)
            }
        };
        Time::from_nanos(nanos.saturating_add_signed(self.offset_s.saturating_mul(1_000_000_000)))
    }
}

impl ByteOrder {
    /// A 64-bit option value from its two halves as they stand.
    fn join(self, first: u32, second: u32) -> u64 {
        let (high, low) = if self.big_endian { (first, second) } else { (second, first) };
        (u64::from(high) << 32) | u64::from(low)
    }
}

/// The whole block, which may hold a frame and options, not yet taken.
#[inline]
fn block<'a>(
    input: &'a mut Input<'_>,
    order: ByteOrder,
    length: u32,
) -> Result<&'a [u8], DamageKind> {
    if length > BLOCK_MAX {
        return Err(DamageKind::TooLong { length: u64::from(length) });
    }
    need(input, length as usize)?;
    let block = input.bytes(length as usize);
    if order.u32(block, length as usize - 4) != length {
        return Err(DamageKind::Block("a block's two lengths differ"));
    }
    Ok(block)
}

#[inline]
fn need(input: &mut Input<'_>, n: usize) -> Result<(), DamageKind> {
    if input.fill(n) {
        return Ok(());
    }
    Err(DamageKind::Cut { needed: n as u64, left: input.left() as u64 })
}

fn skip(input: &mut Input<'_>, length: u32) -> Result<(), DamageKind> {
    let left = input.left() as u64;
    if input.skip(u64::from(length)) {
        return Ok(());
    }
    Err(DamageKind::Cut { needed: u64::from(length), left })
}

/// Block types (draft-ietf-opsawg-pcapng section 11.1).
pub(super) const INTERFACE: u32 = 1;
/// The packet block that version 1.0 dropped, still found in old files.
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
pub(super) const ENHANCED_PACKET: u32 = 6;
/// Option codes of the interface description (section 4.2).
const OPT_END: u16 = 0;
pub(super) const OPT_RESOLUTION: u16 = 9;
const OPT_OFFSET: u16 = 14;
/// The smallest block: type, length, length.
const BLOCK: usize = 12;
/// The longest block that holds a frame: the frame and as much again of options.
const BLOCK_MAX: u32 = 2 * CAPTURED_MAX;
/// A limit on interfaces per section; real captures have a handful.
const INTERFACES_MAX: usize = 4_096;

//! ACK frames: ranges or a bitmap, whichever is shorter (docs/rudp.md section 2).
//!
//! Both encodings are read through the one iterator [`AckFrame::ranges`]; [`emit`] writes from the
//! receiver's ranges without keeping anything. A range costs at least 2 B per gap, a bitmap an
//! eighth of a byte per packet, so above 7 % of random loss the bitmap is shorter. At equal reach
//! ranges are taken, and they go on below the bitmap's 256 numbers while they are no longer than it.

use std::ops::{Range, RangeInclusive};

use super::{Malformed, Reader, Writer, varint};

/// Further ranges in one frame at most (section 2).
const RANGES_MAX: u8 = 32;

/// Bytes of a bitmap at most (section 2): 256 numbers.
const BITMAP_MAX: usize = 32;

/// Packets counted by their ECN mark on one path since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Marked ECT(0).
    pub ect0: u64,
    /// Marked ECT(1).
    pub ect1: u64,
    /// Marked CE.
    pub ce: u64,
}

/// An ACK frame of either encoding.
#[derive(Clone, Copy, Debug)]
pub struct AckFrame<'a> {
    /// The path whose numbers it names.
    pub path: u8,
    /// The largest number that arrived.
    pub largest: u64,
    /// Time since that one arrived, us.
    pub delay_us: u64,
    /// ECN counters of that path.
    pub ecn: Option<EcnCounts>,
    blocks: Blocks<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Blocks<'a> {
    /// `first` + 1 up to the largest, then `count` pairs of varints.
    Ranges { first: u64, count: u8, pairs: &'a [u8] },
    /// Bit k says whether largest - 1 - k arrived.
    Bitmap(&'a [u8]),
}

impl PartialEq for AckFrame<'_> {
    /// Equal when they say the same: a varint that was not in its shortest form makes no difference.
    fn eq(&self, other: &Self) -> bool {
        (self.path, self.largest, self.delay_us, self.ecn)
            == (other.path, other.largest, other.delay_us, other.ecn)
            && self.ranges().eq(other.ranges())
    }
}

impl Eq for AckFrame<'_> {}

impl<'a> AckFrame<'a> {
    /// What arrived: inclusive ranges from the largest number downwards, never touching.
    pub fn ranges(&self) -> AckRanges<'a> {
        AckRanges { high: Some(self.largest), blocks: self.blocks, bit: 0 }
    }

    /// Reads the fields behind the type byte `kind`, 0x02 to 0x05.
    pub(super) fn parse(kind: u8, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let path = reader.u8()?;
        let largest = reader.varint()?;
        let delay_us = reader.varint()?;
        let count = reader.u8()?;
        let blocks = if kind & 1 == 0 {
            parse_ranges(reader, largest, count)?
        } else {
            parse_bitmap(reader, largest, count)?
        };
        let ecn = if kind >= 0x04 {
            let (ect0, ect1, ce) = (reader.varint()?, reader.varint()?, reader.varint()?);
            Some(EcnCounts { ect0, ect1, ce })
        } else {
            None
        };
        Ok(Self { path, largest, delay_us, ecn, blocks })
    }

    pub(super) fn len(&self) -> usize {
        let blocks = match self.blocks {
            Blocks::Ranges { first, .. } => {
                varint::len(first) + self.pairs().map(pair_len).sum::<usize>()
            }
            Blocks::Bitmap(bits) => bits.len(),
        };
        head_len(self.largest, self.delay_us, self.ecn) + blocks
    }

    pub(super) fn emit(&self, writer: &mut Writer<'_>) {
        let bitmap = matches!(self.blocks, Blocks::Bitmap(_));
        let count = match self.blocks {
            Blocks::Ranges { count, .. } => count,
            Blocks::Bitmap(bits) => bits.len() as u8,
        };
        put_head(writer, bitmap, self, count);
        match self.blocks {
            Blocks::Ranges { first, .. } => {
                writer.put_varint(first);
                for (gap, length) in self.pairs() {
                    writer.put_varint(gap);
                    writer.put_varint(length);
                }
            }
            Blocks::Bitmap(bits) => writer.put_bytes(bits),
        }
        put_ecn(writer, self.ecn);
    }

    fn pairs(&self) -> impl Iterator<Item = (u64, u64)> + 'a {
        let mut rest = match self.blocks {
            Blocks::Ranges { pairs, .. } => pairs,
            Blocks::Bitmap(_) => &[],
        };
        std::iter::from_fn(move || next_pair(&mut rest))
    }
}

fn next_pair(pairs: &mut &[u8]) -> Option<(u64, u64)> {
    let (gap, rest) = varint::read(pairs)?;
    let (length, rest) = varint::read(rest)?;
    *pairs = rest;
    Some((gap, length))
}

fn pair_len((gap, length): (u64, u64)) -> usize {
    varint::len(gap) + varint::len(length)
}

fn parse_ranges<'a>(
    reader: &mut Reader<'a>,
    largest: u64,
    count: u8,
) -> Result<Blocks<'a>, Malformed> {
    if count > RANGES_MAX {
        return Err(Malformed);
    }
    let first = reader.varint()?;
    let mut low = largest.checked_sub(first).ok_or(Malformed)?;
    let mut ahead = *reader;
    for _ in 0..count {
        // gap + 1 missing, then length + 1 that arrived; varints are below 2^62, so sums fit.
        let below = ahead.varint()? + 1 + ahead.varint()? + 1;
        low = low.checked_sub(below).ok_or(Malformed)?;
    }
    let pairs = reader.take((reader.remaining() - ahead.remaining()) as u64)?;
    Ok(Blocks::Ranges { first, count, pairs })
}

fn parse_bitmap<'a>(
    reader: &mut Reader<'a>,
    largest: u64,
    len: u8,
) -> Result<Blocks<'a>, Malformed> {
    if !(1..=BITMAP_MAX).contains(&usize::from(len)) {
        return Err(Malformed);
    }
    let bits = reader.take(u64::from(len))?;
    // Bit k is number largest - 1 - k: from bit `largest` on there is none.
    let beyond = (largest..8 * u64::from(len)).any(|k| bit(bits, k as usize));
    if beyond { Err(Malformed) } else { Ok(Blocks::Bitmap(bits)) }
}

fn bit(bits: &[u8], k: usize) -> bool {
    bits[k / 8] >> (k % 8) & 1 == 1
}

/// The ranges of one ACK frame, descending.
#[derive(Clone, Debug)]
pub struct AckRanges<'a> {
    /// Upper end of the next range; of a bitmap only the first.
    high: Option<u64>,
    blocks: Blocks<'a>,
    /// Bits of the bitmap that were read.
    bit: usize,
}

impl Iterator for AckRanges<'_> {
    type Item = RangeInclusive<u64>;

    fn next(&mut self) -> Option<RangeInclusive<u64>> {
        let high = self.high?;
        match &mut self.blocks {
            Blocks::Ranges { first, pairs, .. } => {
                let low = high - *first;
                self.high = next_pair(pairs).map(|(gap, length)| {
                    *first = length;
                    low - gap - 2
                });
                Some(low..=high)
            }
            Blocks::Bitmap(bits) => {
                let (bits, all) = (*bits, 8 * bits.len());
                // `bit` stands behind the bit of `high`: high is number `self.high` of this range.
                let mut low = high;
                while self.bit < all && bit(bits, self.bit) {
                    low -= 1;
                    self.bit += 1;
                }
                let mut missing = low;
                while self.bit < all && !bit(bits, self.bit) {
                    missing = missing.saturating_sub(1);
                    self.bit += 1;
                }
                self.high = (self.bit < all).then(|| {
                    self.bit += 1;
                    missing - 1
                });
                Some(low..=high)
            }
        }
    }
}

/// Bytes before the blocks and of the ECN counters behind them.
fn head_len(largest: u64, delay_us: u64, ecn: Option<EcnCounts>) -> usize {
    let ecn = ecn.map_or(0, |counts| {
        varint::len(counts.ect0) + varint::len(counts.ect1) + varint::len(counts.ce)
    });
    3 + varint::len(largest) + varint::len(delay_us) + ecn
}

fn put_head(writer: &mut Writer<'_>, bitmap: bool, frame: &AckFrame<'_>, count: u8) {
    writer.put_u8(0x02 + 2 * u8::from(frame.ecn.is_some()) + u8::from(bitmap));
    writer.put_u8(frame.path);
    writer.put_varint(frame.largest);
    writer.put_varint(frame.delay_us);
    writer.put_u8(count);
}

fn put_ecn(writer: &mut Writer<'_>, ecn: Option<EcnCounts>) {
    if let Some(counts) = ecn {
        for count in [counts.ect0, counts.ect1, counts.ce] {
            writer.put_varint(count);
        }
    }
}

/// Appends the shorter of the two encodings of `ranges`, the packet numbers of `path` that arrived:
/// half-open, descending, never touching. What does not fit into the room is left out from below;
/// false, and nothing written, where not even the first range fits or there is none.
pub fn emit<I>(
    writer: &mut Writer<'_>,
    path: u8,
    ranges: I,
    delay_us: u64,
    ecn: Option<EcnCounts>,
) -> bool
where
    I: Iterator<Item = Range<u64>> + Clone,
{
    let Some(newest) = ranges.clone().next() else { return false };
    let largest = newest.end - 1;
    let first = largest - newest.start;
    let Some(room) = writer
        .remaining()
        .checked_sub(head_len(largest, delay_us, ecn))
        .filter(|&room| room >= varint::len(first))
    else {
        return false;
    };
    let plan = Plan::make(ranges.clone(), room);
    let blocks = Blocks::Ranges { first, count: plan.count, pairs: &[] };
    let frame = AckFrame { path, largest, delay_us, ecn, blocks };
    put_head(writer, plan.bitmap > 0, &frame, plan.count.max(plan.bitmap as u8));
    if plan.bitmap > 0 {
        let bits = bitmap(ranges, largest);
        writer.put_bytes(&bits[..plan.bitmap]);
    } else {
        writer.put_varint(first);
        for (gap, length) in gaps(ranges).take(usize::from(plan.count)) {
            writer.put_varint(gap);
            writer.put_varint(length);
        }
    }
    put_ecn(writer, ecn);
    true
}

/// What an ACK frame will hold: `count` further ranges, or `bitmap` bytes if that is not 0.
struct Plan {
    count: u8,
    bitmap: usize,
}

impl Plan {
    fn make(ranges: impl Iterator<Item = Range<u64>> + Clone, room: usize) -> Self {
        let mut all = ranges.clone();
        let newest = all.next().unwrap_or(0..1);
        let largest = newest.end - 1;
        let floor = largest.saturating_sub(8 * BITMAP_MAX as u64);
        // The lowest number that arrived and that a bitmap could say.
        let lowest = all.take_while(|range| range.end > floor).last().unwrap_or(newest.clone());
        let reach = largest - lowest.start.max(floor);
        let bitmap = (reach.div_ceil(8) as usize).clamp(1, BITMAP_MAX);
        let mut size = varint::len(largest - newest.start);
        let (mut count, mut low) = (0, newest.start);
        for (gap, length) in gaps(ranges).take(usize::from(RANGES_MAX)) {
            let longer = size + pair_len((gap, length));
            // Below the bitmap's reach only what costs no more than a full bitmap.
            let free = low <= lowest.start && longer <= BITMAP_MAX;
            if longer > room || longer > bitmap && !free {
                break;
            }
            (size, count, low) = (longer, count + 1, low - gap - length - 2);
        }
        let bitmap = if low <= lowest.start || room == 0 { 0 } else { bitmap.min(room) };
        Self { count: if bitmap > 0 { 0 } else { count }, bitmap }
    }
}

/// (gap, length) of each range but the first, as they go on the wire.
fn gaps(mut ranges: impl Iterator<Item = Range<u64>>) -> impl Iterator<Item = (u64, u64)> {
    let mut low = ranges.next().map_or(0, |range| range.start);
    ranges.map(move |range| {
        let pair = (low - range.end - 1, range.end - range.start - 1);
        low = range.start;
        pair
    })
}

fn bitmap(ranges: impl Iterator<Item = Range<u64>>, largest: u64) -> [u8; BITMAP_MAX] {
    let mut bits = [0; BITMAP_MAX];
    let floor = largest.saturating_sub(8 * BITMAP_MAX as u64);
    for range in ranges.take_while(|range| range.end > floor) {
        for number in range.start.max(floor)..range.end.min(largest) {
            let k = (largest - 1 - number) as usize;
            bits[k / 8] |= 1 << (k % 8);
        }
    }
    bits
}

//! The packets of a direction as one stream of bytes, while the capture is read.
//!
//! Some hundred thousand packets of a thousand connections are written in turn, so each one is a
//! miss in every cache and, in lists of plain structs, some 60 bytes long. Written as differences
//! from the one before, in numbers of 1 to 9 bytes, a segment takes some 8 bytes and an ACK 15.
//! Nothing is rounded. When the direction is over, [`Tape::unroll`] gives the list back.

use acklab_core::time::Time;

use super::event::{AckNote, DataNote, Event, Kind};

/// Packets in the order of the capture.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    /// The records, and room behind them.
    bytes: Vec<u8>,
    /// Bytes of the records.
    used: usize,
    last: Last,
    /// Where the tape can be cut: its lengths and states at [`CUT_MIN`] and every doubling since.
    cuts: Vec<(usize, Last)>,
    /// It was cut, or is full: what follows is not on it.
    ended: bool,
}

/// What the next record is written relative to, and how many there are.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    events: u32,
    time: u64,
    frame: u64,
    end: u64,
    frames: u64,
    acked: u64,
    edge: u64,
}

impl Tape {
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether it ended before the direction did.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Notes a packet, unless the tape has ended.
    #[inline]
    pub(crate) fn push(&mut self, event: &Event) {
        if self.ended {
            return;
        }
        match event {
            Event::Data(data) => self.push_data(data),
            Event::Ack(ack) => self.push_ack(ack),
        }
        self.last.events += 1;
        self.ended = self.last.events as usize >= EVENTS_MAX;
    }

    #[inline]
    fn push_data(&mut self, data: &DataNote) {
        let there = [data.push, data.offset != self.last.end, data.frames != self.last.frames];
        let flags = [data.hears_unseen, data.exempt];
        let tag = DATA | bits(&there) << 1 | (data.kind as u8) << 4 | bits(&flags) << 6;
        let (mut entry, last) = self.begin(tag);
        last.put_moment(&mut entry, data.time, data.frame);
        entry.number(u64::from(data.len));
        if there[1] {
            entry.signed(data.offset, last.end);
        }
        if there[2] {
            entry.signed(data.frames, last.frames);
        }
        (last.end, last.frames) = (data.end(), data.frames);
    }

    #[inline]
    fn push_ack(&mut self, ack: &AckNote) {
        let last_edge = self.last.edge;
        let there = [ack.pure, ack.ages.is_some(), ack.edge != last_edge, ack.len > 0];
        let (mut entry, last) = self.begin(ACK | bits(&there) << 1);
        last.put_moment(&mut entry, ack.time, ack.frame);
        entry.signed(ack.acked_to, last.acked);
        if let Some([newest, oldest]) = ack.ages {
            entry.number(newest);
            entry.signed(oldest, newest);
        }
        entry.number(u64::from(ack.segments));
        if there[2] {
            entry.signed(ack.edge, last_edge);
        }
        if there[3] {
            entry.number(u64::from(ack.len));
        }
        (last.acked, last.edge) = (ack.acked_to, ack.edge);
    }

    /// The packets.
    pub(crate) fn unroll(&self) -> Vec<Event> {
        let mut events = Vec::with_capacity(self.last.events as usize);
        let mut reader = Reader { bytes: &self.bytes, at: 0, last: Last::default() };
        while reader.at < self.used {
            let tag = reader.byte();
            events.push(if tag & 1 == ACK {
                Event::Ack(reader.ack(tag >> 1))
            } else {
                Event::Data(reader.data(tag >> 1))
            });
        }
        events
    }

    /// Cuts the tape to the first half or less.
    pub(crate) fn shed(&mut self) {
        let half = self.used / 2;
        while self.cuts.last().is_some_and(|cut| cut.0 > half) {
            self.cuts.pop();
        }
        let (len, last) = self.cuts.last().copied().unwrap_or_default();
        self.used = len;
        self.bytes.truncate(if len > 0 { len + READ_MAX } else { 0 });
        self.bytes.shrink_to_fit();
        self.last = last;
        self.ended = true;
    }

    /// Room for a record, which ends where [`Entry::at`] is then.
    #[inline]
    fn begin(&mut self, tag: u8) -> (Entry<'_>, &mut Last) {
        if self.used + ENTRY_MAX > self.bytes.len() {
            self.grow();
        }
        let mut entry = Entry { bytes: &mut self.bytes, at: &mut self.used };
        entry.byte(tag);
        (entry, &mut self.last)
    }

    #[cold]
    fn grow(&mut self) {
        if self.used >= self.cuts.last().map_or(CUT_MIN, |cut| 2 * cut.0) {
            self.cuts.push((self.used, self.last));
        }
        let more = self.bytes.len().max(ENTRY_MAX);
        self.bytes.resize(self.bytes.len() + more, 0);
    }
}

impl Last {
    #[inline]
    fn put_moment(&mut self, entry: &mut Entry<'_>, time: Time, frame: u64) {
        entry.signed(time.as_nanos(), self.time);
        entry.signed(frame, self.frame);
        (self.time, self.frame) = (time.as_nanos(), frame);
    }
}

fn bits(flags: &[bool]) -> u8 {
    flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag))
}

/// One record in the making, in room that is there. It is written in whole words: bytes read back from the store
/// buffer to be copied would wait for the cache line that they go to.
struct Entry<'a> {
    bytes: &'a mut [u8],
    at: &'a mut usize,
}

impl Entry<'_> {
    #[inline]
    fn byte(&mut self, byte: u8) {
        self.bytes[*self.at] = byte;
        *self.at += 1;
    }

    #[inline]
    fn word(&mut self, word: u64) {
        if let Some(room) = self.bytes[*self.at..].first_chunk_mut::<8>() {
            *room = word.to_le_bytes();
        }
    }

    /// `n` bytes of 7 bits each; the lowest bits of the first tell `n`: a one after `n - 1` zeros.
    #[inline]
    fn number(&mut self, number: u64) {
        let bits = 64 - (number | 1).leading_zeros() as usize;
        let bytes = bits.div_ceil(7);
        if bytes <= 8 {
            self.word(((number << 1) | 1) << (bytes - 1));
            *self.at += bytes;
        } else {
            self.byte(0);
            self.word(number);
            *self.at += 8;
        }
    }

    /// `to - from`, the sign in the lowest bit.
    #[inline]
    fn signed(&mut self, to: u64, from: u64) {
        let difference = to.wrapping_sub(from) as i64;
        self.number(((difference << 1) ^ (difference >> 63)) as u64);
    }
}

/// Reads back what [`Tape`] wrote; behind the last record there are [`READ_MAX`] bytes.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    last: Last,
}

impl Reader<'_> {
    #[inline]
    fn byte(&mut self) -> u8 {
        let byte = self.bytes[self.at];
        self.at += 1;
        byte
    }

    #[inline]
    fn word(&self) -> u64 {
        self.bytes[self.at..].first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word))
    }

    #[inline]
    fn number(&mut self) -> u64 {
        let word = self.word();
        let bytes = word.trailing_zeros() as usize + 1;
        if bytes > 8 {
            self.at += 1;
            let number = self.word();
            self.at += 8;
            return number;
        }
        self.at += bytes;
        (word & (u64::MAX >> (64 - 8 * bytes))) >> (bytes - 1) >> 1
    }

    fn difference(&mut self) -> u64 {
        let number = self.number();
        (number >> 1) ^ (number & 1).wrapping_neg()
    }

    fn from(&mut self, base: u64) -> u64 {
        base.wrapping_add(self.difference())
    }

    fn moment(&mut self) -> (Time, u64) {
        self.last.time = self.from(self.last.time);
        self.last.frame = self.from(self.last.frame);
        (Time::from_nanos(self.last.time), self.last.frame)
    }

    fn data(&mut self, flags: u8) -> DataNote {
        let (time, frame) = self.moment();
        let len = self.number() as u32;
        let offset = if flags & 2 != 0 { self.from(self.last.end) } else { self.last.end };
        if flags & 4 != 0 {
            self.last.frames = self.from(self.last.frames);
        }
        let kind = KINDS[usize::from(flags >> 3 & 3)];
        let (frames, push) = (self.last.frames, flags & 1 != 0);
        let (hears_unseen, exempt) = (flags & 32 != 0, flags & 64 != 0);
        let data = DataNote { frame, time, offset, len, frames, kind, push, exempt, hears_unseen };
        self.last.end = data.end();
        data
    }

    fn ack(&mut self, flags: u8) -> AckNote {
        let (time, frame) = self.moment();
        self.last.acked = self.from(self.last.acked);
        let ages = (flags & 2 != 0).then(|| {
            let newest = self.number();
            [newest, self.from(newest)]
        });
        let segments = self.number() as u16;
        if flags & 4 != 0 {
            self.last.edge = self.from(self.last.edge);
        }
        let len = if flags & 8 != 0 { self.number() as u32 } else { 0 };
        let Last { acked: acked_to, edge, .. } = self.last;
        AckNote { frame, time, acked_to, edge, ages, segments, len, pure: flags & 1 != 0 }
    }
}

/// What a record is, in the lowest bit of its first byte; flags follow.
const DATA: u8 = 0;
const ACK: u8 = 1;
/// By their number.
const KINDS: [Kind; 4] = [Kind::New, Kind::Gap, Kind::Again, Kind::Late];
/// More packets are not kept.
pub(crate) const EVENTS_MAX: usize = 262_144;
/// A tag, 8 numbers of at most 9 bytes, and the rest of a word; rounded up, so that the tape doubles to
/// sizes that allocators have.
const ENTRY_MAX: usize = 128;
/// A number is read as a word, whatever its length.
const READ_MAX: usize = 8;
/// Less is not worth cutting.
const CUT_MIN: usize = 1_024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_time() -> impl Strategy<Value = Time> {
        prop_oneof![Just(0), 0..1_000_000_u64, any::<u64>()].prop_map(Time::from_nanos)
    }

    fn any_number() -> impl Strategy<Value = u64> {
        prop_oneof![0..300_u64, 0..u64::MAX / 2]
    }

    fn any_ack() -> impl Strategy<Value = Event> {
        let ages = prop::option::of(prop::array::uniform2(any_number()));
        let numbers = prop::array::uniform3(any_number());
        (any_time(), numbers, ages, any::<u16>(), any::<u32>(), any::<bool>()).prop_map(
            |(time, [frame, acked_to, edge], ages, segments, len, pure)| {
                Event::Ack(AckNote { frame, time, acked_to, edge, ages, segments, len, pure })
            },
        )
    }

    fn any_data() -> impl Strategy<Value = Event> {
        let numbers = prop::array::uniform3(any_number());
        (any_time(), numbers, any::<u32>(), 0..4_usize, any::<[bool; 3]>()).prop_map(
            |(time, [frame, offset, frames], len, kind, [push, exempt, hears_unseen])| {
                let kind = KINDS[kind];
                Event::Data(DataNote {
                    frame,
                    time,
                    offset,
                    len,
                    frames,
                    kind,
                    push,
                    exempt,
                    hears_unseen,
                })
            },
        )
    }

    proptest! {
        #[test]
        fn a_tape_gives_back_what_was_written(
            written in prop::collection::vec(prop_oneof![any_data(), any_ack()], 0..80)
        ) {
            let mut tape = Tape::default();
            for event in &written {
                tape.push(event);
            }
            prop_assert_eq!(&tape.unroll(), &written);
            let held = tape.held_bytes();
            tape.shed();
            let cut = tape.unroll();
            prop_assert_eq!(&cut[..], &written[..cut.len()]);
            prop_assert!(tape.held_bytes() <= held / 2 + 1);
        }
    }
}

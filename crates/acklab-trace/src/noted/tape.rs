//! The records of a direction as one stream of bytes, while the capture is read.
//!
//! Some hundred thousand records of a thousand connections are written in turn, so each one is a
//! miss in every cache and, in lists of plain structs, some 100 bytes long. Written as differences
//! from the record before, in numbers of 1 to 9 bytes, candidate, ACK and arrival take some 40 bytes
//! together, and one cache line. Nothing is rounded. When the direction is over, [`Tape::unroll`] gives
//! the lists back.

use acklab_core::time::Time;

use super::values::{AckRecord, Arrival, Candidate, Marks, RECORDS_MAX};

/// Candidates, ACKs and arrivals in the order in which they were noted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    bytes: Vec<u8>,
    last: Last,
    /// Where the tape can be cut: its lengths and states at [`CUT_MIN`] and every doubling since.
    cuts: Vec<(usize, Last)>,
}

/// What the next record is written relative to, and how many there are.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    candidates: u32,
    acks: u32,
    arrivals: u32,
    time: u64,
    frame: u64,
    end: u64,
    flight_max: u64,
    frames: u64,
}

/// The lists of a tape.
#[derive(Debug, Default)]
pub(crate) struct Unrolled {
    /// Possible holds.
    pub(crate) candidates: Vec<Candidate>,
    /// Acknowledgments.
    pub(crate) acks: Vec<AckRecord>,
    /// Segments in order.
    pub(crate) arrivals: Vec<Arrival>,
}

impl Tape {
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether another arrival has room.
    pub(crate) fn has_room_for_arrival(&self) -> bool {
        (self.last.arrivals as usize) < RECORDS_MAX
    }

    #[inline]
    pub(crate) fn push_arrival(&mut self, arrival: &Arrival) {
        let (mut entry, last) = self.begin(ARRIVAL);
        last.put_time(&mut entry, arrival.time);
        entry.signed(arrival.end, last.end);
        entry.signed(arrival.frames, last.frames);
        (last.end, last.frames) = (arrival.end, arrival.frames);
        last.arrivals += 1;
    }

    /// Notes an ACK, unless there are [`RECORDS_MAX`]; whether it was.
    #[inline]
    pub(crate) fn push_ack(&mut self, ack: &AckRecord) -> bool {
        if self.last.acks as usize >= RECORDS_MAX {
            return false;
        }
        let flags = [ack.pure, ack.small, ack.answered];
        let (mut entry, last) = self.begin(ACK | bits(&flags) << KIND_BITS);
        last.put_time(&mut entry, ack.time);
        entry.number(ack.newest_age);
        entry.signed(ack.oldest_age, ack.newest_age);
        entry.number(u64::from(ack.segments));
        last.acks += 1;
        true
    }

    /// The last ACK noted was answered by the peer's own data.
    pub(crate) fn mark_ack_answered(&mut self) {
        self.bytes.push(ANSWERED);
    }

    /// Notes a candidate, unless there are [`RECORDS_MAX`]; whether it was.
    pub(crate) fn push_candidate(&mut self, c: &Candidate) -> bool {
        if self.last.candidates as usize >= RECORDS_MAX {
            return false;
        }
        let Marks { pure, small_before, window, recovery, push } = c.marks;
        let marks = bits(&[pure, small_before, window, recovery, push]);
        let there = bits(&[c.ack_age.is_some(), c.oldest_age.is_some(), c.peer_after.is_some()]);
        let (mut entry, last) = self.begin(CANDIDATE | there << KIND_BITS);
        entry.byte(marks);
        last.put_time(&mut entry, c.time);
        entry.signed(c.frame, last.frame);
        let now = c.time.as_nanos();
        entry.signed(now, c.before.as_nanos());
        entry.signed(now, c.ack.as_nanos());
        c.ack_age.iter().for_each(|age| entry.number(*age));
        c.oldest_age.iter().for_each(|age| entry.signed(*age, c.ack_age.unwrap_or(0)));
        c.peer_after.iter().for_each(|t| entry.signed(now, t.as_nanos()));
        entry.signed(c.end, last.end);
        entry.number(u64::from(c.len));
        entry.number(u64::from(c.flight_before));
        entry.signed(u64::from(c.flight_max), last.flight_max);
        (last.frame, last.end) = (c.frame, c.end);
        last.flight_max = u64::from(c.flight_max);
        last.candidates += 1;
        true
    }

    /// The lists.
    pub(crate) fn unroll(&self) -> Unrolled {
        let mut lists = Unrolled {
            candidates: Vec::with_capacity(self.last.candidates as usize),
            acks: Vec::with_capacity(self.last.acks as usize),
            arrivals: Vec::with_capacity(self.last.arrivals as usize),
        };
        let mut reader = Reader { bytes: &self.bytes, last: Last::default() };
        while let Some(tag) = reader.byte() {
            match tag & KIND_MASK {
                ARRIVAL => lists.arrivals.push(reader.arrival()),
                ACK => lists.acks.push(reader.ack(tag >> KIND_BITS)),
                CANDIDATE => lists.candidates.push(reader.candidate(tag >> KIND_BITS)),
                _ => lists.acks.iter_mut().next_back().into_iter().for_each(|a| a.answered = true),
            }
        }
        lists
    }

    /// Cuts the tape to the first half or less.
    pub(crate) fn shed(&mut self) {
        let half = self.bytes.len() / 2;
        while self.cuts.last().is_some_and(|cut| cut.0 > half) {
            self.cuts.pop();
        }
        let (len, last) = self.cuts.last().copied().unwrap_or_default();
        self.bytes.truncate(len);
        self.bytes.shrink_to_fit();
        self.last = last;
    }

    /// Begins a record.
    #[inline]
    fn begin(&mut self, tag: u8) -> (Entry<'_>, &mut Last) {
        if self.bytes.len() + ENTRY_MAX > self.bytes.capacity() {
            self.grow();
        }
        self.bytes.push(tag);
        (Entry(&mut self.bytes), &mut self.last)
    }

    #[cold]
    fn grow(&mut self) {
        let len = self.bytes.len();
        if len >= self.cuts.last().map_or(CUT_MIN, |cut| 2 * cut.0) {
            self.cuts.push((len, self.last));
        }
        self.bytes.reserve(ENTRY_MAX);
    }
}

impl Last {
    #[inline]
    fn put_time(&mut self, entry: &mut Entry<'_>, time: Time) {
        entry.signed(time.as_nanos(), self.time);
        self.time = time.as_nanos();
    }
}

fn bits(flags: &[bool]) -> u8 {
    flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag))
}

/// One record in the making. It is written in whole words: bytes read back from the store buffer to
/// be copied would wait for the cache line that they go to.
struct Entry<'a>(&'a mut Vec<u8>);

impl Entry<'_> {
    #[inline]
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// `n` bytes of 7 bits each; the lowest bits of the first tell `n`: a one after `n - 1` zeros.
    #[inline]
    fn number(&mut self, number: u64) {
        let bits = 64 - (number | 1).leading_zeros() as usize;
        let bytes = bits.div_ceil(7);
        if bytes <= 8 {
            let word = ((number << 1) | 1) << (bytes - 1);
            let end = self.0.len() + bytes;
            self.0.extend_from_slice(&word.to_le_bytes());
            self.0.truncate(end);
        } else {
            self.0.push(0);
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// `to - from`, the sign in the lowest bit.
    #[inline]
    fn signed(&mut self, to: u64, from: u64) {
        let difference = to.wrapping_sub(from) as i64;
        self.number(((difference << 1) ^ (difference >> 63)) as u64);
    }
}

/// Reads back what [`Tape`] wrote.
struct Reader<'a> {
    bytes: &'a [u8],
    last: Last,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    #[inline]
    fn number(&mut self) -> u64 {
        let Some(&[first, ..]) = self.bytes.first_chunk::<1>() else { return 0 };
        let bytes = first.trailing_zeros() as usize + 1;
        match self.bytes.first_chunk::<8>() {
            Some(word) if bytes <= 8 => {
                let word = u64::from_le_bytes(*word) & (u64::MAX >> (64 - 8 * bytes));
                self.bytes = &self.bytes[bytes..];
                word >> (bytes - 1) >> 1
            }
            _ => self.number_at_the_edge(bytes),
        }
    }

    /// The same for a number of 9 bytes, or one close to the end of the tape.
    #[cold]
    fn number_at_the_edge(&mut self, bytes: usize) -> u64 {
        let (skip, bytes) = if bytes > 8 { (1, 8) } else { (0, bytes) };
        let Some(number) = self.bytes.get(skip..skip + bytes) else { return 0 };
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(number);
        self.bytes = &self.bytes[skip + bytes..];
        let word = u64::from_le_bytes(word);
        if skip == 1 { word } else { word >> (bytes - 1) >> 1 }
    }

    fn difference(&mut self) -> u64 {
        let number = self.number();
        (number >> 1) ^ (number & 1).wrapping_neg()
    }

    fn time(&mut self) -> Time {
        self.last.time = self.last.time.wrapping_add(self.difference());
        Time::from_nanos(self.last.time)
    }

    fn before(&mut self, time: Time) -> Time {
        Time::from_nanos(time.as_nanos().wrapping_sub(self.difference()))
    }

    fn end(&mut self) -> u64 {
        self.last.end = self.last.end.wrapping_add(self.difference());
        self.last.end
    }

    fn arrival(&mut self) -> Arrival {
        let (time, end) = (self.time(), self.end());
        self.last.frames = self.last.frames.wrapping_add(self.difference());
        Arrival { time, end, frames: self.last.frames }
    }

    fn ack(&mut self, flags: u8) -> AckRecord {
        let time = self.time();
        let newest_age = self.number();
        AckRecord {
            time,
            oldest_age: newest_age.wrapping_add(self.difference()),
            newest_age,
            segments: self.number() as u16,
            pure: flags & 1 != 0,
            small: flags & 2 != 0,
            answered: flags & 4 != 0,
        }
    }

    fn candidate(&mut self, there: u8) -> Candidate {
        let has = |bit: u8| there & 1 << bit != 0;
        let marks = self.byte().unwrap_or(0);
        let marked = |bit: u8| marks & 1 << bit != 0;
        let time = self.time();
        self.last.frame = self.last.frame.wrapping_add(self.difference());
        let (before, ack) = (self.before(time), self.before(time));
        let ack_age = has(0).then(|| self.number());
        let oldest_age = has(1).then(|| ack_age.unwrap_or(0).wrapping_add(self.difference()));
        let peer_after = has(2).then(|| self.before(time));
        let end = self.end();
        let (len, flight_before) = (self.number() as u32, self.number() as u32);
        self.last.flight_max = self.last.flight_max.wrapping_add(self.difference());
        Candidate {
            frame: self.last.frame,
            time,
            before,
            ack,
            ack_age,
            oldest_age,
            peer_after,
            end,
            len,
            flight_before,
            flight_max: self.last.flight_max as u32,
            marks: Marks {
                pure: marked(0),
                small_before: marked(1),
                window: marked(2),
                recovery: marked(3),
                push: marked(4),
            },
        }
    }
}

/// What a record is, in the lowest bits of its first byte; flags follow.
const ARRIVAL: u8 = 0;
const ACK: u8 = 1;
const CANDIDATE: u8 = 2;
const ANSWERED: u8 = 3;
const KIND_BITS: u8 = 2;
const KIND_MASK: u8 = 3;
/// Two bytes, 11 numbers of at most 9 bytes, and the rest of a word; rounded up, so that the tape
/// doubles to sizes that allocators have.
const ENTRY_MAX: usize = 128;
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
        prop_oneof![0..300_u64, any::<u64>()]
    }

    fn any_ack() -> impl Strategy<Value = AckRecord> {
        (any_time(), any_number(), any_number(), any::<u16>(), any::<[bool; 3]>()).prop_map(
            |(time, oldest_age, newest_age, segments, [pure, small, answered])| AckRecord {
                time,
                oldest_age,
                newest_age,
                segments,
                pure,
                small,
                answered,
            },
        )
    }

    fn any_candidate() -> impl Strategy<Value = Candidate> {
        let times = (any_time(), any_time(), any_time());
        let ages = prop::array::uniform2(prop::option::of(any_number()));
        let numbers = (any_number(), any_number(), any::<[u32; 3]>());
        (times, prop::option::of(any_time()), ages, numbers, any::<[bool; 5]>()).prop_map(
            |(times, peer_after, ages, numbers, marks)| Candidate {
                frame: numbers.0,
                time: times.0,
                before: times.1,
                ack: times.2,
                ack_age: ages[0],
                oldest_age: ages[1],
                peer_after,
                end: numbers.1,
                len: numbers.2[0],
                flight_before: numbers.2[1],
                flight_max: numbers.2[2],
                marks: Marks {
                    pure: marks[0],
                    small_before: marks[1],
                    window: marks[2],
                    recovery: marks[3],
                    push: marks[4],
                },
            },
        )
    }

    fn any_arrival() -> impl Strategy<Value = Arrival> {
        (any_time(), any_number(), any_number()).prop_map(|(time, end, frames)| Arrival {
            time,
            end,
            frames,
        })
    }

    proptest! {
        #[test]
        fn a_tape_gives_back_what_was_written(
            rounds in prop::collection::vec(
                (any_candidate(), any_ack(), any_arrival(), any::<bool>()), 0..40
            )
        ) {
            let mut tape = Tape::default();
            let mut written = Unrolled::default();
            for (candidate, mut ack, arrival, answered) in rounds {
                prop_assert!(tape.push_ack(&ack) && tape.push_candidate(&candidate));
                tape.push_arrival(&arrival);
                if answered {
                    tape.mark_ack_answered();
                    ack.answered = true;
                }
                written.acks.push(ack);
                written.candidates.push(candidate);
                written.arrivals.push(arrival);
            }
            let found = tape.unroll();
            prop_assert_eq!(format!("{:?}", found), format!("{:?}", written));
            let held = tape.held_bytes();
            tape.shed();
            let cut = tape.unroll();
            // Whether the last ACK was answered may stand beyond the cut.
            let n = cut.acks.len().saturating_sub(1);
            prop_assert!(n <= written.acks.len());
            let first = format!("{:?}", &written.acks[..n]);
            prop_assert_eq!(format!("{:?}", &cut.acks[..n]), first);
            prop_assert!(tape.held_bytes() <= held / 2 + 1);
        }
    }
}

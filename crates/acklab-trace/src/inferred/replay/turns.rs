//! How many messages of the peer the sender had not answered when it spoke.
//!
//! In a conversation of one answer to each request, a host that answers whatever comes is never behind. One
//! whose answer to an earlier request leaves with the next request's ACK is: that answer had waited.

use acklab_core::time::Time;

use crate::noted::Notes;
use crate::noted::event::{AckNote, DataNote, Event, Kind};

/// Counts messages both ways: by their framing, where both directions' is known; else segments, but that several of the
/// usual length in one count as several.
#[derive(Debug)]
pub(super) struct Turns<'n> {
    count: Count<'n>,
    heard: i64,
    said: i64,
    /// Heard before the last message of the peer.
    before: i64,
    last_heard: Option<Time>,
    /// The peer's framing began anew since the last segment.
    anew: bool,
    stretches: Vec<Stretch>,
}

/// Segments of the sender between which the counts are whole: framing that was lost and found again counts anew.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Frame of its first segment, and how many there are.
    frame: u64,
    segments: u32,
    /// Heard less said after the first, after the last, the least and the most.
    first: i64,
    last: i64,
    least: i64,
    most: i64,
}

/// How messages are counted.
#[derive(Clone, Copy, Debug)]
enum Count<'n> {
    /// By where the peer's end.
    Framing(&'n [(u64, u64)]),
    /// By the usual length of the peer's segments, and of the sender's.
    Usual([Option<u32>; 2]),
}

impl<'n> Turns<'n> {
    pub(super) fn of(notes: &'n Notes<'_>) -> Self {
        let of_peer = notes.events.iter().filter_map(|event| match event {
            Event::Ack(ack) if ack.len > 0 => Some(ack.len),
            _ => None,
        });
        let of_sender = notes.events.iter().filter_map(|event| match event {
            Event::Data(data) => Some(data.len),
            Event::Ack(_) => None,
        });
        let count = if notes.heard.is_empty() {
            let lengths = [of_peer.take(LOOKED_AT).collect(), of_sender.take(LOOKED_AT).collect()];
            Count::Usual(lengths.map(usual))
        } else {
            Count::Framing(&notes.heard)
        };
        Self {
            count,
            heard: 0,
            said: 0,
            before: 0,
            last_heard: None,
            anew: false,
            stretches: Vec::new(),
        }
    }

    /// Data of the peer has come.
    pub(super) fn on_heard(&mut self, ack: &AckNote) {
        self.before = self.heard;
        self.last_heard = Some(ack.time);
        match self.count {
            Count::Usual(usual) => self.heard += messages(ack.len, usual[0]),
            Count::Framing(ends) => self.heard = ended(ends, ack.frame),
        }
        self.anew |= self.heard < self.before;
    }

    /// New data is sent.
    pub(super) fn on_said(&mut self, data: &DataNote) {
        if let (Count::Framing(ends), None) = (self.count, self.last_heard) {
            // Notes begin with the sender's first segment.
            self.heard = ended(ends, data.frame);
        }
        let said = self.said_with(data);
        // What it answers, or what it said before, may be among what the capture lacks.
        let anew = said < self.said || data.hears_unseen || data.kind == Kind::Gap;
        self.said = said;
        let open = self.heard - said;
        match self.stretches.last_mut().filter(|_| !anew && !self.anew) {
            Some(stretch) => {
                stretch.segments += 1;
                stretch.last = open;
                stretch.least = stretch.least.min(open);
                stretch.most = stretch.most.max(open);
            }
            None => self.stretches.push(Stretch {
                frame: data.frame,
                segments: 1,
                first: open,
                last: open,
                least: open,
                most: open,
            }),
        }
        self.anew = false;
    }

    fn said_with(&self, data: &DataNote) -> i64 {
        match self.count {
            Count::Usual(usual) => self.said + messages(data.len, usual[1]),
            Count::Framing(_) => data.frames as i64,
        }
    }

    /// Unanswered messages once `data` has left too, had the last message of the peer been one alone; if that came
    /// at `ack`.
    pub(super) fn left_by(&self, data: &DataNote, ack: Option<Time>) -> Option<i64> {
        let its = ack.is_some() && self.last_heard == ack;
        its.then(|| self.before + 1 - self.said_with(data))
    }

    /// What is left unanswered where each request has one answer, from each frame on, in terms of [`Self::left_by`] (the
    /// notes may lack what came before the first answer): as much as when all was said, if messages of one length each way
    /// are as many; or as much after the first as after the last, or ever, if messages are counted exactly. Where counts
    /// began anew, the least since then. Lengths count nothing where the capture `lacks` segments.
    pub(super) fn settled(&self, notes: &Notes<'_>, lacks: bool) -> Vec<(u64, Option<i64>)> {
        let Count::Usual(usual) = self.count else {
            let least = |(at, one): (usize, &Stretch)| {
                // One that is behind throughout looks like one that never is.
                let varied = one.segments >= STRETCH_MIN && one.most > one.least;
                let shown = if at == 0 { one.first == one.least } else { varied };
                (one.frame, Some(one.least).filter(|_| shown))
            };
            return self.stretches.iter().enumerate().map(least).collect();
        };
        let ([one], false) = (&self.stretches[..], lacks) else { return Vec::new() };
        let count = |bytes: u64, usual: Option<u32>| {
            let usual = u64::from(usual?);
            bytes.is_multiple_of(usual).then(|| bytes / usual)
        };
        let all = count(notes.opposite.stream.bytes, usual[0]);
        if all.is_some() && all == count(notes.facts.stream.bytes, usual[1]) {
            let heard = notes.events.iter().map(|event| match event {
                Event::Ack(ack) if ack.len > 0 => messages(ack.len, usual[0]),
                _ => 0,
            });
            return vec![(one.frame, Some(heard.sum::<i64>() - self.said))];
        }
        let back = one.first == one.least && one.first == one.last;
        vec![(one.frame, Some(one.first).filter(|_| back))]
    }
}

/// Messages that were complete with a frame.
fn ended(ends: &[(u64, u64)], frame: u64) -> i64 {
    let at = ends.partition_point(|one| one.0 <= frame);
    at.checked_sub(1).map_or(0, |last| ends[last].1 as i64)
}

fn messages(len: u32, usual: Option<u32>) -> i64 {
    let several = usual.filter(|usual| len.is_multiple_of(*usual));
    several.map_or(1, |usual| i64::from(len / usual))
}

/// The length that half of the segments have or more.
fn usual(mut lengths: Vec<u32>) -> Option<u32> {
    lengths.sort_unstable();
    let middle = *lengths.get(lengths.len() / 2)?;
    let alike = lengths.iter().filter(|len| **len == middle).count();
    (alike * 2 >= lengths.len() && middle > 0).then_some(middle)
}

/// Fewer segments since counts began anew may all leave an answer owing.
const STRETCH_MIN: u32 = 8;
/// So many segments show their usual length.
const LOOKED_AT: usize = 1_024;

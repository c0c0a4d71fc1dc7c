//! How many messages of the peer the sender had not answered when it spoke.
//!
//! In a conversation of one answer to each request, a host that answers whatever comes is never behind. One
//! whose answer to an earlier request leaves with the next request's ACK is: that answer had waited.

use acklab_core::time::Time;

use crate::noted::Notes;
use crate::noted::event::{AckNote, DataNote, Event};

/// Counts messages both ways: segments, but that several of the usual length in one count as several.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The usual length of the peer's segments, and of the sender's.
    usual: [Option<u32>; 2],
    heard: i64,
    said: i64,
    /// Heard before the last message of the peer.
    before: i64,
    /// After the first and the last segment of the sender, and the least: heard less said.
    first: Option<i64>,
    last: i64,
    least: i64,
    last_heard: Option<Time>,
}

impl Turns {
    pub(super) fn of(notes: &Notes<'_>) -> Self {
        let of_peer = notes.events.iter().filter_map(|event| match event {
            Event::Ack(ack) if ack.len > 0 => Some(ack.len),
            _ => None,
        });
        let of_sender = notes.events.iter().filter_map(|event| match event {
            Event::Data(data) => Some(data.len),
            Event::Ack(_) => None,
        });
        let usual =
            [usual(of_peer.take(LOOKED_AT).collect()), usual(of_sender.take(LOOKED_AT).collect())];
        Self { usual, ..Self::default() }
    }

    /// Data of the peer has come.
    pub(super) fn on_heard(&mut self, ack: &AckNote) {
        self.before = self.heard;
        self.last_heard = Some(ack.time);
        self.heard += messages(ack.len, self.usual[0]);
    }

    /// New data is sent.
    pub(super) fn on_said(&mut self, data: &DataNote) {
        self.said += messages(data.len, self.usual[1]);
        self.last = self.heard - self.said;
        self.least = self.first.map_or(self.last, |_| self.least.min(self.last));
        self.first.get_or_insert(self.last);
    }

    /// Unanswered messages once `data` has left too, had the last message of the peer been one alone; if that came
    /// at `ack`.
    pub(super) fn left_by(&self, data: &DataNote, ack: Option<Time>) -> Option<i64> {
        let its = ack.is_some() && self.last_heard == ack;
        its.then(|| self.before + 1 - self.said - messages(data.len, self.usual[1]))
    }

    /// What is left unanswered where each request has one answer, in terms of [`Self::left_by`] (the notes may lack
    /// what came before the first answer): as much as when all was said, if messages of one length each way are as
    /// many; or as much after the first as after the last.
    pub(super) fn settled(&self, notes: &Notes<'_>) -> Option<i64> {
        let count = |bytes: u64, usual: Option<u32>| {
            let usual = u64::from(usual?);
            bytes.is_multiple_of(usual).then(|| bytes / usual)
        };
        let all = count(notes.opposite.stream.bytes, self.usual[0]);
        if all.is_some() && all == count(notes.facts.stream.bytes, self.usual[1]) {
            let heard = notes.events.iter().map(|event| match event {
                Event::Ack(ack) if ack.len > 0 => messages(ack.len, self.usual[0]),
                _ => 0,
            });
            return Some(heard.sum::<i64>() - self.said);
        }
        self.first.filter(|first| *first == self.last && *first == self.least)
    }
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

/// So many segments show their usual length.
const LOOKED_AT: usize = 1_024;

//! What one path has sent and not yet forgotten, by packet number, and which of it is lost
//! (RFC 9002 section 6.1).
//!
//! A record names the content of its packet, not its bytes: what was lost goes out again in a packet
//! with another number, on any path. A record that was declared lost stays for two probe time-outs, so
//! that a late acknowledgment is recognised and the thresholds learn from it.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use super::piece::{ControlFrame, Piece};
use acklab_core::delivery_rate::Stamp;
use acklab_core::time::{Span, Time};

/// One thing that a packet carried, whose fate its sender is to hear of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// Part of a stream or parcel.
    Piece(Piece),
    /// A control frame of streams, parcels or flow control.
    Control(ControlFrame),
    /// The request for an ACK frequency on a path.
    AckFrequency(u8),
    /// The status of a path.
    PathStatus(u8),
    /// The end of a path.
    RemovePath(u8),
    /// An address of this end.
    AddPath(u8),
}

/// The items of a packet; nearly always one.
#[derive(Debug, Default)]
pub(super) enum Items {
    #[default]
    None,
    One(Item),
    Many(Box<[Item]>),
}

impl Items {
    /// Takes over what was gathered while a packet was written.
    pub(super) fn gathered(items: &mut Vec<Item>) -> Self {
        match items.as_slice() {
            [] => Self::None,
            [item] => {
                let one = Self::One(*item);
                items.clear();
                one
            }
            _ => Self::Many(items.drain(..).collect()),
        }
    }

    pub(super) fn copied(&self) -> Self {
        match self {
            Self::None => Self::None,
            Self::One(item) => Self::One(*item),
            Self::Many(items) => Self::Many(items.clone()),
        }
    }

    pub(super) fn as_slice(&self) -> &[Item] {
        match self {
            Self::None => &[],
            Self::One(item) => std::slice::from_ref(item),
            Self::Many(items) => items,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Outstanding,
    Acknowledged,
    /// Declared lost, when.
    Lost(Time),
    /// The number was left out on purpose.
    Skipped,
}

/// One packet.
#[derive(Debug)]
pub(super) struct Sent {
    /// Departure.
    pub(super) at: Time,
    /// Datagram length, bytes.
    pub(super) bytes: u32,
    /// Asks for an acknowledgment; such packets are in flight.
    pub(super) eliciting: bool,
    /// Probes for a larger datagram: its loss says nothing about congestion.
    pub(super) probes_size: bool,
    /// It bears an ECN mark.
    marked: bool,
    /// When a copy of its content last left, and how many have.
    copied: Option<(Time, u8)>,
    /// For delivery-rate samples.
    stamp: Option<Stamp>,
    /// What it carried.
    items: Items,
    state: State,
}

impl Sent {
    pub(super) const fn new(
        at: Time,
        bytes: u32,
        eliciting: bool,
        stamp: Option<Stamp>,
        items: Items,
    ) -> Self {
        let state = State::Outstanding;
        let (probes_size, marked, copied) = (false, false, None);
        Self { at, bytes, eliciting, probes_size, marked, copied, stamp, items, state }
    }

    /// In flight: neither acknowledged nor lost.
    pub(super) fn is_outstanding(&self) -> bool {
        self.state == State::Outstanding
    }
}

/// What an ACK, or the passing of time, brought to light: the fate of items, and the sums of it.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Items newly known to have arrived.
    pub(super) arrived_items: Vec<Items>,
    /// Items that went with lost packets.
    pub(super) lost_items: Vec<Items>,
    tally: Tally,
}

/// The sums.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Bytes newly acknowledged, of packets in flight.
    pub(super) delivered: u64,
    /// Bytes newly lost, size probes aside.
    pub(super) lost: u64,
    pub(super) largest_lost: Option<u64>,
    /// The largest number newly acknowledged.
    pub(super) largest_acknowledged: Option<u64>,
    /// Packets newly acknowledged that bear an ECN mark.
    pub(super) marked: u64,
    /// Something newly acknowledged asked for it.
    pub(super) eliciting: bool,
    /// A size probe arrived.
    pub(super) size_arrived: Option<u32>,
    /// A size probe was lost.
    pub(super) size_lost: bool,
    /// Acknowledged after it had been declared lost, bytes.
    pub(super) spurious: u64,
    /// Departure of the packet `largest_acknowledged`.
    pub(super) sent_at: Option<Time>,
}

impl News {
    /// Empties it; the vectors keep their room.
    pub(super) fn clear(&mut self) {
        self.arrived_items.clear();
        self.lost_items.clear();
        self.tally = Tally::default();
    }

    /// The sums so far.
    pub(super) const fn tally(&self) -> Tally {
        self.tally
    }
}

/// An ACK names a number that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NeverSent;

/// RFC 9002 section 6.1.1: kPacketThreshold.
const PACKET_THRESHOLD: u64 = 3;
/// How far the threshold may rise (docs/rudp.md section 4).
const PACKET_THRESHOLD_MOST: u64 = 64;
/// Copies of any content at the end of a transfer, at most (docs/rudp.md section 4).
const COPIES: u8 = 4;
/// How long a raised threshold holds.
const RAISED_FOR: Span = Span::from_secs(10);
/// Records of one path, at most (docs/rudp.md section 7, "Memory").
pub(super) const RECORDS: usize = 32_768;

/// The packets of one path, oldest first.
#[derive(Debug)]
pub(super) struct SentPackets {
    /// Number of the first record.
    base: u64,
    records: VecDeque<Sent>,
    /// Bytes in flight.
    in_flight: u64,
    largest_acknowledged: Option<u64>,
    threshold: u64,
    raised_until: Time,
    /// When the oldest overtaken packet will count as lost.
    loss_at: Option<Time>,
    last_eliciting: Option<Time>,
}

impl Default for SentPackets {
    fn default() -> Self {
        Self {
            base: 0,
            records: VecDeque::new(),
            in_flight: 0,
            largest_acknowledged: None,
            threshold: PACKET_THRESHOLD,
            raised_until: Time::ZERO,
            loss_at: None,
            last_eliciting: None,
        }
    }
}

impl SentPackets {
    pub(super) fn next_number(&self) -> u64 {
        self.base + self.records.len() as u64
    }

    /// A packet with the next number leaves.
    pub(super) fn push(&mut self, sent: Sent) {
        if sent.eliciting {
            self.in_flight += u64::from(sent.bytes);
            self.last_eliciting = Some(sent.at);
        }
        self.records.push_back(sent);
    }

    /// The next number is left out: an acknowledgment of it is a lie.
    pub(super) fn skip(&mut self, now: Time) {
        let mut sent = Sent::new(now, 0, false, None, Items::None);
        sent.state = State::Skipped;
        self.records.push_back(sent);
    }

    /// The last packet bears an ECN mark.
    pub(super) fn mark_last(&mut self) {
        if let Some(last) = self.records.back_mut() {
            last.marked = true;
        }
    }

    pub(super) const fn largest_acknowledged(&self) -> Option<u64> {
        self.largest_acknowledged
    }

    /// Bytes on the way.
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Whether there is no room for another record.
    pub(super) fn is_full(&self) -> bool {
        self.records.len() >= RECORDS
    }

    /// When overtaken packets count as lost, if nothing else happens.
    pub(super) const fn loss_at(&self) -> Option<Time> {
        self.loss_at
    }

    /// The last departure of a packet that asks for an acknowledgment, while any such is outstanding.
    pub(super) fn last_eliciting(&self) -> Option<Time> {
        self.last_eliciting.filter(|_| self.in_flight > 0)
    }

    /// Departure of the oldest outstanding packet that asks for an acknowledgment.
    pub(super) fn oldest_outstanding(&self) -> Option<Time> {
        if self.in_flight == 0 {
            return None;
        }
        let waits = |sent: &&Sent| sent.eliciting && sent.is_outstanding();
        self.records.iter().find(waits).map(|sent| sent.at)
    }

    /// What outstanding packets carry, oldest first.
    pub(super) fn outstanding(&self) -> impl Iterator<Item = &Items> {
        let waits = |sent: &&Sent| sent.eliciting && sent.is_outstanding();
        self.records.iter().filter(waits).map(|sent| &sent.items)
    }

    /// Whether a datagram longer than `bytes` is outstanding that was not to find out whether it passes.
    pub(super) fn has_larger(&self, bytes: u32) -> bool {
        let larger = |sent: &Sent| sent.bytes > bytes && !sent.probes_size && sent.is_outstanding();
        self.records.iter().any(larger)
    }

    /// Of the packets whose items `fit`, the number of the one that left longest ago, and when: it or its
    /// last copy, at least `pause` ago and not too often; without a `pause` any that left before `now`.
    pub(super) fn ripest(
        &self,
        now: Time,
        pause: Option<Span>,
        fit: impl Fn(&Items) -> bool,
    ) -> Option<(Time, u64)> {
        let mut best: Option<(Time, u64)> = None;
        for (record, number) in self.records.iter().zip(self.base..) {
            if !(record.eliciting && record.is_outstanding()) {
                continue;
            }
            let (left, copies) = record.copied.unwrap_or((record.at, 0));
            let ripe = pause.is_none_or(|pause| copies < COPIES && now.since(left) >= pause);
            let older = best.is_none_or(|(oldest, _)| left < oldest);
            if ripe && older && left < now && fit(&record.items) {
                best = Some((left, number));
            }
        }
        best
    }

    /// A copy of that packet's items leaves.
    pub(super) fn copy(&mut self, now: Time, number: u64) -> Items {
        let record = &mut self.records[(number - self.base) as usize];
        let copies = record.copied.map_or(0, |(_, copies)| copies);
        record.copied = Some((now, copies.saturating_add(1)));
        record.items.copied()
    }

    /// An ACK frame: ranges of numbers that arrived, downwards.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ranges: impl Iterator<Item = RangeInclusive<u64>>,
        rate: &mut impl FnMut(Stamp),
        news: &mut News,
    ) -> Result<(), NeverSent> {
        let mut first = true;
        for range in ranges {
            if *range.end() >= self.next_number() {
                return Err(NeverSent);
            }
            if first {
                first = false;
                let largest = self.largest_acknowledged.get_or_insert(*range.end());
                *largest = (*largest).max(*range.end());
            }
            let end = range.end().saturating_add(1).saturating_sub(self.base) as usize;
            let start = range.start().saturating_sub(self.base) as usize;
            for index in (start..end).rev() {
                self.acknowledge(now, index, rate, news)?;
            }
        }
        Ok(())
    }

    fn acknowledge(
        &mut self,
        now: Time,
        index: usize,
        rate: &mut impl FnMut(Stamp),
        news: &mut News,
    ) -> Result<(), NeverSent> {
        let number = self.base + index as u64;
        let record = &mut self.records[index];
        match record.state {
            State::Skipped => return Err(NeverSent),
            State::Acknowledged => return Ok(()),
            State::Lost(_) => {
                news.tally.spurious += u64::from(record.bytes);
                let distance = self.largest_acknowledged.map_or(0, |largest| largest - number);
                let raised = (distance + 1).min(PACKET_THRESHOLD_MOST);
                self.threshold = self.threshold.max(raised);
                self.raised_until = now + RAISED_FOR;
            }
            State::Outstanding if record.eliciting => self.in_flight -= u64::from(record.bytes),
            State::Outstanding => {}
        }
        record.state = State::Acknowledged;
        if record.eliciting {
            news.tally.delivered += u64::from(record.bytes);
            record.stamp.into_iter().for_each(rate);
        }
        news.tally.eliciting |= record.eliciting;
        news.tally.marked += u64::from(record.marked);
        if record.probes_size {
            news.tally.size_arrived = Some(record.bytes);
        }
        if news.tally.largest_acknowledged.is_none_or(|largest| number > largest) {
            news.tally.largest_acknowledged = Some(number);
            news.tally.sent_at = Some(record.at);
        }
        news.arrived_items.push(std::mem::take(&mut record.items));
        Ok(())
    }

    /// Declares lost what later numbers have overtaken by too much; `loss_delay` is a function of the
    /// eighths of a round trip that are allowed. `by_time`: nothing else counts, as RFC 9331 section 4.3 wants it of the L4S
    /// service.
    pub(super) fn detect_losses(
        &mut self,
        now: Time,
        loss_delay: impl Fn(u64) -> Span,
        by_time: bool,
        news: &mut News,
    ) {
        if now > self.raised_until {
            self.threshold = PACKET_THRESHOLD;
        }
        self.loss_at = None;
        let Some(largest) = self.largest_acknowledged else { return };
        let delay = loss_delay(if self.threshold > PACKET_THRESHOLD { 10 } else { 9 });
        let threshold = if by_time { u64::MAX } else { self.threshold };
        let end = largest.saturating_sub(self.base).min(self.records.len() as u64) as usize;
        for index in 0..end {
            let number = self.base + index as u64;
            let record = &self.records[index];
            if !record.is_outstanding() {
                continue;
            }
            if largest - number >= threshold || now.since(record.at) >= delay {
                self.lose(now, index, news);
            } else {
                // Later ones left later.
                self.loss_at = Some(record.at + delay);
                break;
            }
        }
    }

    fn lose(&mut self, now: Time, index: usize, news: &mut News) {
        let number = self.base + index as u64;
        let record = &mut self.records[index];
        record.state = State::Lost(now);
        if record.eliciting {
            self.in_flight -= u64::from(record.bytes);
            if record.probes_size {
                news.tally.size_lost = true;
            } else {
                news.tally.lost += u64::from(record.bytes);
                news.tally.largest_lost = news.tally.largest_lost.max(Some(number));
            }
        }
        // The record keeps a copy for a late acknowledgment.
        news.lost_items.push(record.items.copied());
    }

    /// The path is dead: all that is outstanding is lost.
    pub(super) fn lose_all(&mut self, now: Time, news: &mut News) {
        for index in 0..self.records.len() {
            if self.records[index].is_outstanding() {
                self.lose(now, index, news);
            }
        }
        self.loss_at = None;
    }

    /// Drops the oldest records as far as nothing is to be heard of them any more: acknowledged ones, and after `keep` lost ones and
    /// those that asked for nothing. (On a path that carries ACKs alone no ACK ever comes.)
    pub(super) fn forget(&mut self, now: Time, keep: Span) {
        while let Some(first) = self.records.front() {
            let done = match first.state {
                State::Outstanding => !first.eliciting && now.since(first.at) > keep,
                State::Acknowledged => true,
                State::Skipped => {
                    let passed = self.largest_acknowledged.is_some_and(|top| top > self.base);
                    passed || now.since(first.at) > keep
                }
                State::Lost(at) => now.since(at) > keep || self.records.len() > RECORDS / 2,
            };
            if !done {
                break;
            }
            self.records.pop_front();
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Span = Span::from_millis(100);

    /// A path that carries ACKs alone is never acknowledged: the peer owes no answer to them.
    #[test]
    fn packets_that_ask_for_nothing_are_forgotten_where_nothing_is_acknowledged() {
        let mut sent = SentPackets::default();
        sent.push(Sent::new(Time::ZERO, 1200, true, None, Items::None));
        sent.lose_all(Time::ZERO, &mut News::default());
        for ms in 0..100_000 {
            let now = Time::ZERO + Span::from_millis(ms);
            if ms % 1000 == 7 {
                sent.skip(now);
            }
            sent.push(Sent::new(now, 60, false, None, Items::None));
            sent.forget(now, KEEP);
            assert!(sent.records.len() <= 103, "{} records after {ms} ms", sent.records.len());
        }
    }

    #[test]
    fn what_asks_for_an_answer_is_kept_until_it_has_one() {
        let mut sent = SentPackets::default();
        sent.push(Sent::new(Time::ZERO, 1200, true, None, Items::None));
        for ms in 1..1000 {
            let now = Time::ZERO + Span::from_millis(ms);
            sent.push(Sent::new(now, 60, false, None, Items::None));
            sent.forget(now, KEEP);
        }
        assert_eq!((sent.records.len(), sent.in_flight()), (1000, 1200));
        let now = Time::ZERO + Span::from_millis(1000);
        let acked = sent.on_ack(now, [0..=999].into_iter(), &mut |_| {}, &mut News::default());
        assert_eq!(acked, Ok(()));
        sent.forget(now, KEEP);
        assert_eq!((sent.records.len(), sent.in_flight()), (0, 0));
    }
}

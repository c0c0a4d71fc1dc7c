//! Round-trip times from the middle of the path.
//!
//! A capture point splits the path in two: towards the receiver (data out, ACK back) and towards
//! the sender (ACK out, the data that it clocks back). The round-trip time is the sum. Each half's
//! least comes from the handshake (SYN to SYN-ACK, SYN-ACK to ACK), from data and its ACK, and, for
//! the sender's half, from timestamps (RFC 7323) that return on full segments, which were ready
//! before the ACK came, or from the other direction's data.
//!
//! A delayed ACK is no measure of the path. So the quantiles are taken on ACKs that cover two full
//! segments or more, which no timer held (RFC 5681 section 4.2); where those are too few, on ACKs
//! close behind the fastest, sooner than any system's timer. They are taken on the half that is
//! longer, if it has samples, for the shorter one is little more than a host's own time; and the
//! least of the other half is added.
//!
//! The ACK delay is the receiver's wait alone: for an ACK that covers two full segments, from the
//! oldest of them to the newest, as both came by; else from the oldest to the ACK, less the least
//! time to the receiver and back that was known by then.

use std::collections::VecDeque;

use acklab_core::quantiles::Quantiles;
use acklab_core::time::{Span, Time};

use super::facts::{Rtt, RttBasis};
use super::observe::AckSeen;
use crate::segment::{Segment, Timestamp};

/// The least of many times. A time far below the handshake counts if several are: where a capture has two packets swapped, an
/// ACK stands right behind what it does not answer.
#[derive(Debug, Default)]
struct Least {
    /// Of those below half the handshake, and how many they are.
    soon: Option<Span>,
    soon_count: u64,
    /// Of the others.
    rest: Option<Span>,
    count: u64,
}

impl Least {
    #[inline]
    fn record(&mut self, time: Span, handshake: Option<Span>) {
        self.count += 1;
        let soon = handshake.is_some_and(|handshake| time < handshake / 2);
        self.soon_count += u64::from(soon);
        let least = if soon { &mut self.soon } else { &mut self.rest };
        *least = Some(least.map_or(time, |least| least.min(time)));
    }

    fn get(&self) -> Option<Span> {
        let several = self.soon_count >= SOON_MIN && self.soon_count * SOON_PART >= self.count;
        self.soon.filter(|_| several).or(self.rest)
    }
}

/// What a direction's ACKs tell.
#[derive(Debug, Default)]
pub(super) struct AckTimes {
    /// From what opened the connection to its answer; where it was sent again, by its first copy and by its last.
    handshake: Option<[Span; 2]>,
    answered_again: bool,
    least: Least,
    /// Newest data to ACK, where the ACK covers two full segments.
    forced: Quantiles,
    /// The same where it covers less.
    lone: Quantiles,
    /// How long the receiver waited before it sent a pure ACK.
    pub(super) ack_delay: Quantiles,
}

/// The least times from the capture point to either end and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halves {
    pub(super) to_receiver: Option<Span>,
    pub(super) to_sender: Option<Span>,
}

impl AckTimes {
    /// The receiver's half, by the handshake, whose first copy was sent so long ago, and whose last.
    pub(super) fn on_handshake(&mut self, since: [Span; 2]) {
        self.handshake.get_or_insert(since);
    }

    /// The answer came again although it had been acknowledged: so both copies had arrived.
    pub(super) fn on_answered_again(&mut self) {
        self.answered_again = true;
    }

    /// Which copy was answered is open (Karn). The first, if both came through, or if no ACK of data was faster either: the
    /// path is longer than the timer of the handshake. Else it was lost.
    fn by_handshake(&self, measured: Option<Span>) -> Option<Span> {
        let [first, last] = self.handshake?;
        let apart = first.saturating_sub(last);
        if apart == Span::ZERO || self.answered_again {
            return Some(first);
        }
        let fastest = measured.filter(|_| apart >= SENT_AGAIN_MIN)?;
        Some(if first <= fastest + fastest / 16 { first } else { last })
    }

    #[inline]
    pub(super) fn on_ack(&mut self, seen: &AckSeen, mss: u32) {
        let (Some(newest), Some(oldest)) = (seen.newest_age, seen.oldest_age) else { return };
        self.least.record(newest, self.shortest_handshake());
        let forced = seen.newly_acked >= 2 * u64::from(mss);
        if forced { &mut self.forced } else { &mut self.lone }.record(newest);
        if seen.pure {
            let path = if forced { newest } else { self.to_receiver_min().unwrap_or(newest) };
            self.ack_delay.record(oldest.saturating_sub(path));
        }
    }

    /// The least time from the capture point to the receiver and back.
    pub(super) fn to_receiver_min(&self) -> Option<Span> {
        let measured = self.least.get();
        measured.into_iter().chain(self.by_handshake(measured)).min()
    }

    /// From the last copy of what opened the connection.
    fn shortest_handshake(&self) -> Option<Span> {
        self.handshake.map(|[_, last]| last)
    }

    /// The same, where the handshake was seen and it is no ACK's delay.
    pub(super) fn to_receiver_by_handshake(&self) -> Option<Span> {
        self.handshake.and_then(|_| self.to_receiver_min())
    }

    /// What tells most of the receiver's half, whose least is known.
    fn receiver_half(&self, least: Span) -> Half<'_> {
        if self.forced.count() >= SAMPLES_MIN {
            return Half::new(RttBasis::ForcedAcks, least, &self.forced, Span::MAX);
        }
        let behind = (least / 2).clamp(PROMPT_WITHIN_MIN, PROMPT_WITHIN_MAX);
        Half::new(RttBasis::PromptAcks, least, &self.lone, least + behind)
    }

    /// The round-trip time; `echoes` and the data of `opposite` tell of the sender's half.
    pub(super) fn rtt(&self, halves: Halves, echoes: &EchoClock, opposite: &Self) -> Option<Rtt> {
        let to_receiver = halves.to_receiver?;
        let to_sender = halves.to_sender.unwrap_or(Span::ZERO);
        let receiver_half = self.receiver_half(to_receiver);
        let sender_half = if echoes.full.count() >= SAMPLES_MIN {
            Half::new(RttBasis::TimestampEchoes, to_sender, &echoes.full, Span::MAX)
        } else {
            opposite.receiver_half(to_sender)
        };
        let (longer, shorter) = if to_sender > to_receiver {
            (sender_half, receiver_half)
        } else {
            (receiver_half, sender_half)
        };
        let min = to_receiver + to_sender;
        let measured = if longer.samples > 0 { &longer } else { &shorter };
        let other = min.saturating_sub(measured.least);
        let quantile = |q| match measured.samples {
            0 => min,
            // What is too soon to be the least is in the samples, too.
            _ => measured.times.quantile_up_to(q, measured.limit).max(measured.least) + other,
        };
        Some(Rtt {
            min,
            p50: quantile(0.5),
            p95: quantile(0.95),
            max: quantile(1.0),
            samples: measured.samples,
            basis: if measured.samples == 0 { RttBasis::Handshake } else { measured.basis },
            to_receiver_min: halves.to_receiver,
            to_sender_min: halves.to_sender,
        })
    }
}

/// One half of the path: its least time, and the samples up to a limit that tell its distribution.
struct Half<'a> {
    basis: RttBasis,
    least: Span,
    times: &'a Quantiles,
    limit: Span,
    samples: u64,
}

impl<'a> Half<'a> {
    fn new(basis: RttBasis, least: Span, times: &'a Quantiles, limit: Span) -> Self {
        Self { basis, least, times, limit, samples: times.count_up_to(limit) }
    }
}

/// Times the sender's half of the path by timestamp values of the receiver that come back.
#[derive(Debug, Default)]
pub(super) struct EchoClock {
    /// The last value that went by, towards the sender.
    newest: Option<u32>,
    /// Values on their way, oldest first, each when it went by first.
    pending: VecDeque<(u32, Time)>,
    least: Least,
    full: Quantiles,
}

impl EchoClock {
    /// A packet of the receiver carries a timestamp value towards the sender.
    #[inline]
    pub(super) fn on_value(&mut self, segment: &Segment<'_>) {
        let Some(Timestamp { value, .. }) = segment.options.timestamp else { return };
        if self.newest.is_some_and(|newest| value.wrapping_sub(newest) as i32 <= 0) {
            return;
        }
        self.newest = Some(value);
        if self.pending.len() < PENDING_MAX {
            self.pending.push_back((value, segment.time));
        }
    }

    /// A packet of the sender may echo it; `full` if it carries a full segment of new data. `opposite` times what is sent
    /// to the sender.
    #[inline]
    pub(super) fn on_echo(&mut self, segment: &Segment<'_>, full: bool, opposite: &AckTimes) {
        let Some(Timestamp { echo, .. }) = segment.options.timestamp else { return };
        let mut sent = None;
        while let Some(&(value, time)) = self.pending.front() {
            if (echo.wrapping_sub(value) as i32) < 0 {
                break;
            }
            sent = Some(time);
            self.pending.pop_front();
        }
        let Some(half) = sent.map(|sent| segment.time.since(sent)) else { return };
        self.least.record(half, opposite.shortest_handshake());
        if full {
            self.full.record(half);
        }
    }

    /// The least time from the capture point to the sender and back.
    pub(super) fn min(&self) -> Option<Span> {
        self.least.get()
    }
}

/// So many times, and one in so many of all, are no accident.
const SOON_MIN: u64 = 3;
const SOON_PART: u64 = 20;
/// Values timed at once; a clock of 1 ms on a longer path is sampled.
const PENDING_MAX: usize = 32;
/// No host sends a SYN again sooner; such copies are the capture's.
pub(super) const SENT_AGAIN_MIN: Span = Span::from_millis(200);
/// Quantiles of fewer samples say little.
const SAMPLES_MIN: u64 = 8;
/// An ACK is prompt that comes within half the least time again, but at least and at most so much:
/// shorter than Linux's 40 ms, Windows's 40 to 50 ms and most of a 100 ms tick.
const PROMPT_WITHIN_MIN: Span = Span::from_millis(1);
const PROMPT_WITHIN_MAX: Span = Span::from_millis(10);

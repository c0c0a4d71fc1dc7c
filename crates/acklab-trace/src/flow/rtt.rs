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
//! within 10 ms of the fastest (no system's timer is shorter). They are taken on the half that is
//! longer, and the least of the other is added.

use acklab_core::time::{Span, Time};

use super::facts::{Rtt, RttBasis};
use super::observe::AckSeen;
use crate::quantiles::Distribution;
use crate::segment::Segment;

/// What a direction's ACKs tell.
#[derive(Debug, Default)]
pub(super) struct Measured {
    handshake: Option<Span>,
    /// Newest data to ACK, where the ACK covers two full segments.
    forced: Distribution,
    /// The same where it covers less.
    lone: Distribution,
    /// Oldest data to pure ACK.
    pub(super) ack_delay: Distribution,
}

/// The least times from the capture point to either end and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halves {
    pub(super) to_receiver: Option<Span>,
    pub(super) to_sender: Option<Span>,
}

impl Measured {
    /// The receiver's half, by the handshake.
    pub(super) fn on_handshake(&mut self, half: Span) {
        self.handshake = Some(self.handshake.map_or(half, |known| known.min(half)));
    }

    #[inline]
    pub(super) fn on_ack(&mut self, seen: &AckSeen, mss: u32) {
        if let Some(age) = seen.newest_age {
            if seen.newly_acked >= 2 * u64::from(mss) {
                self.forced.add(age);
            } else {
                self.lone.add(age);
            }
        }
        if let (true, Some(age)) = (seen.pure, seen.oldest_age) {
            self.ack_delay.add(age);
        }
    }

    /// The least time from the capture point to the receiver and back.
    pub(super) fn to_receiver_min(&self) -> Option<Span> {
        let measured = self.forced.min().into_iter().chain(self.lone.min());
        measured.chain(self.handshake).min()
    }

    /// The round-trip time; `echoes` are the sender's side of the path.
    pub(super) fn rtt(&self, halves: Halves, echoes: &EchoClock) -> Option<Rtt> {
        let to_receiver = halves.to_receiver?;
        let to_sender = halves.to_sender.unwrap_or(Span::ZERO);
        let prompt = to_receiver + PROMPT_WITHIN;
        let sender_side = echoes.full.count() >= SAMPLES_MIN && to_sender > to_receiver;
        let (basis, distribution, limit, other) = if sender_side {
            (RttBasis::TimestampEchoes, &echoes.full, Span::MAX, to_receiver)
        } else if self.forced.count() >= SAMPLES_MIN {
            (RttBasis::ForcedAcks, &self.forced, Span::MAX, to_sender)
        } else {
            (RttBasis::PromptAcks, &self.lone, prompt, to_sender)
        };
        let quantile = |q| distribution.quantile_up_to(q, limit).map(|half| half + other);
        let min = to_receiver + to_sender;
        let samples = distribution.count_up_to(limit);
        Some(Rtt {
            min,
            p50: quantile(0.5).unwrap_or(min),
            p95: quantile(0.95).unwrap_or(min),
            max: quantile(1.0).unwrap_or(min),
            samples,
            basis: if samples == 0 { RttBasis::Handshake } else { basis },
            to_receiver_min: halves.to_receiver,
            to_sender_min: halves.to_sender,
        })
    }
}

/// Times the sender's half of the path by a timestamp value of the receiver that comes back.
#[derive(Debug, Default)]
pub(super) struct EchoClock {
    /// The last value that went by, towards the sender.
    newest: Option<u32>,
    pending: Option<(u32, Time)>,
    min: Option<Span>,
    full: Distribution,
}

impl EchoClock {
    /// A packet of the receiver carries a timestamp value towards the sender.
    #[inline]
    pub(super) fn on_value(&mut self, segment: &Segment<'_>) {
        let Some((value, _)) = segment.options.timestamp else { return };
        if self.newest.is_some_and(|newest| value.wrapping_sub(newest) as i32 <= 0) {
            return;
        }
        self.newest = Some(value);
        self.pending.get_or_insert((value, segment.time));
    }

    /// A packet of the sender may echo it; `full` if it carries a full segment of new data.
    #[inline]
    pub(super) fn on_echo(&mut self, segment: &Segment<'_>, full: bool) {
        let (Some((_, echo)), Some((value, time))) = (segment.options.timestamp, self.pending)
        else {
            return;
        };
        if (echo.wrapping_sub(value) as i32) < 0 {
            return;
        }
        self.pending = None;
        let half = segment.time.since(time);
        self.min = Some(self.min.map_or(half, |min| min.min(half)));
        if full {
            self.full.add(half);
        }
    }

    /// The least time from the capture point to the sender and back.
    pub(super) fn min(&self) -> Option<Span> {
        self.min
    }
}

/// Quantiles of fewer samples say little.
const SAMPLES_MIN: u64 = 8;
/// Shorter than any delayed-ACK timer: QNX's and macOS's bursts, Linux's 40 ms, Windows's 10 ms tick.
const PROMPT_WITHIN: Span = Span::from_millis(10);

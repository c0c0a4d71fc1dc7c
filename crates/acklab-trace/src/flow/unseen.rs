//! The packets of a peer that a capture lacks altogether, by the timestamps that come back.
//!
//! Where one direction was captured, each packet still echoes the peer's clock (RFC 7323 section 4.3): a
//! new echo shows that the peer sent something, and when, to a millisecond of its clock; the
//! acknowledgment number shows what. The echo that came back soonest ties that clock to the capture's. So
//! the peer's packets are put back where they must have passed, a pure ACK where nothing was
//! acknowledged, and data where something was; those that left no echo stay unknown.

use std::collections::VecDeque;

use acklab_core::time::{Span, Time};

use crate::segment::{Endpoint, Flags, SeenOptions, Segment};

/// What shows of the peer's packets.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// Who was seen; nothing is inferred once both were.
    from: Option<Endpoint>,
    both: bool,
    packets: u32,
    echo: Option<u32>,
    ack: Option<u32>,
    /// Capture time less the peer's clock, at least, ns.
    offset: i64,
    /// When the clock was first read, and how it stood.
    origin: Option<(Time, u32)>,
    /// The handshake's round trip.
    round_trip: Span,
    syn: Option<Time>,
    /// Ends of the segments that may not be acknowledged yet, each with its time.
    sent: VecDeque<(Time, u32)>,
    acked: u32,
    last: Time,
}

impl Unseen {
    /// Takes the next packet that was captured; gives back one of the peer that it shows.
    #[inline]
    pub(super) fn shown_by(&mut self, segment: &Segment<'_>) -> Option<Segment<'static>> {
        if self.both {
            return None;
        }
        if self.from.is_some_and(|from| from != segment.src) {
            self.both = true;
            self.sent = VecDeque::new();
            return None;
        }
        self.from = Some(segment.src);
        self.packets += 1;
        let shown = self.peer_packet(segment);
        let fin_or_syn = u32::from(segment.flags.has(Flags::FIN) || segment.flags.has(Flags::SYN));
        if segment.payload_len + fin_or_syn > 0 && self.sent.len() < SENT_MAX {
            let end = segment.seq.wrapping_add(segment.payload_len + fin_or_syn);
            self.sent.push_back((segment.time, end));
        }
        shown
    }

    fn peer_packet(&mut self, segment: &Segment<'_>) -> Option<Segment<'static>> {
        let (time, flags) = (segment.time, segment.flags);
        if flags.has(Flags::SYN) {
            self.syn = Some(time);
            self.acked = segment.seq;
        }
        let echo = segment.options.timestamp?.echo;
        if !flags.has(Flags::ACK) || echo == 0 {
            return None;
        }
        let tick = i64::from(echo) * TICK;
        let offset = time.as_nanos() as i64 - tick;
        let first = self.echo.is_none();
        self.offset = if first { offset } else { self.offset.min(offset) };
        let (since, then) = *self.origin.get_or_insert((time, echo));
        if !keeps_milliseconds(time.since(since), echo.wrapping_sub(then)) {
            self.both = true;
            return None;
        }
        let ack = self.ack.replace(segment.ack).unwrap_or(segment.ack);
        let brought = segment.ack.wrapping_sub(ack);
        let new = self.echo.replace(echo) != Some(echo);
        let answers_syn = first && !flags.has(Flags::SYN) && self.syn.is_some();
        if answers_syn {
            self.round_trip = self.syn.map_or(Span::ZERO, |syn| time.since(syn));
        }
        let is_enough = answers_syn || self.packets >= PACKETS_MIN;
        if !(new || brought > 0) || brought > BROUGHT_MAX || !is_enough {
            return None;
        }
        let passed = Time::from_nanos((tick + self.offset).max(0) as u64);
        let passed = passed.max(self.last).min(time);
        self.last = passed;
        self.acknowledge(passed);
        Some(Segment {
            frame: 0,
            time: passed,
            src: segment.dst,
            dst: segment.src,
            seq: if answers_syn { segment.ack.wrapping_sub(1) } else { ack },
            ack: self.acked,
            flags: if answers_syn { Flags::SYN.with(Flags::ACK) } else { Flags::ACK },
            window: u16::MAX,
            // What it offered is not known.
            options: SeenOptions { cut: true, ..SeenOptions::default() },
            payload_len: if answers_syn { 0 } else { brought },
            payload: &[],
            ttl: NOT_SEEN,
            ip_id: 0,
        })
    }

    /// What the peer had when it sent what passed then.
    fn acknowledge(&mut self, passed: Time) {
        let limit = self.round_trip.saturating_sub(self.round_trip / 16);
        while self.sent.front().is_some_and(|sent| sent.0 + limit <= passed) {
            self.acked = self.sent.pop_front().map_or(self.acked, |sent| sent.1);
        }
    }
}

/// Whether a clock that went so far in that time ticks each millisecond.
fn keeps_milliseconds(time: Span, ticks: u32) -> bool {
    let (time_ms, ticks) = (time.as_millis_f64(), f64::from(ticks));
    time_ms < SURE_AFTER_MS || (0.8..1.2).contains(&(ticks / time_ms))
}

/// The time to live of no packet: that of one which was not seen.
pub(super) const NOT_SEEN: u8 = 0;
/// A tick of the usual clock, ns.
const TICK: i64 = 1_000_000;
/// Earlier it is not known how fast the clock ticks.
const SURE_AFTER_MS: f64 = 2_000.0;
/// So many packets in a row of one host, and the capture lacks the other.
const PACKETS_MIN: u32 = 4;
/// More at once was no packet.
const BROUGHT_MAX: u32 = 65_535;
/// More unacknowledged segments are not followed.
const SENT_MAX: usize = 1_024;

//! One direction: its stream, what is counts and ack_times of it, and its observer.

use acklab_core::time::{Span, Time};

use super::facts::{AckDelay, DirectionFacts, OVERDUE, PacketCounts, Vantage, WindowRange};
use super::observe::{AckSeen, DataKind, DataSeen, DirectionObserver, LiveObserver};
use super::rtt::{AckTimes, EchoClock, Halves};
use super::stream::{Placed, Stream};
use super::unseen::NOT_SEEN;
use super::vantage::End;
use crate::segment::{Endpoint, Flags, Segment};

/// One direction with everything that belongs to it.
pub(super) struct Direction<O> {
    pub(super) from: Endpoint,
    to: Endpoint,
    pub(super) stream: Stream,
    counts: PacketCounts,
    /// Time of the first segment with data.
    first: Option<Time>,
    pub(super) ack_times: AckTimes,
    echo: EchoClock,
    /// What `to` advertises.
    pub(super) window: Window,
    /// The lowest of `from`'s packets.
    ttl: Option<u8>,
    /// The last packet that `from` sent, to know one captured twice.
    last_packet: PacketIdentity,
    /// It bore the next identification after the one before.
    follows: bool,
    pub(super) observer: O,
}

/// The receiver's window as last advertised.
#[derive(Default)]
pub(super) struct Window {
    raw: u16,
    /// The shift to apply; unknown where the handshake was not captured.
    pub(super) scale: Option<u8>,
    /// The position it ends at.
    edge: Option<u64>,
    range: Option<WindowRange>,
}

/// What a packet captured twice has in common with itself.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct PacketIdentity {
    ip_id: u16,
    flags: u8,
    window: u16,
    seq: u32,
    ack: u32,
    len: u32,
}

impl<O: DirectionObserver> Direction<O> {
    pub(super) fn open(from: Endpoint, to: Endpoint) -> Self {
        Self {
            from,
            to,
            stream: Stream::default(),
            counts: PacketCounts::default(),
            first: None,
            ack_times: AckTimes::default(),
            echo: EchoClock::default(),
            window: Window::default(),
            ttl: None,
            last_packet: PacketIdentity::default(),
            follows: false,
            observer: O::open(from, to),
        }
    }

    /// The observer, and a fresh one in its place.
    pub(super) fn take_observer(&mut self) -> O {
        std::mem::replace(&mut self.observer, O::open(self.from, self.to))
    }

    /// A packet of `from` has that time to live.
    pub(super) fn note_ttl(&mut self, ttl: u8) {
        self.ttl = Some(self.ttl.map_or(ttl, |least| least.min(ttl)));
    }

    /// `from`, so far away.
    pub(super) fn end(&self, half: Option<Span>) -> End {
        End { addr: self.from.addr, half, ttl: self.ttl }
    }

    /// Whether a packet of `from` without payload is the one before, captured again; it is counts
    /// then. (With payload, the stream knows.)
    pub(super) fn is_captured_twice(&mut self, segment: &Segment<'_>) -> bool {
        let identity = PacketIdentity {
            ip_id: segment.ip_id,
            flags: segment.flags.0,
            window: segment.window,
            seq: segment.seq,
            ack: segment.ack,
            len: segment.payload_len,
        };
        let twice = segment.ip_id != 0 && segment.payload_len == 0 && identity == self.last_packet;
        let next = self.last_packet.ip_id.wrapping_add(1);
        self.follows = next == segment.ip_id && segment.ip_id != 0;
        self.last_packet = identity;
        self.counts.duplicates += u64::from(twice);
        twice
    }

    /// Takes the acknowledgment in a packet of `to`.
    pub(super) fn on_ack(&mut self, segment: &Segment<'_>, pure: bool) {
        let in_flight_before = self.stream.in_flight();
        let Some(placed) = self.stream.on_ack(segment.ack, segment.time) else { return };
        let syn = segment.flags.has(Flags::SYN);
        let same_window = self.window.raw == segment.window;
        let window = self.on_window(segment, syn, placed.stale);
        self.echo.on_value(segment);
        if syn {
            return;
        }
        let repeated = pure && placed.newly_acked == 0 && !placed.stale && in_flight_before > 0;
        let duplicate = (repeated && same_window) || segment.options.sack_blocks > 0;
        let seen = AckSeen {
            frame: segment.frame,
            time: segment.time,
            acked_to: placed.acked_to,
            newly_acked: placed.newly_acked,
            newly_acked_segments: placed.acked.segments,
            pure,
            payload_len: segment.payload_len,
            duplicate,
            sacks: segment.options.sack_blocks > 0,
            window,
            oldest_age: placed.acked.age_of_oldest(segment.time),
            newest_age: placed.acked.age_of_newest(segment.time),
            in_flight: placed.in_flight,
        };
        self.count_ack(segment, &seen);
        self.ack_times.on_ack(&seen, self.stream.mss().bytes());
        self.observer.on_ack(&seen);
    }

    fn count_ack(&mut self, segment: &Segment<'_>, seen: &AckSeen) {
        let counts = &mut self.counts;
        counts.inferred += u64::from(segment.ttl == NOT_SEEN);
        counts.pure_acks += u64::from(seen.pure);
        counts.acks_on_data += u64::from(!seen.pure && seen.newly_acked > 0);
        let latest = OVERDUE + self.ack_times.to_receiver_min().unwrap_or(Span::ZERO);
        let overdue = seen.oldest_age.is_some_and(|age| age > latest);
        counts.overdue_acks += u64::from(!seen.pure && overdue);
        counts.duplicate_acks += u64::from(seen.duplicate);
        counts.sack_acks += u64::from(segment.options.sack_blocks > 0);
        counts.zero_windows += u64::from(segment.window == 0);
    }

    /// Takes the advertised window; a SYN's is never scaled (RFC 7323 section 2.2).
    fn on_window(&mut self, segment: &Segment<'_>, syn: bool, late: bool) -> Option<u64> {
        let scale = if syn { Some(0) } else { self.window.scale };
        let window = scale.map(|scale| u64::from(segment.window) << scale);
        if !late {
            self.window.raw = segment.window;
            self.window.edge = window.map(|window| self.stream.edge(segment.ack, window));
        }
        if !syn {
            let bytes = window.unwrap_or(u64::from(segment.window));
            let range = self.window.range.get_or_insert(WindowRange { min: bytes, max: bytes });
            *range = WindowRange { min: range.min.min(bytes), max: range.max.max(bytes) };
        }
        window
    }

    /// Takes a packet of `from` with payload or FIN, or a probe. `opposite` may know the least time
    /// from the capture point to `from` and back; `hears_unseen` tells that it acknowledges what the capture
    /// does not hold.
    pub(super) fn on_data(
        &mut self,
        segment: &Segment<'_>,
        opposite: &AckTimes,
        hears_unseen: bool,
    ) {
        let rtt_min = self.rtt_min(opposite.to_receiver_min());
        let Some(placed) = self.stream.on_data(segment, self.window.edge, rtt_min) else { return };
        self.count_data(segment, &placed);
        let mss = self.stream.mss().bytes();
        let fresh = matches!(placed.kind, DataKind::New | DataKind::NewAfterGap);
        self.echo.on_echo(segment, fresh && segment.payload_len >= mss, opposite);
        self.observer.on_data(&DataSeen {
            frame: segment.frame,
            time: segment.time,
            offset: placed.offset,
            len: segment.payload_len,
            payload: segment.payload,
            kind: placed.kind,
            push: segment.flags.has(Flags::PSH),
            exempt: segment.flags.has(Flags::FIN) || segment.flags.has(Flags::URG),
            hears_unseen,
            in_flight: placed.in_flight,
            window_left: placed.window_left,
            mss,
            follows: self.follows,
            to_sender: opposite.to_receiver_by_handshake(),
        });
    }

    fn count_data(&mut self, segment: &Segment<'_>, placed: &Placed) {
        let counts = &mut self.counts;
        match placed.kind {
            DataKind::Duplicate => counts.duplicates += 1,
            DataKind::Probe => counts.probes += 1,
            DataKind::Retransmission => counts.retransmissions += 1,
            DataKind::Reordered => counts.reordered += 1,
            DataKind::New | DataKind::NewAfterGap => {}
        }
        if segment.payload_len > 0 && !matches!(placed.kind, DataKind::Duplicate | DataKind::Probe)
        {
            counts.segments += 1;
            self.first.get_or_insert(segment.time);
        }
    }

    fn rtt_min(&self, to_sender: Option<Span>) -> Option<Span> {
        let to_receiver = self.ack_times.to_receiver_min()?;
        Some(to_receiver + to_sender.or(self.echo.min()).unwrap_or(Span::ZERO))
    }

    /// The least times from the capture point to either end and back.
    pub(super) fn halves(&self, opposite: &Self) -> Halves {
        let to_sender = opposite.ack_times.to_receiver_min();
        Halves {
            to_receiver: self.ack_times.to_receiver_min(),
            to_sender: to_sender.into_iter().chain(self.echo.min()).min(),
        }
    }

    /// The facts, once the direction is over.
    pub(super) fn facts(
        &self,
        halves: Halves,
        opposite: &AckTimes,
        vantage: Vantage,
    ) -> DirectionFacts {
        let delays = &self.ack_times.ack_delay;
        DirectionFacts {
            from: self.from,
            to: self.to,
            packets: self.counts,
            stream: self.stream.facts(),
            ack_delay: (delays.count() > 0).then(|| AckDelay {
                p50: delays.quantile(0.5),
                p95: delays.quantile(0.95),
                max: delays.max(),
                bins_1ms: delays.bins(Span::from_millis(1), DELAY_BINS),
            }),
            rtt: self.ack_times.rtt(halves, &self.echo, opposite),
            window: self.window.range,
            ttl: self.ttl,
            vantage,
            first_time: self.first.unwrap_or_default(),
        }
    }
}

impl<O: LiveObserver> Direction<O> {
    /// Forgets what was counted and noted.
    pub(super) fn begin_anew(&mut self) {
        self.counts = PacketCounts::default();
        self.first = None;
        self.observer.begin_anew();
    }
}

/// Bins of the ACK delay histogram: Windows and BSD wait 200 ms, RFC 1122 allows 500 ms.
const DELAY_BINS: usize = 500;

//! Delays of single packets: in the watched queue, from end to end, and there and back.

use acklab_core::packet::{Addr, Body, NodeId, Packet};
use acklab_core::time::{Span, Time};

use crate::measured::{Measured, Metrics};
use crate::monitor::{Delays, RoundTrips, Waiting};

/// Delays of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    last_ms: f64,
    at: Time,
    count: u64,
    /// Of the times that are measured.
    delays: Delays,
}

impl Kept {
    pub(super) fn add(&mut self, now: Time, delay: Span) {
        self.at = now;
        self.last_ms = delay.as_millis_f64();
        self.count += 1;
        self.delays.add(delay);
    }

    pub(super) fn begin(&mut self) {
        self.delays = Delays::default();
    }

    /// The last one; 0 before the first.
    pub(super) const fn last_ms(&self) -> f64 {
        self.last_ms
    }

    /// When that was.
    pub(super) const fn at(&self) -> Time {
        self.at
    }

    /// How many there were.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) const fn delays(&self) -> &Delays {
        &self.delays
    }
}

/// A flow's packets from end to end.
///
/// One way: from a packet's departure at the host that sends the data to its arrival at the other, first copies
/// alone; a packet that another one overtook counts as lost. There and back, over TCP: as a capture at the sender
/// shows it ([`RoundTrips`]). Over reliable UDP, whose acknowledgments are sealed: from the departure of the last
/// packet that had arrived when the receiver sent one, to the arrival of that one.
#[derive(Clone, Debug, Default)]
pub(super) struct Travel {
    ends: [Addr; 2],
    there: Waiting,
    back: Waiting,
    unacknowledged: RoundTrips,
    /// When the last packet that arrived, and was not answered yet, had left.
    newest: Option<Time>,
    pub(super) one_way: Kept,
    pub(super) round: Kept,
    /// Of the packets that arrived, with headers, and how many of them before the measurement.
    bytes: u64,
    before: u64,
}

impl Travel {
    /// From the first end to the second.
    pub(super) fn new(ends: [Addr; 2]) -> Self {
        Self { ends, ..Self::default() }
    }

    pub(super) fn begin(&mut self) {
        self.one_way.begin();
        self.round.begin();
        self.before = self.bytes;
    }

    /// A packet passed a node; says whether that tells something.
    pub(super) fn on_packet(&mut self, now: Time, node: NodeId, packet: &Packet) -> bool {
        let [sender, receiver] = self.ends;
        if packet.returned {
            return false;
        }
        let known = self.round.count + self.one_way.count;
        if packet.src == sender && node == sender.node {
            self.on_sent(now, packet);
        } else if packet.src == sender && node == receiver.node {
            self.on_arrived(now, packet);
        } else if packet.src == receiver {
            self.on_answer(now, node == sender.node, packet);
        }
        self.round.count + self.one_way.count > known
    }

    fn on_sent(&mut self, now: Time, packet: &Packet) {
        if let Body::Tcp(tcp) = &packet.body {
            if tcp.payload_len == 0 {
                return;
            }
            self.unacknowledged.on_sent(now, tcp);
        }
        self.there.push(now, packet);
    }

    fn on_arrived(&mut self, now: Time, packet: &Packet) {
        let Some(delay) = self.there.take_in_order(now, packet) else { return };
        self.one_way.add(now, delay);
        self.bytes += u64::from(packet.size());
        self.newest = Some(now - delay);
    }

    fn on_answer(&mut self, now: Time, arrives: bool, packet: &Packet) {
        match (&packet.body, arrives) {
            (Body::Tcp(tcp), true) => {
                if let Some(trip) = self.unacknowledged.on_acknowledged(now, tcp) {
                    self.round.add(now, trip);
                }
            }
            (Body::Stored { .. }, false) => {
                if let Some(left) = self.newest.take() {
                    self.back.push(left, packet);
                }
            }
            (Body::Stored { .. }, true) => {
                if let Some(trip) = self.back.take_in_order(now, packet) {
                    self.round.add(now, trip);
                }
            }
            _ => {}
        }
    }

    /// Bits per second that arrived from `since` to `now`.
    pub(super) fn delivered_bps(&self, since: Time, now: Time) -> f64 {
        let before = if since == Time::ZERO { 0 } else { self.before };
        let seconds = now.since(since).as_secs_f64();
        if seconds > 0.0 { 8.0 * (self.bytes - before) as f64 / seconds } else { 0.0 }
    }
}

/// Delays as metrics: the distribution, and quantiles with one value per replication.
pub(super) fn insert(metrics: &mut Metrics, [name, p95, p99]: [&'static str; 3], delays: &Delays) {
    let quantile = |share| Measured::Samples(delays.quantile_ms(share).into_iter().collect());
    metrics.insert(p95, quantile(0.95));
    metrics.insert(p99, quantile(0.99));
    metrics.insert(name, Measured::Delays(Box::new(delays.clone())));
}

/// All of these together.
pub(super) fn pooled<'a>(each: impl Iterator<Item = &'a Kept>) -> Delays {
    each.fold(Delays::default(), |mut all, kept| {
        all.pool(kept.delays());
        all
    })
}

/// Names of metrics.
pub(super) const QUEUE_DELAY: [&str; 3] =
    ["queue_delay_ms", "queue_delay_p95_ms", "queue_delay_p99_ms"];
pub(super) const RTT: [&str; 3] = ["rtt_ms", "rtt_p95_ms", "rtt_p99_ms"];
pub(super) const ONE_WAY: [&str; 3] = ["one_way_ms", "one_way_p95_ms", "one_way_p99_ms"];

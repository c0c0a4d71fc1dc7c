//! [`NetworkRecorder`]: the observer of scenarios about queues and flows.
//!
//! It watches one link, the bottleneck, and the senders of the flows under study: how long the queue
//! was at each length, how long the transmitter stood idle, what was dropped and marked, and how much
//! each sender has had acknowledged. Lengths and idle time are kept as time at each value, so the
//! figures are exact whatever the sampling of a plot.
//!
//! `queue_empty_share` and `idle_share` leave out the start: they count from the first drop at the
//! bottleneck, or from 5 s where that comes first. A queue is empty while nothing waits; the
//! transmitter may still be busy with the last packet then, and is idle only without that one.

use acklab_control::LoopRecord;
use acklab_core::event::{DropReason, Event, EventKind, FlowKey};
use acklab_core::packet::{Addr, Body, NodeId, Packet};
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::{Observer, ResultHash};
use acklab_stats::jain_index;

use super::{Flow, Tap};
use crate::measured::{Measured, MetricDoc, Metrics};

/// What to watch.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The bottleneck's index in the world.
    pub bottleneck: u32,
    /// Its rate.
    pub rate: BitRate,
    /// The sender of each flow, in the order in which they are reported.
    pub senders: Vec<WatchedSender>,
    /// Sampling period of the control loop, if there is one.
    pub period: Span,
}

/// The sending end of a flow.
#[derive(Clone, Debug)]
pub struct WatchedSender {
    /// Where it is.
    pub addr: Addr,
    /// The flow's name.
    pub name: String,
    /// Bytes on the wire for each byte of payload: throughput counts headers.
    pub wire_factor: f64,
    /// Payload of a full segment, bytes: what the window is counted in.
    pub mss: f64,
}

/// The bottleneck's queue.
#[derive(Clone, Debug, Default)]
struct Bottleneck {
    packets: u32,
    bytes: u64,
    since: Time,
    /// Nanoseconds at each length.
    time_at: Vec<u64>,
    busy_until: Time,
    busy: Span,
    started: Start,
    drops: u64,
    marks: u64,
    /// Drops and marks before the measurement began.
    before: (u64, u64),
}

/// When the shares begin to count, and what had been until then.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    at: Option<Time>,
    empty: u64,
    busy: Span,
}

impl Bottleneck {
    /// The queue has been as it was until `at`.
    fn pass(&mut self, at: Time) {
        let begin = Time::ZERO + START;
        if self.started.at.is_none() && at >= begin {
            self.pass_to(begin);
            self.start(begin);
        }
        self.pass_to(at);
    }

    fn pass_to(&mut self, at: Time) {
        let slot = self.packets as usize;
        if self.time_at.len() <= slot {
            self.time_at.resize(slot + 1, 0);
        }
        if at > self.since {
            self.time_at[slot] += at.since(self.since).as_nanos();
            self.since = at;
        }
    }

    fn start(&mut self, at: Time) {
        // What of the present transmission lies after `at` belongs to what is counted.
        let rest = if self.busy_until > at { self.busy_until.since(at) } else { Span::ZERO };
        let empty = self.time_at.first().copied().unwrap_or(0);
        self.started = Start { at: Some(at), empty, busy: self.busy.saturating_sub(rest) };
    }

    /// The measurement begins at `at`.
    fn begin(&mut self, at: Time) {
        self.pass_to(at);
        self.time_at.fill(0);
        self.start(at);
        self.before = (self.drops, self.marks);
    }

    fn on_queue(&mut self, at: Time, packets: u32, bytes: u64, rate: BitRate) {
        self.pass(at);
        if bytes < self.bytes {
            let took = rate.serialisation(self.bytes - bytes);
            self.busy += took;
            self.busy_until = at + took;
        }
        (self.packets, self.bytes) = (packets, bytes);
    }

    /// A packet was thrown away. Should it have waited, its bytes never go into service; should it not,
    /// the queue's next report puts them right.
    fn on_drop(&mut self, at: Time, size: u32) {
        self.pass(at);
        self.drops += 1;
        self.bytes = self.bytes.saturating_sub(u64::from(size));
    }

    /// Shares of the time from the start to `end` without a waiting packet, and without any.
    fn shares(&self, end: Time) -> Option<(f64, f64)> {
        let start = self.started.at?;
        let counted = end.since(start).as_nanos();
        if end <= start || counted == 0 {
            return None;
        }
        let after = if self.busy_until > end { self.busy_until.since(end) } else { Span::ZERO };
        let busy = self.busy.saturating_sub(self.started.busy).saturating_sub(after).as_nanos();
        let empty = self.time_at.first().copied().unwrap_or(0) - self.started.empty;
        let counted = counted as f64;
        Some((empty as f64 / counted, 1.0 - busy as f64 / counted))
    }
}

/// One sender.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    /// Acknowledged payload, bytes.
    acked: u64,
    cwnd: u64,
    ssthresh: u64,
    retransmissions: u64,
    timeouts: u64,
    /// Segments with data that it sent, and pure ACKs that it was sent.
    data: u64,
    acks: u64,
    /// Acknowledged bytes, retransmissions, time-outs, segments and ACKs before the measurement began.
    before: [u64; 5],
}

impl Sender {
    /// What was acknowledged while it was measured, bytes.
    const fn measured(&self) -> u64 {
        self.acked - self.before[0]
    }
}

/// Watches a bottleneck and its flows.
pub struct NetworkRecorder<'a> {
    watched: Watched,
    hash: ResultHash,
    queue: Bottleneck,
    senders: Vec<Sender>,
    /// Ports with their flows, by node, for those that are watched.
    by_node: Vec<Vec<(u16, usize)>>,
    control: LoopRecord,
    changed: u8,
    tap: Option<Tap<'a>>,
    /// When the measurement begins.
    since: Time,
}

/// What changed since [`NetworkRecorder::take_changes`] was last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changes(u8);

impl Changes {
    /// The bottleneck's queue, its drops or marks.
    pub const QUEUE: Self = Self(1);
    /// A sender's window or what it had acknowledged.
    pub const FLOWS: Self = Self(2);
    /// An application's value.
    pub const APP: Self = Self(4);
    /// A packet left a queue, or the network.
    pub const PASSAGE: Self = Self(8);
    /// A packet passed one of its flow's ends.
    pub const ENDS: Self = Self(16);
    /// Nothing.
    pub const NONE: Self = Self(0);

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether any of `other` is among them.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl<'a> NetworkRecorder<'a> {
    /// Watches what `watched` names.
    pub fn new(watched: Watched, tap: Option<Tap<'a>>) -> Self {
        let nodes = watched.senders.iter().map(|sender| usize::from(sender.addr.node.0) + 1).max();
        let mut by_node = vec![Vec::new(); nodes.unwrap_or(0)];
        for (flow, WatchedSender { addr, .. }) in watched.senders.iter().enumerate() {
            by_node[usize::from(addr.node.0)].push((addr.port, flow));
        }
        Self {
            senders: vec![Sender::default(); watched.senders.len()],
            hash: ResultHash::default(),
            queue: Bottleneck::default(),
            by_node,
            control: LoopRecord::new(watched.period),
            watched,
            changed: 0,
            tap,
            since: Time::ZERO,
        }
    }

    /// The measurement begins at `now`: metrics leave out what was before, signals do not.
    pub fn begin(&mut self, now: Time) {
        self.since = now;
        self.queue.begin(now);
        for sender in &mut self.senders {
            let Sender { acked, retransmissions, timeouts, data, acks, .. } = *sender;
            sender.before = [acked, retransmissions, timeouts, data, acks];
        }
    }

    /// The hash over all events.
    pub fn hash(&self) -> u64 {
        self.hash.finish()
    }

    /// What changed since the last time.
    pub fn take_changes(&mut self) -> Changes {
        Changes(std::mem::take(&mut self.changed))
    }

    /// What the control loop did.
    pub const fn control(&self) -> &LoopRecord {
        &self.control
    }

    /// The bottleneck's index in the world.
    pub const fn bottleneck(&self) -> u32 {
        self.watched.bottleneck
    }

    /// Packets that wait at the bottleneck.
    pub const fn queue_packets(&self) -> u32 {
        self.queue.packets
    }

    /// Bytes that wait at the bottleneck.
    pub const fn queue_bytes(&self) -> u64 {
        self.queue.bytes
    }

    /// Packets dropped and marked at the bottleneck so far.
    pub const fn drops_and_marks(&self) -> (u64, u64) {
        (self.queue.drops, self.queue.marks)
    }

    /// The window of a flow, in full segments.
    pub fn cwnd(&self, flow: usize) -> f64 {
        self.senders[flow].cwnd as f64 / self.watched.senders[flow].mss
    }

    /// The slow-start threshold of a flow, in full segments.
    pub fn ssthresh(&self, flow: usize) -> f64 {
        self.senders[flow].ssthresh as f64 / self.watched.senders[flow].mss
    }

    /// Full segments of a flow that were acknowledged.
    pub fn acked(&self, flow: usize) -> f64 {
        self.senders[flow].acked as f64 / self.watched.senders[flow].mss
    }

    /// Bits per second acknowledged since time zero, headers included.
    pub fn throughput(&self, flow: usize, now: Time) -> f64 {
        let seconds = now.as_secs_f64();
        if seconds == 0.0 {
            return 0.0;
        }
        8.0 * self.senders[flow].acked as f64 * self.watched.senders[flow].wire_factor / seconds
    }

    /// The same for all flows together.
    pub fn total_throughput(&self, now: Time) -> f64 {
        (0..self.senders.len()).map(|flow| self.throughput(flow, now)).sum()
    }

    /// Jain's index of the flows' throughput; 1 while none has any.
    pub fn jain(&self) -> f64 {
        self.jain_of(0..self.senders.len())
    }

    /// The same of some flows.
    pub fn jain_of(&self, flows: impl Iterator<Item = usize>) -> f64 {
        let shares: Vec<f64> = flows.map(|flow| self.senders[flow].acked as f64).collect();
        jain_index(&shares).unwrap_or(1.0)
    }

    /// Bits per second acknowledged while it was measured, headers included.
    fn measured_throughput(&self, flow: usize, end: Time) -> f64 {
        let seconds = end.since(self.since).as_secs_f64();
        8.0 * self.senders[flow].measured() as f64 * self.watched.senders[flow].wire_factor
            / seconds
    }

    /// Metrics of some flows together.
    pub fn of_flows(&self, flows: &[usize], end: Time) -> Metrics {
        let one = |value: f64| Measured::Samples(vec![value]);
        // Without a TCP flow there is nothing to add up or to share.
        let shared =
            |value: f64| Measured::Samples(if flows.is_empty() { vec![] } else { vec![value] });
        let bps = flows.iter().map(|flow| self.measured_throughput(*flow, end)).sum();
        let acked: Vec<f64> =
            flows.iter().map(|flow| self.senders[*flow].measured() as f64).collect();
        let count = |of: fn(&Sender) -> u64, before: usize| {
            let counts = flows.iter().map(|flow| &self.senders[*flow]);
            counts.map(|sender| of(sender) - sender.before[before]).sum::<u64>() as f64
        };
        let mut metrics = Metrics::default();
        metrics.insert("throughput_bps", shared(bps));
        metrics.insert("jain", shared(jain_index(&acked).unwrap_or(1.0)));
        metrics.insert("retransmissions", one(count(|sender| sender.retransmissions, 1)));
        metrics.insert("timeouts", one(count(|sender| sender.timeouts, 2)));
        let (data, acks) = (count(|sender| sender.data, 3), count(|sender| sender.acks, 4));
        let per_segment = Some(acks / data).filter(|_| data > 0.0);
        metrics.insert("acks", one(acks));
        metrics
            .insert("acks_per_data_segment", Measured::Samples(per_segment.into_iter().collect()));
        metrics
    }

    /// Ends the recording: the metrics over all flows, and those of each.
    pub fn finish(&mut self, end: Time) -> (Metrics, Vec<Flow>) {
        self.queue.pass(end);
        let one = |value: f64| Measured::Samples(vec![value]);
        let all: Vec<usize> = (0..self.senders.len()).collect();
        let mut metrics = self.of_flows(&all, end);
        let shares = self.queue.shares(end);
        let share =
            |of: fn((f64, f64)) -> f64| Measured::Samples(shares.map(of).into_iter().collect());
        let idle = shares.filter(|_| self.watched.rate != BitRate::INFINITE).map(|shares| shares.1);
        let packets = self.queue.time_at.iter().enumerate();
        let time_at: Vec<(f64, f64)> =
            packets.map(|(packets, nanos)| (packets as f64, *nanos as f64 / 1e9)).collect();
        let packet_seconds: f64 = time_at.iter().map(|(packets, time)| packets * time).sum();
        let seconds = end.since(self.since).as_secs_f64();
        let (drops, marks) = self.queue.before;
        metrics.insert("queue_packets", Measured::Shares(time_at));
        metrics.insert("queue_mean_packets", one(packet_seconds / seconds));
        metrics.insert("queue_empty_share", share(|(empty, _)| empty));
        metrics.insert("idle_share", Measured::Samples(idle.into_iter().collect()));
        metrics.insert("drops", one((self.queue.drops - drops) as f64));
        metrics.insert("marks", one((self.queue.marks - marks) as f64));
        let flows = all.iter().map(|index| {
            let mut metrics = self.of_flows(&[*index], end);
            metrics.remove("jain");
            Flow { id: self.watched.senders[*index].name.clone(), metrics }
        });
        (metrics, flows.collect())
    }

    fn flow(&self, key: FlowKey) -> Option<usize> {
        let ports = self.by_node.get(usize::from(key.local.node.0))?;
        ports.iter().find(|(port, _)| *port == key.local.port).map(|(_, flow)| *flow)
    }

    fn change(&mut self, what: Changes) {
        self.changed |= what.0;
    }

    fn on_drop(&mut self, at: Time, packet: &Packet, reason: DropReason) {
        if matches!(reason, DropReason::Overflow | DropReason::Early | DropReason::Returned) {
            self.queue.on_drop(at, packet.size());
            self.change(Changes::QUEUE);
        }
    }
}

impl Observer for NetworkRecorder<'_> {
    fn on_event(&mut self, event: &Event) {
        self.hash.event(event);
        match event.kind {
            EventKind::Queue { link, packets, bytes } if link == self.watched.bottleneck => {
                self.queue.on_queue(event.time, packets, bytes, self.watched.rate);
                self.change(Changes::QUEUE);
            }
            EventKind::Dropped { link, reason, packet } if link == self.watched.bottleneck => {
                self.on_drop(event.time, &packet, reason);
            }
            EventKind::Marked { link, packet } if link == self.watched.bottleneck => {
                self.queue.marks += u64::from(!matches!(packet.body, Body::Datagram { .. }));
                self.change(Changes::QUEUE);
            }
            EventKind::Congestion { flow, cwnd, ssthresh, acked, .. } => {
                if let Some(flow) = self.flow(flow) {
                    let sender = &mut self.senders[flow];
                    // The SYN counts as one.
                    sender.acked = acked.saturating_sub(1);
                    (sender.cwnd, sender.ssthresh) = (cwnd, ssthresh);
                    self.change(Changes::FLOWS);
                }
            }
            EventKind::SegmentSent { flow, len, control, retransmission } => {
                if let Some(flow) = self.flow(flow) {
                    self.senders[flow].retransmissions += u64::from(retransmission);
                    self.senders[flow].data += u64::from(len > 0);
                } else if len == 0
                    && !control
                    && let Some(flow) =
                        self.flow(FlowKey { local: flow.remote, remote: flow.local })
                {
                    self.senders[flow].acks += 1;
                }
            }
            EventKind::Loss { flow, timeout: true } => {
                if let Some(flow) = self.flow(flow) {
                    self.senders[flow].timeouts += 1;
                }
            }
            EventKind::App { .. } => {
                self.control.on_event(event);
                self.change(Changes::APP);
            }
            _ => {}
        }
    }

    fn on_packet(&mut self, now: Time, _node: NodeId, packet: &Packet) {
        if let Some(tap) = &mut self.tap {
            tap(now, packet);
        }
    }
}

/// The start of a run that is left out of the shares.
const START: Span = Span::from_secs(5);

/// Metrics that every scenario of queues and flows has.
pub const NETWORK_METRICS: [MetricDoc; 12] = [
    MetricDoc {
        name: "throughput_bps",
        unit: "bit/s",
        doc: "Acknowledged packets over the measured time, headers included, all flows together (`flows`: \
              each), also of flows that are not there for all of it. One sample per replication.",
    },
    MetricDoc {
        name: "jain",
        unit: "index",
        doc: "Jain's fairness index of the flows' throughput: 1 when all are equal, 1/n when one has \
              everything. It is lower where flows come later or go earlier: in a network's file `measure` \
              says which time counts. One sample per replication.",
    },
    MetricDoc {
        name: "queue_packets",
        unit: "packets",
        doc: "Packets waiting at the bottleneck, not counting the one in service: mean and quantiles \
              over time.",
    },
    MetricDoc {
        name: "queue_mean_packets",
        unit: "packets",
        doc: "The mean over time of `queue_packets`. One sample per replication.",
    },
    MetricDoc {
        name: "queue_empty_share",
        unit: "share",
        doc: "Share of the time without a waiting packet, from second 5 on; none in a shorter run. One \
              sample per replication.",
    },
    MetricDoc {
        name: "idle_share",
        unit: "share",
        doc: "Share of the time, from second 5 on, in which the bottleneck transmits nothing; none in a \
              shorter run. One sample per replication.",
    },
    MetricDoc {
        name: "drops",
        unit: "packets",
        doc: "Packets that the bottleneck's queue dropped. One sample per replication.",
    },
    MetricDoc {
        name: "marks",
        unit: "packets",
        doc: "Packets of TCP and reliable UDP that the bottleneck's queue marked. One sample per replication.",
    },
    MetricDoc {
        name: "retransmissions",
        unit: "segments",
        doc: "Segments sent again, all flows together. One sample per replication.",
    },
    MetricDoc {
        name: "timeouts",
        unit: "expiries",
        doc: "Expiries of retransmission timers, all flows together. One sample per replication.",
    },
    MetricDoc {
        name: "acks",
        unit: "packets",
        doc: "Pure ACKs that the flows' receivers sent (over TCP). One sample per replication.",
    },
    MetricDoc {
        name: "acks_per_data_segment",
        unit: "ratio",
        doc: "The same for each segment with data that was sent; none where no data was. One sample per replication.",
    },
];

//! [`GraphRecorder`]: the recorder of queues and flows, with messages, exchanges and datagrams.

use std::collections::VecDeque;

use acklab_core::event::{DropReason, Event, EventKind};
use acklab_core::packet::{Body, NodeId, Packet};
use acklab_core::time::{Span, Time};
use acklab_sim::Observer;
use acklab_sim::app::{EXCHANGE_MS, TRANSFER_MS};

use super::delays::{self, Kept, Travel, pooled};
use super::metrics::{self, TRANSFER};
use super::model::{ends, flow_at};
use crate::measured::{Measured, MetricDoc, Metrics};
use crate::monitor::{Delays, Waiting};
use crate::network_file::{Network, Traffic};
use crate::scenario::control::{loop_margins, loop_metrics};
use crate::scenario::network::{Changes, NetworkRecorder};
use crate::scenario::network_signals::{Shows, Source};
use crate::scenario::{Flow, Replication};

/// What is measured of one flow beside what every TCP sender has.
enum Own {
    Nothing,
    Messages {
        bytes: u64,
        written: u64,
        waiting: VecDeque<Time>,
        delay_ms: Vec<f64>,
    },
    Exchanges {
        ms: Vec<f64>,
    },
    /// Whether it began and ended, and how long it took if that was measured.
    Transfer {
        begun: bool,
        ended: bool,
        ms: Option<f64>,
    },
    Datagrams(Datagrams),
}

/// The same of all flows of a kind; nothing where there is none.
#[derive(Default)]
struct OfAll {
    messages: Option<Vec<f64>>,
    exchanges: Option<Vec<f64>>,
    /// Times, and how many did not end.
    transfers: Option<(Vec<f64>, u64)>,
    /// Delays, how many did not arrive, and bit/s.
    datagrams: Option<(Vec<f64>, u64, f64)>,
}

impl OfAll {
    fn insert(self, metrics: &mut Metrics) {
        if let Some(delays) = self.messages {
            metrics.insert("message_delay_ms", Measured::Samples(delays));
        }
        if let Some(times) = self.exchanges {
            metrics.insert("exchange_ms", Measured::Samples(times));
        }
        if let Some((times, unfinished)) = self.transfers {
            metrics.insert(TRANSFER, Measured::Samples(times));
            metrics.insert("unfinished_transfers", Measured::Total(unfinished));
        }
        if let Some((delays, undelivered, bits)) = self.datagrams {
            metrics.insert("datagram_bps", Measured::Samples(vec![bits]));
            metrics.insert("datagram_delay_ms", Measured::Samples(delays));
            metrics.insert("undelivered_datagrams", Measured::Total(undelivered));
        }
    }
}

#[derive(Default)]
struct Datagrams {
    sent: u64,
    /// Whether each has arrived, by its number: copies count once.
    arrived: Vec<bool>,
    delay_ms: Vec<f64>,
    /// With headers.
    bytes: u64,
    /// Those sent, and bytes that arrived, before the measurement.
    before: (u64, u64),
}

/// One flow.
struct FlowRecorder {
    name: String,
    own: Own,
    /// Its place among those with a connection.
    sender: Option<usize>,
    travel: Travel,
    /// In the watched queue.
    waits: Kept,
}

/// Watches a link, and all flows.
pub(super) struct GraphRecorder<'a> {
    network: NetworkRecorder<'a>,
    flows: Vec<FlowRecorder>,
    groups: Vec<(String, Vec<usize>)>,
    queue: Waiting,
    waits: Kept,
    capture_at: Option<NodeId>,
    changed: Changes,
    /// The measurement begins here.
    since: Time,
    /// What the control loop bears, if there is one.
    margins: Option<[(&'static str, Measured); 2]>,
    hosts: Vec<HostRecorder>,
}

/// A host's processor.
struct HostRecorder {
    node: NodeId,
    metric: &'static str,
    busy: Span,
}

impl<'a> GraphRecorder<'a> {
    pub(super) fn new(
        network: NetworkRecorder<'a>,
        file: &Network,
        declared: &[MetricDoc],
        capture_at: Option<NodeId>,
    ) -> Self {
        let mut senders = 0..;
        let flows = file.flows.iter().enumerate().map(|(index, (from, to, flow))| {
            let own = match &flow.traffic {
                Traffic::Messages(_, _, Some(bytes)) => Own::Messages {
                    bytes: u64::from(*bytes),
                    written: 0,
                    waiting: VecDeque::new(),
                    delay_ms: Vec::new(),
                },
                Traffic::Requests(..) => Own::Exchanges { ms: Vec::new() },
                Traffic::Bulk(_, Some(_)) => Own::Transfer { begun: false, ended: false, ms: None },
                Traffic::Datagrams(_) => Own::Datagrams(Datagrams::default()),
                Traffic::Bulk(..) | Traffic::Messages(..) | Traffic::Loop(_) => Own::Nothing,
            };
            let with_connection = flow.traffic.has_connection();
            FlowRecorder {
                name: flow.name.clone(),
                own,
                sender: with_connection.then(|| senders.next()).flatten(),
                travel: Travel::new(ends(*from, *to, &flow.traffic, index as u16)),
                waits: Kept::default(),
            }
        });
        Self {
            network,
            flows: flows.collect(),
            groups: file.groups.clone(),
            queue: Waiting::default(),
            waits: Kept::default(),
            capture_at,
            changed: Changes::NONE,
            since: Time::ZERO,
            margins: file.control_loop().map(|control| {
                let (plant, gains, period) = control.model();
                loop_margins(plant, gains, period, Span::ZERO)
            }),
            hosts: metrics::of_hosts(file, declared)
                .map(|(node, metric)| HostRecorder { node, metric, busy: Span::ZERO })
                .collect(),
        }
    }

    /// The measurement begins at `now`.
    pub(super) fn begin(&mut self, now: Time) {
        self.since = now;
        self.network.begin(now);
        self.waits.begin();
        for host in &mut self.hosts {
            host.busy = Span::ZERO;
        }
        for flow in &mut self.flows {
            flow.own.begin();
            flow.travel.begin();
            flow.waits.begin();
        }
    }

    /// Bytes of the datagrams that have arrived of the flow that has `port`.
    pub(super) fn datagram_bytes(&self, port: u16) -> u64 {
        match flow_at(port).and_then(|flow| self.flows.get(flow)) {
            Some(FlowRecorder { own: Own::Datagrams(datagrams), .. }) => datagrams.bytes,
            _ => 0,
        }
    }

    /// Ends the recording: the metrics of all flows together, of each in the order of the file, and of groups.
    pub(super) fn finish(mut self, end: Time, events: u64) -> Replication {
        let (mut metrics, flows) = self.network.finish(end);
        if let Some(margins) = self.margins.take() {
            for (name, margin) in margins {
                metrics.insert(name, margin);
            }
            for (name, measured) in loop_metrics(self.network.control()).iter() {
                metrics.insert(name, measured.clone());
            }
        }
        let seconds = end.since(self.since).as_secs_f64();
        for host in &self.hosts {
            let share = host.busy.as_secs_f64() / seconds;
            metrics.insert(host.metric, Measured::Samples(vec![share]));
        }
        let all: Vec<usize> = (0..self.flows.len()).collect();
        self.insert_delays(&mut metrics, &all, self.waits.delays(), end);
        let groups = self.groups.iter().map(|(name, flows)| self.group(name, flows, end));
        let mut groups: Vec<Flow> = groups.collect();
        let with_delays = |mut flow: Flow, index: usize| {
            self.insert_delays(&mut flow.metrics, &[index], self.flows[index].waits.delays(), end);
            flow
        };
        let mut of_senders = flows.into_iter();
        let mut flows: Vec<Flow> = Vec::with_capacity(self.flows.len());
        for (index, FlowRecorder { name, sender, .. }) in self.flows.iter().enumerate() {
            let flow = match sender {
                Some(_) => of_senders.next().unwrap_or_default(),
                None => Flow { id: name.clone(), metrics: Metrics::default() },
            };
            flows.push(with_delays(flow, index));
        }
        self.insert_own(&mut metrics, &mut flows, end);
        for (group, (_, members)) in groups.iter_mut().zip(&self.groups) {
            let times = |flow: &usize| flows[*flow].metrics.samples(TRANSFER).iter().copied();
            let times: Vec<f64> = members.iter().flat_map(times).collect();
            if !times.is_empty() {
                group.metrics.insert(TRANSFER, Measured::Samples(times));
            }
        }
        let hash = self.network.hash();
        Replication { hash, events, metrics, flows, groups, longest_hold: None }
    }

    /// Delays of the packets of some flows, and what of them arrived.
    fn insert_delays(&self, metrics: &mut Metrics, flows: &[usize], waits: &Delays, end: Time) {
        let each = || flows.iter().map(|flow| &self.flows[*flow].travel);
        let bps = each().map(|travel| travel.delivered_bps(self.since, end)).sum();
        metrics.insert("delivered_bps", Measured::Samples(vec![bps]));
        delays::insert(metrics, delays::QUEUE_DELAY, waits);
        delays::insert(metrics, delays::ONE_WAY, &pooled(each().map(|travel| &travel.one_way)));
        delays::insert(metrics, delays::RTT, &pooled(each().map(|travel| &travel.round)));
    }

    fn group(&self, name: &str, flows: &[usize], end: Time) -> Flow {
        let mut metrics = self.network.of_flows(&self.senders(flows), end);
        let waits = pooled(flows.iter().map(|flow| &self.flows[*flow].waits));
        self.insert_delays(&mut metrics, flows, &waits, end);
        Flow { id: name.to_owned(), metrics }
    }

    /// The places of those with a connection.
    fn senders(&self, flows: &[usize]) -> Vec<usize> {
        flows.iter().filter_map(|flow| self.flows[*flow].sender).collect()
    }

    /// What only flows of messages, requests and datagrams have.
    fn insert_own(&mut self, metrics: &mut Metrics, flows: &mut [Flow], end: Time) {
        let mut all = OfAll::default();
        for (flow, recorder) in flows.iter_mut().zip(&mut self.flows) {
            match std::mem::replace(&mut recorder.own, Own::Nothing) {
                Own::Nothing => {}
                Own::Messages { delay_ms, .. } => {
                    all.messages.get_or_insert_default().extend_from_slice(&delay_ms);
                    flow.metrics.insert("message_delay_ms", Measured::Samples(delay_ms));
                }
                Own::Exchanges { ms } => {
                    all.exchanges.get_or_insert_default().extend_from_slice(&ms);
                    flow.metrics.insert("exchange_ms", Measured::Samples(ms));
                }
                Own::Transfer { begun, ended, ms } => {
                    let (times, unfinished) = all.transfers.get_or_insert_default();
                    times.extend(ms);
                    *unfinished += u64::from(begun && !ended);
                    flow.metrics.insert(TRANSFER, Measured::Samples(ms.into_iter().collect()));
                }
                Own::Datagrams(datagrams) => {
                    let seconds = end.since(self.since).as_secs_f64();
                    let bps = 8.0 * (datagrams.bytes - datagrams.before.1) as f64 / seconds;
                    let missing = datagrams.undelivered();
                    let (delays, undelivered, bits) = all.datagrams.get_or_insert_default();
                    delays.extend_from_slice(&datagrams.delay_ms);
                    (*undelivered, *bits) = (*undelivered + missing, *bits + bps);
                    flow.metrics.insert("datagram_bps", Measured::Samples(vec![bps]));
                    flow.metrics.insert("datagram_delay_ms", Measured::Samples(datagrams.delay_ms));
                    flow.metrics.insert("undelivered_datagrams", Measured::Total(missing));
                }
            }
        }
        all.insert(metrics);
    }

    fn own(&mut self, flow: Option<usize>) -> Option<&mut Own> {
        self.flows.get_mut(flow?).map(|flow| &mut flow.own)
    }

    /// The watched queue's packets.
    fn on_passage(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Offered { packet, .. } => self.queue.push(event.time, packet),
            EventKind::Dropped { reason, packet, .. } => {
                if matches!(reason, DropReason::Overflow | DropReason::Early | DropReason::Returned)
                {
                    self.queue.drop(packet);
                }
            }
            EventKind::Served { packet, .. } => {
                let Some(wait) = self.queue.take(event.time, packet) else { return };
                self.waits.add(event.time, wait);
                if let Some(flow) =
                    flow_at(packet.src.port).and_then(|flow| self.flows.get_mut(flow))
                {
                    flow.waits.add(event.time, wait);
                }
                self.changed = self.changed.with(Changes::PASSAGE);
            }
            _ => {}
        }
    }
}

/// What a signal of the graph is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shown {
    /// What the recorder of queues and flows knows.
    Network(Source),
    /// The queueing delay of the packet that was transmitted last, ms, and how many were: of all flows.
    QueueDelay,
    Served,
    /// Of one flow, by its number, or of a group.
    Of(Whose, What),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Whose {
    Flow(usize),
    Group(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum What {
    QueueDelay,
    Served,
    OneWay,
    Arrived,
    Rtt,
    Trips,
    Delivered,
    Throughput,
    Jain,
}

impl GraphRecorder<'_> {
    fn of(&self, whose: Whose, what: What, now: Time) -> f64 {
        let own;
        let flows = match whose {
            Whose::Flow(flow) => {
                own = [flow];
                &own[..]
            }
            Whose::Group(group) => &self.groups[group].1[..],
        };
        let each = || flows.iter().map(|flow| &self.flows[*flow]);
        // The last of several flows' values is that of the flow whose packet came last.
        let last = |of: fn(&FlowRecorder) -> &Kept| {
            let latest = each().max_by_key(|flow| of(flow).at());
            latest.map_or(0.0, |flow| of(flow).last_ms())
        };
        let count = |of: fn(&FlowRecorder) -> &Kept| {
            each().map(|flow| of(flow).count()).sum::<u64>() as f64
        };
        match what {
            What::QueueDelay => last(|flow| &flow.waits),
            What::Served => count(|flow| &flow.waits),
            What::OneWay => last(|flow| &flow.travel.one_way),
            What::Arrived => count(|flow| &flow.travel.one_way),
            What::Rtt => last(|flow| &flow.travel.round),
            What::Trips => count(|flow| &flow.travel.round),
            What::Delivered => each().map(|flow| flow.travel.delivered_bps(Time::ZERO, now)).sum(),
            What::Throughput => {
                self.senders(flows).iter().map(|sender| self.network.throughput(*sender, now)).sum()
            }
            What::Jain => self.network.jain_of(self.senders(flows).into_iter()),
        }
    }
}

impl Shows for GraphRecorder<'_> {
    type Source = Shown;

    fn changes_of(source: Shown) -> Changes {
        match source {
            Shown::Network(source) => NetworkRecorder::changes_of(source),
            Shown::QueueDelay | Shown::Served => Changes::PASSAGE,
            Shown::Of(_, what) => match what {
                What::QueueDelay | What::Served => Changes::PASSAGE,
                What::OneWay | What::Arrived | What::Rtt | What::Trips | What::Delivered => {
                    Changes::ENDS
                }
                What::Throughput | What::Jain => Changes::FLOWS,
            },
        }
    }

    fn take_changes(&mut self) -> Changes {
        std::mem::replace(&mut self.changed, Changes::NONE).with(self.network.take_changes())
    }

    fn link(&self) -> u32 {
        self.network.bottleneck()
    }

    fn value(&self, source: Shown, now: Time) -> f64 {
        match source {
            Shown::Network(source) => Shows::value(&self.network, source, now),
            Shown::QueueDelay => self.waits.last_ms(),
            Shown::Served => self.waits.count() as f64,
            Shown::Of(whose, what) => self.of(whose, what, now),
        }
    }
}

/// An observer of a network that is measured after a warm-up.
pub(super) trait Measures: Shows<Source = Shown> {
    /// The measurement begins.
    fn begin(&mut self, now: Time);
}

impl Measures for GraphRecorder<'_> {
    fn begin(&mut self, now: Time) {
        self.begin(now);
    }
}

impl Own {
    /// The measurement begins: what was measured so far is forgotten.
    fn begin(&mut self) {
        match self {
            Self::Nothing => {}
            Self::Messages { delay_ms: ms, .. } | Self::Exchanges { ms } => ms.clear(),
            Self::Transfer { ms, .. } => *ms = None,
            Self::Datagrams(datagrams) => {
                datagrams.delay_ms.clear();
                datagrams.before = (datagrams.sent, datagrams.bytes);
            }
        }
    }

    fn on_written(&mut self, now: Time, more: u32) {
        let Self::Messages { bytes, written, waiting, .. } = self else { return };
        // The messages whose first byte is among these.
        let first = written.div_ceil(*bytes);
        *written += u64::from(more);
        waiting.extend((first..written.div_ceil(*bytes)).map(|_| now));
    }

    fn on_delivered(&mut self, now: Time) {
        let Self::Messages { waiting, delay_ms, .. } = self else { return };
        if let Some(written) = waiting.pop_front() {
            delay_ms.push(now.since(written).as_millis_f64());
        }
    }
}

impl Datagrams {
    fn on_packet(&mut self, now: Time, node: NodeId, packet: &Packet, number: u64, left: u64) {
        if node == packet.src.node {
            self.sent = number + 1;
        } else if node == packet.dst.node {
            let slot = number as usize;
            if self.arrived.len() <= slot {
                self.arrived.resize(slot + 1, false);
            }
            if !std::mem::replace(&mut self.arrived[slot], true) {
                self.delay_ms.push(now.since(Time::from_nanos(left)).as_millis_f64());
                self.bytes += u64::from(packet.size());
            }
        }
    }

    fn undelivered(&self) -> u64 {
        let measured = self.arrived.iter().skip(self.before.0 as usize);
        let arrived = measured.filter(|arrived| **arrived).count() as u64;
        (self.sent - self.before.0).saturating_sub(arrived)
    }
}

impl Observer for GraphRecorder<'_> {
    fn on_event(&mut self, event: &Event) {
        match event.kind {
            EventKind::MessageWritten { flow, bytes, .. } => {
                if let Some(own) = self.own(flow_at(flow.local.port)) {
                    own.on_written(event.time, bytes);
                }
            }
            EventKind::MessageDelivered { flow, .. } => {
                if let Some(own) = self.own(flow_at(flow.local.port)) {
                    own.on_delivered(event.time);
                }
            }
            // The node is the flow's number here.
            EventKind::App { node, code: EXCHANGE_MS, value } => {
                if let Some(Own::Exchanges { ms }) = self.own(Some(usize::from(node.0))) {
                    ms.push(value);
                }
            }
            EventKind::App { node, code: TRANSFER_MS, value } => {
                if let Some(own @ Own::Transfer { .. }) = self.own(Some(usize::from(node.0))) {
                    *own = Own::Transfer { begun: true, ended: true, ms: Some(value) };
                }
            }
            EventKind::Worked { node, took } => {
                if let Some(host) = self.hosts.iter_mut().find(|host| host.node == node) {
                    host.busy += took;
                }
            }
            EventKind::Offered { link, .. }
            | EventKind::Served { link, .. }
            | EventKind::Dropped { link, .. }
                if link == self.network.bottleneck() =>
            {
                self.on_passage(event);
            }
            _ => {}
        }
        self.network.on_event(event);
    }

    fn on_packet(&mut self, now: Time, node: NodeId, packet: &Packet) {
        if let (Body::Datagram { words: [number, left], .. }, false) =
            (&packet.body, packet.returned)
            && let Some(Own::Datagrams(datagrams)) = self.own(flow_at(packet.dst.port))
        {
            datagrams.on_packet(now, node, packet, *number, *left);
        }
        let flow = flow_at(packet.src.port).and_then(|flow| self.flows.get_mut(flow));
        let told = flow.is_some_and(|flow| {
            if let Own::Transfer { begun, .. } = &mut flow.own {
                *begun = true;
            }
            flow.travel.on_packet(now, node, packet)
        });
        if told {
            self.changed = self.changed.with(Changes::ENDS);
        }
        if self.capture_at == Some(node) {
            self.network.on_packet(now, node, packet);
        }
    }
}

//! [`GraphRecorder`]: the recorder of queues and flows, with messages, exchanges and datagrams.

use std::collections::VecDeque;

use acklab_core::event::{Event, EventKind};
use acklab_core::options::joined;
use acklab_core::packet::{Body, NodeId, Packet};
use acklab_core::time::Time;
use acklab_sim::Observer;
use acklab_sim::app::EXCHANGE_MS;

use super::model::flow_at;
use crate::measured::{Measured, MetricDoc, Metrics};
use crate::network_file::{NetworkFile, Traffic};
use crate::scenario::network::{NETWORK_METRICS, NetworkRecorder};
use crate::scenario::{Flow, Replication};

/// What is measured of one flow beside what every TCP sender has.
enum Own {
    Nothing,
    Messages { bytes: u64, written: u64, waiting: VecDeque<Time>, delay_ms: Vec<f64> },
    Exchanges { ms: Vec<f64> },
    Datagrams(Datagrams),
}

#[derive(Default)]
struct Datagrams {
    sent: u64,
    /// Whether each has arrived, by its number: copies count once.
    arrived: Vec<bool>,
    delay_ms: Vec<f64>,
    /// With headers.
    bytes: u64,
}

/// Watches a link, and all flows.
pub(super) struct GraphRecorder<'a> {
    network: NetworkRecorder<'a>,
    flows: Vec<(String, Own)>,
    capture_at: Option<NodeId>,
}

impl<'a> GraphRecorder<'a> {
    pub(super) fn new(
        network: NetworkRecorder<'a>,
        file: &NetworkFile,
        capture_at: Option<NodeId>,
    ) -> Self {
        let flows = file.flows().iter().map(|(.., flow)| {
            let own = match &flow.traffic {
                Traffic::Messages(_, _, Some(bytes)) => Own::Messages {
                    bytes: u64::from(*bytes),
                    written: 0,
                    waiting: VecDeque::new(),
                    delay_ms: Vec::new(),
                },
                Traffic::Requests(..) => Own::Exchanges { ms: Vec::new() },
                Traffic::Datagrams(_) => Own::Datagrams(Datagrams::default()),
                Traffic::Bulk(..) | Traffic::Messages(..) => Own::Nothing,
            };
            (flow.name.clone(), own)
        });
        Self { network, flows: flows.collect(), capture_at }
    }

    /// Bytes of the datagrams that have arrived of the flow that has `port`.
    pub(super) fn datagram_bytes(&self, port: u16) -> u64 {
        match flow_at(port).and_then(|flow| self.flows.get(flow)) {
            Some((_, Own::Datagrams(datagrams))) => datagrams.bytes,
            _ => 0,
        }
    }

    /// Ends the recording: the metrics of all flows together and of each, in the order of the file.
    pub(super) fn finish(mut self, end: Time, events: u64) -> Replication {
        let (mut metrics, flows) = self.network.finish(end);
        let mut of_senders = flows.into_iter();
        let (mut messages, mut exchanges) = (Vec::new(), Vec::new());
        let (mut delays, mut undelivered, mut bits) = (Vec::new(), 0, 0.0);
        let mut flows = Vec::with_capacity(self.flows.len());
        for (name, own) in self.flows {
            let mut flow = match &own {
                Own::Datagrams(_) => Flow { id: name, metrics: Metrics::default() },
                _ => of_senders.next().unwrap_or_default(),
            };
            match own {
                Own::Nothing => {}
                Own::Messages { delay_ms, .. } => {
                    messages.extend_from_slice(&delay_ms);
                    flow.metrics.insert("message_delay_ms", Measured::Samples(delay_ms));
                }
                Own::Exchanges { ms } => {
                    exchanges.extend_from_slice(&ms);
                    flow.metrics.insert("exchange_ms", Measured::Samples(ms));
                }
                Own::Datagrams(datagrams) => {
                    let bps = 8.0 * datagrams.bytes as f64 / end.as_secs_f64();
                    let missing = datagrams.undelivered();
                    delays.extend_from_slice(&datagrams.delay_ms);
                    (undelivered, bits) = (undelivered + missing, bits + bps);
                    flow.metrics.insert("datagram_bps", Measured::Samples(vec![bps]));
                    flow.metrics.insert("datagram_delay_ms", Measured::Samples(datagrams.delay_ms));
                    flow.metrics.insert("undelivered_datagrams", Measured::Total(missing));
                }
            }
            flows.push(flow);
        }
        metrics.insert("message_delay_ms", Measured::Samples(messages));
        metrics.insert("exchange_ms", Measured::Samples(exchanges));
        metrics.insert("datagram_bps", Measured::Samples(vec![bits]));
        metrics.insert("datagram_delay_ms", Measured::Samples(delays));
        metrics.insert("undelivered_datagrams", Measured::Total(undelivered));
        let hash = self.network.hash();
        Replication { hash, events, metrics, flows, longest_hold: None }
    }

    fn own(&mut self, flow: Option<usize>) -> Option<&mut Own> {
        self.flows.get_mut(flow?).map(|(_, own)| own)
    }
}

impl Own {
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
        let arrived = self.arrived.iter().filter(|arrived| **arrived).count() as u64;
        self.sent.saturating_sub(arrived)
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
        if self.capture_at == Some(node) {
            self.network.on_packet(now, node, packet);
        }
    }
}

const OWN: [MetricDoc; 5] = [
    MetricDoc {
        name: "message_delay_ms",
        unit: "ms",
        doc: "Of flows that write messages of one size over TCP or reliable UDP: from the write of a message's first \
              byte until the receiver has read its last. One sample per message.",
    },
    MetricDoc {
        name: "exchange_ms",
        unit: "ms",
        doc: "From a request to the last byte of its reply. One sample per exchange.",
    },
    MetricDoc {
        name: "datagram_bps",
        unit: "bit/s",
        doc: "Datagrams that arrived over the duration, headers included, all flows together \
              (`flows`: each). One sample per replication.",
    },
    MetricDoc {
        name: "datagram_delay_ms",
        unit: "ms",
        doc: "From a datagram's departure to its arrival. One sample per datagram.",
    },
    MetricDoc {
        name: "undelivered_datagrams",
        unit: "packets",
        doc: "Datagrams that had not arrived by the end; summed.",
    },
];

pub(super) const METRICS: [MetricDoc; OWN.len() + NETWORK_METRICS.len()] =
    joined(OWN[0], &[&NETWORK_METRICS, &OWN]);

//! The metrics that networks in files have beside those of every scenario of queues and flows.

use acklab_core::options::joined;
use acklab_core::packet::NodeId;

use super::model::forever;
use crate::measured::MetricDoc;
use crate::network_file::Network;
use crate::scenario::network::NETWORK_METRICS;

/// How long a transfer took.
pub(super) const TRANSFER: &str = "transfer_ms";

const CPU_SHARE: MetricDoc = MetricDoc {
    name: "cpu_share",
    unit: "share",
    doc: "Share of the time in which the host's processor was at work. One sample per replication.",
};

/// A metric for each host that has a processor in any of `networks`; their names live as long as the process.
pub(super) fn declare_hosts(networks: &[Network]) -> Vec<MetricDoc> {
    let mut names: Vec<String> =
        networks.iter().flat_map(|network| &network.hosts).map(name_of).collect();
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| MetricDoc { name: forever(name), ..CPU_SHARE }).collect()
}

/// The hosts of `file` with a processor, each with its metric's name among those `declared`.
pub(super) fn of_hosts(
    file: &Network,
    declared: &[MetricDoc],
) -> impl Iterator<Item = (NodeId, &'static str)> {
    file.hosts.iter().filter_map(|host| {
        let name = name_of(host);
        let metric = declared.iter().find(|metric| metric.name == name)?;
        Some((host.0, metric.name))
    })
}

fn name_of((_, name): &(NodeId, String)) -> String {
    format!("{}.{name}", CPU_SHARE.name)
}

const OWN: [MetricDoc; 17] = [
    MetricDoc {
        name: "queue_delay_ms",
        unit: "ms",
        doc: "How long each packet waited in the watched queue until its transmission began; of all \
              packets, of each flow's, of each group's. One sample per packet.",
    },
    MetricDoc {
        name: "queue_delay_p95_ms",
        unit: "ms",
        doc: "What 95 % of the packets did not wait longer than. One sample per replication.",
    },
    MetricDoc { name: "queue_delay_p99_ms", unit: "ms", doc: "The same of 99 %." },
    MetricDoc {
        name: "one_way_ms",
        unit: "ms",
        doc: "From a packet's departure at the end that sends the data to its arrival at the other, over any \
              transport. One sample per packet that arrived; one that another overtook counts as lost.",
    },
    MetricDoc {
        name: "one_way_p95_ms",
        unit: "ms",
        doc: "Its 95 % quantile, one sample per replication.",
    },
    MetricDoc { name: "one_way_p99_ms", unit: "ms", doc: "Its 99 % quantile, likewise." },
    MetricDoc {
        name: "rtt_ms",
        unit: "ms",
        doc: "Round trips: over TCP from a segment's departure to the acknowledgment that covers it, without \
              those of segments sent again; over reliable UDP from a packet's departure to the arrival of the \
              receiver's next one. One sample per acknowledgment.",
    },
    MetricDoc {
        name: "rtt_p95_ms",
        unit: "ms",
        doc: "Their 95 % quantile, one sample per replication.",
    },
    MetricDoc { name: "rtt_p99_ms", unit: "ms", doc: "Their 99 % quantile, likewise." },
    MetricDoc {
        name: "delivered_bps",
        unit: "bit/s",
        doc: "Packets with content that arrived, headers and what was sent again included. One sample per \
              replication.",
    },
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
        name: TRANSFER,
        unit: "ms",
        doc: "Of flows of kind bulk with `bytes`: from the flow's start until the receiver has read the last byte. One \
              sample per transfer that ended while it was measured.",
    },
    MetricDoc {
        name: "unfinished_transfers",
        unit: "transfers",
        doc: "Flows of kind bulk with `bytes` that had begun and not ended by the end; summed.",
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

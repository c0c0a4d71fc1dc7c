//! What can be set in the bench scenarios, and what they measure.

use acklab_lab::measured::MetricDoc;
use acklab_lab::parameter::{Kind, Parameter};

/// Defaults in which the workloads differ.
struct Defaults {
    flows: &'static str,
    bottleneck: &'static str,
    access: &'static str,
    queue: &'static str,
    packet: &'static str,
    control: &'static str,
    duration: &'static str,
}

pub(super) static REFERENCE: [Parameter; PARAMETERS] = parameters(&Defaults {
    flows: "3",
    bottleneck: "1500kbit",
    access: "10mbit",
    queue: "17",
    packet: "1000",
    control: "on",
    duration: "30s",
});

pub(super) static HUNDRED: [Parameter; PARAMETERS] = parameters(&Defaults {
    flows: "10",
    bottleneck: "100mbit",
    access: "1gbit",
    queue: "670",
    packet: "1500",
    control: "off",
    duration: "10s",
});

pub(super) static GIGABIT: [Parameter; PARAMETERS] = parameters(&Defaults {
    flows: "50",
    bottleneck: "1gbit",
    access: "10gbit",
    queue: "6670",
    packet: "1500",
    control: "off",
    duration: "10s",
});

const SWITCH: Kind = Kind::Choice(&["on", "off"]);
const PARAMETERS: usize = 23;

const fn parameters(of: &Defaults) -> [Parameter; PARAMETERS] {
    const fn row(
        name: &'static str,
        default: &'static str,
        kind: Kind,
        doc: &'static str,
    ) -> Parameter {
        Parameter { name, default, kind, doc }
    }
    [
        row("flows", of.flows, Kind::Count { min: 1, max: 2000 }, "Reno flows."),
        row("duration", of.duration, Kind::Span, "Simulated time."),
        row("bottleneck", of.bottleneck, Kind::Rate, "Rate of the bottleneck."),
        row("delay", "5ms", Kind::Span, "Propagation of the bottleneck."),
        row("access", of.access, Kind::Rate, "Rate of every access link."),
        row("left", "2ms", Kind::Span, "Propagation of the senders' access links."),
        row(
            "right",
            "33ms",
            Kind::Span,
            "Propagation of the receivers' access links; with 2 ms and 5 ms a round trip of 80 ms, so \
             that a queue of 670 packets at 100 Mbit/s is one bandwidth-delay product.",
        ),
        row(
            "queue",
            of.queue,
            Kind::Count { min: 2, max: 10_000_000 },
            "Packets that the bottleneck's queue holds, in each direction.",
        ),
        row(
            "in_service",
            "extra",
            Kind::Choice(&["extra", "counted"]),
            "Whether the packet being transmitted has a place beside the queue (here, ns-2, ns-3) or \
             takes one of it (htsim).",
        ),
        row(
            "packet",
            of.packet,
            Kind::Count { min: 100, max: 9000 },
            "Bytes of a full packet at the IP layer, headers and options included.",
        ),
        row("iw", "10", Kind::Count { min: 1, max: 1000 }, "Initial window, segments."),
        row(
            "delack",
            "on",
            Kind::Choice(&["on", "off", "linux"]),
            "Delayed ACKs: on acknowledges every second segment or after `delack_timer`; off every \
             segment; linux as that system does.",
        ),
        row("delack_timer", "200ms", Kind::Span, "The longest delay under delack=on."),
        row(
            "growth",
            "bytes",
            Kind::Choice(&["bytes", "acks"]),
            "What congestion avoidance counts: the bytes acknowledged (RFC 3465), or ACKs, of which \
             delayed ACKs are half as many (RFC 5681 equation 3; ns-2, ns-3).",
        ),
        row(
            "sack",
            "on",
            SWITCH,
            "Selective acknowledgments (RFC 2018, RFC 6675); off is NewReno.",
        ),
        row("timestamps", "on", SWITCH, "The timestamp option, 12 bytes of each packet."),
        row(
            "recovery",
            "newreno",
            Kind::Choice(&["newreno", "reno"]),
            "Loss recovery where SACK is off: newreno (RFC 6582), or reno, which a partial ACK ends (RFC \
             2581).",
        ),
        row(
            "limited_transmit",
            "on",
            SWITCH,
            "New data on the first two duplicate ACKs (RFC 3042).",
        ),
        row("min_rto", "200ms", Kind::Span, "Lower bound of the retransmission time-out."),
        row(
            "stagger",
            "0",
            Kind::Span,
            "Each flow starts up to this long after the beginning, drawn uniformly.",
        ),
        row("control", of.control, SWITCH, "The control flow: small datagrams each way."),
        row("control_period", "14ms", Kind::Span, "From one of its packets to the next."),
        row(
            "control_bytes",
            "48",
            Kind::Count { min: 28, max: 1500 },
            "Bytes of each, headers included.",
        ),
    ]
}

pub(super) const METRICS: &[MetricDoc] = &[
    MetricDoc {
        name: "flow_throughput_bps",
        unit: "bit/s",
        doc: "Payload that each flow's receiver read, over the duration. One sample per flow.",
    },
    MetricDoc {
        name: "throughput_bps",
        unit: "bit/s",
        doc: "The flows' sum. One sample per replication.",
    },
    MetricDoc {
        name: "jain",
        unit: "1",
        doc: "Jain's index of the flows' throughputs. One sample per replication.",
    },
    MetricDoc {
        name: "delivered_packets",
        unit: "packets",
        doc: "Full segments that the receivers read in order, each counted once; summed.",
    },
    MetricDoc {
        name: "drops",
        unit: "packets",
        doc: "TCP packets that found the bottleneck's queue full, in either direction; summed.",
    },
    MetricDoc {
        name: "control_drops",
        unit: "packets",
        doc: "The same of the control flow; summed.",
    },
    MetricDoc {
        name: "control_delay_ms",
        unit: "ms",
        doc: "From a control packet's departure to its arrival. One sample per packet.",
    },
];

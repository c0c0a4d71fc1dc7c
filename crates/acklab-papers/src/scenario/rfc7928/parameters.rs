//! What can be set in `rfc7928`, and what it measures.

use acklab_core::cc::Algorithm;
use acklab_core::queue::Discipline;

use super::mixes::MIXES;
use acklab_lab::measured::MetricDoc;
use acklab_lab::parameter::{Kind, Parameter};
use acklab_lab::scenario::network::NETWORK_METRICS;

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "mix",
        default: "same-window",
        kind: Kind::Choice(MIXES),
        doc: "The traffic, by RFC 7928: same-window and different-windows (sections 5.1.1, 5.1.2: \
              every second flow starts with 10 segments), aggressive (5.2: every second flow is \
              CUBIC), unresponsive (5.3: a constant-rate datagram flow beside), background (5.4: every \
              second flow is Vegas, which stands for LEDBAT), rtt (6.2: every second flow has \
              `other_rtt`), bursts (7.2: web, video and constant-rate datagrams beside), varying-load \
              (8.2.4: every second flow sends in the middle third only), mix (9.1: bursts with voice \
              and an on/off writer), bidirectional (9.2: as many flows back).",
    },
    Parameter {
        name: "queue",
        default: "drop-tail",
        kind: Kind::Choice(Discipline::NAMES),
        doc: "The bottleneck's discipline in both directions, with its own default parameters.",
    },
    Parameter {
        name: "cc",
        default: "reno",
        kind: Kind::Choice(Algorithm::NAMES),
        doc: "Congestion control of every TCP flow that the mix does not give another.",
    },
    Parameter {
        name: "flows",
        default: "4",
        kind: Kind::Count { min: 1, max: 500 },
        doc: "TCP flows that write all the time.",
    },
    Parameter { name: "duration", default: "30s", kind: Kind::Span, doc: "Simulated time." },
    Parameter { name: "rate", default: "10mbit", kind: Kind::Rate, doc: "Rate of the bottleneck." },
    Parameter {
        name: "rtt",
        default: "100ms",
        kind: Kind::Span,
        doc: "Round-trip propagation, at least 4 ms: 1 ms each way is the bottleneck's.",
    },
    Parameter {
        name: "other_rtt",
        default: "20ms",
        kind: Kind::Span,
        doc: "Round-trip propagation of every second flow with mix=rtt (RFC 7928 section 6.2 varies it \
              from 5 to 560 ms against 100 ms).",
    },
    Parameter {
        name: "limit",
        default: "84",
        kind: Kind::Count { min: 1, max: 1_000_000 },
        doc: "Packets that the queue holds; 84 of 1500 bytes are one bandwidth-delay product.",
    },
    Parameter {
        name: "ecn",
        default: "off",
        kind: Kind::Choice(&["on", "off"]),
        doc: "TCP negotiates ECN, so that the queue may mark instead of dropping.",
    },
    Parameter {
        name: "iw",
        default: "3",
        kind: Kind::Count { min: 1, max: 1000 },
        doc: "Initial window, segments (RFC 7928 section 5.1.1).",
    },
    Parameter {
        name: "stagger",
        default: "100ms",
        kind: Kind::Span,
        doc: "From one flow's start to the next's, so that they do not slow-start as one.",
    },
    Parameter {
        name: "jitter",
        default: "500us",
        kind: Kind::Span,
        doc: "Added to each packet's way to the bottleneck, drawn uniformly from 0 to this: hosts are \
              not in step.",
    },
    Parameter {
        name: "udp_share",
        default: "50",
        kind: Kind::Number { min: 1.0, max: 200.0, unit: "%" },
        doc: "Rate of the datagram flow of mix=unresponsive, of the bottleneck's.",
    },
];

const OWN: [MetricDoc; 3] = [
    MetricDoc {
        name: "queue_delay_ms",
        unit: "ms",
        doc: "What a probe of 100 bytes, sent every 10 ms, waited on its way through the bottleneck: \
              its delay less propagation and its own transmission. One sample per probe.",
    },
    MetricDoc { name: "probes_lost", unit: "packets", doc: "Probes that did not arrive; summed." },
    MetricDoc {
        name: "exchange_ms",
        unit: "ms",
        doc: "From a web request to the last byte of its answer of 100 kB, in the mixes that have web \
              traffic. One sample per exchange.",
    },
];

pub(super) const METRICS: [MetricDoc; OWN.len() + NETWORK_METRICS.len()] = {
    let mut all = [OWN[0]; OWN.len() + NETWORK_METRICS.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = if i < OWN.len() { OWN[i] } else { NETWORK_METRICS[i - OWN.len()] };
        i += 1;
    }
    all
};

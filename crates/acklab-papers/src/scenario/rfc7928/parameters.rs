//! What can be set in `rfc7928`, and what it measures.

use acklab_core::cc::Algorithm;
use acklab_core::options::{Word, joined};
use acklab_core::queue::Discipline;
use acklab_core::time::Span;
use acklab_core::units::BitRate;
use acklab_lab::measured::MetricDoc;
use acklab_lab::metrics;
use acklab_lab::parameter::Switch;
use acklab_lab::scenario::network::NETWORK_METRICS;
use acklab_lab::scenario::{Axis, Declaration};

acklab_core::words! {
    /// The mixes of traffic; the parameter's description has the section of RFC 7928 that each is from.
    pub(super) enum Mix {
        SameWindow = "same-window",
        DifferentWindows = "different-windows",
        Aggressive = "aggressive",
        Unresponsive = "unresponsive",
        Background = "background",
        Rtt = "rtt",
        Bursts = "bursts",
        VaryingLoad = "varying-load",
        Together = "mix",
        Bidirectional = "bidirectional",
    }
}

acklab_core::options! {
    /// What can be set.
    pub(super) struct Set {
        /// The traffic, by RFC 7928: same-window and different-windows (sections 5.1.1, 5.1.2:
        /// every second flow starts with 10 segments), aggressive (5.2: every second flow is
        /// CUBIC), unresponsive (5.3: a constant-rate datagram flow beside), background (5.4: every
        /// second flow is Vegas, which stands for LEDBAT), rtt (6.2: every second flow has
        /// `other_rtt`), bursts (7.2: web, video and constant-rate datagrams beside), varying-load
        /// (8.2.4: every second flow sends in the middle third only), mix (9.1: bursts with voice
        /// and an on/off writer), bidirectional (9.2: as many flows back).
        mix: Mix = "same-window",
        /// The bottleneck's discipline in both directions, with its own default parameters.
        queue: Discipline = "drop-tail",
        /// Congestion control of every TCP flow that the mix does not give another.
        cc: Algorithm = "reno",
        /// TCP flows that write all the time.
        flows: u32 as count(1, 500) = "4",
        /// Simulated time.
        duration: Span = "30s",
        /// Rate of the bottleneck.
        rate: BitRate = "10mbit",
        /// Round-trip propagation, at least 4 ms: 1 ms each way is the bottleneck's.
        rtt: Span = "100ms",
        /// Round-trip propagation of every second flow with mix=rtt (RFC 7928 section 6.2 varies it
        /// from 5 to 560 ms against 100 ms).
        other_rtt: Span = "20ms",
        /// Packets that the queue holds; 0 stands for one bandwidth-delay product of `rate` and `rtt` in
        /// packets of 1500 bytes, 84 at their defaults.
        buffer: u32 as count(0, 1_000_000) = "0",
        /// TCP negotiates ECN, so that the queue may mark instead of dropping.
        ecn: Switch = "off",
        /// Initial window, segments (RFC 7928 section 5.1.1).
        iw: u32 as count(1, 1000) = "3",
        /// From one flow's start to the next's, so that they do not slow-start as one.
        stagger: Span = "100ms",
        /// Added to each packet's way to the bottleneck, drawn uniformly from 0 to this: hosts are
        /// not in step.
        jitter: Span = "500us",
        /// Rate of the datagram flow of mix=unresponsive, of the bottleneck's.
        udp_share: f64 as number(1.0, 200.0, "%") = "50",
    }
}

impl Set {
    /// Packets that the queue holds.
    pub(super) fn queue_packets(&self) -> u32 {
        let bytes = self.rate.as_bps() as f64 * self.rtt.as_secs_f64() / 8.0;
        let product = (bytes / FULL_PACKET).ceil().clamp(1.0, 1e6) as u32;
        if self.buffer == 0 { product } else { self.buffer }
    }
}

const OWN: [MetricDoc; 3] = metrics! {
    /// What a probe of 100 bytes, sent every 10 ms, waited on its way through the bottleneck: its
    /// delay less propagation and its own transmission. One sample per probe.
    "queue_delay_ms" in "ms";
    /// Probes that did not arrive; summed.
    "probes_lost" in "packets";
    /// From a web request to the last byte of its answer of 100 kB, in the mixes that have web
    /// traffic. One sample per exchange.
    "exchange_ms" in "ms";
};

const METRICS: [MetricDoc; OWN.len() + NETWORK_METRICS.len()] =
    joined(OWN[0], &[&OWN, &NETWORK_METRICS]);

/// Ethernet's payload, bytes.
pub(super) const FULL_PACKET: f64 = 1500.0;

pub(super) const DECLARATION: Declaration = Declaration {
    name: "rfc7928",
    summary: "queue disciplines under the standard mixes of traffic of RFC 7928",
    doc: "Hosts on both sides of one bottleneck, whose queue is under study in both directions; access \
          links are ten times as fast. `mix` chooses the traffic by the RFC's sections. Throughput, \
          fairness and retransmissions are those of the TCP flows that write all the time from left to \
          right; queue, drops and marks those of the bottleneck in that direction.",
    parameters: Set::PARAMETERS,
    metrics: &METRICS,
    main_metric: "queue_delay_ms",
    side_metrics: &["throughput_bps", "jain", "drops"],
    replications: 5,
    grid: &[
        Axis { parameter: "mix", values: Mix::NAMES },
        Axis { parameter: "queue", values: &["drop-tail", "red", "codel", "pie", "fq-codel"] },
    ],
    terms: &["rtt", "cdf", "quantile"],
    ..Declaration::EMPTY
};

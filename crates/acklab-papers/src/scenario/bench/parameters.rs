//! What can be set in the bench scenarios, and what they measure.

use acklab_core::options::with_defaults;
use acklab_core::time::Span;
use acklab_core::units::BitRate;
use acklab_lab::measured::MetricDoc;
use acklab_lab::metrics;
use acklab_lab::parameter::{Parameter, Switch};
use acklab_tcp::{LossRecovery, Stack};

acklab_core::options! {
    /// What can be set; the defaults are those of the reference.
    pub(super) struct Set {
        /// Reno flows.
        flows: u32 as count(1, 2000) = "3",
        /// Simulated time.
        duration: Span = "30s",
        /// Rate of the bottleneck.
        bottleneck: BitRate = "1500kbit",
        /// Propagation of the bottleneck.
        delay: Span = "5ms",
        /// Rate of every access link.
        access: BitRate = "10mbit",
        /// Propagation of the senders' access links.
        left: Span = "2ms",
        /// Propagation of the receivers' access links; with 2 ms and 5 ms a round trip of 80 ms, so
        /// that a queue of 670 packets at 100 Mbit/s is one bandwidth-delay product.
        right: Span = "33ms",
        /// Packets that the bottleneck's queue holds, in each direction.
        queue: u32 as count(2, 10_000_000) = "17",
        /// Whether the packet being transmitted has a place beside the queue (here, ns-2, ns-3) or
        /// takes one of it (htsim).
        in_service: InService = "extra",
        /// Bytes of a full packet at the IP layer, headers and options included.
        packet: u32 as count(100, 9000) = "1000",
        /// Initial window, segments.
        iw: u32 as count(1, 1000) = "10",
        /// Delayed ACKs: on acknowledges every second segment or after `delack_timer`; off every
        /// segment; linux as that system does.
        delack: Delack = "on",
        /// The longest delay under delack=on.
        delack_timer: Span = "200ms",
        /// What congestion avoidance counts: the bytes acknowledged (RFC 3465), or ACKs, of which
        /// delayed ACKs are half as many (RFC 5681 equation 3; ns-2, ns-3).
        growth: Growth = "bytes",
        /// Selective acknowledgments (RFC 2018, RFC 6675); off is NewReno.
        sack: Switch = "on",
        /// The timestamp option, 12 bytes of each packet.
        timestamps: Switch = "on",
        /// Loss recovery where SACK is off: newreno (RFC 6582), or reno, which a partial ACK ends
        /// (RFC 2581).
        recovery: LossRecovery as choice(&["newreno", "reno"]) = "newreno",
        /// New data on the first two duplicate ACKs (RFC 3042).
        limited_transmit: Switch = "on",
        /// Lower bound of the retransmission time-out.
        min_rto: Span = "200ms",
        /// Which of the two implementations of TCP: stream, or segments (Linux's, with delack=linux growth=bytes).
        stack: Stack = "stream",
        /// Each flow starts up to this long after the beginning, drawn uniformly.
        stagger: Span = "0",
        /// The control flow: small datagrams each way.
        control: Switch = "on",
        /// From one of its packets to the next.
        control_period: Span = "14ms",
        /// Bytes of each, headers included.
        control_bytes: u32 as count(28, 1500) = "48",
    }
}

acklab_core::words! {
    /// Where the packet in service counts.
    pub(super) enum InService {
        Extra = "extra",
        Counted = "counted",
    }
}

acklab_core::words! {
    /// Delayed ACKs.
    pub(super) enum Delack {
        On = "on",
        Off = "off",
        Linux = "linux",
    }
}

acklab_core::words! {
    /// What congestion avoidance counts.
    pub(super) enum Growth {
        Bytes = "bytes",
        Acks = "acks",
    }
}

/// The same with a window of full segments on its way.
pub(super) const HUNDRED: [Parameter; Set::PARAMETERS.len()] = with_defaults(
    Set::PARAMETERS,
    &[
        ("flows", "10"),
        ("bottleneck", "100mbit"),
        ("access", "1gbit"),
        ("queue", "670"),
        ("packet", "1500"),
        ("control", "off"),
        ("duration", "10s"),
    ],
);

/// Ten times the rate, and five times the flows.
pub(super) const GIGABIT: [Parameter; Set::PARAMETERS.len()] = with_defaults(
    &HUNDRED,
    &[("flows", "50"), ("bottleneck", "1gbit"), ("access", "10gbit"), ("queue", "6670")],
);

pub(super) const METRICS: &[MetricDoc] = &metrics! {
    /// Payload that each flow's receiver read, over the duration. One sample per flow.
    "flow_throughput_bps" in "bit/s";
    /// The flows' sum. One sample per replication.
    "throughput_bps" in "bit/s";
    /// Jain's index of the flows' throughputs. One sample per replication.
    "jain" in "1";
    /// Full segments that the receivers read in order, each counted once; summed.
    "delivered_packets" in "packets";
    /// TCP packets that found the bottleneck's queue full, in either direction; summed.
    "drops" in "packets";
    /// The same of the control flow; summed.
    "control_drops" in "packets";
    /// From a control packet's departure to its arrival. One sample per packet.
    "control_delay_ms" in "ms";
};

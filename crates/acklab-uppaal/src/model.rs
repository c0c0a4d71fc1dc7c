//! What is exported: the dumbbell's numbers and the readings of what the paper leaves open.

pub use acklab_core::cc::balance::SlowStart;
pub use acklab_core::queue::codel::Variant as CoDelVariant;
use acklab_core::time::Span;
use acklab_core::units::BitRate;
pub use acklab_papers::scenario::ance::parameters::{Integration, Phase};

use super::automata;

/// The dumbbell of the paper's figure 6 with everything that can be set in an export.
///
/// The defaults are the paper's and, where it is silent, those of the preset `plain`.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// How long the queries look.
    pub duration: Span,
    /// TCP flows.
    pub flows: u32,
    /// Rate of the bottleneck, each way.
    pub rate: BitRate,
    /// Propagation delay of the bottleneck.
    pub delay: Span,
    /// Packets that may wait at each router, beside the one in service.
    pub buffer: u32,
    /// Rate of every access link.
    pub access_rate: BitRate,
    /// Propagation delay between each transmitter and R1.
    pub tx_access: Span,
    /// Propagation delay between R2 and the first receiver.
    pub rx_access: Span,
    /// What each further receiver has on top of the one before.
    pub rx_spread: Span,
    /// Propagation delay between plant and R1, and between R2 and controller.
    pub ncs_access: Span,
    /// Bytes of a segment on the wire.
    pub packet: u32,
    /// Receive window, segments.
    pub rwnd: u32,
    /// Initial window, segments.
    pub iw: u32,
    /// Initial slow-start threshold, segments.
    pub ssthresh: u32,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Lower bound of the retransmission time-out.
    pub rto_min: Span,
    /// Flow i starts at i times this.
    pub start_spread: Span,
    /// Processing time of each TCP host for each packet it sends: uniform below this.
    pub host_jitter: Span,
    /// Whether managed queues may mark TCP's packets; otherwise they drop them.
    pub ecn: bool,
    /// Whether managed queues let the control loop's packets alone.
    pub ncs_exempt: bool,
    /// What both routers do.
    pub queue: Discipline,
    /// What every flow does.
    pub congestion: Congestion,
    /// Qmin of ANCE and ENCN, packets.
    pub qmin: f64,
    /// Least value of BF of ANCE and ENCN, ACKs.
    pub bf_floor: f64,
    /// What ends slow start of ANCE and ENCN.
    pub slow_start: SlowStart,
    /// Which command acts on the motor.
    pub actuation: Actuation,
    /// When the controller ticks.
    pub phase: Phase,
    /// How the controller integrates.
    pub integration: Integration,
    /// Bound of the control signal, V.
    pub saturation: f64,
}

/// Loss recovery of the transmitters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Any new ACK ends fast recovery.
    Reno,
    /// RFC 6582.
    NewReno,
}

/// What a router does with its queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// Drops what finds the queue full.
    DropTail,
    /// Random early detection.
    Red {
        /// Weight of the average, Wq.
        weight: f64,
        /// Marking probability at `max`.
        p_max: f64,
        /// Thresholds of the average, packets.
        min: f64,
        /// See `min`.
        max: f64,
        /// Whether gaps between marks are spread by a count, as in the article.
        counts: bool,
        /// Whether it marks above `max`, where it otherwise drops.
        marks_above: bool,
    },
    /// Controlled delay.
    CoDel {
        /// Which control law.
        variant: CoDelVariant,
        /// Target delay.
        target: Span,
        interval: Span,
    },
    /// PIE of RFC 8033, knowing the bottleneck's rate.
    Pie {
        /// Target delay.
        target: Span,
    },
    /// Marks what does not find congestion.
    Encn,
}

/// Congestion control of a transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 5681.
    Reno,
    /// The paper's.
    Ance {
        /// B of equation 1 is the bottleneck's rate; otherwise equation 2 estimates it.
        true_bandwidth: bool,
    },
    /// Its predecessor, which the router's mark tells.
    Encn,
}

/// Which command acts on the motor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actuation {
    /// At each tick the newest, on the period just ended.
    PeriodEnded,
    /// At each tick the newest, on the period that begins.
    Tick,
}

impl Default for Model {
    fn default() -> Self {
        let bits = |bps| BitRate::from_bps(bps).unwrap_or(BitRate::INFINITE);
        Self {
            duration: Span::from_secs(30),
            flows: 3,
            rate: bits(1_500_000),
            delay: Span::from_millis(5),
            buffer: 17,
            access_rate: bits(10_000_000),
            tx_access: Span::from_millis(2),
            rx_access: Span::from_millis(33),
            rx_spread: Span::ZERO,
            ncs_access: Span::ZERO,
            packet: 1000,
            rwnd: 64,
            iw: 1,
            ssthresh: 30,
            recovery: Recovery::NewReno,
            rto_min: Span::from_secs(1),
            start_spread: Span::ZERO,
            host_jitter: Span::from_micros(500),
            ecn: true,
            ncs_exempt: true,
            queue: Discipline::DropTail,
            congestion: Congestion::Reno,
            qmin: 3.0,
            bf_floor: 3.0,
            slow_start: SlowStart::Algorithm1,
            actuation: Actuation::PeriodEnded,
            phase: Phase::Random,
            integration: Integration::ForwardEuler,
            saturation: 1e6,
        }
    }
}

impl Model {
    /// The model as a file for UPPAAL.
    pub fn to_xml(&self) -> String {
        automata::network(self).to_xml()
    }
}

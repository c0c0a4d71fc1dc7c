//! What can be set in the scenarios of Sup, de Moraes and Bauchspiess (ANCE), and the presets.
//!
//! The paper leaves open or contradicts much of what decides its Table 4. Each such point is a
//! parameter; a preset is a reading of all of them together, and what is set by hand goes on top. The
//! declared defaults are those of `plain`.

pub use acklab_control::{Actuation, Integration, Missing};
use acklab_core::cc::{Algorithm, ance, dctcp, edctcp, encn, jersey};
use acklab_core::options::Options;
use acklab_core::queue::ecn::Treatment;
use acklab_core::queue::{self, Discipline, codel, pie, red, threshold};
use acklab_core::time::Span;
use acklab_core::units::BitRate;
use acklab_tcp::LossRecovery;

use acklab_lab::parameter::{Parameter, Settings, Switch};

acklab_core::options! {
    /// What can be set of the dumbbell; the daisy chain has all but [`Control`].
    pub struct Set {
        /// A reading of everything that the paper leaves open: plain and paper-fit are two in which
        /// most of its claims hold, literal takes its words and today's RFCs as they stand. What is
        /// set beside it goes on top.
        preset: Preset = "plain",
        /// The bottleneck's queueing discipline, the same in both directions. auto is drop-tail, or
        /// what `cc` needs: encn, jersey and edctcp their own, dctcp a marking threshold.
        queue: Option<Discipline> = "auto",
        /// Congestion control of every flow. auto is reno, or what `queue` needs: encn, jersey,
        /// edctcp.
        cc: Option<Algorithm> = "auto",
        /// Simulated time.
        duration: Span = "30s",
    }
    beside {
        /// Whether it is the dumbbell.
        dumbbell: bool = true,
    }
    within {
        /// The network.
        network: Network,
        /// The flows' TCP.
        tcp: Tcp,
        /// ANCE and ENCN.
        balance: Balance,
        /// The queues.
        queues: Queues,
        /// The control loop.
        control: Control,
    }
}

acklab_core::options! {
    /// Links and routers.
    pub struct Network {
        /// Rate of the bottleneck, in each direction.
        rate: BitRate = "1500kbit",
        /// Propagation delay of the bottleneck.
        delay: Span = "5ms",
        /// Packets that each router can queue, Q in the paper.
        buffer: u32 as count(1, 100_000) = "17",
        /// Whether the packet in service counts beside the buffer's packets or within them.
        service: Service = "beside",
        /// Rate of every access link.
        access_rate: BitRate = "10mbit",
        /// Propagation delay between each TCP sender and its router.
        tx_access: Span = "2ms",
        /// Propagation delay between each TCP receiver and its router. The paper gives 33 ms for
        /// the daisy chain and none for the dumbbell.
        rx_access: Span = "33ms",
    }
}

acklab_core::options! {
    /// The flows' TCP.
    pub struct Tcp {
        /// Bytes of a full TCP packet on the wire, 40 bytes of headers included. An ACK has 40.
        packet: u32 as count(100, 9000) = "1000",
        /// Receive window, in packets.
        rwnd: u32 as count(1, 10_000) = "64",
        /// Initial window, in segments.
        iw: u32 as count(1, 100) = "1",
        /// Initial slow-start threshold, in segments; 0 for the paper's: 30, or 16 with encn and
        /// ance.
        ssthresh: u64 as count(0, 10_000) = "0",
        /// Loss recovery: classic Reno (one loss per window), NewReno (RFC 6582) or SACK (RFC
        /// 6675).
        recovery: LossRecovery as choice(&["reno", "newreno", "sack"]) = "newreno",
        /// Receivers acknowledge every segment, or every second one with a timer of 200 ms.
        delack: Switch as choice(&["off", "on"]) = "off",
        /// Lower bound of the retransmission time-out (RFC 6298 section 2.4).
        rto_min: Span = "1s",
        /// When flow i starts: at i times start_spread, or uniformly in [0, start_spread], drawn
        /// for each replication.
        start: Start = "fixed",
        /// See `start`.
        start_spread: Span = "0",
        /// Processing time that each TCP host adds to each packet it sends, uniform on [0, this].
        host_jitter: Span = "500us",
        /// Whether TCP is ECN-capable. Without, the managed queues drop where they would mark.
        ecn: Switch = "on",
        /// How Reno hears of marks: echoed until it says that it has reduced its window, which
        /// meanwhile stands (RFC 3168), or by the ACK of the marked packet alone, as a simple model
        /// of TCP has it.
        ecn_echo: Echo = "rfc3168",
    }
}

acklab_core::options! {
    /// ANCE and ENCN.
    pub struct Balance {
        /// Qmin of ANCE and ENCN: below it the network is not congested.
        qmin: f64 as number(0.0, 10_000.0, "packets") = "3",
        /// Least value of the Balance Fairness variable of ANCE and ENCN. The paper has none; with
        /// 1 the queue runs dry.
        bf_floor: f64 as number(0.0, 1000.0, "ACKs") = "3",
        /// When ANCE and ENCN leave slow start for W = min(rwnd, ssthresh): on congestion, as
        /// Algorithm 1 says, or on its absence, as the text says. auto is algorithm-1 for ANCE and
        /// prose for ENCN.
        slow_start: SlowStartChoice = "auto",
        /// B of equation 1: estimated by equation 2, or the bottleneck's rate.
        ance_bandwidth: Bandwidth = "estimated",
        /// Equation 2: acknowledged bytes over the least gap between ACKs; the ACK's own 40 bytes
        /// over it; or times it, as printed, which has no unit of a rate.
        ance_equation_2: ance::Equation2 = "corrected",
        /// The least gap between ACKs of equation 2: ever, as written, so that two ACKs back to
        /// back decide it for good; the second least; or the least of each round trip.
        ance_spacing: ance::Spacing = "smallest",
    }
}

acklab_core::options! {
    /// The queues.
    pub struct Queues {
        /// Weight of RED's average, Wq.
        red_weight: f64 as number(0.000_001, 1.0, "share") = "0.002",
        /// RED's marking probability at max_th.
        red_pmax: f64 as number(0.0, 1.0, "probability") = "0.1",
        /// RED's min_th; the paper's Q/4.
        red_min: f64 as number(0.0, 100_000.0, "packets") = "4.25",
        /// RED's max_th; the paper's 3Q/4.
        red_max: f64 as number(0.0, 100_000.0, "packets") = "12.75",
        /// Gaps between RED's marks: each packet for itself, or spread by the count since the last
        /// mark as in the 1993 article.
        red_count: red::Spacing as choice(&["geometric", "uniform"]) = "geometric",
        /// RED above max_th: drop, mark, or the gentle variant.
        red_above: Above = "drop",
        /// CoDel's control law on return to dropping: of the article of 2012, or of RFC 8289.
        codel: codel::Variant as choice(&["article-2012", "rfc8289"]) = "article-2012",
        /// CoDel's target.
        codel_target: Span = "5ms",
        /// CoDel's interval.
        codel_interval: Span = "100ms",
        /// PIE of RFC 8033, or with the constants of the article of 2013.
        pie: pie::Tuning = "rfc8033",
        /// PIE's target delay.
        pie_target: Span = "20ms",
        /// PIE's departure rate: the link's, or measured with a threshold of 16 kB, which this
        /// buffer never reaches.
        pie_rate: DepartureRate = "known",
        /// TCP-Jersey's router warns while its average queue is above this.
        jersey_threshold: f64 as number(0.0, 100_000.0, "packets") = "5",
        /// Marking threshold K of DCTCP and E-DCTCP, in packets.
        dctcp_k: u32 as count(1, 100_000) = "3",
    }
}

acklab_core::options! {
    /// The flows and the control loop of the dumbbell.
    pub struct Control {
        /// TCP flows, named A, B, C, ...
        flows: u64 as count(1, 26) = "3",
        /// Added to rx_access from each flow to the next.
        rx_spread: Span = "0",
        /// Propagation delay between plant and router, and between controller and router. From 2 to
        /// 3 ms on, RED and CoDel miss the threshold always.
        ncs_access: Span = "0",
        /// What a managed queue does to a packet of the control loop, which is not ECN-capable,
        /// where it would mark a TCP packet.
        ncs_early: Treatment as choice(&["exempt", "drop"]) = "exempt",
        /// Which command acts on the motor: at each tick the newest that has arrived, applied to
        /// the period just ended (the presets in which the paper's claims hold); applied to the
        /// period that begins; or each from its arrival on.
        actuation: Actuation = "period-ended",
        /// Between the ticks of plant and controller: uniform in one sampling period, drawn for
        /// each replication, or none.
        phase: Phase = "random",
        /// How the controller integrates.
        integration: Integration = "forward-euler",
        /// What the actuator applies and the controller assumes where no packet came for a whole
        /// period.
        missing: Missing = "hold",
        /// Bound of the control signal; 24 for the motor's own supply.
        saturation: f64 as number(0.001, 1e6, "V") = "1000000",
    }
}

acklab_core::words! {
    /// A reading of everything that the paper leaves open.
    pub enum Preset {
        /// The declared defaults.
        Plain = "plain",
        /// What fits its figures best.
        PaperFit = "paper-fit",
        /// Its words and today's RFCs.
        Literal = "literal",
    }
}

acklab_core::words! {
    /// Where the packet in service counts.
    pub enum Service {
        /// Beside the buffer's packets.
        Beside = "beside",
        /// Within them.
        Within = "within",
    }
}

acklab_core::words! {
    /// When a flow starts.
    pub enum Start {
        /// At its number times the spread.
        Fixed = "fixed",
        /// At random within the spread.
        Random = "random",
    }
}

acklab_core::words! {
    /// How Reno hears of marks.
    pub enum Echo {
        /// As RFC 3168 has it.
        Rfc3168 = "rfc3168",
        /// By the ACK of the marked packet alone.
        EachAck = "each-ack",
    }
}

acklab_core::words! {
    /// When slow start ends.
    pub enum SlowStartChoice {
        /// As the algorithm is described.
        Auto = "auto",
        /// As algorithm 1 says.
        Algorithm1 = "algorithm-1",
        /// As the text says.
        Prose = "prose",
    }
}

acklab_core::words! {
    /// B of equation 1.
    pub enum Bandwidth {
        /// By equation 2.
        Estimated = "estimated",
        /// The bottleneck's rate.
        True = "true",
    }
}

acklab_core::words! {
    /// RED above max_th.
    pub enum Above {
        /// Drops.
        Drop = "drop",
        /// Marks.
        Mark = "mark",
        /// The gentle variant.
        Gentle = "gentle",
    }
}

acklab_core::words! {
    /// PIE's departure rate.
    pub enum DepartureRate {
        /// The link's.
        Known = "known",
        /// Measured.
        Measured = "measured",
    }
}

acklab_core::words! {
    /// Between the ticks of plant and controller.
    pub enum Phase {
        /// Drawn for each replication.
        Random = "random",
        /// None.
        Fixed = "fixed",
    }
}

impl Preset {
    /// The settings of this reading.
    fn set(self) -> Set {
        let plain = Set::default();
        let ms = Span::from_millis;
        match self {
            Self::Plain => plain,
            Self::PaperFit => Set {
                network: Network { rx_access: ms(25), ..plain.network },
                tcp: Tcp { recovery: LossRecovery::Reno, ..plain.tcp },
                balance: Balance { ance_bandwidth: Bandwidth::True, ..plain.balance },
                queues: Queues { pie_target: ms(15), ..plain.queues },
                control: Control {
                    rx_spread: ms(8),
                    ncs_access: Span::from_micros(750),
                    ..plain.control
                },
                ..plain
            },
            Self::Literal => Set {
                network: Network { rx_access: ms(2), ..plain.network },
                tcp: Tcp { start: Start::Random, start_spread: Span::from_secs(1), ..plain.tcp },
                balance: Balance { bf_floor: 1.0, ..plain.balance },
                queues: Queues {
                    red_count: red::Spacing::Uniform,
                    codel: codel::Variant::Rfc8289,
                    pie_target: ms(15),
                    ..plain.queues
                },
                control: Control {
                    ncs_access: ms(2),
                    actuation: Actuation::Tick,
                    phase: Phase::Fixed,
                    ..plain.control
                },
                ..plain
            },
        }
    }
}

impl Set {
    /// What was set by hand on top of its preset, with queue and congestion control paired.
    pub(super) fn resolve(settings: &Settings, dumbbell: bool) -> Self {
        let mut set = settings.read::<Self>().preset.set();
        for (name, value) in settings.chosen() {
            Options::set(&mut set, name, value);
        }
        let (queue, cc) = pair(set.queue.take(), set.cc.take());
        Self { queue: Some(queue), cc: Some(cc), dumbbell, ..set }
    }

    /// The bottleneck's queue: the one that was set, or what the congestion control needs.
    pub fn queue(&self) -> Discipline {
        pair(self.queue.clone(), self.cc.clone()).0
    }

    /// The congestion control that was set, or what the queue needs.
    pub fn cc(&self) -> Algorithm {
        pair(self.queue.clone(), self.cc.clone()).1
    }

    pub(super) const fn flows(&self) -> u64 {
        if self.dumbbell { self.control.flows } else { 1 }
    }
}

/// Queue and congestion control where one or both are left to the other.
fn pair(queue: Option<Discipline>, cc: Option<Algorithm>) -> (Discipline, Algorithm) {
    let queue = queue.unwrap_or_else(|| match cc {
        Some(Algorithm::Encn(_)) => Discipline::Encn(queue::encn::Options::default()),
        Some(Algorithm::Jersey(_)) => Discipline::Jersey(queue::jersey::Options::default()),
        Some(Algorithm::Edctcp(_)) => Discipline::Edctcp(threshold::Options::default()),
        Some(Algorithm::Dctcp(_)) => Discipline::Threshold(threshold::Options::default()),
        _ => Discipline::default(),
    });
    let cc = cc.unwrap_or_else(|| match queue {
        Discipline::Encn(_) => Algorithm::Encn(encn::Options::default()),
        Discipline::Jersey(_) => Algorithm::Jersey(jersey::Options::default()),
        Discipline::Edctcp(_) => Algorithm::Edctcp(edctcp::Options::default()),
        Discipline::Threshold(_) => Algorithm::Dctcp(dctcp::Options::default()),
        _ => Algorithm::Reno,
    });
    (queue, cc)
}

/// Parameters of the daisy chain: the dumbbell's but the last, which are [`Control`]'s.
pub(super) const DAISY: &[Parameter] =
    Set::PARAMETERS.split_at(Set::PARAMETERS.len() - Control::PARAMETERS.len()).0;

#[cfg(test)]
mod tests {
    use acklab_core::options::Word;

    use super::super::Ance;
    use super::*;
    use acklab_lab::scenario::{Scenario, defaults};

    #[test]
    fn every_queue_and_every_congestion_control_can_be_run() {
        let run = |name: &str, word: &str| {
            let mut settings = defaults(&Ance::Dumbbell);
            settings.set(name, word).unwrap();
            settings.set("duration", "2s").unwrap();
            let replication = Ance::Dumbbell.run(&settings, 1, None);
            let throughput = replication.metrics.number("throughput_bps");
            assert!((3e5..1.5e6).contains(&throughput), "{name}={word}: {throughput}");
        };
        for word in Discipline::NAMES {
            run("queue", word);
        }
        for word in Algorithm::NAMES {
            run("cc", word);
        }
    }

    #[test]
    fn a_preset_yields_to_what_is_set_by_hand_and_queue_and_congestion_control_are_paired() {
        for preset in Preset::NAMES {
            let mut settings = defaults(&Ance::Daisy);
            settings.set("preset", preset).unwrap();
            settings.set("rx_access", "11ms").unwrap();
            let resolved = Set::resolve(&settings, false);
            assert_eq!(resolved.network.rx_access, Span::from_millis(11), "{preset}");
            let literal = *preset == "literal";
            assert_eq!(resolved.queues.codel == codel::Variant::Rfc8289, literal, "{preset}");
        }
        let check = |queue: &str, cc: &str, expect: (&str, &str)| {
            let (queue, cc) = pair(queue.parse().ok(), cc.parse().ok());
            assert_eq!((queue.name(), cc.name()), expect);
        };
        check("auto", "auto", ("drop-tail", "reno"));
        check("auto", "ance", ("drop-tail", "ance"));
        check("encn", "auto", ("encn", "encn"));
        check("auto", "edctcp", ("edctcp", "edctcp"));
        check("auto", "dctcp", ("threshold", "dctcp"));
        check("red", "cubic", ("red", "cubic"));
    }
}

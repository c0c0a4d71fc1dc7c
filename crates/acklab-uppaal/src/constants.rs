//! The constants at the head of the file: the model's numbers, with the paper's tables beside them.

use std::fmt::Write as _;

use acklab_core::cc::Algorithm;
use acklab_core::cc::balance::SlowStart;
use acklab_core::math;
use acklab_core::options::Word;
use acklab_core::queue::ecn::Treatment;
use acklab_core::queue::{Discipline, codel, red};
use acklab_core::time::Span;
use acklab_papers::scenario::ance::parameters::{Above, Actuation, Bandwidth, Integration, Phase};

use super::model::Model;

/// Bytes of a sample or a command on the wire (paper, table 2).
pub(super) const NCS_BYTES: u64 = 48;
/// Bytes of an ACK: 20 of IPv4 and 20 of TCP.
pub(super) const ACK_BYTES: u64 = 40;
/// Sampling period (paper, section 4).
const H: Span = Span::from_millis(14);
/// Numerator of the motor's transfer function (equation 3).
const GAIN: f64 = 36.3;
/// Its pole, 1/s.
const POLE: f64 = 36.17;
/// Proportional gain (paper, section 4).
const KP: f64 = 11.86;
/// Integral gain, 1/s (paper, section 4).
const KI: f64 = 47.45;

/// Whole microseconds, to the nearest.
pub(super) const fn us(span: Span) -> u64 {
    (span.as_nanos() + 500) / 1000
}

/// Lines of declarations.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn comment(&mut self, text: &str) {
        let _ = writeln!(self.0, "{text}");
    }

    fn constant(&mut self, kind: &str, name: &str, value: impl std::fmt::Display, doc: &str) {
        let declaration = format!("const {kind} {name} = {value};");
        let _ = writeln!(self.0, "{declaration:<48}// {doc}");
    }

    fn int(&mut self, name: &str, value: u64, doc: &str) {
        self.constant("int", name, value, doc);
    }

    /// A time that is rounded says what it was.
    fn time(&mut self, name: &str, span: Span, doc: &str) {
        let exact = span.as_nanos() as f64 / 1000.0;
        let rounded = if span.as_nanos().is_multiple_of(1000) {
            String::new()
        } else {
            format!("; exactly {exact} us")
        };
        self.int(name, us(span), &format!("us: {doc}{rounded}"));
    }

    /// Written so that it reads back as the same number, and always with a point or an exponent.
    fn double(&mut self, name: &str, value: f64, doc: &str) {
        self.constant("double", name, format_args!("{value:?}"), doc);
    }

    fn bool(&mut self, name: &str, value: bool, doc: &str) {
        self.constant("bool", name, value, doc);
    }
}

/// Everything that a number of the model decides.
pub(super) fn constants(model: &Model, channel_capacity: u64) -> String {
    let mut lines = Lines::default();
    lines.comment(HEAD);
    lines.int(
        "FLOWS",
        u64::from(model.flows()),
        "TCP flows A, B, C, ...; flow number FLOWS is the loop",
    );
    network(&mut lines, model, channel_capacity);
    tcp(&mut lines, model);
    discipline(&mut lines, model);
    control(&mut lines, model);
    lines.0
}

fn network(lines: &mut Lines, model: &Model, channel_capacity: u64) {
    let packet = u64::from(model.set.tcp.packet);
    lines.comment("\n// Links: how long a packet takes to be put on them.");
    let [segment, ack, ncs] = [packet, ACK_BYTES, NCS_BYTES];
    let (access, bottleneck) = (model.set.network.access_rate, model.set.network.rate);
    lines.time("T_SEGMENT", access.serialisation(segment), "a segment on an access link");
    lines.time(
        "T_BOTTLENECK_SEGMENT",
        bottleneck.serialisation(segment),
        "a segment on the bottleneck",
    );
    lines.time("T_BOTTLENECK_ACK", bottleneck.serialisation(ack), "an ACK of 40 bytes there");
    lines.time("T_BOTTLENECK_NCS", bottleneck.serialisation(ncs), "a sample or command there");
    lines.time("Tpsm", access.serialisation(ncs), "Table 2: 48 bytes of the plant on its link");
    lines.time(
        "Tcsc",
        access.serialisation(ncs),
        "Table 3: 48 bytes of the controller on its link",
    );
    let bytes_per_us = bottleneck.as_bps() as f64 / 8e6;
    lines.double("BOTTLENECK_BYTES_PER_US", bytes_per_us, "rate of the bottleneck");
    lines.int("SEGMENT_BYTES", packet, "a segment on the wire");
    lines.int("NCS_BYTES", NCS_BYTES, "a sample or command on the wire");
    lines.int("BUFFER", u64::from(model.buffer()), "Q: packets that may wait at each router");
    lines.int("CHANNEL_CAPACITY", channel_capacity, "packets in flight on one channel, at most");
}

fn tcp(lines: &mut Lines, model: &Model) {
    let (tcp, balance) = (&model.set.tcp, &model.set.balance);
    lines.comment("\n// TCP.");
    lines.int("RWND", u64::from(tcp.rwnd), "receive window, segments");
    lines.int("IW", u64::from(tcp.iw), "initial window, segments");
    lines.int("SSTHRESH", model.ssthresh(), "Ssth: initial slow-start threshold, segments");
    lines.time("RTO_MIN", tcp.rto_min, "least retransmission time-out");
    let classic = tcp.recovery.name() == "reno";
    lines.bool("CLASSIC_RENO", classic, "any new ACK ends fast recovery; otherwise RFC 6582");
    lines.bool("MARK_WARNS", mark_warns(model), "a mark says congestion, as RFC 3168 has it");
    if !model.is_reno() {
        lines.double("BF_FLOOR", balance.bf_floor, "least balance fairness BF, ACKs");
        let by_algorithm = model.slow_start() == SlowStart::Algorithm1;
        let doc = "slow start ends on congestion; otherwise on its absence, as the prose has it";
        lines.bool("SLOW_START_BY_ALGORITHM_1", by_algorithm, doc);
    }
    if matches!(model.cc, Algorithm::Ance(_)) {
        let known = balance.ance_bandwidth == Bandwidth::True;
        lines.bool("TRUE_BANDWIDTH", known, "B is known; otherwise equation 2 estimates it");
    }
    if !model.is_reno() || matches!(model.queue, Discipline::Encn(_)) {
        lines.double("QMIN", balance.qmin, "Qmin, packets");
    }
}

fn mark_warns(model: &Model) -> bool {
    use Discipline::{Codel, Pie, Red};
    model.set.tcp.ecn.is_on() && matches!(model.queue, Red(_) | Codel(_) | Pie(_))
}

fn discipline(lines: &mut Lines, model: &Model) {
    lines.comment("\n// The routers' queues.");
    let (own, ecn) = (&model.set.queues, model.set.tcp.ecn.is_on());
    lines.bool("ECN", ecn, "TCP's packets may be marked");
    let exempt = ecn && model.set.control.ncs_early == Treatment::Exempt;
    let doc = "what may not be marked is left alone, but for a full queue";
    lines.bool("NOT_ECT_EXEMPT", exempt, doc);
    match model.queue {
        Discipline::Red(_) => {
            let counts = own.red_count == red::Spacing::Uniform;
            let marks_above = own.red_above == Above::Mark;
            lines.double("RED_WEIGHT", own.red_weight, "Wq");
            lines.double("RED_PMAX", own.red_pmax, "Pmax");
            lines.double("RED_MIN", own.red_min, "min_th, packets");
            lines.double("RED_MAX", own.red_max, "max_th, packets");
            lines.bool("RED_COUNTS", counts, "gaps between marks are spread by a count");
            lines.bool("RED_MARKS_ABOVE", marks_above, "marks above max_th; otherwise drops");
        }
        Discipline::Codel(_) => {
            lines.time("CODEL_TARGET", own.codel_target, "target");
            lines.time("CODEL_INTERVAL", own.codel_interval, "interval");
            let article = own.codel == codel::Variant::Article2012;
            lines.bool("CODEL_2012", article, "the article's control law; otherwise RFC 8289's");
        }
        Discipline::Pie(_) => {
            lines.double("PIE_TARGET", own.pie_target.as_secs_f64(), "QDELAY_REF, s");
            lines.time("PIE_UPDATE", Span::from_millis(15), "T_UPDATE (RFC 8033 section 4.2)");
            lines.time("PIE_BURST", Span::from_millis(150), "MAX_BURST (section 4.4)");
            lines.double("PIE_ALPHA", 0.125, "per second (section 4.2)");
            lines.double("PIE_BETA", 1.25, "per second (section 4.2)");
        }
        _ => {}
    }
}

fn control(lines: &mut Lines, model: &Model) {
    lines.comment(
        "\n// The control loop: y(k) = A1 y(k-1) + A2 y(k-2) + B1 u(k-1) + B2 u(k-2) is the motor",
    );
    lines.comment("// 36.3 / (s^2 + 36.17 s) of equation 3 under zero-order hold.");
    let h = H.as_secs_f64();
    let decay = math::exp(-POLE * h);
    lines.time("h", H, "Tables 2 and 3: sampling period");
    lines.double("A1", 1.0 + decay, "1 + exp(-36.17 h)");
    lines.double("A2", -decay, "-exp(-36.17 h)");
    lines.double("B1", GAIN * (POLE * h - 1.0 + decay) / (POLE * POLE), "rad/V");
    lines.double("B2", GAIN * (1.0 - decay - POLE * h * decay) / (POLE * POLE), "rad/V");
    lines.double("KP", KP, "Kp, V/rad");
    lines.double("KI_H", KI * h, "Ki h, V/rad");
    lines.double("U_MAX", model.set.control.saturation, "bound of |u|, V");
    lines.int("FORWARD_EULER", 0, "u = Kp e + I, then I = I + Ki h e");
    lines.int("BACKWARD_EULER", 1, "I first");
    lines.int("TUSTIN", 2, "I = I + Ki h (e + e1) / 2 first");
    let integration = match model.set.control.integration {
        Integration::ForwardEuler => "FORWARD_EULER",
        Integration::BackwardEuler => "BACKWARD_EULER",
        Integration::Tustin => "TUSTIN",
    };
    lines.constant("int", "INTEGRATION", integration, "how the controller integrates");
    let ended = model.set.control.actuation == Actuation::PeriodEnded;
    let doc = "the newest command acts on the period just ended; otherwise on the next";
    lines.bool("ACTS_ON_PERIOD_ENDED", ended, doc);
    let doc = "the controller's ticks fall anywhere between the plant's; otherwise on them";
    lines.bool("RANDOM_PHASE", model.set.control.phase == Phase::Random, doc);
    lines.time("REFERENCE_HALF_PERIOD", Span::from_secs(1), "the square wave has a period of 2 s");
    lines.double("REFERENCE_LOW", 1.0, "rad, first");
    lines.double("REFERENCE_HIGH", 2.0, "rad, then");
}

const HEAD: &str = "\
// The dumbbell of Sup, de Moraes and Bauchspiess, \"Acknowledge-Based Non-Congestion Estimation\",
// figure 6: TCP flows and a control loop over one bottleneck. Exported by acklab.
//
//   transmitters --- R1 === bottleneck === R2 --- receivers
//          plant ---                          --- controller
//
// One unit of time is 1 us. Statistical model checking only: there are doubles.
";

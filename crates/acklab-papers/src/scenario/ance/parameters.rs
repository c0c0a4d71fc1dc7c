//! What can be set in the scenarios of Sup, de Moraes and Bauchspiess (ANCE), and the presets.
//!
//! The paper leaves open or contradicts much of what decides its Table 4. Each such point is a
//! parameter; a preset is a reading of all of them together, and what is set by hand goes on top. The
//! declared defaults are those of `plain`.

use acklab_lab::parameter::{Kind, Parameter, Settings};

/// The readings of the paper's gaps, as (parameter, value) beside `plain`, which is the defaults.
const PRESETS: &[(&str, &[(&str, &str)])] = &[
    ("plain", &[]),
    (
        "paper-fit",
        &[
            ("rx_access", "25ms"),
            ("rx_spread", "8ms"),
            ("ncs_access", "750us"),
            ("recovery", "reno"),
            ("pie_target", "15ms"),
            ("ance_bandwidth", "true"),
        ],
    ),
    (
        "literal",
        &[
            ("rx_access", "2ms"),
            ("ncs_access", "2ms"),
            ("start", "random"),
            ("start_spread", "1s"),
            ("red_count", "uniform"),
            ("codel", "rfc8289"),
            ("pie_target", "15ms"),
            ("bf_floor", "1"),
            ("actuation", "tick"),
            ("phase", "fixed"),
        ],
    ),
];

/// The settings with the preset's values where nothing was set by hand.
pub(super) fn resolve(settings: &Settings) -> Settings {
    let mut resolved = settings.clone();
    let preset = settings.choice("preset");
    let (_, values) = PRESETS.iter().find(|(name, _)| *name == preset).expect("a declared preset");
    for (name, value) in *values {
        if resolved.has(name) {
            resolved.assume(name, value);
        }
    }
    let (queue, cc) = pairing(settings.choice("queue"), settings.choice("cc"));
    for (name, word) in [("queue", queue), ("cc", cc)] {
        resolved.set(name, word).expect("a pairing is made of declared words");
    }
    resolved
}

/// Queue and congestion control where one or both are left to the other.
fn pairing<'a>(queue: &'a str, cc: &'a str) -> (&'a str, &'a str) {
    let queue = match (queue, cc) {
        ("auto", "encn" | "jersey" | "edctcp") => cc,
        ("auto", "dctcp") => "threshold",
        ("auto", _) => "drop-tail",
        _ => queue,
    };
    let cc = match (cc, queue) {
        ("auto", "encn" | "jersey" | "edctcp") => queue,
        ("auto", "threshold") => "dctcp",
        ("auto", _) => "reno",
        _ => cc,
    };
    (queue, cc)
}

const PRESET_NAMES: &[&str] = &["plain", "paper-fit", "literal"];

/// Queues that the bottleneck can have; `auto` follows the congestion control.
pub(super) const QUEUES: &[&str] = &[
    "auto",
    "drop-tail",
    "red",
    "codel",
    "pie",
    "fq-codel",
    "encn",
    "jersey",
    "edctcp",
    "threshold",
    "dualpi2",
];

/// Congestion controls that the flows can have; `auto` follows the queue.
pub(super) const CONTROLS: &[&str] = &[
    "auto", "reno", "ance", "encn", "jersey", "dctcp", "edctcp", "cubic", "vegas", "westwood",
    "bbr1", "bbr3", "lossy",
];

const fn span(name: &'static str, default: &'static str, doc: &'static str) -> Parameter {
    Parameter { name, default, kind: Kind::Span, doc }
}

const fn choice(
    name: &'static str,
    default: &'static str,
    words: &'static [&'static str],
    doc: &'static str,
) -> Parameter {
    Parameter { name, default, kind: Kind::Choice(words), doc }
}

const fn count(
    name: &'static str,
    default: &'static str,
    (min, max): (u64, u64),
    doc: &'static str,
) -> Parameter {
    Parameter { name, default, kind: Kind::Count { min, max }, doc }
}

const fn number(
    name: &'static str,
    default: &'static str,
    (min, max, unit): (f64, f64, &'static str),
    doc: &'static str,
) -> Parameter {
    Parameter { name, default, kind: Kind::Number { min, max, unit }, doc }
}

const PRESET: Parameter = choice(
    "preset",
    "plain",
    PRESET_NAMES,
    "A reading of everything that the paper leaves open: plain and paper-fit are two in which most \
     of its claims hold, literal takes its words and today's RFCs as they stand. What is set beside it goes on \
     top.",
);
const QUEUE: Parameter = choice(
    "queue",
    "auto",
    QUEUES,
    "The bottleneck's queueing discipline, the same in both directions. auto is drop-tail, or what `cc` \
     needs: encn, jersey and edctcp their own, dctcp a marking threshold.",
);
const CC: Parameter = choice(
    "cc",
    "auto",
    CONTROLS,
    "Congestion control of every flow. auto is reno, or what `queue` needs: encn, jersey, edctcp.",
);
const DURATION: Parameter = span("duration", "30s", "Simulated time.");
const FLOWS: Parameter = count("flows", "3", (1, 26), "TCP flows, named A, B, C, ...");
const RATE: Parameter = Parameter {
    name: "rate",
    default: "1500kbit",
    kind: Kind::Rate,
    doc: "Rate of the bottleneck, in each direction.",
};
const DELAY: Parameter = span("delay", "5ms", "Propagation delay of the bottleneck.");
const BUFFER: Parameter =
    count("buffer", "17", (1, 100_000), "Packets that each router can queue, Q in the paper.");
const SERVICE: Parameter = choice(
    "service",
    "beside",
    &["beside", "within"],
    "Whether the packet in service counts beside the buffer's packets or within them.",
);
const ACCESS_RATE: Parameter = Parameter {
    name: "access_rate",
    default: "10mbit",
    kind: Kind::Rate,
    doc: "Rate of every access link.",
};
const TX_ACCESS: Parameter =
    span("tx_access", "2ms", "Propagation delay between each TCP sender and its router.");
const RX_ACCESS: Parameter = span(
    "rx_access",
    "33ms",
    "Propagation delay between each TCP receiver and its router. The paper gives 33 ms for the daisy \
     chain and none for the dumbbell.",
);
const RX_SPREAD: Parameter =
    span("rx_spread", "0", "Added to rx_access from each flow to the next.");
const NCS_ACCESS: Parameter = span(
    "ncs_access",
    "0",
    "Propagation delay between plant and router, and between controller and router. From 2 to 3 ms on, \
     RED and CoDel miss the threshold always.",
);
const PACKET: Parameter = count(
    "packet",
    "1000",
    (100, 9000),
    "Bytes of a full TCP packet on the wire, 40 bytes of headers included. An ACK has 40.",
);
const RWND: Parameter = count("rwnd", "64", (1, 10_000), "Receive window, in packets.");
const IW: Parameter = count("iw", "1", (1, 100), "Initial window, in segments.");
const SSTHRESH: Parameter = count(
    "ssthresh",
    "0",
    (0, 10_000),
    "Initial slow-start threshold, in segments; 0 for the paper's: 30, or 16 with encn and ance.",
);
const RECOVERY: Parameter = choice(
    "recovery",
    "newreno",
    &["reno", "newreno", "sack"],
    "Loss recovery: classic Reno (one loss per window), NewReno (RFC 6582) or SACK (RFC 6675).",
);
const DELACK: Parameter = choice(
    "delack",
    "off",
    &["off", "on"],
    "Receivers acknowledge every segment, or every second one with a timer of 200 ms.",
);
const RTO_MIN: Parameter =
    span("rto_min", "1s", "Lower bound of the retransmission time-out (RFC 6298 section 2.4).");
const START: Parameter = choice(
    "start",
    "fixed",
    &["fixed", "random"],
    "When flow i starts: at i times start_spread, or uniformly in [0, start_spread], drawn for each \
     replication.",
);
const START_SPREAD: Parameter = span("start_spread", "0", "See `start`.");
const HOST_JITTER: Parameter = span(
    "host_jitter",
    "500us",
    "Processing time that each TCP host adds to each packet it sends, uniform on [0, this].",
);
const ECN: Parameter = choice(
    "ecn",
    "on",
    &["on", "off"],
    "Whether TCP is ECN-capable. Without, the managed queues drop where they would mark.",
);
const ECN_ECHO: Parameter = choice(
    "ecn_echo",
    "rfc3168",
    &["rfc3168", "each-ack"],
    "How Reno hears of marks: echoed until it says that it has reduced its window, which meanwhile stands \
     (RFC 3168), or by the ACK of the marked packet alone, as a simple model of TCP has it.",
);
const NCS_EARLY: Parameter = choice(
    "ncs_early",
    "exempt",
    &["exempt", "drop"],
    "What a managed queue does to a packet of the control loop, which is not ECN-capable, where it \
     would mark a TCP packet.",
);
const QMIN: Parameter = number(
    "qmin",
    "3",
    (0.0, 10_000.0, "packets"),
    "Qmin of ANCE and ENCN: below it the network is not congested.",
);
const BF_FLOOR: Parameter = number(
    "bf_floor",
    "3",
    (0.0, 1000.0, "ACKs"),
    "Least value of the Balance Fairness variable of ANCE and ENCN. The paper has none; with 1 the \
     queue runs dry.",
);
const SLOW_START: Parameter = choice(
    "slow_start",
    "auto",
    &["auto", "algorithm-1", "prose"],
    "When ANCE and ENCN leave slow start for W = min(rwnd, ssthresh): on congestion, as Algorithm 1 says, \
     or on its absence, as the text says. auto is algorithm-1 for ANCE and prose for ENCN.",
);
const ANCE_BANDWIDTH: Parameter = choice(
    "ance_bandwidth",
    "estimated",
    &["estimated", "true"],
    "B of equation 1: estimated by equation 2, or the bottleneck's rate.",
);
const ANCE_EQUATION_2: Parameter = choice(
    "ance_equation_2",
    "corrected",
    &["corrected", "ack-length", "literal"],
    "Equation 2: acknowledged bytes over the least gap between ACKs; the ACK's own 40 bytes over it; or \
     times it, as printed, which has no unit of a rate.",
);
const ANCE_SPACING: Parameter = choice(
    "ance_spacing",
    "smallest",
    &["smallest", "second-smallest", "per-round-trip"],
    "The least gap between ACKs of equation 2: ever, as written, so that two ACKs back to back decide it \
     for good; the second least; or the least of each round trip.",
);
const RED_WEIGHT: Parameter =
    number("red_weight", "0.002", (0.000_001, 1.0, "share"), "Weight of RED's average, Wq.");
const RED_PMAX: Parameter =
    number("red_pmax", "0.1", (0.0, 1.0, "probability"), "RED's marking probability at max_th.");
const RED_MIN: Parameter =
    number("red_min", "4.25", (0.0, 100_000.0, "packets"), "RED's min_th; the paper's Q/4.");
const RED_MAX: Parameter =
    number("red_max", "12.75", (0.0, 100_000.0, "packets"), "RED's max_th; the paper's 3Q/4.");
const RED_COUNT: Parameter = choice(
    "red_count",
    "geometric",
    &["geometric", "uniform"],
    "Gaps between RED's marks: each packet for itself, or spread by the count since the last mark as in \
     the 1993 article.",
);
const RED_ABOVE: Parameter = choice(
    "red_above",
    "drop",
    &["drop", "mark", "gentle"],
    "RED above max_th: drop, mark, or the gentle variant.",
);
const CODEL: Parameter = choice(
    "codel",
    "article-2012",
    &["article-2012", "rfc8289"],
    "CoDel's control law on return to dropping: of the article of 2012, or of RFC 8289.",
);
const CODEL_TARGET: Parameter = span("codel_target", "5ms", "CoDel's target.");
const CODEL_INTERVAL: Parameter = span("codel_interval", "100ms", "CoDel's interval.");
const PIE: Parameter = choice(
    "pie",
    "rfc8033",
    &["rfc8033", "hpsr2013"],
    "PIE of RFC 8033, or with the constants of the article of 2013.",
);
const PIE_TARGET: Parameter = span("pie_target", "20ms", "PIE's target delay.");
const PIE_RATE: Parameter = choice(
    "pie_rate",
    "known",
    &["known", "measured"],
    "PIE's departure rate: the link's, or measured with a threshold of 16 kB, which this buffer never \
     reaches.",
);
const JERSEY_THRESHOLD: Parameter = number(
    "jersey_threshold",
    "5",
    (0.0, 100_000.0, "packets"),
    "TCP-Jersey's router warns while its average queue is above this.",
);
const ACTUATION: Parameter = choice(
    "actuation",
    "period-ended",
    &["period-ended", "tick", "arrival"],
    "Which command acts on the motor: at each tick the newest that has arrived, applied to the period \
     just ended (the presets in which the paper's claims hold); applied to the period that begins; or \
     each from its arrival on.",
);
const PHASE: Parameter = choice(
    "phase",
    "random",
    &["random", "fixed"],
    "Between the ticks of plant and controller: uniform in one sampling period, drawn for each \
     replication, or none.",
);
const INTEGRATION: Parameter = choice(
    "integration",
    "forward-euler",
    &["forward-euler", "backward-euler", "tustin"],
    "How the controller integrates.",
);
const MISSING: Parameter = choice(
    "missing",
    "hold",
    &["hold", "zero"],
    "What the actuator applies and the controller assumes where no packet came for a whole period.",
);
const SATURATION: Parameter = number(
    "saturation",
    "1000000",
    (0.001, 1e6, "V"),
    "Bound of the control signal; 24 for the motor's own supply.",
);
const DCTCP_K: Parameter =
    count("dctcp_k", "3", (1, 100_000), "Marking threshold K of DCTCP and E-DCTCP, in packets.");

/// Parameters of the daisy chain.
pub(super) const DAISY: &[Parameter] = &SHARED;

/// Parameters of the dumbbell: the daisy chain's, several flows, and the control loop.
pub(super) const DUMBBELL: &[Parameter] = &{
    let mut all = [PRESET; SHARED.len() + OWN.len()];
    let mut index = 0;
    while index < all.len() {
        all[index] = if index < SHARED.len() { SHARED[index] } else { OWN[index - SHARED.len()] };
        index += 1;
    }
    all
};

const SHARED: [Parameter; 43] = [
    PRESET,
    QUEUE,
    CC,
    DURATION,
    RATE,
    DELAY,
    BUFFER,
    SERVICE,
    ACCESS_RATE,
    TX_ACCESS,
    RX_ACCESS,
    PACKET,
    RWND,
    IW,
    SSTHRESH,
    RECOVERY,
    DELACK,
    RTO_MIN,
    START,
    START_SPREAD,
    HOST_JITTER,
    ECN,
    ECN_ECHO,
    QMIN,
    BF_FLOOR,
    SLOW_START,
    ANCE_BANDWIDTH,
    ANCE_EQUATION_2,
    ANCE_SPACING,
    RED_WEIGHT,
    RED_PMAX,
    RED_MIN,
    RED_MAX,
    RED_COUNT,
    RED_ABOVE,
    CODEL,
    CODEL_TARGET,
    CODEL_INTERVAL,
    PIE,
    PIE_TARGET,
    PIE_RATE,
    JERSEY_THRESHOLD,
    DCTCP_K,
];

/// The dumbbell's own.
const OWN: [Parameter; 9] =
    [FLOWS, RX_SPREAD, NCS_ACCESS, NCS_EARLY, ACTUATION, PHASE, INTEGRATION, MISSING, SATURATION];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_and_every_congestion_control_can_be_run() {
        let run = |name: &str, word: &str| {
            let mut settings = Settings::defaults("dumbbell", DUMBBELL);
            settings.set(name, word).unwrap();
            settings.set("duration", "2s").unwrap();
            let replication = super::super::run(&settings, 1, None);
            let throughput = replication.metrics.number("throughput_bps");
            assert!((3e5..1.5e6).contains(&throughput), "{name}={word}: {throughput}");
        };
        for word in QUEUES {
            run("queue", word);
        }
        for word in CONTROLS {
            run("cc", word);
        }
        assert_eq!(CONTROLS.len(), 1 + acklab_core::cc::Algorithm::NAMES.len());
        assert_eq!(QUEUES.len(), 1 + acklab_core::queue::Discipline::NAMES.len());
    }

    #[test]
    fn every_preset_fits_its_parameters_and_yields_to_what_is_set_by_hand() {
        for (scenario, parameters) in [("daisy", DAISY), ("dumbbell", DUMBBELL)] {
            for preset in PRESET_NAMES {
                let mut settings = Settings::defaults(scenario, parameters);
                settings.set("preset", preset).unwrap();
                settings.set("rx_access", "11ms").unwrap();
                let resolved = resolve(&settings);
                assert_eq!(resolved.span("rx_access").as_nanos(), 11_000_000);
            }
        }
        assert_eq!(pairing("auto", "auto"), ("drop-tail", "reno"));
        assert_eq!(pairing("auto", "ance"), ("drop-tail", "ance"));
        assert_eq!(pairing("encn", "auto"), ("encn", "encn"));
        assert_eq!(pairing("auto", "edctcp"), ("edctcp", "edctcp"));
        assert_eq!(pairing("red", "cubic"), ("red", "cubic"));
        for (_, values) in PRESETS {
            for (name, _) in *values {
                assert!(DUMBBELL.iter().any(|parameter| parameter.name == *name), "{name}");
            }
        }
    }
}

//! `nagle-delack`: a periodic sender under Nagle's algorithm and a receiver that delays ACKs.
//!
//! The experiment of Al-Hammouri and Olsen, "A dataset for buffering delays due to the interaction
//! between the Nagle algorithm and the delayed acknowledgement algorithm in cyber-physical systems
//! communication", Data in Brief 39 (2021) 107530: a QNX host writes 1005 messages of 100 bytes,
//! one every 100 ms, to one of four systems over five round trips. What must come out is
//! [`crate::closed_form`].

use acklab_core::event::Interest;
use acklab_core::packet::Addr;
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_sim::app::{MessageSource, Reader, ReaderModel, Schedule};
use acklab_sim::{End, Observer, World};

use super::path::{Path, PathSpec};
use super::recorder::Recorder;
use super::system;
use crate::closed_form::CycleLaw;
use acklab_lab::expected::{Comparison, Expected};
use acklab_lab::measured::MetricDoc;
use acklab_lab::parameter::{Kind, Parameter, SetError, Settings};
use acklab_lab::scenario::{Axis, Capture, CapturePoint, Flow, Replication, Scenario};

/// A periodic sender and a receiver that delays ACKs.
#[derive(Clone, Copy, Debug)]
pub struct NagleDelack;

impl Scenario for NagleDelack {
    fn name(&self) -> &'static str {
        "nagle-delack"
    }

    fn summary(&self) -> &'static str {
        "small messages at a period: what Nagle's algorithm and delayed ACKs add to their delay"
    }

    fn doc(&self) -> &'static str {
        "The sender accepts a connection and writes `messages` messages of `message` bytes, one per \
         `period`; the receiver reads and never answers. With Nagle on, a message waits until the \
         ACK of the one before it, which comes a round trip plus the receiver's delay later: with \
         C = rtt + delay longer than the period, messages wait up to C, and C/period of them leave \
         in one segment. On ideal clocks (the default) their delays are a lattice of step \
         gcd(C, period); any `jitter` or `overhead` spreads them uniformly over 0 to C. Hosts take \
         no time but `overhead`; the network drops nothing but `loss`."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn metrics(&self) -> &'static [MetricDoc] {
        METRICS
    }

    fn main_metric(&self) -> &'static str {
        "buffering_delay_ms"
    }

    fn side_metrics(&self) -> &'static [&'static str] {
        &["messages_per_segment", "segments", "pure_acks"]
    }

    fn replications(&self) -> u64 {
        10
    }

    fn grid(&self) -> &'static [Axis] {
        &[
            Axis {
                parameter: "receiver",
                values: &["qnx-7.0", "windows-7", "linux", "freebsd-12.1"],
            },
            Axis { parameter: "nagle", values: &["on", "off"] },
            Axis { parameter: "rtt", values: &["10ms", "30ms", "100ms", "500ms", "1000ms"] },
        ]
    }

    fn expected(&self, settings: &Settings) -> Option<Expected> {
        expected(settings)
    }

    fn figures(&self) -> &'static [Comparison] {
        NAGLE_DELACK_FIGURES
    }

    fn terms(&self) -> &'static [&'static str] {
        &["nagle", "delayed-ack", "interaction", "hold", "rtt", "cdf", "quantile"]
    }

    fn check(&self, settings: &Settings) -> Result<(), SetError> {
        let refuse = |name: &str, reason: &str| {
            let text = settings.span(name).to_string();
            Err(SetError::BadValue { name: name.into(), text, reason: reason.into() })
        };
        if settings.span("period").is_zero() {
            return refuse("period", "must be longer than 0");
        }
        if settings.span("jitter") > settings.span("period") {
            return refuse("jitter", "must not exceed the period");
        }
        if settings.choice("reads") == "every" && settings.span("reads-delay").is_zero() {
            return refuse("reads-delay", "must be longer than 0 with reads=every");
        }
        Ok(())
    }

    fn packets(&self, settings: &Settings) -> u64 {
        let segments = 1 + settings.count("message") / SMALLEST_MSS;
        let sent = settings.count("messages").saturating_mul(segments);
        if settings.choice("reads") != "every" {
            return sent;
        }
        let end = end_of_time(&schedule(settings, Span::ZERO, 0.0), &path_times(settings));
        let polls = end.as_nanos() / settings.span("reads-delay").as_nanos().max(1);
        sent.saturating_add(polls)
    }

    fn run(&self, settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication {
        let (at, tap) = capture.map_or((None, None), |Capture { at, tap }| (Some(at), Some(tap)));
        let messages = settings.count("messages");
        let (mut recorder, events) =
            simulate(settings, seed, at, |sender| Recorder::new(sender, messages, tap));
        let hash = recorder.hash();
        let longest_hold = recorder.take_longest_hold();
        let metrics = recorder.into_metrics();
        let flows = vec![Flow { id: "sender-receiver".into(), metrics: metrics.clone() }];
        Replication { hash, events, metrics, flows, longest_hold }
    }
}

/// The seed dataset's figures: four receivers, one receiver over five round trips, Nagle on and off.
pub const NAGLE_DELACK_FIGURES: &[Comparison] = &[
    Comparison {
        title: "Figure 1: four receivers, round trip 30 ms, Nagle’s algorithm on",
        caption: "The receiver’s system alone decides how long the sender keeps messages back: its \
                  delayed ACK is added to the round trip.",
        fixed: &[("nagle", "on"), ("rtt", "30ms")],
        series: "receiver",
    },
    Comparison {
        title: "Figure 2: a Windows receiver over five round-trip times, Nagle’s algorithm on",
        caption: "Messages wait up to one cycle, the round trip plus the receiver’s 200 ms. Up to there \
                  the delay is spread evenly: in steps on ideal clocks, as a straight line on \
                  drifting ones.",
        fixed: &[("receiver", "windows-7"), ("nagle", "on")],
        series: "rtt",
    },
    Comparison {
        title: "Figure 3: a QNX receiver, round trip 10 ms, Nagle’s algorithm on and off",
        caption: "With Nagle’s algorithm off every message leaves at once.",
        fixed: &[("receiver", "qnx-7.0"), ("rtt", "10ms")],
        series: "nagle",
    },
];

/// Runs one replication under an observer of the caller's, made for the sender's address; returns
/// it with the number of events. Packets are shown to it at the capture point, if one is given.
pub fn simulate<O: Observer>(
    settings: &Settings,
    seed: u64,
    capture: Option<CapturePoint>,
    observer: impl FnOnce(Addr) -> O,
) -> (O, u64) {
    let path = Path::new(&PathSpec {
        rtt: settings.span("rtt"),
        rate: settings.rate("rate"),
        overhead: settings.span("overhead"),
        loss: settings.number("loss") / 100.0,
    });
    let mut draws = Rng::named(seed, "nagle-delack/start");
    let start = span_below(&mut draws, settings.span("phase"));
    let tick_phase = if settings.span("phase").is_zero() { 0.0 } else { draws.uniform() };
    let skew_ppm = (2.0 * draws.uniform() - 1.0) * settings.number("skew");
    let schedule = schedule(settings, start, skew_ppm);
    let source = MessageSource::new(schedule, Rng::named(seed, "app/sender"));
    let reads_delay = settings.span("reads-delay");
    let reader = Reader::new(
        match settings.choice("reads") {
            "every" => ReaderModel::Every(reads_delay),
            "after" => ReaderModel::After(reads_delay),
            "never" => ReaderModel::Never,
            _ => ReaderModel::Promptly,
        },
        schedule.bytes,
    );
    let sender = End {
        addr: path.sender,
        config: system::sender(settings.choice("sender"), settings.choice("nagle")),
        isn: Seq(draws.next_u64() as u32),
        app: Box::new(source),
    };
    let receiver = End {
        addr: path.receiver,
        config: system::receiver(
            settings.choice("receiver"),
            settings.span("timer"),
            settings.span("jiffy"),
            tick_phase,
        ),
        isn: Seq(draws.next_u64() as u32),
        app: Box::new(reader),
    };
    let interest = Interest::MESSAGE.with(Interest::TRANSPORT);
    let mut world = World::new(&path.topology, seed, interest, observer(path.sender));
    if let Some(point) = capture {
        world.tap(path.node_at(point));
    }
    world.connect(receiver, sender);
    world.run_until(end_of_time(&schedule, &path_times(settings)));
    let events = world.events();
    (world.into_observer(), events)
}

fn schedule(settings: &Settings, phase: Span, skew_ppm: f64) -> Schedule {
    Schedule {
        count: settings.count("messages"),
        bytes: settings.count("message") as u32,
        period: settings.span("period"),
        jitter: settings.span("jitter"),
        skew_ppm,
        phase,
    }
}

/// When a run that has not ended by itself (a reader that never reads) is ended: the writes, twice
/// over for jitter and skew, and then time for the longest timers of loss recovery.
fn end_of_time(schedule: &Schedule, path: &[Span]) -> Time {
    let writing = schedule.period * schedule.count * 2 + schedule.phase;
    path.iter().fold(Time::ZERO + writing + Span::from_secs(600), |end, span| end + *span * 100)
}

fn path_times(settings: &Settings) -> [Span; 3] {
    ["rtt", "overhead", "reads-delay"].map(|name| settings.span(name))
}

fn span_below(rng: &mut Rng, bound: Span) -> Span {
    Span::from_nanos(rng.below(bound.as_nanos()))
}

/// The closed form, where it holds: nothing is lost, the receiver reads promptly and delays every
/// ACK by the same time, and no cycle fills a segment.
fn expected(settings: &Settings) -> Option<Expected> {
    let period = settings.span("period");
    if settings.choice("nagle") == "off" {
        return Some(Expected { law: vec![(0.0, 1.0)], ..Expected::default() });
    }
    let plain = settings.choice("reads") == "promptly" && settings.number("loss") == 0.0;
    let delay = system::constant_delay(settings.choice("receiver"), settings.span("timer"))?;
    let cycle = settings.span("rtt") + settings.span("overhead") + delay;
    let filled = settings.count("message") * cycle.as_nanos().div_ceil(period.as_nanos());
    if !plain || filled > SMALLEST_MSS {
        return None;
    }
    let law = CycleLaw::new(cycle, Span::ZERO, period);
    let cycle_ms = cycle.as_millis_f64();
    Some(if cycle < period {
        Expected { law: vec![(0.0, 1.0)], ..Expected::default() }
    } else {
        // Where the cycle is one period, the least overhead decides whether anything waits.
        Expected {
            mean_low: law.lattice_mean_ms(),
            mean_high: cycle_ms / 2.0,
            max: cycle_ms,
            law: vec![(0.0, 0.0), (cycle_ms, 1.0)],
        }
    })
}

/// Ethernet's 1500 bytes less headers with timestamps: what fills a segment, bytes.
pub(super) const SMALLEST_MSS: u64 = 1448;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "receiver",
        default: "linux",
        kind: Kind::Choice(system::RECEIVERS),
        doc: "The receiving system, whose ACK policy it is about. every-segment never delays; \
              fixed-timer delays by `timer`, or until the second segment.",
    },
    Parameter {
        name: "nagle",
        default: "on",
        kind: Kind::Choice(system::NAGLE),
        doc: "Nagle's algorithm at the sender: on is the sending system's own variant, off is \
              TCP_NODELAY. They differ in the tail of a message longer than a segment: classic (RFC \
              896, Windows) holds it, bsd (FreeBSD, QNX) holds it unless the connection was idle, \
              minshall (Linux, macOS) lets it go.",
    },
    Parameter {
        name: "rtt",
        default: "30ms",
        kind: Kind::Span,
        doc: "Round-trip propagation delay, half of it each way.",
    },
    Parameter {
        name: "sender",
        default: "qnx-7.0",
        kind: Kind::Choice(system::SENDERS),
        doc: "The sending system.",
    },
    Parameter {
        name: "period",
        default: "100ms",
        kind: Kind::Span,
        doc: "From one write to the next.",
    },
    Parameter {
        name: "message",
        default: "100",
        kind: Kind::Count { min: 1, max: 1_000_000 },
        doc: "Bytes of a message.",
    },
    Parameter {
        name: "messages",
        default: "1005",
        kind: Kind::Count { min: 1, max: 10_000_000 },
        doc: "Messages in a replication.",
    },
    Parameter {
        name: "reads",
        default: "promptly",
        kind: Kind::Choice(&["promptly", "every", "after", "never"]),
        doc: "When the receiving application reads: at once; every `reads-delay`, whatever has \
              come; `reads-delay` after data came; or never. Linux acknowledges on reading.",
    },
    Parameter {
        name: "reads-delay",
        default: "10ms",
        kind: Kind::Span,
        doc: "The time that reads=every and reads=after mean.",
    },
    Parameter {
        name: "timer",
        default: "40ms",
        kind: Kind::Span,
        doc: "Delay of receiver=fixed-timer.",
    },
    Parameter {
        name: "jiffy",
        default: "0",
        kind: Kind::Span,
        doc: "Grid on which receiver=linux lets its timers expire (4ms where HZ is 250); 0 for \
              exact timers.",
    },
    Parameter {
        name: "jitter",
        default: "0",
        kind: Kind::Span,
        doc: "Each gap between writes is drawn uniformly from period ± jitter; the deviations add \
              up, as in a loop that sleeps.",
    },
    Parameter {
        name: "skew",
        default: "0",
        kind: Kind::Number { min: 0.0, max: 100_000.0, unit: "ppm" },
        doc: "The sender's clock runs fast or slow by up to this much, drawn uniformly for each \
              replication.",
    },
    Parameter {
        name: "phase",
        default: "100ms",
        kind: Kind::Span,
        doc: "The first write comes up to this long after the connection, drawn uniformly for each \
              replication, as is the phase of a free-running ACK tick; 0 starts all alike.",
    },
    Parameter {
        name: "overhead",
        default: "0",
        kind: Kind::Span,
        doc: "What hosts add to each cycle beside round trip and timer: time from a segment's \
              arrival at the receiver until its TCP acts on it.",
    },
    Parameter { name: "rate", default: "1gbit", kind: Kind::Rate, doc: "Rate of every link." },
    Parameter {
        name: "loss",
        default: "0",
        kind: Kind::Number { min: 0.0, max: 90.0, unit: "%" },
        doc: "Share of packets lost half way, in each direction.",
    },
];

pub(super) const MESSAGE_METRICS: [MetricDoc; 12] = [
    MetricDoc {
        name: "buffering_delay_ms",
        unit: "ms",
        doc: "From a message's write to its last byte's first departure: what the sender's TCP \
              added. One sample per message.",
    },
    MetricDoc {
        name: "delivery_delay_ms",
        unit: "ms",
        doc: "From a message's write until the receiving application has read it whole. One sample \
              per message.",
    },
    MetricDoc {
        name: "ack_delay_ms",
        unit: "ms",
        doc: "How long the oldest unacknowledged segment had waited at the receiver when its ACK \
              left. One sample per ACK.",
    },
    MetricDoc {
        name: "hold_ms",
        unit: "ms",
        doc: "How long Nagle's algorithm held the oldest byte of a hold. One sample per hold.",
    },
    MetricDoc { name: "holds", unit: "holds", doc: "Holds by Nagle's algorithm; summed." },
    MetricDoc { name: "messages", unit: "messages", doc: "Messages written; summed." },
    MetricDoc {
        name: "undelivered_messages",
        unit: "messages",
        doc: "Messages written and not read by the receiver before the end; summed.",
    },
    MetricDoc {
        name: "segments",
        unit: "segments",
        doc: "Segments with data that the sender sent, retransmissions left out; the handshake and bare \
              ACKs are no data. As a capture at the sender shows them; summed.",
    },
    MetricDoc {
        name: "messages_per_segment",
        unit: "messages/segment",
        doc: "Messages over segments, of the sums.",
    },
    MetricDoc {
        name: "retransmissions",
        unit: "segments",
        doc: "Data segments that the sender sent again; summed.",
    },
    MetricDoc {
        name: "pure_acks",
        unit: "segments",
        doc: "Segments without data, SYN, FIN or RST that the receiver sent, the handshake's ACK among \
              them: the pure ACKs of a capture at the receiver; summed.",
    },
    MetricDoc {
        name: "timer_acks",
        unit: "segments",
        doc: "ACKs that the receiver's delayed-ACK timer sent; summed.",
    },
];

const METRICS: &[MetricDoc] = &MESSAGE_METRICS;

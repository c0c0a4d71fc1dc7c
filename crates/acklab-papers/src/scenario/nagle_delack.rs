//! `nagle-delack`: a periodic sender under Nagle's algorithm and a receiver that delays ACKs.
//!
//! The experiment of Al-Hammouri and Olsen, "A dataset for buffering delays due to the interaction
//! between the Nagle algorithm and the delayed acknowledgement algorithm in cyber-physical systems
//! communication", Data in Brief 39 (2021) 107530: a QNX host writes 1005 messages of 100 bytes,
//! one every 100 ms, to one of four systems over five round trips. What must come out is
//! [`crate::closed_form`].

use acklab_core::ack::delayed;
use acklab_core::event::Interest;
use acklab_core::packet::Addr;
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::app::{MessageSource, Reader, ReaderModel, Schedule};
use acklab_sim::{End, Observer, World};
use acklab_tcp::System;

use super::path::{Path, PathSpec};
use super::recorder::Recorder;
use super::system::{self, NagleChoice, Receiver};
use crate::closed_form::CycleLaw;
use acklab_lab::expected::{Comparison, Expected};
use acklab_lab::measured::MetricDoc;
use acklab_lab::metrics;
use acklab_lab::parameter::{SetError, Settings};
use acklab_lab::scenario::{Axis, Capture, CapturePoint, Declaration, Flow, Replication, Scenario};

/// A periodic sender and a receiver that delays ACKs.
#[derive(Clone, Copy, Debug)]
pub struct NagleDelack;

const DECLARATION: Declaration = Declaration {
    name: "nagle-delack",
    summary: "small messages at a period: what Nagle's algorithm and delayed ACKs add to their delay",
    doc: "The sender accepts a connection and writes `messages` messages of `message` bytes, one per \
          `period`; the receiver reads and never answers. With Nagle on, a message waits until the \
          ACK of the one before it, which comes a round trip plus the receiver's delay later: with \
          C = rtt + delay longer than the period, messages wait up to C, and C/period of them leave \
          in one segment. On ideal clocks (the default) their delays are a lattice of step \
          gcd(C, period); any `jitter` or `overhead` spreads them uniformly over 0 to C. Hosts take \
          no time but `overhead`; the network drops nothing but `loss`.",
    parameters: Set::PARAMETERS,
    metrics: &MESSAGE_METRICS,
    main_metric: "buffering_delay_ms",
    side_metrics: &["messages_per_segment", "segments", "pure_acks"],
    replications: 10,
    grid: &[
        Axis { parameter: "receiver", values: &["qnx-7.0", "windows-7", "linux", "freebsd-12.1"] },
        Axis { parameter: "nagle", values: &["on", "off"] },
        Axis { parameter: "rtt", values: &["10ms", "30ms", "100ms", "500ms", "1000ms"] },
    ],
    figures: NAGLE_DELACK_FIGURES,
    terms: &["nagle", "delayed-ack", "interaction", "hold", "rtt", "cdf", "quantile"],
    ..Declaration::EMPTY
};

impl Scenario for NagleDelack {
    fn declaration(&self) -> &Declaration {
        &DECLARATION
    }

    fn expected(&self, settings: &Settings) -> Option<Expected> {
        settings.read::<Set>().expected()
    }

    fn check(&self, settings: &Settings) -> Result<(), SetError> {
        let set: Set = settings.read();
        if set.period.is_zero() {
            return Err(settings.refuse("period", "must be longer than 0"));
        }
        if set.jitter > set.period {
            return Err(settings.refuse("jitter", "must not exceed the period"));
        }
        if set.reads == Reads::Every && set.reads_delay.is_zero() {
            return Err(settings.refuse("reads-delay", "must be longer than 0 with reads=every"));
        }
        system::check(settings, &system::sender(set.sender, set.nagle))
    }

    fn packets(&self, settings: &Settings) -> u64 {
        let set: Set = settings.read();
        let full = set.messages.saturating_mul(1 + u64::from(set.message) / SMALLEST_MSS);
        if set.reads != Reads::Every {
            return full;
        }
        let end = set.end_of_time(&set.schedule(Span::ZERO, 0.0));
        full.saturating_add(end.as_nanos() / set.reads_delay.as_nanos().max(1))
    }

    fn run(&self, settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication {
        let (at, tap) = capture.map_or((None, None), |Capture { at, tap }| (Some(at), Some(tap)));
        let messages = settings.read::<Set>().messages;
        let (mut recorder, events) =
            simulate(settings, seed, at, |sender| Recorder::new(sender, messages, tap));
        let hash = recorder.hash();
        let longest_hold = recorder.take_longest_hold();
        let metrics = recorder.into_metrics();
        let flows = vec![Flow { id: "sender-receiver".into(), metrics: metrics.clone() }];
        Replication { hash, events, metrics, flows, groups: vec![], longest_hold }
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
    let set: Set = settings.read();
    let Set { rtt, rate, overhead, loss, .. } = set;
    let path = Path::new(&PathSpec { rtt, rate, overhead, loss: loss / 100.0 });
    let mut draws = Rng::named(seed, "nagle-delack/start");
    let start = Span::from_nanos(draws.below(set.phase.as_nanos()));
    let tick_phase = if set.phase.is_zero() { 0.0 } else { draws.uniform() };
    let skew_ppm = (2.0 * draws.uniform() - 1.0) * set.skew;
    let schedule = set.schedule(start, skew_ppm);
    let source = MessageSource::new(schedule, Rng::named(seed, "app/sender"));
    let reader = match set.reads {
        Reads::Promptly => ReaderModel::Promptly,
        Reads::Every => ReaderModel::Every(set.reads_delay),
        Reads::After => ReaderModel::After(set.reads_delay),
        Reads::Never => ReaderModel::Never,
    };
    let sender = End {
        addr: path.sender,
        config: system::sender(set.sender, set.nagle),
        isn: Seq(draws.next_u64() as u32),
        app: Box::new(source),
    };
    let receiver = End {
        addr: path.receiver,
        config: set.receiver.config(set.fixed(), set.jiffy, tick_phase),
        isn: Seq(draws.next_u64() as u32),
        app: Box::new(Reader::new(reader, schedule.bytes)),
    };
    let interest = Interest::MESSAGE.with(Interest::TRANSPORT);
    let mut world = World::new(&path.topology, seed, interest, observer(path.sender));
    if let Some(point) = capture {
        world.tap(path.node_at(point));
    }
    world.connect(receiver, sender);
    world.run_until(set.end_of_time(&schedule));
    let events = world.events();
    (world.into_observer(), events)
}

impl Set {
    const fn fixed(&self) -> delayed::Options {
        system::fixed(self.every, self.timer, self.quick)
    }

    fn schedule(&self, phase: Span, skew_ppm: f64) -> Schedule {
        Schedule {
            count: self.messages,
            bytes: self.message,
            period: self.period,
            jitter: self.jitter,
            skew_ppm,
            phase,
        }
    }

    /// When a run that has not ended by itself (a reader that never reads) is ended: the writes, twice
    /// over for jitter and skew, and then time for the longest timers of loss recovery.
    fn end_of_time(&self, schedule: &Schedule) -> Time {
        let writing = schedule.period * schedule.count * 2 + schedule.phase;
        let path = [self.rtt, self.overhead, self.reads_delay];
        path.iter().fold(Time::ZERO + writing + Span::from_secs(600), |end, span| end + *span * 100)
    }

    /// The closed form, where it holds: nothing is lost, the receiver reads promptly and delays every
    /// ACK by the same time, and no cycle fills a segment.
    fn expected(&self) -> Option<Expected> {
        let at_once = Expected { law: vec![(0.0, 1.0)], ..Expected::default() };
        if self.nagle == NagleChoice::Off {
            return Some(at_once);
        }
        let plain = self.reads == Reads::Promptly && self.loss == 0.0;
        let delay = self.receiver.constant_delay(self.fixed())?;
        let cycle = self.rtt + self.overhead + delay;
        let messages = cycle.as_nanos().div_ceil(self.period.as_nanos());
        if !plain || u64::from(self.message) * messages > SMALLEST_MSS {
            return None;
        }
        let law = CycleLaw::new(cycle, Span::ZERO, self.period);
        let cycle_ms = cycle.as_millis_f64();
        Some(if cycle < self.period {
            at_once
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
}

/// Ethernet's 1500 bytes less headers with timestamps: what fills a segment, bytes.
pub(super) const SMALLEST_MSS: u64 = 1448;

acklab_core::options! {
    /// What can be set.
    struct Set {
        /// The receiving system, whose ACK policy it is about. every-segment never delays;
        /// fixed-timer delays by `timer`, or until segment number `every`, once `quick` segments have come.
        receiver: Receiver = "linux",
        /// Nagle's algorithm at the sender: on is the sending system's own variant, off is
        /// TCP_NODELAY. They differ in the tail of a message longer than a segment: classic (RFC
        /// 896, Windows) holds it, bsd (FreeBSD, QNX) holds it unless the connection was idle,
        /// minshall (Linux, macOS) lets it go.
        nagle: NagleChoice = "on",
        /// Round-trip propagation delay, half of it each way.
        rtt: Span = "30ms",
        /// The sending system.
        sender: System = "qnx-7.0",
        /// From one write to the next.
        period: Span = "100ms",
        /// Bytes of a message.
        message: u32 as count(1, 1_000_000) = "100",
        /// Messages in a replication.
        messages: u64 as count(1, 10_000_000) = "1005",
        /// When the receiving application reads: at once; every `reads-delay`, whatever has come;
        /// `reads-delay` after data came; or never. Linux acknowledges on reading.
        reads: Reads = "promptly",
        /// The time that reads=every and reads=after mean.
        reads_delay "reads-delay": Span = "10ms",
        /// Delay of receiver=fixed-timer.
        timer: Span = "40ms",
        /// After how many segments receiver=fixed-timer acknowledges at once.
        every: u32 as count(1, 1_000_000) = "2",
        /// How many segments of a connection receiver=fixed-timer acknowledges at once before it delays the first.
        quick: u32 as count(0, 1_000_000) = "0",
        /// Grid on which receiver=linux lets its timers expire (4ms where HZ is 250); 0 for exact
        /// timers.
        jiffy: Span = "0",
        /// Each gap between writes is drawn uniformly from period ± jitter; the deviations add up,
        /// as in a loop that sleeps.
        jitter: Span = "0",
        /// The sender's clock runs fast or slow by up to this much, drawn uniformly for each
        /// replication.
        skew: f64 as number(0.0, 100_000.0, "ppm") = "0",
        /// The first write comes up to this long after the connection, drawn uniformly for each
        /// replication, as is the phase of a free-running ACK tick; 0 starts all alike.
        phase: Span = "100ms",
        /// What hosts add to each cycle beside round trip and timer: time from a segment's arrival
        /// at the receiver until its TCP acts on it.
        overhead: Span = "0",
        /// Rate of every link.
        rate: BitRate = "1gbit",
        /// Share of packets lost half way, in each direction.
        loss: f64 as number(0.0, 90.0, "%") = "0",
    }
}

acklab_core::words! {
    /// When the receiving application reads.
    enum Reads {
        Promptly = "promptly",
        Every = "every",
        After = "after",
        Never = "never",
    }
}

pub(super) const MESSAGE_METRICS: [MetricDoc; 12] = metrics! {
    /// From a message's write to its last byte's first departure: what the sender's TCP added. One
    /// sample per message.
    "buffering_delay_ms" in "ms";
    /// From a message's write until the receiving application has read it whole. One sample per
    /// message.
    "delivery_delay_ms" in "ms";
    /// How long the oldest unacknowledged segment had waited at the receiver when its ACK left. One
    /// sample per ACK.
    "ack_delay_ms" in "ms";
    /// How long Nagle's algorithm held the oldest byte of a hold. One sample per hold.
    "hold_ms" in "ms";
    /// Holds by Nagle's algorithm; summed.
    "holds" in "holds";
    /// Messages written; summed.
    "messages" in "messages";
    /// Messages written and not read by the receiver before the end; summed.
    "undelivered_messages" in "messages";
    /// Segments with data that the sender sent, retransmissions left out; the handshake and bare ACKs
    /// are no data. As a capture at the sender shows them; summed.
    "segments" in "segments";
    /// Messages over segments, of the sums.
    "messages_per_segment" in "messages/segment";
    /// Data segments that the sender sent again; summed.
    "retransmissions" in "segments";
    /// Segments without data, SYN, FIN or RST that the receiver sent, the handshake's ACK among them:
    /// the pure ACKs of a capture at the receiver; summed.
    "pure_acks" in "segments";
    /// ACKs that the receiver's delayed-ACK timer sent; summed.
    "timer_acks" in "segments";
};

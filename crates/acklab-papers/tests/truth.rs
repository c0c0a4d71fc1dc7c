//! Goal: the diagnosis says of simulated captures what the simulator knows to be true.
//! Method: every system, Nagle on and off, six round trips and three capture points, under two
//! patterns of traffic. The truth comes from the event stream (which ACK, sent for which reason,
//! ended each hold); the diagnosis sees only the packets. At least 98 % of the stalled cases must get
//! the right mechanism and timer (its length, and whether data arms it or a clock runs on its own), and no
//! case may be called stalled in which no hold was long enough to count ("short": every one ended sooner).

use std::collections::BTreeMap;
use std::fmt::Write;

use acklab_core::ack::Profile;
use acklab_core::event::{AckReason, Event, EventKind, Release};
use acklab_core::options::Word;
use acklab_core::packet::{Addr, NodeId, Packet};
use acklab_core::time::{Span, Time};
use acklab_lab::capture::CaptureFile;
use acklab_lab::parameter::Settings;
use acklab_lab::scenario::{self, CapturePoint};
use acklab_papers::scenario::SCENARIOS;
use acklab_sim::Observer;
use acklab_tcp::System;
use acklab_trace::capture::CaptureReader;
use acklab_trace::diagnosis::{Direction, Mechanism, PolicyKind};
use acklab_trace::{Diagnosis, Options, diagnose_reader};
use rayon::prelude::*;

const RTTS: [&str; 6] = ["1ms", "10ms", "30ms", "100ms", "500ms", "1000ms"];
const POINTS: [CapturePoint; 3] =
    [CapturePoint::Sender, CapturePoint::Middle, CapturePoint::Receiver];

/// Holds shorter than this are counted apart by the diagnosis.
const COUNTED: Span = Span::from_millis(10);

/// What happened, by the events.
struct Witness {
    sender: Addr,
    one_way: Span,
    acks: Vec<(Time, AckReason)>,
    held: BTreeMap<Mechanism, Span>,
    short_holds: u64,
    capture: CaptureFile<Vec<u8>>,
}

impl Witness {
    fn new(sender: Addr, one_way: Span) -> Self {
        let capture = CaptureFile::new(Vec::new()).expect("memory takes everything");
        Self { sender, one_way, acks: Vec::new(), held: BTreeMap::new(), short_holds: 0, capture }
    }

    /// The mechanism of a hold that ended at `now`: by the reason of the ACK that came then.
    fn mechanism(&self, now: Time, by: Release) -> Mechanism {
        if by == Release::Full {
            return Mechanism::MssFilled;
        }
        let sent = self.acks.iter().rev().find(|(sent, _)| *sent + self.one_way <= now);
        match sent {
            Some((_, AckReason::Timer)) => Mechanism::DelayedAckTimer,
            _ => Mechanism::AckClocked,
        }
    }

    /// What held most.
    fn truth(&self) -> Truth {
        match self.held.iter().max_by_key(|(_, held)| **held) {
            Some((mechanism, _)) => Truth::Stalled(*mechanism),
            None if self.short_holds > 0 => Truth::Short,
            None => Truth::None,
        }
    }
}

impl Observer for Witness {
    fn on_event(&mut self, event: &Event) {
        match event.kind {
            EventKind::AckSent { flow, reason, .. } if flow.remote == self.sender => {
                self.acks.push((event.time, reason));
            }
            EventKind::Released { flow, held, by, .. } if flow.local == self.sender => {
                if held < COUNTED {
                    self.short_holds += 1;
                    return;
                }
                let mechanism = self.mechanism(event.time, by);
                *self.held.entry(mechanism).or_default() += held;
            }
            _ => {}
        }
    }

    fn on_packet(&mut self, now: Time, _node: NodeId, packet: &Packet) {
        self.capture.write(now, packet).expect("memory takes everything");
    }
}

/// What was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    /// Nothing was held.
    None,
    /// Everything held was let go sooner than the diagnosis counts.
    Short,
    /// This held most.
    Stalled(Mechanism),
}

/// One case, judged.
struct Case {
    name: String,
    truth: Truth,
    found: Option<Mechanism>,
    timer_right: bool,
}

impl Case {
    fn is_right(&self) -> bool {
        self.found.is_some_and(|found| self.truth == Truth::Stalled(found)) && self.timer_right
    }

    fn is_stalled(&self) -> bool {
        matches!(self.truth, Truth::Stalled(_))
    }
}

fn judge(scenario_name: &str, receiver: &str, pairs: &str, point: CapturePoint) -> Case {
    let scenario = SCENARIOS.find(scenario_name).expect("a built-in scenario");
    let mut settings: Settings = scenario::defaults(scenario);
    for pair in pairs.split_whitespace() {
        settings.set_pair(pair).expect("a valid setting");
    }
    let one_way = settings.get::<Span>("rtt").expect("a round trip") / 2;
    let witness = |sender| Witness::new(sender, one_way);
    let simulate = match scenario_name {
        "nagle-delack" => acklab_papers::scenario::simulate_nagle_delack,
        _ => acklab_papers::scenario::simulate_write_write_read,
    };
    let (witness, _) = simulate(&settings, 1, Some(point), witness);
    let truth = witness.truth();
    let packets = witness.capture.finish().expect("memory takes everything");
    let mut reader = CaptureReader::new(packets.as_slice()).expect("our own capture");
    let diagnosis =
        diagnose_reader(&mut reader, &Options::default(), |_| ()).expect("our own capture");
    let direction = direction(&diagnosis);
    let found = direction
        .stalls
        .iter()
        .max_by(|a, b| a.seconds.total_cmp(&b.seconds))
        .map(|stall| stall.mechanism);
    let by_timer = truth == Truth::Stalled(Mechanism::DelayedAckTimer);
    let timer_right = !by_timer || is_timer_of(receiver, direction);
    let name = format!("{scenario_name} {pairs} at {point:?}: {}", policy(direction));
    Case { name, truth, found, timer_right }
}

/// The direction from the sender, which is the scenarios' first node, 10.0.0.1.
fn direction(diagnosis: &Diagnosis) -> &Direction {
    let mut directions = diagnosis.flows.iter().flat_map(|flow| &flow.directions);
    directions.find(|direction| direction.from.starts_with("10.0.0.1:")).expect("the sender's data")
}

fn policy(direction: &Direction) -> String {
    let policy = &direction.receiver_policy;
    format!("{:?} {:?} ms {:?}", policy.kind, policy.timer_ms, policy.candidates)
}

/// Whether kind and time of the receiver's timer are as its profile has them. Linux's time follows
/// the traffic from 40 ms on, so any timer from there to its ceiling of 200 ms is right for it. A tick
/// may also be taken for the multiple of it on which every ACK fell.
fn is_timer_of(receiver: &str, direction: &Direction) -> bool {
    let policy = &direction.receiver_policy;
    let Some(timer_ms) = policy.timer_ms else { return false };
    let near = |ms: f64| (timer_ms - ms).abs() <= 0.1 * ms;
    let is_fixed = policy.kind == PolicyKind::Fixed;
    let is_tick = policy.kind == PolicyKind::Tick;
    let system = System::named(receiver).expect("a system");
    match system.config().ack {
        // Linux's may be 40 ms, too.
        Profile::Delayed(own) if own.delay == Span::from_millis(40) => !is_tick && near(40.0),
        Profile::Delayed(own) => is_fixed && near(own.delay.as_millis_f64()),
        Profile::MacOs(own) => is_fixed && near(own.delay.as_millis_f64()),
        Profile::Tick(own) if is_tick => {
            let period = own.period.as_millis_f64();
            near(period) || near(period * f64::from(own.ticks))
        }
        Profile::Tick(_) => false,
        _ => !is_tick && (39.0..=205.0).contains(&timer_ms),
    }
}

/// Scenario, receiver, settings and capture point.
type CaseSpec = (&'static str, &'static str, String, CapturePoint);

fn small_messages() -> Vec<CaseSpec> {
    let mut cases = Vec::new();
    for receiver in System::NAMES.iter().copied() {
        for nagle in ["on", "off"] {
            for rtt in RTTS {
                for point in POINTS {
                    let pairs = format!("receiver={receiver} nagle={nagle} rtt={rtt}");
                    let jitter = format!("{pairs} jitter=3ms overhead=200us");
                    cases.push(("nagle-delack", receiver, pairs.clone(), point));
                    cases.push(("nagle-delack", receiver, jitter, point));
                    cases.push(("write-write-read", receiver, pairs, point));
                }
            }
        }
    }
    cases
}

/// Messages that come fast enough to fill segments while an ACK is awaited.
fn filling_messages() -> Vec<CaseSpec> {
    let spec = |(scenario, receiver, pairs, point): CaseSpec| {
        (scenario, receiver, format!("{pairs} message=400 period=10ms jitter=1ms"), point)
    };
    let periodic = small_messages()
        .into_iter()
        .filter(|(scenario, _, pairs, _)| *scenario == "nagle-delack" && !pairs.contains("jitter"));
    periodic.map(spec).collect()
}

fn judge_all(cases: Vec<CaseSpec>) -> Vec<Case> {
    let judged: Vec<Case> = cases
        .into_par_iter()
        .map(|(scenario, receiver, pairs, point)| judge(scenario, receiver, &pairs, point))
        .collect();
    println!("{}", confusion(&judged));
    for case in judged.iter().filter(|case| case.is_stalled() && !case.is_right()) {
        println!("  {:?} found as {:?}: {}", case.truth, case.found, case.name);
    }
    judged
}

/// The names of cases in which nothing was held for long and yet a stall was found.
fn invented(judged: &[Case]) -> Vec<&str> {
    let invented = judged.iter().filter(|c| !c.is_stalled() && c.found.is_some());
    invented.map(|case| case.name.as_str()).collect()
}

#[test]
fn the_diagnosis_of_simulated_captures_is_the_truth() {
    let judged = judge_all(small_messages());
    let stalled = judged.iter().filter(|case| case.is_stalled()).count();
    let right = judged.iter().filter(|case| case.is_right()).count();
    println!("{right} of {stalled} stalled cases right");
    assert_eq!(invented(&judged), <[&str; 0]>::default());
    assert!(right * 100 >= stalled * 98, "{right} of {stalled} right\n{}", confusion(&judged));
}

/// Here several mechanisms take turns in one direction, so that which held most is a close call; what
/// may not happen is a stall found where nothing was held.
#[test]
fn no_stall_is_invented_where_segments_fill() {
    let judged = judge_all(filling_messages());
    assert!(judged.iter().any(|case| case.truth == Truth::Stalled(Mechanism::MssFilled)));
    assert_eq!(invented(&judged), <[&str; 0]>::default());
}

/// Truth by rows, diagnosis by columns.
fn confusion(judged: &[Case]) -> String {
    let mechanisms = [Mechanism::DelayedAckTimer, Mechanism::MssFilled, Mechanism::AckClocked];
    let mut found_kinds = vec![None];
    found_kinds.extend(mechanisms.map(Some));
    let mut truths = vec![Truth::None, Truth::Short];
    truths.extend(mechanisms.map(Truth::Stalled));

    let mut text = format!("{:>20}", "truth \\ found");
    for found in &found_kinds {
        let _ = write!(text, "{:>19}", found.map_or("none", Mechanism::name));
    }
    text.push_str("   wrong timer\n");
    for truth in truths {
        let of_truth: Vec<_> = judged.iter().filter(|case| case.truth == truth).collect();
        let name = match truth {
            Truth::None => "none",
            Truth::Short => "short",
            Truth::Stalled(mechanism) => mechanism.name(),
        };
        let _ = write!(text, "{name:>20}");
        for found in &found_kinds {
            let count = of_truth.iter().filter(|case| case.found == *found).count();
            let _ = write!(text, "{count:>19}");
        }
        let wrong = of_truth.iter().filter(|case| !case.timer_right).count();
        let _ = writeln!(text, "{wrong:>14}");
    }
    text
}

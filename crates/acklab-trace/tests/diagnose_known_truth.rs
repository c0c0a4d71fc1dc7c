//! The diagnosis of exchanges whose truth is known: a small model of two hosts (Nagle's rule, a
//! delayed-ACK policy, a path cut at the capture point) feeds the flow table directly.
//!
//! Goal: the right mechanism wherever writes were held ten times or more, and no claim where none
//! was. Method: every receiver policy x round trip x capture point x application, with Nagle on and
//! off.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use acklab_core::time::Time;
use acklab_trace::Analyst;
use acklab_trace::diagnosis::{Direction, Mechanism};
use acklab_trace::flow::FlowTable;
use acklab_trace::segment::{Endpoint, Flags, SeenOptions, Segment};

const MSS: u64 = 1_460;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Acks {
    /// At once.
    Immediate,
    /// So long after the first segment, or at the second one, µs.
    Fixed(u64),
    /// At the next tick of this period, or at the second segment, µs.
    Tick(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum App {
    /// A message of so many bytes every so many µs.
    Periodic(u64, u64),
    /// Header, body, answer, pause.
    WriteWriteRead,
    /// One request, answered after 30 to 60 ms, and the next at once.
    PingPong,
}

impl App {
    /// Segments fill up before their ACK is back.
    fn is_fast(self) -> bool {
        matches!(self, Self::Periodic(_, period) if period < 5_000)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Write { host: usize, len: u64 },
    Arrive { host: usize, offset: u64, len: u64, ack: u64, cause: Cause },
    Timer { host: usize, id: u64 },
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Cause {
    Data,
    Timer,
    Segment,
}

#[derive(Default)]
struct Host {
    queue: Vec<(u64, u64)>,
    next: u64,
    small_end: u64,
    acked: u64,
    received: u64,
    told: u64,
    waiting: u64,
    timer: u64,
    held: BTreeMap<Mechanism, u64>,
}

struct World {
    now: u64,
    number: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    hosts: [Host; 2],
    nagle: bool,
    acks: Acks,
    app: App,
    /// One-way delays from host 0 to the capture point, and on to host 1, µs.
    path: [u64; 2],
    seen: Vec<(u64, usize, u64, u64, u64)>,
    left: u32,
    answered: u64,
}

impl World {
    fn new(acks: Acks, app: App, nagle: bool, rtt: u64, point: u64) -> Self {
        let first = (rtt / 2 * point / 2).max(10);
        let mut world = Self {
            now: 1_000_000,
            number: 0,
            events: BinaryHeap::new(),
            hosts: [Host::default(), Host::default()],
            nagle,
            acks,
            app,
            path: [first, (rtt / 2).saturating_sub(first).max(10)],
            seen: Vec::new(),
            left: 400,
            answered: 0,
        };
        world.begin();
        while let Some(Reverse((at, _, event))) = world.events.pop() {
            world.now = at;
            world.handle(event);
        }
        world
    }

    /// A number that looks random, below `limit`.
    fn noise(&self, limit: u64) -> u64 {
        let x = (self.number ^ self.now).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (x >> 33) % limit.max(1)
    }

    fn at(&mut self, time: u64, event: Event) {
        self.number += 1;
        self.events.push(Reverse((time, self.number, event)));
    }

    fn begin(&mut self) {
        match self.app {
            App::Periodic(len, period) => {
                let times = if self.app.is_fast() { 10 } else { 1 };
                for i in 0..u64::from(self.left) * times {
                    let jitter = (i * 7_919) % 300;
                    self.at(self.now + i * period + jitter, Event::Write { host: 0, len });
                }
            }
            App::WriteWriteRead => self.request(self.now),
            App::PingPong => self.at(self.now, Event::Write { host: 0, len: 60 }),
        }
    }

    fn request(&mut self, at: u64) {
        self.at(at, Event::Write { host: 0, len: 10 });
        self.at(at + 50, Event::Write { host: 0, len: 129 });
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Write { host, len } => {
                self.hosts[host].queue.push((len, self.now));
                self.push(host, None);
            }
            Event::Timer { host, id } => {
                let own = &self.hosts[host];
                if own.timer == id && own.received > own.told {
                    self.send(host, 0, Cause::Timer);
                }
            }
            Event::Arrive { host, offset, len, ack, cause } => {
                self.arrive(host, offset, len, ack, cause);
            }
        }
    }

    fn push(&mut self, host: usize, cause: Option<Cause>) {
        let fast = self.app.is_fast();
        loop {
            let own = &mut self.hosts[host];
            let ready: u64 = own.queue.iter().map(|w| w.0).sum();
            let len = ready.min(MSS);
            // Minshall's rule (Linux) for a stream that fills segments, else the classic one.
            let waits = if fast { own.acked < own.small_end } else { own.acked < own.next };
            if len == 0 || (len < MSS && self.nagle && waits) {
                return;
            }
            if len < MSS {
                own.small_end = own.next + len;
            }
            let written = own.queue[0].1;
            let mut left = len;
            while left > 0 {
                let take = left.min(own.queue[0].0);
                own.queue[0].0 -= take;
                left -= take;
                if own.queue[0].0 == 0 {
                    own.queue.remove(0);
                }
            }
            if self.now - written >= 10_000 {
                let mechanism = match cause {
                    None => Mechanism::MssFilled,
                    Some(Cause::Timer) => Mechanism::DelayedAckTimer,
                    Some(_) => Mechanism::AckClocked,
                };
                *own.held.entry(mechanism).or_default() += 1;
            }
            self.send(host, len, Cause::Data);
        }
    }

    fn send(&mut self, host: usize, len: u64, cause: Cause) {
        let own = &mut self.hosts[host];
        let (offset, ack) = (own.next, own.received);
        own.next += len;
        own.told = ack;
        own.waiting = 0;
        own.timer += 1;
        let (near, far) =
            if host == 0 { (self.path[0], self.path[1]) } else { (self.path[1], self.path[0]) };
        let passes = self.now + near + 5 + self.noise(20);
        self.seen.push((passes, host, offset, len, ack));
        self.at(passes + far, Event::Arrive { host: 1 - host, offset, len, ack, cause });
    }

    fn arrive(&mut self, host: usize, offset: u64, len: u64, ack: u64, cause: Cause) {
        if ack > self.hosts[host].acked {
            self.hosts[host].acked = ack;
            self.push(host, Some(cause));
        }
        if len == 0 {
            return;
        }
        let own = &mut self.hosts[host];
        own.received = offset + len;
        own.waiting += 1;
        let waiting = own.waiting;
        self.read(host, offset + len);
        match (host, self.acks) {
            (1, Acks::Fixed(_) | Acks::Tick(_)) if waiting == 1 => {
                let due = match self.acks {
                    Acks::Tick(period) => ((self.now + 3_777) / period + 1) * period - 3_777,
                    Acks::Fixed(delay) => self.now + delay + self.noise(200),
                    Acks::Immediate => self.now,
                };
                let id = self.hosts[host].timer;
                self.at(due, Event::Timer { host, id });
            }
            _ if self.hosts[host].received > self.hosts[host].told => {
                self.send(host, 0, Cause::Segment);
            }
            _ => {}
        }
    }

    /// The application reads what has come.
    fn read(&mut self, host: usize, end: u64) {
        let pause = 40_000 + self.noise(20_000);
        match (self.app, host) {
            (App::WriteWriteRead, 1) if end.is_multiple_of(139) => {
                self.at(self.now + 400, Event::Write { host: 1, len: 25 });
            }
            (App::WriteWriteRead, 0) if self.answered < 60 => {
                self.answered += 1;
                self.request(self.now + pause);
            }
            (App::PingPong, 1) => {
                let work = 30_000 + self.noise(30_000);
                self.at(self.now + work, Event::Write { host: 1, len: 80 });
            }
            (App::PingPong, 0) if self.answered < 100 => {
                self.answered += 1;
                let think = 200 + self.noise(200);
                self.at(self.now + think, Event::Write { host: 0, len: 60 });
            }
            _ => {}
        }
    }

    /// What the analyser says of host 0's data.
    fn diagnose(&mut self) -> Direction {
        self.seen.sort_unstable();
        let mut table = FlowTable::<Analyst>::default();
        let [first, second] = self.path;
        let syn = [
            (900_000, 0, Flags::SYN, 0),
            (900_000 + 2 * second + 20, 1, Flags::SYN.with(Flags::ACK), 0),
            (900_000 + 2 * (first + second) + 40, 0, Flags::ACK, 0),
        ];
        let mut frame = 0;
        for (time, host, flags, _) in syn {
            frame += 1;
            table.on_segment(&segment(frame, time, host, flags, (u64::MAX, 0, 0)));
        }
        for &(time, host, offset, len, ack) in &self.seen {
            frame += 1;
            let push = if len > 0 { Flags::PSH } else { Flags::default() };
            table.on_segment(&segment(
                frame,
                time,
                host,
                Flags::ACK.with(push),
                (offset, len, ack),
            ));
        }
        let flow = table.finish().flows.remove(0);
        let [direction, _] = flow.directions;
        *direction.observed
    }
}

fn segment(
    frame: u64,
    micros: u64,
    host: usize,
    flags: Flags,
    (offset, len, ack): (u64, u64, u64),
) -> Segment<'static> {
    let end = |h: usize| Endpoint { addr: [10, 0, 0, 1 + h as u8].into(), port: 5_000 };
    let syn = flags.has(Flags::SYN);
    Segment {
        frame,
        time: Time::from_nanos(micros * 1_000),
        src: end(host),
        dst: end(1 - host),
        seq: (offset as u32).wrapping_add(1_000),
        ack: 1_000 + ack as u32,
        flags,
        window: 60_000,
        options: SeenOptions { mss: syn.then_some(MSS as u16), ..SeenOptions::default() },
        payload_len: len as u32,
        payload: &[],
        ttl: 64,
        ip_id: frame as u16,
    }
}

fn largest(counts: &BTreeMap<Mechanism, u64>) -> Option<Mechanism> {
    counts.iter().max_by_key(|c| c.1).map(|c| *c.0)
}

/// Runs a case; `Err` says what was wrong.
fn check(acks: Acks, app: App, nagle: bool, rtt: u64, point: u64) -> Result<(), String> {
    let mut world = World::new(acks, app, nagle, rtt, point);
    let found = world.diagnose();
    let truth = &world.hosts[0].held;
    let total: u64 = truth.values().sum();
    let counted: BTreeMap<Mechanism, u64> =
        found.stalls.iter().map(|s| (s.mechanism, s.count)).collect();
    let case = format!(
        "{acks:?} {app:?} nagle={nagle} rtt={rtt} point={point}: truth {truth:?}, found {counted:?}"
    );
    if total == 0 && found.holds() > 0 {
        return Err(format!("false claim: {case}"));
    }
    if total >= 10 && (largest(truth) != largest(&counted) || found.holds() * 10 < total * 7) {
        return Err(format!("missed or mistaken: {case} {:?}", found.nagle.evidence));
    }
    Ok(())
}

#[test]
fn the_mechanism_is_right_and_nothing_is_claimed_where_nothing_was_held() {
    let acks = [
        Acks::Immediate,
        Acks::Fixed(40_000),
        Acks::Fixed(100_000),
        Acks::Fixed(200_000),
        Acks::Tick(200_000),
        Acks::Tick(250_000),
    ];
    let apps = [
        App::Periodic(48, 20_000),
        App::Periodic(100, 100_000),
        App::WriteWriteRead,
        App::PingPong,
    ];
    let (mut cases, mut wrong) = (0, Vec::new());
    for acks in acks {
        for app in apps {
            for rtt in [300, 8_000, 30_000, 72_000] {
                for point in [0, 1, 2] {
                    for nagle in [true, false] {
                        cases += 1;
                        wrong.extend(check(acks, app, nagle, rtt, point).err());
                    }
                }
            }
        }
    }
    let false_claims = wrong.iter().filter(|w| w.starts_with("false")).count();
    assert_eq!(false_claims, 0, "{wrong:#?}");
    assert!(wrong.len() * 50 <= cases, "{} of {cases}: {wrong:#?}", wrong.len());
}

#[test]
fn segments_that_fill_up_are_counted_alike_at_every_capture_point() {
    for point in [0, 1, 2] {
        let mut world = World::new(Acks::Immediate, App::Periodic(100, 2_090), true, 72_000, point);
        let found = world.diagnose();
        for mechanism in [Mechanism::MssFilled, Mechanism::AckClocked] {
            let truth = world.hosts[0].held[&mechanism];
            let stall = found.stalls.iter().find(|s| s.mechanism == mechanism);
            let count = stall.map_or(0, |s| s.count);
            let case = format!("point {point}, {mechanism:?}: {count} of {truth}");
            assert!(count.abs_diff(truth) * 10 <= truth, "{case} {:?}", found.nagle.evidence);
        }
    }
}

#[test]
fn equal_writes_that_always_gather_are_found_with_their_beat() {
    for point in [0, 1, 2] {
        let app = App::Periodic(100, 20_000);
        let found = World::new(Acks::Immediate, app, true, 72_300, point).diagnose();
        assert_eq!(found.writes.message_bytes, Some(100), "point {point}");
        assert!((found.writes.period_ms.expect("a beat") - 20.0).abs() < 0.01);
        let delay = found.added_delay_ms;
        assert!((delay.p50 - 36.0).abs() < 2.0 && (delay.p95 - 68.6).abs() < 2.0, "{delay:?}");
    }
    let found = World::new(Acks::Fixed(40_000), App::WriteWriteRead, true, 300, 0).diagnose();
    assert_eq!((found.writes.message_bytes, found.writes.messages), (None, Some(found.segments)));
}

#[test]
fn a_free_running_tick_is_named_with_its_period() {
    for (period, profile) in [(200_000, "bsd-4.4"), (250_000, "lwip")] {
        let mut world = World::new(Acks::Tick(period), App::WriteWriteRead, true, 300, 0);
        let found = world.diagnose();
        let policy = found.receiver_policy;
        let expect = (Some(profile), Some(period as f64 / 1e3));
        assert_eq!(
            (policy.profile, policy.timer_ms),
            expect,
            "{:?} {:?}",
            policy.evidence,
            found.plots.ack_delay_histogram.y
        );
    }
}

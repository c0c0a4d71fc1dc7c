//! Today's reliable UDP (docs/rudp.md) on the same wire, with its own ACK timing and with the timer of 1997
//! put into it: the same parcels, as they come or one at a time.
//!
//! It runs whole, handshake included, with its bytes. Its hosts take no time, so the protocol of 1997
//! stands beside it with `host=0`. Ethernet's framing is taken off the rate, because links count IP
//! packets. What the protocol calls its round trip has the peer's reported ACK delay taken off, so
//! a timer at the receiver does not show in it; it shows in the rate.

use acklab_core::ack::tick::{self, Tick};
use acklab_core::ack::{AckPolicy, DataSample, Decision, Factory, Profile};
use acklab_core::endpoint::Endpoint as _;
use acklab_core::event::{Interest, Sink};
use acklab_core::link::LinkConfig;
use acklab_core::packet::Addr;
use acklab_core::queue::{Discipline, Limit};
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_rudp::protect::PlainGreeter;
use acklab_rudp::wire as rudp;
use acklab_rudp::{
    Config, Connection, ContentEvent, DEFAULT_PRIORITY, Event, Limits, Listener, PathAddrs,
};
use acklab_sim::rudp::{Host, User};
use acklab_sim::{Topology, World};

use super::experiment::{self, Log};
use super::parameters::Set;
use super::protocol::application::Application;
use super::protocol::packet::Kind;
use super::runs::{FRAMES_CUT, Run, frames, stream, stream_log};
use acklab_lab::parameter::Settings;

/// With its own ACK timing.
pub const TODAY: &str = "today";
/// With its own ACK timing, one parcel at a time.
pub const TODAY_ONE: &str = "today, one parcel at a time";
/// With the timer of 1997, and the last fragment of each parcel acknowledged at once all the same.
pub const TODAY_ENDS: &str = "today with a 100 ms tick, ends of parcels at once";
pub const TODAY_ENDS_ONE: &str = "the same, one parcel at a time";
/// With the timer of 1997.
pub const TODAY_TIMER: &str = "today with a 100 ms tick";
/// With the timer of 1997, one parcel at a time.
pub const TODAY_TIMER_ONE: &str = "today with a 100 ms tick, one parcel at a time";
pub const TODAY_FRAMES: &str = "today, 20 frames a second";
/// The protocol of 1997 on hosts that take no time, with the timer.
pub const IDLE_TIMER: &str = "1997 with the timer, host=0";
/// The same without it.
pub const IDLE_REMOVED: &str = "1997, timer removed, host=0";

/// Everything that today's protocol is asked to do, and that of 1997 on as fast a computer.
pub(super) fn run(settings: &Settings, seed: u64) -> Vec<Run> {
    let Set { cut, parcels, .. } = settings.read();
    let tick = || Profile::tick(u32::MAX, TICK, 1);
    let mut runs: Vec<Run> = [
        (TODAY, None, MANY),
        (TODAY_ONE, None, 1),
        (TODAY_TIMER, Some(tick()), MANY),
        (TODAY_TIMER_ONE, Some(tick()), 1),
        (TODAY_ENDS, Some(ends_at_once()), MANY),
        (TODAY_ENDS_ONE, Some(ends_at_once()), 1),
    ]
    .map(|(name, ack, ahead)| {
        let sender = Sender::new(stream(settings), ahead);
        Run::new(name, parcels, carry(settings, ack, sender, cut, seed))
    })
    .into();
    let sender = Sender::new(frames(20, 581), u64::MAX);
    let log = carry(settings, None, sender, FRAMES_CUT, seed);
    runs.push(Run::new(TODAY_FRAMES, 581, log));
    let mut idle = settings.clone();
    idle.set("host", "0").expect("no time is a time");
    let timer = experiment::timer(&idle);
    for (name, policy) in [(IDLE_TIMER, timer), (IDLE_REMOVED, Profile::EverySegment)] {
        runs.push(Run::new(name, parcels, stream_log(&idle, &policy, seed)));
    }
    runs
}

/// A tick that does not hold back what ends a parcel.
#[derive(Debug)]
struct EndsAtOnce(Tick);

impl AckPolicy for EndsAtOnce {
    fn on_data(&mut self, now: Time, sample: &DataSample) -> Decision {
        let decision = self.0.on_data(now, sample);
        if sample.push { Decision::Now } else { decision }
    }

    fn on_ack_sent(&mut self, now: Time) {
        self.0.on_ack_sent(now);
    }

    fn handle_timeout(&mut self, now: Time, rto: Span) -> Decision {
        self.0.handle_timeout(now, rto)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.0.poll_timeout()
    }
}

fn ends_at_once() -> Profile {
    let options = tick::Options { segments: u32::MAX, period: TICK, ticks: 1 };
    Profile::Custom(Factory::new(move |_| Box::new(EndsAtOnce(Tick::new(0.0, options)))))
}

/// One connection over the wire until the sender is done or the run is cut off.
fn carry(settings: &Settings, ack: Option<Profile>, sender: Sender, cut: Span, seed: u64) -> Log {
    let Set { delay, loss, .. } = settings.read();
    let rate = BitRate::from_bps(UNFRAMED_BPS).unwrap_or(BitRate::INFINITE);
    let link = LinkConfig::new(rate, delay)
        .with_queue(Discipline::drop_tail(Limit::packets(INTERFACE_QUEUE)))
        .with_loss(loss);
    let mut topology = Topology::default();
    let [local, remote] = [topology.node(), topology.node()].map(|node| Addr { node, port: PORT });
    topology.duplex(local.node, remote.node, &link);
    let mut world = World::new(&topology, seed, Interest::NONE, ());
    let config = Config { ack, seed, ..Config::default() };
    let mut connections = 0;
    let server = Listener::new(
        Time::ZERO,
        config.clone(),
        move || {
            connections += 1;
            Box::new(Rng::named(seed + connections, "xudp/today/server"))
        },
        Box::new(PlainGreeter),
        Limits::default(),
    );
    let entropy = Box::new(Rng::named(seed, "xudp/today/client"));
    let greeter = Box::new(PlainGreeter);
    let path = PathAddrs { local: local.into(), remote: remote.into() };
    let client = Connection::connect(Time::ZERO, config, entropy, greeter, &[path]);
    let taker = Taker { application: sender.application.clone(), received: Vec::new() };
    let server = world.attach(remote, Box::new(Host::new(server, taker)));
    let client = world.attach(local, Box::new(Host::new(client, sender)));
    let end = Time::ZERO + cut;
    let is_over = |world: &World<()>| {
        let sender = world.peer::<Host<Connection, Sender>>(client);
        sender.is_none_or(|host| host.user.log.finished.is_some())
    };
    while !is_over(&world) && world.next_time().is_some_and(|at| at <= end) {
        world.step();
    }
    let log =
        |host: &mut Host<Connection, Sender>, _, _: &mut Sink| std::mem::take(&mut host.user.log);
    let received =
        |host: &mut Host<Listener, Taker>, _, _: &mut Sink| std::mem::take(&mut host.user.received);
    let received = world.with_peer(server, received).unwrap_or_default();
    Log { received, ..world.with_peer(client, log).unwrap_or_default() }
}

/// The program at the sending end.
struct Sender {
    application: Application,
    /// Parcels that may be under way.
    ahead: u64,
    next: u64,
    /// Parcels delivered or given up.
    over: u64,
    now: Time,
    log: Log,
}

impl Sender {
    fn new(application: Application, ahead: u64) -> Self {
        let log = Log::default();
        Self { application, ahead, next: 0, over: 0, now: Time::ZERO, log }
    }

    /// What is to be said about the connection.
    fn observe(&mut self, client: &mut Connection) {
        while let Some(event) = client.poll_event() {
            match event {
                Event::Content(ContentEvent::ParcelDelivered { parcel }) => {
                    let bytes = self.application.parcel(parcel).map_or(0, |(_, p)| p.bytes);
                    self.log.acknowledged.push((self.now, f64::from(bytes)));
                    self.over += 1;
                }
                Event::Content(ContentEvent::ParcelGone { ours: true, .. }) => self.over += 1,
                _ => {}
            }
        }
        let Some(stats) = client.path_stats().next() else { return };
        note(&mut self.log.window, self.now, stats.cwnd as f64 / stats.datagram as f64);
        if let Some(srtt) = stats.srtt {
            note(&mut self.log.round_trips, self.now, srtt.as_millis_f64());
        }
    }

    fn hand_over(&mut self, client: &mut Connection) {
        while let Some((at, parcel)) = self.application.parcel(self.next) {
            if at > self.now || self.next - self.over >= self.ahead || !client.is_open() {
                break;
            }
            let kind = match parcel.kind {
                Kind::Reliable => rudp::Kind::Reliable,
                Kind::OneShot => rudp::Kind::OneShot,
                Kind::Expiring(life) => rudp::Kind::Expiring { life_ms: life.as_micros() / 1000 },
            };
            let bytes = vec![parcel.id as u8; parcel.bytes as usize];
            let content = client.content();
            if content.send_parcel(self.now, bytes, kind, DEFAULT_PRIORITY, false).is_err() {
                break;
            }
            self.next += 1;
        }
    }
}

impl User<Connection> for Sender {
    fn on_progress(&mut self, now: Time, client: &mut Connection, _sink: &mut Sink) {
        self.now = now;
        self.observe(client);
        self.hand_over(client);
        if self.application.parcel(self.next).is_none() && self.over == self.next {
            self.log.finished.get_or_insert((now, 0));
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        let (at, _) = self.application.parcel(self.next)?;
        Some(at).filter(|at| *at > self.now)
    }
}

/// The program at the receiving end.
struct Taker {
    application: Application,
    received: Vec<(Time, u64)>,
}

impl User<Listener> for Taker {
    fn on_progress(&mut self, now: Time, server: &mut Listener, _sink: &mut Sink) {
        while let Some((handle, event)) = server.poll_event() {
            let Event::Content(ContentEvent::Parcel { .. }) = event else { continue };
            let Some(connection) = server.connection(handle) else { continue };
            while let Some((id, bytes)) = connection.content().receive_parcel() {
                // A parcel counts only if it is the one that was sent.
                let sent = self.application.parcel(id).map_or(0, |(_, parcel)| parcel.bytes);
                if bytes.len() == sent as usize && bytes.iter().all(|byte| *byte == id as u8) {
                    self.received.push((now, id));
                }
            }
        }
    }
}

/// Notes a value if it is another than the last.
fn note(values: &mut Vec<(Time, f64)>, now: Time, value: f64) {
    if values.last().is_none_or(|(_, last)| last.to_bits() != value.to_bits()) {
        values.push((now, value));
    }
}

/// Both ends' port.
const PORT: u16 = 7000;
/// 10 Mbit/s less the framing of full frames: 1500 bytes of 1538 (IEEE 802.3 clause 3).
const UNFRAMED_BPS: u64 = 10_000_000 * 1500 / 1538;
/// Packets that wait for the interface: BSD's `ifq_maxlen`.
const INTERFACE_QUEUE: u32 = 50;
/// The timer of 1997.
const TICK: Span = Span::from_millis(100);
/// Parcels under way where they come as they are: more than wire and queue hold.
const MANY: u64 = 16;

//! `write-write-read`: requests in two writes, answered over a connection that waits for itself.
//!
//! The client writes a header, then a body, and waits for the reply. Nagle's algorithm holds the
//! body until the header is acknowledged; the server, which cannot answer half a request, delays
//! that ACK. The defaults are the exchange that `acklab demo` recorded from the Linux kernel, whose
//! receiver delays ACKs once it has itself answered ("ping-pong" mode).

use acklab_core::ack::delayed;
use acklab_core::event::Interest;
use acklab_core::options::joined;
use acklab_core::packet::Addr;
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::app::{ReplyingServer, RequestClient, RequestPattern};
use acklab_sim::{End, Observer, World};
use acklab_tcp::System;

use super::nagle_delack::{MESSAGE_METRICS, SMALLEST_MSS};
use super::path::{Path, PathSpec};
use super::recorder::Recorder;
use super::system::{self, NagleChoice, Receiver};
use acklab_lab::measured::{Measured, MetricDoc};
use acklab_lab::parameter::{SetError, Settings};
use acklab_lab::scenario::{Axis, Capture, CapturePoint, Declaration, Flow, Replication, Scenario};

/// Requests in two writes, and their replies.
#[derive(Clone, Copy, Debug)]
pub struct WriteWriteRead;

const DECLARATION: Declaration = Declaration {
    name: "write-write-read",
    summary: "a request in two small writes, then its reply: the textbook stall of 40 or 200 ms",
    doc: "The client connects, writes `header` bytes, then `body` bytes, and waits for `reply` \
          bytes; `exchanges` times. With Nagle on, the body waits for the ACK of the header, and the \
          server's delayed ACK decides how long. Hosts take no time but `service`, `think` and \
          `gap`. body=0 makes it one write per request, which is one of the cures; nagle=off is the \
          other.",
    parameters: Set::PARAMETERS,
    metrics: &METRICS,
    main_metric: "exchange_ms",
    side_metrics: &["holds", "segments", "pure_acks"],
    grid: &[
        Axis {
            parameter: "receiver",
            values: &["linux", "freebsd-12.1", "windows-7", "windows-10", "qnx-7.0", "macos"],
        },
        Axis { parameter: "nagle", values: &["on", "off"] },
    ],
    terms: &["nagle", "delayed-ack", "interaction", "hold", "rtt", "cdf", "quantile"],
    ..Declaration::EMPTY
};

impl Scenario for WriteWriteRead {
    fn declaration(&self) -> &Declaration {
        &DECLARATION
    }

    fn check(&self, settings: &Settings) -> Result<(), SetError> {
        let set: Set = settings.read();
        system::check(settings, &system::sender(set.sender, set.nagle))
    }

    fn packets(&self, settings: &Settings) -> u64 {
        let set: Set = settings.read();
        let bytes = u64::from(set.header) + u64::from(set.body) + u64::from(set.reply);
        set.exchanges.saturating_mul(3 + bytes / SMALLEST_MSS)
    }

    fn run(&self, settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication {
        let (at, tap) = capture.map_or((None, None), |Capture { at, tap }| (Some(at), Some(tap)));
        let writes = 2 * settings.read::<Set>().exchanges;
        let (mut recorder, events) =
            simulate(settings, seed, at, |client| Recorder::new(client, writes, tap));
        let hash = recorder.hash();
        let longest_hold = recorder.take_longest_hold();
        let exchanges = recorder.app_values().to_vec();
        let mut metrics = recorder.into_metrics();
        metrics.insert("exchanges", Measured::Total(exchanges.len() as u64));
        metrics.insert("exchange_ms", Measured::Samples(exchanges));
        for name in ["delivery_delay_ms", "undelivered_messages"] {
            metrics.remove(name);
        }
        let flows = vec![Flow { id: "client-server".into(), metrics: metrics.clone() }];
        Replication { hash, events, metrics, flows, groups: vec![], longest_hold }
    }
}

/// Runs one replication under an observer of the caller's, made for the client's address; returns
/// it with the number of events. Packets are shown to it at the capture point, if one is given.
pub fn simulate<O: Observer>(
    settings: &Settings,
    seed: u64,
    capture: Option<CapturePoint>,
    observer: impl FnOnce(Addr) -> O,
) -> (O, u64) {
    let set: Set = settings.read();
    let Set { rtt, rate, loss, .. } = set;
    let path = Path::new(&PathSpec { rtt, rate, overhead: Span::ZERO, loss: loss / 100.0 });
    let pattern = set.pattern();
    let interest = Interest::MESSAGE.with(Interest::TRANSPORT);
    let mut world = World::new(&path.topology, seed, interest, observer(path.sender));
    if let Some(point) = capture {
        world.tap(path.node_at(point));
    }
    let mut draws = Rng::named(seed, "write-write-read/start");
    let client = End {
        addr: path.sender,
        config: system::sender(set.sender, set.nagle),
        isn: Seq(draws.next_u64() as u32),
        app: Box::new(RequestClient::new(pattern, path.sender.node)),
    };
    let server = End {
        addr: path.receiver,
        config: set.receiver.config(set.fixed(), set.jiffy, draws.uniform()),
        isn: Seq(draws.next_u64() as u32),
        app: Box::new(ReplyingServer::new(pattern)),
    };
    world.connect(client, server);
    world.run_until(end_of_time(&pattern, rtt));
    let events = world.events();
    (world.into_observer(), events)
}

impl Set {
    const fn fixed(&self) -> delayed::Options {
        system::fixed(self.every, self.timer, self.quick)
    }

    const fn pattern(&self) -> RequestPattern {
        let Self { exchanges, header, body, gap, reply, service, think, .. } = *self;
        RequestPattern { exchanges, header, body, gap, reply, service, think }
    }
}

/// A run that cannot end by itself (a path that loses everything) is ended after ten minutes and
/// what the exchanges may take with a second of stalls each.
fn end_of_time(pattern: &RequestPattern, rtt: Span) -> Time {
    let exchange = pattern.gap + pattern.service + pattern.think + rtt * 4 + Span::from_secs(1);
    Time::ZERO + exchange * pattern.exchanges + Span::from_secs(600)
}

acklab_core::options! {
    /// What can be set.
    #[derive(Copy)]
    struct Set {
        /// The server's system, whose ACK policy it is about. every-segment never delays;
        /// fixed-timer delays by `timer`, or until segment number `every`, once `quick` segments have come.
        receiver: Receiver = "linux",
        /// Nagle's algorithm at the client: on is its system's own variant, off is TCP_NODELAY.
        nagle: NagleChoice = "on",
        /// The client's system.
        sender: System = "linux",
        /// Requests and replies.
        exchanges: u64 as count(1, 10_000_000) = "40",
        /// Bytes of the first write.
        header: u32 as count(1, 1_000_000) = "10",
        /// Bytes of the second write; 0 for requests of one write.
        body: u32 as count(0, 1_000_000) = "129",
        /// Bytes of the reply.
        reply: u32 as count(1, 1_000_000) = "32",
        /// From the first write to the second.
        gap: Span = "0",
        /// From the request's last byte to the reply.
        service: Span = "0",
        /// From a reply to the next request.
        think: Span = "0",
        /// Round-trip propagation delay, half of it each way.
        rtt: Span = "100us",
        /// Delay of receiver=fixed-timer.
        timer: Span = "40ms",
        /// After how many segments receiver=fixed-timer acknowledges at once.
        every: u32 as count(1, 1_000_000) = "2",
        /// How many segments of a connection receiver=fixed-timer acknowledges at once before it delays the first.
        quick: u32 as count(0, 1_000_000) = "0",
        /// Grid on which receiver=linux lets its timers expire (4ms where HZ is 250, as most
        /// distributions have it); 0 for exact timers.
        jiffy: Span = "4ms",
        /// Rate of every link.
        rate: BitRate = "1gbit",
        /// Share of packets lost half way, in each direction.
        loss: f64 as number(0.0, 90.0, "%") = "0",
    }
}

/// The messages' metrics, less delivery: the server reads whole requests, not messages, and delivery is
/// what the exchange measures.
const METRICS: [MetricDoc; 12] = {
    let [buffering, _, ack, hold, holds, messages, _, rest @ ..] = MESSAGE_METRICS;
    let own = [buffering, EXCHANGE_MS, ack, hold, holds, messages, EXCHANGES];
    joined(EXCHANGES, &[&own, &rest])
};

const EXCHANGE_MS: MetricDoc = MetricDoc {
    name: "exchange_ms",
    unit: "ms",
    doc: "From a request's first write to its reply's last byte. One sample per exchange.",
};
const EXCHANGES: MetricDoc =
    MetricDoc { name: "exchanges", unit: "exchanges", doc: "Exchanges completed; summed." };

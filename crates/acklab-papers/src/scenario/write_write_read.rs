//! `write-write-read`: requests in two writes, answered over a connection that waits for itself.
//!
//! The client writes a header, then a body, and waits for the reply. Nagle's algorithm holds the
//! body until the header is acknowledged; the server, which cannot answer half a request, delays
//! that ACK. The defaults are the exchange that `acklab demo` recorded from the Linux kernel, whose
//! receiver delays ACKs once it has itself answered ("ping-pong" mode).

use acklab_core::event::Interest;
use acklab_core::packet::Addr;
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_sim::app::{ReplyingServer, RequestClient, RequestPattern};
use acklab_sim::{End, Observer, World};

use super::nagle_delack::{MESSAGE_METRICS, SMALLEST_MSS};
use super::path::{Path, PathSpec};
use super::recorder::Recorder;
use super::system;
use acklab_lab::measured::{Measured, MetricDoc};
use acklab_lab::parameter::{Kind, Parameter, SetError, Settings};
use acklab_lab::scenario::{Axis, Capture, CapturePoint, Flow, Replication, Scenario};

/// Requests in two writes, and their replies.
#[derive(Clone, Copy, Debug)]
pub struct WriteWriteRead;

impl Scenario for WriteWriteRead {
    fn name(&self) -> &'static str {
        "write-write-read"
    }

    fn summary(&self) -> &'static str {
        "a request in two small writes, then its reply: the textbook stall of 40 or 200 ms"
    }

    fn doc(&self) -> &'static str {
        "The client connects, writes `header` bytes, then `body` bytes, and waits for `reply` \
         bytes; `exchanges` times. With Nagle on, the body waits for the ACK of the header, and the \
         server's delayed ACK decides how long. Hosts take no time but `service`, `think` and \
         `gap`. body=0 makes it one write per request, which is one of the cures; nagle=off is the \
         other."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn metrics(&self) -> &'static [MetricDoc] {
        &METRICS
    }

    fn main_metric(&self) -> &'static str {
        "exchange_ms"
    }

    fn side_metrics(&self) -> &'static [&'static str] {
        &["holds", "segments", "pure_acks"]
    }

    fn replications(&self) -> u64 {
        1
    }

    fn grid(&self) -> &'static [Axis] {
        &[
            Axis {
                parameter: "receiver",
                values: &["linux", "freebsd-12.1", "windows-7", "windows-10", "qnx-7.0", "macos"],
            },
            Axis { parameter: "nagle", values: &["on", "off"] },
        ]
    }

    fn terms(&self) -> &'static [&'static str] {
        &["nagle", "delayed-ack", "interaction", "hold", "rtt", "cdf", "quantile"]
    }

    fn check(&self, _settings: &Settings) -> Result<(), SetError> {
        Ok(())
    }

    fn packets(&self, settings: &Settings) -> u64 {
        let bytes: u64 = ["header", "body", "reply"].iter().map(|name| settings.count(name)).sum();
        settings.count("exchanges").saturating_mul(3 + bytes / SMALLEST_MSS)
    }

    fn run(&self, settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication {
        let (at, tap) = capture.map_or((None, None), |Capture { at, tap }| (Some(at), Some(tap)));
        let writes = 2 * settings.count("exchanges");
        let (mut recorder, events) =
            simulate(settings, seed, at, |client| Recorder::new(client, writes, tap));
        let hash = recorder.hash();
        let longest_hold = recorder.take_longest_hold();
        let exchanges = recorder.app_values().to_vec();
        let mut metrics = recorder.into_metrics();
        metrics.insert("exchanges", Measured::Total(exchanges.len() as u64));
        metrics.insert("exchange_ms", Measured::Samples(exchanges));
        // The server reads whole requests, not messages: delivery is what the exchange measures.
        for name in ["delivery_delay_ms", "undelivered_messages"] {
            metrics.remove(name);
        }
        let flows = vec![Flow { id: "client-server".into(), metrics: metrics.clone() }];
        Replication { hash, events, metrics, flows, longest_hold }
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
    let path = Path::new(&PathSpec {
        rtt: settings.span("rtt"),
        rate: settings.rate("rate"),
        overhead: Span::ZERO,
        loss: settings.number("loss") / 100.0,
    });
    let pattern = pattern(settings);
    let interest = Interest::MESSAGE.with(Interest::TRANSPORT);
    let mut world = World::new(&path.topology, seed, interest, observer(path.sender));
    if let Some(point) = capture {
        world.tap(path.node_at(point));
    }
    let mut draws = Rng::named(seed, "write-write-read/start");
    let client = End {
        addr: path.sender,
        config: system::sender(settings.choice("sender"), settings.choice("nagle")),
        isn: Seq(draws.next_u64() as u32),
        app: Box::new(RequestClient::new(pattern, path.sender.node)),
    };
    let (timer, jiffy) = (settings.span("timer"), settings.span("jiffy"));
    let server = End {
        addr: path.receiver,
        config: system::receiver(settings.choice("receiver"), timer, jiffy, draws.uniform()),
        isn: Seq(draws.next_u64() as u32),
        app: Box::new(ReplyingServer::new(pattern)),
    };
    world.connect(client, server);
    world.run_until(end_of_time(&pattern, settings.span("rtt")));
    let events = world.events();
    (world.into_observer(), events)
}

fn pattern(settings: &Settings) -> RequestPattern {
    RequestPattern {
        exchanges: settings.count("exchanges"),
        header: settings.count("header") as u32,
        body: settings.count("body") as u32,
        gap: settings.span("gap"),
        reply: settings.count("reply") as u32,
        service: settings.span("service"),
        think: settings.span("think"),
    }
}

/// A run that cannot end by itself (a path that loses everything) is ended after ten minutes and
/// what the exchanges may take with a second of stalls each.
fn end_of_time(pattern: &RequestPattern, rtt: Span) -> Time {
    let exchange = pattern.gap + pattern.service + pattern.think + rtt * 4 + Span::from_secs(1);
    Time::ZERO + exchange * pattern.exchanges + Span::from_secs(600)
}

const BYTES: Kind = Kind::Count { min: 1, max: 1_000_000 };

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "receiver",
        default: "linux",
        kind: Kind::Choice(system::RECEIVERS),
        doc: "The server's system, whose ACK policy it is about. every-segment never delays; \
              fixed-timer delays by `timer`, or until the second segment.",
    },
    Parameter {
        name: "nagle",
        default: "on",
        kind: Kind::Choice(system::NAGLE),
        doc: "Nagle's algorithm at the client: on is its system's own variant, off is TCP_NODELAY.",
    },
    Parameter {
        name: "sender",
        default: "linux",
        kind: Kind::Choice(system::SENDERS),
        doc: "The client's system.",
    },
    Parameter {
        name: "exchanges",
        default: "40",
        kind: Kind::Count { min: 1, max: 10_000_000 },
        doc: "Requests and replies.",
    },
    Parameter { name: "header", default: "10", kind: BYTES, doc: "Bytes of the first write." },
    Parameter {
        name: "body",
        default: "129",
        kind: Kind::Count { min: 0, max: 1_000_000 },
        doc: "Bytes of the second write; 0 for requests of one write.",
    },
    Parameter { name: "reply", default: "32", kind: BYTES, doc: "Bytes of the reply." },
    Parameter {
        name: "gap",
        default: "0",
        kind: Kind::Span,
        doc: "From the first write to the second.",
    },
    Parameter {
        name: "service",
        default: "0",
        kind: Kind::Span,
        doc: "From the request's last byte to the reply.",
    },
    Parameter {
        name: "think",
        default: "0",
        kind: Kind::Span,
        doc: "From a reply to the next request.",
    },
    Parameter {
        name: "rtt",
        default: "100us",
        kind: Kind::Span,
        doc: "Round-trip propagation delay, half of it each way.",
    },
    Parameter {
        name: "timer",
        default: "40ms",
        kind: Kind::Span,
        doc: "Delay of receiver=fixed-timer.",
    },
    Parameter {
        name: "jiffy",
        default: "4ms",
        kind: Kind::Span,
        doc: "Grid on which receiver=linux lets its timers expire (4ms where HZ is 250, as most \
              distributions have it); 0 for exact timers.",
    },
    Parameter { name: "rate", default: "1gbit", kind: Kind::Rate, doc: "Rate of every link." },
    Parameter {
        name: "loss",
        default: "0",
        kind: Kind::Number { min: 0.0, max: 90.0, unit: "%" },
        doc: "Share of packets lost half way, in each direction.",
    },
];

const METRICS: [MetricDoc; 12] = {
    let mut metrics = MESSAGE_METRICS;
    // Two of the messages' metrics make way for the exchanges' own.
    metrics[1] = MetricDoc {
        name: "exchange_ms",
        unit: "ms",
        doc: "From a request's first write to its reply's last byte. One sample per exchange.",
    };
    metrics[6] =
        MetricDoc { name: "exchanges", unit: "exchanges", doc: "Exchanges completed; summed." };
    metrics
};

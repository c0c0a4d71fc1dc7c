//! A client, a server, links between them and a file to be sent.

use std::ops::ControlFlow;

use acklab_core::link::LinkConfig;
use acklab_core::queue::Discipline;
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_rudp::protect::PlainGreeter;
use acklab_rudp::{Config, Connection, ContentEvent, Event, Limits, Listener};
use acklab_sim::road::{Road, path};

/// The transfer of the table, bytes.
pub(crate) const FILE: usize = 5_000_000;
/// How much is written at once.
pub(crate) const BLOCK: usize = 256 << 10;

/// 20 Mbit/s, 20 ms, 100 ms of queue.
pub(crate) fn lane(loss: f64) -> (LinkConfig, LinkConfig) {
    lane_of("20mbit", 20, loss)
}

pub(crate) fn lane_of(rate: &str, delay_ms: u64, loss: f64) -> (LinkConfig, LinkConfig) {
    let rate: BitRate = rate.parse().expect("a rate");
    let bytes = rate.as_bps() / 8 / 10;
    let queue = Discipline::by_name("drop-tail", 0).expect("a queue");
    let queue = queue.with_limit(acklab_core::queue::Limit::bytes(bytes));
    let one = LinkConfig::new(rate, Span::from_millis(delay_ms)).with_loss(loss).with_queue(queue);
    (one.clone(), one)
}

/// The byte at an offset of the file.
pub(crate) fn byte(offset: usize) -> u8 {
    (offset.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

pub(crate) fn road(seed: u64, lanes: &[(LinkConfig, LinkConfig)]) -> Road {
    road_of(seed, lanes, &Config::default())
}

pub(crate) fn road_of(seed: u64, lanes: &[(LinkConfig, LinkConfig)], config: &Config) -> Road {
    road_with(seed, lanes, config, lanes.len())
}

/// A road of which the client knows only the first `known` paths.
pub(crate) fn road_over(seed: u64, lanes: &[(LinkConfig, LinkConfig)], known: usize) -> Road {
    road_with(seed, lanes, &Config::default(), known)
}

fn road_with(seed: u64, lanes: &[(LinkConfig, LinkConfig)], config: &Config, known: usize) -> Road {
    let config = Config { seed, ..config.clone() };
    let paths: Vec<_> = (0..known).map(|lane| path(lane as u8)).collect();
    let entropy = Box::new(Rng::named(seed, "client"));
    let greeter = Box::new(PlainGreeter);
    let client = Connection::connect(Time::ZERO, config.clone(), entropy, greeter, &paths);
    let mut made = 0;
    let server = Listener::new(
        Time::ZERO,
        config,
        move || {
            made += 1;
            Box::new(Rng::named(seed + made, "server"))
        },
        Box::new(PlainGreeter),
        Limits::default(),
    );
    Road::new(seed, client, server, lanes)
}

/// A file on its way from the client to the server.
#[derive(Default)]
pub(crate) struct Transfer {
    pub(crate) stream: Option<u64>,
    pub(crate) written: usize,
    pub(crate) received: usize,
    /// When the client knew that all of it had arrived.
    pub(crate) done: Option<Time>,
    pub(crate) events: Vec<(Time, Event)>,
}

impl Transfer {
    pub(crate) fn on_progress(
        &mut self,
        now: Time,
        client: &mut Connection,
        server: &mut Listener,
    ) -> ControlFlow<()> {
        while let Some(event) = client.poll_event() {
            if let Event::Content(ContentEvent::StreamDelivered { .. }) = event {
                self.done = Some(now);
            }
            self.events.push((now, event));
        }
        if client.is_open() {
            let content = client.content();
            let stream = *self
                .stream
                .get_or_insert_with(|| content.open_stream(now, false).expect("a stream"));
            while self.written < FILE && content.room(stream) > 0 {
                let end = (self.written + BLOCK).min(FILE);
                content.write(stream, (self.written..end).map(byte).collect());
                self.written = end;
                if end == FILE {
                    content.finish(stream);
                }
            }
        }
        while let Some((handle, event)) = server.poll_event() {
            let Event::Content(ContentEvent::Readable { stream }) = event else { continue };
            let connection = server.connection(handle).expect("a connection");
            while let Some(block) = connection.content().read(now, stream) {
                for &value in &*block {
                    assert_eq!(value, byte(self.received), "at offset {}", self.received);
                    self.received += 1;
                }
            }
        }
        if self.done.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Seconds, and bytes on the wire over bytes of the file.
pub(crate) fn transfer(seed: u64, lanes: &[(LinkConfig, LinkConfig)]) -> (f64, f64) {
    let mut road = road(seed, lanes);
    let mut transfer = Transfer::default();
    let limit = Time::ZERO + Span::from_secs(60);
    let ended = road.run(limit, &mut |now, client: &mut Connection, server: &mut Listener| {
        transfer.on_progress(now, client, server)
    });
    assert!(ended, "not done after 60 s: {} of {FILE} received", transfer.received);
    assert_eq!(transfer.received, FILE);
    let seconds = transfer.done.expect("done").since(Time::ZERO).as_secs_f64();
    (seconds, road.wire_bytes()[0] as f64 / FILE as f64)
}

pub(crate) fn medians(lanes: &[(LinkConfig, LinkConfig)], seeds: u64) -> (f64, f64) {
    let mut runs: Vec<_> = (1..=seeds).map(|seed| transfer(seed, lanes)).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let wire = runs.iter().map(|run| run.1).fold(0.0, f64::max);
    (runs[runs.len() / 2].0, wire)
}

/// Runs until `until`; whether the transfer ended.
pub(crate) fn drive(road: &mut Road, transfer: &mut Transfer, until: Time) -> bool {
    road.run(until, &mut |now, client: &mut Connection, server: &mut Listener| {
        transfer.on_progress(now, client, server)
    })
}

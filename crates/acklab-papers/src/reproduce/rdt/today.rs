//! Today's protocol, acklab's reliable UDP, in the same network in virtual time.
//!
//! The interfaces of a direction are one link with the same loss and delay in all. A sender that has no
//! fixed window needs a rate to find: [`RATE`], with room for [`QUEUE`] before it, is ours; the paper
//! names none, and the course's protocol never comes near one. The bytes are sent and compared; packets
//! carry a checksum in place of their seal, which is as long.

use std::sync::atomic::AtomicBool;

use acklab_core::endpoint::Endpoint as _;
use acklab_core::event::{Event as Told, Interest, Sink};
use acklab_core::link::LinkConfig;
use acklab_core::packet::{Addr, NodeId, Packet};
use acklab_core::queue::{Discipline, Limit};
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_rudp::protect::PlainGreeter;
use acklab_rudp::{Config, Connection, ContentEvent, Event, Limits, Listener, PathAddrs};
use acklab_sim::rudp::{Host, User};
use acklab_sim::{Observer, Topology, World};
use acklab_stats::{MeanInterval, quantile_of_sorted};

use super::experiment::repeated;
use super::paper::Row;
use super::simulated::Network;

/// Rate of each direction of a path.
pub const RATE: BitRate = match BitRate::from_bps(100_000_000) {
    Some(rate) => rate,
    None => BitRate::INFINITE,
};
/// Room before it, as time at the rate.
pub const QUEUE: Span = Span::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// From the first datagram, handshake included, until the sender knew that all had arrived.
    pub seconds: f64,
    /// Bytes that the sender put on the wire, IP headers included.
    pub wire_bytes: u64,
}

/// Repetitions of one experiment.
#[derive(Clone, Debug)]
pub struct Today {
    pub paper: Row,
    /// Each repetition, in the order of the seeds; `None` where it did not end within [`LIMIT`], or
    /// other bytes arrived.
    pub transfers: Vec<Option<Transfer>>,
}

impl Today {
    /// The mean time with its 95 % interval; `None` where a transfer failed.
    pub fn interval(&self) -> Option<MeanInterval> {
        MeanInterval::from_replications(&self.seconds()?, 0.95)
    }

    /// The median time: a few opening packets that are lost in a row make the mean say little.
    pub fn median(&self) -> Option<f64> {
        Some(quantile_of_sorted(&self.sorted()?, 0.5))
    }

    /// The longest time.
    pub fn longest(&self) -> Option<f64> {
        self.sorted()?.last().copied()
    }

    fn sorted(&self) -> Option<Vec<f64>> {
        let mut seconds = self.seconds()?;
        seconds.sort_by(f64::total_cmp);
        Some(seconds)
    }

    fn seconds(&self) -> Option<Vec<f64>> {
        self.transfers.iter().map(|transfer| transfer.map(|transfer| transfer.seconds)).collect()
    }

    /// Mean bytes on the wire for each byte of a file of `size`.
    pub fn wire_share(&self, size: usize) -> f64 {
        let bytes: u64 = self.transfers.iter().flatten().map(|transfer| transfer.wire_bytes).sum();
        bytes as f64 / (self.transfers.iter().flatten().count() as f64 * size as f64)
    }
}

/// The six experiments, in the order of the paper, until `ended` is set.
pub fn run(size: usize, repetitions: u64, seed: u64, ended: &AtomicBool) -> Vec<Today> {
    let measured = repeated(repetitions, seed, ended, |row, seed| transfer(row, size, seed));
    measured.into_iter().map(|(paper, transfers)| Today { paper, transfers }).collect()
}

/// A direction of a path.
pub fn link(network: &Network) -> LinkConfig {
    let room = (RATE.as_bps() as f64 / 8.0 * QUEUE.as_secs_f64()) as u64;
    let queue = Discipline::default().with_limit(Limit::bytes(room));
    LinkConfig { rate: RATE, ..network.one_way() }.with_queue(queue)
}

fn transfer(row: Row, size: usize, seed: u64) -> Option<Transfer> {
    let link = link(&Network::new(row.loss));
    let mut topology = Topology::default();
    let [mut sources, mut destinations] = [Vec::new(), Vec::new()];
    for _ in 0..row.paths {
        let [source, destination] = [topology.node(), topology.node()];
        topology.duplex(source, destination, &link);
        sources.push(Addr { node: source, port: PORT });
        destinations.push(Addr { node: destination, port: PORT });
    }
    let mut world = World::new(&topology, seed, Interest::NONE, Wire::default());
    for source in &sources {
        world.tap(source.node);
    }
    let config = Config { seed, ..Config::default() };
    let entropy = move || Box::new(Rng::named(seed, "rdt/server")) as _;
    let greeter = Box::new(PlainGreeter);
    let server = Listener::new(Time::ZERO, config.clone(), entropy, greeter, Limits::default());
    let incoming = Incoming { received: 0, whole: true };
    let server = world.attach_at(&destinations, Box::new(Host::new(server, incoming)));
    let ends = sources.iter().zip(&destinations);
    let paths: Vec<_> = ends
        .map(|(local, remote)| PathAddrs { local: (*local).into(), remote: (*remote).into() })
        .collect();
    let entropy = Box::new(Rng::named(seed, "rdt/client"));
    let greeter = Box::new(PlainGreeter);
    let client = Connection::connect(Time::ZERO, config, entropy, greeter, &paths);
    let outgoing = Outgoing { size, stream: None, written: 0, done: None };
    let client = world.attach_at(&sources, Box::new(Host::new(client, outgoing)));
    let done = loop {
        if let Some(done) = world.peer::<Host<Connection, Outgoing>>(client)?.user.done {
            break done;
        }
        world.next_time().filter(|at| *at <= LIMIT)?;
        world.step();
    };
    let arrived = &world.peer::<Host<Listener, Incoming>>(server)?.user;
    let wire_bytes = world.observer().bytes;
    (arrived.whole && arrived.received == size)
        .then(|| Transfer { seconds: done.as_secs_f64(), wire_bytes })
}

/// Counts what leaves the source.
#[derive(Default)]
struct Wire {
    bytes: u64,
}

impl Observer for Wire {
    fn on_event(&mut self, _event: &Told) {}

    fn on_packet(&mut self, _now: Time, node: NodeId, packet: &Packet) {
        if packet.src.node == node {
            self.bytes += u64::from(packet.size());
        }
    }
}

/// A file at its source.
struct Outgoing {
    size: usize,
    stream: Option<u64>,
    written: usize,
    /// When all of it was known to have arrived.
    done: Option<Time>,
}

impl User<Connection> for Outgoing {
    fn on_progress(&mut self, now: Time, client: &mut Connection, _sink: &mut Sink) {
        while let Some(event) = client.poll_event() {
            if let Event::Content(ContentEvent::StreamDelivered { .. }) = event {
                self.done = Some(now);
            }
        }
        if self.done.is_some() || !client.is_open() {
            return;
        }
        let content = client.content();
        if self.stream.is_none() {
            self.stream = content.open_stream(now, false);
        }
        let Some(stream) = self.stream else { return };
        while self.written < self.size && content.room(stream) > 0 {
            let end = (self.written + BLOCK).min(self.size);
            content.write(stream, (self.written..end).map(byte).collect());
            self.written = end;
            if end == self.size {
                content.finish(stream);
            }
        }
    }
}

/// A file at its destination.
struct Incoming {
    received: usize,
    /// Every byte so far was the right one.
    whole: bool,
}

impl User<Listener> for Incoming {
    fn on_progress(&mut self, now: Time, server: &mut Listener, _sink: &mut Sink) {
        while let Some((handle, event)) = server.poll_event() {
            let Event::Content(ContentEvent::Readable { stream }) = event else { continue };
            let Some(connection) = server.connection(handle) else { continue };
            while let Some(block) = connection.content().read(now, stream) {
                let mut bytes = block.iter().zip(self.received..);
                self.whole &= bytes.all(|(value, offset)| *value == byte(offset));
                self.received += block.len();
            }
        }
    }
}

/// The byte at an offset of the file: no two blocks are alike.
pub fn byte(offset: usize) -> u8 {
    (offset.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

/// Both ends' port.
const PORT: u16 = 7000;
/// Bytes written at a time.
const BLOCK: usize = 256 << 10;
/// A transfer that takes longer has failed.
const LIMIT: Time = Time::from_nanos(300_000_000_000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::rdt::paper::ROWS;

    #[test]
    fn the_file_arrives_in_a_fraction_of_the_course_protocols_time_and_always_the_same() {
        let one = transfer(ROWS[2], 500_000, 1).expect("it ends");
        assert_eq!(transfer(ROWS[2], 500_000, 1), Some(one));
        // Ideal hosts and the course's protocol take 7.6 s for a tenth of the file.
        assert!(one.seconds < 2.0, "{one:?}");
    }
}

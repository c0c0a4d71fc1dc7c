//! What the protocol itself costs: two connections that hand each other their datagrams in memory, in
//! batches as sockets would, no cipher and no network but one copy. Prints ns per packet, both ends together.
//!
//! `cargo run --release -p acklab-rudp --example cost [MEGABYTES]`

use acklab_core::endpoint::Endpoint as _;
use acklab_core::event::Sink;
use acklab_core::packet::Ecn;
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_rudp::protect::{
    Agreed, Answer, ClientGreeter, Offer, Phase, Protection, ServerGreeter,
};
use acklab_rudp::{
    Code, Config, Connection, ContentEvent, Datagram, Event, Limits, Listener, PathAddrs,
};

/// The two ends share one clock; a turn takes so long.
const TURN: Span = Span::from_micros(100);
const BLOCK: usize = 1 << 20;

/// The two ends as the client sees them.
fn addrs() -> PathAddrs {
    let address = |host| ([10, 77, 0, host], 7000).into();
    PathAddrs { local: address(1), remote: address(2) }
}

/// No cipher and no checksum.
struct Nothing;

impl Protection for Nothing {
    fn seal(&mut self, _: u8, _: u64, _: &[u8], _: &mut [u8]) {}

    fn open(&mut self, _: Phase, _: u8, _: u64, _: &[u8], _: &mut [u8]) -> bool {
        true
    }

    fn update_sending(&mut self) {}

    fn update_receiving(&mut self) {}

    fn forget_previous(&mut self) {}
}

fn agreed(payload: &[u8]) -> Agreed {
    Agreed { payload: payload.to_vec(), protection: Box::new(Nothing), peer: None }
}

impl ClientGreeter for Nothing {
    fn mode(&self) -> u8 {
        0
    }

    fn ciphers(&self) -> u8 {
        0
    }

    fn initial(&mut self, _: &[u8], parameters: &[u8]) -> Vec<u8> {
        parameters.to_vec()
    }

    fn answer(&mut self, _: u8, message: &[u8]) -> Result<Agreed, Code> {
        Ok(agreed(message))
    }
}

impl ServerGreeter for Nothing {
    fn inspect(&mut self, _: &Offer<'_>) -> Result<(), Code> {
        Ok(())
    }

    fn greet(
        &mut self,
        offer: &Offer<'_>,
        payload: &mut dyn FnMut(u8) -> Vec<u8>,
    ) -> Result<Answer, Code> {
        Ok(Answer { cipher: 0, message: payload(0), agreed: agreed(offer.message) })
    }

    fn digest(&self, _: &[u8]) -> [u8; 32] {
        [0; 32]
    }
}

fn main() {
    let megabytes = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000);
    let bytes = megabytes * 1_000_000;
    let config = Config::default();
    let mut now = Time::ZERO;
    let rng = |name| Box::new(Rng::named(1, name));
    let greeter = Box::new(Nothing);
    let mut client = Connection::connect(now, config.clone(), rng("a"), greeter, &[addrs()]);
    let mut server = Listener::new(
        now,
        config,
        || Box::new(Rng::named(1, "b")),
        Box::new(Nothing),
        Limits::default(),
    );
    let forth = PathAddrs { local: addrs().remote, remote: addrs().local };
    let (mut stream, mut written, mut received, mut packets) = (None, 0, 0, 0_u64);
    let (mut arrived, sink, ecn) = (Vec::new(), &mut Sink::default(), Ecn::NotEct);
    let mut spare: Vec<Vec<u8>> = Vec::new();
    let began = cpu_time();
    while received < bytes {
        now += TURN;
        client.handle_timeout(now, sink);
        server.handle_timeout(now, sink);
        while client.poll_event().is_some() {}
        if client.is_open() {
            let content = client.content();
            let stream =
                *stream.get_or_insert_with(|| content.open_stream(now, false).expect("one"));
            while written < bytes && content.room(stream) > 0 {
                let mut block = spare.pop().unwrap_or_default();
                block.resize(BLOCK.min(bytes - written), 1);
                written += block.len();
                content.write(stream, block);
            }
        }
        while let Some(batch) = client.poll_transmit(now, sink) {
            arrived.clear();
            arrived.extend_from_slice(batch.bytes);
            for bytes in arrived.chunks_mut(batch.segment) {
                packets += 1;
                server.handle_packet(now, Datagram { addrs: forth, ecn, bytes }, sink);
            }
        }
        while let Some((handle, event)) = server.poll_event() {
            let Event::Content(ContentEvent::Readable { stream }) = event else { continue };
            let connection = server.connection(handle).expect("a connection");
            while let Some(block) = connection.content().read(now, stream) {
                received += block.len();
            }
        }
        while let Some(batch) = server.poll_transmit(now, sink) {
            arrived.clear();
            arrived.extend_from_slice(batch.bytes);
            for bytes in arrived.chunks_mut(batch.segment) {
                packets += 1;
                client.handle_packet(now, Datagram { addrs: addrs(), ecn, bytes }, sink);
            }
        }
    }
    let spent = cpu_time() - began;
    println!(
        "{:.3} CPU s/GB, {packets} packets, {:.0} ns each, {:.2} s of virtual time",
        spent / bytes as f64 * 1e9,
        spent / packets as f64 * 1e9,
        now.as_secs_f64()
    );
}

/// CPU seconds of this process, from the kernel's table.
fn cpu_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

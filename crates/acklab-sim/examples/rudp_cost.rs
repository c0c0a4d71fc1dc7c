//! What the protocol itself costs: two connections that hand each other their datagrams in memory, in
//! batches as sockets would, no cipher and no network. Prints ns per packet, both ends together.
//!
//! `cargo run --release --example rudp_cost [MEGABYTES]`

use acklab_core::packet::Ecn;
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_rudp::protect::{
    Agreed, Answer, ClientGreeter, Offer, Phase, Protection, ServerGreeter,
};
use acklab_rudp::{Code, Config, Connection, ContentEvent, Event, Limits, Listener, PathAddrs};
use acklab_sim::road::path;

/// The two ends share one clock; a turn takes so long.
const TURN: Span = Span::from_micros(100);
const BLOCK: usize = 1 << 20;
const BUFFER: usize = 1 << 16;

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
    let mut client = Connection::connect(now, config.clone(), rng("a"), greeter, &[path(0)]);
    let mut server = Listener::new(
        now,
        config,
        || Box::new(Rng::named(1, "b")),
        Box::new(Nothing),
        Limits::default(),
    );
    let forth = PathAddrs { local: path(0).remote, remote: path(0).local };
    let (mut stream, mut written, mut received, mut packets) = (None, 0, 0, 0_u64);
    let mut buffer = vec![0; BUFFER];
    let mut spare: Vec<Vec<u8>> = Vec::new();
    let began = cpu_time();
    while received < bytes {
        now += TURN;
        client.handle_timeout(now);
        server.handle_timeout(now);
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
        while let Some(sent) = client.poll_transmit(now, &mut buffer, 44) {
            for datagram in buffer[..sent.len].chunks_mut(sent.segment) {
                packets += 1;
                server.handle_datagram(now, forth, Ecn::NotEct, datagram);
            }
        }
        while let Some((handle, event)) = server.poll_event() {
            let Event::Content(ContentEvent::Readable { stream }) = event else { continue };
            let connection = server.connection(handle).expect("a connection");
            while let Some(block) = connection.content().read(now, stream) {
                received += block.len();
            }
        }
        while let Some(sent) = server.poll_transmit(now, &mut buffer, 44) {
            for datagram in buffer[..sent.len].chunks_mut(sent.segment) {
                packets += 1;
                client.handle_datagram(now, path(0), Ecn::NotEct, datagram);
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

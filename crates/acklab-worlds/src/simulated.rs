//! The experiment of `nagle-delack` in virtual time, seen as the other worlds show it.

use std::net::SocketAddr;

use acklab_core::packet::{Body, Packet};
use acklab_core::time::Time;
use acklab_lab::parameter::Settings;
use acklab_lab::scenario::{Capture, CapturePoint, Scenario};

use crate::exchange::{Exchange, Segment};

/// One replication of `scenario`, whose main metric is the delay from each message's write to its departure.
pub fn run(scenario: &dyn Scenario, settings: &Settings, seed: u64) -> Result<Exchange, String> {
    let mut packets = Vec::new();
    let mut tap = |now: Time, packet: &Packet| {
        if let Body::Tcp(tcp) = &packet.body {
            let ends = [packet.src, packet.dst].map(SocketAddr::from);
            packets.push((now.as_nanos(), ends, *tcp));
        }
    };
    let capture = Capture { at: CapturePoint::Sender, tap: &mut tap };
    let replication = scenario.run(settings, seed, Some(capture));
    let data = packets.iter().find(|(_, _, tcp)| tcp.payload_len > 0);
    let ends = data.map(|(_, ends, _)| *ends).ok_or("no message left the sender")?;
    let segment =
        |&(at, of, tcp): &(u64, [SocketAddr; 2], _)| Segment { at, leaves: of == ends, tcp };
    let delays = replication.metrics.samples(scenario.declaration().main_metric);
    let bytes = settings.get::<u32>("message").unwrap_or_default();
    let mut exchange = Exchange {
        ends,
        writes: vec![(0, bytes); delays.len()],
        monotonic: Vec::new(),
        reads: Vec::new(),
        segments: packets.iter().map(segment).collect(),
    };
    let left = exchange.left_at();
    if left.len() < delays.len() {
        return Err(format!("{} of {} messages left the sender", left.len(), delays.len()));
    }
    for ((write, left), delay_ms) in exchange.writes.iter_mut().zip(left).zip(delays) {
        write.0 = left.saturating_sub((delay_ms * 1e6).round() as u64);
    }
    Ok(exchange)
}

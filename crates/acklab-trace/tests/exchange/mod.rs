//! A connection written out packet by packet.

use acklab_core::time::Time;
use acklab_trace::Analyst;
use acklab_trace::diagnosis::{Direction, Mechanism};
use acklab_trace::flow::FlowTable;
use acklab_trace::segment::{Endpoint, Flags, SeenOptions, Segment};

pub(crate) const MSS: u16 = 1_448;

/// A capture of one connection; times in milliseconds, offsets and ACKs as stream offsets.
#[derive(Default)]
pub(crate) struct Exchange {
    packets: Vec<(f64, usize, Flags, u64, u32, u64)>,
    /// What each host's stream says, as far as that matters.
    said: [Vec<u8>; 2],
}

impl Exchange {
    /// Begins with a handshake at time 0, seen `near` ms from the client and `far` from the server.
    pub(crate) fn with_handshake(near: f64, far: f64) -> Self {
        let mut exchange = Self::default();
        exchange.packets.push((0.0, 0, Flags::SYN, 0, 0, 0));
        exchange.packets.push((far, 1, Flags::SYN.with(Flags::ACK), 0, 0, 0));
        exchange.packets.push((far + near, 0, Flags::ACK, 0, 0, 0));
        exchange
    }

    pub(crate) fn data(&mut self, ms: f64, host: usize, offset: u64, len: u32, ack: u64) {
        self.packets.push((ms, host, Flags::ACK.with(Flags::PSH), offset, len, ack));
    }

    /// The last data of `host`, with its FIN.
    #[allow(dead_code, reason = "not every test closes")]
    pub(crate) fn last(&mut self, ms: f64, host: usize, offset: u64, len: u32, ack: u64) {
        let flags = Flags::ACK.with(Flags::PSH).with(Flags::FIN);
        self.packets.push((ms, host, flags, offset, len, ack));
    }

    /// Data of which the bytes matter, right behind what `host` said before.
    #[allow(dead_code, reason = "not every test reads bytes")]
    pub(crate) fn say(&mut self, ms: f64, host: usize, bytes: &[u8], ack: u64) {
        self.data(ms, host, self.said[host].len() as u64, bytes.len() as u32, ack);
        self.said[host].extend(bytes);
    }

    /// The capture lacks the last packet.
    #[allow(dead_code, reason = "most captures are whole")]
    pub(crate) fn lacks(&mut self) {
        self.packets.pop();
    }

    pub(crate) fn ack(&mut self, ms: f64, host: usize, ack: u64) {
        self.packets.push((ms, host, Flags::ACK, 0, 0, ack));
    }

    /// What the analyser says of both directions, the client's first.
    pub(crate) fn diagnose(mut self) -> [Direction; 2] {
        self.packets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let end = |h: usize| Endpoint { addr: [10, 0, 0, 1 + h as u8].into(), port: 5_000 };
        let mut next = [0u64; 2];
        let mut table = FlowTable::<Analyst>::default();
        for (i, &(ms, host, flags, offset, len, ack)) in self.packets.iter().enumerate() {
            let syn = flags.has(Flags::SYN);
            // A pure ACK carries the next sequence number of its sender.
            let at = if len > 0 { offset } else { next[host] };
            next[host] = next[host].max(at + u64::from(len));
            table.on_segment(&Segment {
                frame: i as u64 + 1,
                time: Time::from_nanos(1_000_000_000 + (ms * 1e6) as u64),
                src: end(host),
                dst: end(1 - host),
                seq: if syn { 999 } else { 1_000 + at as u32 },
                ack: 1_000 + ack as u32,
                flags,
                window: 60_000,
                options: SeenOptions { mss: syn.then_some(MSS), ..SeenOptions::default() },
                payload_len: len,
                payload: self.said[host]
                    .get(at as usize..at as usize + len as usize)
                    .unwrap_or(&[]),
                ttl: 64,
                ip_id: (i as u16).wrapping_add(1),
            });
        }
        table.finish().flows.remove(0).directions.map(|d| *d.observed)
    }
}

/// Holds of a mechanism.
pub(crate) fn count(direction: &Direction, mechanism: Mechanism) -> u64 {
    direction.stalls.iter().filter(|s| s.mechanism == mechanism).map(|s| s.count).sum()
}

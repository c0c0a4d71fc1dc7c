//! How long small messages wait in the sender: 2000 of 100 bytes, one each 5 ms, over 100 ms of round trip and 1 % of
//! loss in both directions, NODELAY; two of these hosts, 20 seeds.
//!
//!     cargo run --release -p acklab-host --example small_messages

use std::collections::VecDeque;

use acklab_host::calls::ReadFlags;
use acklab_host::host::Host;
use acklab_host::segment::{Place, Segment, after};
use acklab_host::settings::{MS, SECOND, Us};
use acklab_host::socket::Family;
use acklab_host::write::WriteFlags;

const MESSAGES: u64 = 2000;
const BYTES: u32 = 100;
const EVERY: Us = 5 * MS;
const DELAY: Us = 50 * MS;
const SERVER: Place = Place { host: 1, port: 80 };
const CLIENT: Place = Place { host: 2, port: 0 };

/// xorshift: the same losses on every machine.
struct Dice(u64);

impl Dice {
    fn loses(&mut self) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.is_multiple_of(100)
    }
}

/// One packet after another of a burst.
fn packets(segment: &Segment) -> Vec<Segment> {
    let mut all = Vec::new();
    let mut rest = segment.clone();
    while rest.gso > 0 && rest.len > rest.gso {
        let mut first = rest.clone();
        first.len = rest.gso;
        first.gso = 0;
        rest.seq = rest.seq.wrapping_add(first.len);
        rest.len -= first.len;
        all.push(first);
    }
    all.push(Segment { gso: 0, ..rest });
    all
}

struct Link {
    client: Host,
    server: Host,
    fly: VecDeque<(Us, bool, Segment)>,
    dice: Dice,
    lossy: bool,
}

impl Link {
    /// What left both hosts takes off.
    fn collect(&mut self) -> Vec<(Us, Segment)> {
        let mut sent = Vec::new();
        while let Some((at, segment)) = self.client.wire.pop_front() {
            for packet in packets(&segment) {
                sent.push((at, packet.clone()));
                if !(self.lossy && self.dice.loses()) {
                    self.fly.push_back((at + DELAY, true, packet));
                }
            }
        }
        while let Some((at, segment)) = self.server.wire.pop_front() {
            if !(self.lossy && self.dice.loses()) {
                self.fly.push_back((at + DELAY, false, segment));
            }
        }
        sent
    }

    fn next(&self) -> Option<Us> {
        let flying = self.fly.iter().map(|(at, ..)| *at).min();
        [flying, self.client.deadline(), self.server.deadline()].into_iter().flatten().min()
    }

    /// What is due at `now` happens.
    fn advance(&mut self, now: Us) {
        let due = self.fly.iter().position(|(at, ..)| *at <= now);
        if let Some((_, to_server, segment)) = due.and_then(|at| self.fly.remove(at)) {
            let host = if to_server { &mut self.server } else { &mut self.client };
            host.receive(now, &segment);
        } else {
            self.client.advance(now);
            self.server.advance(now);
        }
    }
}

/// Waits of the messages of one run.
fn run(seed: u64) -> Vec<Us> {
    let mut link = Link {
        client: Host::new(1),
        server: Host::new(2),
        fly: VecDeque::new(),
        dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        lossy: false,
    };
    link.client.sysctls.set("tcp_congestion_control", "reno").expect("known");
    let listener = link.server.socket(0, Family::V4, true).expect("a socket") as i32;
    link.server.bind(listener, SERVER).expect("a place");
    link.server.listen(listener, 1).expect("a listener");
    let fd = link.client.socket(0, Family::V4, true).expect("a socket") as i32;
    let _ = link.client.connect(SECOND, fd, CLIENT, SERVER);
    link.client.set_option(SECOND, fd, 6, 1, 1).expect("NODELAY");
    link.collect();
    let begin = 2 * SECOND;
    let mut accepted = None;
    let mut first = None;
    let mut left: Vec<Option<Us>> = vec![None; MESSAGES as usize];
    let (mut written, mut unwritten) = (0, 0);
    loop {
        let write_at = (written < MESSAGES).then(|| begin + written * EVERY);
        let Some(now) = [link.next(), write_at].into_iter().flatten().min() else { break };
        if now > begin + MESSAGES * EVERY + 60 * SECOND {
            break;
        }
        if write_at == Some(now) {
            link.lossy = true;
            (written, unwritten) = (written + 1, unwritten + BYTES);
        } else {
            link.advance(now);
        }
        // A message waits for room in the send buffer, too.
        while unwritten > 0
            && let Ok(taken) =
                link.client.write(now, fd, unwritten.min(BYTES), WriteFlags::default(), true)
        {
            unwritten -= taken as u32;
        }
        accepted = accepted.or_else(|| link.server.accept(listener, 0o4000).ok());
        if let Some(fd) = accepted {
            while link
                .server
                .read(now, fd as i32, 65_536, ReadFlags::default())
                .is_ok_and(|n| n > 0)
            {}
        }
        for (at, segment) in link.collect() {
            if segment.len == 0 {
                continue;
            }
            let first = *first.get_or_insert(segment.seq);
            for (message, left) in left.iter_mut().enumerate() {
                let end = first.wrapping_add((message as u32 + 1) * BYTES);
                if left.is_none() && !after(end, segment.seq.wrapping_add(segment.len)) {
                    *left = Some(at);
                }
            }
        }
    }
    let wait = |(message, left): (usize, Option<Us>)| {
        left.expect("it left") - (begin + message as u64 * EVERY)
    };
    left.into_iter().enumerate().map(wait).collect()
}

fn main() {
    let mut all: Vec<Us> = (1..=20).flat_map(run).collect();
    all.sort_unstable();
    let mean = all.iter().sum::<Us>() as f64 / all.len() as f64;
    let at = |share: usize| all[all.len() * share / 100] as f64 / 1000.0;
    println!(
        "wait in the sender: mean {:.1} ms, p50 {:.1}, p95 {:.1}, p99 {:.1}",
        mean / 1000.0,
        at(50),
        at(95),
        at(99)
    );
}

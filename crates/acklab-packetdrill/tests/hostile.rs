//! Goal: no text makes the reader panic, and no script makes the host panic or work without end.
//! Method: the scripts of this folder with bytes changed, lines lost, doubled and exchanged, run as they are; and
//! connections that get random segments, whose invariants are asked after each (ACKLAB_SEQUENCES of them; 5199).

use std::fs;
use std::path::{Path, PathBuf};

use acklab_host::calls::ReadFlags;
use acklab_host::host::Host;
use acklab_host::segment::{Place, Segment, TcpOption, after, flag};
use acklab_host::socket::Family;
use acklab_host::tcp::State;
use acklab_host::write::WriteFlags;
use acklab_packetdrill::run::{Settings, run};

/// A small generator (xorshift): the same cases on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below.max(1)
    }
}

fn texts() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut pending = vec![root];
    let mut found: Vec<PathBuf> = Vec::new();
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { pending.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found.iter().map(|path| fs::read_to_string(path).expect("a script")).collect()
}

#[test]
fn damaged_scripts_neither_panic_nor_run_for_ever() {
    let texts = texts();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..4000 {
        let text = &texts[dice.roll(texts.len() as u64) as usize];
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for _ in 0..=dice.roll(3) {
            let at = dice.roll(lines.len() as u64) as usize;
            let other = dice.roll(lines.len() as u64) as usize;
            match dice.roll(5) {
                0 => lines.swap(at, other),
                1 => lines[at] = lines[other].clone(),
                2 => lines[at].clear(),
                3 => {
                    let digits = lines[at].replace(['1', '2'], &dice.roll(100_000).to_string());
                    lines[at] = digits;
                }
                _ => {
                    let place = dice.roll(lines[at].len() as u64 + 1) as usize;
                    let noise = [
                        "(", ")", "<", ">", "%{", "}%", "`", "\"", "...", "*", "-1", "#", "{", "|",
                    ];
                    if lines[at].is_char_boundary(place) {
                        lines[at].insert_str(place, noise[dice.roll(noise.len() as u64) as usize]);
                    }
                }
            }
        }
        run(&lines.join("\n"), Path::new("/nonexistent"), &Settings::default());
    }
}

const LOCAL: Place = Place { host: 1, port: 80 };
const REMOTE: Place = Place { host: 2, port: 5000 };

fn segment(seq: u32, ack: u32, flags: u16, len: u32, options: Vec<TcpOption>) -> Segment {
    Segment {
        src: REMOTE,
        dst: LOCAL,
        seq,
        ack,
        flags,
        window: 500,
        options,
        len,
        ..Segment::default()
    }
}

/// A host with one accepted connection, and the numbers of the host's next byte and the peer's.
fn connected(dice: &mut Dice) -> (Host, i32, u32) {
    let mut host = Host::new(dice.roll(1 << 32) as u32);
    let listener = host.socket(0, Family::V4, true).expect("a socket") as i32;
    host.bind(listener, LOCAL).expect("a place");
    host.listen(listener, 5).expect("a listener");
    let mut options = vec![TcpOption::Mss(1000), TcpOption::Scale(7)];
    if dice.roll(3) > 0 {
        options.push(TcpOption::SackOk);
    }
    if dice.roll(2) > 0 {
        options.push(TcpOption::Stamp(100, 0));
    }
    host.receive(1_000_000, &segment(0, 0, flag::SYN | (dice.roll(2) as u16 * 0xc0), 0, options));
    let answer = host.wire.pop_front().expect("an answer").1;
    let next = answer.seq.wrapping_add(1);
    host.receive(1_100_000, &segment(1, next, flag::ACK, 0, stamp(&answer)));
    let fd = host.accept(listener, 0o4000).expect("a connection") as i32;
    (host, fd, next)
}

fn stamp(answer: &Segment) -> Vec<TcpOption> {
    answer.stamp().map(|(value, _)| TcpOption::Stamp(101, value)).into_iter().collect()
}

#[test]
fn random_segments_break_no_invariant() {
    let asked = std::env::var("ACKLAB_SEQUENCES").ok().and_then(|text| text.parse().ok());
    for seed in 1..=asked.unwrap_or(5199_u64) {
        let mut dice = Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
        let (mut host, fd, first) = connected(&mut dice);
        let index = host.index(fd).expect("a socket");
        let mut now = 1_200_000;
        for _ in 0..200 {
            now += dice.roll(200_000);
            // Deadlines come in their order; the host comes to rest at each instant.
            let mut steps = 0;
            while let Some(due) = host.deadline().filter(|&due| due <= now) {
                host.advance(due);
                steps += 1;
                assert!(steps < 5000, "seed {seed}: timers without end");
            }
            step(&mut host, fd, first, now, &mut dice);
            check(&host, index, seed);
            host.wire.clear();
            if host.sockets[index].tcp.state == State::Close {
                break;
            }
        }
    }
}

fn step(host: &mut Host, fd: i32, first: u32, now: u64, dice: &mut Dice) {
    match dice.roll(10) {
        0 | 1 => {
            let _ = host.write(now, fd, dice.roll(20_000) as u32 + 1, WriteFlags::default(), true);
        }
        2 => {
            let _ = host.read(now, fd, dice.roll(5000) as u32, ReadFlags::default());
        }
        3 if dice.roll(20) == 0 => {
            let _ = host.shutdown(now, fd, dice.roll(3) as i32);
        }
        _ => {
            let Ok(index) = host.index(fd) else { return };
            let tcp = &host.sockets[index].tcp;
            let span = tcp.snd.nxt.wrapping_sub(tcp.snd.una);
            let ack = tcp.snd.una.wrapping_add(dice.roll(u64::from(span) + 500) as u32);
            let ack = ack.wrapping_sub(dice.roll(200) as u32 * u32::from(dice.roll(4) == 0));
            let seq = tcp.rcv.nxt.wrapping_add(dice.roll(6000) as u32);
            let seq = seq.wrapping_sub(dice.roll(4) as u32 * 1500);
            let seq = if dice.roll(2) == 0 { tcp.rcv.nxt } else { seq };
            let flags = match dice.roll(40) {
                0 => flag::ACK | flag::FIN,
                1 => flag::RST,
                2 => flag::SYN,
                3 => flag::ACK | flag::ECE,
                4 => 0,
                _ => flag::ACK,
            };
            let mut options = Vec::new();
            if dice.roll(2) == 0 {
                let blocks = (0..=dice.roll(3)).map(|_| {
                    let left = first.wrapping_add(dice.roll(u64::from(span) + 3000) as u32);
                    (left, left.wrapping_add(dice.roll(4000) as u32))
                });
                options.push(TcpOption::Sack(blocks.collect()));
            }
            if dice.roll(2) == 0 {
                options.push(TcpOption::Stamp((now / 1000) as u32, (now / 1000 - 50) as u32));
            }
            let len = if dice.roll(2) == 0 { 0 } else { dice.roll(2000) as u32 };
            let mut arriving = segment(seq, ack, flags, len, options);
            arriving.window = dice.roll(600) as u16;
            arriving.ecn = dice.roll(4) as u8;
            host.receive(now, &arriving);
        }
    }
}

fn check(host: &Host, index: usize, seed: u64) {
    let tcp = &host.sockets[index].tcp;
    let marked = |of: fn(&acklab_host::skb::Marks) -> bool| {
        tcp.snd.out.iter().filter(|skb| of(&skb.marks)).count() as u32
    };
    // What was counted stays in TCP_INFO when the queue is gone, as Linux has it.
    let is_over = tcp.state == State::Close;
    if tcp.terms.sack && !is_over {
        assert_eq!(tcp.rec.sacked, marked(|m| m.sacked), "seed {seed}: sacked");
    }
    assert!(is_over || tcp.rec.lost == marked(|m| m.lost), "seed {seed}: lost");
    assert!(is_over || tcp.rec.retrans == marked(|m| m.retrans), "seed {seed}: retransmitted");
    assert!(!after(tcp.snd.una, tcp.snd.nxt), "seed {seed}: acknowledged what was not sent");
    assert!(tcp.state == State::Close || tcp.window.cwnd > 0, "seed {seed}: a window of nothing");
    assert!(tcp.rcv.ooo.len() < 4096 && tcp.snd.out.len() < 100_000, "seed {seed}: memory");
    for (_, segment) in &host.wire {
        // Once the connection is over the listener answers in its place.
        let is_its_own = segment.has(flag::ACK) && segment.flags & (flag::RST | flag::SYN) == 0;
        assert!(
            !is_its_own || !after(segment.ack, tcp.rcv.nxt),
            "seed {seed}: an ACK of what never came"
        );
        assert!(
            segment.len == 0 || !after(segment.end(), tcp.snd.nxt),
            "seed {seed}: data beyond the next number"
        );
    }
    let waits = tcp.snd.out.is_empty() || tcp.timers.transmit.is_some();
    assert!(waits || tcp.state == State::Close, "seed {seed}: nothing watches what is out");
}

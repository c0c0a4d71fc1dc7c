//! The contract's property tests of the host as an end of connections: arbitrary scripts against one connection,
//! and against two with a hostile network between them.

use std::collections::VecDeque;

use acklab_core::contract::{Choices, check_quiet, drain, expire};
use acklab_core::endpoint::Endpoint;
use acklab_core::event::{Interest, Sink};
use acklab_core::notices::AppEvent;
use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};
use acklab_core::segment::{Flags, SackBlock, TcpOptions, TcpRepr, Timestamp};
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_host::connection::{Connection, Setup};
use acklab_host::tcp::State;
use proptest::prelude::*;

const CLIENT: Addr = Addr { node: NodeId(0), port: 40_000 };
const SERVER: Addr = Addr { node: NodeId(1), port: 80 };

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_connection_keeps_the_contract_whatever_the_peer_sends(
        bytes in proptest::collection::vec(any::<u8>(), 0..1500)
    ) {
        attack_connection(&bytes);
    }

    #[test]
    fn honest_ends_lose_nothing_over_a_hostile_network_and_the_same_input_gives_the_same_output(
        bytes in proptest::collection::vec(any::<u8>(), 0..600)
    ) {
        prop_assert_eq!(attack_pair(&bytes), attack_pair(&bytes));
    }
}

fn setup(choices: &mut Choices<'_>) -> Setup {
    let mut setup = Setup { nodelay: choices.flip(), ..Setup::default() };
    let controls = [
        "tcp_sack",
        "tcp_timestamps",
        "tcp_window_scaling",
        "tcp_ecn",
        "tcp_slow_start_after_idle",
    ];
    for name in controls {
        setup.sysctls.set(name, if choices.flip() { "1" } else { "0" }).expect("known");
    }
    let control = choices.one_of(&["reno", "cubic", "dctcp"]);
    setup.sysctls.set("tcp_congestion_control", control).expect("known");
    setup.route.device_mtu = choices.one_of(&[140, 576, 1500, 9000]);
    setup.send_buffer = choices.flip().then(|| choices.one_of(&[2000, 20_000, 65_000]));
    setup.receive_window = choices.flip().then(|| choices.one_of(&[2000, 20_000, 65_000]));
    setup
}

/// One connection against a peer that may send anything.
fn attack_connection(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let setup = setup(&mut choices);
    let isn = Seq(choices.long());
    let mut connection = if choices.flip() {
        Connection::connect(Time::ZERO, &setup, CLIENT, SERVER, isn)
    } else {
        Connection::listen(&setup, CLIENT, isn)
    };
    let (mut now, mut sink) = (Time::ZERO, Sink::new(Interest::ALL));
    for _ in 0..400 {
        drain(&mut connection, now, &mut sink, |packet| {
            assert!(packet.src == CLIENT && !packet.returned);
        });
        check_quiet(&mut connection, now, &mut sink);
        sink.drain();
        if choices.is_empty() {
            return;
        }
        match choices.below(8) {
            0..=3 => {
                let tcp = segment(&connection, now, &mut choices);
                let (src, dst) = (SERVER, CLIENT);
                let ecn = choices.one_of(&[Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
                let packet = Packet { src, dst, ecn, returned: false, body: Body::Tcp(tcp) };
                connection.handle_packet(now, packet, &mut sink);
            }
            4 | 5 => {
                let until = now + Span::from_micros(u64::from(choices.word()) * 17);
                while let Some(at) = connection.poll_timeout().filter(|&at| at <= until) {
                    now = now.max(at);
                    expire(&mut connection, now, &mut sink, |_| {});
                }
                now = until;
            }
            6 => drop(connection.write(now, u32::from(choices.word()), &mut sink)),
            _ if choices.below(8) == 0 => connection.close(now),
            _ => drop(connection.read(now, u32::from(choices.word()))),
        }
    }
}

fn segment(connection: &Connection, now: Time, choices: &mut Choices<'_>) -> TcpRepr {
    let tcp = connection.tcp();
    let shift = |seq: u32, by: i32| Seq(seq.wrapping_add(by as u32));
    let flags = match choices.below(8) {
        0 => Flags(choices.byte()),
        1 => Flags::SYN,
        2 => Flags::SYN.with(Flags::ACK),
        3 => Flags::FIN.with(Flags::ACK),
        4 => Flags::PSH.with(Flags::ACK),
        _ => Flags::ACK,
    };
    let mut options = TcpOptions::default();
    if flags.has(Flags::SYN) {
        options.mss = choices.flip().then(|| choices.word());
        options.window_scale = choices.flip().then(|| choices.byte());
        options.sack_permitted = choices.flip();
    }
    if choices.flip() {
        let clock = (now.as_nanos() / 1_000_000) as u32 + 1_000_000;
        let [value, echo] = [choices.distance(), choices.distance()];
        let [value, echo] = [value, echo].map(|by| clock.wrapping_add(by as u32));
        options.timestamp = Some(Timestamp { value, echo });
    }
    for _ in 0..choices.below(5) {
        let left = shift(tcp.snd.una, choices.distance());
        let right = left + choices.distance() as u32;
        options.sack.push(SackBlock { left, right });
    }
    let acked = if choices.flip() { tcp.snd.una } else { tcp.snd.nxt };
    TcpRepr {
        seq: shift(tcp.rcv.nxt, choices.distance()),
        ack: shift(acked, choices.distance()),
        flags,
        window: if choices.below(4) == 0 { choices.word() } else { 60_000 },
        options,
        payload_len: match choices.below(4) {
            0 | 1 => 0,
            2 => u32::from(choices.byte()),
            _ => u32::from(choices.word()),
        },
    }
}

/// Two ends and what is between them.
struct Pair {
    ends: [Connection; 2],
    now: Time,
    latency: Span,
    /// What becomes of the packets, over and over; empty: they arrive.
    fates: Vec<u8>,
    wire: VecDeque<(Time, usize, Packet)>,
    sent: usize,
    written: [u64; 2],
    notices: [Vec<AppEvent>; 2],
    reads: [bool; 2],
    digest: u64,
    sink: Sink,
}

impl Pair {
    fn settle(&mut self) {
        let mut moved = true;
        while moved {
            moved = false;
            for side in 0..2 {
                let mut out = Vec::new();
                let end = &mut self.ends[side];
                let told = drain(end, self.now, &mut self.sink, |packet| out.push(packet));
                moved |= !told.is_empty() || !out.is_empty();
                moved |= self.reads[side] && end.read(self.now, u32::MAX) > 0;
                self.notices[side].extend(told);
                for packet in out {
                    self.put(1 - side, packet);
                }
                self.sink.drain();
            }
        }
    }

    fn put(&mut self, to: usize, packet: Packet) {
        let Body::Tcp(tcp) = &packet.body else { return };
        let (seq, ack, len) = (tcp.seq.0.into(), tcp.ack.0.into(), tcp.payload_len.into());
        for value in [self.now.as_nanos(), seq, ack, len] {
            self.digest = (self.digest ^ value).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let byte = self.fates.get(self.sent % self.fates.len().max(1)).copied();
        let (fate, extra) = byte.map_or((7, 0), |byte| (byte % 8, u64::from(byte)));
        self.sent += 1;
        let at = self.now + self.latency;
        let times: &[Time] = match fate {
            0 => &[],
            1 => &[at, at],
            2 => &[at + Span::from_micros(extra * 2000)],
            _ => &[at],
        };
        for &at in times {
            let marked = fate == 3 && packet.ecn != Ecn::NotEct;
            let ecn = if marked { Ecn::Ce } else { packet.ecn };
            let place = self.wire.partition_point(|&(due, ..)| due <= at);
            self.wire.insert(place, (at, to, Packet { ecn, ..packet }));
        }
    }

    fn next_time(&self) -> Option<Time> {
        let arrival = self.wire.front().map(|&(at, ..)| at);
        let [a, b] = self.ends.each_ref().map(Endpoint::poll_timeout);
        [arrival, a, b].into_iter().flatten().min()
    }

    fn step(&mut self, at: Time) {
        self.now = at;
        while let Some((_, to, packet)) = self.wire.pop_front_if(|(due, ..)| *due <= at) {
            self.ends[to].handle_packet(at, packet, &mut self.sink);
            self.settle();
        }
        for end in &mut self.ends {
            if end.poll_timeout().is_some_and(|due| due <= at) {
                end.handle_timeout(at, &mut self.sink);
            }
        }
        self.settle();
        for (reader, writer) in [(0, 1), (1, 0)] {
            let read = self.ends[reader].total_read();
            assert!(read <= self.written[writer], "more is read than was written");
        }
    }
}

/// A network that loses, delays, copies and marks between two honest ends; returns a digest of all that left.
fn attack_pair(bytes: &[u8]) -> u64 {
    let mut choices = Choices::new(bytes);
    let latency = Span::from_micros(u64::from(choices.word()) * 5);
    let client = Connection::connect(Time::ZERO, &setup(&mut choices), CLIENT, SERVER, Seq(1000));
    let server = Connection::listen(&setup(&mut choices), SERVER, Seq(5000));
    let mut pair = Pair {
        ends: [client, server],
        now: Time::ZERO,
        latency,
        fates: choices.take(48).to_vec(),
        wire: VecDeque::new(),
        sent: 0,
        written: [0; 2],
        notices: [Vec::new(), Vec::new()],
        reads: [true; 2],
        digest: 0xcbf2_9ce4_8422_2325,
        sink: Sink::new(Interest::ALL),
    };
    pair.settle();
    for _ in 0..400 {
        if choices.is_empty() {
            break;
        }
        let side = usize::from(choices.flip());
        match choices.below(6) {
            0 | 1 => {
                let bytes = u32::from(choices.word());
                let taken = pair.ends[side].write(pair.now, bytes, &mut pair.sink);
                pair.written[side] += u64::from(taken);
            }
            2 | 3 => {
                let until = pair.now + Span::from_micros(u64::from(choices.word()) * 8);
                while let Some(at) = pair.next_time().filter(|&at| at <= until) {
                    pair.step(at);
                }
                pair.now = until;
            }
            4 => pair.reads[side] = choices.flip(),
            _ => drop(pair.ends[side].read(pair.now, u32::from(choices.word()))),
        }
        pair.settle();
    }
    finish(&mut pair);
    pair.digest
}

/// The network relents and both ends close.
fn finish(pair: &mut Pair) {
    pair.fates.clear();
    pair.reads = [true; 2];
    let now = pair.now;
    pair.ends.iter_mut().for_each(|end| end.close(now));
    pair.settle();
    let mut steps = 0;
    while let Some(at) = pair.next_time() {
        steps += 1;
        assert!(steps < 100_000, "the connection does not end: {:?}", pair.ends);
        pair.step(at);
    }
    let opened = pair.notices.iter().all(|told| told.contains(&AppEvent::Connected));
    let failed = |told: &Vec<AppEvent>| {
        told.iter().any(|one| matches!(one, AppEvent::TimedOut | AppEvent::Reset))
    };
    if opened && !pair.notices.iter().any(failed) {
        let read = pair.ends.each_ref().map(Connection::total_read);
        assert_eq!([read[1], read[0]], pair.written, "all of what was written is read");
        let states = pair.ends.each_ref().map(|end| end.tcp().state);
        assert_eq!(states, [State::Close; 2], "{:?}", pair.notices);
    }
}

//! Hostile peers and networks from bytes: what the property tests and the fuzz target run.
//!
//! [`attack_connection`] hands one connection arbitrary segments, deadlines and calls. A peer may do
//! anything, so what must hold is the contract itself and [`Connection::check`].
//! [`attack_pair`] puts an adversarial network between two honest ends. There bytes are conserved:
//! nothing is read that was not written, and once the network relents everything arrives and both
//! ends close, unless one gave up. And no time-out leaves a sender a slow-start threshold above the
//! window that it had.

use std::cell::Cell;
use std::rc::Rc;

use super::pair::{Fate, Pair, Sent, Side};
use crate::{
    AckRequests, AppEvent, Config, Connection, KeepAlive, LossRecovery, Nagle, State, System,
};
use acklab_core::ack::Profile;
use acklab_core::cc::Algorithm;
use acklab_core::contract::{Choices, check_quiet, drain, expire};
use acklab_core::endpoint::Endpoint;
use acklab_core::event::{EventKind, Interest, Sink};
use acklab_core::options::Word;
use acklab_core::packet::{Body, Ecn, Packet};
use acklab_core::segment::{AckRequest, Flags, SackBlock, TcpOptions, TcpRepr, Timestamp};
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};

/// Runs one connection against a peer that may send anything.
///
/// # Panics
/// Where the contract does not hold.
pub fn attack_connection(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let config = config(&mut choices);
    let (local, remote) = Pair::addresses();
    let connection = if choices.flip() {
        Connection::connect(Time::ZERO, config, local, remote, Seq(choices.long()))
    } else {
        Connection::listen(config, local, Seq(choices.long()))
    };
    let mut attack = Attack { connection, now: Time::ZERO, sink: Sink::new(Interest::ALL) };
    attack.settle();
    let mut steps = 0;
    while !choices.is_empty() && steps < MAX_STEPS {
        steps += 1;
        attack.step(&mut choices);
        attack.settle();
    }
}

struct Attack {
    connection: Connection,
    now: Time,
    sink: Sink,
}

impl Attack {
    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.below(8) {
            0..=3 => {
                let mut segment = segment(&self.connection, self.now, choices);
                let (local, remote) = Pair::addresses();
                let returned = choices.below(8) == 0;
                if returned {
                    segment.seq = segment.ack;
                }
                let packet = Packet {
                    src: if returned { local } else { remote },
                    dst: if returned { remote } else { local },
                    ecn: [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]
                        [usize::from(choices.below(4))],
                    returned,
                    body: Body::Tcp(segment),
                };
                self.connection.handle_packet(self.now, packet, &mut self.sink);
            }
            4 => {
                if let Some(at) = self.connection.poll_timeout() {
                    self.now = self.now.max(at);
                    expire(&mut self.connection, self.now, &mut self.sink, |_| {});
                }
            }
            5 => {
                let until = self.now + Span::from_micros(u64::from(choices.word()) * 17);
                while let Some(at) = self.connection.poll_timeout().filter(|&at| at <= until) {
                    self.now = at;
                    expire(&mut self.connection, self.now, &mut self.sink, |_| {});
                }
                self.now = until;
            }
            6 => drop(self.connection.write(self.now, u32::from(choices.word()))),
            _ => call(&mut self.connection, self.now, choices),
        }
    }

    fn settle(&mut self) {
        drain(&mut self.connection, self.now, &mut self.sink, |_| {});
        check_quiet(&mut self.connection, self.now, &mut self.sink);
        self.sink.drain();
        if let Err(rule) = self.connection.check() {
            panic!("{rule}: {:?}", self.connection);
        }
    }
}

/// Puts a network that loses, delays and copies between two honest ends; returns a digest of all that
/// left, so that two runs can be compared.
///
/// # Panics
/// Where the contract does not hold.
pub fn attack_pair(bytes: &[u8]) -> u64 {
    let mut choices = Choices::new(bytes);
    let latency = Span::from_micros(u64::from(choices.word()) * 5);
    let configs = [config(&mut choices), config(&mut choices)];
    let measured = configs.each_ref().map(|c| c.congestion.name() == "westwood");
    let [a, b] = configs;
    let mut pair = Pair::new(a, b, latency);
    let hostile = Rc::new(Cell::new(true));
    let fates = choices.take(48).to_vec();
    pair.filter = network(fates, Rc::clone(&hostile));
    let mut steps = 0;
    while !choices.is_empty() && steps < MAX_STEPS {
        steps += 1;
        pair_step(&mut pair, &mut choices);
        check_both(&pair);
    }
    hostile.set(false);
    finish(&mut pair);
    check_thresholds(&pair, measured);
    digest(&pair)
}

fn network(fates: Vec<u8>, hostile: Rc<Cell<bool>>) -> super::Filter {
    Box::new(move |index, _: &Sent| {
        if !hostile.get() || fates.is_empty() {
            return Fate::Arrive;
        }
        let byte = fates[index % fates.len()];
        match byte % 8 {
            0 => Fate::Lose,
            1 => Fate::Mark,
            2 => Fate::Twice,
            3 => Fate::Return,
            4 => Fate::Delay(Span::from_micros(u64::from(byte) * 2_000)),
            _ => Fate::Arrive,
        }
    })
}

fn pair_step(pair: &mut Pair, choices: &mut Choices<'_>) {
    let side = if choices.flip() { Side::A } else { Side::B };
    let now = pair.time;
    let end = if side == Side::A { &mut pair.a } else { &mut pair.b };
    match choices.below(6) {
        0 | 1 => drop(end.write(now, u32::from(choices.word()))),
        2 | 3 => {
            let until = now + Span::from_micros(u64::from(choices.word()) * 8);
            let mut steps = 0;
            while let Some(at) = pair.next_time().filter(|&at| at <= until) {
                steps += 1;
                assert!(steps < 1_000_000, "busy loop between {now} and {until}");
                pair.step(at);
            }
            pair.time = until;
        }
        4 => pair.reads[side as usize] = choices.flip(),
        _ => match choices.below(4) {
            0 => drop(end.read(now, u32::from(choices.word()))),
            1 => end.set_nodelay(now, choices.flip()),
            2 => end.set_cork(now, choices.flip()),
            _ => end.set_quickack(now, choices.flip(), choices.flip()),
        },
    }
    pair.settle();
}

/// The network relents and both ends close.
fn finish(pair: &mut Pair) {
    pair.reads = [true, true];
    pair.a.close(pair.time);
    pair.b.close(pair.time);
    let mut steps = 0;
    pair.settle();
    while let Some(at) = pair.next_time() {
        steps += 1;
        assert!(
            steps < 100_000,
            "the connection does not end:\n{:#?}\n{:?}\n{:?}",
            &pair.log[pair.log.len() - 6..],
            pair.a,
            pair.b
        );
        pair.step(at);
        check_both(pair);
    }
    let gave_up = pair
        .notices
        .iter()
        .any(|(_, _, event)| matches!(event, AppEvent::TimedOut | AppEvent::Reset));
    if !gave_up && pair.a.total_written() + pair.b.total_written() > 0 {
        let opened = pair.notices.iter().filter(|n| n.2 == AppEvent::Connected).count();
        if opened == 2 {
            assert_eq!(pair.b.total_read(), pair.a.total_written(), "A to B");
            assert_eq!(pair.a.total_read(), pair.b.total_written(), "B to A");
            assert_eq!((pair.a.state(), pair.b.state()), (State::Closed, State::Closed));
        }
    }
}

fn check_both(pair: &Pair) {
    for end in [&pair.a, &pair.b] {
        if let Err(rule) = end.check() {
            panic!("{rule}: {end:?}");
        }
    }
    assert!(pair.b.total_read() <= pair.a.total_written(), "B read more than A wrote");
    assert!(pair.a.total_read() <= pair.b.total_written(), "A read more than B wrote");
}

/// RFC 5681 equation 4: a time-out leaves the threshold as it is, or sets it to no more than the window
/// was, or to two segments. Only Westwood+ (`measured`) sets it to what the path was measured to carry.
fn check_thresholds(pair: &Pair, measured: [bool; 2]) {
    for (end, measured) in [&pair.a, &pair.b].into_iter().zip(measured) {
        let mut before: Option<(u64, u64)> = None;
        let mut timed_out = false;
        for event in &pair.events {
            match event.kind {
                EventKind::Loss { flow, timeout: true } if flow == end.flow() => timed_out = true,
                EventKind::Congestion { flow, cwnd, ssthresh, .. } if flow == end.flow() => {
                    let least = 2 * u64::from(end.mss());
                    if let Some((window, threshold)) = before.filter(|_| timed_out && !measured) {
                        assert!(
                            ssthresh == threshold || ssthresh <= window.max(least),
                            "a time-out at {} set ssthresh from {threshold} to {ssthresh} with a \
                             window of {window}",
                            event.time
                        );
                    }
                    (before, timed_out) = (Some((cwnd, ssthresh)), false);
                }
                _ => {}
            }
        }
    }
}

/// FNV-1a over times and segments.
fn digest(pair: &Pair) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |value: u64| hash = (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3);
    pair.log.iter().for_each(|sent: &Sent| {
        mix(sent.at.as_nanos());
        mix(u64::from(sent.segment.seq.0));
        mix(u64::from(sent.segment.ack.0));
        mix(u64::from(sent.segment.payload_len) << 8 | u64::from(sent.segment.flags.0));
    });
    hash
}

fn config(choices: &mut Choices<'_>) -> Config {
    let mut config = choices.one_of(System::ALL).config();
    config.send_buffer = [100, 2_000, 20_000, 65_000][usize::from(choices.below(4))];
    config.receive_buffer = [100, 2_000, 20_000, 65_000][usize::from(choices.below(4))];
    config.mss = [1, 100, 536, 1460, 9000][usize::from(choices.below(5))];
    let bits = choices.byte();
    config.timestamps = bits & 2 == 0;
    config.window_scale = (bits & 4 == 0).then_some(bits >> 4);
    config.loss.limited_transmit = bits & 8 == 0;
    config.nagle = choices.one_of(Nagle::ALL);
    if choices.below(4) == 0 {
        config.ack = choices.one_of(&Profile::all());
    }
    config.ack_requests = choices.one_of(AckRequests::ALL);
    config.ecn = choices.flip();
    config.loss.recovery = choices.one_of(LossRecovery::ALL);
    config.loss.dup_thresh = 1 + u32::from(choices.below(4));
    config.congestion = choices.one_of(&Algorithm::all());
    if choices.below(8) == 0 {
        let [idle, interval] = [Span::from_secs(2), Span::from_secs(1)];
        config.patience.keep_alive = Some(KeepAlive { idle, interval, probes: 3 });
    }
    config
}

fn segment(connection: &Connection, now: Time, choices: &mut Choices<'_>) -> TcpRepr {
    let (una, nxt) = connection.send_sequence();
    let shift = |seq: Seq, by: i32| Seq(seq.0.wrapping_add(by as u32));
    let mut flags = match choices.below(8) {
        0 => Flags(choices.byte()),
        1 => Flags::SYN,
        2 => Flags::SYN.with(Flags::ACK),
        3 => Flags::FIN.with(Flags::ACK),
        _ => Flags::ACK,
    };
    if choices.below(4) == 0 {
        flags = flags.with(Flags::PSH);
    }
    let mut options = TcpOptions::default();
    if flags.has(Flags::SYN) {
        options.mss = choices.flip().then(|| choices.word());
        options.window_scale = choices.flip().then(|| choices.byte());
        options.sack_permitted = choices.flip();
    }
    if choices.flip() {
        let clock = (now.as_nanos() / 1_000_000) as u32;
        let [value, echo] = [choices.distance(), choices.distance()];
        options.timestamp = Some(Timestamp {
            value: clock.wrapping_add(value as u32),
            echo: clock.wrapping_add(echo as u32),
        });
    }
    if choices.below(4) == 0 {
        let number = choices.byte();
        let requests = [
            AckRequest::TarrCapable,
            AckRequest::Tarr(number & 0x7f),
            AckRequest::AckCcPermitted,
            AckRequest::AckCc(number),
        ];
        options.ack_request = Some(choices.one_of(&requests));
    }
    for _ in 0..choices.below(5) {
        let left = shift(una, choices.distance());
        options.sack.push(SackBlock { left, right: shift(left, choices.distance()) });
    }
    TcpRepr {
        seq: shift(connection.next_expected(), choices.distance()),
        ack: shift(if choices.flip() { una } else { nxt }, choices.distance()),
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

fn call(connection: &mut Connection, now: Time, choices: &mut Choices<'_>) {
    match choices.below(16) {
        0 => connection.close(now),
        1 => connection.abort(now),
        2 | 3 => connection.set_nodelay(now, choices.flip()),
        4 | 5 => connection.set_cork(now, choices.flip()),
        6 => connection.set_quickack(now, choices.flip(), choices.flip()),
        _ => drop(connection.read(now, u32::from(choices.word()))),
    }
}

/// Decisions of one script; keeps a fuzzer's single run short.
const MAX_STEPS: usize = 400;

//! The Linux receiver against a real one: `tests/kernel/linux_acks.txt` holds when Linux 6.18
//! (HZ = 250, in a virtual machine) acknowledged what arrived over loopback; see
//! `tests/kernel/record.py`.
//!
//! The same arrivals, reads and answers go into a connection here. Every ACK must cover the same
//! bytes for the same reason, and come no earlier than 1 ms before the kernel's (which rounds to
//! jiffies) and no more than 13 ms before it: the kernel's timers expire up to two jiffies late, and
//! the virtual machine wakes late on top.

use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};
use acklab_core::segment::{Flags, TcpOptions, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_tcp::{Config, Connection, System};

/// An ACK left: when, in µs, and how many bytes it covers.
type Ack = (u64, u32);

struct Receiver {
    connection: Connection,
    reads: bool,
    /// Next byte of the client's, from 0.
    sent: u32,
    acks: Vec<Ack>,
}

const CLIENT: Addr = Addr { node: NodeId(0), port: 40_000 };
const SERVER: Addr = Addr { node: NodeId(1), port: 80 };
/// The capture's time zero is here.
const BASE: Time = Time::from_nanos(1_000_000_000);

impl Receiver {
    fn new(reads: bool) -> Self {
        let config = Config {
            timestamps: false,
            // tcp_rmem[1] / 2: tuning enlarges the buffer only for data that is read.
            receive_buffer: 65_536,
            nagle: acklab_tcp::Nagle::Off,
            ..System::Linux.config()
        };
        let connection = Connection::listen(config, SERVER, Seq(5000));
        let mut receiver = Self { connection, reads, sent: 0, acks: Vec::new() };
        let options =
            TcpOptions { mss: Some(1460), window_scale: Some(7), ..TcpOptions::default() };
        let (seq, flags) = (Seq(0), Flags::SYN);
        receiver
            .deliver(BASE, TcpRepr { seq, flags, window: 65_000, options, ..TcpRepr::default() });
        receiver.deliver(BASE, receiver.segment(0));
        receiver.acks.clear();
        receiver
    }

    fn segment(&self, payload_len: u32) -> TcpRepr {
        let mut flags = Flags::ACK;
        if payload_len > 0 {
            flags = flags.with(Flags::PSH);
        }
        let (_, ack) = self.connection.send_sequence();
        TcpRepr {
            seq: Seq(1 + self.sent),
            ack,
            flags,
            window: 500,
            payload_len,
            ..TcpRepr::default()
        }
    }

    fn deliver(&mut self, now: Time, segment: TcpRepr) {
        let body = Body::Tcp(segment);
        let packet = Packet { src: CLIENT, dst: SERVER, ecn: Ecn::NotEct, returned: false, body };
        self.connection.handle_packet(now, packet, &mut Sink::default());
        self.drain(now);
        if self.reads && self.connection.read(now, u32::MAX) > 0 {
            self.drain(now);
        }
    }

    fn drain(&mut self, now: Time) {
        while let Some(packet) = self.connection.poll_transmit(now, &mut Sink::default()) {
            if let Body::Tcp(segment) = packet.body {
                self.acks.push((now.since(BASE).as_micros(), segment.ack - Seq(1)));
            }
        }
    }

    /// Lets every deadline before `until` pass.
    fn advance(&mut self, until: Time) {
        while let Some(at) = self.connection.poll_timeout().filter(|&at| at < until) {
            self.connection.handle_timeout(at, &mut Sink::default());
            self.drain(at);
        }
    }

    fn arrive(&mut self, now: Time, len: u32) {
        self.advance(now);
        let segment = self.segment(len);
        self.sent += len;
        self.deliver(now, segment);
    }

    fn answer(&mut self, now: Time, len: u32) {
        self.advance(now);
        self.connection.write(now, len);
        self.drain(now);
        self.deliver(now, self.segment(0));
    }
}

fn check(name: &str, reads: bool, lines: &[&str]) {
    let mut receiver = Receiver::new(reads);
    let mut kernel: Vec<Ack> = Vec::new();
    for line in lines {
        let fields: Vec<u64> = line.split(' ').skip(1).flat_map(str::parse).collect();
        let now = BASE + Span::from_micros(fields[0]);
        match line.as_bytes()[0] {
            b'D' => receiver.arrive(now, fields[1] as u32),
            b'R' => {
                receiver.answer(now, fields[1] as u32);
                kernel.push((fields[0], fields[2] as u32));
            }
            _ => kernel.push((fields[0], fields[1] as u32)),
        }
    }
    receiver.advance(BASE + Span::from_secs(1000));
    let covered = |acks: &[Ack]| acks.iter().map(|ack| ack.1).collect::<Vec<_>>();
    assert_eq!(covered(&receiver.acks), covered(&kernel), "{name}: {:?}", receiver.acks);
    for (&(ours, bytes), &(theirs, _)) in receiver.acks.iter().zip(&kernel) {
        assert!(
            ours <= theirs + 1_000 && theirs <= ours + 13_000,
            "{name}: ACK of {bytes} bytes at {ours} us, the kernel's at {theirs} us"
        );
    }
}

#[test]
fn acks_leave_when_the_kernels_did() {
    let recorded = include_str!("kernel/linux_acks.txt");
    let mut scenarios = 0;
    for scenario in recorded.split("scenario ").filter(|text| !text.is_empty()) {
        let mut lines = scenario.lines();
        let (name, reader) = lines.next().and_then(|head| head.split_once(' ')).unwrap();
        check(name, reader == "read", &lines.collect::<Vec<_>>());
        scenarios += 1;
    }
    assert_eq!(scenarios, 6);
}

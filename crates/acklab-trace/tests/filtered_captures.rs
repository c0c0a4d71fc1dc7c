//! Captures that a filter thinned out: what it took away must not look like something that never happened.
//!
//! Goal: without the ACKs that carry no data ("only packets with payload") the answer is open, in each connection of
//! the capture. Method: conversations with nothing held, as they passed, and without these ACKs.

use acklab_core::time::Time;
use acklab_trace::capture::{CaptureReader, CaptureWriter, LinkType, WriterOptions};
use acklab_trace::diagnosis::{Lack, NagleState};
use acklab_trace::{Diagnosis, Options, diagnose_reader};

/// A packet of one of the connections between two hosts.
struct Packet {
    ms: f64,
    port: u16,
    from_client: bool,
    seq: u32,
    ack: u32,
    len: usize,
}

impl Packet {
    fn bytes(&self) -> Vec<u8> {
        let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let (ports, from, to) = if self.from_client {
            ([self.port, 8_333], client, server)
        } else {
            ([8_333, self.port], server, client)
        };
        let mut packet = vec![0x45, 0];
        packet.extend((40 + self.len as u16).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 6, 0, 0]);
        packet.extend(from.into_iter().chain(to));
        packet.extend(ports.into_iter().flat_map(u16::to_be_bytes));
        packet.extend(self.seq.to_be_bytes().into_iter().chain(self.ack.to_be_bytes()));
        packet.extend([0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend(vec![b'x'; self.len]);
        packet
    }
}

/// Both ends write when they like, `pause` ms apart or more, two pieces at once (TCP_NODELAY) now and then; each ACK
/// comes after 40 ms or on the next data. The client of every third piece is the server.
fn conversation(port: u16, pieces: u32, pause: f64) -> Vec<Packet> {
    let mut packets = Vec::new();
    let (mut now, mut sent) = (f64::from(port), [1u32, 1]);
    for i in 0..pieces {
        let host = usize::from(i % 3 == 2);
        let mut say = |now: f64, sent: &mut [u32; 2]| {
            let (seq, ack) = (sent[host], sent[1 - host]);
            let from_client = host == 0;
            packets.push(Packet { ms: now, port, from_client, seq, ack, len: 61 });
            sent[host] += 61;
        };
        say(now, &mut sent);
        if i % 4 == 1 {
            say(now + 0.2, &mut sent);
        }
        let (seq, ack) = (sent[1 - host], sent[host]);
        packets.push(Packet { ms: now + 40.0, port, from_client: host == 1, seq, ack, len: 0 });
        now += pause * (1.0 + f64::from(i * 7 % 5) / 3.0);
    }
    packets
}

fn diagnosed(mut packets: Vec<&Packet>) -> Diagnosis {
    packets.sort_by(|a, b| a.ms.total_cmp(&b.ms));
    let options = WriterOptions { link: LinkType(101), ..WriterOptions::default() };
    let mut writer = CaptureWriter::new(Vec::new(), options).expect("memory");
    for packet in packets {
        let bytes = packet.bytes();
        let time = Time::from_nanos(1_000_000_000 + (packet.ms * 1e6) as u64);
        writer.write_frame(time, &bytes, bytes.len() as u32).expect("memory");
    }
    let capture = writer.finish().expect("memory");
    let mut reader = CaptureReader::new(capture.as_slice()).expect("a capture");
    diagnose_reader(&mut reader, &Options::default(), |_| ()).expect("a diagnosis")
}

#[test]
fn captures_without_bare_acks_leave_it_open_in_every_connection() {
    let mut all = conversation(1_000, 60, 2_500.0);
    // Too short to show it by itself.
    all.extend(conversation(2_000, 9, 60.0));
    let whole = diagnosed(all.iter().collect());
    assert_eq!(whole.verdict.stalled, Some(false), "{}", whole.verdict.summary);

    let filtered = diagnosed(all.iter().filter(|packet| packet.len > 0).collect());
    assert_eq!(filtered.verdict.stalled, None, "{}", filtered.verdict.summary);
    assert!(filtered.verdict.decides[0].contains("filter"), "{:?}", filtered.verdict.decides);
    assert_eq!(filtered.flows.len(), 2);
    for direction in filtered.flows.iter().flat_map(|flow| &flow.directions) {
        assert_eq!(direction.lacks, Some(Lack::BareAcks), "{}", direction.from);
        assert_eq!((direction.holds(), direction.nagle.state), (0, NagleState::Unknown));
    }

    // A poll whose every ACK rides on the answer has none either, and lacks nothing.
    let polled = |i: u32| {
        let (at, seq) = (1_000.0 * f64::from(i), 1 + 12 * i);
        let ask = Packet { ms: at, port: 1, from_client: true, seq, ack: seq, len: 12 };
        [ask, Packet { ms: at + 1.0, port: 1, from_client: false, seq, ack: seq + 12, len: 12 }]
    };
    let polls: Vec<Packet> = (0..50).flat_map(polled).collect();
    let polls = diagnosed(polls.iter().collect());
    assert_eq!(polls.verdict.stalled, Some(false), "{}", polls.verdict.summary);
}

#[test]
fn one_direction_alone_says_nothing_of_nagles_algorithm() {
    let all = conversation(1_000, 60, 250.0);
    for from_client in [true, false] {
        let one =
            diagnosed(all.iter().filter(|packet| packet.from_client == from_client).collect());
        let told = one.flows[0].directions.iter().find(|direction| direction.segments > 0);
        let told = told.expect("the direction that was captured");
        assert_eq!(
            (told.lacks, told.nagle.state),
            (Some(Lack::BothDirections), NagleState::Unknown)
        );
        assert!(told.nagle.evidence.is_empty(), "{:?}", told.nagle.evidence);
    }
}

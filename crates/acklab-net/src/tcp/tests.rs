//! Two hosts that exchange packets as bytes in virtual time: every byte of a stream arrives, whatever the
//! network between them does to packets.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use acklab_core::options::Word;
use acklab_core::packet::Ecn;
use acklab_core::rng::Rng;
use acklab_core::segment::{Flags, TcpRepr};
use acklab_core::time::{Span, Time};
use acklab_core::wire::{emit_tcp, parse_tcp};
use acklab_tcp::{Config, State, System};

use super::{End, Host, Payload, Stream, Taker};

const LATENCY: Span = Span::from_millis(5);

fn host(address: &str, mtu: u32, config: Config, mut isn: u32) -> Host {
    let address: IpAddr = address.parse().unwrap();
    let config = Config { mss: Host::mss(address, mtu), ..config };
    Host::new(address, mtu, config, move || {
        isn = isn.wrapping_add(1);
        isn
    })
}

/// What the network does with a packet: nothing, or when it arrives, perhaps more than once, perhaps changed.
type Fate = Box<dyn FnMut(&[u8]) -> Vec<(Span, Vec<u8>)>>;

struct Net {
    hosts: [Host; 2],
    now: Time,
    wire: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    count: u64,
    fate: Fate,
    /// What a router in the middle lets pass, bytes; it answers longer packets.
    narrowest: usize,
    /// The longest packet that passed.
    longest: usize,
}

impl Net {
    fn new(hosts: [Host; 2]) -> Self {
        let fate: Fate = Box::new(|frame| vec![(LATENCY, frame.to_vec())]);
        let now = Time::from_nanos(1_700_000_000_000_000_000);
        Self { hosts, now, wire: BTreeMap::new(), count: 0, fate, narrowest: 1500, longest: 0 }
    }

    fn send(&mut self) {
        for from in 0..2 {
            while let Some(frame) = self.hosts[from].poll_transmit(self.now) {
                if frame.len() > self.narrowest {
                    self.count += 1;
                    let answer = too_big(frame, self.narrowest as u16);
                    self.wire.insert((self.now + LATENCY, self.count), (from, answer));
                    continue;
                }
                self.longest = self.longest.max(frame.len());
                for (delay, frame) in (self.fate)(frame) {
                    self.count += 1;
                    self.wire.insert((self.now + delay, self.count), (1 - from, frame));
                }
            }
        }
    }

    /// The next thing happens; false: nothing will.
    fn step(&mut self) -> bool {
        self.send();
        let due = self.hosts.iter().filter_map(Host::poll_timeout).min();
        let arrival = self.wire.first_key_value().map(|(&(at, _), _)| at);
        match (arrival, due) {
            (Some(at), due) if due.is_none_or(|due| at <= due) => {
                self.now = self.now.max(at);
                let ((_, _), (to, frame)) = self.wire.pop_first().unwrap();
                self.hosts[to].handle_frame(self.now, &frame);
            }
            (_, Some(due)) => {
                self.now = self.now.max(due);
                self.hosts.iter_mut().for_each(|host| host.handle_timeout(self.now));
            }
            (_, None) => return false,
        }
        self.send();
        true
    }

    fn stream(&mut self, of: usize) -> &mut Stream {
        self.hosts[of].streams().next().expect("a stream")
    }
}

fn content(length: usize, step: usize) -> Vec<u8> {
    (0..length).map(|at| (at * step % 253) as u8).collect()
}

/// Both ends write, read as they can, and close; returns what each read.
fn exchange(net: &mut Net, lengths: [usize; 2]) -> [Vec<u8>; 2] {
    let mut left = [content(lengths[0], 7), content(lengths[1], 11)];
    let mut read = [Vec::new(), Vec::new()];
    let remote = SocketAddr::new(net.hosts[1].address(), 80);
    net.hosts[1].listen(80, 1);
    let now = net.now;
    net.hosts[0].connect(now, remote).expect("a port");
    let limit = net.now + Span::from_secs(3600);
    loop {
        assert!(net.step() && net.now < limit, "it never ends");
        let now = net.now;
        let mut ends = 0;
        for (of, host) in net.hosts.iter_mut().enumerate() {
            let Some(stream) = host.streams().next() else { continue };
            let taken = stream.write(now, &left[of]);
            left[of].drain(..taken);
            let bytes = stream.unread().concat();
            stream.consume(now, bytes.len());
            read[of].extend(bytes);
            if left[of].is_empty() && stream.room() > 0 {
                stream.close(now);
            }
            ends += u32::from(stream.end() == Some(End::Closed));
        }
        if ends == 2 {
            return read;
        }
    }
}

#[test]
fn every_byte_arrives_over_a_network_that_loses_reorders_copies_and_damages() {
    let systems = System::ALL;
    let ends = (0..6).map(|one| [one, one + 3].map(|at| systems[at % systems.len()].config()));
    let [linux, qnx] = [Config::default(), System::Qnx70.config()];
    let segments = [
        [Config::segments(), Config::segments()],
        [Config::segments(), linux],
        [qnx, Config::segments()],
        [Config::segments(), Config::segments()],
    ];
    let families = [["10.78.0.1", "10.78.0.2"], ["fd78::1", "fd78::2"]].into_iter().cycle();
    for (seed, ([one, other], [a, b])) in ends.chain(segments).zip(families).enumerate() {
        let mut net = Net::new([host(a, 1500, one, u32::MAX - 1000), host(b, 1400, other, 9)]);
        let mut rng = Rng::named(seed as u64, "network");
        net.fate = Box::new(move |frame| {
            let mut packets = Vec::new();
            for _ in 0..=u8::from(rng.chance(0.03)) {
                let mut frame = frame.to_vec();
                let draw = rng.uniform();
                if draw < 0.03 {
                    continue;
                }
                if draw < 0.05 {
                    // Behind the IP header, which IPv6 does not protect.
                    let header = if frame[0] >> 4 == 4 { 160 } else { 320 };
                    let bit = header + rng.below(frame.len() as u64 * 8 - header as u64) as usize;
                    frame[bit / 8] ^= 1 << (bit % 8);
                }
                let late = if draw > 0.95 { LATENCY } else { Span::ZERO };
                packets.push((LATENCY + late, frame));
            }
            packets
        });
        let read = exchange(&mut net, [300_000, 200_000]);
        assert!(read[1] == content(300_000, 7) && read[0] == content(200_000, 11), "seed {seed}");
        let damaged: u64 = net.hosts.iter().map(|host| host.strays().damaged).sum();
        assert!(damaged > 0 && net.stream(0).tally().retransmissions > 0);
    }
}

/// What a router whose next link carries `mtu` bytes answers to a packet that is longer.
fn too_big(frame: &[u8], mtu: u16) -> Vec<u8> {
    use acklab_core::packet::Ecn;
    use acklab_core::wire::{checksum::Checksum, emit_ip, parse_ip, transport_checksum};
    let ip = parse_ip(frame).unwrap();
    let v6 = ip.source.is_ipv6();
    let ends = (ip.destination, ip.source);
    let [high, low] = mtu.to_be_bytes();
    let (mut body, protocol) = if v6 {
        (vec![2, 0, 0, 0, 0, 0, high, low], 58)
    } else {
        (vec![3, 4, 0, 0, 0, 0, high, low], 1)
    };
    body.extend(&frame[..if v6 { 200 } else { 28 }]);
    let sum = if v6 {
        transport_checksum(ends, 58, &body)
    } else {
        Checksum::default().sum(&body).finish()
    };
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut answer = Vec::new();
    emit_ip(ends, Ecn::NotEct, protocol, 0, body.len(), &mut answer);
    answer.extend(body);
    answer
}

#[test]
fn a_narrower_link_on_the_path_is_found_without_loss_of_rate() {
    let families = [["10.78.0.1", "10.78.0.2"], ["fd78::1", "fd78::2"]];
    let stacks = [Config::default(), Config::segments()];
    for ([a, b], config) in families.iter().flat_map(|ends| stacks.clone().map(|one| (*ends, one)))
    {
        let mut net = Net::new(
            [1, 2].map(|isn| host(if isn == 1 { a } else { b }, 1500, config.clone(), isn)),
        );
        net.hosts[1].listen(80, 1);
        let (now, remote) = (net.now, SocketAddr::new(b.parse().unwrap(), 80));
        net.hosts[0].connect(now, remote).unwrap();
        let bytes = content(1_000_000, 7);
        net.narrowest = 1300;
        let (mut written, mut read) = (0, Vec::new());
        while read.len() < bytes.len() {
            assert!(net.step(), "it never ends");
            let now = net.now;
            let stream = net.stream(0);
            written += stream.write(now, &bytes[written..]);
            if let Some(stream) = net.hosts[1].streams().next() {
                let more = stream.unread().concat();
                stream.consume(now, more.len());
                read.extend(more);
            }
        }
        assert!(read == bytes && net.longest == 1300, "{}", net.longest);
        let stream = net.stream(0);
        assert!(stream.tally().too_big > 0);
        // No congestion: slow start went on.
        assert!(stream.snapshot().ssthresh > 1 << 30);
    }
}

#[test]
fn strangers_are_refused_and_forged_reports_are_not_believed() {
    for config in [Config::default(), Config::segments()] {
        meet_strangers(config);
    }
}

fn meet_strangers(config: Config) {
    let mut net = Net::new([
        host("10.78.0.1", 1500, config, 1),
        host("10.78.0.2", 1500, System::FreeBsd121.config(), 2),
    ]);
    let (now, remote) = (net.now, SocketAddr::new("10.78.0.2".parse().unwrap(), 81));
    net.hosts[0].connect(now, remote).unwrap();
    // Nothing listens there: an RST comes back after a round trip.
    while net.stream(0).end().is_none() {
        assert!(net.step());
    }
    assert_eq!(net.stream(0).end(), Some(End::Reset));
    assert_eq!(net.now.since(now), LATENCY * 2);
    net.hosts[0].forget(|stream| stream.end().is_some());
    net.hosts[1].listen(81, 1);
    let now = net.now;
    net.hosts[0].connect(now, remote).unwrap();
    while net.stream(0).state() != State::Established {
        assert!(net.step());
    }
    let mss = net.stream(0).mss();
    let (local, peer) = (net.stream(0).local(), net.stream(0).remote());
    let mut forged = Vec::new();
    let segment = acklab_core::segment::TcpRepr::default();
    acklab_core::wire::emit_tcp(
        (local, peer),
        acklab_core::packet::Ecn::NotEct,
        0,
        &segment,
        [&[], &[]],
        &mut forged,
    );
    let now = net.now;
    net.hosts[0].handle_frame(now, &too_big(&forged, 600));
    assert_eq!(net.stream(0).mss(), mss);
}

/// RFC 9293: MUST-46, MUST-57 and MUST-63.
#[test]
fn groups_are_neither_connected_to_nor_answered() {
    let (port, now) = (81, Time::ZERO);
    for (us, others) in [
        ("10.78.0.1", ["224.0.0.1", "239.1.2.3", "255.255.255.255", "0.0.0.0"]),
        ("fd00::1", ["ff02::1", "ff0e::7", "ff05::2", "::"]),
    ] {
        for config in [Config::default(), Config::segments()] {
            let mut host = host(us, 1500, config, 1);
            host.listen(port, 1);
            for other in others {
                let remote = SocketAddr::new(other.parse().unwrap(), 50_000);
                assert!(host.connect(now, remote).is_none(), "{other}");
                for (flags, to) in [(Flags::SYN, port), (Flags::SYN, 9), (Flags::ACK, port)] {
                    let local = SocketAddr::new(host.address(), to);
                    host.handle_frame(now, &from(remote, local, flags));
                    assert!(host.poll_transmit(now).is_none(), "{other} {flags:?}");
                }
            }
            // Towards a group nobody has the address.
            let peer = SocketAddr::new(host.address(), 1);
            let group = SocketAddr::new(others[0].parse().unwrap(), port);
            host.handle_frame(now, &from(peer, group, Flags::SYN));
            assert!(host.poll_transmit(now).is_none());
            assert_eq!(host.strays().ignored, 13);
        }
    }
}

/// RFC 9293: MUST-50.
#[test]
fn options_of_ip_that_nobody_knows_are_passed_over() {
    for config in [Config::default(), Config::segments()] {
        let mut host = host("10.78.0.1", 1500, config, 1);
        host.listen(81, 1);
        let local = SocketAddr::new(host.address(), 81);
        let plain = from("10.78.0.2:9".parse().unwrap(), local, Flags::SYN);
        // Type 77 with two bytes of content, and the sum over a header of 24 bytes.
        let mut frame = [&plain[..20], &[77, 4, 1, 2], &plain[20..]].concat();
        frame[0] = 0x46;
        let length = frame.len() as u16;
        frame[2..4].copy_from_slice(&length.to_be_bytes());
        frame[10..12].fill(0);
        let words = frame[..24].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
        let sum: u32 = words.sum();
        let sum = !(((sum >> 16) + sum) as u16);
        frame[10..12].copy_from_slice(&sum.to_be_bytes());
        host.handle_frame(Time::ZERO, &frame);
        let answer = host.poll_transmit(Time::ZERO).expect("a SYN-ACK").to_vec();
        let answer = parse_tcp(&answer).unwrap();
        assert!(answer.segment.flags.has(Flags::SYN) && answer.segment.flags.has(Flags::ACK));
    }
}

/// A segment without data from one end to another.
fn from(remote: SocketAddr, local: SocketAddr, flags: Flags) -> Vec<u8> {
    let segment = TcpRepr { flags, ..TcpRepr::default() };
    let mut frame = Vec::new();
    emit_tcp((remote, local), Ecn::NotEct, 0, &segment, [&[], &[]], &mut frame);
    frame
}

#[test]
fn a_destination_out_of_reach_ends_an_attempt_to_connect() {
    for config in [Config::default(), Config::segments()] {
        reach_nobody(config);
    }
}

fn reach_nobody(config: Config) {
    let mut net =
        Net::new([host("10.78.0.1", 1500, config.clone(), 1), host("10.78.0.2", 1500, config, 2)]);
    let (now, remote) = (net.now, SocketAddr::new("192.0.2.1".parse().unwrap(), 80));
    net.hosts[0].connect(now, remote).unwrap();
    let syn = net.hosts[0].poll_transmit(now).unwrap().to_vec();
    let mut answer = too_big(&syn, 0);
    // The same message with code 1: host unreachable; the checksum follows (RFC 1624).
    answer[21] = 1;
    let sum = u16::from_be_bytes([answer[22], answer[23]]) + 3;
    answer[22..24].copy_from_slice(&sum.to_be_bytes());
    net.hosts[0].handle_frame(now, &answer);
    assert_eq!(net.stream(0).end(), Some(End::Unreachable { kind: 3, code: 1 }));
}

/// Much is there at once, and the stream takes less of it than it has room for: each piece of it costs memory, too.
#[test]
fn an_echo_keeps_what_the_stream_did_not_take() {
    for config in [Config::default(), Config::segments()] {
        let config = Config {
            send_buffer: 400_000,
            receive_buffer: 1_800_000,
            receive_tuning: false,
            ..config
        };
        let mut net = Net::new([
            host("10.78.0.1", 1500, Config::default(), 1),
            host("10.78.0.2", 1500, config, 2),
        ]);
        net.hosts[1].listen(80, 1);
        let (now, remote) = (net.now, SocketAddr::new("10.78.0.2".parse().unwrap(), 80));
        net.hosts[0].connect(now, remote).unwrap();
        let mut echo = Payload::new(None, Taker::Echo);
        let (bytes, mut written, mut read) = (content(2_000_000, 7), 0, Vec::new());
        let (mut answers, limit) = (false, net.now + Span::from_secs(60));
        while read.len() < bytes.len() {
            assert!(net.step() && net.now < limit, "it never ends");
            let now = net.now;
            let stream = net.stream(0);
            written += stream.write(now, &bytes[written..]);
            let more = stream.unread().concat();
            stream.consume(now, more.len());
            read.extend(more);
            let Some(stream) = net.hosts[1].streams().next() else { continue };
            answers |= stream.unread()[0].len() > 1_100_000;
            if answers {
                echo.progress(now, stream, [true; 2]).unwrap();
            }
        }
        assert!(read == bytes);
        assert_eq!((echo.sent().bytes(), echo.received().bytes()), (2_000_000, 2_000_000));
    }
}

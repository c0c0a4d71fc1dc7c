//! Goal: what is said of causes beside Nagle's algorithm is proved by the packets, and without proof nothing is said.
//! Method: conversations written packet by packet, as a capture at the client, the server or between shows them. Cases of
//! the running kernel are judged by `make truth` (docs/truth.md).

use std::net::Ipv4Addr;

use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};
use acklab_core::segment::{Flags, TcpOptions, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::Time;
use acklab_core::wire::emit_ipv4;
use acklab_trace::capture::{CaptureReader, CaptureWriter, LinkType, WriterOptions};
use acklab_trace::diagnosis::{Cause, CauseKind, Diagnosis};
use acklab_trace::{Options, diagnose_pair, diagnose_reader};

/// A capture that is written packet by packet: client 0 on host 1, server 1 on host 2.
struct Script {
    writer: CaptureWriter<Vec<u8>>,
    ms: f64,
    id: [u16; 2],
    /// The client's address and port.
    client: u8,
    port: u16,
}

impl Script {
    fn new() -> Self {
        let options = WriterOptions { link: LinkType::RAW, ..WriterOptions::default() };
        let writer = CaptureWriter::new(Vec::new(), options).expect("memory takes everything");
        Self { writer, ms: 0.0, id: [100, 500], client: 1, port: 40_000 }
    }

    fn at(&mut self, ms: f64) -> &mut Self {
        self.ms = ms;
        self
    }

    fn packet(&mut self, from: usize, tcp: TcpRepr) -> &mut Self {
        let ends = [Addr { node: NodeId(1), port: self.port }, Addr { node: NodeId(2), port: 502 }];
        let body = Body::Tcp(tcp);
        let packet = Packet {
            src: ends[from],
            dst: ends[1 - from],
            ecn: Ecn::NotEct,
            returned: false,
            body,
        };
        self.id[from] += 1;
        let client = self.client;
        let host = |node: NodeId| if node == NodeId(1) { client } else { node.0 as u8 };
        let bytes = emit_ipv4(&packet, self.id[from], |node| Ipv4Addr::new(192, 0, 2, host(node)));
        let time = Time::from_nanos(1_700_000_000_000_000_000 + (self.ms * 1e6) as u64);
        self.writer.write_frame(time, &bytes, bytes.len() as u32).expect("memory takes everything");
        self
    }

    /// A packet of `from`, which never comes to the capture.
    fn died(&mut self, from: usize) -> &mut Self {
        self.id[from] += 1;
        self
    }

    fn flags(&mut self, from: usize, flags: Flags, seq: u32, ack: u32) -> &mut Self {
        let syn = flags.has(Flags::SYN);
        let options = TcpOptions {
            mss: syn.then_some(1460),
            window_scale: syn.then_some(0),
            ..TcpOptions::default()
        };
        let tcp = TcpRepr {
            seq: Seq(seq),
            ack: Seq(ack),
            flags,
            window: 60_000,
            options,
            payload_len: 0,
        };
        self.packet(from, tcp)
    }

    /// An ICMP message of 192.0.2.254, of a packet of `of` with this sequence number (RFC 792).
    fn notice(&mut self, of: usize, seq: u32, [kind, code]: [u8; 2], mtu: u16) -> &mut Self {
        let ends = [Addr { node: NodeId(1), port: self.port }, Addr { node: NodeId(2), port: 502 }];
        let tcp = TcpRepr { seq: Seq(seq), ack: Seq(1), ..TcpRepr::default() };
        let packet = Packet {
            src: ends[of],
            dst: ends[1 - of],
            ecn: Ecn::NotEct,
            returned: false,
            body: Body::Tcp(tcp),
        };
        let client = self.client;
        let host = |node: NodeId| if node == NodeId(1) { client } else { node.0 as u8 };
        let quoted = emit_ipv4(&packet, self.id[of], |node| Ipv4Addr::new(192, 0, 2, host(node)));
        let outer =
            [0x45, 0, 0, 56, 0, 0, 0, 0, 63, 1, 0, 0, 192, 0, 2, 254, 192, 0, 2, [client, 2][of]];
        let [high, low] = mtu.to_be_bytes();
        let bytes = [&outer[..], &[kind, code, 0, 0, 0, 0, high, low], &quoted[..28]].concat();
        let time = Time::from_nanos(1_700_000_000_000_000_000 + (self.ms * 1e6) as u64);
        self.writer.write_frame(time, &bytes, bytes.len() as u32).expect("memory takes everything");
        self
    }

    /// The handshake as it passes `share` of a way that takes 10 ms each way.
    fn handshake(&mut self, share: f64) -> &mut Self {
        let syn_ack = Flags::SYN.with(Flags::ACK);
        let start = self.ms;
        self.at(start + 10.0 * share).flags(0, Flags::SYN, 0, 0);
        self.at(start + 20.0 - 10.0 * share).flags(1, syn_ack, 0, 1);
        self.at(start + 20.0 + 10.0 * share).flags(0, Flags::ACK, 1, 1)
    }

    fn data(&mut self, from: usize, seq: u32, ack: u32, len: u32) -> &mut Self {
        self.windowed(from, seq, ack, len, 60_000)
    }

    fn windowed(&mut self, from: usize, seq: u32, ack: u32, len: u32, window: u16) -> &mut Self {
        let flags = if len > 0 { Flags::ACK.with(Flags::PSH) } else { Flags::ACK };
        let options = TcpOptions::default();
        self.packet(
            from,
            TcpRepr { seq: Seq(seq), ack: Seq(ack), flags, window, options, payload_len: len },
        )
    }

    fn capture(self) -> Vec<u8> {
        self.writer.finish().expect("memory takes everything")
    }

    fn diagnosed(self) -> Diagnosis {
        let capture = self.capture();
        let mut reader = CaptureReader::new(&capture[..]).expect("memory takes everything");
        diagnose_reader(&mut reader, &Options::default(), |_| ()).expect("memory takes everything")
    }
}

fn find(diagnosis: &Diagnosis, kind: CauseKind) -> Option<&Cause> {
    diagnosis.causes.iter().find(|cause| cause.kind == kind)
}

fn kinds(diagnosis: &Diagnosis) -> Vec<CauseKind> {
    diagnosis.causes.iter().map(|cause| cause.kind).collect()
}

/// Ten requests; the server takes `service` ms; the capture lies at `share` of the way.
fn served(service: f64, share: f64) -> Diagnosis {
    let mut script = Script::new();
    script.handshake(share);
    for index in 0..10 {
        let (seq, start) = (1 + 50 * index, 100.0 + f64::from(index) * (25.0 + service));
        script.at(start + 10.0 * share).data(0, seq, seq, 50);
        script.at(start + 10.0 + service + 10.0 * (1.0 - share)).data(1, seq, seq + 50, 50);
    }
    script.diagnosed()
}

#[test]
fn a_server_that_takes_its_time_is_named_with_that_time_wherever_the_capture_is() {
    for share in [0.0, 0.4, 1.0] {
        let diagnosis = served(60.0, share);
        let cause = find(&diagnosis, CauseKind::SlowServer).expect("named");
        assert!(cause.host == "192.0.2.2:502" && cause.count == 10, "{share}: {cause:?}");
        assert!((cause.seconds - 0.6).abs() < 0.01, "{share}: {cause:?}");
        assert_eq!(diagnosis.verdict.stalled, Some(false));
    }
    for share in [0.0, 0.4, 1.0] {
        assert_eq!(kinds(&served(2.0, share)), [], "a round trip is no slow server");
    }
}

#[test]
fn an_answer_whose_first_try_may_have_died_is_no_slow_server() {
    let mut script = Script::new();
    script.handshake(0.0);
    for index in 0..10 {
        let (seq, start) = (1 + 50 * index, 100.0 + f64::from(index) * 300.0);
        script.at(start).data(0, seq, seq, 50);
        if index % 3 == 0 {
            // Sent again after the timer; the capture at the client never saw the first.
            script.died(1).at(start + 230.0);
        } else {
            script.at(start + 20.0);
        }
        script.data(1, seq, seq + 50, 50);
    }
    assert!(find(&script.diagnosed(), CauseKind::SlowServer).is_none());
    // The same wait with identifications that follow each other: nothing died.
    assert!(find(&served(210.0, 0.0), CauseKind::SlowServer).is_some());
}

#[test]
fn a_closed_window_is_the_receivers() {
    let mut script = Script::new();
    script.handshake(0.0);
    script.at(100.0).data(0, 1, 1, 1000);
    script.at(121.0).windowed(1, 1, 1001, 0, 0);
    script.at(421.0).windowed(1, 1, 1001, 0, 60_000);
    script.at(422.0).data(0, 1001, 1, 1000);
    script.at(443.0).data(1, 1, 2001, 0);
    let diagnosis = script.diagnosed();
    let cause = find(&diagnosis, CauseKind::ClosedWindow).expect("named");
    assert!(cause.host == "192.0.2.2:502" && (cause.longest_ms - 300.0).abs() < 0.01, "{cause:?}");
}

#[test]
fn losses_are_told_by_side() {
    let lossy = |before: bool| {
        let mut script = Script::new();
        script.handshake(0.5);
        script.at(100.0);
        if before {
            script.died(0);
        } else {
            script.data(0, 1, 1, 500);
        }
        script.at(101.0).data(0, 501, 1, 500);
        script.at(112.0).data(1, 1, 1, 0);
        script.at(140.0).data(0, 1, 1, 500);
        script.at(151.0).data(1, 1, 1001, 0);
        script.diagnosed()
    };
    assert!(find(&lossy(false), CauseKind::LossBehind).is_some());
    assert!(find(&lossy(false), CauseKind::LossBefore).is_none());
    // The first bytes ever: seen late, by the sequence number of the SYN.
    assert!(find(&lossy(true), CauseKind::LossBefore).is_some());
    assert!(find(&lossy(true), CauseKind::LossBehind).is_none());
}

#[test]
fn refused_unanswered_and_cut_off_connections_are_told_apart() {
    let mut script = Script::new();
    for index in 0..3 {
        script.port = 41_000 + index;
        let start = f64::from(index) * 100.0;
        script.at(start).flags(0, Flags::SYN, 0, 0);
        script.at(start + 20.0).flags(1, Flags::RST.with(Flags::ACK), 0, 1);
    }
    let refused = script.diagnosed();
    let cause = find(&refused, CauseKind::Refused).expect("named");
    assert!(cause.count == 3 && cause.host == "192.0.2.2:502" && cause.frame == 1, "{cause:?}");

    let mut script = Script::new();
    for ms in [0.0, 1000.0, 3000.0, 7000.0] {
        script.at(ms).flags(0, Flags::SYN, 0, 0);
    }
    let silent = script.diagnosed();
    let cause = find(&silent, CauseKind::NoAnswer).expect("named");
    assert!((cause.seconds - 7.0).abs() < 0.01, "{cause:?}");

    // One SYN alone may have been answered behind the capture's end.
    let mut script = Script::new();
    script.at(0.0).flags(0, Flags::SYN, 0, 0);
    assert_eq!(kinds(&script.diagnosed()), []);

    let mut script = Script::new();
    script.handshake(0.0);
    script.at(100.0).data(0, 1, 1, 50);
    script.at(125.0).flags(1, Flags::RST, 1, 0);
    let cut = script.diagnosed();
    assert_eq!(find(&cut, CauseKind::Reset).expect("named").host, "192.0.2.2:502");

    let mut script = Script::new();
    script.handshake(0.0);
    script.at(100.0).data(0, 1, 1, 50);
    script.at(125.0).flags(1, Flags::FIN.with(Flags::ACK), 1, 51);
    script.at(126.0).flags(0, Flags::RST, 51, 0);
    assert_eq!(kinds(&script.diagnosed()), [], "a reset behind a FIN cuts nothing off");
}

#[test]
fn what_a_router_says_of_a_syn_or_a_segment_is_told_with_its_name() {
    for (code, word) in
        [(1, "reach the host"), (13, "a rule forbids it"), (3, "firewall"), (0, "route")]
    {
        let mut script = Script::new();
        script.at(0.0).flags(0, Flags::SYN, 0, 0).at(5.0).notice(0, 0, [3, code], 0);
        let diagnosis = script.diagnosed();
        let cause = find(&diagnosis, CauseKind::Unreachable).expect("named");
        assert!(cause.host == "192.0.2.2:502" && cause.count == 1, "{cause:?}");
        assert!(
            cause.proof.contains("192.0.2.254 said") && cause.proof.contains("frame 2"),
            "{cause:?}"
        );
        assert!(cause.proof.contains(word), "{code}: {}", cause.proof);
        assert_eq!(diagnosis.causes.len(), 1);
    }

    let mut script = Script::new();
    script.handshake(0.0);
    script.at(100.0).data(0, 1, 1, 300).at(121.0).data(1, 1, 301, 0);
    for ms in [200.0, 500.0, 1100.0, 2300.0] {
        script.at(ms).data(0, 301, 1, 100).at(ms + 5.0).notice(0, 301, [11, 0], 0);
    }
    let circle = script.diagnosed();
    let cause = find(&circle, CauseKind::Unreachable).expect("named");
    assert!(cause.flow == Some(0) && cause.count == 4, "{cause:?}");
    assert!((cause.seconds - 2.1).abs() < 1e-6 && cause.proof.contains("in a circle"), "{cause:?}");

    // Of a connection that the capture does not hold, and of one that goes on without.
    let mut script = Script::new();
    script.at(0.0).notice(0, 1, [3, 1], 0).handshake(0.0).at(100.0).data(0, 1, 1, 300);
    assert_eq!(kinds(&script.diagnosed()), []);
}

#[test]
fn a_sender_that_does_not_heed_what_a_router_says_of_its_size_is_named() {
    let conversation = |told: Option<u16>, heeded: bool| {
        let mut script = Script::new();
        script.handshake(0.0);
        script.at(100.0).data(0, 1, 1, 1460);
        if let Some(mtu) = told {
            script.at(105.0).notice(0, 1, [3, 4], mtu);
        }
        if heeded {
            script.at(106.0).data(0, 1, 1, 1360).data(0, 1361, 1, 100);
            script.at(127.0).data(1, 1, 1461, 0);
        } else {
            for ms in [300.0, 700.0, 1500.0] {
                script.at(ms).data(0, 1, 1, 1460);
            }
        }
        script.diagnosed()
    };
    let deaf = conversation(Some(1400), false);
    let cause = find(&deaf, CauseKind::PathMtu).expect("named");
    let said = "192.0.2.254 had said in frame 5 that packets of at most 1400 bytes pass";
    assert!(cause.proof.contains(said), "{cause:?}");
    let sizeless = conversation(Some(0), false);
    let cause = find(&sizeless, CauseKind::PathMtu).expect("named");
    let said =
        "192.0.2.254 had said in frame 5 that it is too big for the path, without what passes";
    assert!(cause.proof.contains(said), "{cause:?}");
    assert_eq!(find(&conversation(None, false), CauseKind::PathMtu), None, "nothing ever arrived");
    assert_eq!(
        kinds(&conversation(Some(1400), true)),
        [],
        "path MTU discovery at work is no fault"
    );
}

/// Recorded of Linux 6.18 in three namespaces, at the client, 120 bytes of each frame: a router without an answer to its
/// ARP, with `ip route add prohibit`, with an MTU of 1300 towards the server, and the same with a client that drops ICMP
/// (strict `rp_filter`, the router's messages from an address to which no route leads). Over IPv6 the first three in one
/// capture.
#[test]
fn what_the_kernels_router_says_is_understood() {
    let of = |name: &str| {
        let path = format!("{}/tests/icmp/{name}.pcap", env!("CARGO_MANIFEST_DIR"));
        let mut reader = CaptureReader::open(path.as_ref()).expect("a capture");
        let diagnosis = diagnose_reader(&mut reader, &Options::default(), |_| ()).expect("reads");
        diagnosis.causes
    };
    for (name, word) in [("dead", "does not reach the host"), ("prohibit", "a rule forbids it")] {
        let [cause] = &of(name)[..] else { panic!("{name}") };
        assert!(cause.kind == CauseKind::Unreachable && cause.proof.contains(word), "{cause:?}");
    }
    assert_eq!(of("pmtu"), [], "path MTU discovery at work");
    let [cause] = &of("deaf")[..] else { panic!("deaf") };
    assert!(cause.kind == CauseKind::PathMtu && cause.count == 5, "{cause:?}");
    assert!(cause.proof.contains("at most 1300 bytes pass"), "{cause:?}");
    let [dead, prohibit] = &of("ipv6")[..] else { panic!("ipv6") };
    for (cause, word) in [(dead, "does not reach the host"), (prohibit, "a rule forbids it")] {
        assert!(cause.kind == CauseKind::Unreachable && cause.proof.contains(word), "{cause:?}");
        assert!(cause.proof.contains("2001:db8:1::1 said"), "{cause:?}");
    }
}

/// Only the client's SYN and what follows was captured: its answer was there.
#[test]
fn a_capture_of_one_direction_accuses_no_one() {
    let mut script = Script::new();
    script.at(0.0).flags(0, Flags::SYN, 0, 0);
    script.at(20.0).flags(0, Flags::ACK, 1, 1);
    for index in 0..20 {
        script.at(30.0 + 50.0 * f64::from(index)).data(0, 1 + 50 * index, 1 + 40 * index, 50);
    }
    assert_eq!(kinds(&script.diagnosed()), []);
}

#[test]
fn full_segments_that_never_arrive_are_the_paths() {
    let mut script = Script::new();
    script.handshake(0.0);
    script.at(100.0).data(0, 1, 1, 300);
    script.at(121.0).data(1, 1, 301, 0);
    for ms in [200.0, 500.0, 1100.0, 2300.0] {
        script.at(ms).data(0, 301, 1, 1460);
    }
    let hole = script.diagnosed();
    let cause = find(&hole, CauseKind::PathMtu).expect("named");
    assert!(cause.count == 4 && cause.proof.contains("1460 bytes"), "{cause:?}");

    // As often lost, but segments as long arrived before: chance, or a bad path, not its MTU.
    let mut script = Script::new();
    script.handshake(0.0);
    script.at(100.0).data(0, 1, 1, 1460);
    script.at(121.0).data(1, 1, 1461, 0);
    for ms in [200.0, 500.0, 1100.0, 2300.0] {
        script.at(ms).data(0, 1461, 1, 1460);
    }
    assert!(find(&script.diagnosed(), CauseKind::PathMtu).is_none());
}

fn diagnosed_together(client: Script, server: Script, name: &str) -> Diagnosis {
    let room = std::env::temp_dir().join(format!("acklab-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&room).expect("a folder");
    let paths = ["client.pcap", "server.pcap"].map(|name| room.join(name));
    for (path, script) in paths.iter().zip([client, server]) {
        std::fs::write(path, script.capture()).expect("room on the disk");
    }
    let diagnosis = diagnose_pair(&paths[0], &paths[1], &Options::default()).expect("readable");
    std::fs::remove_dir_all(&room).expect("our folder");
    diagnosis
}

/// Two connections through a NAT that gives both clients its own address and other ports; one request of each dies
/// behind it. (The server's capture has the connections in the other order.)
#[test]
fn a_nat_between_two_captures_is_seen_through() {
    let seen = |share: f64, port: u16, client: u8, isn: u32, script: &mut Script| {
        (script.client, script.port) = (client, port);
        let died = share > 0.0;
        let (syn, answer) = (Flags::SYN, Flags::SYN.with(Flags::ACK));
        script.at(10.0 * share).flags(0, syn, isn, 0);
        script.at(20.0 - 10.0 * share).flags(1, answer, 7 * isn, isn + 1);
        script.at(20.0 + 10.0 * share).flags(0, Flags::ACK, isn + 1, 7 * isn + 1);
        for index in 0..10 {
            let (seq, ack) = (isn + 1 + 50 * index, 7 * isn + 1 + 50 * index);
            let start = 100.0 + 250.0 * f64::from(index);
            if index == 4 {
                if died {
                    script.died(0);
                } else {
                    script.at(start - 200.0).data(0, seq, ack, 50);
                }
            }
            script.at(start + 10.0 * share).data(0, seq, ack, 50);
            script.at(start + 20.0 - 10.0 * share).data(1, ack, seq + 50, 50);
        }
    };
    let (mut client, mut server) = (Script::new(), Script::new());
    seen(0.0, 40_000, 1, 1_000_000, &mut client);
    seen(0.0, 40_001, 1, 9_000_000, &mut client);
    seen(1.0, 1_025, 9, 9_000_000, &mut server);
    seen(1.0, 1_026, 9, 1_000_000, &mut server);
    let diagnosis = diagnosed_together(client, server, "nat");
    let pair = diagnosis.pair.expect("two captures");
    assert_eq!(pair.connections.len(), 2);
    for shared in &pair.connections {
        let there = if shared.endpoints[0] == "192.0.2.1:40000" { 1_026 } else { 1_025 };
        let translated = [format!("192.0.2.9:{there}"), "192.0.2.2:502".into()];
        assert_eq!(shared.translated, Some(translated), "{shared:?}");
        assert_eq!((shared.ways[0].lost_data, shared.ways[1].lost_data), (1, 0), "{shared:?}");
    }
    assert_eq!(diagnosis.flows.len(), 2, "each connection once");
    for flow in &diagnosis.flows {
        assert_eq!(flow.captured_near.as_deref(), Some("both"));
        assert_eq!(flow.directions[1].to, flow.endpoints[0], "by the client's names");
    }
}

/// A reset that the server's capture does not hold was made on the way.
#[test]
fn two_captures_tell_a_reset_from_nowhere() {
    let common = |share: f64, reset: bool| {
        let mut script = Script::new();
        script.handshake(share);
        for index in 0..10 {
            let (seq, start) = (1 + 50 * index, 100.0 + 50.0 * f64::from(index));
            script.at(start + 10.0 * share).data(0, seq, seq, 50);
            script.at(start + 20.0 - 10.0 * share).data(1, seq, seq + 50, 50);
        }
        if reset {
            script.at(650.0).flags(1, Flags::RST, 501, 0);
        }
        script
    };
    let diagnosis = diagnosed_together(common(0.0, true), common(1.0, false), "reset");
    let pair = diagnosis.pair.expect("two captures");
    let way = &pair.connections[0].ways[1];
    assert_eq!((way.foreign_resets, way.lost_data, way.missed), (1, 0, 0), "{way:?}");
    let delay = way.delay_ms.expect("aligned");
    assert!(
        (delay.min - 10.0).abs() < 0.001 && (delay.uncertainty - 10.0).abs() < 1.5,
        "{delay:?}"
    );
    let waited = pair.connections[0].waited;
    assert!((waited.network_s - 0.2).abs() < 0.02 && waited.server_s < 0.01, "{waited:?}");
    assert!((waited.client_s - 0.27).abs() < 0.02, "{waited:?}");
}

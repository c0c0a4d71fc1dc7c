//! Goal: the XUDP server keeps the core's contract: no busy loop, a spurious timeout is a no-op, the same
//! input gives the same output.
//! Method: arbitrary bytes become packets of fragments and commands, right and wrong, at arbitrary times,
//! for a server that also sends, under every kind of parcel and several ACK policies.

use acklab_core::ack::Profile;
use acklab_core::contract::{Choices, check_quiet, drain, expire};
use acklab_core::endpoint::Endpoint;
use acklab_core::event::{EventKind, Interest, Sink};
use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet as Datagram};
use acklab_core::time::{Span, Time};
use acklab_papers::reproduce::xudp::protocol::application::Application;
use acklab_papers::reproduce::xudp::protocol::packet::{Command, Fragment, Packet, Wire};
use acklab_papers::reproduce::xudp::protocol::{Sending, Server, Setup, TimeoutRules, WindowRules};
use proptest::prelude::*;

const LOCAL: Addr = Addr { node: NodeId(0), port: 1 };
const REMOTE: Addr = Addr { node: NodeId(1), port: 1 };

fn server(kind: u8, wire: &Wire) -> Server {
    let applications = [
        Application::Silent,
        Application::Stream { bytes: 3000, parcels: 8 },
        Application::Frames {
            bytes: 5000,
            per_second: 4,
            parcels: 20,
            life: Span::from_millis(300),
        },
    ];
    let policies = Profile::all();
    Server::new(Setup {
        local: LOCAL,
        remote: REMOTE,
        wire: wire.clone(),
        sending: Sending {
            packet: 512,
            parcels_ahead: 1 + u64::from(kind % 3),
            exchange: 1 + u32::from(kind % 7),
            window: WindowRules { initial: 1.0, most: 16.0, restart: kind.is_multiple_of(2) },
            timeout: TimeoutRules {
                initial: Span::from_millis(200),
                least: Span::from_millis(u64::from(kind)),
                deviations: 4.0,
            },
            drop_begun: kind % 4 < 2,
            karn: kind % 8 < 4,
        },
        policy: policies[usize::from(kind / 8) % policies.len()].policy(0.5),
        per_packet: Span::from_micros(u64::from(kind % 5) * 400),
        buffer: 4,
        reads_first: kind % 16 < 8,
        application: applications[usize::from(kind) % 3].clone(),
    })
}

fn any_packet(choices: &mut Choices<'_>) -> Packet {
    let fragment = choices.flip().then(|| Fragment {
        number: u64::from(choices.byte()),
        parcel: u64::from(choices.below(8)),
        index: u32::from(choices.below(8)),
        count: u32::from(choices.below(8)),
        bytes: u32::from(choices.word()),
    });
    let commands = (0..choices.below(4))
        .map(|_| {
            if choices.flip() {
                Command::Packet(u64::from(choices.byte()))
            } else {
                let id = u64::from(choices.below(8));
                Command::Parcel { id, step: u32::from(choices.below(9)) }
            }
        })
        .collect();
    Packet { fragment, commands }
}

/// Lets arbitrary packets arrive; when packets of which size left, and every value told, in order.
fn attack(kind: u8, bytes: &[u8]) -> (Vec<(Time, u32)>, Vec<u64>) {
    let wire = Wire::default();
    let mut server = server(kind, &wire);
    let mut choices = Choices::new(bytes);
    let (mut now, mut sink) = (Time::ZERO, Sink::new(Interest::ALL));
    let (mut sent, mut told) = (Vec::new(), Vec::new());
    drain(&mut server, now, &mut sink, |packet| sent.push((now, packet.size())));
    while !choices.is_empty() {
        let until = now + Span::from_micros(u64::from(choices.word()) * 4);
        while let Some(at) = server.poll_timeout().filter(|at| *at <= until) {
            now = at;
            expire(&mut server, now, &mut sink, |packet| sent.push((at, packet.size())));
            check_quiet(&mut server, now, &mut sink);
        }
        now = until;
        let body = Body::Datagram { len: 0, words: [wire.put(any_packet(&mut choices)), 0] };
        let ecn = Ecn::NotEct;
        let packet = Datagram { src: REMOTE, dst: LOCAL, ecn, returned: false, body };
        server.handle_packet(now, packet, &mut sink);
        drain(&mut server, now, &mut sink, |packet| sent.push((now, packet.size())));
        check_quiet(&mut server, now, &mut sink);
        for event in sink.drain() {
            if let EventKind::App { value, .. } = event.kind {
                told.push(value.to_bits());
            }
        }
    }
    (sent, told)
}

proptest! {
    #[test]
    fn a_server_keeps_the_contract_and_the_same_input_gives_the_same_output(
        kind in any::<u8>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        prop_assert_eq!(attack(kind, &bytes), attack(kind, &bytes));
    }
}

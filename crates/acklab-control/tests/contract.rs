//! Goal: plant and controller keep the core's contract whatever arrives, and stay finite.
//! Method: arbitrary bytes become arrivals (numbers that are none, stamps of the future, packets that
//! are no datagrams or were handed back) at arbitrary times under every reading of the options.

use acklab_control::{
    Actuation, AntiWindup, ControllerPeer, ControllerSetup, Driven, Integration, Missing, PidGains,
    PlantPeer, PlantSetup, TransferFunction,
};
use acklab_core::contract::{Choices, check_quiet, drain, expire};
use acklab_core::endpoint::Endpoint;
use acklab_core::event::{EventKind, Interest, Sink};
use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};
use acklab_core::time::{Span, Time};
use proptest::prelude::*;

const PLANT: Addr = Addr { node: NodeId(0), port: 5000 };
const CONTROLLER: Addr = Addr { node: NodeId(1), port: 5000 };

fn any_packet(choices: &mut Choices<'_>, now: Time) -> Packet {
    let value = match choices.below(6) {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => -f64::MAX,
        _ => f64::from(choices.long() as i32) * 1e-3,
    };
    let age = u64::from(choices.word()) * 1000;
    let stamp = match choices.below(5) {
        0 => u64::MAX,
        1 => now.as_nanos() + age,
        _ => now.as_nanos().saturating_sub(age),
    };
    Packet {
        src: CONTROLLER,
        dst: PLANT,
        ecn: Ecn::NotEct,
        returned: choices.below(8) == 0,
        body: Body::Datagram { len: u32::from(choices.byte()), words: [value.to_bits(), stamp] },
    }
}

/// Lets arbitrary packets arrive; returns what left, and every value told, in order.
fn attack<E>(peer: &mut E, bytes: &[u8]) -> (Vec<(Time, Packet)>, Vec<u64>)
where
    E: for<'a> Endpoint<Arrival<'a> = Packet, Departure<'a> = Packet> + 'static,
{
    let mut choices = Choices::new(bytes);
    let (mut now, mut sink) = (Time::ZERO, Sink::new(Interest::ALL));
    let (mut sent, mut told) = (Vec::new(), Vec::new());
    while !choices.is_empty() {
        let until = now + Span::from_micros(u64::from(choices.word()));
        while let Some(at) = peer.poll_timeout().filter(|at| *at <= until) {
            now = at;
            expire(peer, now, &mut sink, |packet| sent.push((at, packet)));
            check_quiet(peer, now, &mut sink);
        }
        now = until;
        let packet = any_packet(&mut choices, now);
        peer.handle_packet(now, packet, &mut sink);
        drain(peer, now, &mut sink, |packet| sent.push((now, packet)));
        check_quiet(peer, now, &mut sink);
        for event in sink.drain() {
            if let EventKind::App { value, .. } = event.kind {
                told.push(value.to_bits());
            }
        }
    }
    (sent, told)
}

fn gains(kind: u8) -> PidGains {
    let integration = [Integration::ForwardEuler, Integration::BackwardEuler, Integration::Tustin];
    let anti_windup = [
        AntiWindup::None,
        AntiWindup::Clamping,
        AntiWindup::BackCalculation(Span::from_millis(50)),
    ];
    PidGains {
        integration: integration[usize::from(kind) % 3],
        anti_windup: anti_windup[usize::from(kind) / 3 % 3],
        limit: 24.0,
        ..PidGains::pid(11.86, 47.45, 0.1, Span::from_millis(u64::from(kind) % 5))
    }
}

fn plant(kind: u8) -> PlantPeer {
    let actuation = [Actuation::PeriodEnded, Actuation::Tick, Actuation::Arrival];
    let motor = TransferFunction::dc_motor().to_state_space();
    PlantPeer::new(PlantSetup {
        actuation: actuation[usize::from(kind) % 3],
        missing: [Missing::Hold, Missing::Zero][usize::from(kind) / 3 % 2],
        sending: Span::from_micros(u64::from(kind) * 50),
        phase: Span::from_millis(u64::from(kind) % 20),
        ..PlantSetup::new(motor, PLANT, CONTROLLER)
    })
    .expect("a plant")
}

fn controller(kind: u8) -> ControllerPeer {
    ControllerPeer::new(ControllerSetup {
        gains: gains(kind),
        driven: [Driven::Time, Driven::Event][usize::from(kind) % 2],
        missing: [Missing::Hold, Missing::Zero][usize::from(kind) / 3 % 2],
        sending: Span::from_micros(u64::from(kind) * 50),
        phase: Span::from_millis(u64::from(kind) % 20),
        ..ControllerSetup::new(CONTROLLER, PLANT)
    })
    .expect("a controller")
}

proptest! {
    #[test]
    fn a_plant_samples_once_per_period_and_the_same_input_gives_the_same_output(
        kind in any::<u8>(),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let (sent, told) = attack(&mut plant(kind), &bytes);
        let again = attack(&mut plant(kind), &bytes);
        prop_assert_eq!((&sent, &told), (&again.0, &again.1));
        for pair in sent.windows(2) {
            prop_assert_eq!(pair[1].0.since(pair[0].0), Span::from_millis(14));
        }
        for (_, packet) in &sent {
            prop_assert_eq!((packet.size(), packet.src, packet.dst), (48, PLANT, CONTROLLER));
        }
    }

    #[test]
    fn a_controller_stays_within_its_limit_and_the_same_input_gives_the_same_output(
        kind in any::<u8>(),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let (sent, told) = attack(&mut controller(kind), &bytes);
        let again = attack(&mut controller(kind), &bytes);
        prop_assert_eq!((&sent, &told), (&again.0, &again.1));
        for (_, packet) in &sent {
            let Body::Datagram { words, .. } = packet.body else { panic!("{packet:?}") };
            prop_assert!(f64::from_bits(words[0]).abs() <= 24.0, "{}", f64::from_bits(words[0]));
        }
    }
}

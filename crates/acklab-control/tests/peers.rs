//! Goal: plant and controller keep the core's contract, and a network carries them as delay lines do.
//! Method: peers are driven by hand for single readings, and in a simulated world whose links give
//! the delays of [`motor_loop`]: the costs must be the same to the last digit.

use acklab_control::peer::{Location, PAYLOAD};
use acklab_control::{
    Actuation, ControllerPeer, ControllerSetup, Driven, LoopRecord, Missing, MotorLoop, PlantPeer,
    PlantSetup, Split, SquareWave, TransferFunction, motor_loop,
};
use acklab_core::endpoint::Endpoint;
use acklab_core::event::{Event, Interest, Sink};
use acklab_core::link::LinkConfig;
use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::{Observer, Topology, World};

const PLANT: Addr = Addr { node: NodeId(0), port: 5000 };
const CONTROLLER: Addr = Addr { node: NodeId(1), port: 5000 };

fn ms(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// An integrator, y' = u, sampled every 10 ms.
fn plant(change: impl FnOnce(&mut PlantSetup)) -> PlantPeer {
    let integrator = TransferFunction::new(&[1.0], &[1.0, 0.0]).expect("a plant").to_state_space();
    let mut setup = PlantSetup::new(integrator, PLANT, CONTROLLER);
    setup.period = Span::from_millis(10);
    change(&mut setup);
    PlantPeer::new(setup).expect("a plant")
}

fn controller(change: impl FnOnce(&mut ControllerSetup)) -> ControllerPeer {
    let mut setup = ControllerSetup::new(CONTROLLER, PLANT);
    setup.period = Span::from_millis(10);
    setup.gains = acklab_control::PidGains::p(1.0);
    change(&mut setup);
    ControllerPeer::new(setup).expect("a controller")
}

fn datagram(value: f64, sampled: Time) -> Packet {
    let body = Body::Datagram { len: PAYLOAD, words: [value.to_bits(), sampled.as_nanos()] };
    Packet { src: CONTROLLER, dst: PLANT, ecn: Ecn::NotEct, returned: false, body }
}

fn value(packet: &Packet) -> f64 {
    match packet.body {
        Body::Datagram { words, .. } => f64::from_bits(words[0]),
        Body::Tcp(_) | Body::Stored { .. } => panic!("{packet:?}"),
    }
}

/// The samples that leave while `commands` (time, value) arrive, up to and with `until`.
fn samples(plant: &mut PlantPeer, commands: &[(Time, f64)], until: Time) -> Vec<f64> {
    let mut sink = Sink::new(Interest::NONE);
    let mut commands = commands.iter().peekable();
    let mut seen = Vec::new();
    loop {
        let due = plant.poll_timeout().expect("a plant always has a next tick");
        let now = commands.peek().map_or(due, |(at, _)| due.min(*at));
        if now > until {
            return seen;
        }
        while let Some((_, value)) = commands.next_if(|(at, _)| *at <= now) {
            plant.handle_packet(now, datagram(*value, now), &mut sink);
        }
        plant.handle_timeout(now, &mut sink);
        while let Some(packet) = plant.poll_transmit(now, &mut sink) {
            seen.push(value(&packet));
        }
    }
}

#[test]
fn a_command_acts_on_the_period_ended_from_the_next_tick_or_at_once() {
    // 100 per second from 3 ms, 0 from 24 ms; y gains 1 in a period of 10 ms at 100.
    let commands = [(ms(3), 100.0), (ms(24), 0.0)];
    let check = |actuation, expected: &[f64]| {
        let mut plant = plant(|setup| setup.actuation = actuation);
        let got = samples(&mut plant, &commands, ms(40));
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
        assert!(got.len() == 5 && got.iter().zip(expected).all(near), "{actuation:?}: {got:?}");
    };
    check(Actuation::PeriodEnded, &[0.0, 1.0, 2.0, 2.0, 2.0]);
    check(Actuation::Tick, &[0.0, 0.0, 1.0, 2.0, 2.0]);
    check(Actuation::Arrival, &[0.0, 0.7, 1.7, 2.1, 2.1]);
}

#[test]
fn a_missing_command_is_the_last_one_or_zero() {
    let commands = [(ms(3), 100.0), (ms(33), 100.0)];
    let check = |actuation, missing, expected: &[f64]| {
        let mut plant = plant(|setup| {
            setup.actuation = actuation;
            setup.missing = missing;
        });
        let got = samples(&mut plant, &commands, ms(40));
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
        assert!(got.iter().zip(expected).all(near), "{actuation:?} {missing:?}: {got:?}");
    };
    check(Actuation::PeriodEnded, Missing::Hold, &[0.0, 1.0, 2.0, 3.0, 4.0]);
    check(Actuation::PeriodEnded, Missing::Zero, &[0.0, 1.0, 1.0, 1.0, 2.0]);
    check(Actuation::Tick, Missing::Hold, &[0.0, 0.0, 1.0, 2.0, 3.0]);
    check(Actuation::Tick, Missing::Zero, &[0.0, 0.0, 1.0, 1.0, 1.0]);
    // Held over the tick at 10 ms, to which it is new; let go at 20 ms.
    check(Actuation::Arrival, Missing::Zero, &[0.0, 0.7, 1.7, 1.7, 2.4]);
}

#[test]
fn a_command_is_as_old_where_it_acts_from_a_tick_on_as_where_it_came_at_the_tick() {
    // A loop that takes 8 ms: at each tick the newest command answers the sample of the tick before.
    for actuation in [Actuation::Tick, Actuation::Arrival] {
        let mut plant = plant(|setup| setup.actuation = actuation);
        let mut sink = Sink::new(Interest::MESSAGE);
        for tick in 0..5 {
            plant.handle_timeout(ms(10 * tick), &mut sink);
            plant.handle_packet(ms(10 * tick + 8), datagram(1.0, ms(10 * tick)), &mut sink);
        }
        let mut record = LoopRecord::new(Span::from_millis(10));
        sink.drain().for_each(|event| record.on_event(&event));
        assert_eq!(record.command_age_ms, [0.0, 10.0, 10.0, 10.0, 10.0], "{actuation:?}");
    }
}

#[test]
fn what_was_overtaken_or_returned_changes_nothing() {
    let mut sink = Sink::new(Interest::NONE);
    let mut plant = plant(|_| ());
    plant.handle_timeout(ms(0), &mut sink);
    plant.handle_packet(ms(5), datagram(100.0, ms(4)), &mut sink);
    plant.handle_packet(ms(6), datagram(-7.0, ms(3)), &mut sink);
    plant.handle_packet(ms(7), Packet { returned: true, ..datagram(9.0, ms(7)) }, &mut sink);
    plant.handle_timeout(ms(10), &mut sink);
    assert!((plant.output() - 1.0).abs() < 1e-12, "{}", plant.output());
}

#[test]
fn sending_delays_the_packet_and_not_the_next_tick() {
    let mut sink = Sink::new(Interest::NONE);
    // 48 bytes at 10 Mbit/s.
    let sending = BitRate::from_bps(10_000_000).expect("a rate").serialisation(48);
    assert_eq!(sending, Span::from_nanos(38_400));
    let mut plant = plant(|setup| setup.sending = sending);
    assert_eq!(plant.location(), Location::Sampling);
    plant.handle_timeout(ms(0), &mut sink);
    assert_eq!(plant.location(), Location::Sending);
    assert_eq!(plant.poll_transmit(ms(0), &mut sink), None);
    assert_eq!(plant.poll_timeout(), Some(Time::ZERO + sending));
    let packet = plant.poll_transmit(Time::ZERO + sending, &mut sink).expect("it leaves");
    assert_eq!((packet.size(), plant.location()), (48, Location::Sampling));
    assert_eq!(plant.poll_timeout(), Some(ms(10)));
}

#[test]
fn a_controller_driven_by_events_computes_once_per_new_sample() {
    let mut sink = Sink::new(Interest::NONE);
    let mut controller = controller(|setup| setup.driven = Driven::Event);
    assert_eq!(controller.poll_timeout(), None);
    let mut commands = |at: Time, packet: Packet| {
        controller.handle_packet(at, packet, &mut sink);
        let mut seen = Vec::new();
        while let Some(packet) = controller.poll_transmit(at, &mut sink) {
            seen.push(value(&packet));
        }
        seen
    };
    assert_eq!(commands(ms(4), datagram(0.25, ms(0))), [0.75]);
    assert_eq!(commands(ms(5), datagram(0.25, ms(0))), [0.0; 0], "the same sample again");
    assert_eq!(commands(ms(1013), datagram(0.5, ms(1010))), [1.5], "the reference is 2 by now");
}

#[test]
fn a_controller_without_a_sample_works_with_zero_and_holds_or_zeroes_what_is_missing() {
    let check = |missing, expected: &[f64]| {
        let mut sink = Sink::new(Interest::NONE);
        let mut controller = controller(|setup| setup.missing = missing);
        let mut seen = Vec::new();
        for tick in 0..4 {
            if tick == 1 {
                controller.handle_packet(ms(10), datagram(0.75, ms(9)), &mut sink);
            }
            controller.handle_timeout(ms(10 * tick), &mut sink);
            let packet = controller.poll_transmit(ms(10 * tick), &mut sink).expect("a command");
            seen.push(value(&packet));
        }
        assert_eq!(seen, expected, "{missing:?}");
    };
    check(Missing::Hold, &[1.0, 0.25, 0.25, 0.25]);
    check(Missing::Zero, &[1.0, 0.25, 1.0, 1.0]);
}

#[test]
fn a_spurious_timeout_is_a_no_op() {
    let mut sink = Sink::new(Interest::ALL);
    let (mut plant, mut controller) = (plant(|_| ()), controller(|_| ()));
    plant.handle_timeout(ms(0), &mut sink);
    controller.handle_timeout(ms(0), &mut sink);
    sink.drain();
    let before = (plant.poll_timeout(), controller.poll_timeout(), plant.output());
    for at in [0, 1, 9] {
        plant.handle_timeout(ms(at), &mut sink);
        controller.handle_timeout(ms(at), &mut sink);
    }
    assert_eq!((plant.poll_timeout(), controller.poll_timeout(), plant.output()), before);
    assert_eq!(sink.events(), []);
}

#[test]
fn timing_that_cannot_be_kept_and_plants_of_the_wrong_shape_are_refused() {
    let motor = || TransferFunction::dc_motor().to_state_space();
    let refused = |change: fn(&mut PlantSetup)| {
        let mut setup = PlantSetup::new(motor(), PLANT, CONTROLLER);
        change(&mut setup);
        PlantPeer::new(setup).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refused(|setup| setup.period = Span::ZERO).contains("longer than 0"));
    assert!(refused(|setup| setup.sending = setup.period).contains("less than"));
    assert!(refused(|setup| setup.initial = vec![1.0]).contains("2 by 1"));
    assert_eq!(refused(|_| ()), "");
}

/// Lets a [`LoopRecord`] watch a world.
struct Watching(LoopRecord);

impl Observer for Watching {
    fn on_event(&mut self, event: &Event) {
        self.0.on_event(event);
    }
}

/// The motor over two links of these delays, for 30 s.
fn world(each_way: Span, driven: Driven, actuation: Actuation) -> LoopRecord {
    let mut topology = Topology::default();
    let (a, b) = (topology.node(), topology.node());
    let link = LinkConfig {
        rate: BitRate::from_bps(10_000_000).expect("a rate"),
        delay: each_way,
        ..LinkConfig::default()
    };
    topology.duplex(a, b, &link);
    let period = Span::from_millis(14);
    let watching = Watching(LoopRecord::new(period));
    let mut world = World::new(&topology, 1, Interest::MESSAGE, watching);
    let motor = TransferFunction::dc_motor().to_state_space();
    let plant = PlantSetup { actuation, ..PlantSetup::new(motor, PLANT, CONTROLLER) };
    let controller = ControllerSetup { driven, ..ControllerSetup::new(CONTROLLER, PLANT) };
    world.attach(PLANT, Box::new(PlantPeer::new(plant).expect("a plant")));
    world.attach(CONTROLLER, Box::new(ControllerPeer::new(controller).expect("a controller")));
    world.run_until(
        Time::ZERO + period * Span::from_secs(30).as_nanos().div_ceil(period.as_nanos()),
    );
    world.into_observer().0
}

#[test]
fn a_network_carries_the_loop_as_delay_lines_do() {
    let check = |each_way: Span, driven, actuation, loop_delay: Span| {
        let setup =
            MotorLoop { loop_delay, driven, actuation, split: Split::Half, ..MotorLoop::default() };
        let expected = motor_loop(&setup, 1, |_| ()).expect("a loop");
        let got = world(each_way, driven, actuation);
        assert!(got.costs.s() > 4000.0, "{}", got.costs.s());
        assert_eq!(got, expected, "{each_way} {actuation:?}");
    };
    // 48 bytes take 38.4 us each way; ticks round the rest up, events do not.
    let serialisation = Span::from_nanos(38_400);
    let (nine, period) = (Span::from_millis(9), Span::from_millis(14));
    for actuation in [Actuation::Tick, Actuation::PeriodEnded] {
        check(nine, Driven::Time, actuation, period * 2);
        check(Span::from_millis(15), Driven::Time, actuation, period * 4);
    }
    let exact = (nine + serialisation) * 2;
    check(nine, Driven::Event, Actuation::Arrival, exact);
}

#[test]
fn the_reference_can_start_at_either_level() {
    // The cost hardly depends on it (less than 1 %).
    let cost = |reference| {
        let setup =
            MotorLoop { loop_delay: Span::from_millis(28), reference, ..MotorLoop::default() };
        motor_loop(&setup, 1, |_| ()).expect("a loop").costs.s()
    };
    let (one, two) = (
        cost(SquareWave::default()),
        cost(SquareWave { first: 2.0, second: 1.0, ..SquareWave::default() }),
    );
    assert!((one / two - 1.0).abs() < 0.01 && (one - two).abs() > 1e-3, "{one} {two}");
}

//! Goal: ANCE and ENCN keep the bottleneck's queue near Qmin and the bottleneck busy.
//! Method: the daisy chain of Sup, Moraes and Bauchspiess, section 3: 10 Mbit/s 2 ms, 1.5 Mbit/s 5 ms
//! with room for 17 packets, 10 Mbit/s 33 ms; one flow of 1000-byte packets, Qmin 3 packets, 60 s, the
//! first 10 s left out. The queue is its mean over time, the idle share what is missing from 187.5
//! packets a second.

use acklab_core::cc::{Algorithm, ance, balance, encn};
use acklab_core::event::{Event, EventKind, Interest};
use acklab_core::link::LinkConfig;
use acklab_core::packet::Addr;
use acklab_core::queue::{Discipline, encn as router};
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::app::{App, Bulk, Reader, ReaderModel};
use acklab_sim::{Duplex, End, Observer, Topology, World};
use acklab_tcp::Config;

const START: Time = Time::from_nanos(10_000_000_000);
const END: Time = Time::from_nanos(60_000_000_000);

#[derive(Default)]
struct Bottleneck {
    link: u32,
    packets: u32,
    since: Time,
    packet_seconds: f64,
    dropped: u32,
    /// Payload acknowledged by `START` and by now.
    acked: (u64, u64),
}

impl Observer for Bottleneck {
    fn on_event(&mut self, event: &Event) {
        match event.kind {
            EventKind::Queue { link, packets, .. } if link == self.link => {
                let held = event.time.since(self.since.max(START)).as_secs_f64();
                self.packet_seconds += f64::from(self.packets) * held;
                (self.packets, self.since) = (packets, event.time);
            }
            EventKind::Dropped { .. } => self.dropped += 1,
            EventKind::Congestion { acked, .. } => {
                self.acked.1 = self.acked.1.max(acked);
                if event.time < START {
                    self.acked.0 = self.acked.1;
                }
            }
            _ => {}
        }
    }
}

/// Mean queue in packets, idle share, packets dropped.
fn run(congestion: &Algorithm, queue: Discipline) -> (f64, f64, u32) {
    let hop = |bps, delay| {
        let rate = BitRate::from_bps(bps).expect("positive");
        LinkConfig::new(rate, Span::from_millis(delay))
    };
    let bottleneck =
        Duplex { forward: hop(1_500_000, 5).with_queue(queue), backward: hop(1_500_000, 5) };
    let [left, right] =
        [(10_000_000, 2), (10_000_000, 33)].map(|(bps, ms)| Duplex::symmetric(hop(bps, ms)));
    let mut topology = Topology::default();
    let chain = topology.daisy_chain(&[left, bottleneck, right]);
    let observer = Bottleneck { link: chain.forward[1], ..Bottleneck::default() };
    let mut world = World::new(&topology, 1, Interest::ALL, observer);
    let end = |node, port, app: Box<dyn App>| {
        let mut config = Config::textbook(960);
        config.congestion = congestion.clone();
        config.window.ssthresh = Some(16 * 960);
        config.ecn = true;
        End { addr: Addr { node, port }, config, isn: Seq(1), app }
    };
    let sender = end(chain.nodes[0], 50_000, Box::new(Bulk::unlimited()));
    let reader = Reader::new(ReaderModel::Promptly, u32::MAX);
    world.connect(sender, end(chain.nodes[3], 80, Box::new(reader)));
    world.run_until(END);
    let seen = world.observer();
    let seconds = END.since(START).as_secs_f64();
    let packets = (seen.acked.1 - seen.acked.0) as f64 / 960.0;
    (seen.packet_seconds / seconds, 1.0 - packets / (187.5 * seconds), seen.dropped)
}

fn algorithm(name: &str, bf_floor: f64) -> (Algorithm, Discipline) {
    let plain = encn::Options::default();
    if name == "encn" {
        let window = balance::Options { bf_floor, ..plain.window };
        (Algorithm::Encn(encn::Options { window }), Discipline::Encn(router::Options::packets(17)))
    } else {
        let window = balance::Options { bf_floor, ..balance::Options::default() };
        let options = ance::Options { window, ..ance::Options::default() };
        let queue = Discipline::by_name("drop-tail", 17).expect("a known name");
        (Algorithm::Ance(options), queue)
    }
}

#[test]
fn the_queue_stays_near_qmin_and_a_floor_of_three_keeps_the_bottleneck_busier() {
    for name in ["ance", "encn"] {
        let [one, three] = [1.0, 3.0].map(|bf_floor| {
            let (algorithm, queue) = algorithm(name, bf_floor);
            run(&algorithm, queue)
        });
        for (queue, idle, dropped) in [one, three] {
            // Waiting; the packet in service is not counted.
            assert!((1.0..3.5).contains(&queue), "{name}: {queue} packets wait");
            assert!(idle < 0.05, "{name}: idle for {idle}");
            assert_eq!(dropped, 0, "{name}");
        }
        assert!(three.1 < 0.005 && one.1 > 0.01, "{name}: idle for {} and {}", one.1, three.1);
    }
}

//! Goal: queues in front of a link behave as queueing theory says of M/D/1: Poisson arrivals,
//! constant service, first in, first out.
//! Method: datagrams at exponential intervals into one link, independent replications. The waiting
//! time's mean, second moment and distribution are compared with the Pollaczek-Khinchine formulas
//! and with Erlang's law, which know no packets; the simulator knows none of them. Each value must
//! lie within the 99.9 % confidence interval of the replications, and the interval must be narrow.

use acklab_core::event::{Event, EventKind, Interest};
use acklab_core::link::LinkConfig;
use acklab_core::math;
use acklab_core::packet::Addr;
use acklab_core::queue::{Discipline, DropTail, Factory, drop_tail};
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::arrivals::{Arrivals, Pattern};
use acklab_sim::peer::Datagrams;
use acklab_sim::{Observer, Topology, World};
use acklab_stats::MeanInterval;

const SERVICE: Span = Span::from_millis(1);
const PROPAGATION: Span = Span::from_millis(7);
const PACKETS: usize = 100_000;
/// The queue starts empty; it forgets that within some SERVICE / (1 - load)^2.
const WARM_UP: usize = 5000;
const REPLICATIONS: u64 = 16;
const CONFIDENCE: f64 = 0.999;

/// Waiting times in units of the service time.
struct Waits(Vec<f64>);

impl Observer for Waits {
    fn on_event(&mut self, event: &Event) {
        if let EventKind::App { value, .. } = event.kind {
            let wait_ms = value - SERVICE.as_millis_f64() - PROPAGATION.as_millis_f64();
            self.0.push(wait_ms / SERVICE.as_millis_f64());
        }
    }
}

fn waits(load: f64, queue: Discipline, seed: u64) -> Vec<f64> {
    // 1000 bytes with both headers take 1 ms.
    let rate = BitRate::from_bps(8_000_000).expect("positive");
    let mut topology = Topology::default();
    let [from, to] = std::array::from_fn(|_| topology.node());
    topology.link(from, to, LinkConfig::new(rate, PROPAGATION).with_queue(queue));
    let mean = Span::from_secs_f64(SERVICE.as_secs_f64() / load);
    let arrivals = Arrivals::new(
        Pattern::Poisson { mean, bytes: 972 },
        Rng::named(seed, "test/md1"),
        Time::ZERO,
        Time::ZERO + mean * PACKETS as u64,
    );
    let [source, sink] = [from, to].map(|node| Addr { node, port: 9 });
    let mut world = World::new(&topology, seed, Interest::MESSAGE, Waits(Vec::new()));
    world.attach(sink, Box::new(Datagrams::sink(sink)));
    world.attach(source, Box::new(Datagrams::new(source, sink, arrivals)));
    world.run_until(Time::MAX);
    world.into_observer().0.split_off(WARM_UP)
}

/// P(W <= t) in M/D/1, t in service times (Erlang 1909).
fn waiting_law(load: f64, t: f64) -> f64 {
    let (mut sum, mut factorial) = (0.0, 1.0);
    let mut k = 0.0;
    while k <= t {
        let x = load * (t - k);
        let power = if k == 0.0 { 1.0 } else { math::exp(k * math::ln(x.max(f64::MIN_POSITIVE))) };
        let sign = if k % 2.0 == 0.0 { 1.0 } else { -1.0 };
        sum += sign * power / factorial * math::exp(x);
        k += 1.0;
        factorial *= k;
    }
    (1.0 - load) * sum
}

fn check(what: &str, expect: f64, values: &[f64], widest: f64) {
    let interval = MeanInterval::from_replications(values, CONFIDENCE).expect("replications");
    assert!(
        (interval.low..=interval.high).contains(&expect),
        "{what}: {expect} is not within {interval:?}"
    );
    assert!(interval.half_width < widest, "{what}: {interval:?} says little");
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

#[test]
fn the_waiting_time_of_poisson_arrivals_is_that_of_m_d_1() {
    for load in [0.3, 0.6, 0.9] {
        let runs: Vec<Vec<f64>> =
            (1..=REPLICATIONS).map(|seed| waits(load, Discipline::default(), seed)).collect();
        let of = |f: &dyn Fn(f64) -> f64| -> Vec<f64> {
            runs.iter().map(|waits| mean(waits.iter().map(|&wait| f(wait)))).collect()
        };
        // Pollaczek and Khinchine, for a constant service of 1.
        let wait = load / (2.0 * (1.0 - load));
        let square = 2.0 * wait * wait + load / (3.0 * (1.0 - load));
        check(&format!("mean at {load}"), wait, &of(&|w| w), 0.05 * wait);
        check(&format!("second moment at {load}"), square, &of(&|w| w * w), 0.12 * square);
        // A half per mille of a service beyond 0 makes room for times rounded to nanoseconds.
        for t in [0.0005, 0.5, 1.0, 2.5, 4.0] {
            let below = of(&|w| f64::from(u8::from(w <= t)));
            check(&format!("P(W <= {t}) at {load}"), waiting_law(load, t), &below, 0.015);
        }
    }
}

#[test]
fn a_managed_queue_waits_as_long_as_a_computed_one() {
    let managed = Discipline::Custom(Factory::new(|setup| {
        Box::new(DropTail::new(drop_tail::Options::default(), setup))
    }));
    assert_eq!(waits(0.9, managed, 1), waits(0.9, Discipline::default(), 1));
}

//! The policer: what a bucket filled in bytes, step by step, lets through, and the closed form of a long overload.

use acklab_core::event::DropReason;
use acklab_core::packet::Ecn;
use acklab_core::queue::{Policer, Queue, Verdict, Verdicts, policer};
use acklab_core::rng::Rng;
use acklab_core::time::Time;

use crate::drive::{SIZE, id, packet, setup};

/// Packets that pass at those times, ns, of a bucket of `burst` bytes at 1.6 Mbit/s: 5 ms for each, without rounding.
fn passes(arrivals: &[u64], burst: u32) -> Vec<u64> {
    let rate = "1.6mbit".parse().expect("a rate");
    let options = policer::Options { committed_rate: rate, burst, ..policer::Options::default() };
    let (mut queue, mut verdicts) = (Policer::new(options, &setup()), Verdicts::default());
    let mut passed = Vec::new();
    for (number, &at) in arrivals.iter().enumerate() {
        let now = Time::from_nanos(at);
        queue.enqueue(now, packet(number as u64, 0, Ecn::Ect0), &mut verdicts);
        passed.extend(queue.dequeue(now, &mut verdicts).as_ref().map(id));
        assert_eq!((queue.packets(), queue.bytes()), (0, 0), "nothing waits for tokens");
    }
    assert!(verdicts.drain().all(|(_, verdict)| verdict == Verdict::Dropped(DropReason::Early)));
    passed
}

#[test]
fn what_passes_is_what_a_bucket_filled_in_bytes_holds() {
    let mut rng = Rng::named(11, "test/policer");
    for burst in [SIZE, 5 * SIZE, 40 * SIZE] {
        let (mut now, mut tokens) = (0, f64::from(burst));
        let (mut arrivals, mut expect) = (Vec::new(), Vec::new());
        for number in 0..5000 {
            // Half of them in trains, and pauses in which the bucket fills.
            let gap = if rng.chance(0.5) { 0 } else { (rng.uniform() * 9e6) as u64 };
            let gap = if rng.chance(0.01) { 300_000_000 } else { gap };
            now += gap;
            tokens = (tokens + gap as f64 * 1.6e6 / 8e9).min(f64::from(burst));
            arrivals.push(now);
            // Rounding is no token.
            if tokens + 1e-3 >= f64::from(SIZE) {
                tokens -= f64::from(SIZE);
                expect.push(number);
            }
        }
        assert!(expect.len() > 1000 && expect.len() < 4900, "{}", expect.len());
        let passed = passes(&arrivals, burst);
        let differs = passed.iter().zip(&expect).position(|(ours, oracle)| ours != oracle);
        assert_eq!((differs, passed.len()), (None, expect.len()), "{burst}");
    }
}

#[test]
fn a_long_overload_gets_the_burst_and_the_rate() {
    // Ten times the rate for 8 s: 40 packets of burst and 200 per second.
    let arrivals: Vec<u64> = (0..16_000).map(|number| number * 500_000).collect();
    let passed = passes(&arrivals, 40 * SIZE).len();
    assert!((1639..=1641).contains(&passed), "{passed}");
}

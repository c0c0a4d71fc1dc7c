//! How long a transfer takes.

use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};

use crate::support::{Lane, Transfer, lane, lane_of, medians, transfer};

/// Table of docs/rudp.md section 1: paths, loss, seconds.
const BARS: [(usize, f64, f64); 8] = [
    (1, 0.0, 2.3),
    (1, 0.05, 2.6),
    (1, 0.15, 3.1),
    (1, 0.28, 3.8),
    (2, 0.0, 1.2),
    (2, 0.05, 1.5),
    (2, 0.15, 1.8),
    (2, 0.28, 2.2),
];

#[test]
fn the_median_transfer_is_as_fast_as_the_table_asks_and_wastes_no_more() {
    for (paths, loss, bar) in BARS {
        let (seconds, wire) = medians(&vec![lane(loss); paths], 9);
        let allowed = 1.25 / (1.0 - loss);
        println!("{paths} paths, {loss}: {seconds:.3} s of {bar}, wire {wire:.3} of {allowed:.3}");
        assert!(seconds <= bar, "{paths} paths, loss {loss}: {seconds} s");
        assert!(wire <= allowed, "{paths} paths, loss {loss}: wire {wire}");
    }
}

#[test]
#[ignore = "prints a table of docs/rudp-measured.md"]
fn other_links() {
    for (rate, delay) in [("10mbit", 50), ("20mbit", 20), ("100mbit", 10)] {
        for loss in [0.0, 0.05, 0.15, 0.28] {
            let (seconds, wire) = medians(&[lane_of(rate, delay, loss)], 9);
            println!("{rate} {delay} ms, {loss}: {seconds:.3} s, wire {:.3}", wire * (1.0 - loss));
        }
    }
}

/// Seconds of a transfer whose ends get no processor now and then: each `every_ms` on average, either of
/// them, for up to `most_ms`.
fn transfer_between_busy_hosts(seed: u64, loss: f64, every_ms: u32, most_ms: u32) -> f64 {
    let mut transfer = Transfer::new(seed, &[lane(loss)]);
    let mut rng = Rng::named(seed, "busy");
    let mut at = Time::ZERO;
    loop {
        at += Span::from_secs_f64(rng.exponential(f64::from(every_ms)) / 1e3);
        if transfer.run(at) {
            return transfer.finish(at);
        }
        let span = Span::from_secs_f64(rng.uniform() * f64::from(most_ms) / 1e3);
        transfer.net.keep_busy(rng.below(2) as usize, at + span);
    }
}

#[test]
fn busy_hosts_slow_a_transfer_down_and_do_not_stop_it() {
    for (loss, every_ms, most_ms, median, most) in [
        (0.0, 50, 5, 2.3, 2.4),
        (0.0, 200, 60, 2.6, 4.0),
        (0.28, 50, 20, 3.6, 4.5),
        (0.28, 200, 60, 3.8, 6.0),
    ] {
        let of = |seed| transfer_between_busy_hosts(seed, loss, every_ms, most_ms);
        let mut times: Vec<f64> = (1..=20).map(of).collect();
        times.sort_by(f64::total_cmp);
        println!(
            "{loss}, up to {most_ms} ms each {every_ms} ms: {:.3} s, {:.3} s",
            times[10], times[19]
        );
        assert!(times[10] <= median && times[19] <= most, "{loss} {every_ms} {most_ms}: {times:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| transfer(seed, &[lane(0.15), lane(0.15)]);
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn no_transfer_over_two_lossy_paths_is_much_slower_than_the_others() {
    // A receiver that took a lossy path for dead told the sender not to use it: 2.5 s in one of ten.
    for (loss, bar) in [(0.15, 1.8), (0.28, 2.2)] {
        let seconds = (100..130).map(|seed| transfer(seed, &vec![lane(loss); 2]).0);
        let slowest = seconds.max_by(f64::total_cmp).expect("thirty");
        assert!(slowest <= bar, "loss {loss}: {slowest} s");
    }
}

#[test]
fn jitter_costs_at_most_a_quarter() {
    // Rate, delay, jitter of both directions (order kept), loss. Median and slowest of 20 seeds against the median without
    // jitter; bars declared before the first run.
    for (rate, delay_ms, jitter_ms, loss) in [
        ("20mbit", 20, 20, 0.0),
        ("20mbit", 20, 40, 0.0),
        ("20mbit", 20, 20, 0.05),
        ("20mbit", 50, 25, 0.01),
        ("10mbit", 100, 50, 0.1),
    ] {
        let (forward, backward) = lane_of(rate, delay_ms, loss);
        let jitter = Span::from_millis(jitter_ms);
        let uneven = (forward.clone().with_jitter(jitter), backward.clone().with_jitter(jitter));
        let times = |lane: &Lane| {
            let mut times: Vec<f64> =
                (1..=20).map(|seed| transfer(seed, std::slice::from_ref(lane)).0).collect();
            times.sort_by(f64::total_cmp);
            (times[10], times[19])
        };
        let (even, _) = times(&(forward, backward));
        let (median, slowest) = times(&uneven);
        let told = format!(
            "{rate}, {delay_ms} + {jitter_ms} ms, {loss}: {even:.2} s, {median:.2} s, {slowest:.2} s"
        );
        println!("{told}");
        assert!(median <= 1.25 * even && slowest <= 1.6 * even, "{told}");
    }
}

//! How long a transfer takes.

use crate::support::{lane, lane_of, medians, transfer};

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
#[ignore = "prints a table of docs/rudp.md"]
fn other_links() {
    for (rate, delay) in [("10mbit", 50), ("20mbit", 20), ("100mbit", 10)] {
        for loss in [0.0, 0.05, 0.15, 0.28] {
            let (seconds, wire) = medians(&[lane_of(rate, delay, loss)], 9);
            println!("{rate} {delay} ms, {loss}: {seconds:.3} s, wire {:.3}", wire * (1.0 - loss));
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| transfer(seed, &[lane(0.15), lane(0.15)]);
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

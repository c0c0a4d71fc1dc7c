//! `lossy` behind a policer: a token bucket that delays nothing, so that no round trip tells how much is too much.
//! Bars: 0.95 of what it grants, and a tenth of waste; a quarter at 10 ms, where a round has 17 packets to tell by.

use acklab_core::link::LinkConfig;
use acklab_core::queue::{Discipline, policer};
use acklab_core::time::Time;

use crate::carrier::{Carrier, PAYLOAD, WIRE};
use crate::{algorithm, at, link, median};

/// A link of 100 Mbit/s behind a policer of 20 Mbit/s with that burst.
fn policed(delay_ms: u64, burst: u32, loss: f64) -> LinkConfig {
    let rate = "20mbit".parse().expect("a rate");
    let options =
        policer::Options { committed_rate: rate, burst, ..policer::Options::packets(1000) };
    link(100, delay_ms, loss).with_queue(Discipline::Policer(options))
}

/// Of the policer's rate what arrives, and bytes on the wire over those delivered, losses behind it left out; of
/// 20 s, from the fourth on.
fn run(road: &LinkConfig, delay_ms: u64, loss: f64, seed: u64) -> (f64, f64) {
    let back = link(1000, delay_ms, 0.0);
    let mut carrier = Carrier::new(&algorithm(), seed, &[(Time::ZERO, road.clone())], &back);
    carrier.run_until(at(4.0), |_| ());
    let before = (carrier.arrived(), carrier.wire_bytes(), carrier.delivered);
    carrier.run_until(at(24.0), |_| ());
    let bps = ((carrier.arrived() - before.0) * WIRE * 8) as f64 / 20.0;
    let wire = (carrier.wire_bytes() - before.1) as f64 / WIRE as f64;
    let payload = (carrier.delivered - before.2) as f64 / PAYLOAD as f64;
    (bps / (20e6 * (1.0 - loss)), wire / payload * (1.0 - loss))
}

#[test]
fn what_a_policer_grants_is_used_and_little_more_is_sent() {
    for (delay_ms, most) in [(5, 1.25), (20, 1.1), (50, 1.1)] {
        for burst in [5_000, 20_000, 100_000, 500_000] {
            for loss in [0.0, 0.05] {
                let road = policed(delay_ms, burst, loss);
                let (used, wire): (Vec<f64>, Vec<f64>) =
                    (1..=3).map(|seed| run(&road, delay_ms, loss, seed)).unzip();
                let (used, wire) = (median(used), median(wire));
                let told = format!("{delay_ms} ms, burst {burst}, {loss}: {used:.2}, {wire:.2}");
                println!("{told}");
                assert!(used >= 0.95 && wire <= most, "{told}");
            }
        }
    }
}

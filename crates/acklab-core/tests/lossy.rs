//! Goal: `lossy` fills a link that loses at random, from the first packet on, and fills no queue.
//! Method: one sender over links of the core in virtual time, through a carrier that feeds it as the
//! reliable UDP connection does; the shares and bounds are those of docs/rudp.md section 1.

#[path = "lossy/carrier.rs"]
mod carrier;

use acklab_core::cc::Algorithm;
use acklab_core::link::LinkConfig;
use acklab_core::queue::{Discipline, Limit};
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use carrier::{Carrier, PAYLOAD, WIRE};

fn algorithm() -> Algorithm {
    "lossy".parse().expect("a known name")
}

fn link(mbps: u64, delay_ms: u64, loss: f64) -> LinkConfig {
    let rate = BitRate::from_bps(mbps * 1_000_000).expect("not zero");
    // 100 ms of queue.
    let queue = Discipline::DropTail(Limit::bytes(mbps * 12_500));
    LinkConfig::new(rate, Span::from_millis(delay_ms)).with_loss(loss).with_queue(queue)
}

fn at(seconds: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(seconds)
}

struct Outcome {
    /// Of what the link carries of packets that are not lost.
    utilisation: f64,
    /// Bytes on the wire over payload delivered.
    expansion: f64,
}

fn run(mbps: u64, delay_ms: u64, loss: f64, seed: u64, seconds: f64) -> Outcome {
    let road = link(mbps, delay_ms, loss);
    let mut carrier = Carrier::new(&algorithm(), seed, &[(Time::ZERO, road.clone())], road);
    carrier.run_until(at(seconds), |_| ());
    let bps = (carrier.arrived() * WIRE * 8) as f64 / seconds;
    Outcome {
        utilisation: bps / (mbps as f64 * 1e6 * (1.0 - loss)),
        expansion: carrier.wire_bytes() as f64 / carrier.delivered as f64 * PAYLOAD as f64
            / WIRE as f64,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn one_flow_uses_what_the_bars_ask_for_and_overflows_nothing() {
    for (mbps, delay_ms, seconds) in [(20, 20, 2.0), (20, 20, 4.0), (10, 50, 4.0), (100, 10, 4.0)] {
        for (loss, bar) in [(0.0, 0.95), (0.05, 0.90), (0.15, 0.84), (0.28, 0.81)] {
            let runs: Vec<Outcome> =
                (1..=7).map(|seed| run(mbps, delay_ms, loss, seed, seconds)).collect();
            let used = median(runs.iter().map(|run| run.utilisation).collect());
            let least = runs.iter().map(|run| run.utilisation).fold(2.0, f64::min);
            let wire = median(runs.iter().map(|run| run.expansion * (1.0 - loss)).collect());
            let told = format!(
                "{mbps} Mbit/s, {delay_ms} ms, {loss}, {seconds} s: {used:.3}, least {least:.3}, \
                 wire {wire:.3}"
            );
            println!("{told}");
            assert!(used >= bar && least >= 0.8, "{told}");
            assert!(wire <= 1.05, "{told}");
        }
    }
}

#[test]
fn five_megabytes_are_there_before_the_bars() {
    for (loss, bar) in [(0.0, 2.3), (0.05, 2.6), (0.15, 3.1), (0.28, 3.8)] {
        let times = (1..=7).map(|seed| {
            let road = link(20, 20, loss);
            let mut carrier = Carrier::new(&algorithm(), seed, &[(Time::ZERO, road.clone())], road);
            carrier.limit(5_000_000);
            carrier.run_until(at(20.0), |_| ());
            assert!(carrier.is_done(), "{loss}, seed {seed}");
            carrier.now.since(Time::ZERO).as_secs_f64()
        });
        // The connection adds its handshake and its tail; it has duplicates for the latter.
        let time = median(times.collect());
        println!("{loss}: {time:.3} s");
        assert!(time < bar - 0.06, "{loss}: {time} s");
    }
}

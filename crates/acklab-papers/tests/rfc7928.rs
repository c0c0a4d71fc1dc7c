//! Goal: the mixes of RFC 7928 show what each section is there to show.
//! Method: one replication of 30 s per claim; the claims are about order and clear distance, which
//! follow from what the disciplines are, not about levels; where a level is meant, another simulator
//! has it.

use std::collections::{BTreeMap, BTreeSet};

use acklab_core::packet::{Body, Packet};
use acklab_core::time::Time;
use acklab_lab::plan::Plan;
use acklab_lab::run;
use acklab_lab::scenario::{self, Capture, CapturePoint, Replication, Scenario};
use acklab_papers::scenario::SCENARIOS;

fn replicate(pairs: &[&str]) -> Replication {
    let scenario = SCENARIOS.find("rfc7928").expect("it is built in");
    let mut settings = scenario::defaults(scenario);
    for pair in pairs {
        settings.set_pair(pair).expect("a setting");
    }
    scenario.check(&settings).expect("sensible settings");
    scenario.run(&settings, 1, None)
}

fn throughput_of(replication: &Replication, kind: &str) -> f64 {
    let flows = replication.flows.iter().filter(|flow| flow.id.contains(kind));
    flows.map(|flow| flow.metrics.number("throughput_bps")).sum()
}

#[test]
fn a_full_drop_tail_queue_delays_more_than_a_managed_one() {
    let delay = |queue| replicate(&[queue]).metrics.number("queue_delay_ms");
    let (drop_tail, codel, fq_codel) =
        (delay("queue=drop-tail"), delay("queue=codel"), delay("queue=fq-codel"));
    assert!(drop_tail > 3.0 * codel && codel > 2.0 * fq_codel, "{drop_tail} {codel} {fq_codel}");
    // 84 packets of 1500 bytes take 101 ms at 10 Mbit/s.
    assert!(drop_tail < 101.0);
}

#[test]
fn the_queue_holds_a_bandwidth_delay_product_of_whatever_rate_and_round_trip() {
    let most =
        |pairs: &[&str]| replicate(pairs).metrics.spread("queue_delay_ms").expect("probes").max;
    // A full queue of one product delays by one round trip, whatever the rate; the probe itself may find it a packet short.
    for rate in ["rate=10mbit", "rate=40mbit"] {
        let delay = most(&[rate, "rtt=50ms", "duration=10s"]);
        assert!((45.0..52.0).contains(&delay), "{rate}: {delay}");
    }
    let chosen = most(&["rate=40mbit", "rtt=50ms", "duration=10s", "buffer=20"]);
    assert!(chosen < 7.0, "{chosen}");
}

#[test]
fn reno_under_red_loses_and_carries_what_it_does_in_ns_3() {
    // ns-3.37, the same set-up (LinuxReno, SACK, PRR, least time-out 1 s, RedQueueDisc with Wait off,
    // which is the 1993 paper's spacing of drops), mean of ten runs: 9.22 Mbit/s, 285 drops, Jain 0.98.
    let scenario: &dyn Scenario = SCENARIOS.find("rfc7928").unwrap();
    let mut settings = scenario::defaults(scenario);
    settings.set_pair("queue=red").unwrap();
    let results = run::run(&Plan::single(scenario, settings, 1, Some(5)).unwrap());
    let metrics = &results.cases[0].metrics;
    let of = |name| metrics.number(name);
    let (throughput, drops, jain) = (of("throughput_bps"), of("drops"), of("jain"));
    assert!((throughput / 9.22e6 - 1.0).abs() < 0.05, "{throughput} bit/s");
    assert!(drops <= 1.5 * 285.0, "{drops} drops");
    assert!(jain > 0.95, "Jain {jain}");
}

#[test]
fn the_coins_of_flows_and_replications_differ() {
    let scenario = SCENARIOS.find("rfc7928").expect("it is built in");
    let mut settings = scenario::defaults(scenario);
    settings.set_pair("duration=1s").expect("a setting");
    let first_numbers = |seed| {
        let mut first = BTreeMap::new();
        let mut tap = |_: Time, packet: &Packet| {
            if let Body::Tcp(segment) = &packet.body {
                first.entry(packet.src).or_insert(segment.seq.0);
            }
        };
        let at = CapturePoint::Middle;
        scenario.run(&settings, seed, Some(Capture { at, tap: &mut tap }));
        first.into_values().collect::<BTreeSet<u32>>()
    };
    let (one, other) = (first_numbers(1), first_numbers(2));
    // Both ends of four flows.
    assert!(one.len() == 8 && one.is_disjoint(&other), "{one:?} {other:?}");
}

#[test]
fn flow_queueing_protects_from_a_sender_that_does_not_respond() {
    let tcp = |queue| replicate(&["mix=unresponsive", queue]).metrics.number("throughput_bps");
    let (shared, apart) = (tcp("queue=drop-tail"), tcp("queue=fq-codel"));
    // The datagrams take their 5 Mbit/s of a shared queue, and a fifth of 10 Mbit/s of their own.
    assert!(shared < 5.1e6, "{shared}");
    assert!((6.5e6..8.1e6).contains(&apart), "{apart}");
}

#[test]
fn a_delay_based_sender_yields_in_a_long_queue_and_shares_a_short_one() {
    let of = |queue| {
        let replication = replicate(&["mix=background", queue]);
        let vegas = throughput_of(&replication, "vegas");
        vegas / replication.metrics.number("throughput_bps")
    };
    let (long, short) = (of("queue=drop-tail"), of("queue=fq-codel"));
    assert!(long < 0.3 && short > 0.4, "{long} {short}");
}

#[test]
fn a_short_round_trip_wins_at_a_shared_queue_and_not_at_flow_queues() {
    let of = |queue| {
        let replication = replicate(&["mix=rtt", queue]);
        throughput_of(&replication, "other") / replication.metrics.number("throughput_bps")
    };
    let (shared, apart) = (of("queue=codel"), of("queue=fq-codel"));
    assert!(shared > 0.65 && (0.45..0.6).contains(&apart), "{shared} {apart}");
}

#[test]
fn flows_of_the_middle_third_send_then_only() {
    let replication = replicate(&["mix=varying-load"]);
    let share =
        throughput_of(&replication, "middle") / replication.metrics.number("throughput_bps");
    // Half of the flows, a third of the time: a sixth of the whole, less their slow start, and what was
    // left in their send buffers: 4 MiB each are 0.23 of what 10 Mbit/s carry in 30 s.
    assert!((0.08..0.17 + 0.23).contains(&share), "{share}");
}

#[test]
fn every_mix_runs_the_same_way_twice_and_measures_the_probe() {
    let scenario = SCENARIOS.find("rfc7928").unwrap();
    let mixes = scenario.declaration().grid[0].values;
    assert_eq!(mixes.len(), 10);
    for mix in mixes {
        let pairs =
            [format!("mix={mix}"), "duration=3s".into(), "ecn=on".into(), "queue=codel".into()];
        let pairs: Vec<&str> = pairs.iter().map(String::as_str).collect();
        let (first, second) = (replicate(&pairs), replicate(&pairs));
        assert_eq!(first.hash, second.hash, "{mix}");
        let probes = first.metrics.samples("queue_delay_ms").len() as f64;
        let lost = first.metrics.number("probes_lost");
        assert!((290.0..=300.0).contains(&(probes + lost)), "{mix}: {probes} and {lost}");
        assert!(first.metrics.number("throughput_bps") > 2e6, "{mix}");
    }
}

#[test]
fn settings_that_make_no_network_are_refused() {
    let scenario: &dyn Scenario = SCENARIOS.find("rfc7928").unwrap();
    for (pair, says) in [("rtt=1ms", "at least 4ms"), ("rate=infinite", "must be finite")] {
        let mut settings = scenario::defaults(scenario);
        settings.set_pair(pair).unwrap();
        let error = scenario.check(&settings).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

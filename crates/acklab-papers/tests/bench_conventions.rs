//! Goal: where simulators differ on "the same" experiment, the difference is a convention that can be
//! set here.
//! Method: bench-ref under the conventions of its peers. The limits are the spread that was measured
//! over ns-2, ns-3 and htsim on this workload, 103 to 340 drops and 5024 to 5407 packets delivered.

use acklab_lab::scenario;
use acklab_papers::scenario::SCENARIOS;

/// Packets delivered and dropped.
fn run(pairs: &[&str]) -> (f64, f64) {
    let scenario = SCENARIOS.find("bench-ref").expect("it is built in");
    let mut settings = scenario::defaults(scenario);
    for pair in pairs {
        settings.set_pair(pair).expect("a setting");
    }
    let metrics = scenario.run(&settings, 1, None).metrics;
    (metrics.number("delivered_packets"), metrics.number("drops"))
}

/// What ns-2's Agent/TCP/Reno with TCPSink does, but for its initial window.
const NS2_RENO: [&str; 5] =
    ["sack=off", "recovery=reno", "delack=off", "growth=acks", "timestamps=off"];

#[test]
fn classic_reno_lies_inside_the_spread_of_the_peers() {
    for window in ["iw=1", "iw=2"] {
        let pairs: Vec<&str> = NS2_RENO.iter().copied().chain([window]).collect();
        let (delivered, drops) = run(&pairs);
        assert!((5024.0..=5407.0).contains(&delivered), "{window}: {delivered}");
        assert!((103.0..=340.0).contains(&drops), "{window}: {drops}");
    }
}

#[test]
fn a_window_that_grows_by_acks_loses_half_as_much_under_delayed_acks() {
    let (_, by_bytes) = run(&[]);
    let (_, by_acks) = run(&["growth=acks"]);
    let (_, undelayed) = run(&["growth=acks", "delack=off"]);
    assert!(by_acks < 0.7 * by_bytes, "{by_acks} {by_bytes}");
    assert!(undelayed > 1.4 * by_acks, "{undelayed} {by_acks}");
}

#[test]
fn better_recovery_delivers_more() {
    let (reno, _) = run(&["sack=off", "recovery=reno"]);
    let (newreno, _) = run(&["sack=off"]);
    let (sack, _) = run(&[]);
    assert!(reno < newreno && newreno <= sack, "{reno} {newreno} {sack}");
    // 30 s at 1.5 Mbit/s, less the control flow, are 5522 packets of 1000 bytes.
    assert!(sack < 5522.0);
}

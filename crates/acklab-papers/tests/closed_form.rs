//! Goal: the simulated sender delays messages as the closed form says, for every receiver and path.
//! Method: run `nagle-delack` and compare with `CycleLaw`, which knows no packets: without jitter
//! message by message, with jitter by the Kolmogorov-Smirnov distance.

use std::f64::consts::PI;

use acklab_core::time::Span;
use acklab_lab::measured::Metrics;
use acklab_lab::parameter::Settings;
use acklab_lab::plan::Plan;
use acklab_lab::{run, scenario};
use acklab_papers::closed_form::CycleLaw;
use acklab_papers::scenario::SCENARIOS;
use acklab_stats::{Ecdf, ks_critical_value};

const RTTS_MS: [u64; 5] = [10, 30, 100, 500, 1000];

/// Every receiver whose delay is a constant, with that constant (facts of each policy's file).
const RECEIVERS: [(&str, u64); 11] = [
    ("every-segment", 0),
    ("linux", 0),
    ("macos", 0),
    ("fixed-timer timer=40ms", 40),
    ("freebsd-12.2", 40),
    ("windows-10", 40),
    ("fixed-timer timer=100ms", 100),
    ("freebsd-12.1", 100),
    ("fixed-timer timer=200ms", 200),
    ("windows-7", 200),
    ("qnx-7.0", 200),
];

fn settings(pairs: &str) -> Settings {
    let scenario = SCENARIOS.find("nagle-delack").expect("a built-in scenario");
    let mut settings = scenario::defaults(scenario);
    for pair in pairs.split_whitespace() {
        settings.set_pair(pair).expect("a valid setting");
    }
    settings
}

fn metrics(pairs: &str, replications: u64) -> Metrics {
    let scenario = SCENARIOS.find("nagle-delack").expect("a built-in scenario");
    let plan =
        Plan::single(scenario, settings(pairs), 1, Some(replications)).expect("a valid plan");
    run::run(&plan).metrics
}

fn law(rtt_ms: u64, delay_ms: u64) -> CycleLaw {
    let span = Span::from_millis;
    CycleLaw::new(span(rtt_ms), span(delay_ms), span(100))
}

fn close(what: &str, value: f64, expect: f64, tolerance: f64) {
    assert!(
        (value - expect).abs() <= tolerance,
        "{what}: {value}, expected {expect} ± {tolerance}"
    );
}

/// Without jitter every single message waits as long as the lattice says.
///
/// Links are infinitely fast, so that C is RTT + D exactly, plus 1 ns of overhead, which decides
/// the ties where C is a multiple of the period: a message written at the instant at which the ACK
/// comes leaves with it. The overhead adds up to 1 ns per cycle, of which there are fewer than 1005.
#[test]
fn without_jitter_every_message_waits_as_the_lattice_says() {
    for (receiver, delay_ms) in RECEIVERS {
        for rtt_ms in RTTS_MS {
            let case = format!("receiver={receiver} rtt={rtt_ms}ms rate=infinite overhead=1ns");
            let (metrics, law) = (metrics(&case, 1), law(rtt_ms, delay_ms));
            let delays = metrics.samples("buffering_delay_ms");
            assert_eq!(delays.len(), 1005, "{case}");
            for (index, delay) in delays.iter().enumerate() {
                let expect = law.lattice_delay(index as u64).as_millis_f64();
                // With C equal to the period, the overhead alone makes messages wait.
                close(&format!("{case}: message {index}"), *delay, expect, 0.0011);
            }
        }
    }
}

/// The figures that are reported: mean, maximum and messages per segment.
///
/// On 1 Gbit/s links serialisation adds at most 21 µs to a cycle (1252 bytes there and 40 back,
/// twice), which over the at most 1005 * 100 / C cycles of a run adds up to less than 5 ms of phase;
/// only where C is at most the period does it stay below 21 µs a message. A run ends within a cycle,
/// so messages per segment and the mean are off by at most one cycle of the run.
#[test]
fn without_jitter_mean_maximum_and_messages_per_segment_are_the_lattices() {
    let senders = ["qnx-7.0", "linux"];
    let ends = senders.iter().flat_map(|sender| RECEIVERS.map(|receiver| (sender, receiver)));
    for (sender, (receiver, delay_ms)) in ends {
        for rtt_ms in RTTS_MS {
            // Its SYN-ACK is sent again after a second, and the answer to that is one more ACK.
            if *sender == "linux" && rtt_ms >= 1000 {
                continue;
            }
            let case = format!("sender={sender} receiver={receiver} rtt={rtt_ms}ms");
            let (metrics, law) = (metrics(&case, 1), law(rtt_ms, delay_ms));
            let cycles = 1005.0 / law.messages_per_segment();
            let drift_ms =
                if law.cycle() < Span::from_millis(100) { 0.021 } else { 0.021 * cycles };
            let drift_ms = drift_ms.min(5.0);
            let summary = metrics.spread("buffering_delay_ms").unwrap();
            let edge = law.cycle().as_millis_f64() / cycles;
            close(&case, summary.mean, law.lattice_mean_ms(), drift_ms + edge);
            close(&case, summary.max, law.lattice_max().as_millis_f64(), drift_ms);
            let ratio = metrics.number("messages_per_segment");
            close(
                &case,
                ratio,
                law.messages_per_segment(),
                2.0 * law.messages_per_segment() / cycles,
            );
        }
    }
}

/// With jitter the delay is uniform on [0, C), wherever every gap between writes is shorter than C.
///
/// Linux is left out where C is 500 ms or more: two segments in a row of the same size above 536
/// bytes teach its `rcv_mss` that size and are then not taken for the end of a write, so jitter lets
/// some ACKs wait for the timer (`tcp_measure_rcv_mss`), as on the real system.
///
/// The samples of a cycle are one phase modulo the period, and the phases of successive cycles are
/// correlated: with a jitter of ±j a cycle's phase moves by a variance of v = (C/period) j²/3, so its
/// first harmonic keeps rho = exp(-2 pi² v / period²) of itself, and as many independent phases are
/// in a run as cycles times (1 - rho) / (1 + rho). The distance is held to the critical value for
/// that many samples at 0.1 %, the mean to four standard errors, with 50 cases in all.
#[test]
fn with_jitter_the_delay_is_uniform_over_the_cycle() {
    for (receiver, delay_ms) in RECEIVERS {
        for rtt_ms in RTTS_MS {
            let law = law(rtt_ms, delay_ms);
            let cycle_ms = law.cycle().as_millis_f64();
            if cycle_ms < 110.0 || (receiver.starts_with("linux") && cycle_ms >= 500.0) {
                continue;
            }
            // Small enough that no cycle collects an MSS of 14 messages, which would leave early.
            let most = if cycle_ms < 1000.0 { 50.0 } else { 20.0 };
            let jitter_ms = (cycle_ms - 100.0).min(most);
            let case = format!("receiver={receiver} rtt={rtt_ms}ms jitter={jitter_ms}ms");
            let metrics = metrics(&case, 10);
            let delays = metrics.samples("buffering_delay_ms").to_vec();

            let cycles = 10_050.0 / law.messages_per_segment();
            let variance = law.messages_per_segment() * jitter_ms * jitter_ms / 3.0;
            let harmonic = 2.0 * PI * PI * variance / 1e4;
            let rho = acklab_core::math::exp(-harmonic);
            let independent = (cycles * (1.0 - rho) / (1.0 + rho)).max(1.0);

            let distance = Ecdf::from_samples(delays).unwrap().ks_distance(|x| law.uniform_cdf(x));
            let critical = ks_critical_value(independent as usize, 0.001);
            assert!(distance <= critical, "{case}: distance {distance}, critical {critical}");

            let summary = metrics.spread("buffering_delay_ms").unwrap();
            let error = cycle_ms / 12.0_f64.sqrt() / independent.sqrt();
            close(&case, summary.mean, law.uniform_mean_ms(), 4.0 * error);
            // 10 050 samples leave at most 1 % of the range uncovered, and cover no more than it
            // but for serialisation.
            assert!(summary.max <= cycle_ms + 0.05, "{case}: {}", summary.max);
            assert!(summary.max >= 0.98 * cycle_ms, "{case}: {}", summary.max);
            let ratio = metrics.number("messages_per_segment");
            close(&case, ratio, law.messages_per_segment(), 0.02 * law.messages_per_segment());
        }
    }
}

/// Where C is a multiple of the period, hosts' own time decides: 0.3 ms a cycle let the phase drift
/// by 150 ms in 502 cycles of 200.3 ms, once and a half over the lattice's step.
#[test]
fn overhead_lets_the_phase_drift_over_the_whole_cycle() {
    let metrics = metrics("receiver=freebsd-12.1 rtt=100ms overhead=300us", 1);
    let summary = metrics.spread("buffering_delay_ms").unwrap();
    // Two thirds of the run drift from {0, 100} to {100, 200} ms (mean 100), one third from {0, 100}
    // again up to {50, 150} (mean 75).
    close("mean", summary.mean, 275.0 / 3.0, 3.0);
    close("maximum", summary.max, 200.3, 1.0);
}

/// A free-running tick of 100 ms, the second after the arrival: D is uniform on (100, 200], and the
/// first segment's phase decides for the run, because C then is a multiple of 100 ms.
#[test]
fn a_free_running_tick_acknowledges_after_one_to_two_ticks() {
    for rtt_ms in RTTS_MS {
        let case = format!("receiver=windows-7-tick rtt={rtt_ms}ms jitter=1ms");
        let metrics = metrics(&case, 10);
        let acks = metrics.spread("ack_delay_ms").unwrap();
        assert!(acks.max <= 200.0, "{case}: {acks:?}");
        let delays = metrics.spread("buffering_delay_ms").unwrap();
        let cycle_max = rtt_ms as f64 + 200.0;
        assert!(delays.max <= cycle_max + 0.1, "{case}: {delays:?}");
        let mean_max = f64::midpoint(cycle_max, 0.0) + 50.0;
        assert!(delays.mean > rtt_ms as f64 / 2.0 && delays.mean < mean_max, "{case}: {delays:?}");
    }
}

#[test]
fn without_nagle_nothing_waits_for_an_ack() {
    for (receiver, _) in RECEIVERS {
        for rtt_ms in RTTS_MS {
            let case = format!("receiver={receiver} rtt={rtt_ms}ms nagle=off");
            let metrics = metrics(&case, 1);
            let summary = metrics.spread("buffering_delay_ms").unwrap();
            assert_eq!((summary.max, metrics.number("holds")), (0.0, 0.0), "{case}");
            close(&case, metrics.number("messages_per_segment"), 1.0, 0.0);
        }
    }
}

//! The paper's sentences about its results, in our words, and whether they hold.
//!
//! Changes are those from Linux's policy to the paper's under the same seeds, with 95 % intervals by Student's t over
//! replications; "up to" is held against the best stretch of ten seconds.

use acklab_lab::report::{Claim, Outcome, Table};
use acklab_lab::results::CaseResult;
use acklab_stats::MeanInterval;

use super::testbed::{LIMITED, LINUX, Testbed, cpu_per_byte};

/// A claim is open where the transfers are shorter than the paper's: limiting begins after 20 s, the loss comes after 45.
pub(super) fn judge(seconds: u64, [router, vm, drop]: [&Testbed; 3]) -> Vec<Claim> {
    let mut claims = vec![
        faster(router, "4", "throughput rises by up to 60 % on the router", 0.60),
        faster(vm, "5", "throughput rises by up to 30 % in the virtual machine", 0.30),
        halved(vm),
        longer(router),
        rarer(vm),
        cheaper(router, vm),
        recovery(drop),
    ];
    if seconds < PAPERS_SECONDS {
        for claim in &mut claims {
            claim.outcomes.fill(Outcome::Open);
        }
    }
    claims
}

/// The claims as a table.
pub(super) fn table(claims: &[Claim]) -> Table {
    let columns = vec![
        Claim::outcomes(claims, 0, "holds?"),
        Claim::places(claims),
        Claim::texts(claims),
        Claim::figures(claims, 0),
    ];
    let doubtful = |claim: &Claim| claim.outcomes[0] != Outcome::Holds;
    Table::new("Marked at the left: does not hold here, or is open.", columns)
        .flag(claims.iter().map(doubtful))
}

fn values(metric: &'static str) -> impl Fn(&CaseResult) -> Vec<f64> {
    move |case| case.replications.values(metric)
}

/// Below the bound, above it, or across.
fn decide(change: Option<MeanInterval>, at_least: f64) -> Outcome {
    match change {
        Some(change) if change.low >= at_least => Outcome::Holds,
        Some(change) if change.high < at_least => Outcome::Fails,
        _ => Outcome::Open,
    }
}

/// Whether it sinks by at least this share.
fn sinks(change: Option<MeanInterval>, by: f64) -> Outcome {
    let less =
        |it: MeanInterval| MeanInterval { mean: -it.mean, low: -it.high, high: -it.low, ..it };
    decide(change.map(less), by)
}

fn percent(change: Option<MeanInterval>) -> String {
    change.map_or_else(
        || "no interval".to_owned(),
        |MeanInterval { mean, low, high, .. }| {
            format!("{:+.1} % ({:+.1} to {:+.1})", 100.0 * mean, 100.0 * low, 100.0 * high)
        },
    )
}

/// Mean throughput from `from` to `to`, seconds, in the median of the replications.
fn stretch(case: &CaseResult, from: f64, to: f64) -> f64 {
    let flow = case.network.as_ref().and_then(|network| network.flows.first());
    let points = flow.map(|flow| flow.throughput.median()).unwrap_or_default();
    let within: Vec<f64> =
        points.iter().filter(|(at, _)| (from..to).contains(at)).map(|point| point.1).collect();
    within.iter().sum::<f64>() / within.len().max(1) as f64
}

fn faster(testbed: &Testbed, place: &'static str, text: &'static str, claimed: f64) -> Claim {
    let gain = testbed.change(LIMITED, values("throughput_bps"));
    let best = (0..10).map(|tens| {
        let at = f64::from(tens) * 10.0;
        stretch(testbed.case(LIMITED), at, at + 10.0) / stretch(testbed.case(LINUX), at, at + 10.0)
            - 1.0
    });
    let best = best.fold(f64::NEG_INFINITY, f64::max);
    let outcome = if best >= claimed { Outcome::Holds } else { decide(gain, claimed) };
    Claim {
        place,
        text,
        outcomes: vec![outcome],
        figures: vec![format!(
            "over 100 s {}; the best ten seconds {:+.1} %",
            percent(gain),
            100.0 * best
        )],
    }
}

fn halved(vm: &Testbed) -> Claim {
    let change = vm.change(LIMITED, values("rtt_ms"));
    Claim {
        place: "5",
        text: "round trips in the virtual machine are almost half as long (here: at least 40 % shorter)",
        outcomes: vec![sinks(change, 0.4)],
        figures: vec![percent(change)],
    }
}

fn longer(router: &Testbed) -> Claim {
    let change = router.change(LIMITED, values("rtt_ms"));
    Claim {
        place: "4",
        text: "round trips on the router become longer while ACKs are limited",
        outcomes: vec![decide(change, f64::MIN_POSITIVE)],
        figures: vec![percent(change)],
    }
}

fn rarer(vm: &Testbed) -> Claim {
    let change = vm.change(LIMITED, values("acks_per_data_segment"));
    Claim {
        place: "5",
        text: "ACKs are halved",
        outcomes: vec![sinks(change, 0.5)],
        figures: vec![percent(change)],
    }
}

fn cheaper(router: &Testbed, vm: &Testbed) -> Claim {
    let hosts = [
        (router, "router", "cpu_share.sender"),
        (router, "router", "cpu_share.receiver"),
        (vm, "VM", "cpu_share.sender"),
        (vm, "VM", "cpu_share.receiver"),
    ];
    let changes = hosts.map(|(testbed, name, metric)| {
        (name, metric, testbed.change(LIMITED, cpu_per_byte(metric)))
    });
    let outcomes = changes.iter().map(|(.., change)| sinks(*change, 0.5));
    let holds = outcomes.clone().any(|outcome| outcome == Outcome::Holds);
    let all_fail = outcomes.clone().all(|outcome| outcome == Outcome::Fails);
    let words = changes.iter().map(|(name, metric, change)| {
        format!("{name}’s {} {}", metric.trim_start_matches("cpu_share."), percent(*change))
    });
    Claim {
        place: "7",
        text: "up to 50 % less processor time for the same data, on one of the hosts",
        outcomes: vec![if holds {
            Outcome::Holds
        } else if all_fail {
            Outcome::Fails
        } else {
            Outcome::Open
        }],
        figures: vec![words.collect::<Vec<_>>().join("; ")],
    }
}

fn recovery(drop: &Testbed) -> Claim {
    // One packet is lost at 45 to 60 s, by the policy's speed.
    let least = |policy| {
        let case = drop.case(policy);
        let slots = (40..75).map(|at| stretch(case, f64::from(at), f64::from(at) + 2.0));
        slots.fold(f64::INFINITY, f64::min)
    };
    let (linux, limited) = (least(LINUX), least(LIMITED));
    Claim {
        place: "5",
        text: "CUBIC recovers from a loss as without limiting (here: in the worst two seconds around it the rate is at least \
               95 % of that under Linux’s policy)",
        outcomes: vec![Outcome::of(limited >= 0.95 * linux)],
        figures: vec![format!(
            "worst two seconds: {:.1} Mbit/s under linux, {:.1} limited",
            linux / 1e6,
            limited / 1e6
        )],
    }
}

/// Length of the paper's transfers.
const PAPERS_SECONDS: u64 = 100;

//! Goal: an answer does not depend on the number of cores, and says what it is known to say.
//! Method: queries about the ANCE dumbbell, answered by one thread and by several, by plain runs and by
//! splitting.

use std::sync::atomic::{AtomicBool, Ordering};

use acklab_lab::scenario::{self};
use acklab_lab::verify::{Effort, Job, Precision, SplitError, Verification, VerifyError};
use acklab_papers::scenario::Ance;
use acklab_papers::scenario::NagleDelack;

fn job(sets: &[&str], query: &str, precision: Precision) -> Result<Job, VerifyError> {
    let mut settings = scenario::defaults(&Ance::Dumbbell);
    for pair in sets {
        settings.set_pair(pair).expect("a setting");
    }
    Job::new(&Ance::Dumbbell, settings, query, precision, 1)
}

fn answer(sets: &[&str], query: &str) -> Verification {
    let job = job(sets, query, Precision::default()).expect("a query");
    job.run(&AtomicBool::new(false), |_, _| {})
}

#[test]
fn the_answer_and_its_number_of_runs_are_the_same_for_any_number_of_threads() {
    let query = "Pr[<=3](<> queue.length >= 17)";
    let with_threads = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| answer(&["queue=codel"], query))
    };
    let (one, three) = (with_threads(1), with_threads(3));
    assert!(one.report.complete);
    assert_eq!(one.report, three.report);
    assert_eq!(one.reached, three.reached);
}

#[test]
fn a_formula_that_never_holds_takes_the_papers_36_runs() {
    let report = answer(&["cc=ance"], "Pr[<=2](<> itae > 8727)").report;
    assert_eq!((report.runs, report.successes), (36, Some(0)));
    let interval = report.interval.expect("an interval");
    assert!(interval.low.abs() < 1e-15 && (interval.high - 0.097_393_755_9).abs() < 1e-9);
}

#[test]
fn a_signal_is_what_the_run_itself_reports() {
    let verification = answer(&["queue=red"], "E[<=30; 2](max: itae)");
    let mut settings = scenario::defaults(&Ance::Dumbbell);
    settings.set_pair("queue=red").expect("a setting");
    let plan =
        acklab_lab::plan::Plan::single(&Ance::Dumbbell, settings, 1, Some(2)).expect("a plan");
    let metrics = acklab_lab::run::run(&plan).metrics;
    let mean = verification.report.estimate.expect("a mean");
    assert!((mean - metrics.number("itae_rad_s")).abs() < 1e-9 * mean, "{mean}");
}

#[test]
fn splitting_agrees_with_plain_runs_where_both_can_be_had() {
    let query = "Pr[<=7](<>[6,7] queue.length > 14)";
    let plain = answer(&["queue=pie"], query).report.interval.expect("an interval");
    let job = job(&["queue=pie"], query, Precision::default()).expect("a query");
    let split = job.split(Effort { trajectories: 40, replications: 10 }).expect("an estimate");
    assert!(plain.low > 0.0 && plain.high < 1.0, "the comparison would be empty: {plain:?}");
    let estimate = split.estimate;
    assert!(estimate.low <= plain.high && plain.low <= estimate.high, "{estimate:?} {plain:?}");
}

#[test]
fn splitting_refuses_what_has_no_importance() {
    let job = job(&[], "Pr[<=7]([] queue.length > 14)", Precision::default()).expect("a query");
    let effort = Effort { trajectories: 10, replications: 2 };
    assert_eq!(job.split(effort).err(), Some(SplitError::Form));
}

#[test]
fn a_run_that_is_told_to_stop_tells_what_is_known() {
    let precision = Precision { epsilon: 0.001, ..Precision::default() };
    let job = job(&[], "Pr[<=1](<> queue.length > 3)", precision).expect("a query");
    let stop = AtomicBool::new(false);
    let verification = job.run(&stop, |report, _| stop.store(report.runs > 0, Ordering::Relaxed));
    assert!(!verification.report.complete && verification.report.runs > 0);
    assert_eq!(verification.to_json()["complete"], serde_json::json!(false));
}

#[test]
fn a_simulation_that_memory_could_not_hold_ends_with_what_it_has() {
    let report = answer(&["rate=100mbit", "access_rate=1gbit", "rwnd=1000"], LONG).report;
    assert!(!report.complete && report.runs < 1000, "{report:?}");
}

/// Some hundred thousand rows each.
const LONG: &str = "simulate [<=20; 1000] {queue.length, flow[0].acked}";

#[test]
fn bad_queries_say_where_and_how_to_mend_them() {
    for (query, place, mend) in [
        ("Pr[<=30](<> itea > 8727)", "query:1:13", "itae"),
        ("Pr[<=30](<> itae >)", "query:1:19", "write"),
        ("Pr[<=30(<> itae > 1)", "query:1:8", "]"),
        ("Pr[<=1e9](<> itae > 1)", "longer", "1000000"),
        ("E[<=30; 1](max: itae)", "two runs", "E[<=30; 100]"),
    ] {
        let error = job(&[], query, Precision::default()).err().expect("refused").to_string();
        assert!(error.contains(place) && error.contains(mend), "{query}: {error}");
    }
    let settings = scenario::defaults(&NagleDelack);
    let error = Job::new(&NagleDelack, settings, "Pr[<=1](<> x > 1)", Precision::default(), 1);
    assert!(error.err().expect("refused").to_string().contains("signals"));
}

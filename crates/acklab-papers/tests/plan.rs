//! Plans of built-in scenarios: how many cases, under which seeds, and when one is refused.

use acklab_core::time::Span;
use acklab_lab::plan::Plan;
use acklab_papers::scenario::NagleDelack;

#[test]
fn the_grid_of_seed_0_has_40_cases_of_10_replications() {
    let plan = Plan::all(&NagleDelack, Plan::defaults(&NagleDelack), 1, None).unwrap();
    assert_eq!((plan.cases.len(), plan.replications), (40, 10));
    assert_eq!(plan.seeds().count(), 10);
    assert_eq!(plan.seeds().next(), Some(1), "replication 0 keeps the seed itself");
}

#[test]
fn a_parameter_that_was_set_is_not_varied() {
    let mut settings = Plan::defaults(&NagleDelack);
    settings.set_pair("rtt=30ms").unwrap();
    let plan = Plan::all(&NagleDelack, settings, 1, None).unwrap();
    assert_eq!(plan.cases.len(), 8);
    assert!(plan.cases.iter().all(|case| case.get("rtt") == Some(Span::from_millis(30))));
}

#[test]
fn a_plan_that_memory_could_not_hold_is_refused() {
    let check = |pairs: &[&str], replications: u64, fits: bool| {
        let mut settings = Plan::defaults(&NagleDelack);
        for pair in pairs {
            settings.set_pair(pair).unwrap();
        }
        let plan = Plan::single(&NagleDelack, settings, 1, Some(replications));
        let error = plan.err().map(|error| error.to_string());
        assert_eq!(error.is_none(), fits, "{pairs:?} {replications}: {error:?}");
        assert!(error.is_none_or(|e| e.contains("fewer")), "{pairs:?} says how to mend it");
    };
    check(&["messages=1000000"], 1, true);
    check(&["messages=10000000"], 10, false);
    check(&[], 1_000_000, false);
    check(&["message=1000000", "messages=1000000"], 1, false);
    check(&["reads=every", "reads-delay=1ns"], 1, false);
    check(&["reads=every", "reads-delay=1ms"], 10, true);
}

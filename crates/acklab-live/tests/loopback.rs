//! Goal: a stall of the real kernel is named within a second, with the process behind it; a fix brings the delay of the
//! running program down, through each of its doors, and undoing it brings the delay back.
//! Method: a program that writes twice and reads once, over loopback in a network namespace made by the test. It is
//! this test binary again, so that it is another process; it knows nothing of acklab and prints how long each exchange
//! took. Skipped with a message where namespaces are not permitted.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "the real kernel runs by the real clock")]

mod program;

use std::time::{Duration, Instant};

use acklab_core::time::Span;
use acklab_live::chosen::Chosen;
use acklab_live::fix::{self, Remedy};
use acklab_live::told::Told;
use acklab_live::watch::Watch;

use program::{Program, namespace};

/// A delayed ACK of Linux takes 40 ms; a fixed exchange a fraction of one.
const STALLED_MS: f64 = 20.0;
const TRIES: usize = 5;

#[test]
fn a_stall_is_named_within_a_second_with_its_process() {
    if !namespace() {
        return;
    }
    let mut program = Program::start(7_001);
    // A busy machine may take longer once, but not each time.
    let mut tries = (0..TRIES).map(|_| {
        let mut watch = Watch::begin(&Chosen::default()).expect("a watch");
        let told = first_stall(&mut watch, Duration::from_secs(10));
        (watch.watched(), watch, told)
    });
    let named = tries.find(|(after, ..)| *after < Duration::from_secs(1));
    let (_, watch, told) = named.expect("named within a second");
    let Told::Stall { held, .. } = &told else { panic!("{told:?}") };
    assert!(held.to.ends_with(":7001"), "{held:?}");
    assert_eq!(held.mechanism.name(), "delayed_ack_timer", "{held:?}");
    assert_eq!(held.pid, Some(program.pid()), "{held:?}");
    assert_eq!(held.peer_pid, Some(program.pid()), "{held:?}");
    assert!(program.exchange_ms() > STALLED_MS);
    let (summary, diagnosis) = watch.finish();
    assert!(
        diagnosis.verdict.stalled == Some(true)
            && summary.count >= held.count
            && summary.dropped == 0
    );
    assert_eq!(summary.stalls[0].pid, Some(program.pid()));
}

#[test]
fn a_fix_of_open_connections_is_felt_at_once_and_undone() {
    if !namespace() {
        return;
    }
    let mut program = Program::start(7_002);
    assert!(program.exchange_ms() > STALLED_MS);
    let chosen = Chosen { pid: Some(program.pid()), port: Some(7_002), ..Chosen::default() };
    for (remedy, most_ms) in [
        (Remedy::NoDelay, 5.0),
        (Remedy::DelackMax(Span::from_millis(8)), STALLED_MS),
        (Remedy::QuickAck, 5.0),
    ] {
        let plan = fix::plan(&chosen, remedy).expect("a plan");
        if is_unknown(&plan) {
            continue;
        }
        assert!(program.exchange_ms() > STALLED_MS, "a plan changes nothing");
        plan.apply().expect("applied");
        let fixed = program.exchange_ms();
        let undone = fix::undo(&chosen);
        assert!(fixed < most_ms, "{remedy:?}: {fixed} ms");
        assert!(undone.failed.is_empty() && !undone.steps.is_empty(), "{undone:?}");
        let again = program.exchange_ms();
        assert!(again > STALLED_MS, "{remedy:?} undone: {again} ms");
    }
}

#[test]
fn new_connections_are_fixed_by_the_program_on_the_cgroup() {
    if !namespace() {
        return;
    }
    let mut program = Program::start(7_003);
    let chosen = Chosen { port: Some(7_003), ..Chosen::default() };
    for (remedy, most_ms) in
        [(Remedy::NoDelay, 5.0), (Remedy::DelackMax(Span::from_millis(8)), STALLED_MS)]
    {
        let plan = fix::plan(&chosen, remedy).expect("a plan");
        if !plan.steps().iter().any(|step| step.contains("BPF program")) {
            eprintln!("SKIPPED: BPF on a cgroup: {:?}", plan.not_covered());
            return;
        }
        plan.apply().expect("applied");
        program.connect_anew();
        let fixed = program.exchange_ms();
        let undone = fix::undo(&chosen);
        assert!(fixed < most_ms, "{remedy:?}: {fixed} ms");
        assert!(undone.failed.is_empty(), "{undone:?}");
        program.connect_anew();
        let again = program.exchange_ms();
        assert!(again > STALLED_MS, "{remedy:?} undone: {again} ms");
    }
    let left = fix::records().into_iter().filter(|record| record.contains("7003"));
    assert_eq!(left.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_connection_that_was_opened_since_the_plan_is_fixed_too() {
    if !namespace() {
        return;
    }
    let mut program = Program::start(7_005);
    let chosen = Chosen { pid: Some(program.pid()), port: Some(7_005), ..Chosen::default() };
    let plan = fix::plan(&chosen, Remedy::NoDelay).expect("a plan");
    program.connect_anew();
    plan.apply().expect("applied");
    let fixed = program.exchange_ms();
    let undone = fix::undo(&chosen);
    assert!(fixed < 5.0 && undone.failed.is_empty(), "{fixed} ms, {undone:?}");
    assert!(program.exchange_ms() > STALLED_MS, "undone");
}

#[test]
fn a_bound_that_the_kernel_does_not_take_is_refused_before_anything_is_changed() {
    let chosen = Chosen { port: Some(7_004), ..Chosen::default() };
    let refused = fix::plan(&chosen, Remedy::DelackMax(Span::from_millis(1)));
    if refused.as_ref().is_ok_and(is_unknown) {
        return;
    }
    let said = refused.expect_err("no program that does nothing").to_string();
    assert!(said.contains("1000us") && said.contains("ticks"), "{said}");
}

/// Whether this kernel has no such option, with a message.
fn is_unknown(plan: &fix::Plan) -> bool {
    let unknown = plan.not_covered().iter().any(|gap| gap.contains("does not know"));
    if unknown {
        eprintln!("SKIPPED: a bound of the delayed ACK on a socket: {:?}", plan.not_covered());
    }
    unknown
}

/// Turns the watch until it tells a stall.
fn first_stall(watch: &mut Watch, patience: Duration) -> Told {
    let end = Instant::now() + patience;
    while Instant::now() < end {
        if let Some(told) = watch.turn().expect("a turn").into_iter().next() {
            return told;
        }
    }
    panic!("nothing told in {patience:?}");
}

/// Not a test of its own: what the others start as their program.
#[test]
fn the_program() {
    program::run();
}

//! Goal: the reproduction of XUDP says what the thesis says, and goes on saying it.
//! Method: its tables under the defaults, some of which were fitted to them; the bounds were set with the
//! figures known (docs/xudp.md).

use std::sync::atomic::AtomicBool;

use acklab_core::ack::Profile;
use acklab_core::time::Span;
use acklab_papers::reproduce::xudp::{
    self, Reproduction, Run, experiment, paper, parameters, protocol, today,
};
use acklab_papers::reproduce::{Course, Reproduced as _};

fn reproduction(seed: u64) -> Reproduction {
    let ended = AtomicBool::new(false);
    let settings = parameters::settings([]).expect("defaults");
    Reproduction::run(settings, seed, &mut Course::new(&ended, |_| {})).expect("not ended")
}

fn within(what: &str, ours: f64, printed: f64, share: f64) {
    let error = ours / printed - 1.0;
    assert!(error.abs() <= share, "{what}: {ours:.3} against {printed}, {:+.1} %", 100.0 * error);
}

fn compare(run: &Run, rate: f64, rtt: f64, window: f64) {
    let printed = run.printed.expect("a run that the thesis has");
    let what = |quantity: &str| format!("table {}, {quantity}", printed.table);
    within(&what("rate"), run.figures.rate() / 1e3, printed.rate_kbps, rate);
    within(&what("round trip"), run.figures.rtt_ms, printed.rtt_ms, rtt);
    within(&what("window"), run.figures.window, printed.window, window);
}

#[test]
fn tables_8_1_and_8_2_come_out_within_the_bounds_and_the_timer_makes_the_factor() {
    let reproduction = reproduction(1);
    compare(reproduction.stream_run(xudp::TIMER), 0.10, 0.05, 0.10);
    compare(reproduction.stream_run(xudp::TWEAKED), 0.10, 0.20, 0.10);
    within("factor, both changed", reproduction.factor(xudp::TWEAKED), paper::FACTOR, 0.15);
    within("factor, timer alone", reproduction.factor(xudp::REMOVED), paper::FACTOR, 0.15);
    let alone = reproduction.factor(xudp::TIMER_TWEAKED);
    assert!(alone < 2.0, "tweaking alone makes {alone:.1}");
}

#[test]
fn frames_arrive_and_are_given_up_as_in_the_thesis() {
    let reproduction = reproduction(1);
    let [ten, twenty, loaded, idle] = &reproduction.frames[..] else {
        panic!("four runs of frames")
    };
    assert_eq!((ten.received, ten.parcels), (291, 291));
    compare(ten, 0.10, 0.25, 0.10);
    within("parcels at 20 a second", twenty.received as f64, 448.0, 0.05);
    compare(twenty, 0.10, 0.20, 0.10);
    compare(loaded, 0.05, 0.10, 0.15);
    within("parcels under load", loaded.received as f64, 198.0, 0.20);
    assert_eq!(
        (idle.received, idle.parcels),
        (581, 581),
        "nothing but the host's time limits them"
    );
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let without_cost = |seed| {
        let mut json = reproduction(seed).to_json();
        json["timing"] = serde_json::Value::Null;
        json.to_string()
    };
    assert_eq!(without_cost(7), without_cost(7));
}

#[test]
fn todays_protocol_fills_the_wire_and_the_timer_takes_most_of_it_away() {
    let reproduction = reproduction(1);
    let run = |name: &str| reproduction.today_run(name);
    let stream = reproduction.today.iter().filter(|run| run.name.contains("today"));
    for run in stream.filter(|run| run.name != today::TODAY_FRAMES) {
        assert_eq!((run.received, run.parcels), (103, 103), "{}", run.name);
    }
    let rate = |name: &str| run(name).figures.rate();
    // 10 Mbit/s are 1250 KB/s, of which packets of 1472 bytes leave 1164 for content.
    assert!(rate(today::TODAY) > 900e3, "{}", rate(today::TODAY));
    assert!(rate(today::TODAY) > 3.0 * rate(today::TODAY_TIMER));
    assert!(rate(today::TODAY_ONE) > 6.0 * rate(today::TODAY_TIMER_ONE));
    assert!(rate(today::TODAY_ENDS) > 3.0 * rate(today::TODAY_TIMER));
    assert!(rate(today::TODAY_ENDS_ONE) > 6.0 * rate(today::TODAY_TIMER_ONE));
    let frames = run(today::TODAY_FRAMES);
    assert_eq!((frames.received, frames.parcels), (581, 581));
}

#[test]
fn any_timer_that_no_count_of_packets_cuts_short_has_the_same_effect() {
    let reproduction = reproduction(1);
    let rate = |name: &str| {
        let row = reproduction.policies.iter().find(|row| row.name == name);
        row.expect("a policy of that name").figures.rate()
    };
    let at_once = rate("every packet at once");
    for (policy, factor) in [
        ("100 ms after the first packet", 17.0),
        ("tick of 100 ms, free-running", 10.0),
        ("40 ms after the first packet", 7.0),
        ("10 ms after the first packet", 2.0),
    ] {
        assert!(at_once > factor * rate(policy), "{policy}: {} and {at_once}", rate(policy));
    }
}

#[test]
fn every_parcel_arrives_over_a_wire_that_loses() {
    let settings = parameters::settings(["loss=0.1", "rto_least=50ms", "parcels=20"]);
    let settings = settings.expect("settings");
    let application = protocol::application::Application::Stream { bytes: 10_240, parcels: 20 };
    let cut = Span::from_secs(3600);
    let log = experiment::run(&settings, &Profile::EverySegment, application, cut, 3);
    assert_eq!(
        log.received.iter().map(|(_, id)| *id).collect::<Vec<_>>(),
        (0..20).collect::<Vec<_>>()
    );
    assert_eq!(log.figures().bytes as u64, 20 * 10_240);
    assert!(log.finished.is_some());
}

#[test]
fn a_setting_that_does_not_fit_is_told_with_the_way_out() {
    for (pair, words) in [
        ("foo=1", "acklab reproduce xudp --parameters"),
        ("exchang=1", "did you mean \"exchange\""),
        ("host=1", "the unit must be one of"),
        ("order=both", "send-first, read-first"),
        ("loss", "write name=value"),
    ] {
        let error = parameters::settings([pair]).expect_err(pair).to_string();
        assert!(error.contains(words), "{pair}: {error}");
    }
}

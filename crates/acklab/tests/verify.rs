//! Goal: `acklab verify` keeps the command line's contract.
//! Method: run the binary on short queries.

use std::process::{Command, Output};

use serde_json::Value;

fn verify(arguments: &[&str]) -> Output {
    let command = [&["verify", "ance-dumbbell"], arguments].concat();
    Command::new(env!("CARGO_BIN_EXE_acklab")).args(command).output().expect("the binary runs")
}

fn json(arguments: &[&str]) -> Value {
    let output = verify(&[arguments, &["--format", "json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {errors}"))
}

#[test]
fn a_probability_as_json_has_the_contracts_keys() {
    let answer = json(&["Pr[<=1](<> queue.length > 3)", "--set", "queue=red", "rate=2mbit"]);
    assert_eq!(answer["schema"], "acklab.verify/1");
    assert_eq!(answer["kind"], "probability");
    assert_eq!(answer["query"], "Pr[<=1](<> queue.length > 3)");
    assert_eq!(answer["sets"]["rate"], "2mbit");
    assert_eq!((&answer["runs"], &answer["successes"]), (&63.into(), &63.into()));
    assert!((answer["estimate"].as_f64().expect("a number") - 1.0).abs() < 1e-15);
    let interval = &answer["interval"];
    assert!((interval["low"].as_f64().expect("a number") - 0.900_249).abs() < 1e-6, "{interval}");
    assert_eq!(interval["confidence"], 0.95);
    assert_eq!(
        (&interval["method"], &interval["validity"]),
        (&"beta-binomial".into(), &"any-time".into())
    );
    for key in ["cpu_s", "wall_s", "events", "peak_rss_mb"] {
        assert!(answer["timing"][key].is_number(), "{key}");
    }
}

#[test]
fn uppaals_interval_is_there_by_name_and_called_nominal() {
    let query = "Pr[<=1](<> queue.length > 3)";
    let uppaal = ["--set", "queue=red", "rate=2mbit", "--method", "clopper-pearson"];
    let answer = json(&[&[query][..], &uppaal].concat());
    assert_eq!((&answer["runs"], &answer["successes"]), (&36.into(), &36.into()));
    let interval = &answer["interval"];
    assert!((interval["low"].as_f64().expect("a number") - 0.902_606_244).abs() < 1e-9);
    assert_eq!(
        (&interval["method"], &interval["validity"]),
        (&"clopper-pearson".into(), &"nominal".into())
    );
}

#[test]
fn every_kind_of_query_is_answered_in_its_own_kind() {
    for (query, kind) in [
        ("Pr[<=1; 10](<> drops > 0)", "probability"),
        ("Pr[<=1](<> drops >= 0) >= 0.5", "hypothesis"),
        ("Pr[<=1](<> drops >= 0) >= Pr[<=1](<> drops < 0)", "comparison"),
        ("E[<=1; 5](max: throughput)", "expectation"),
        ("E[<=1](share: queue.length > 5) <= 0.4", "expectation"),
        ("quantile[<=1; 30](0.9, avg[0.5,1]: queue.length)", "quantile"),
        ("S[<=3; 4](avg: queue.length)", "steady-state"),
        ("simulate [<=0.2; 2] {position, flow[0].cwnd}", "simulation"),
    ] {
        assert_eq!(json(&[query])["kind"], kind, "{query}");
    }
}

#[test]
fn a_mean_narrows_to_an_absolute_width_and_without_spread_has_no_interval() {
    let answer = json(&["E[<=0.3](max: throughput)", "--epsilon-abs", "20000"]);
    let interval = &answer["interval"];
    assert_eq!(
        (&interval["method"], &interval["validity"]),
        (&"asymptotic".into(), &"any-time".into())
    );
    let [low, high] = ["low", "high"].map(|end| interval[end].as_f64().expect("a number"));
    assert!(high > low && high - low <= 40_000.0, "{interval}");

    // Nothing is dropped in so short a time.
    let query = "E[<=0.01](max: drops)";
    let answer = json(&[query]);
    assert_eq!((&answer["runs"], &answer["interval"]), (&299.into(), &Value::Null));
    assert!((answer["differing_at_most"].as_f64().expect("a bound") - 0.01).abs() < 1e-4);
    let text = String::from_utf8(verify(&[query]).stdout).expect("text");
    assert!(text.contains("has no interval") && text.contains("at most 0.0100, 95 %"), "{text}");
}

#[test]
fn a_refuted_hypothesis_exits_1_and_a_query_behind_the_settings_is_found() {
    let refuted = verify(&["--set", "cc=ance", "flows=2", "Pr[<=1](<> drops < 0) >= 0.5"]);
    assert_eq!(refuted.status.code(), Some(1));
    let text = String::from_utf8_lossy(&refuted.stdout).into_owned();
    let words = "does not hold, or is within 0.01 of the bound: the probability is at most 0.51, 95 % confidence";
    assert!(text.contains(words), "{text}");
}

#[test]
fn a_test_that_holds_says_how_nearly() {
    let output = verify(&["Pr[<=1](<> drops >= 0) >= 0.5", "--delta", "0.02"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = "holds, or is within 0.02 of it: the probability is at least 0.48, 95 % confidence";
    assert!(text.contains(words), "{text}");
}

#[test]
fn bad_queries_and_options_exit_2_and_say_where() {
    for (arguments, words) in [
        (&["Pr[<=1](<> quue.length > 3)"][..], "query:1:12"),
        (&["Pr[<=1](<> drops > )"], "query:1:20"),
        (&["--set", "queue=red"], "what is the query?"),
        (&["Pr[<=1](<> drops > 0)", "--alpha", "2"], "alpha"),
        (&["Pr[<=1](<> drops > 0)", "--method", "guess"], "clopper-pearson"),
        (&["Pr[<=1](<> drops > 0)", "--epsilon-abs", "0.1"], "E[<=30](max: …)"),
        (&["E[<=1; 9](max: drops)", "--epsilon-abs", "0.1"], "E[<=30](max: …)"),
        (&["E[<=1](max: drops)", "--epsilon-abs", "0"], "above 0"),
        (&["E[<=1](max: drops)", "--epsilon-abs", "1", "--epsilon", "0.1"], "--epsilon"),
        (&["Pr[itae_rad_s<=30](<> drops > 1)", "--splitting"], "bounded by time"),
        (&["Pr[<=30; 100](<> drops > 1)", "--splitting"], "splitting has no number of runs"),
        (&["E[<=30](avg: drops) <= 0.5"], "only the mean of a share"),
        (&["Pr[<=1](<> drops > 0)", "--set", "rate=-1"], "a rate is a positive number"),
        (&["E[<=1; 5](max: drops)", "--splitting"], "splitting needs a query"),
    ] {
        let output = verify(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

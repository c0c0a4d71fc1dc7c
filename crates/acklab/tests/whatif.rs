//! Goal: what `acklab whatif` predicts of a capture is what happens when the change is made.
//! Method: conversations that the simulator wrote, run with the change, too, where the answer is exact but for
//! time stamps of a microsecond; and some that the running kernel had (`tests/captures`, made by `truth make --pairs`),
//! where the programs logged each write.

use std::process::{Command, Output};

use serde_json::Value;

fn acklab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_acklab")).args(arguments).output().expect("acklab runs")
}

fn json(arguments: &[&str]) -> Value {
    let output = acklab(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} of {value}"))
}

fn recorded(name: &str) -> String {
    format!("{}/tests/captures/{name}.pcap", env!("CARGO_MANIFEST_DIR"))
}

/// Request and reply with times between them, to a receiver with a timer of 200 ms.
const SLOW: [&str; 7] = [
    "write-write-read",
    "receiver=windows-7",
    "rtt=10ms",
    "think=7ms",
    "service=3ms",
    "gap=2ms",
    "exchanges=40",
];

/// Runs the scenario with `changes`; returns median and 95th percentile of the delay before departure.
fn run(changes: &[&str], capture: &[&str]) -> [f64; 2] {
    let name = |setting: &str| setting.split('=').next().map(str::to_owned);
    let stays = |one: &&&str| !changes.iter().any(|change| name(change) == name(one));
    let kept = SLOW[1..].iter().filter(stays);
    let set: Vec<&str> = kept.chain(changes).flat_map(|one| ["--set", one]).collect();
    let result = json(&[&["run", SLOW[0], "--format", "json"], &set[..], capture].concat());
    let delay = &result["metrics"]["buffering_delay_ms"];
    [number(delay, "/p50"), number(delay, "/p95")]
}

#[test]
fn of_a_simulated_conversation_the_prediction_is_what_the_simulation_does() {
    let scratch = tempfile::tempdir().expect("a folder");
    for at in ["sender", "middle", "receiver"] {
        let path = scratch.path().join(format!("{at}.pcapng"));
        let file = path.to_str().expect("a plain path");
        run(&[], &["--capture", file, "--capture-at", at]);
        // The gap of 2 ms before the held write is not to be seen in the capture: it is held 2 ms less.
        for (change, setting) in [
            ("sender.nodelay=true", "nagle=off"),
            ("receiver.profile=windows-10", "receiver=windows-10"),
            ("path.rtt=50ms", "rtt=50ms"),
        ] {
            let told = json(&["whatif", file, "--format", "json", "--set", change]);
            let [_, p95] = run(&[setting], &[]);
            let [least, most] =
                ["0", "1"].map(|i| number(&told, &format!("/predicted/interval/p95_ms/{i}")));
            let likely = number(&told, "/predicted/p95_ms");
            let gap = if setting == "nagle=off" { 0.0 } else { 2.0 };
            assert!((likely - gap - p95).abs() < 0.2, "{at} {change}: {likely}, true {p95}");
            assert!(
                (least - 0.2..=most + 0.2).contains(&p95),
                "{at} {change}: {p95} in {least}..{most}"
            );
            assert!(number(&told, "/replay/ks") < 0.03, "{at}: {told}");
        }
    }
}

#[test]
fn of_a_recorded_conversation_it_is_what_the_kernel_did() {
    let told = json(&[
        "whatif",
        &recorded("write-write-read-as-is"),
        "--format",
        "json",
        "--set",
        "path.rtt=30ms",
    ]);
    assert_eq!(told["schema"], "acklab.whatif/1");
    // By message: the median as the conversation over 30 ms had it, the 95th percentile by its programs' logs.
    let with = json(&["whatif", &recorded("write-write-read-rtt-30000us"), "--format", "json"]);
    let (p50, p95) = (number(&with, "/measured/p50_ms"), 73.933);
    assert!((number(&told, "/predicted/p50_ms") - p50).abs() < 2.0, "{told}");
    assert!((number(&told, "/predicted/p95_ms") - p95).abs() < 0.1 * p95, "{told}");
    assert!((number(&with, "/measured/p95_ms") - p95).abs() < 2.0, "{with}");
    assert_eq!(told["replay"]["segments"]["captured"], told["replay"]["segments"]["replayed"]);
}

/// Predicted median and 95th percentile.
fn predicted(capture: &str, change: &str) -> [f64; 2] {
    let told = json(&["whatif", capture, "--format", "json", "--set", change]);
    [number(&told, "/predicted/p50_ms"), number(&told, "/predicted/p95_ms")]
}

#[test]
fn a_program_that_polls_waits_for_its_time_and_for_the_answer() {
    // Every 50 ms two writes, and the answer; by the programs' logs. Over 10 ms the answer comes later than the next
    // poll is due, which then waits for it.
    let capture = recorded("poll-as-is") + ".gz";
    let [p50, p95] = predicted(&capture, "path.rtt=10ms");
    // The second of two writes waits for a delayed ACK, of 40 to 44 ms, and the round trip.
    assert!((50.0..56.0).contains(&p50) && (p95 - 55.4).abs() < 0.1 * 55.4, "{p50} {p95}");
    // Two writes in a turn become one, though the turns keep a beat.
    let [p50, p95] = predicted(&capture, "sender.single_write=true");
    assert!(p50 < 0.1 && p95 < 0.1, "{p50} {p95}");
}

#[test]
fn writes_at_any_time_are_as_spread_as_the_program_made_them() {
    // 200 writes at random times over 30 ms, of which a held segment gathers some; played as they were.
    let [p50, p95] = predicted(&(recorded("no-beat-as-is") + ".gz"), "sender.nodelay=false");
    assert!((p50 - 12.9).abs() < 2.0 && (p95 - 27.7).abs() < 0.1 * 27.7, "{p50} {p95}");
}

/// Each of a quantile of the prediction: what is said, and the interval.
fn told(capture: &str, change: &str, quantile: &str) -> (f64, [f64; 2]) {
    let told = json(&["whatif", capture, "--format", "json", "--set", change]);
    let said = number(&told, &format!("/predicted/{quantile}"));
    let bound = |i: &str| number(&told, &format!("/predicted/interval/{quantile}/{i}"));
    (said, [bound("0"), bound("1")])
}

#[test]
fn where_nothing_is_held_a_change_is_predicted_all_the_same() {
    // 250 messages every 20 ms over 1 ms of a kernel, none held; by the program's log of the same over 100 ms.
    let capture = recorded("beat-free-as-is") + ".gz";
    for (quantile, truth) in [("p50_ms", 48.2), ("p95_ms", 91.9)] {
        let (said, [least, most]) = told(&capture, "path.rtt=100ms", quantile);
        assert!((said - truth).abs() < 0.1 * truth, "{quantile}: {said}, true {truth}");
        // Nothing shows that Nagle's algorithm is on.
        assert!(least < 0.1 && most >= said, "{quantile}: {least} to {most}");
        let (said, _) = told(&capture, "sender.nodelay=true", quantile);
        assert!(said < 0.1, "{quantile}: {said}");
    }
}

#[test]
fn how_many_writes_a_held_segment_has_is_left_open() {
    // Three writes to a message, of which the second and the third leave together; by the program's log.
    let capture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../acklab-worlds/tests/truth/three-writes_nagle_linux_1000us.1/client.pcap"
    );
    let (said, [least, most]) = told(capture, "sender.nodelay=false", "p50_ms");
    let truth = 42.1;
    assert!(
        least <= said && said <= most && (least..=most + 2.0).contains(&truth),
        "{least} {most}"
    );
}

#[test]
fn a_handshake_that_a_busy_host_answered_late_is_no_round_trip() {
    // Over 4 ms; the SYN-ACK was answered after 91 ms. Held writes leave 4 ms after their ACK.
    let capture = recorded("slow-handshake") + ".gz";
    let diagnosis = json(&["diagnose", &capture, "--format", "json"]);
    let far = number(&diagnosis, "/flows/0/directions/1/rtt_to_sender_ms");
    assert!((4.0..5.0).contains(&far), "{far}");
    let played = json(&["whatif", &capture, "--format", "json", "--set", "sender.nodelay=false"]);
    assert!(number(&played, "/replay/ks") < 0.2 && number(&played, "/rtt_ms") < 5.0, "{played}");
}

#[test]
fn what_filled_up_is_within_the_bounds_though_nothing_shows_it() {
    // Log lines to a receiver with a tick of 200 ms; ten segments filled up, too few to be counted. By the program's log all holds
    // of 11 ms and longer took 3.40 s.
    let diagnosis = json(&["diagnose", &(recorded("log-lines-as-is") + ".gz"), "--format", "json"]);
    let stalls = diagnosis["flows"][0]["directions"][1]["stalls"].as_array().expect("stalls");
    let sum = |bound: &str| stalls.iter().map(|stall| number(stall, bound)).sum::<f64>();
    let [least, said, most] = ["/seconds_lower", "/seconds", "/seconds_upper"].map(sum);
    assert!(least <= said && (said..=most).contains(&3.4) && most < 6.0, "{least} {said} {most}");
}

#[test]
fn without_a_change_the_usual_remedies_are_ranked() {
    let told = json(&["whatif", &recorded("write-write-read-as-is"), "--format", "json"]);
    let remedies = told["remedies"].as_array().expect("remedies");
    let saved: Vec<f64> = remedies.iter().map(|one| number(one, "/saved_s")).collect();
    assert_eq!(saved.len(), 3, "{told}");
    assert!(saved.is_sorted_by(|a, b| a >= b), "{saved:?}");
    assert_eq!(told["set"][0], remedies[0]["set"]);
    // Quick ACKs leave the round trip.
    assert_eq!(remedies[2]["set"], "receiver.quickack=true");
    assert!((number(&remedies[2], "/p95_ms") - 10.0).abs() < 1.0, "{told}");
    let text = acklab(&["whatif", &recorded("write-write-read-as-is")]).stdout;
    assert!(String::from_utf8_lossy(&text).contains("sender.nodelay=true"));
}

#[test]
fn a_diagnosis_ends_with_the_best_remedy_as_whatif_ranks_it() {
    let capture = recorded("write-write-read-as-is");
    let cure = &json(&["diagnose", &capture, "--format", "json"])["cure"];
    let told = json(&["whatif", &capture, "--format", "json"]);
    assert_eq!(cure["state"], "predicted");
    let tried = cure["prediction"]["remedies"].as_array().expect("remedies");
    let ranked = told["remedies"].as_array().expect("remedies");
    for (tried, ranked) in tried.iter().zip(ranked) {
        assert_eq!(tried["set"], ranked["set"]);
        assert_eq!(tried["delays"]["p95_ms"], ranked["p95_ms"]);
    }
    assert_eq!((tried.len(), &cure["flow"]), (ranked.len(), &told["flow"]));
    let text = acklab(&["diagnose", &capture]).stdout;
    let text = String::from_utf8_lossy(&text);
    let end = text.find("The best remedy, predicted: TCP_NODELAY set on").expect("the prediction");
    assert!(end > text.find("One stall, packet by packet").expect("a ladder"), "{text}");
    let page = acklab(&["diagnose", &capture, "--format", "html"]).stdout;
    assert!(String::from_utf8_lossy(&page).contains("What each remedy would have done"));
    let quick = concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/nodelay-linux.pcapng");
    assert!(json(&["diagnose", quick, "--format", "json"]).get("cure").is_none());
}

#[test]
fn of_a_long_conversation_the_beginning_is_played_and_of_a_short_one_nothing_is_told() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("some.pcapng");
    let file = path.to_str().expect("a plain path");
    run(&["exchanges=1500"], &["--capture", file]);
    let diagnosis = json(&["diagnose", file, "--format", "json"]);
    let prediction = &diagnosis["cure"]["prediction"];
    // Two writes each.
    assert_eq!(prediction["messages"], acklab_trace::FIRST_WRITES / 2, "{prediction}");
    let [played, all] = [number(prediction, "/first_s"), number(&diagnosis, "/capture/duration_s")];
    // 3,000 writes, of which the first 1,000 are played.
    assert!((played - all / 3.0).abs() < 0.01 * all, "{played} of {all}");
    let [saved, held] =
        ["/remedies/0/saved_s", "/measured/seconds"].map(|at| number(prediction, at));
    assert!((saved - held).abs() < 0.01 * held, "{prediction}");
    run(&["exchanges=5"], &["--capture", file]);
    let cure = &json(&["diagnose", file, "--format", "json"])["cure"];
    assert_eq!((&cure["state"], &cure["prediction"]), (&"cannot_tell".into(), &Value::Null));
    assert_eq!(cure["why"], "5 messages are too few");
}

#[test]
fn what_cannot_be_predicted_is_refused_with_the_reason() {
    let refused = |arguments: &[&str], why: &str| {
        let output = acklab(&[&["whatif"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(why), "{arguments:?}: {said}");
    };
    let quick = concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/nodelay-linux.pcapng");
    let slow = recorded("write-write-read-as-is");
    refused(&[quick], "nothing shows that Nagle's algorithm held");
    refused(&[&slow, "--flow", "7"], "no connection with data numbered 7");
    refused(&[&slow, "--set", "receiver.profile=beos"], "windows-10");
    refused(&[&slow, "--set", "sender.nodelay=maybe"], "true or false");
    refused(&[&slow, "--set", "sender.cork=true"], "path.rtt");
    refused(&[&slow, "--set", "path.rtt=2min"], "path.rtt");
}

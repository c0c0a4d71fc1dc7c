//! Goal: whatever is wrong in a network's file is told with its place and the way out, and nothing that a
//! file can say panics; what a good file says is what runs.
//! Method: one good file, changed in one place at a time, against the whole message; arbitrary text and
//! arbitrary damage to the examples; small networks whose results are known.

use acklab_lab::file::ScenarioFile;
use acklab_lab::network_file::NetworkFile;
use acklab_lab::plan::Plan;
use acklab_lab::results::Results;
use acklab_lab::run;
use acklab_lab::scenario::Catalog;
use proptest::prelude::*;

const GOOD: &str = r#"scenario = "network"
duration = "10s"
watch = "r1 -> r2"

[[link]]
between = ["a", "r1"]
rate = "100mbit"
delay = "2ms"

[[link]]
between = ["r1", "r2"]
rate = "10mbit"
delay = "15ms"
queue = "codel"
buffer = 100

[[link]]
from = "r2"
to = "b"
rate = "100mbit"

[[link]]
from = "b"
to = "r2"
rate = "100mbit"

[[flow]]
name = "A"
from = "a"
to = "b"
kind = "bulk"
cc = "cubic"

[[flow]]
name = "B"
from = "a"
to = "b"
kind = "cbr"
bytes = 100
every = "20ms"
"#;

fn plan(text: &str) -> Plan {
    ScenarioFile::parse(text).and_then(|file| file.plan(Catalog(&[]))).expect("a good file")
}

fn results(text: &str) -> Results {
    run::run(&plan(text))
}

/// The good file with `from` replaced by `to`.
fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replacen(from, to, 1)
}

#[test]
fn mistakes_are_told_with_place_reason_and_way_out() {
    for (from, to, message) in MISTAKES {
        let text = with(from, to);
        let error = ScenarioFile::parse(&text).and_then(|file| file.plan(Catalog(&[]))).err();
        let error = error.map_or("accepted".to_owned(), |error| error.to_string());
        assert!(error.starts_with(message), "{to}\n{error}\n{message}");
    }
}

/// What is replaced in the good file, by what, and how the answer begins.
const MISTAKES: &[(&str, &str, &str)] = &[
    // The text as a whole.
    ("duration = \"10s\"", "duration = \"10s", "2:16: invalid basic string"),
    ("watch", "duration = \"1s\"\nwatch", "3:1: a second \"duration\"; a key stands once"),
    ("\"network\"", "\"netwrok\"", "1:12: scenario = \"netwrok\": did you mean \"network\"?"),
    (
        "scenario",
        "# scenario",
        "1:1: a network file needs `scenario`; write for example scenario =",
    ),
    ("[[flow]]", "[[flows]]", "27:3: a network file has no key \"flows\"; did you mean \"flow\"?"),
    (
        "kind = \"bulk\"",
        "kind = \"bulk\"\nsystem = \"windows-10\"\nstack = \"segments\"",
        "33:9: stack = \"segments\": segments is Linux's alone",
    ),
    (
        "cc = \"cubic\"",
        "recovery = \"sack\"\ncc = \"cubic\"",
        "32:12: recovery = \"sack\": Linux has no RFC 6675 since 6.17; rack is its own (stack = stream has it)",
    ),
    // Keys.
    ("duration", "duratoin", "2:1: a network file needs `duration`; \"duratoin\" is unknown"),
    (
        "delay = \"15ms\"",
        "dealy = \"15ms\"",
        "13:1: the link between r1 and r2 has no key \"dealy\"; did you mean \"delay\"? its keys are between",
    ),
    (
        "cc =",
        "rate = \"1mbit\"\ncc =",
        "32:1: flow \"A\" of kind bulk has no key \"rate\"; its keys",
    ),
    ("kind = \"bulk\"\n", "", "27:1: flow \"A\" needs `kind`; write for example kind = \"bulk\""),
    (
        "every = \"20ms\"\n",
        "",
        "34:1: flow \"B\" of kind cbr needs `every`; write for example every = \"20ms\", or rate =",
    ),
    (
        "every = \"20ms\"",
        "every = \"20ms\"\nrate = \"1mbit\"",
        "41:8: rate = \"1mbit\": `every` is given, too; one of the two decides",
    ),
    // Types and ranges.
    ("\"10s\"", "10", "2:12: duration = 10: must be a text with its unit, such as \"30ms\""),
    ("\"10s\"", "\"0s\"", "2:12: duration = \"0s\": must be longer than 0"),
    ("\"10s\"", "\"-1s\"", "2:12: duration = \"-1s\": a time must be finite and not negative"),
    ("\"15ms\"", "\"15 msec\"", "13:9: delay = \"15 msec\": the unit must be one of ns, us, ms, s"),
    (
        "\"10mbit\"",
        "\"-10mbit\"",
        "12:8: rate = \"-10mbit\": a rate is a positive number and a unit",
    ),
    ("\"10mbit\"", "-5", "12:8: rate = -5: must be a text with its unit, such as \"10mbit\""),
    ("buffer = 100", "buffer = 0", "15:10: buffer = 0: must be a whole number from 1 to 100000000"),
    ("buffer = 100", "buffer = 1.5", "15:10: buffer = 1.5: must be a whole number from 1"),
    ("watch", "seed = -1\nwatch", "3:8: seed = -1: must be a whole number, 0 or more"),
    ("buffer", "loss = 1.5\nbuffer", "15:8: loss = 1.5: must be a share, from \"0%\" to \"100%\""),
    ("cc =", "ecn = \"yes\"\ncc =", "32:7: ecn = \"yes\": must be true or false, without quotes"),
    (
        "bytes = 100\n",
        "bytes = 70000\n",
        "39:9: bytes = 70000: must be a whole number from 1 to 65507",
    ),
    ("cc =", "start = \"20s\"\ncc =", "32:9: start = \"20s\": must be before the end, at 10s"),
    // Names.
    (
        "\"codel\"",
        "\"coddle\"",
        "14:9: queue = \"coddle\": did you mean \"codel\"? must be one of drop-",
    ),
    (
        "\"cubic\"",
        "\"qubic\"",
        "32:6: cc = \"qubic\": did you mean \"cubic\"? must be one of reno,",
    ),
    (
        "cc = \"cubic\"",
        "transport = \"rdup\"",
        "32:13: transport = \"rdup\": did you mean \"rudp\"? must be one of tcp, rudp",
    ),
    (
        "cc = \"cubic\"",
        "transport = \"rudp\"\nnagle = true",
        "33:1: flow \"A\" of kind bulk over reliable UDP has no key \"nagle\"; its keys are name, from, to",
    ),
    (
        "cc = \"cubic\"",
        "transport = \"rudp\"\npacket = 9000",
        "33:10: packet = 9000: must be a whole number from 1228 to 1500",
    ),
    (
        "cc = \"cubic\"",
        "transport = \"rudp\"\ncc = \"qubic\"",
        "33:6: cc = \"qubic\": did you mean \"cubic\"? must be one of reno,",
    ),
    ("name = \"B\"", "name = \"A\"", "35:8: a second flow called \"A\"; names must differ"),
    (
        "[\"a\", \"r1\"]",
        "[\"a\", \"\"]",
        "6:17: between[1] = \"\": a node's name is 1 to 40 letters",
    ),
    // The graph.
    (
        "r1 -> r2",
        "r1 -> r3",
        "3:9: watch = \"r1 -> r3\": no link has that name; did you mean \"r1 -> r2\"?",
    ),
    (
        "to = \"b\"\nkind",
        "to = \"c\"\nkind",
        "30:6: no link leads to a node \"c\"; the nodes are a, b, r1, r2",
    ),
    (
        "from = \"r2\"",
        "from = \"r3\"",
        "30:6: no route from a to b: from a, links lead to r1, r2; add the link that is missing, or its",
    ),
    (
        "to = \"r2\"",
        "to = \"r3\"",
        "30:6: no route back, which a connection needs, from b to a: from b, links lead to r3; add the link",
    ),
    ("[\"a\", \"r1\"]", "[\"a\", \"a\"]", "6:17: a link from a to itself; it needs two nodes"),
    (
        "[\"a\", \"r1\"]",
        "[\"r2\", \"r1\"]",
        "11:18: a second link from r1 to r2; packets would never",
    ),
    (
        "to = \"b\"\nkind",
        "to = \"a\"\nkind",
        "30:6: flow \"A\" goes from a to itself; it needs two nodes",
    ),
    (
        "rate = \"10mbit\"",
        "rate = \"infinite\"",
        "14:9: queue = \"codel\": nothing waits on a link of",
    ),
    (
        "\"codel\"",
        "\"edctcp\"",
        "28:8: flow \"A\" crosses r1 -> r2, whose queue edctcp hands packets",
    ),
    // Too much of it.
    ("\"20ms\"", "\"1ns\"", "this would send about 10000008"),
];

#[test]
fn hyphens_and_underscores_are_one_spelling() {
    let hash = |queue: &str| results(&with("queue = \"codel\"", queue)).hash;
    assert_eq!(hash("queue = \"fq_codel\""), hash("queue = \"fq-codel\""));
    let small = hash("queue = { kind = \"codel\", max-packet = 600 }");
    assert_eq!(hash("queue = { kind = \"codel\", max_packet = 600 }"), small);
    let twice =
        with("queue = \"codel\"", "queue = { kind = \"codel\", max_packet = 600, max-packet = 9 }");
    let error = ScenarioFile::parse(&twice).expect_err("one of them is too many").to_string();
    assert!(error.contains("has no key \"max"), "{error}");
}

#[test]
fn tables_of_queues_and_impairments_are_checked_in_their_own_words() {
    let check = |line: &str, message: &str| {
        let text = with("queue = \"codel\"", line);
        let error = NetworkFile::parse(&text).err();
        let error = error.map_or("accepted".to_owned(), |error| error.to_string());
        assert!(error.starts_with(message), "{line}\n{error}\n{message}");
    };
    check(
        "queue = { kind = \"red\", min = 20, max = 10 }",
        "14:41: min is 20 and max is 10: min must be",
    );
    check("queue = { kind = \"red\", weight = 0 }", "14:34: weight = 0: must be above 0");
    check(
        "queue = { kind = \"pie\", taget = \"5ms\" }",
        "14:25: a queue of kind pie has no key \"taget\"; did",
    );
    check(
        "queue = { target = \"5ms\" }",
        "14:9: a queue needs `kind`; write for example kind = \"red\"",
    );
    check("loss = { p = 0.1 }", "14:8: a loss needs `r`; write for example r = 0.25");
    check("loss = { packets = [1, -1] }", "14:24: packets[1] = -1: must be a whole number");
    check(
        "loss = { share = \"1%\", only = \"acks\" }",
        "14:31: only = \"acks\": must be one of data, pure-acks",
    );
    check(
        "reorder = \"1%\"",
        "14:11: reorder = \"1%\": must be a table, such as { share = \"1%\", late =",
    );
    check(
        "outages = [[\"5s\", \"4s\"]]",
        "14:12: outages[0] = [\"5s\", \"4s\"]: an outage ends after it",
    );
    check(
        "forward = { bufer = 3 }",
        "14:13: the direction from r1 to r2 has no key \"bufer\"; did you mean",
    );
    for good in [
        "queue = { kind = \"red\", min = 5, max = 15, probability = \"2%\", gentle = true, ecn = \"drop\" }",
        "queue = { kind = \"fq-codel\", flows = 16, quantum = 300, target = \"1ms\" }",
        "loss = { p = 0.01, r = 0.25, h = 0.1, k = 1 }",
        "loss = { packets = [3, 17], only = \"data\" }",
        "corrupt = { bit_error_rate = 1e-7 }\nduplicate = \"1%\"\noutages = [[\"1s\", \"1100ms\"]]",
        "reorder = { share = \"5%\", ahead = \"3ms\", gap = 5, correlation = 0.5 }",
        "[link.reverse]\nrate = \"1mbit\"\nqueue = { kind = \"dualpi2\", target = \"10ms\" }",
    ] {
        check(good, "accepted");
    }
}

#[test]
fn every_kind_of_flow_runs_and_is_measured() {
    let flow = |lines: &str| {
        let at = GOOD.find("[[flow]]").unwrap();
        let text = format!("{}[[flow]]\nfrom = \"a\"\nto = \"b\"\n{lines}\n", &GOOD[..at]);
        results(&text.replace("10s", "2s"))
    };
    let number = |lines: &str, metric: &str| flow(lines).metrics.number(metric);
    let samples = |lines: &str, metric: &str| flow(lines).metrics.samples(metric).len();
    // One way: 2 ms and 15 ms, and each packet is sent three times.
    let delay = number("kind = \"cbr\"\nbytes = 972\nrate = \"100kbit\"", "datagram_delay_ms");
    assert!((delay - (17.0 + 0.08 + 0.8 + 0.08)).abs() < 1e-6, "{delay}");
    let all = "kind = \"messages\"\nbytes = 100\nevery = \"10ms\"\nnagle = false";
    // The last, of 1990 ms, is still under way at the end.
    assert_eq!(samples(all, "message_delay_ms"), 200 - 1);
    let exchanges =
        samples("kind = \"request\"\nrequest = 10\nreply = 10\ncount = 7", "exchange_ms");
    assert_eq!(exchanges, 7);
    let bytes = "kind = \"trace\"\ntrace = [[\"0s\", 300], [\"1s\", 700]]\ntransport = \"udp\"";
    let bps = number(bytes, "datagram_bps");
    assert!((bps - (300.0 + 700.0 + 2.0 * 28.0) * 8.0 / 2.0).abs() < 1e-6, "{bps}");
    let bulk = number("kind = \"bulk\"\nbytes = 144_800", "throughput_bps");
    // A FIN counts as a byte.
    assert!((bulk - 100.0 * 1500.0 * 8.0 / 2.0).abs() < 5.0, "{bulk}");
    for lines in [
        "kind = \"on-off\"\nbytes = 1000\nrate = \"5mbit\"\non = \"100ms\"\noff = \"50ms\"\nlengths = \"pareto\"",
        "kind = \"poisson\"\nbytes = 500\nrate = \"2mbit\"\ntransport = \"tcp\"\nsystem = \"windows-10\"",
        "kind = \"bulk\"\nsystem = \"textbook\"\npacket = 1000\niw = 2\nrecovery = \"reno\"\nack = \"delayed\"",
        "kind = \"bulk\"\ntransport = \"rudp\"\nack = \"every-segment\"\necn = false\npacket = 1300\niw = 10",
        "kind = \"cbr\"\nbytes = 1000\nrate = \"1mbit\"\ntransport = \"rudp\"\ncc = { kind = \"cubic\", hystart = false }",
        "kind = \"request\"\nrequest = 100\nreply = 20_000\ntransport = \"rudp\"",
        "kind = \"bulk\"\nstack = \"stream\"\nack_requests = \"tarr\"\nrecovery = \"sack\"",
        "kind = \"bulk\"\nack_requests = \"ackcc\"",
        "kind = \"bulk\"\ncc = \"reno\"\nreceive_buffer = 200_000\nmin_rto = \"50ms\"",
        "kind = \"poisson\"\nbytes = 500\nrate = \"2mbit\"\ntransport = \"tcp\"\nsystem = \"qnx-7.0\"\nreceiver = \"linux\"",
        "kind = \"bulk\"\ncc = \"dctcp\"\nreceiver = \"qnx-7.0\"\nreceive_buffer = 1_000_000\nstop = \"1s\"",
    ] {
        assert!(number(lines, "throughput_bps") > 100_000.0, "{lines}");
    }
}

#[test]
fn flows_between_the_same_nodes_are_told_apart() {
    let results =
        results(&with("kind = \"cbr\"\nbytes = 100\nevery = \"20ms\"", "kind = \"bulk\""));
    let bps: Vec<f64> =
        results.flows.iter().map(|flow| flow.metrics.number("throughput_bps")).collect();
    let total = results.metrics.number("throughput_bps");
    assert!(bps.len() == 2 && bps.iter().all(|bps| *bps > 1e6), "{bps:?}");
    assert!(
        (bps.iter().sum::<f64>() - total).abs() < 1.0 && (9e6..1e7).contains(&total),
        "{total}"
    );
}

#[test]
fn the_watched_link_can_be_another_and_the_written_file_says_so() {
    let mut settings = Plan::defaults(plan(GOOD).scenario);
    settings.set_pair("watch=r2 -> b").unwrap();
    settings.set_pair("duration=1s").unwrap();
    let plan = Plan::single(plan(GOOD).scenario, settings, u64::MAX, Some(2)).unwrap();
    let run = run::run(&plan);
    let drops = run.metrics.number("drops");
    assert!(drops.abs() < 0.5, "{drops}: a hundred megabits are enough");
    let written = ScenarioFile::of(&plan).to_text();
    assert!(
        written.starts_with("seed = 18446744073709551615\nreplications = 2\nscenario"),
        "{written}"
    );
    assert!(written.contains("watch = \"r2 -> b\"\n"), "{written}");
    assert_eq!(results(&written).hash, run.hash);
}

#[test]
fn a_run_that_ends_before_a_flow_starts_is_refused() {
    let plan = plan(&with("cc =", "start = \"5s\"\ncc ="));
    let mut settings = Plan::defaults(plan.scenario);
    settings.set_pair("duration=4s").unwrap();
    let error = Plan::single(plan.scenario, settings, 1, None).err().unwrap().to_string();
    assert_eq!(error, "duration=4s: must be longer: flow \"A\" starts at 5s");
}

#[test]
fn only_flows_over_tcp_have_a_window_to_ask_about() {
    let plan = plan(GOOD);
    let signals = plan.scenario.signals(&plan.settings);
    let has = |name: &str| signals.iter().any(|signal| signal.name == name);
    assert!(has("queue.length") && has("flow[0].cwnd") && !has("flow[1].cwnd"));
}

#[test]
fn a_network_measures_what_it_declares() {
    let plan = plan(GOOD);
    let replication = plan.scenario.run(&plan.settings, 1, None);
    let measured: Vec<_> = replication.metrics.iter().map(|(name, _)| name).collect();
    // The file has no messages, exchanges or transfers.
    let absent = ["exchange_ms", "message_delay_ms", "transfer_ms", "unfinished_transfers"];
    let declared = plan.scenario.declaration().metrics.iter().map(|metric| metric.name);
    let mut declared: Vec<_> = declared.filter(|name| !absent.contains(name)).collect();
    declared.sort_unstable();
    assert_eq!(measured, declared);
}

/// What can be read can be planned or is refused in words, and written down to be read again.
fn read(text: &str) {
    match ScenarioFile::parse(text) {
        Ok(file) => {
            if let Ok(plan) = file.plan(Catalog(&[])) {
                let again = ScenarioFile::of(&plan);
                let reread = ScenarioFile::parse(&again.to_text()).expect("what was written");
                assert_eq!(reread, again);
            }
        }
        Err(error) => {
            if let Some(place) = error.place() {
                assert!(place.line <= text.split('\n').count() && place.column >= 1, "{error}");
            }
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        read(&text);
    }

    #[test]
    fn no_damage_to_a_good_file_makes_the_reader_panic(
        start in 0..GOOD.len(),
        length in 0..40_usize,
        patch in prop_oneof![
            Just(String::new()),
            "[-0-9.eE\"a-z\\[\\]{}=, \n]{0,12}",
            any::<f64>().prop_map(|number| format!("{number:?}")),
            any::<i64>().prop_map(|number| number.to_string()),
            any::<String>(),
        ],
    ) {
        let end = (start + length).min(GOOD.len());
        read(&format!("{}{patch}{}", &GOOD[..start], &GOOD[end..]));
    }
}

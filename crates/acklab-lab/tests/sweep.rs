//! Goal: a file with sweeps is as many networks as its values combine to, each of which gives, to the bit, what it
//! gives alone; templates are the flows that they stand for; what is asked, measured and compared is what happened.
//! Method: small networks, against the same written out by hand and against single runs; refusals word by word.

use acklab_lab::file::ScenarioFile;
use acklab_lab::monitor::Delays;
use acklab_lab::output::Folder;
use acklab_lab::plan::Plan;
use acklab_lab::results::{CaseResult, Results};
use acklab_lab::run;
use acklab_lab::scenario::Catalog;
use acklab_lab::verify::{Cases, Precision};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::sync::atomic::AtomicBool;

const STUDY: &str = r#"scenario = "network"
duration = "4s"
replications = 3
watch = "left -> right"

[[sweep]]
name = "queue"
values = ["drop-tail", { kind = "red", min = 5, max = 15 }, "codel"]

[[sweep]]
name = "size"
values = [{ label = "small", rate = "5mbit", buffer = 30 }, { label = "large", rate = "10mbit", buffer = 60 }]

[[link]]
between = ["left", "right"]
rate = "$size.rate"
delay = "5ms"
[link.forward]
queue = "$queue"
buffer = "$size.buffer"

[[flow]]
name = "bulk"
copies = 3
rtt = "20ms..60ms"
access_jitter = "100us"
from = "left"
to = "right"
kind = "bulk"
cc = ["reno", "cubic"]
start = "0s..200ms"

[[flow]]
name = "poisson"
from = "left"
to = "right"
kind = "poisson"
bytes = 500
rate = "500kbit"

[measure]
from = "1s"

[[query]]
name = "late"
ask = "E[<=4](share per queue.served: queue_delay_ms > 20) <= 0.3"

[[query]]
name = "long"
ask = "Pr[<=4](<> queue.length > 25)"
"#;

fn asked(text: &str, sets: &[&str]) -> Result<Plan, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let file = ScenarioFile::parse(text).map_err(|error| error.to_string())?;
    let asked = file.asked_with(Catalog(&[]), &sets).map_err(|error| error.to_string())?;
    asked.plan().map_err(|error| error.to_string())
}

fn plan(sets: &[&str]) -> Plan {
    asked(STUDY, sets).expect("a good file")
}

fn results(sets: &[&str]) -> Results {
    run::run(&plan(sets))
}

#[test]
fn every_case_is_what_it_is_alone() {
    let all = results(&[]);
    assert_eq!(all.cases.len(), 6);
    let names: Vec<_> = all.cases.iter().map(|case| case.name(&all.plan)).collect();
    assert_eq!(names[0], "queue=drop-tail size=small");
    assert_eq!(names[5], "queue=codel size=large");
    for (index, sets) in [(3, ["queue=red", "size=large"]), (4, ["queue=codel", "size=small"])] {
        let alone = results(&sets);
        assert_eq!(alone.cases.len(), 1);
        assert_eq!(alone.hash, all.cases[index].hash(), "{sets:?}");
        assert_eq!(alone.metrics, all.cases[index].metrics, "{sets:?}");
    }
}

#[test]
fn values_of_the_command_line_replace_those_of_the_file_and_are_written_down() {
    // A value that the file lists keeps its options, another is taken as it stands.
    let plan = plan(&["queue=red,pie", "size={ label = \"tiny\", rate = \"2mbit\", buffer = 20 }"]);
    assert_eq!(plan.cases.len(), 2);
    let file = ScenarioFile::of(&plan);
    assert!(file.to_text().contains("values = [{ kind = \"red\", min = 5, max = 15 }, \"pie\"]"));
    let again = ScenarioFile::parse(&file.to_text()).unwrap().plan(Catalog(&[])).unwrap();
    assert_eq!(run::run(&again).hash, run::run(&plan).hash);
    let range = STUDY.replace(
        "values = [{ label = \"small\", rate = \"5mbit\", buffer = 30 }, { label = \"large\", rate = \"10mbit\", buffer = 60 }]",
        "values = \"4mbit..8mbit:2mbit\"",
    );
    let range = range.replace("$size.rate", "$size").replace("\"$size.buffer\"", "40");
    let plan = asked(&range, &[]).unwrap();
    assert_eq!(plan.cases.len(), 9);
    assert_eq!(plan.axes[1].values, ["4mbit", "6mbit", "8mbit"]);
    assert_eq!(asked(&range, &["size=3mbit..4mbit:500kbit"]).unwrap().cases.len(), 9);
}

#[test]
fn keys_of_the_file_are_set_as_if_they_were_sweeps() {
    let text = r#"
scenario = "network"
duration = "2s"
watch = "a -> b"
[[link]]
between = ["a", "b"]
rate = "5mbit"
queue = "codel"
buffer = 30
[[link]]
between = ["b", "c"]
rate = "9mbit"
[[flow]]
name = "one"
from = "a"
to = "c"
kind = "bulk"
ack = { every = 4, timer = "25ms", quick = 16 }
[[flow]]
name = "two"
from = "a"
to = "c"
kind = "bulk"
"#;
    let hash = |plan: Result<Plan, String>| run::run(&plan.expect("a plan")).hash;
    let both = asked(text, &["queue=codel,pie"]).expect("two cases");
    assert_eq!((both.axes[0].parameter, both.cases.len()), ("queue", 2));
    let pie = hash(asked(&text.replace("\"codel\"", "\"pie\""), &[]));
    assert_eq!(run::run(&both).cases[1].hash(), pie);
    assert_eq!(hash(asked(text, &["queue=pie"])), pie);
    // By its link or its number where several say it, and written down so that it can be run again.
    let slow = hash(asked(&text.replace("9mbit", "4mbit"), &[]));
    for set in ["b -> c.rate=4mbit", "link[1].rate=4mbit"] {
        let plan = asked(text, &[set]).expect("a plan");
        assert_eq!(run::run(&plan).hash, slow, "{set}");
        let again = ScenarioFile::parse(&ScenarioFile::of(&plan).to_text()).unwrap();
        assert_eq!(run::run(&again.plan(Catalog(&[])).unwrap()).hash, slow, "{set}");
    }
    let rates = asked(text, &["b -> c.rate=4mbit..8mbit:2mbit"]).expect("three cases");
    assert_eq!((rates.axes[0].parameter, rates.cases.len()), ("b_c_rate", 3));
    // The policy of numbers is the delayed ACK with them.
    let spelled = "ack={ kind = \"delayed\", segments = 4, delay = \"25ms\", quick = 16 }";
    assert_eq!(hash(asked(text, &[spelled])), hash(asked(text, &[])));
    assert_ne!(hash(asked(text, &["ack=delayed"])), hash(asked(text, &[])));
    for (set, reason) in [
        ("rate=4mbit", "say which is meant: a -> b.rate=..."),
        ("queeu=pie", "did you mean \"queue\"?"),
        ("queue=codl", "did you mean \"codel\"?"),
        ("two.queue=pie", "gives no such key a value"),
    ] {
        let error = asked(text, &[set]).map(drop).expect_err(set);
        assert!(error.contains(reason), "{set}: {error}");
    }
}

#[test]
fn a_policy_that_a_program_brings_along_acknowledges() {
    /// Never of its own accord.
    struct Never;
    impl acklab_core::ack::AckPolicy for Never {
        fn on_data(
            &mut self,
            _now: acklab_core::time::Time,
            _sample: &acklab_core::ack::DataSample,
        ) -> acklab_core::ack::Decision {
            acklab_core::ack::Decision::Wait
        }
        fn on_ack_sent(&mut self, _now: acklab_core::time::Time) {}
        fn handle_timeout(
            &mut self,
            _now: acklab_core::time::Time,
            _rto: acklab_core::time::Span,
        ) -> acklab_core::ack::Decision {
            acklab_core::ack::Decision::Wait
        }
        fn poll_timeout(&self) -> Option<acklab_core::time::Time> {
            None
        }
    }
    // Linux's tail loss probes fetch the ACKs that a policy keeps back.
    let text = |ack: &str| {
        format!(
            "scenario = \"network\"\nduration = \"2s\"\nwatch = \"a -> b\"\n[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"5mbit\"\n[[flow]]\n\
             from = \"a\"\nto = \"b\"\nkind = \"bulk\"\nstack = \"stream\"\nack = \"{ack}\"\n"
        )
    };
    let error = asked(&text("never"), &[]).map(drop).expect_err("not yet");
    assert!(error.contains("must be one of"), "{error}");
    acklab_lab::own_ack::add("never", || Never);
    acklab_lab::own_ack::add("delayed", || Never);
    let acked = |ack: &str| {
        run::run(&asked(&text(ack), &[]).expect("a plan")).metrics.number("throughput_bps")
    };
    let (never, delayed) = (acked("never"), acked("delayed"));
    assert!(never < 0.1 * delayed && delayed > 4e6, "{never} {delayed}");
}

#[test]
fn copies_are_the_flows_that_they_stand_for() {
    let one = |index: usize, cc: &str, delay: &str, start: &str| {
        format!(
            "[[flow]]\nname = \"bulk[{index}]\"\ngroup = \"bulk\"\nrtt = \"{delay}\"\naccess_jitter = \"100us\"\n\
             from = \"left\"\nto = \"right\"\nkind = \"bulk\"\ncc = \"{cc}\"\nstart = \"{start}\"\n\n"
        )
    };
    let begin = STUDY.find("[[flow]]").unwrap();
    let end = STUDY.rfind("[[flow]]").unwrap();
    let by_hand = [
        one(0, "reno", "20ms", "0s"),
        one(1, "cubic", "40ms", "100ms"),
        one(2, "reno", "60ms", "200ms"),
    ];
    let text = format!("{}{}{}", &STUDY[..begin], by_hand.concat(), &STUDY[end..]);
    let sets = ["queue=codel", "size=small"];
    let by_hand = run::run(&asked(&text, &sets).unwrap());
    let copies = results(&sets);
    assert_eq!((by_hand.hash, &by_hand.metrics), (copies.hash, &copies.metrics));
    let flows: Vec<_> = copies.flows.iter().map(|flow| flow.id.as_str()).collect();
    assert_eq!(flows, ["bulk[0]", "bulk[1]", "bulk[2]", "poisson"]);
    // Each host is as far away as its round trip says: nothing is faster, and something comes near.
    for (flow, least) in copies.flows.iter().zip([20.0, 40.0, 60.0]) {
        let trips = flow.metrics.delays("rtt_ms").expect("round trips");
        let found = trips.min_ms().expect("some");
        assert!(found > least && found < least + 12.0, "{}: {found}", flow.id);
        let one_way = flow.metrics.delays("one_way_ms").and_then(Delays::min_ms);
        assert!(
            one_way.is_some_and(|ms| ms > least / 2.0 && ms < least / 2.0 + 12.0),
            "{one_way:?}"
        );
    }
    // A group's figures are those of its flows.
    let group = &copies.groups[0].metrics;
    let sum: f64 = copies.flows[..3].iter().map(|flow| flow.metrics.number("throughput_bps")).sum();
    assert!((group.number("throughput_bps") - sum).abs() < 1e-6 * sum);
    let count = |metrics: &acklab_lab::measured::Metrics| {
        metrics.delays("queue_delay_ms").map_or(0, Delays::count)
    };
    assert_eq!(
        count(group),
        copies.flows[..3].iter().map(|flow| count(&flow.metrics)).sum::<u64>()
    );
    assert_eq!(
        count(&copies.metrics),
        copies.flows.iter().map(|flow| count(&flow.metrics)).sum::<u64>()
    );
}

#[test]
fn a_query_has_one_value_in_each_run_and_it_is_that_of_verify() {
    let plan = plan(&["queue=drop-tail", "size=large"]);
    let results = run::run(&plan);
    let case: &CaseResult = &results.cases[0];
    let query = "E[<=4; 3](share[1,4] per queue.served: queue_delay_ms > 20)";
    let cases = Cases::new(plan, Some(query), Precision::default()).unwrap();
    let answered = cases.run(&AtomicBool::new(false), |_, _, _| ());
    let estimate = answered.to_json()["cases"][0]["estimate"].as_f64().unwrap();
    let values = case.replications.values("late");
    assert_eq!(values.len(), 3);
    let mean = values.iter().sum::<f64>() / 3.0;
    assert!((mean - estimate).abs() < 1e-12, "{mean} {estimate}");
    assert!(mean > 0.0 && mean < 1.0);
    // The share that the distribution of the metric has above 20 ms is the same, to its classes.
    let delays = case.metrics.delays("queue_delay_ms").unwrap();
    let below = delays.distribution(100_000).into_iter().rfind(|(ms, _)| *ms <= 20.0);
    let above = 1.0 - below.map_or(0.0, |(_, share)| share);
    assert!((above - mean).abs() < 0.05, "{above} {mean}");
    let long = case.replications.values("long");
    assert!(
        long.iter().all(|value| value.abs() < 1e-12 || (value - 1.0).abs() < 1e-12),
        "{long:?}"
    );
}

#[test]
fn what_is_before_the_measurement_is_not_measured() {
    let of = |text: &str| run::run(&asked(text, &["queue=codel", "size=large"]).unwrap());
    let (with, without) = (of(STUDY), of(&STUDY.replace("[measure]\nfrom = \"1s\"\n", "")));
    assert_eq!(with.hash, without.hash, "the same run");
    let count = |results: &Results| results.metrics.delays("queue_delay_ms").unwrap().count();
    assert!(count(&with) < count(&without));
    // Three seconds of three replications, at most the link's rate.
    let delivered = with.metrics.number("delivered_bps");
    assert!(delivered > 8e6 && delivered < 10.1e6, "{delivered}");
    let (waits, drops) = (with.metrics.number("queue_delay_ms"), with.metrics.number("drops"));
    assert!(
        waits < without.metrics.number("queue_delay_ms")
            || drops <= without.metrics.number("drops")
    );
}

#[test]
fn every_value_of_every_case_is_written_with_its_axes_and_compared_in_one_report() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&[]);
    let written = Folder::create(folder.path(), &plan).unwrap();
    let results = run::run_closely(&plan);
    written.write(&results).unwrap();
    let json = results.to_json();
    assert_eq!(json["axes"][0]["name"], "queue");
    assert_eq!(json["cases"][1]["axes"]["size"], "large");
    assert_eq!(json["cases"][1]["values"]["late"].as_array().map(Vec::len), Some(3));
    let query = &json["cases"][1]["queries"][0];
    assert_eq!((query["name"].as_str(), query["bound"].as_f64()), (Some("late"), Some(0.3)));
    let mean = json["cases"][1]["intervals"]["late"]["mean"].as_f64();
    assert_eq!(query["mean"].as_f64(), mean);
    let html = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    for title in [
        "Every case",
        "Queueing delay: queue codel",
        "Queueing delay over time: queue drop-tail",
        "at most 0.3",
    ] {
        assert!(html.contains(title), "{title}");
    }
    let parquet = std::fs::read(folder.path().join("replications.parquet")).unwrap();
    let file = bytes::Bytes::from(parquet);
    let reader = SerializedFileReader::new(file).unwrap();
    let names: Vec<_> = reader
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .map(|column| column.name().to_owned())
        .collect();
    assert_eq!(names, ["case", "queue", "size", "flow", "replication", "metric", "value"]);
}

#[test]
fn mistakes_are_told_with_place_reason_and_way_out() {
    for (from, to, message) in [
        (
            "queue = \"$queue\"",
            "queue = \"pie\"",
            "7:8: nothing varies with \"queue\": write \"$queue\"",
        ),
        (
            "\"$queue\"",
            "\"$quue\"",
            "19:9: $quue: did you mean \"queue\"? the sweeps are queue, size",
        ),
        ("\"codel\"]", "\"coddel\"]", "8:61: queue = \"coddel\": did you mean \"codel\"?"),
        ("\"codel\"]", "\"drop-tail\"]", "8:61: a second value called \"drop-tail\""),
        ("$size.rate", "$size.rtt", "16:8: $size.rtt: the value {"),
        ("name = \"size\"", "name = \"duration\"", "11:8: name = \"duration\": a sweep's name is"),
        ("copies = 3", "copies = 0", "24:10: copies = 0: must be a whole number from 1 to 1000"),
        (
            "copies = 3",
            "copies = 2000",
            "24:10: copies = 2000: must be a whole number from 1 to 1000",
        ),
        ("20ms..60ms", "8ms..60ms", "25:7: rtt = 8ms: a round trip from left to right takes 10ms"),
        (
            "rtt = \"20ms..60ms\"\n",
            "",
            "25:17: access_jitter = \"100us\": is of the flow's own host",
        ),
        ("from = \"1s\"", "from = \"4s\"", "42:8: from = \"4s\": must be before the end"),
        ("queue_delay_ms > 20", "queue_dely > 20", "46:7: late: "),
        (
            "Pr[<=4](<> queue.length > 25)",
            "simulate [<=4] {jain}",
            "50:7: long: a query of a file is",
        ),
    ] {
        assert!(STUDY.contains(from), "{from}");
        let error = asked(&STUDY.replacen(from, to, 1), &[]).err();
        let error = error.unwrap_or_else(|| "accepted".to_owned());
        assert!(error.starts_with(message), "{to}\n{error}\n{message}");
    }
    for (set, message) in [
        ("queue=fifo", "--set: queue=fifo: queue = \"fifo\": must be one of drop-tail"),
        ("queue=pie,pie", "--set: queue=pie,pie: pie stands in it twice"),
        ("duration=1s,2s", "--set: duration=1s,2s: takes one value"),
        ("colour=red", "--set: colour=red: the file gives no such key a value"),
    ] {
        let error = asked(STUDY, &[set]).err().unwrap_or_else(|| "accepted".to_owned());
        assert!(error.starts_with(message), "{set}\n{error}\n{message}");
    }
}

#[test]
fn the_estimate_of_packets_is_bounded_by_the_link_and_can_be_overridden() {
    let plan = plan(&["queue=codel", "size=large"]);
    let results = run::run(&plan);
    let carried = results.metrics.delays("queue_delay_ms").unwrap().count() as f64 * 4.0 / 3.0;
    let estimate = plan.packets() as f64;
    assert!(estimate > 0.9 * carried && estimate < 1.5 * carried, "{estimate} {carried}");
    assert!(plan.clone().within(Some(100)).is_err());
    assert!(plan.within(Some(1_000_000)).is_ok());
}

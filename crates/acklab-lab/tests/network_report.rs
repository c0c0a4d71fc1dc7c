//! The report of a network: every plot is there with its lines, and what is drawn adds up to what was
//! measured.

mod schema;

use acklab_lab::file::ScenarioFile;
use acklab_lab::output::Folder;
use acklab_lab::plan::Plan;
use acklab_lab::results::Results;
use acklab_lab::run;
use acklab_lab::scenario::Catalog;
use serde_json::Value;

const TWO_FLOWS: &str = include_str!("../../../scenarios/two-flows.toml");
const PARKING_LOT: &str = include_str!("../../../scenarios/parking-lot.toml");
const POISSON: &str = include_str!("../../../scenarios/poisson.toml");

fn plan(text: &str, links: &[&str], sets: &[&str]) -> Plan {
    let file = ScenarioFile::parse(text).expect("a file of the repository");
    let links: Vec<_> = links.iter().map(|link| (*link).to_owned()).collect();
    let asked =
        file.watching(&links).expect("links of the file").asked(Catalog(&[])).expect("a scenario");
    let mut settings = asked.choices.settings().clone();
    for pair in sets {
        settings.set_pair(pair).expect("a setting");
    }
    Plan::single(asked.scenario, settings, asked.seed, asked.replications).expect("a plan")
}

/// The figures of the report: (title, what is drawn).
fn figures(results: &Results) -> Vec<(String, Value)> {
    let folder = tempfolder(&results.plan);
    folder.write(results).expect("a report");
    let html = std::fs::read_to_string(folder.path().join("report.html")).expect("the page");
    std::fs::remove_dir_all(folder.path()).expect("removed");
    let figures = html.split("<figure class=\"plot\">").skip(1).map(|figure| {
        let between = |open: &str, close: &str| {
            let rest = figure.split(open).nth(1).expect("the mark");
            rest.split(close).next().expect("the rest").to_owned()
        };
        let data = between("<script type=\"application/json\">", "</script>");
        // `->` is escaped in the title.
        (between("<h3>", "</h3>").replace("&gt;", ">"), serde_json::from_str(&data).expect("JSON"))
    });
    figures.collect()
}

fn tempfolder(plan: &Plan) -> Folder {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("network-report-{}-{number}", std::process::id()));
    Folder::create(&path, plan).expect("a folder")
}

/// The points of a series, wherever in the figure it is drawn.
fn series(figure: &Value, name: &str) -> Vec<(f64, f64)> {
    let tables = figure["data"].as_object().expect("an object").values();
    let tables = tables.filter(|columns| columns["y"].is_array());
    let points = tables.flat_map(|columns| {
        let values = columns["s"]["values"].as_array().into_iter().flatten();
        let code = values.into_iter().position(|value| value == name);
        let codes = columns["s"]["index"].as_array().into_iter().flatten();
        let number = |axis: &str, row: usize| columns[axis][row].as_f64().expect("a number");
        let rows = codes.enumerate().filter(move |(_, at)| at.as_u64() == code.map(|c| c as u64));
        rows.map(move |(row, _)| (number("x", row), number("y", row))).collect::<Vec<_>>()
    });
    points.collect()
}

/// The lines and areas that a figure has.
fn names(figure: &Value) -> Vec<String> {
    let layers = figure["spec"]["layer"].as_array().expect("a list");
    let domain = layers[0]["encoding"]["color"]["scale"]["domain"].as_array().expect("a list");
    let names: Vec<_> =
        domain.iter().map(|name| name.as_str().expect("a string").to_owned()).collect();
    assert!(names.iter().all(|name| !series(figure, name).is_empty()), "a line without points");
    names
}

fn mean(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64
}

#[track_caller]
fn assert_near(found: f64, expected: f64, what: &str) {
    // Values in a report have five digits.
    assert!((found / expected - 1.0).abs() < 1e-4, "{what}: {found}, not {expected}");
}

#[test]
fn two_flows_have_every_plot_with_their_lines() {
    let results = run::run_closely(&plan(TWO_FLOWS, &[], &[]));
    let figures = figures(&results);
    let shown: Vec<_> =
        figures.iter().map(|(title, figure)| (title.as_str(), names(figure).join(" "))).collect();
    let expected = [
        ("Throughput", "A B"),
        ("Congestion window", "A B"),
        ("Round trips", "A B"),
        ("Queue of r1 -> r2", "most mean"),
        ("Waiting time in the queue of r1 -> r2", "longest mean"),
        ("Drops in the queue of r1 -> r2", "dropped"),
        ("Distribution of round trips", "A B"),
        ("Distribution of waiting times: r1 -> r2", "r1 -> r2"),
    ];
    assert_eq!(shown, expected.map(|(title, names)| (title, names.to_owned())));
}

#[test]
fn what_is_drawn_adds_up_to_what_was_measured() {
    let results = run::run_closely(&plan(TWO_FLOWS, &[], &[]));
    let figures = figures(&results);
    for flow in &results.flows {
        // Mbit/s over cells of equal width: the mean is the total over the duration.
        let drawn = 1e6 * mean(&series(&figures[0].1, &flow.id));
        assert_near(drawn, flow.metrics.number("throughput_bps"), &flow.id);
    }
    let queue = series(&figures[3].1, "mean");
    assert_near(mean(&queue), results.metrics.number("queue_mean_packets"), "queue");
    let most = series(&figures[3].1, "most").iter().map(|point| point.1).fold(0.0, f64::max);
    assert_near(
        most,
        results.metrics.spread("queue_packets").expect("a value").max,
        "longest queue",
    );
    let drops = series(&figures[5].1, "dropped");
    assert_near(30.0 * mean(&drops), results.metrics.number("drops"), "drops");
}

#[test]
fn a_parking_lot_has_plots_of_every_watched_link() {
    let links = ["r1 -> r2", "r2->r3"];
    let results = run::run_closely(&plan(PARKING_LOT, &links, &["duration=6s"]));
    let figures = figures(&results);
    let of = |title: &str| {
        let found = figures.iter().find(|(other, _)| other == title);
        &found.unwrap_or_else(|| panic!("no figure {title}")).1
    };
    let over_tcp = ["long", "hop 1", "hop 2", "hop 3", "web"];
    for title in ["Congestion window", "Round trips", "Distribution of round trips"] {
        assert_eq!(names(of(title)), over_tcp, "{title}");
    }
    let all: Vec<_> = over_tcp.into_iter().chain(["voice"]).collect();
    for title in ["Throughput", "Throughput over the replications"] {
        assert_eq!(names(of(title)), all, "{title}");
    }
    assert_eq!(names(of("Distribution of waiting times")), ["r1 -> r2", "r2 -> r3"]);
    assert_eq!(names(of("Distribution of delays")), ["voice: datagrams", "web: exchanges"]);
    for title in ["Queue of", "Waiting time in the queue of", "Drops in the queue of"] {
        for link in ["r1 -> r2", "r2 -> r3"] {
            of(&format!("{title} {link}"));
        }
    }
    assert_eq!(figures.len(), 3 + 2 * 3 + 4);
}

#[test]
fn the_courses_of_one_replication_are_its_own_and_of_several_their_median_in_a_band() {
    let several = plan(PARKING_LOT, &[], &["duration=6s"]);
    let one = Plan { replications: 1, ..several.clone() };
    let of = |figures: &[(String, Value)], title: &str| {
        figures.iter().find(|(other, _)| other == title).expect("the figure").1.clone()
    };
    let alone = run::run_closely(&one);
    let drawn = figures(&alone);
    for (flow, name) in [(0, "long"), (3, "hop 3"), (5, "web")] {
        let mean = 1e6 * mean(&series(&of(&drawn, "Throughput"), name));
        assert_near(mean, alone.flows[flow].metrics.number("throughput_bps"), name);
    }
    let voice = 1e6 * mean(&series(&of(&drawn, "Throughput"), "voice"));
    assert_near(voice, alone.flows[4].metrics.number("datagram_bps"), "voice");
    let queue = of(&drawn, "Queue of r2 -> r3");
    assert_near(mean(&series(&queue, "mean")), alone.metrics.number("queue_mean_packets"), "queue");
    assert!(queue["data"]["bands"].is_null(), "one replication has no band");

    let queue = of(&figures(&run::run_closely(&several)), "Queue of r2 -> r3");
    let bands = &queue["data"]["bands"];
    let ends = |end: &str| bands[end].as_array().expect("a column").clone();
    let (low, high, line) = (ends("a"), ends("b"), series(&queue, "mean"));
    assert_eq!((low.len(), line.len()), (600, 600));
    let mut wide = 0;
    for ((low, high), (_, median)) in low.iter().zip(&high).zip(&line) {
        let (low, high) = (low.as_f64().expect("a number"), high.as_f64().expect("a number"));
        assert!(low <= *median && *median <= high, "{low} {median} {high}");
        wide += usize::from(high > low);
    }
    assert!(wide > 100, "the replications differ: {wide}");
}

#[test]
fn of_many_flows_twelve_are_drawn_and_all_are_in_the_table() {
    let more = (0..12).map(|number| {
        format!(
            "[[flow]]\nname = \"more {number}\"\nfrom = \"b\"\nto = \"server\"\nkind = \"bulk\"\n"
        )
    });
    let text = format!("{TWO_FLOWS}\n{}", more.collect::<String>());
    let results = run::run_closely(&plan(&text, &[], &["duration=6s"]));
    assert_eq!(results.to_json()["network"]["flows"].as_array().unwrap().len(), 14);
    let folder = tempfolder(&results.plan);
    folder.write(&results).unwrap();
    let html = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    std::fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(html.matches("2 more flows are in the table.").count(), 2 * 3, "caption and label");
    assert_eq!(names(&figures(&results)[0].1).len(), 12);
}

#[test]
fn a_closer_look_changes_nothing_that_was_measured() {
    for text in [TWO_FLOWS, PARKING_LOT, POISSON] {
        let plan = plan(text, &[], &["duration=6s"]);
        let json = |results: Results| {
            let mut json = results.to_json();
            json.as_object_mut().expect("an object").remove("timing");
            json
        };
        let mut closely = json(run::run_closely(&plan));
        let network = closely.as_object_mut().expect("an object").remove("network");
        assert_eq!(closely, json(run::run(&plan)));
        assert!(network.is_some());
    }
}

/// Little's law: packets in the queue are arrivals times waiting time, whatever the discipline does.
#[test]
fn waiting_times_and_queue_length_keep_to_littles_law() {
    for queue in ["drop-tail", "codel", "fq-codel", "pie", "dualpi2"] {
        let text = TWO_FLOWS.replace("queue = \"codel\"", &format!("queue = \"{queue}\""));
        let results = run::run_closely(&plan(&text, &[], &[]));
        let link = &results.cases[0].network.as_ref().expect("a network").links[0];
        let waited = link.waits.mean_ms().expect("a value") * link.waits.count() as f64 / 1e3;
        // Those that wait in the end, and those that were dropped after they had waited, are in the
        // queue's length alone.
        let most = link.waits.max_ms().expect("a value") / 1e3 * (link.drops as f64 + 100.0);
        let missing = link.packet_seconds - waited;
        assert!(
            (-1e-9..most.min(0.15 * link.packet_seconds)).contains(&missing),
            "{queue}: {missing} of {waited}"
        );
    }
}

#[test]
fn round_trips_are_no_shorter_than_the_path() {
    let results = run::run_closely(&plan(TWO_FLOWS, &[], &[]));
    for flow in &results.cases[0].network.as_ref().expect("a network").flows {
        // Propagation both ways and one transmission of a full packet at 10 Mbit/s and two at 100.
        let path = 36.0 + 1.2 + 0.24;
        let least = flow.round_trips.min_ms().expect("a value");
        assert!((path..path + 1.0).contains(&least), "{}: {least}", flow.name);
        assert!(flow.round_trips.quantile_ms(0.99).expect("a value") < 100.0);
    }
}

#[test]
fn the_headline_has_units_that_a_person_reads() {
    let results = run::run_closely(&plan(TWO_FLOWS, &[], &["duration=5001ms"]));
    let folder = tempfolder(&results.plan);
    folder.write(&results).expect("a report");
    let html = std::fs::read_to_string(folder.path().join("report.html")).expect("the page");
    std::fs::remove_dir_all(folder.path()).expect("removed");
    let headline = html
        .split("class=\"headline\">")
        .nth(1)
        .expect("the mark")
        .split("</p>")
        .next()
        .expect("the rest");
    let words = headline.rsplit("</span>").next().expect("the rest");
    let words = words.replace("&#x2f;", "/").replace("&gt;", ">");
    assert!(words.contains(" Mbit/s of 10 through r1 -> r2, Jain 0."), "{words}");
}

#[test]
fn a_network_keeps_its_watched_links_in_its_file() {
    let plan = plan(PARKING_LOT, &["r3 -> r4", "r1 -> r2"], &[]);
    let text = ScenarioFile::of(&plan).to_text();
    assert!(text.contains("watch = [\"r3 -> r4\", \"r1 -> r2\"]"), "{text}");
    let again = ScenarioFile::parse(&text).expect("a value").plan(Catalog(&[])).expect("a value");
    let until =
        |plan: &Plan| plan.scenario.run_closely(&plan.settings, 1, false).expect("a value").1;
    let links: Vec<_> = until(&again).links.into_iter().map(|link| link.name).collect();
    assert_eq!(links, ["r3 -> r4", "r1 -> r2"]);
    for (watch, reason) in [
        ("[]", "must be a text such as \"r1 -> r2\", or a list of them"),
        ("7", "must be a text such as \"r1 -> r2\", or a list of them"),
        ("[\"r1 -> r2\", \"r1 -> r7\"]", "watch[1] = \"r1 -> r7\": no link has that name"),
    ] {
        let text = PARKING_LOT.replace("watch = \"r2 -> r3\"", &format!("watch = {watch}"));
        let error = ScenarioFile::parse(&text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn results_keep_to_their_schema() {
    let schema = include_str!("../../../docs/schema/run.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("a value");
    let sweep = TWO_FLOWS.replace("queue = \"codel\"", "queue = \"$queue\"")
        + "group = \"late\"\n[[sweep]]\nname = \"queue\"\nvalues = [\"codel\", \"pie\"]\n[[query]]\nname = \
           \"long\"\nask = \"Pr[<=6](<> queue.length > 50) <= 0.5\"\n";
    let swept =
        ScenarioFile::parse(&sweep).and_then(|file| file.plan(Catalog(&[]))).expect("a plan");
    schema::check(&schema, &run::run_closely(&swept).to_json());
    for (text, closely) in [(TWO_FLOWS, false), (PARKING_LOT, true), (POISSON, true)] {
        let plan = plan(text, &[], &["duration=6s"]);
        let results = if closely { run::run_closely(&plan) } else { run::run(&plan) };
        schema::check(&schema, &results.to_json());
    }
}

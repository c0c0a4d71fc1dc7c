//! Goal: the UPPAAL export is a file that UPPAAL reads, with the right numbers, of a model that works.
//! Method: UPPAAL itself is closed, so that the file is held to the format's element grammar, and then
//! read and run by an interpreter of the language written for this test.

mod dtd;
mod evaluation;
mod network;
mod syntax;

use acklab_lab::parameter::Settings;
use acklab_lab::scenario::{Scenario, defaults};
use acklab_papers::scenario::Ance;
use acklab_uppaal::Model;
use dtd::Dtd;
use evaluation::Value;
use network::{Network, Run, document};

const FLAT: &str = include_str!("flat.dtd");

/// The dumbbell with these settings, `name=value` each.
fn settings(pairs: &str) -> Settings {
    let mut settings = defaults(&Ance::Dumbbell);
    for pair in pairs.split_whitespace() {
        settings.set_pair(pair).expect("a setting of the dumbbell");
    }
    settings
}

fn model(pairs: &str) -> Model {
    Model::from_settings(&settings(pairs)).expect("a model that can be exported")
}

/// One of each kind.
const MODELS: [&str; 9] = [
    "queue=drop-tail",
    "queue=red",
    "queue=codel codel=article-2012",
    "queue=codel codel=rfc8289",
    "queue=pie",
    "queue=encn slow_start=prose",
    "cc=ance",
    "cc=ance ance_bandwidth=true rx_access=25ms rx_spread=8ms ncs_access=750us recovery=reno",
    "queue=red actuation=tick integration=tustin phase=fixed start_spread=300ms ecn=off ncs_early=drop \
     saturation=24",
];

#[test]
fn every_kind_of_model_is_valid_by_the_formats_grammar() {
    let dtd = Dtd::read(FLAT);
    for name in MODELS {
        let xml = model(name).to_xml();
        assert_eq!(dtd.faults(&document(&xml)), [""; 0], "{name}");
        assert!(!xml.contains("CDATA"), "UPPAAL's reader skips CDATA sections");
    }
}

#[test]
fn the_grammar_finds_what_is_wrong() {
    let dtd = Dtd::read(FLAT);
    let xml = model("").to_xml();
    let check = |from: &str, to: &str, fault: &str| {
        let broken = xml.replacen(from, to, 1);
        assert_ne!(broken, xml, "{from}");
        let faults = dtd.faults(&document(&broken));
        assert!(faults.iter().any(|found| found.contains(fault)), "{from}: {faults:?}");
    };
    check("<init ref=\"id0\"/>", "<init ref=\"id99\"/>", "no ID id99");
    check("id=\"id1\"", "id=\"id0\"", "ID id0 stands twice");
    check(" kind=\"guard\"", "", "label lacks its attribute kind");
    check("<nail x=\"200\" ", "<nail ", "nail lacks its attribute x");
    check("<committed/>", "<commited/>", "commited may not hold");
    check("<source ref=\"id0\"/>", "", "transition may not hold");
    check("<queries>", "<queries>words", "queries may not hold");
}

#[test]
fn the_same_model_gives_the_same_file() {
    assert_eq!(model("").to_xml(), model("").to_xml());
    assert_ne!(model("buffer=18").to_xml(), model("").to_xml());
}

/// A constant's text in the file.
fn constant<'a>(xml: &'a str, name: &str) -> &'a str {
    let start = xml.find(&format!(" {name} = ")).expect("a constant") + name.len() + 4;
    xml[start..].split(';').next().expect("a semicolon")
}

#[test]
fn constants_are_the_papers_and_those_of_an_independent_discretisation() {
    let xml = model("").to_xml();
    let close = |name: &str, expect: f64| {
        let value: f64 = constant(&xml, name).parse().expect("a number");
        assert!((value / expect - 1.0).abs() < 1e-9, "{name} = {value}, not {expect}");
    };
    // scipy.signal.cont2discrete([36.3], [1, 36.17, 0], 0.014, "zoh")
    close("A1", 1.602_673_312);
    close("A2", -0.602_673_312_1);
    close("B1", 0.003_025_857_475);
    close("B2", 0.002_556_708_817);
    close("KP", 11.86);
    close("KI_H", 0.6643);
    close("BOTTLENECK_BYTES_PER_US", 0.1875);
    let check = |name: &str, expect: &str| assert_eq!(constant(&xml, name), expect, "{name}");
    check("h", "14000");
    check("Tpsm", "38");
    check("Tcsc", "38");
    check("T_SEGMENT", "800");
    check("T_BOTTLENECK_SEGMENT", "5333");
    check("T_BOTTLENECK_ACK", "213");
    check("T_BOTTLENECK_NCS", "256");
    check("BUFFER", "17");
    assert!(xml.contains("exactly 38.4 us"), "what was rounded says so");
    assert!(xml.contains("<formula>Pr[&lt;=30000000](&lt;&gt; itae &gt; 8727)</formula>"));
}

/// S of the loop with `delay` sampling periods between sample and actuation, by the file's functions:
/// half of the delay on each way, the odd one on the way to the actuator.
fn ideal_loop(model: &Model, delay: usize) -> f64 {
    let network = Network::read(&model.to_xml());
    let mut run = Run::new(&network, 1);
    let mut samples = vec![Value::Double(0.0); delay / 2];
    let mut commands = vec![Value::Double(0.0); delay.div_ceil(2)];
    // To the first tick that is not before 30 s.
    for tick in 0..=30_000_u32.div_ceil(14) {
        *run.global("now") = Value::Double(f64::from(tick) * 14_000.0);
        run.call("LoopPlant", "ComputePosition");
        run.call("LoopPlant", "ComputeITAE");
        samples.insert(0, run.global("position").clone());
        *run.member("LoopController", "y_received") = samples.pop().expect("at least the newest");
        run.call("LoopController", "ComputeControlSignal");
        commands.insert(0, run.global("command").clone());
        *run.member("LoopPlant", "u_arrived") = commands.pop().expect("at least the newest");
    }
    run.global("itae").real()
}

#[test]
fn the_exported_functions_give_the_known_itae_of_the_bare_loop() {
    // An independent simulation of the loop: total delay in sampling periods, S by integration.
    let table = [
        (0, [4_784.137_066_904_48, 4_636.052_478_276_15, 4_705.217_262_906_411]),
        (2, [6_324.057_526_191_592, 6_128.999_098_910_546, 6_215.754_678_168_17]),
        (5, [15_222.077_623_125_942, 44_725.269_014_470_03, 18_043.128_505_593_275]),
    ];
    for (delay, expect) in table {
        let ways = ["forward-euler", "backward-euler", "tustin"];
        for (integration, expect) in ways.into_iter().zip(expect) {
            let s = ideal_loop(&model(&format!("integration={integration}")), delay);
            assert!((s / expect - 1.0).abs() < 1e-9, "{delay} {integration}: {s}, not {expect}");
        }
    }
}

fn ints(value: &Value) -> Vec<i64> {
    let Value::Many(parts) = value else { panic!("an array") };
    parts.iter().map(Value::int).collect()
}

#[test]
fn every_kind_of_model_runs_soundly_and_fills_its_bottleneck() {
    for name in MODELS {
        let network = Network::read(&model(name).to_xml());
        let mut run = Run::new(&network, 1);
        run.until(10e6);
        let acked: i64 = ints(run.global("acked")).iter().sum();
        let itae = run.global("itae").real();
        let (drops, marks) = (ints(run.global("drops")), ints(run.global("marks")));
        eprintln!(
            "{name}: {acked} segments, S {itae:.0}, drops {drops:?}, marks {marks:?}, {} transitions",
            run.transitions
        );
        assert_eq!(run.global("lost_in_channels").int(), 0, "{name}");
        // 187.5 segments a second would fill it, less the loop's share and the start.
        assert!((1300..=1875).contains(&acked), "{name}: {acked} segments in 10 s");
    }
}

/// Final S of so many runs, least first: of the exported file, and of acklab's own simulation.
fn itae(pairs: &str, runs: u64) -> [Vec<f64>; 2] {
    let settings = settings(pairs);
    let network = Network::read(&model(pairs).to_xml());
    let exported = |seed| {
        let mut run = Run::new(&network, seed);
        run.until(30e6);
        run.global("itae").real()
    };
    let own = |seed| Ance::Dumbbell.run(&settings, seed, None).metrics.number("itae_rad_s");
    let mut all = [(1..=runs).map(exported).collect::<Vec<_>>(), (1..=runs).map(own).collect()];
    for runs in &mut all {
        runs.sort_by(f64::total_cmp);
    }
    all
}

#[test]
fn the_exported_model_judges_drop_tail_and_ance_as_acklab_and_the_paper_do() {
    let [exported, own] = itae("queue=drop-tail", 4);
    assert!(exported[0] > 8727.0 && own[0] > 8727.0, "drop-tail: {exported:?}, {own:?}");
    let mean = |runs: &[f64]| runs.iter().sum::<f64>() / runs.len() as f64;
    let ratio = mean(&exported) / mean(&own);
    assert!((0.75..1.33).contains(&ratio), "drop-tail: {exported:?}, {own:?}");
    let [exported, own] = itae("cc=ance", 4);
    assert!(exported[3] < 8727.0 && own[3] < 8727.0, "ance: {exported:?}, {own:?}");
    let ratio = mean(&exported) / mean(&own);
    assert!((0.9..1.11).contains(&ratio), "ance: {exported:?}, {own:?}");
}

#[test]
fn settings_without_an_automaton_are_refused_with_what_there_is() {
    let check = |pair: &str, message: &str| {
        let error = Model::from_settings(&settings(pair)).expect_err(pair).to_string();
        assert!(error.contains(message), "{pair}: {error}");
    };
    check(
        "queue=fq-codel",
        "queue=fq-codel: the UPPAAL model does not have this; it has drop-tail",
    );
    check("cc=cubic", "it has reno, ance and encn");
    check("cc=jersey", "it has drop-tail, red, codel, pie and encn");
    check("recovery=sack", "recovery=newreno");
    check("delack=on", "delack=off");
    check("preset=literal", "start=random");
    check("rate=infinite", "the bottleneck needs a rate");
    check("access_rate=1mbit", "not be slower than the bottleneck");
    check("duration=2000s", "integers end");
}

#[test]
fn every_query_is_one_that_acklabs_own_language_reads() {
    let xml = model("").to_xml();
    let document = document(&xml);
    let mut seen = 0;
    for node in document.descendants().filter(|node| node.has_tag_name("formula")) {
        let query = node.text().expect("a formula");
        acklab_stats::query::parse(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
#[ignore = "prints the table of docs/uppaal.md, which takes minutes"]
fn table_of_the_docs() {
    for preset in ["preset=plain", "preset=paper-fit"] {
        for pair in
            ["queue=drop-tail", "queue=red", "queue=codel", "queue=pie", "queue=encn", "cc=ance"]
        {
            let cells = itae(&format!("{preset} {pair}"), 36).map(|runs| {
                let above = runs.iter().filter(|s| **s > 8727.0).count();
                let quartiles = [9, 18, 27].map(|at| format!("{:.0}", runs[at]));
                format!("{} | {above}/36", quartiles.join(", "))
            });
            println!("| {preset} {pair} | {} |", cells.join(" | "));
        }
    }
}

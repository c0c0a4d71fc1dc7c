//! Goal: the UPPAAL export is a file that UPPAAL reads, with the right numbers, of a model that works.
//! Method: UPPAAL itself is closed, so that the file is held to the format's element grammar, and then
//! read and run by an interpreter of the language written for this test.

mod dtd;
mod evaluation;
mod network;
mod syntax;

use acklab_core::time::Span;
use acklab_lab::scenario::{Scenario, defaults};
use acklab_papers::scenario::Ance;
use acklab_uppaal::{
    Actuation, CoDelVariant, Congestion, Discipline, Integration, Model, Phase, Recovery, SlowStart,
};
use dtd::Dtd;
use evaluation::Value;
use network::{Network, Run, document};

const FLAT: &str = include_str!("flat.dtd");

const RED: Discipline = Discipline::Red {
    weight: 0.002,
    p_max: 0.1,
    min: 4.25,
    max: 12.75,
    counts: false,
    marks_above: false,
};

fn with(queue: Discipline, congestion: Congestion) -> Model {
    let ssthresh = if congestion == Congestion::Reno { 30 } else { 16 };
    Model { queue, congestion, ssthresh, ..Model::default() }
}

fn codel(variant: CoDelVariant) -> Discipline {
    let (target, interval) = (Span::from_millis(5), Span::from_millis(100));
    Discipline::CoDel { variant, target, interval }
}

/// One of each kind.
fn models() -> Vec<(&'static str, Model)> {
    let pie = Discipline::Pie { target: Span::from_millis(20) };
    let ance = |true_bandwidth| Congestion::Ance { true_bandwidth };
    vec![
        ("drop-tail", with(Discipline::DropTail, Congestion::Reno)),
        ("red", with(RED, Congestion::Reno)),
        ("codel 2012", with(codel(CoDelVariant::Article2012), Congestion::Reno)),
        ("codel rfc", with(codel(CoDelVariant::Rfc8289), Congestion::Reno)),
        ("pie", with(pie, Congestion::Reno)),
        (
            "encn",
            Model { slow_start: SlowStart::Prose, ..with(Discipline::Encn, Congestion::Encn) },
        ),
        ("ance", with(Discipline::DropTail, ance(false))),
        (
            "paper-fit ance",
            Model {
                rx_access: Span::from_millis(25),
                rx_spread: Span::from_millis(8),
                ncs_access: Span::from_micros(750),
                recovery: Recovery::Reno,
                ..with(Discipline::DropTail, ance(true))
            },
        ),
        (
            "other ways",
            Model {
                actuation: Actuation::Tick,
                integration: Integration::Tustin,
                phase: Phase::Fixed,
                start_spread: Span::from_millis(300),
                ecn: false,
                ncs_exempt: false,
                saturation: 24.0,
                ..with(RED, Congestion::Reno)
            },
        ),
    ]
}

#[test]
fn every_kind_of_model_is_valid_by_the_formats_grammar() {
    let dtd = Dtd::read(FLAT);
    for (name, model) in models() {
        let xml = model.to_xml();
        assert_eq!(dtd.faults(&document(&xml)), [""; 0], "{name}");
        assert!(!xml.contains("CDATA"), "UPPAAL's reader skips CDATA sections");
    }
}

#[test]
fn the_grammar_finds_what_is_wrong() {
    let dtd = Dtd::read(FLAT);
    let xml = Model::default().to_xml();
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
    assert_eq!(Model::default().to_xml(), Model::default().to_xml());
    let other = Model { buffer: 18, ..Model::default() };
    assert_ne!(other.to_xml(), Model::default().to_xml());
}

/// A constant's text in the file.
fn constant<'a>(xml: &'a str, name: &str) -> &'a str {
    let start = xml.find(&format!(" {name} = ")).expect("a constant") + name.len() + 4;
    xml[start..].split(';').next().expect("a semicolon")
}

#[test]
fn constants_are_the_papers_and_those_of_an_independent_discretisation() {
    let xml = Model::default().to_xml();
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
        let ways = [Integration::ForwardEuler, Integration::BackwardEuler, Integration::Tustin];
        for (integration, expect) in ways.into_iter().zip(expect) {
            let s = ideal_loop(&Model { integration, ..Model::default() }, delay);
            assert!((s / expect - 1.0).abs() < 1e-9, "{delay} {integration:?}: {s}, not {expect}");
        }
    }
}

fn ints(value: &Value) -> Vec<i64> {
    let Value::Many(parts) = value else { panic!("an array") };
    parts.iter().map(Value::int).collect()
}

#[test]
fn every_kind_of_model_runs_soundly_and_fills_its_bottleneck() {
    for (name, model) in models() {
        let network = Network::read(&model.to_xml());
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
fn itae(pairs: &[&str], runs: u64) -> [Vec<f64>; 2] {
    let mut settings = defaults(&Ance::Dumbbell);
    for pair in pairs {
        settings.set_pair(pair).expect("a setting of the dumbbell");
    }
    let model = Model::from_settings(&settings).expect("a model that can be exported");
    let network = Network::read(&model.to_xml());
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
    let [exported, own] = itae(&["queue=drop-tail"], 4);
    assert!(exported[0] > 8727.0 && own[0] > 8727.0, "drop-tail: {exported:?}, {own:?}");
    let mean = |runs: &[f64]| runs.iter().sum::<f64>() / runs.len() as f64;
    let ratio = mean(&exported) / mean(&own);
    assert!((0.75..1.33).contains(&ratio), "drop-tail: {exported:?}, {own:?}");
    let [exported, own] = itae(&["cc=ance"], 4);
    assert!(exported[3] < 8727.0 && own[3] < 8727.0, "ance: {exported:?}, {own:?}");
    let ratio = mean(&exported) / mean(&own);
    assert!((0.9..1.11).contains(&ratio), "ance: {exported:?}, {own:?}");
}

#[test]
fn settings_without_an_automaton_are_refused_with_what_there_is() {
    let check = |pair: &str, message: &str| {
        let mut settings = defaults(&Ance::Dumbbell);
        settings.set_pair(pair).expect("a setting of the dumbbell");
        let error = Model::from_settings(&settings).expect_err(pair).to_string();
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
    let xml = Model::default().to_xml();
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
            let cells = itae(&[preset, pair], 36).map(|runs| {
                let above = runs.iter().filter(|s| **s > 8727.0).count();
                let quartiles = [9, 18, 27].map(|at| format!("{:.0}", runs[at]));
                format!("{} | {above}/36", quartiles.join(", "))
            });
            println!("| {preset} {pair} | {} |", cells.join(" | "));
        }
    }
}

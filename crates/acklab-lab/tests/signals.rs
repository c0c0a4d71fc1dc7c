//! Goal: what a query sees of a link is what the run itself measures, whatever the queue and however
//! long a packet travels behind it.
//! Method: the same seed twice, once as a run with its metrics and once as a simulation of the signals;
//! the mean over time of the steps of `queue.length` must be the metric, to the rounding of times. The
//! distribution at one instant is compared with that of M/D/1, computed here from its embedded chain.

use std::sync::atomic::AtomicBool;

use acklab_core::math;
use acklab_core::queue::Discipline;
use acklab_lab::file::{Asked, ScenarioFile};
use acklab_lab::measured::Metrics;
use acklab_lab::plan::Plan;
use acklab_lab::run;
use acklab_lab::scenario::Catalog;
use acklab_lab::verify::{Job, Precision, Verification};

/// Poisson datagrams, and a window of packets beside them: the queue fills, drops, marks and drains.
fn mixed(queue: &str, delay: &str, more: &str) -> String {
    let cc = if queue.contains("edctcp") { "edctcp" } else { "reno" };
    format!(
        "scenario = \"network\"\nduration = \"4s\"\nwatch = \"a -> b\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"2mbit\"\ndelay = \"{delay}\"\n\
         queue = {queue}\nbuffer = 12\n{more}\n\
         [[flow]]\nfrom = \"a\"\nto = \"b\"\nkind = \"poisson\"\nbytes = 972\nrate = \"1mbit\"\n\
         [[flow]]\nfrom = \"a\"\nto = \"b\"\nkind = \"bulk\"\ncc = \"{cc}\"\necn = true\n"
    )
}

/// Poisson datagrams of 8 ms at load 0.6: M/D/1.
fn md1(delay: &str) -> String {
    format!(
        "scenario = \"network\"\nduration = \"20s\"\nwatch = \"a -> b\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1mbit\"\ndelay = \"{delay}\"\n\
         [[flow]]\nfrom = \"a\"\nto = \"b\"\nkind = \"poisson\"\nbytes = 972\nevery = \"13333333ns\"\n"
    )
}

fn asked(text: &str) -> Asked {
    let file = ScenarioFile::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    file.asked(Catalog(&[])).expect("usable")
}

fn answer(Asked { scenario, choices, seed, .. }: Asked, query: &str) -> Verification {
    let settings = choices.settings().clone();
    let job = Job::new(scenario, settings, query, Precision::default(), seed);
    job.expect("a query").run(&AtomicBool::new(false), |_, _| {})
}

/// The metrics of a run, and the signals of the same run as (second, values) after each change.
fn both(text: &str, signals: &str) -> (Metrics, Vec<(f64, Vec<f64>)>, f64) {
    let Asked { scenario, choices, seed, .. } = asked(text);
    let settings = choices.settings().clone();
    let seconds = settings.duration().expect("one of a network").as_secs_f64();
    let plan = Plan::single(scenario, settings, seed, Some(1)).expect("a plan");
    let metrics = run::run(&plan).metrics;
    let query = format!("simulate [<={seconds}; 1] {{{signals}}}");
    let mut simulated = answer(asked(text), &query);
    (metrics, simulated.trajectories.remove(0).rows, seconds)
}

fn time_mean(rows: &[(f64, Vec<f64>)], column: usize, end: f64) -> f64 {
    let ends = rows.iter().skip(1).map(|row| row.0).chain([end]);
    let area: f64 = rows.iter().zip(ends).map(|(row, end)| row.1[column] * (end - row.0)).sum();
    area / end
}

fn check(text: &str, what: &str) {
    let (metrics, rows, end) = both(text, "queue.length, drops, marks");
    let (signal, metric) = (time_mean(&rows, 0, end), metrics.number("queue_mean_packets"));
    assert!(metric > 0.2, "{what}: an empty queue shows nothing");
    assert!((signal - metric).abs() < 1e-9 * metric, "{what}: signal {signal}, metric {metric}");
    let last = &rows.last().expect("rows").1;
    for (column, name) in [(1, "drops"), (2, "marks")] {
        let metric = metrics.number(name);
        assert!((last[column] - metric).abs() < 1e-9, "{what}: {name} {} {metric}", last[column]);
    }
}

#[test]
fn signals_of_every_queue_are_its_metrics_at_any_propagation_delay() {
    for name in Discipline::NAMES {
        for delay in ["0ms", "5ms", "50ms"] {
            let what = format!("{name}, {delay}");
            check(&mixed(&format!("\"{name}\""), delay, ""), &what);
            // What may overtake makes drop-tail a managed queue; what is lost leaves the queue first.
            check(
                &mixed(&format!("\"{name}\""), delay, "loss = \"2%\"\njitter = \"3ms\""),
                &format!("{what}, lossy"),
            );
            let disorder = "reorder = { share = \"5%\", late = \"9ms\" }\nduplicate = \"2%\"";
            check(&mixed(&format!("\"{name}\""), delay, disorder), &format!("{what}, disorder"));
        }
    }
}

#[test]
fn bytes_wait_as_long_as_their_packets() {
    for delay in ["0ms", "5ms", "50ms"] {
        let (_, rows, end) = both(&md1(delay), "queue.length, queue.bytes");
        assert!(rows.iter().all(|(_, row)| (row[0] * 1000.0 - row[1]).abs() < 0.5), "{delay}");
        let mean = time_mean(&rows, 0, end);
        assert!((0.3..0.6).contains(&mean), "{delay}: {mean} packets; M/D/1 has 0.45");
    }
}

#[test]
fn what_leaves_the_queue_after_the_last_event_is_measured_too() {
    // Five packets of 8 ms at once, and the first arrives long after the end.
    let text = "scenario = \"network\"\nduration = \"30ms\"\nwatch = \"a -> b\"\n\
                [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1mbit\"\ndelay = \"500ms\"\n\
                [[flow]]\nfrom = \"a\"\nto = \"b\"\nkind = \"trace\"\ntransport = \"udp\"\n\
                trace = [[0, 972], [0, 972], [0, 972], [0, 972], [0, 972]]\n";
    let (metrics, rows, end) = both(text, "queue.length");
    let exact = (4.0 * 8.0 + 3.0 * 8.0 + 2.0 * 8.0 + 6.0) / 30.0;
    let (signal, metric) = (time_mean(&rows, 0, end), metrics.number("queue_mean_packets"));
    assert!((signal - exact).abs() < 1e-12 && (metric - exact).abs() < 1e-12, "{signal} {metric}");
}

/// How probable it is in M/D/1 that at least `waiting` wait: the embedded chain's balance equations,
/// solved from the empty system up (Kendall 1953).
fn md1_tail(load: f64, waiting: usize) -> f64 {
    // How probable k arrivals during one service are.
    let arrivals = |k: usize| (1..=k).fold(math::exp(-load), |p, i| p * load / i as f64);
    let mut system = vec![1.0 - load];
    for n in 0..=waiting {
        let from_below: f64 =
            (1..=n).map(|k| system[k] * arrivals(n + 1 - k)).sum::<f64>() + system[0] * arrivals(n);
        system.push((system[n] - from_below) / arrivals(0));
    }
    // One more than wait is in service.
    1.0 - system[..=waiting].iter().sum::<f64>()
}

#[test]
fn at_an_instant_the_queue_has_the_law_of_m_d_1() {
    let exact = md1_tail(0.6, 3);
    assert!((exact - 0.0426).abs() < 5e-5, "{exact}");
    for delay in ["0ms", "5ms", "50ms"] {
        // Forgotten after 20 times SERVICE / (1 - load)^2 = 50 ms.
        let query = "Pr[<=1; 8000](<>[1,1] queue.length >= 3)";
        let interval = answer(asked(&md1(delay)), query).report.interval.expect("an interval");
        assert!((interval.low..=interval.high).contains(&exact), "{delay}: {interval:?}");
        assert!(interval.high - interval.low < 0.012, "{delay}: {interval:?} says little");
    }
}

#[test]
fn an_average_over_time_and_a_share_of_time_are_the_metrics_and_have_its_interval() {
    let Asked { scenario, choices, seed, .. } = asked(&md1("5ms"));
    let settings = choices.settings().clone();
    let plan = Plan::single(scenario, settings, seed, Some(4)).expect("a plan");
    let results = run::run(&plan).to_json();
    let close = |left: f64, right: f64| (left - right).abs() < 1e-9 * right.abs();
    for (query, metric) in [
        ("E[<=20; 4](avg: queue.length)", "queue_mean_packets"),
        ("E[<=20; 4](sum: queue.length / 20)", "queue_mean_packets"),
        ("E[<=20; 4](last: drops)", "drops"),
    ] {
        let report = answer(asked(&md1("5ms")), query).report;
        let of_run = &results["intervals"][metric];
        let mean = of_run["mean"].as_f64().expect("four replications");
        assert!(report.estimate.is_some_and(|found| close(found, mean) || mean == 0.0), "{query}");
        if let Some(interval) = report.interval {
            let low = of_run["low"].as_f64().expect("an interval");
            assert!(close(interval.low, low), "{query}: {interval:?} {of_run}");
        }
    }
    // P(waiting >= 3) of M/D/1, as a share of time.
    let share = answer(asked(&md1("50ms")), "E[<=20; 60](share: queue.length >= 3)").report;
    let interval = share.interval.expect("a share");
    assert!(interval.covers(md1_tail(0.6, 3)), "{interval:?} {}", md1_tail(0.6, 3));
}

#[test]
fn without_a_tcp_flow_there_is_nothing_to_add_up_or_share() {
    let (metrics, ..) = both(&md1("5ms"), "queue.length");
    assert!(metrics.number("jain").is_nan() && metrics.number("throughput_bps").is_nan());
    assert!(metrics.to_json()["jain"]["mean"].is_null());
}

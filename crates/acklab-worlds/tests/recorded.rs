//! Goal: the simulation does what the Linux kernel does, without a kernel at hand: what one did is kept in
//! kernel/linux-vt/recorded.jsonl, and every network there that draws no losses is simulated and held to it.
//! Method: the bounds are those that docs/linux-vt.md claims; a simulation that is not Linux's must miss them.

use std::path::Path;
use std::sync::Mutex;
use std::thread;

use acklab_lab::network_file::NetworkFile;
use acklab_lab::scenario::{Graph, defaults};
use acklab_worlds::recorded::{Case, Recording, job_key};
use acklab_worlds::seen::Seen;
use acklab_worlds::world::simulate;

fn recording() -> Recording {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/linux-vt/recorded.jsonl");
    Recording::read(&file).expect("a recording")
}

/// The means over runs, for each flow: acknowledged bytes, ACKs, segments sent again, the median round trip in ms.
type Means = Vec<[f64; 4]>;

fn means(runs: &[Vec<Seen>]) -> Means {
    let flows = 0..runs[0].len();
    let figures = |seen: &Seen| {
        let mut trips = seen.round_trips_ms.clone();
        trips.sort_unstable_by(f64::total_cmp);
        let median = trips[trips.len().div_ceil(2) - 1];
        [seen.acknowledged as f64, seen.acks as f64, seen.retransmissions as f64, median]
    };
    let mean = |flow: usize| {
        let all = runs.iter().map(|run| figures(&run[flow]));
        let sum = all.reduce(|a, b| std::array::from_fn(|at| a[at] + b[at]));
        sum.expect("a run").map(|sum| sum / runs.len() as f64)
    };
    flows.map(mean).collect()
}

/// What the simulation and the kernel give for `case`, whose file is `text` instead.
fn both(case: &Case, text: &str) -> [Means; 2] {
    let file = NetworkFile::parse(text).expect("a network");
    let graph = Graph::from_file(file).expect("a network");
    let (mut ours, mut kernels) = (Vec::new(), Vec::new());
    for run in &case.runs {
        let network = graph.blueprint(&defaults(graph), run.seed).expect("a network");
        let job = job_key(&network).expect("the kernel can be it");
        assert_eq!(
            job, run.job,
            "{}: the guest is told to do something else: record it again",
            case.name
        );
        ours.push(simulate(graph, &defaults(graph), &network, run.seed));
        kernels.push(run.seen().expect("it was written by the recorder"));
    }
    [means(&ours), means(&kernels)]
}

/// How far each flow of ours is from the kernel's, as shares.
fn apart([ours, kernels]: [Means; 2]) -> Vec<[f64; 4]> {
    let pairs = ours.into_iter().zip(kernels);
    pairs.map(|(own, other)| std::array::from_fn(|at| own[at] / other[at] - 1.0)).collect()
}

/// Several cases at once: each takes seconds.
fn check(chosen: impl Fn(&Case) -> bool, bounds: [f64; 4], least: usize) {
    let recording = recording();
    let cases: Vec<&Case> = recording.cases.iter().filter(|case| chosen(case)).collect();
    assert!(cases.len() >= least, "{} cases", cases.len());
    let (cases, failures) = (Mutex::new(cases.into_iter()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let Some(case) = cases.lock().expect("no panic").next() else { break };
            for shares in apart(both(case, &case.file)) {
                eprintln!("{}: {shares:.4?}", case.name);
                if shares.iter().zip(bounds).any(|(share, bound)| share.abs() > bound) {
                    failures.lock().expect("no panic").push((case.name.clone(), shares));
                }
            }
        }
    };
    thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let failures = failures.into_inner().expect("no panic");
    assert!(failures.is_empty(), "beyond {bounds:?}: {failures:?}");
}

fn draws_losses(case: &Case) -> bool {
    case.file.contains("loss = \"0.1%\"") || case.file.contains("loss = \"1%\"")
}

fn is_shared(case: &Case) -> bool {
    case.file.matches("[[flow]]").count() > 1
}

fn is_managed(case: &Case) -> bool {
    case.file.contains("kind = \"codel\"")
        || case.file.contains("kind = \"fq-codel\"")
        || case.file.contains("kind = \"pie\"")
}

#[test]
fn one_flow_behind_drop_tail_is_as_on_the_kernel() {
    let chosen = |case: &Case| !draws_losses(case) && !is_shared(case) && !is_managed(case);
    check(chosen, [0.03, 0.03, f64::INFINITY, 0.04], 24);
}

#[test]
fn one_flow_behind_a_managed_queue_is_as_on_the_kernel() {
    // Some 40 to 80 segments in 30 s are sent again: PIE's coins and a few in recovery are a quarter of that.
    check(|case| is_managed(case) && !is_shared(case), [0.01, 0.03, 0.3, 0.02], 6);
    let codel = |case: &Case| is_managed(case) && case.file.contains("kind = \"codel\"");
    check(|case| codel(case) && !is_shared(case), [0.005, 0.01, 0.03, 0.002], 2);
}

#[test]
fn flows_that_share_a_link_are_as_on_the_kernel() {
    // Who gets ahead of whom differs from seed to seed; how full the link and its queue are does not.
    check(is_shared, [0.15, 0.15, 0.15, 0.02], 4);
    for case in recording().cases.iter().filter(|case| is_shared(case)) {
        let sums =
            both(case, &case.file).map(|flows| flows.iter().map(|flow| flow[0]).sum::<f64>());
        assert!((sums[0] / sums[1] - 1.0).abs() < 0.01, "{}: {sums:?}", case.name);
    }
}

#[test]
fn one_flow_whose_segments_are_lost_at_random_is_near_the_kernel() {
    // Which segments are lost is each world's own draw: at 160 ms twelve seeds are up to 15 % from others.
    check(draws_losses, [0.10, 0.10, f64::INFINITY, f64::INFINITY], 48);
}

#[test]
fn another_tcp_is_not() {
    let recording = recording();
    let case = recording.cases.iter().find(|case| case.name == "reno-10ms-0.25-0").expect("a case");
    let streams = case.file.replace("[[flow]]\n", "[[flow]]\nstack = \"stream\"\n");
    let [shares] = apart(both(case, &streams))[..] else { panic!("one flow") };
    assert!(shares[0] < -0.1 && shares[1] < -0.1, "{shares:?}");
}

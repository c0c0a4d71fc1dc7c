//! Steady states, from one run in batches and from replications.

use acklab_core::rng::Rng;
use acklab_stats::{Slice, SteadyPlan, SteadyState};

use crate::{ALPHA, Tally, experiments};

const SLICES: usize = 1000;

/// An autoregressive process of mean 5, which begins at 25.
fn autoregressive(rng: &mut Rng, steps: usize) -> Vec<Slice> {
    let mut x = 20.0;
    let slice = |_| {
        let mut sum = 0.0;
        for _ in 0..steps {
            x = 0.9 * x + rng.normal(0.0, 1.0);
            sum += 5.0 + x;
        }
        Slice { weight: steps as f64, sum }
    };
    (0..SLICES).map(slice).collect()
}

/// What customers wait in M/M/1 at load 1/2, of mean 1, from the empty queue on (Lindley's recursion).
fn waiting(rng: &mut Rng, customers: usize) -> Vec<Slice> {
    let mut wait = 0.0_f64;
    let slice = |_| {
        let mut sum = 0.0;
        for _ in 0..customers {
            sum += wait;
            wait = (wait + rng.exponential(1.0) - rng.exponential(2.0)).max(0.0);
        }
        Slice { weight: customers as f64, sum }
    };
    (0..SLICES).map(slice).collect()
}

type Process = fn(&mut Rng, usize) -> Vec<Slice>;

#[test]
fn the_long_run_average_is_covered_or_the_run_is_called_too_short() {
    for (name, process, truth, steps, runs, least) in [
        ("AR(1), 10,000 steps", autoregressive as Process, 5.0, 10, 1, 0.93),
        ("AR(1), 50,000 steps", autoregressive, 5.0, 50, 1, 0.94),
        ("AR(1), 10 runs of 2000", autoregressive, 5.0, 2, 10, 0.94),
        ("M/M/1, 10,000 customers", waiting, 1.0, 10, 1, 0.86),
        ("M/M/1, 100,000 customers", waiting, 1.0, 100, 1, 0.92),
        ("M/M/1, 10 runs of 10,000", waiting, 1.0, 10, 10, 0.9),
    ] {
        let mut tally = Tally::default();
        for experiment in 0..experiments() {
            let mut rng = Rng::named(experiment, name);
            let plan = SteadyPlan { alpha: ALPHA, runs, times: (0.0, 1.0), is_warm: false };
            let mut steady = SteadyState::new(plan).expect("usable");
            while !steady.push(process(&mut rng, steps)) {}
            let found = steady.estimate();
            tally.add(found.interval.map(|interval| interval.covers(truth)), runs);
        }
        tally.row(&format!("steady state, {name}"), least);
    }
}

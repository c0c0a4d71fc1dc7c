//! Quantiles over runs.

use acklab_core::rng::Rng;
use acklab_stats::{HalfWidth, QuantileOverRuns, QuantilePlan};

use crate::{ALPHA, EXPONENTIAL, JUMPS, LOGNORMAL, NORMAL, Tally, experiments};

#[test]
fn quantiles_are_covered_for_a_number_of_runs_until_narrow_and_at_every_look() {
    for law in [&NORMAL, &EXPONENTIAL, &LOGNORMAL, &JUMPS] {
        for (name, runs, half_width, looks) in [
            ("40 runs", Some(40), HalfWidth::Relative(0.05), false),
            ("200 runs", Some(200), HalfWidth::Relative(0.05), false),
            ("until ±0.5", None, HalfWidth::Absolute(0.5), false),
            ("every 20th look to 400", Some(u64::MAX), HalfWidth::Relative(0.05), true),
        ] {
            let mut tally = Tally::default();
            for experiment in 0..experiments() {
                let mut rng = Rng::named(experiment, law.name);
                let plan = QuantilePlan { p: 0.9, alpha: ALPHA, half_width, runs };
                let mut quantile = QuantileOverRuns::new(plan).expect("usable");
                let covers = |quantile: &QuantileOverRuns| {
                    quantile.interval().is_none_or(|interval| interval.covers(law.quantile))
                };
                let mut covered = true;
                while !(quantile.push(Some((law.draw)(&mut rng)))
                    || looks && quantile.runs() == 400)
                {
                    let look = looks && quantile.runs().is_multiple_of(20);
                    covered &= !look || covers(&quantile);
                }
                covered &= looks || covers(&quantile);
                tally.add(Some(covered), quantile.runs());
            }
            tally.row(&format!("90 % quantile, {name}, {}", law.name), 1.0 - ALPHA);
        }
    }
}

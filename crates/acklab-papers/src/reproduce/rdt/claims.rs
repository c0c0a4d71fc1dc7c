//! The paper's sentences about its results, in our words, and whether they hold.
//!
//! What compares times is decided under each reading of the hosts' costs, by 95 % intervals over
//! repetitions with the same seeds; what is about statistics or dead links has one answer.

use acklab_lab::report::{Claim, Outcome};
use acklab_stats::MeanInterval;

use super::campaigns::Stopping;
use super::dead_path::DeadPath;
use super::experiment::{Experiments, MACHINES};
use super::paper::{LOSSES, ROWS, row};
use super::stopping::Rule;

/// Judges every claim under each of [`MACHINES`].
pub fn judge(experiments: &[Experiments], stopping: &[Stopping], dead: &[DeadPath]) -> Vec<Claim> {
    vec![
        more_loss(experiments),
        two_paths(experiments),
        steady_gain(experiments),
        more_links(&experiments[0]),
        whole(experiments),
        precision(stopping),
        printed(),
        dead_router(dead),
    ]
}

/// An outcome under each machine.
fn each<T>(machines: &[T], decide: impl Fn(&T) -> Outcome) -> Vec<Outcome> {
    machines.iter().map(decide).collect()
}

/// A figure under each machine.
fn tell(experiments: &[Experiments], figure: impl Fn(&Experiments) -> String) -> String {
    let words = experiments.iter().map(|e| format!("{}: {}", e.machine.name, figure(e)));
    words.collect::<Vec<_>>().join("; ")
}

fn more_loss(experiments: &[Experiments]) -> Claim {
    let ratio = |e: &Experiments| e.at(2, 1).mean() / e.at(0, 1).mean();
    Claim {
        place: "abstract, IV",
        text: "in both experiments more loss makes the transfer considerably longer",
        outcomes: each(experiments, |e| Outcome::all([1, 2].map(|paths| rises(e, paths)))),
        figures: vec![tell(experiments, |e| {
            format!("28 % takes {:.1} times as long as 5 %", ratio(e))
        })],
    }
}

fn two_paths(experiments: &[Experiments]) -> Claim {
    let ours = tell(experiments, |e| times(&ratios(e)));
    Claim {
        place: "IV C",
        text: "two paths are faster than one, at every loss",
        outcomes: each(experiments, gains_at_every_loss),
        figures: vec![format!("paper {}; {ours}", times(&paper_ratios()))],
    }
}

fn steady_gain(experiments: &[Experiments]) -> Claim {
    let paper = paper_gains();
    let ours = tell(experiments, |e| seconds(&gains(e)));
    Claim {
        place: "IV C",
        text: "what two paths gain is almost the same at every loss (here: within 10 % of its mean), so that it \
               does not depend on loss",
        outcomes: each(experiments, |e| steady(&gains(e))),
        figures: vec![format!(
            "paper {}: {} by its own tables; {ours}",
            seconds(&paper),
            steady(&paper).word()
        )],
    }
}

fn more_links(ideal: &Experiments) -> Claim {
    Claim {
        place: "V",
        text: "the file is faster on two paths because more links are used (with hosts that cost nothing, links \
               are all there is)",
        outcomes: vec![gains_at_every_loss(ideal); MACHINES.len()],
        figures: vec![format!("{}: {}", ideal.machine.name, times(&ratios(ideal)))],
    }
}

fn whole(experiments: &[Experiments]) -> Claim {
    let delivered = |e: &Experiments| {
        let mut transfers = e.measured.iter().flat_map(|measured| &measured.transfers);
        Outcome::of(transfers.all(|transfer| transfer.seconds.is_some()))
    };
    Claim {
        place: "II",
        text: "the file arrives whole, whatever is lost",
        outcomes: each(experiments, delivered),
        figures: vec![format!("{} transfers", runs(experiments))],
    }
}

fn dead_router(dead: &[DeadPath]) -> Claim {
    let words =
        dead.iter().map(|dead| format!("{}: {:.1} s", dead.machine.name, dead.longest_wait_s));
    Claim {
        place: "II",
        text: "when a router dies, its traffic is redirected so that the transfer is not interrupted (here: no \
               second without an ACK)",
        outcomes: each(dead, |dead| Outcome::of(dead.longest_wait_s < 1.0)),
        figures: vec![format!("{} without an ACK", words.collect::<Vec<_>>().join("; "))],
    }
}

fn precision(stopping: &[Stopping]) -> Claim {
    let code: Vec<f64> = stopping
        .iter()
        .filter(|stopping| stopping.rule == Rule::Code)
        .map(|stopping| 100.0 * stopping.campaigns.coverage)
        .collect();
    let worst = code.iter().copied().fold(100.0, f64::min);
    let words: Vec<String> = code.iter().map(|share| format!("{share:.0}")).collect();
    Claim {
        place: "I, II",
        text: "runs are repeated until the margin is right with 95 % confidence (here: the code’s interval \
               holds the mean in at least 93 % of campaigns)",
        outcomes: vec![Outcome::of(worst >= 93.0); MACHINES.len()],
        figures: vec![format!("{} % of campaigns, experiment by experiment", words.join(", "))],
    }
}

/// Follows from the authors' code alone: it compares seconds, and the tables print them as percent.
fn printed() -> Claim {
    let relative: Vec<f64> =
        ROWS.iter().map(|row| 100.0 * row.margin_seconds() / row.mean).collect();
    let agree =
        ROWS.iter().zip(&relative).all(|(row, real)| (row.printed_margin - real).abs() < 0.1);
    Claim {
        place: "IV, tables",
        text: "the tables give margins of error in percent",
        outcomes: vec![Outcome::of(agree); MACHINES.len()],
        figures: vec![format!(
            "printed 1.57 to 10.00 %; of the means they are {:.3} to {:.3} %",
            relative.iter().copied().fold(f64::INFINITY, f64::min),
            relative.iter().copied().fold(0.0, f64::max),
        )],
    }
}

/// Each loss takes longer than the one before, by intervals that do not touch.
fn rises(experiments: &Experiments, paths: usize) -> Outcome {
    let intervals = [0, 1, 2].map(|loss| experiments.at(loss, paths).interval());
    let pairs = intervals.windows(2).map(|pair| match pair {
        [Some(less), Some(more)] if more.low > less.high => Outcome::Holds,
        [Some(less), Some(more)] if more.high < less.low => Outcome::Fails,
        _ => Outcome::Open,
    });
    Outcome::all(pairs)
}

fn gains_at_every_loss(experiments: &Experiments) -> Outcome {
    Outcome::all([0, 1, 2].map(|loss| above_zero(experiments.gain(loss))))
}

fn above_zero(gain: Option<MeanInterval>) -> Outcome {
    match gain {
        Some(gain) if gain.low > 0.0 => Outcome::Holds,
        // Nothing gained that could be seen is not what the claim says.
        Some(_) => Outcome::Fails,
        None => Outcome::Open,
    }
}

/// Whether all lie within 10 % of their mean.
fn steady(gains: &[f64]) -> Outcome {
    let mean = gains.iter().sum::<f64>() / gains.len() as f64;
    Outcome::of(gains.iter().all(|gain| (gain - mean).abs() <= 0.1 * mean.abs()))
}

fn gains(experiments: &Experiments) -> [f64; LOSSES.len()] {
    [0, 1, 2].map(|loss| experiments.at(loss, 1).mean() - experiments.at(loss, 2).mean())
}

/// One path's mean time over two paths'.
pub fn ratios(experiments: &Experiments) -> [f64; LOSSES.len()] {
    [0, 1, 2].map(|loss| experiments.at(loss, 1).mean() / experiments.at(loss, 2).mean())
}

fn paper_gains() -> [f64; LOSSES.len()] {
    [0, 1, 2].map(|loss| row(loss, 1).mean - row(loss, 2).mean)
}

/// The same of the paper's tables.
pub fn paper_ratios() -> [f64; LOSSES.len()] {
    [0, 1, 2].map(|loss| row(loss, 1).mean / row(loss, 2).mean)
}

fn seconds(values: &[f64]) -> String {
    let words: Vec<String> = values.iter().map(|value| format!("{value:.1}")).collect();
    format!("{} s", words.join(", "))
}

/// "x 1.16, 1.11, 1.07".
pub fn times(values: &[f64]) -> String {
    let words: Vec<String> = values.iter().map(|value| format!("{value:.2}")).collect();
    format!("x {}", words.join(", "))
}

fn runs(experiments: &[Experiments]) -> usize {
    experiments.iter().flat_map(|e| &e.measured).map(|measured| measured.transfers.len()).sum()
}

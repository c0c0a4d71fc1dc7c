//! `acklab verify`: a query about a scenario, with an interval.

mod text;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acklab_lab::plan::Plan;
use acklab_lab::verify::{
    Cases, Decision, Effort, Job, Precision, ProportionMethod, Report, StopRule, Verification,
};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::file::asked;
use crate::names;
use crate::outcome::{Failure, Format, early_end, print, print_json, tell};

/// Estimate or test a probability, a mean, a quantile or a steady state over runs of a scenario
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    /// A built-in scenario with signals (see `acklab scenarios NAME`), or a file as `acklab run` takes it
    #[arg(value_parser = names::scenarios(), hide_possible_values = true)]
    scenario: String,
    /// The query, in the language of UPPAAL SMC and beyond; times in seconds unless they carry a unit. Without one,
    /// the query tables of the file that have a bound
    query: Option<String>,
    /// Set parameters; `acklab scenarios NAME` lists them. Lists and ranges, and the sweeps of a file, are answered
    /// case by case
    #[arg(long = "set", value_name = "NAME=VALUE", num_args = 1.., value_parser = names::parameters(),
          hide_possible_values = true)]
    sets: Vec<String>,
    /// Seed of the first run; the others' are derived from it [default: the file's, else 1]
    #[arg(long)]
    seed: Option<u64>,
    /// 1 - confidence; of a test, the probability of rejecting what holds
    #[arg(long, default_value_t = 0.05)]
    alpha: f64,
    /// Of a test, the probability of accepting what fails
    #[arg(long, default_value_t = 0.05)]
    beta: f64,
    /// Half the width of the interval to reach; of a mean (of a share: absolute) or quantile, relative
    #[arg(long, default_value_t = 0.05)]
    epsilon: f64,
    /// Of a mean or quantile: half the width to reach in its own unit, in place of the relative one
    #[arg(long, conflicts_with = "epsilon")]
    epsilon_abs: Option<f64>,
    /// Half the width of a test's region of indifference
    #[arg(long, default_value_t = 0.01)]
    delta: f64,
    /// Of a comparison: ratio of odds at which the left is not the larger
    #[arg(long, default_value_t = 0.9)]
    u0: f64,
    /// Of a comparison: ratio of odds at which the left is the larger
    #[arg(long, default_value_t = 1.1)]
    u1: f64,
    /// A probability's interval: beta-binomial, which holds whenever one looks; clopper-pearson (as
    /// UPPAAL), wilson, okamoto, bayes or jeffreys, which are for a number of runs fixed ahead [default:
    /// beta-binomial, and clopper-pearson for a number of runs]
    #[arg(long, value_parser = method)]
    method: Option<ProportionMethod>,
    /// When it is narrow enough: width (at most 2 epsilon wide) or each-side (both ends within epsilon)
    #[arg(long, default_value = "width", value_parser = stop)]
    stop: StopRule,
    /// Give up after so many runs
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    runs_max: u64,
    /// Find a rare event's probability by importance splitting: `Pr[<=T](<> x > c)` with x rising to c
    #[arg(long)]
    splitting: bool,
    /// Of splitting: trajectories of each stage
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    effort: u32,
    /// Of splitting: independent replications, whose mean is the estimate
    #[arg(long, alias = "split-reps", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(2..=10_000))]
    split_replications: u32,
    /// How to write the result to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

fn method(name: &str) -> Result<ProportionMethod, String> {
    ProportionMethod::from_name(name).ok_or_else(|| {
        "write beta-binomial, clopper-pearson, wilson, okamoto, bayes or jeffreys".to_owned()
    })
}

fn stop(name: &str) -> Result<StopRule, String> {
    StopRule::from_name(name).ok_or_else(|| "write width or each-side".to_owned())
}

impl Verify {
    /// The query, if there is one, and the settings. `--set` takes any number of values, so that a query behind it
    /// is found among them.
    fn query_and_sets(&self) -> (Option<&str>, Vec<String>) {
        let is_query = |text: &str| {
            ["Pr[", "Pr ", "E[", "E ", "S[", "S ", "quantile", "simulate"]
                .iter()
                .any(|word| text.starts_with(word))
        };
        let behind = self.sets.iter().position(|set| is_query(set));
        let query = self.query.as_ref().or(behind.map(|index| &self.sets[index]));
        let taken = if self.query.is_none() { behind } else { None };
        let sets = self.sets.iter().enumerate().filter(|(index, _)| Some(*index) != taken);
        (query.map(String::as_str), sets.map(|(_, set)| set.clone()).collect())
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        let unusable = |error: &dyn std::fmt::Display| Failure::Unusable(error.to_string());
        let (query, sets) = self.query_and_sets();
        let mut asked = asked(&self.scenario, &sets)?;
        asked.seed = self.seed.unwrap_or(asked.seed);
        let precision = self.precision();
        let plan = asked.plan().map_err(|error| Failure::at("--set", error))?;
        let (Some(query), [settings]) = (query, plan.cases.as_slice()) else {
            if self.splitting {
                let reason = "--splitting: is of one query about one case; --set the case, and say the query";
                return Err(Failure::Unusable(reason.into()));
            }
            return self.run_cases(plan, query, precision);
        };
        let job = Job::new(asked.scenario, settings.clone(), query, precision, asked.seed);
        let job = job.map_err(|error| unusable(&error))?;
        if self.splitting {
            let effort =
                Effort { trajectories: self.effort, replications: self.split_replications };
            let split = job.split(effort).map_err(|error| unusable(&error))?;
            return match self.format {
                Format::Json => print_json(&split.to_json()),
                Format::Text => print(&text::of_splitting(query, &split)),
            };
        }
        let verification = run_with_progress(&job)?;
        match self.format {
            Format::Json => print_json(&verification.to_json()),
            Format::Text => print(&text::of(&verification, &precision)),
        }?;
        let report = &verification.report;
        if report.decision == Some(Decision::Rejected) {
            Err(Failure::Check)
        } else if verification.is_answered() {
            Ok(())
        } else {
            Err(Failure::Incomplete)
        }
    }

    const fn precision(&self) -> Precision {
        Precision {
            alpha: self.alpha,
            beta: self.beta,
            epsilon: self.epsilon,
            epsilon_abs: self.epsilon_abs,
            delta_minus: self.delta,
            delta_plus: self.delta,
            u0: self.u0,
            u1: self.u1,
            method: self.method,
            stop: self.stop,
            runs_max: Some(self.runs_max),
        }
    }

    /// Every case of a sweep.
    fn run_cases(
        &self,
        plan: Plan,
        query: Option<&str>,
        precision: Precision,
    ) -> Result<(), Failure> {
        let cases = Cases::new(plan, query, precision);
        let cases = cases.map_err(|error| Failure::Unusable(error.to_string()))?;
        let answered = with_bar(|stop, bar| {
            cases.run(stop, |number, all, report| {
                bar.set_message(format!("case {} of {all}: {}", number + 1, known(report, None)));
            })
        })?;
        match self.format {
            Format::Json => print_json(&answered.to_json()),
            Format::Text => print(&answered.table().to_text()),
        }?;
        if answered.is_refuted() {
            Err(Failure::Check)
        } else if answered.is_complete() {
            Ok(())
        } else {
            Err(Failure::Incomplete)
        }
    }
}

/// Runs a job with a bar on standard error; Ctrl-C ends it early with what is known.
pub(crate) fn run_with_progress(job: &Job) -> Result<Verification, Failure> {
    with_bar(|stop, bar| job.run(stop, |report, all| bar.set_message(known(report, all))))
}

/// Does what takes long with a bar on standard error; Ctrl-C sets the flag, so that it ends early.
fn with_bar<T>(work: impl FnOnce(&AtomicBool, &ProgressBar) -> T) -> Result<T, Failure> {
    let stop = early_end()?;
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(100));
    let done = work(&stop, &bar);
    bar.finish_and_clear();
    if stop.load(Ordering::Relaxed) {
        tell("interrupted: this is what the runs so far say");
    }
    Ok(done)
}

/// The running answer in one line.
fn known(report: &Report, all: Option<u64>) -> String {
    let mut line = format!("{} runs", report.runs);
    if let Some(all) = all {
        let _ = write!(line, " of about {all}");
    }
    if let (Some(estimate), Some(interval)) = (report.estimate, report.interval) {
        let _ = write!(line, ": {estimate:.4} in [{:.4}, {:.4}]", interval.low, interval.high);
    }
    line
}

const EXAMPLES: &str = "\
Queries:
  Pr[<=30](<> itae_rad_s > 8727)        how probable is it that the ITAE exceeds 8727 within 30 s?
  Pr[<=30]([] queue.length < 10)        ... that the queue stays below 10 packets all the time?
  Pr[<=30](jain > 0.9 U queue.length > 10)
                                        ... that one holds until the other does?
  Pr[<=30](<> itae_rad_s > 8727) >= 0.5
                                        is it that probable? (exit 1 where it is not)
  Pr[<=30](<> itae_rad_s > 8727) >= Pr[<=20](<> itae_rad_s > 4000)
                                        is the left the more probable one?
  E[<=30; 100](max: queue.length)       the mean over 100 runs of the longest queue (min, last, avg, sum)
  E[<=30](share: queue.length > 9) <= 0.1
                                        is the mean share of the time with a long queue that small?
  quantile[<=30; 200](0.95, max: itae_rad_s)
                                        what do 95 % of the runs stay below?
  S[<=600](avg: queue.length)           the average in the long run, without the warm-up
  simulate [<=2; 1] {position, flow[0].cwnd}
                                        values over time

Examples:
  acklab verify ance-dumbbell 'Pr[<=30](<> itae_rad_s > 8727)' --set queue=red
  acklab verify ance-dumbbell 'E[<=30; 50](max: itae_rad_s)' --set cc=ance --format json
  acklab verify scenarios/poisson.toml 'Pr[<=10](<> queue.length > 16)' --splitting";

//! Runs on the running kernel: how many at once, with a bar, kept where they can be found again; and the two
//! processes of each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use acklab_core::time::Span;
use acklab_lab::parameter::Settings;
use acklab_worlds::campaign::{Campaign, News};
use acklab_worlds::kernel::{self, Done, KernelError, Testbed, Verbs};
use acklab_worlds::nagle::Experiment;
use acklab_worlds::store::{Store, StoreError};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::outcome::{Failure, tell};

/// How runs on the running kernel are made.
#[derive(Args)]
pub(crate) struct KernelArgs {
    /// Runs on the running kernel at once; they wait most of the time [default: 16 for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    parallel: Option<u16>,
    /// A run on the running kernel is repeated if more than 1 % of its packets leave the emulator later than this
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    max_lateness: String,
}

/// A run that is wanted.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// Of its file.
    pub(crate) name: String,
    pub(crate) experiment: Experiment,
    pub(crate) seed: u64,
}

/// What was done for all of them.
#[derive(Debug, Default)]
pub(crate) struct Account {
    found: usize,
    repeated: BTreeMap<String, usize>,
    environments: Vec<Value>,
    /// Whether Ctrl-C came before all runs were made.
    interrupted: bool,
}

/// Why there are no results.
enum Trouble {
    Run(KernelError),
    Store(StoreError),
    Given(Failure),
}

impl KernelArgs {
    /// Makes every run that `store` does not have, and hands over all of them; those that are made, where `interrupted`
    /// becomes true.
    pub(crate) fn perform(
        &self,
        wanted: &[Wanted],
        store: Option<&Store>,
        interrupted: &Arc<AtomicBool>,
        mut hand_over: impl FnMut(&Wanted, Done) -> Result<(), Failure>,
    ) -> Result<Account, Failure> {
        let testbed = self.testbed(interrupted)?;
        let mut account = Account::default();
        let mut missing = Vec::new();
        for one in wanted {
            let found = match store {
                Some(store) => store.find(&one.name, &one.experiment).map_err(|e| unusable(&e))?,
                None => None,
            };
            match found {
                Some(done) => {
                    account.found += 1;
                    account.environments.push(done.environment.clone());
                    hand_over(one, done)?;
                }
                None => missing.push(one),
            }
        }
        let parallel = self.parallel();
        let seconds = estimate(&missing, parallel);
        if !missing.is_empty() {
            let (count, found) = (missing.len(), account.found);
            tell(&format!(
                "acklab: {count} runs on this kernel, {parallel} at once: about {}; {found} are there already",
                words(seconds)
            ));
        }
        let bar = bar(missing.len());
        let apart = Duration::from_millis(APART);
        let campaign = Campaign { parallel, apart, attempts: ATTEMPTS, interrupted };
        let outcome = campaign.run(
            &missing,
            |one| testbed.run(&one.experiment, one.seed).map_err(Trouble::Run),
            |trouble| matches!(trouble, Trouble::Run(error) if error.is_passing()),
            |one, news| match news {
                News::Done(done) => {
                    if let Some(store) = store {
                        store.keep(&one.name, &one.experiment, &done).map_err(Trouble::Store)?;
                    }
                    account.environments.push(done.environment.clone());
                    hand_over(one, done).map_err(Trouble::Given)?;
                    bar.inc(1);
                    Ok(())
                }
                News::Repeated(Trouble::Run(reason)) => {
                    let line = format!("acklab: {}: again, for it was {reason}", one.name);
                    bar.suspend(|| tell(&line));
                    *account.repeated.entry(reason.to_string()).or_default() += 1;
                    Ok(())
                }
                News::Repeated(_) => Ok(()),
            },
        );
        bar.finish_and_clear();
        match outcome {
            Ok(()) => Ok(account),
            Err(Trouble::Run(KernelError::Interrupted)) => {
                if store.is_some() {
                    tell(
                        "acklab: interrupted; the runs that ended are kept, and the same command goes on",
                    );
                }
                account.interrupted = true;
                Ok(account)
            }
            Err(Trouble::Run(error)) => Err(Failure::at("kernel", error)),
            Err(Trouble::Store(error)) => Err(unusable(&error)),
            Err(Trouble::Given(failure)) => Err(failure),
        }
    }

    fn parallel(&self) -> usize {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        self.parallel.map_or(16 * cpus, usize::from)
    }

    fn testbed(&self, interrupted: &Arc<AtomicBool>) -> Result<Testbed, Failure> {
        let max_lateness: Span =
            self.max_lateness.parse().map_err(|error| Failure::at("--max-lateness", error))?;
        let program = std::env::current_exe().map_err(|e| Failure::at("this program", e))?;
        let [init, sender, receiver] = ["emulate-init", "kernel-sender", "kernel-receiver"];
        let verbs = Verbs { program, init, sender, receiver };
        Ok(Testbed { verbs, max_lateness, interrupted: Arc::clone(interrupted) })
    }
}

fn unusable(error: &StoreError) -> Failure {
    Failure::Unusable(error.to_string())
}

/// The runs of a case, one for each seed.
pub(crate) fn wanted(case: &Settings, seeds: &[u64]) -> Result<Vec<Wanted>, String> {
    let chosen: Vec<_> = case.chosen().map(|(name, value)| format!("{name}={value}")).collect();
    let one = |(index, &seed): (usize, &u64)| {
        let mut words = chosen.clone();
        words.push(index.to_string());
        Ok(Wanted { name: words.join(","), experiment: Experiment::of(case, seed)?, seed })
    };
    seeds.iter().enumerate().map(one).collect()
}

/// How long the runs take, s.
fn estimate(missing: &[&Wanted], parallel: usize) -> f64 {
    let each = missing.iter().map(|one| {
        let Experiment { rtt, .. } = one.experiment;
        (one.experiment.writing() + 4 * rtt) as f64 / 1e9 + START
    });
    let (sum, most) = each.fold((0.0, 0.0_f64), |(sum, most), one| (sum + one, most.max(one)));
    (sum / parallel as f64).max(most)
}

fn words(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match (whole / 3600, whole % 3600 / 60, whole % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// A bar over so many runs.
pub(crate) fn bar(runs: usize) -> ProgressBar {
    let bar = ProgressBar::new(runs as u64);
    let style =
        ProgressStyle::with_template("{wide_bar} {pos}/{len} runs, {elapsed} gone, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

impl Account {
    /// An interruption as the end of all, where what was made before it is of no use.
    pub(crate) fn complete(self) -> Result<Self, Failure> {
        if self.interrupted { Err(Failure::Incomplete) } else { Ok(self) }
    }

    /// Where the runs were made and how far they can be trusted, in one object.
    pub(crate) fn to_json(&self) -> Value {
        let Some(first) = self.environments.first() else { return Value::Null };
        let most = |part: &str, key: &str| {
            let each = self.environments.iter().filter_map(|one| one[part][key].as_f64());
            json!(each.fold(0.0, f64::max))
        };
        let mut loads: Vec<f64> = self
            .environments
            .iter()
            .filter_map(|one| one["load"].as_str()?.split(' ').next()?.parse().ok())
            .collect();
        loads.sort_by(f64::total_cmp);
        let keys = [
            "kernel",
            "clock_source",
            "cpus",
            "offloads",
            "congestion_control",
            "sender",
            "receiver_host",
        ];
        let mut object: Value =
            keys.iter().map(|key| ((*key).to_owned(), first[*key].clone())).collect();
        object["runs"] = json!(self.environments.len());
        object["repeated"] = json!(self.repeated);
        object["load"] = json!([loads.first(), loads.last()]);
        object["emulator_lateness_p99_us"] = most("emulator", "lateness_p99_us");
        object["emulator_lateness_max_us"] = most("emulator", "lateness_max_us");
        object["writes_late_p99_us"] = most("writes", "late_p99_us");
        object["writes_late_max_us"] = most("writes", "late_max_us");
        object
    }

    /// The same in a line.
    pub(crate) fn line(&self) -> String {
        let json = self.to_json();
        let repeated: usize = self.repeated.values().sum();
        format!(
            "kernel {}, {}, {} runs of which {} were there already; {repeated} repeated; emulator late by {:.0} us \
             (p99 of the worst run), {:.0} us at most",
            json["kernel"].as_str().unwrap_or_default(),
            json["congestion_control"].as_str().unwrap_or_default(),
            self.environments.len(),
            self.found,
            json["emulator_lateness_p99_us"].as_f64().unwrap_or(0.0),
            json["emulator_lateness_max_us"].as_f64().unwrap_or(0.0),
        )
    }
}

/// The sender's process of a run: `acklab` alone starts it.
#[derive(Args)]
pub(crate) struct Sender {
    experiment: String,
}

/// The receiver's process of a run: `acklab` alone starts it.
#[derive(Args)]
pub(crate) struct Receiver {
    experiment: String,
}

impl Sender {
    pub(crate) fn run(self) -> Result<(), Failure> {
        std::process::exit(kernel::send(&experiment(&self.experiment)?))
    }
}

impl Receiver {
    pub(crate) fn run(self) -> Result<(), Failure> {
        std::process::exit(kernel::receive(&experiment(&self.experiment)?))
    }
}

fn experiment(text: &str) -> Result<Experiment, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::at("the experiment", error))
}

/// From one run's start to the next at the beginning, ms: making and removing namespaces keeps a processor busy for as long
/// as that, and who is measured meanwhile is measured late.
const APART: u64 = 500;
/// A run that failed so often will fail again.
const ATTEMPTS: u32 = 5;
/// What starting and ending take beside the experiment's time, s.
const START: f64 = 0.5;

//! `acklab dataset write`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acklab_core::time::Span;
use acklab_lab::file::ScenarioFile;
use acklab_lab::parameter::Settings;
use acklab_lab::plan::Plan;
use acklab_worlds::campaign::{Campaign, News};
use acklab_worlds::dataset::case::{self, RunFiles, RunRows};
use acklab_worlds::dataset::layout::{CaseName, RUNS};
use acklab_worlds::dataset::{self, DATA};
use acklab_worlds::exchange::Exchange;
use acklab_worlds::nagle::{Experiment, SCENARIO};
use acklab_worlds::store::Store;
use acklab_worlds::world::World;
use acklab_worlds::{simulated, virtual_kernel};
use clap::Args;

use super::files::{unusable, write_parquet};
use crate::compare;
use crate::file;
use crate::kernel::{self, KernelArgs, Wanted};
use crate::outcome::{Failure, interruption, tell};

/// Make every run and write the data set into a folder; the same command goes on where it was interrupted
#[derive(Args)]
pub(super) struct Make {
    /// The folder
    dir: PathBuf,
    /// Where the runs are made
    #[arg(long, value_name = "WORLD", default_value = "sim")]
    world: World,
    /// Set parameters of nagle-delack; receiver, nagle and rtt take lists, and are the published ones where they are not
    /// set. runs=N is --runs N
    #[arg(long = "set", value_name = "NAME=VALUE", num_args = 1..)]
    sets: Vec<String>,
    /// Runs of each case
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: Option<u64>,
    /// Seed of the first run
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the data set of this folder again, instead of making runs
    #[arg(long, value_name = "DIR", conflicts_with_all = ["world", "sets", "runs", "seed"])]
    from: Option<PathBuf>,
    #[command(flatten)]
    kernel: KernelArgs,
}

impl Make {
    pub(super) fn run(self) -> Result<(), Failure> {
        let data = self.dir.join(DATA);
        fs::create_dir_all(&data).map_err(|error| Failure::at(data.display(), error))?;
        case::remove_unfinished(&data).map_err(|fault| unusable(&fault))?;
        match &self.from {
            Some(from) => Self::again(from, &data)?,
            None => self.make(&data)?,
        }
        let cases = dataset::read(&self.dir).map_err(|fault| unusable(&fault))?;
        write_parquet(&cases, &self.dir)?;
        tell(&format!("acklab: {} cases in {}", cases.len(), data.display()));
        Ok(())
    }

    /// The cases of another data set.
    fn again(from: &Path, data: &Path) -> Result<(), Failure> {
        for case in dataset::read(from).map_err(|fault| unusable(&fault))? {
            if data.join(case.name.to_string()).exists() {
                let what = format!("has {} already; take another folder", case.name);
                return Err(Failure::at(data.display(), what));
            }
            let runs: Vec<RunRows> = case.runs.iter().map(RunFiles::rows).collect();
            if runs.iter().any(|run| run.made.len() != run.left.len()) {
                let what = "its files have different numbers of messages; `acklab dataset verify` tells where";
                return Err(Failure::at(case.path.display(), what));
            }
            case::write(data, &case.name, &runs).map_err(|fault| unusable(&fault))?;
        }
        Ok(())
    }

    /// Every run that is not there yet.
    fn make(&self, data: &Path) -> Result<(), Failure> {
        let plan = self.plan()?;
        self.same_plan(&plan)?;
        let names: Vec<CaseName> = plan.cases.iter().map(case_name).collect();
        let missing: Vec<_> = plan
            .cases
            .iter()
            .zip(&names)
            .filter(|(_, name)| !data.join(name.to_string()).exists())
            .collect();
        let runs = plan.replications as usize;
        let mut made: BTreeMap<CaseName, BTreeMap<usize, RunRows>> = BTreeMap::new();
        let mut take = |name: &CaseName, index: usize, exchange: &Exchange| {
            let rows = RunRows::of(exchange).map_err(|reason| Failure::at(name, reason))?;
            let of_case = made.entry(name.clone()).or_default();
            of_case.insert(index, rows);
            if of_case.len() == runs {
                let rows: Vec<RunRows> = std::mem::take(of_case).into_values().collect();
                case::write(data, name, &rows).map_err(|fault| unusable(&fault))?;
            }
            Ok(())
        };
        let seeds: Vec<u64> = plan.seeds().collect();
        let interrupted = interruption()?;
        if self.world == World::Kernel {
            return self.on_kernel(&missing, &seeds, &interrupted, &mut take);
        }
        let machine =
            (self.world == World::LinuxVt).then(|| compare::machine(PATIENCE, &interrupted));
        let machine = machine.transpose()?;
        let mut tasks = Vec::new();
        for (settings, name) in missing {
            tasks.extend(
                seeds.iter().enumerate().map(|(index, seed)| (settings, name, index, *seed)),
            );
        }
        let scenario = plan.scenario;
        let campaign = Campaign {
            parallel: std::thread::available_parallelism().map_or(1, usize::from),
            apart: Duration::ZERO,
            attempts: 1,
            interrupted: &interrupted,
        };
        let bar = kernel::bar(tasks.len());
        let outcome = campaign.run(
            &tasks,
            |&(settings, _, _, seed)| {
                let stopped = interrupted.load(Ordering::Relaxed);
                let exchange = match &machine {
                    _ if stopped => Err("interrupted".to_owned()),
                    None => simulated::run(scenario, settings, seed),
                    Some(machine) => Experiment::of(settings, seed).and_then(|experiment| {
                        virtual_kernel::run(machine, &experiment, seed).map_err(|e| e.to_string())
                    }),
                };
                // Whatever a run says of its end by Ctrl-C.
                exchange.map_err(|reason| {
                    if interrupted.load(Ordering::Relaxed) {
                        Failure::Incomplete
                    } else {
                        Failure::Unusable(reason)
                    }
                })
            },
            |_| false,
            |&(_, name, index, _), news| match news {
                News::Done(exchange) => {
                    bar.inc(1);
                    take(name, index, &exchange)
                }
                News::Repeated(failure) => Err(failure),
            },
        );
        bar.finish_and_clear();
        match outcome {
            Err(Failure::Incomplete) => {
                tell(
                    "acklab: interrupted; the cases that ended are kept, and the same command goes on",
                );
                Err(Failure::Incomplete)
            }
            outcome => outcome,
        }
    }

    /// Runs on the running kernel, each kept in the folder `runs` with the environment that it had.
    fn on_kernel(
        &self,
        missing: &[(&Settings, &CaseName)],
        seeds: &[u64],
        interrupted: &Arc<AtomicBool>,
        take: &mut dyn FnMut(&CaseName, usize, &Exchange) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let store = Store::open(&self.dir.join("runs"));
        let store = store.map_err(|error| Failure::Unusable(error.to_string()))?;
        let mut wanted = Vec::new();
        let mut names = BTreeMap::new();
        for (settings, name) in missing {
            let of_case = kernel::wanted(settings, seeds).map_err(|e| Failure::at("--set", e))?;
            for (index, one) in of_case.into_iter().enumerate() {
                names.insert(one.name.clone(), ((*name).clone(), index));
                wanted.push(one);
            }
        }
        let account =
            self.kernel.perform(&wanted, Some(&store), interrupted, |one: &Wanted, done| {
                let (name, index) = &names[&one.name];
                take(name, *index, &done.exchange)
            })?;
        let account = account.complete()?;
        tell(&format!("acklab: {}", account.line()));
        let path = self.dir.join("environment.json");
        fs::write(&path, format!("{:#}\n", account.to_json()))
            .map_err(|e| Failure::at(path.display(), e))
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let (runs, sets): (Vec<_>, Vec<_>) =
            self.sets.iter().cloned().partition(|pair| pair.trim_start().starts_with("runs="));
        let mut asked = file::asked(SCENARIO, &sets)?;
        let of_set = runs.last().map(|pair| pair.trim_start()["runs=".len()..].parse::<u64>());
        let of_set =
            of_set.transpose().map_err(|_| Failure::at("--set", "runs= takes a number"))?;
        asked.seed = self.seed;
        asked.all = true;
        asked.replications = Some(self.runs.or(of_set).unwrap_or(RUNS as u64));
        let plan = asked.plan().map_err(|error| Failure::at("--set", error))?;
        let place = |name: &str| ["receiver", "nagle", "rtt"].contains(&name);
        if let Some(axis) = plan.axes.iter().find(|axis| !place(axis.parameter)) {
            let what = "takes one value: the layout has folders for receiver, nagle and rtt alone";
            return Err(Failure::at(axis.parameter, what));
        }
        for settings in plan.cases.iter().filter(|_| self.world != World::Sim) {
            Experiment::of(settings, 0).map_err(|e| Failure::at("--set", e))?;
        }
        Ok(plan)
    }

    /// Says what the folder is of, or refuses a folder that is of something else.
    fn same_plan(&self, plan: &Plan) -> Result<(), Failure> {
        let text = format!("# World: {}\n{}", self.world, ScenarioFile::of(plan).to_text());
        let path = self.dir.join("scenario.toml");
        match fs::read_to_string(&path) {
            Ok(there) if there == text => Ok(()),
            Ok(_) => {
                let what = "this folder has a data set of another world or other settings; take another folder";
                Err(Failure::at(path.display(), what))
            }
            Err(_) => fs::write(&path, text).map_err(|error| Failure::at(path.display(), error)),
        }
    }
}

fn case_name(settings: &Settings) -> CaseName {
    let word = |name: &str| settings.get::<&str>(name).unwrap_or_default();
    let rtt = settings.get::<Span>("rtt").unwrap_or_default();
    CaseName::new(word("receiver"), word("nagle") != "off", rtt.as_nanos())
}

/// The most real time that a run of the kernel in virtual time may take, s.
const PATIENCE: u64 = 300;

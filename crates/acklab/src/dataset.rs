//! `acklab dataset`: the published data set of buffering delays, written, read and checked.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acklab_core::options::Word;
use acklab_lab::expected::Expected;
use acklab_lab::file::ScenarioFile;
use acklab_lab::parameter::Settings;
use acklab_lab::plan::Plan;
use acklab_lab::report;
use acklab_lab::report::run::{RunCase, RunReport};
use acklab_lab::report::text::{lay_out, number};
use acklab_lab::scenario::{Scenario, defaults};
use acklab_worlds::campaign::{Campaign, News};
use acklab_worlds::dataset::case::{self, CaseFiles, RunRows};
use acklab_worlds::dataset::compare::Comparison;
use acklab_worlds::dataset::layout::{CaseName, RUNS};
use acklab_worlds::dataset::{self, DATA, Fault, Summary, columns};
use acklab_worlds::exchange::Exchange;
use acklab_worlds::nagle::SCENARIO;
use acklab_worlds::store::Store;
use acklab_worlds::world::World;
use acklab_worlds::{simulated, virtual_kernel};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::compare;
use crate::file;
use crate::kernel::{self, KernelArgs, Wanted};
use crate::outcome::{Failure, Format, interruption, print, print_json, tell};

/// Write, read or check the data set of Nagle's algorithm and delayed ACKs in its published layout
///
/// The layout is that of Al-Hammouri and Olsen, Data in Brief 39 (2021) 107530:
/// Data/<ReceiverOS>-<NagleOn|NagleOff>-<RTT>ms/ with 42 files for ten runs. docs/kernel-lab.md explains it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Dataset {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Write(Make),
    Read(Read),
    Verify(Verify),
    Compare(Compare),
}

/// Make every run and write the data set into a folder; the same command goes on where it was interrupted
#[derive(Args)]
struct Make {
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

/// Tell what a data set holds: statistics of every case, and its three figures as a report
#[derive(Args)]
struct Read {
    /// The folder that has Data, or Data itself
    dir: PathBuf,
    /// Write report.html and messages.parquet into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How to write the result to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Check that the files of a data set agree with each other; exit 1 where they do not
#[derive(Args)]
struct Verify {
    /// The folder that has Data, or Data itself
    dir: PathBuf,
    /// How to write the result to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Put data sets side by side, case by case: delays, how far apart their distributions are, and how far from theory
#[derive(Args)]
struct Compare {
    /// Data sets, with the name that each has in the tables
    #[arg(value_name = "NAME=DIR", required = true)]
    sets: Vec<String>,
    /// How to write the result to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Compare {
    fn run(self) -> Result<(), Failure> {
        let read = |pair: &String| {
            let (name, dir) = pair
                .split_once('=')
                .ok_or_else(|| Failure::at(pair, "write for example kernel=out/kernel"))?;
            let cases = dataset::read(Path::new(dir)).map_err(|fault| unusable(&fault))?;
            Ok((name.to_owned(), cases))
        };
        let sets = self.sets.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
        let scenario = file::asked(SCENARIO, &[])?.scenario;
        let law = |name: &CaseName| expected(scenario, name).map(|expected| expected.law);
        let comparison = Comparison::new(&sets, law);
        match self.format {
            Format::Text => print(&comparison.to_text()),
            Format::Json => print_json(&comparison.to_json()),
        }
    }
}

impl Dataset {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.verb {
            Verb::Write(verb) => verb.run(),
            Verb::Read(verb) => verb.run(),
            Verb::Verify(verb) => verb.run(),
            Verb::Compare(verb) => verb.run(),
        }
    }
}

fn unusable(fault: &Fault) -> Failure {
    Failure::Unusable(fault.to_string())
}

impl Make {
    fn run(self) -> Result<(), Failure> {
        let data = self.dir.join(DATA);
        fs::create_dir_all(&data).map_err(|error| Failure::at(data.display(), error))?;
        case::remove_unfinished(&data).map_err(|fault| unusable(&fault))?;
        match &self.from {
            Some(from) => self.again(from, &data)?,
            None => self.make(&data)?,
        }
        let cases = dataset::read(&self.dir).map_err(|fault| unusable(&fault))?;
        write_parquet(&cases, &self.dir)?;
        tell(&format!("acklab: {} cases in {}", cases.len(), data.display()));
        Ok(())
    }

    /// The cases of another data set.
    fn again(&self, from: &Path, data: &Path) -> Result<(), Failure> {
        for case in dataset::read(from).map_err(|fault| unusable(&fault))? {
            if data.join(case.name.to_string()).exists() {
                let what = format!("has {} already; take another folder", case.name);
                return Err(Failure::at(data.display(), what));
            }
            let runs: Vec<RunRows> = case.runs.iter().map(dataset::case::RunFiles::rows).collect();
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
        let machine = (self.world == World::LinuxVt).then(|| compare::machine(PATIENCE, &interrupted));
        let machine = machine.transpose()?;
        let mut tasks = Vec::new();
        for (settings, name) in missing {
            tasks.extend(seeds.iter().enumerate().map(|(index, seed)| (settings, name, index, *seed)));
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
                    _ if stopped => Err("interrupted; the same command goes on".to_owned()),
                    None => simulated::run(scenario, settings, seed),
                    Some(machine) => acklab_worlds::nagle::Experiment::of(settings, seed)
                        .and_then(|experiment| {
                            virtual_kernel::run(machine, &experiment, seed).map_err(|e| e.to_string())
                        }),
                };
                exchange.map_err(Failure::Unusable)
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
        outcome
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
        let account = self.kernel.perform(&wanted, Some(&store), interrupted, |one: &Wanted, done| {
            let (name, index) = &names[&one.name];
            take(name, *index, &done.exchange)
        })?;
        tell(&format!("acklab: {}", account.line()));
        let path = self.dir.join("environment.json");
        fs::write(&path, format!("{:#}\n", account.to_json())).map_err(|e| Failure::at(path.display(), e))
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let (runs, sets): (Vec<_>, Vec<_>) =
            self.sets.iter().cloned().partition(|pair| pair.trim_start().starts_with("runs="));
        let mut asked = file::asked(SCENARIO, &sets)?;
        let of_set = runs.last().map(|pair| pair.trim_start()["runs=".len()..].parse::<u64>());
        let of_set = of_set.transpose().map_err(|_| Failure::at("--set", "runs= takes a number"))?;
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
            acklab_worlds::nagle::Experiment::of(settings, 0).map_err(|e| Failure::at("--set", e))?;
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
    let rtt = settings.get::<acklab_core::time::Span>("rtt").unwrap_or_default();
    CaseName::new(word("receiver"), word("nagle") != "off", rtt.as_nanos())
}

fn write_parquet(cases: &[CaseFiles], folder: &Path) -> Result<(), Failure> {
    let path = folder.join("messages.parquet");
    let mut bytes = Vec::new();
    columns(cases).write_parquet(&mut bytes).map_err(|error| Failure::at(path.display(), error))?;
    fs::write(&path, bytes).map_err(|error| Failure::at(path.display(), error))
}

/// A case ready to be told.
struct Told<'a> {
    files: &'a CaseFiles,
    delays: Vec<f64>,
    summary: Summary,
    expected: Option<Expected>,
}

impl Read {
    fn run(self) -> Result<(), Failure> {
        let cases = dataset::read(&self.dir).map_err(|fault| unusable(&fault))?;
        let scenario = file::asked(SCENARIO, &[])?.scenario;
        let told: Vec<Told<'_>> = cases.iter().filter_map(|files| tell_of(scenario, files)).collect();
        if let Some(out) = &self.out {
            fs::create_dir_all(out).map_err(|error| Failure::at(out.display(), error))?;
            write_parquet(&cases, out)?;
            let html = self.page(scenario, &told).map_err(|error| Failure::at("report.html", error))?;
            let path = out.join("report.html");
            fs::write(&path, html).map_err(|error| Failure::at(path.display(), error))?;
        }
        match self.format {
            Format::Text => print(&text(&told)),
            Format::Json => print_json(&json!({
                "schema": SCHEMA,
                "cases": told.iter().map(to_json).collect::<Vec<_>>(),
            })),
        }
    }

    fn page(&self, scenario: &dyn Scenario, told: &[Told<'_>]) -> Result<String, impl std::fmt::Display + use<>> {
        let declaration = scenario.declaration();
        let cases = told.iter().map(|one| RunCase {
            axes: axes(&one.files.name),
            samples: &one.delays,
            numbers: vec![one.files.messages_per_segment()],
            expected: one.expected.clone(),
        });
        let mut conditions = report::conditions(format!("acklab dataset read {}", self.dir.display()));
        conditions.retain(|(name, _)| name != "world");
        report::run::run_html(&RunReport {
            scenario: declaration.name.into(),
            summary: format!("Buffering delays of the data set in {}", self.dir.display()),
            metric: "buffering delay".into(),
            unit: "ms".into(),
            numbers: vec![("messages per segment".into(), String::new())],
            cases: cases.collect(),
            replications: told.first().map_or(0, |one| one.files.runs.len() as u64),
            figures: declaration.figures,
            terms: declaration.terms.to_vec(),
            conditions,
            ..RunReport::default()
        })
    }
}

/// As the scenario's parameters say it, so that its figures find their cases.
fn axes(name: &CaseName) -> Vec<(String, String)> {
    let system = name.system().map_or(name.receiver.clone(), |system| system.name().to_owned());
    let nagle = if name.nagle { "on" } else { "off" };
    [("receiver", system), ("nagle", nagle.to_owned()), ("rtt", format!("{}ms", name.rtt as f64 / 1e6))]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
}

fn tell_of<'a>(scenario: &'static dyn Scenario, files: &'a CaseFiles) -> Option<Told<'a>> {
    let delays = files.delays_ms();
    let summary = Summary::from_samples(&delays)?;
    let expected = expected(scenario, &files.name);
    Some(Told { files, delays, summary, expected })
}

/// What theory says of a case, at the published period and size of messages.
fn expected(scenario: &dyn Scenario, name: &CaseName) -> Option<Expected> {
    let mut settings = defaults(scenario);
    let known = name.system().is_some()
        && axes(name).iter().all(|(name, value)| settings.set(name, value).is_ok());
    known.then(|| scenario.expected(&settings)).flatten()
}

fn text(told: &[Told<'_>]) -> String {
    let rows: Vec<_> = told
        .iter()
        .map(|one| {
            let Summary { count, mean, p50, p95, max, .. } = one.summary;
            let law = one.expected.as_ref();
            let mut row = vec![one.files.name.to_string(), one.files.runs.len().to_string(), count.to_string()];
            row.extend([mean, p50, p95, max].map(|value| number(value, 3)));
            row.push(number(one.files.messages_per_segment(), 2));
            row.extend([law.map(|law| law.mean_low), law.map(|law| law.mean_high), law.map(|law| law.max)]
                .map(|value| number(value.unwrap_or(f64::NAN), 0)));
            row
        })
        .collect();
    let heading = [
        "case", "runs", "messages", "mean ms", "p50", "p95", "max", "per segment", "ideal", "drifting", "C",
    ];
    lay_out(&heading, &rows)
}

fn to_json(one: &Told<'_>) -> Value {
    let name = &one.files.name;
    let Summary { count, mean, p50, p95, max, .. } = one.summary;
    json!({
        "case": name.to_string(),
        "receiver": name.receiver,
        "nagle": if name.nagle { "on" } else { "off" },
        "rtt_ms": name.rtt as f64 / 1e6,
        "runs": one.files.runs.len(),
        "messages": count,
        "messages_per_segment": one.files.messages_per_segment(),
        "buffering_delay_ms": { "mean": mean, "p50": p50, "p95": p95, "max": max },
        "closed_form": one.expected.as_ref().map(|law| json!({
            "mean_ideal_clocks": law.mean_low, "mean_drifting_clocks": law.mean_high, "max": law.max,
        })),
    })
}

impl Verify {
    fn run(self) -> Result<(), Failure> {
        let checked = dataset::check(&self.dir).map_err(|fault| unusable(&fault))?;
        let messages: usize = checked.cases.iter().map(|case| case.all.rows.len()).sum();
        match self.format {
            Format::Json => print_json(&json!({
                "schema": VERIFY_SCHEMA,
                "cases": checked.cases.len(),
                "messages": messages,
                "faults": checked.faults.iter().map(|fault| json!({
                    "file": fault.path.display().to_string(), "line": fault.line, "what": fault.what,
                })).collect::<Vec<_>>(),
            }))?,
            Format::Text => {
                let shown = checked.faults.iter().take(MOST_SHOWN);
                let mut lines: String = shown.map(|fault| format!("{fault}\n")).collect();
                if let Some(more @ 1..) = checked.faults.len().checked_sub(MOST_SHOWN) {
                    let _ = writeln!(lines, "and {more} more; --format json has all");
                }
                print(&format!(
                    "{lines}{} cases, {messages} messages: {}\n",
                    checked.cases.len(),
                    match checked.faults.len() {
                        0 => "all files agree".to_owned(),
                        count => format!("{count} faults"),
                    }
                ))?;
            }
        }
        if checked.faults.is_empty() { Ok(()) } else { Err(Failure::Check) }
    }
}

/// Names of the results' forms.
const SCHEMA: &str = "acklab.dataset/1";
const VERIFY_SCHEMA: &str = "acklab.dataset-verify/1";
/// Faults that a terminal shows.
const MOST_SHOWN: usize = 50;
/// The most real time that a run of the kernel in virtual time may take, s.
const PATIENCE: u64 = 300;

const EXAMPLES: &str = "\
Examples:
  acklab dataset write out/sim                              40 cases of 10 runs in virtual time
  acklab dataset write out/vt --world linux-vt --set receiver=linux,freebsd-12.1 nagle=on,off rtt=30ms,100ms
  sudo acklab dataset write out/kernel --world kernel       the running kernel: about half an hour
  acklab dataset read out/kernel --out out/kernel/report
  acklab dataset verify out/kernel                          or the published one, unpacked
  acklab dataset write out/again --from out/kernel          the same bytes again
  acklab dataset compare sim=out/sim linux-vt=out/vt kernel=out/kernel";

//! `acklab run`: a scenario in virtual time.

#[cfg(target_os = "linux")]
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acklab_lab::file::Asked;
use acklab_lab::measured::{Measured, Metrics};
use acklab_lab::output::Folder;
use acklab_lab::plan::Plan;
use acklab_lab::results::{CaseResult, Results, hex};
use acklab_lab::scenario::CapturePoint;
use acklab_lab::{capture, run};
#[cfg(target_os = "linux")]
use acklab_worlds::{scenario::InLinux, store::Store};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

#[cfg(target_os = "linux")]
use crate::compare;
use crate::file;
#[cfg(target_os = "linux")]
use crate::kernel::{self, Account, KernelArgs};
use crate::names;
#[cfg(target_os = "linux")]
use crate::outcome::interruption;
use crate::outcome::{Failure, Format, discard, early_end, print, print_json, tell};
use acklab_lab::report::text::{lay_out, number};

/// Run a scenario and report what it measured
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// Name of a built-in scenario (see `acklab scenarios`), the scenario.toml of an earlier run, or a
    /// network's file
    #[arg(value_parser = names::scenarios(), hide_possible_values = true)]
    scenario: String,
    /// Set parameters; `acklab scenarios NAME` lists them. A list (queue=codel,pie) or a range
    /// (rate=10mbit..100mbit:10mbit) runs every combination
    #[arg(long = "set", value_name = "NAME=VALUE", num_args = 1.., value_parser = names::parameters(),
          hide_possible_values = true)]
    sets: Vec<String>,
    /// Look closer at this link of a network, such as "r1 -> r2"; repeat it for more. The first is the one
    /// whose queue is measured [default: the file's]
    #[arg(long, value_name = "LINK")]
    watch: Vec<String>,
    /// Run the scenario's whole grid of cases instead of one
    #[arg(long)]
    all: bool,
    /// Seed of the first replication; the others' are derived from it [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Number of replications, each with another seed [default: the scenario's]
    #[arg(long, alias = "reps", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    replications: Option<u64>,
    /// Run it although it would send so many packets; a plan may send 1000 million, one of nagle-delack,
    /// write-write-read or motor-loop, which keep something of each, 10 million
    #[arg(long, value_name = "N")]
    packets_max: Option<u64>,
    /// Where to run it
    #[arg(long, value_enum, default_value = "sim")]
    world: World,
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    kernel: KernelArgs,
    /// Write result.json, samples.parquet, replications.parquet, report.html and scenario.toml into this
    /// folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the packets of the first replication into this pcapng file
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Where on the path to capture
    #[arg(long, value_enum, default_value = "sender", requires = "capture")]
    capture_at: At,
    /// How to write the result to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum World {
    /// acklab's TCP in virtual time
    Sim,
    /// The Linux kernel in virtual time (make linux-vt; docs/linux-vt.md)
    #[cfg(target_os = "linux")]
    LinuxVt,
    /// The running Linux kernel, in real time: nagle-delack alone (root; docs/kernel-lab.md). With --out, runs are kept
    /// in its folder `runs`, and the same command goes on where it was interrupted
    #[cfg(target_os = "linux")]
    Kernel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum At {
    /// At the host that sends the data
    Sender,
    /// Half way between the hosts
    Middle,
    /// At the host that receives the data
    Receiver,
}

impl Run {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let asked = file::asked_watching(&self.scenario, &self.sets, &self.watch)?;
        #[cfg(target_os = "linux")]
        let ended = if self.world == World::Sim { early_end()? } else { interruption()? };
        #[cfg(target_os = "linux")]
        let (asked, guests) = self.in_world(asked, &ended)?;
        let plan = self.plan(asked)?;
        // Whatever cannot be written is refused before anything is computed.
        if let Some(dir) = self.out.as_ref().filter(|dir| dir.join("result.json").exists()) {
            tell(&format!("{}: the files of an earlier run are replaced", dir.display()));
        }
        let folder = match &self.out {
            Some(dir) => Some(Folder::create(dir, &plan).map_err(|e| Failure::at("--out", e))?),
            None => None,
        };
        let capture = match &self.capture {
            Some(path) => Some((path, create(path)?)),
            None => None,
        };

        #[cfg(target_os = "linux")]
        let account = self.runs(&plan, guests, &ended)?;
        let closely = folder.is_some() || !self.watch.is_empty();
        let bar = progress(&plan);
        // Runs on the running kernel were made before: what is there is told.
        let stop = if self.world == World::Sim { Arc::clone(&ended) } else { Arc::default() };
        let results = if closely {
            run::run_closely_until(&plan, &stop, &|| bar.inc(1))
        } else {
            run::run_until(&plan, &stop, &|| bar.inc(1))
        };
        bar.finish_and_clear();
        #[cfg(target_os = "linux")]
        if let Some(reason) = guests.and_then(InLinux::failure)
            && !ended.load(Ordering::Relaxed)
        {
            return Err(Failure::at(&self.scenario, reason));
        }
        if results.cases.is_empty() {
            tell("interrupted before a replication was done");
            return Err(Failure::Incomplete);
        }
        if let Some((path, file)) = capture {
            let at = match self.capture_at {
                At::Sender => CapturePoint::Sender,
                At::Middle => CapturePoint::Middle,
                At::Receiver => CapturePoint::Receiver,
            };
            let written = capture::write(&plan, at, file);
            if written.map_err(|error| Failure::at(path.display(), error))? == 0 {
                let removed = discard(path);
                removed.map_err(|error| Failure::at(path.display(), error))?;
                let name = plan.scenario.declaration().name;
                let reason = format!("--capture: {name} has no packets that could be captured");
                return Err(Failure::Unusable(reason));
            }
        }
        if let Some(folder) = &folder {
            folder.write(&results).map_err(|e| Failure::at(folder.path().display(), e))?;
        }
        match self.format {
            Format::Json => {
                let mut json = results.to_json();
                #[cfg(target_os = "linux")]
                if let Some(account) = account {
                    json["environment"] = account.to_json();
                }
                print_json(&json)
            }
            Format::Text => {
                let mut text = text(&results, folder.as_ref().map(Folder::path));
                #[cfg(target_os = "linux")]
                if let Some(account) = account {
                    let _ = writeln!(text, "{}", account.line());
                }
                print(&text)
            }
        }?;
        if results.is_complete { Ok(()) } else { Err(Failure::Incomplete) }
    }

    /// The runs of `plan` on the running kernel, where that is the world.
    #[cfg(target_os = "linux")]
    fn runs(
        &self,
        plan: &Plan,
        linux: Option<&'static InLinux>,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Option<Account>, Failure> {
        let Some(linux) = linux.filter(|_| self.world == World::Kernel) else { return Ok(None) };
        let store = self.out.as_ref().map(|out| Store::open(&out.join("runs"))).transpose();
        let store = store.map_err(|error| Failure::Unusable(error.to_string()))?;
        let seeds: Vec<u64> = plan.seeds().collect();
        let (mut wanted, mut settings) = (Vec::new(), BTreeMap::new());
        for case in &plan.cases {
            let of_case = kernel::wanted(case, &seeds).map_err(|e| Failure::at("--set", e))?;
            settings.extend(of_case.iter().map(|one| (one.name.clone(), case)));
            wanted.extend(of_case);
        }
        self.kernel
            .perform(&wanted, store.as_ref(), interrupted, |one, done| {
                linux.hand_over(settings[&one.name], one.seed, done);
                Ok(())
            })
            .map(Some)
    }

    /// The scenario in the world that was chosen, and its guests where these are Linux.
    #[cfg(target_os = "linux")]
    fn in_world(
        &self,
        asked: Asked,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<(Asked, Option<&'static InLinux>), Failure> {
        if self.world == World::Sim {
            return Ok((asked, None));
        }
        if self.capture.is_some() {
            let reason = "--capture: of virtual time alone; acklab compare --out keeps the kernel's captures";
            return Err(Failure::Unusable(reason.into()));
        }
        let guests = if self.world == World::Kernel {
            InLinux::running(asked.scenario).ok_or_else(|| {
                Failure::at(&self.scenario, "runs on the running kernel: nagle-delack alone")
            })?
        } else {
            let machine = compare::machine(PATIENCE, interrupted)?;
            let guests = InLinux::new(asked.scenario, machine);
            guests.ok_or_else(|| compare::no_other_world(&self.scenario))?
        };
        Ok((Asked { scenario: guests, ..asked }, Some(guests)))
    }

    /// The plan that the arguments describe, on top of a scenario file's if one is named.
    fn plan(&self, mut asked: Asked) -> Result<Plan, Failure> {
        asked.all |= self.all;
        asked.seed = self.seed.unwrap_or(asked.seed);
        asked.replications = self.replications.or(asked.replications);
        let what = if self.sets.is_empty() { &self.scenario } else { "--set" };
        let plan = asked.plan().and_then(|plan| plan.within(self.packets_max.map(u128::from)));
        let plan = plan.map_err(|error| Failure::at(what, error))?;
        if plan.is_grid() && self.capture.is_some() {
            return Err(Failure::Unusable(
                "--capture: a capture is of one case; leave out --all and lists, and --set that case"
                    .into(),
            ));
        }
        Ok(plan)
    }
}

/// Replications done of how many, and how long the rest will take, on a terminal.
fn progress(plan: &Plan) -> ProgressBar {
    let all = plan.replications * plan.cases.len() as u64;
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} replications, {eta} to go");
    let bar = ProgressBar::new(all);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn create(path: &Path) -> Result<BufWriter<fs::File>, Failure> {
    let file: io::Result<_> = fs::File::create(path);
    file.map(BufWriter::new).map_err(|e| Failure::at(path.display(), e))
}

fn text(results: &Results, folder: Option<&Path>) -> String {
    let plan = &results.plan;
    let main = plan.scenario.declaration().main_metric;
    let mut text = format!(
        "{}: {} case(s) of {} replication(s), seed {}\n\n",
        plan.scenario.declaration().name,
        plan.cases.len(),
        plan.replications,
        plan.seed
    );
    let has_intervals = plan.replications > 1 && !closed_form_exists(results);
    if plan.is_grid() && (plan.scenario.network_file().is_some() || has_intervals) {
        let comparison = results.comparison();
        text.push_str(&comparison.table().to_text());
        for sentence in comparison.outcomes() {
            let _ = write!(text, "\n{sentence}");
        }
        text.push('\n');
    } else if plan.is_grid() {
        text.push_str(&cases_table(results, main));
    } else {
        text.push_str(&metrics_table(results));
        if let Some(network) = results.looked() {
            let (flows, links) = (network.flow_table(), network.link_table());
            let _ = write!(text, "\n{}\n{}", flows.to_text(), links.to_text());
        } else if results.flows.len() > 1 {
            let _ = write!(text, "\n{}", flows_table(results));
        }
    }
    for note in results.notes() {
        let _ = writeln!(text, "\nnote: {note}");
    }
    if !results.is_complete {
        let all = plan.replications * plan.cases.len() as u64;
        let done = results.replications_done();
        let _ = writeln!(text, "\nnot complete: interrupted after {done} of {all} replications");
    }
    let timing = &results.timing;
    let _ = writeln!(
        text,
        "\n{} events in {:.3} s of CPU time ({:.3} s elapsed); result hash {}",
        timing.events,
        timing.cpu_s,
        timing.wall_s,
        hex(results.hash)
    );
    if let Some(folder) = folder {
        let _ = writeln!(text, "report: {}", folder.join("report.html").display());
    }
    text
}

fn cases_table(results: &Results, main: &str) -> String {
    let sides = results.plan.scenario.declaration().side_metrics;
    let rows: Vec<_> = results
        .cases
        .iter()
        .map(|case| {
            let mut row = vec![case.name(&results.plan)];
            row.extend(quantiles(&case.metrics, main).map(|value| reading(main, value)));
            row.extend(closed_form(results, case));
            row.extend(sides.iter().map(|name| side(&case.metrics, name)));
            row
        })
        .collect();
    let mut heading = vec!["case", "mean", "p50", "p95", "max"];
    let has_law = closed_form_exists(results);
    if has_law {
        heading.extend(["ideal", "drifting", "C"]);
    }
    heading.extend(sides);
    let mut text = format!("{main} by case, and other metrics:\n{}", lay_out(&heading, &rows));
    if has_law {
        text.push_str(CLOSED_FORM);
    }
    text
}

/// Whether theory says something of at least one case.
fn closed_form_exists(results: &Results) -> bool {
    let scenario = results.plan.scenario;
    results.cases.iter().any(|case| scenario.expected(&case.settings).is_some())
}

/// The closed form's means and maximum, where any case has one.
fn closed_form(results: &Results, case: &CaseResult) -> Vec<String> {
    if !closed_form_exists(results) {
        return vec![];
    }
    let law = results.plan.scenario.expected(&case.settings);
    let values = law.map_or([f64::NAN; 3], |law| [law.mean_low, law.mean_high, law.max]);
    values.map(|value| number(value, 0)).to_vec()
}

fn metrics_table(results: &Results) -> String {
    let (mut rows, mut totals, mut empty) = (Vec::new(), Vec::new(), Vec::new());
    let replications = results.cases.first().map(|case| &case.replications);
    // Half of the 95 % interval of the mean over replications.
    let spread = |name: &str| {
        let interval = replications.and_then(|replications| replications.interval(name));
        interval.map_or_else(String::new, |interval| reading(name, interval.half_width))
    };
    let with_spread = results.replications_done() > 1;
    for (name, measured) in results.metrics.iter() {
        let mut row = vec![name.to_owned()];
        match measured {
            Measured::Total(total) => {
                totals.push(vec![name.to_owned(), total.to_string()]);
                continue;
            }
            // One sample has no quantiles.
            Measured::Samples(only) if only.len() == 1 => row.push(reading(name, only[0])),
            Measured::Samples(_) | Measured::Shares(_) | Measured::Delays(_) => {
                let values = quantiles(&results.metrics, name);
                if values.iter().all(|value| value.is_nan()) {
                    empty.push(name);
                    continue;
                }
                row.extend(values.map(|value| reading(name, value)));
                row.insert(2, spread(name));
            }
            Measured::Ratio { .. } => {
                row.extend([reading(name, results.metrics.number(name)), spread(name)]);
            }
        }
        row.resize(6, String::new());
        if !with_spread {
            row.remove(2);
        }
        rows.push(row);
    }
    let mut heading = vec!["metric", "mean", "+- 95 %", "p50", "p95", "max"];
    if !with_spread {
        heading.remove(2);
    }
    let mut text = lay_out(&heading, &rows);
    if !totals.is_empty() {
        let title = format!("total of {} replication(s)", results.replications_done());
        let _ = write!(text, "\n{}", lay_out(&["metric", &title], &totals));
    }
    if !empty.is_empty() {
        let _ = writeln!(text, "nothing measured: {}", empty.join(", "));
    }
    text
}

/// Each flow's metrics as one number each: means, totals, ratios.
fn flows_table(results: &Results) -> String {
    let names: BTreeSet<&str> =
        results.flows.iter().flat_map(|flow| flow.metrics.iter().map(|(name, _)| name)).collect();
    let rows: Vec<_> = results
        .flows
        .iter()
        .map(|flow| {
            let values = names.iter().map(|name| side(&flow.metrics, name));
            std::iter::once(flow.id.clone()).chain(values).collect()
        })
        .collect();
    let heading: Vec<&str> = std::iter::once("flow").chain(names.iter().copied()).collect();
    lay_out(&heading, &rows)
}

/// A metric as one number.
fn side(metrics: &Metrics, name: &str) -> String {
    reading(name, metrics.number(name))
}

/// A value of that metric: rates in SI units, counts without decimals.
fn reading(name: &str, value: f64) -> String {
    let (scaled, unit) = match value {
        _ if !name.ends_with("_bps") || value.is_nan() => (value, ""),
        _ if value >= 1e6 => (value / 1e6, " Mbit/s"),
        _ if value >= 1e3 => (value / 1e3, " kbit/s"),
        _ => (value, " bit/s"),
    };
    let digits = if scaled.fract() == 0.0 { 0 } else { 3 };
    format!("{}{unit}", number(scaled, digits))
}

/// Mean, median, 95 % quantile and maximum; NaN where nothing was measured.
fn quantiles(metrics: &Metrics, name: &str) -> [f64; 4] {
    metrics
        .spread(name)
        .map_or([f64::NAN; 4], |spread| [spread.mean, spread.p50, spread.p95, spread.max])
}

/// What the three columns of theory mean.
const CLOSED_FORM: &str = "
ideal, drifting: the closed form's mean on ideal clocks (the default) and with any drift or jitter
(--set jitter=1ms); C: its maximum, the cycle of round trip and delayed ACK.
";

/// The most real time that a replication of the kernel may take, s.
#[cfg(target_os = "linux")]
const PATIENCE: u64 = 300;

const EXAMPLES: &str = "\
Examples:
  acklab run nagle-delack                          the defaults: QNX sends, Linux receives
  acklab run nagle-delack --set receiver=qnx-7.0 nagle=on rtt=30ms --format json
  acklab run nagle-delack --all --out out/seed0    4 systems x Nagle on/off x 5 round trips
  acklab run nagle-delack --set receiver=windows-7 --capture slow.pcapng --capture-at middle
  acklab run out/seed0/scenario.toml               the same again
  acklab run scenarios/parking-lot.toml            a network of one's own (docs/network-file.md)
  acklab run scenarios/parking-lot.toml --out out/lot --watch 'r1 -> r2' --watch 'r2 -> r3'";

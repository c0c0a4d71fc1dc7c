//! `acklab compare`: one network in several worlds.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acklab_core::time::Time;
use acklab_lab::blueprint::Blueprint;
use acklab_lab::network_file::NetworkFile;
use acklab_lab::parameter::Settings;
use acklab_lab::scenario::{Graph, Scenario};
use acklab_tcp::System;
use acklab_worlds::compare::Comparison;
use acklab_worlds::exchange::Exchange;
use acklab_worlds::linux_vt::{self, Machine, Verbs};
use acklab_worlds::nagle::Experiment;
use acklab_worlds::recorded::{self, Recording};
use acklab_worlds::scenario::Source;
use acklab_worlds::seen::Seen;
use acklab_worlds::virtual_kernel;
use acklab_worlds::world::{self, World};
use acklab_worlds::{guest, report};
use clap::Args;

use crate::file;
use crate::kernel::{self, KernelArgs};
use crate::outcome::{Failure, Format, command_line, interruption, print, print_json, tell};

/// Run one network in several worlds and tell what differs
///
/// `sim` is acklab's own TCP in virtual time, `linux-vt` the Linux kernel in virtual time (`make linux-vt` builds
/// it), `kernel` the running one in real time (nagle-delack alone; root). All see the same writes; losses and other
/// randomness are each world's own.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compare {
    /// A network's file, or nagle-delack
    #[arg(value_name = "SCENARIO|FILE")]
    file: String,
    /// The worlds, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "sim,linux-vt")]
    worlds: Vec<World>,
    /// Set parameters; `acklab scenarios FILE` lists them
    #[arg(long = "set", value_name = "NAME=VALUE", num_args = 1..)]
    sets: Vec<String>,
    /// Seed of the first replication [default: the file's]
    #[arg(long)]
    seed: Option<u64>,
    /// Number of replications in each world [default: the file's]
    #[arg(long, alias = "reps", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    replications: Option<u64>,
    /// Take what the kernel did in linux-vt from this file instead of running it; bulk flows alone
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    recorded: Option<PathBuf>,
    /// Keep what the kernel did in linux-vt in this file, beside what is there; bulk flows alone
    #[arg(long, value_name = "FILE", conflicts_with = "sets")]
    record: Option<PathBuf>,
    /// The most real time that one replication of the kernel may take, seconds
    #[arg(long, default_value = "300", value_name = "SECONDS")]
    patience: u64,
    #[command(flatten)]
    kernel: KernelArgs,
    /// Write result.json, report.html and the kernel's log and captures of the first replication into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How to write the result to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Compare {
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        self.worlds.sort_unstable();
        self.worlds.dedup();
        let asked = file::asked(&self.file, &self.sets)?;
        let cases = asked.plan().map_err(|e| Failure::at("--set", e))?.cases;
        let [settings] = &cases[..] else {
            let reason = "several cases; compare looks at one: --set a value of each sweep";
            return Err(Failure::at(&self.file, reason));
        };
        let source = Source::of(asked.scenario).ok_or_else(|| no_other_world(&self.file))?;
        let interrupted = interruption()?;
        let in_guests = self.worlds.contains(&World::LinuxVt) && self.recorded.is_none();
        let machine = in_guests.then(|| machine(self.patience, &interrupted)).transpose()?;
        if let Some(out) = &self.out {
            fs::create_dir_all(out).map_err(|e| Failure::at(out.display(), e))?;
        }
        let first = self.seed.unwrap_or(asked.seed);
        let replications = self.replications.or(asked.replications).unwrap_or(1);
        let seeds: Vec<u64> = (0..replications).map(|add| first.wrapping_add(add)).collect();
        let running = self.on_kernel(&source, settings, &seeds, &interrupted)?;
        let mut others = Others { machine, running, recording: self.recording()? };
        let mut comparison = None;
        // Ctrl-C while the running kernel worked: what it did is compared with the worlds that take no time.
        let before = interrupted.load(Ordering::Relaxed);
        for seed in seeds {
            if before && !others.running.contains_key(&seed) {
                continue;
            }
            let done = self.replicate(&source, settings, seed, &mut others, &mut comparison);
            if interrupted.load(Ordering::Relaxed) && !(before && done.is_ok()) {
                break;
            }
            done.map_err(|reason| Failure::at(&self.file, reason))?;
        }
        let is_complete = !interrupted.load(Ordering::Relaxed);
        let Some(mut comparison) = comparison else {
            tell("acklab: interrupted before a replication was done");
            return Err(Failure::Incomplete);
        };
        comparison.set_complete(is_complete);
        for line in comparison.errors() {
            tell(&format!("acklab: {line}"));
        }
        if let Some(path) = &self.record {
            others.recording.write(path).map_err(|e| Failure::at(path.display(), e))?;
        }
        if let Some(out) = &self.out {
            self.write(&comparison, out).map_err(|reason| Failure::at(out.display(), reason))?;
        }
        match self.format {
            Format::Json => print_json(&comparison.to_json())?,
            Format::Text => print(&comparison.to_text())?,
        }
        if is_complete { Ok(()) } else { Err(Failure::Incomplete) }
    }

    /// The runs on the running kernel, if it is one of the worlds: side by side, since they take real time.
    fn on_kernel(
        &self,
        source: &Source,
        settings: &Settings,
        seeds: &[u64],
        interrupted: &Arc<AtomicBool>,
    ) -> Result<BTreeMap<u64, Exchange>, Failure> {
        let mut runs = BTreeMap::new();
        if !self.worlds.contains(&World::Kernel) {
            return Ok(runs);
        }
        if !matches!(source, Source::Nagle) {
            return Err(Failure::at(&self.file, "runs on the running kernel: nagle-delack alone"));
        }
        let wanted = kernel::wanted(settings, seeds).map_err(|e| Failure::at("--set", e))?;
        let account = self.kernel.perform(&wanted, None, interrupted, |one, done| {
            runs.insert(one.seed, done.exchange);
            Ok(())
        })?;
        tell(&format!("acklab: {}", account.line()));
        Ok(runs)
    }

    /// What of the kernel is kept, in the file that was given.
    fn recording(&self) -> Result<Recording, Failure> {
        let Some(path) = self.recorded.as_ref().or(self.record.as_ref()) else {
            return Ok(Recording::default());
        };
        if self.record.is_some() && !path.exists() {
            return Ok(Recording::default());
        }
        Recording::read(path).map_err(|reason| Failure::at(path.display(), reason))
    }

    /// The kernel in virtual time: as it was recorded, or in a guest, whose run is kept where that is asked for.
    fn emulate(
        &self,
        graph: &Graph,
        network: &Blueprint<'_>,
        seed: u64,
        first: bool,
        others: &mut Others,
    ) -> Result<Vec<Seen>, String> {
        let Some(machine) = &others.machine else {
            return self.recall(&others.recording, network, seed);
        };
        let keep = self.out.as_deref().filter(|_| first);
        let done = world::emulate(machine, network, seed, keep).map_err(|e| e.to_string())?;
        if self.record.is_some() {
            let job = recorded::job_key(network).map_err(|e| e.to_string())?;
            let text = graph.network_file().map_or("", NetworkFile::text);
            let of = [&self.stem(), text, &done.kernel];
            others.recording.add(of, seed, job, &done.flows);
        }
        Ok(done.flows)
    }

    /// What the kernel did as it was recorded.
    fn recall(
        &self,
        kept: &Recording,
        network: &Blueprint<'_>,
        seed: u64,
    ) -> Result<Vec<Seen>, String> {
        let job = recorded::job_key(network).map_err(|e| e.to_string())?;
        kept.find(&job, seed).unwrap_or_else(|| {
            let path = self.recorded.as_deref().unwrap_or(Path::new("FILE")).display();
            Err(format!(
                "{path} has no run of this network with seed {seed}; where there is a kernel, --worlds linux-vt --seed \
                 {seed} --record {path} adds it"
            ))
        })
    }

    /// The file's name in a recording.
    fn stem(&self) -> String {
        Path::new(&self.file)
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into())
    }

    /// Result and report.
    fn write(&self, comparison: &Comparison, out: &Path) -> Result<(), String> {
        let page = report::page(comparison, self.file.clone(), command_line());
        let html = page.to_html().map_err(|e| e.to_string())?;
        let json = format!("{:#}\n", comparison.to_json());
        for (name, text) in [("result.json", json), ("report.html", html)] {
            fs::write(out.join(name), text).map_err(|e| format!("{name}: {e}"))?;
        }
        Ok(())
    }

    /// One replication in each world.
    fn replicate(
        &self,
        source: &Source,
        settings: &Settings,
        seed: u64,
        others: &mut Others,
        comparison: &mut Option<Comparison>,
    ) -> Result<(), String> {
        let experiment = match source {
            Source::Nagle => Some(Experiment::of(settings, seed)?),
            Source::File(_) => None,
        };
        let foreign = experiment.as_ref().filter(|one| one.system() != System::Linux);
        let (graph, settings) = source.network(settings, seed)?;
        let network = graph.blueprint(&settings, seed)?;
        let end = Time::ZERO + network.duration;
        let flows = network.flows.iter();
        let flows = flows.map(|flow| (flow.name.to_owned(), end.since(flow.start).as_secs_f64()));
        let first = comparison.is_none();
        if (self.recorded.is_some() || self.record.is_some())
            && (foreign.is_some() || !recorded::can_keep(&network))
        {
            return Err("only networks of bulk flows are recorded".to_owned());
        }
        if others.machine.is_some() && foreign.is_none() && first {
            world::ready(&network).map_err(|e| e.to_string())?;
        }
        // Every world or none: what is ended in the middle of a replication is not kept.
        let mut all = Vec::new();
        for world in &self.worlds {
            let flows = match (world, &others.machine) {
                (World::LinuxVt, Some(machine)) if foreign.is_some() => {
                    let exchange = virtual_kernel::run(machine, foreign.ok_or("no flow")?, seed);
                    let exchange = exchange.map_err(|e| e.to_string())?;
                    vec![exchange.seen(&network).ok_or("no flow")?]
                }
                (World::LinuxVt, _) => self.emulate(graph, &network, seed, first, others)?,
                (World::Sim, _) => world::simulate(graph, &settings, &network, seed),
                (World::Kernel, _) => {
                    let exchange = others.running.get(&seed).ok_or("the run was not made")?;
                    vec![exchange.seen(&network).ok_or("no flow")?]
                }
            };
            all.push((*world, flows));
        }
        let comparison = comparison.get_or_insert_with(|| Comparison::new(flows));
        for (world, flows) in all {
            comparison.push(world, flows);
        }
        Ok(())
    }
}

/// What is needed beside virtual time.
struct Others {
    machine: Option<Machine>,
    recording: Recording,
    /// By seed.
    running: BTreeMap<u64, Exchange>,
}

/// What `scenario` is told that runs in virtual time alone.
pub(crate) fn no_other_world(scenario: &str) -> Failure {
    Failure::Unusable(format!(
        "{scenario}: networks' files (docs/network-file.md) and nagle-delack run in other worlds, and nothing else"
    ))
}

/// The Linux kernel in virtual time, where a replication may take `patience` seconds.
pub(crate) fn machine(patience: u64, interrupted: &Arc<AtomicBool>) -> Result<Machine, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::at("this program", e))?;
    let [keeper, kernel, guest] = ["linux-vt-keeper", "linux-vt-kernel", "linux-vt-guest"];
    let verbs = Verbs { program, keeper, kernel, guest };
    Ok(Machine::new(verbs, Duration::from_secs(patience), Arc::clone(interrupted)))
}

/// Keeps a guest for `acklab compare`
#[derive(Args)]
pub(crate) struct Keeper {
    /// What becomes the guest's kernel
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

impl Keeper {
    pub(crate) fn run(self) -> Result<(), Failure> {
        linux_vt::keep(&self.command).map_err(|e| Failure::at("the guest", e))
    }
}

/// Becomes the kernel of a guest
#[derive(Args)]
pub(crate) struct Kernel {
    /// The kernel and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

impl Kernel {
    pub(crate) fn run(self) -> Result<(), Failure> {
        Err(Failure::at("the guest's kernel", linux_vt::become_kernel(&self.command)))
    }
}

/// Is the first process of a guest
#[derive(Args)]
pub(crate) struct Guest {
    /// The job's folder, as the host sees it
    folder: PathBuf,
    /// What the kernel adds to its command line; not used
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<OsString>,
}

impl Guest {
    pub(crate) fn run(self) -> Result<(), Failure> {
        guest::run(&self.folder)
    }
}

const EXAMPLES: &str = "\
Examples:
  acklab compare scenarios/two-flows.toml
  acklab compare scenarios/two-flows.toml --worlds sim,linux-vt --replications 5 --format json
  acklab compare scenarios/two-flows.toml --worlds linux-vt --record out/kernel.jsonl
  acklab compare scenarios/two-flows.toml --recorded out/kernel.jsonl
  acklab compare nagle-delack --set rtt=100ms period=10ms --replications 10 --out out/nagle
  sudo acklab compare nagle-delack --worlds sim,linux-vt,kernel --set receiver=qnx-7.0 messages=200";

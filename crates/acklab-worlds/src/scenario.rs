//! A scenario on the Linux kernel, in virtual time or on the running one, for everything that runs scenarios: plans,
//! grids, tables, files and reports see no difference but the world's name.
//!
//! What the kernel does not tell (queues, holds, the reasons of ACKs) is not among the metrics.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use acklab_core::time::Time;
use acklab_lab::blueprint::{Blueprint, Conversation};
use acklab_lab::expected::Expected;
use acklab_lab::measured::{Measured, Metrics};
use acklab_lab::parameter::{SetError, Settings};
use acklab_lab::scenario::{Capture, Declaration, Flow, Graph, Replication, Scenario, defaults};
use acklab_stats::jain_index;

use crate::kernel::{Done, Testbed};
use crate::linux_vt::Machine;
use crate::nagle::{self, Experiment};
use crate::seen::Seen;
use crate::virtual_kernel;
use crate::world::{self, World};

/// Where the networks of replications come from.
#[derive(Debug)]
pub enum Source {
    /// A file, the same for all.
    File(&'static Graph),
    /// The scenario nagle-delack, with another phase for each.
    Nagle,
}

impl Source {
    /// What `scenario` is in other worlds; `None` where it runs in virtual time alone.
    pub fn of(scenario: &dyn Scenario) -> Option<Self> {
        match scenario.network_file() {
            // It was read before, and is the same.
            Some(network) => Graph::from_file(network.clone()).ok().map(Self::File),
            None if scenario.declaration().name == nagle::SCENARIO => Some(Self::Nagle),
            None => None,
        }
    }

    /// The network of the replication whose randomness is `seed`, and its settings.
    pub fn network(
        &self,
        settings: &Settings,
        seed: u64,
    ) -> Result<(&'static Graph, Settings), String> {
        match self {
            Self::File(graph) => Ok((graph, settings.clone())),
            Self::Nagle => {
                let experiment = Experiment::of(settings, seed)?;
                let graph = Graph::from_file(experiment.file(experiment.system())?);
                let graph = graph.map_err(|mistake| mistake.to_string())?;
                Ok((graph, defaults(graph)))
            }
        }
    }
}

/// A scenario whose hosts are the Linux kernel.
pub struct InLinux {
    inner: &'static dyn Scenario,
    source: Source,
    kernel: Kernel,
    /// What went wrong first.
    failure: Mutex<Option<String>>,
}

/// Which kernel.
enum Kernel {
    /// A guest's, in virtual time.
    Guest(Machine),
    /// The running one, whose runs take real time and were made before: by their settings and seed.
    Running(Mutex<BTreeMap<(String, u64), Done>>),
}

impl InLinux {
    /// `scenario` on `machine`, for as long as the process lives; `None` where it runs in virtual time alone.
    pub fn new(scenario: &'static dyn Scenario, machine: Machine) -> Option<&'static Self> {
        Some(Self::leak(scenario, Source::of(scenario)?, Kernel::Guest(machine)))
    }

    /// `scenario` on the running kernel; `None` where it is another than nagle-delack.
    pub fn running(scenario: &'static dyn Scenario) -> Option<&'static Self> {
        let source = Source::of(scenario).filter(|source| matches!(source, Source::Nagle))?;
        Some(Self::leak(scenario, source, Kernel::Running(Mutex::default())))
    }

    fn leak(inner: &'static dyn Scenario, source: Source, kernel: Kernel) -> &'static Self {
        Box::leak(Box::new(Self { inner, source, kernel, failure: Mutex::new(None) }))
    }

    /// Hands over the run on the running kernel that [`Scenario::run`] is to tell of `settings` and `seed`.
    pub fn hand_over(&self, settings: &Settings, seed: u64, run: Done) {
        if let Kernel::Running(runs) = &self.kernel {
            let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.insert((key(settings), seed), run);
        }
    }

    /// Why a replication since the last call gave nothing.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn replicate(&self, settings: &Settings, seed: u64) -> Result<Replication, String> {
        let (graph, own) = self.source.network(settings, seed)?;
        let network = graph.blueprint(&own, seed)?;
        let exchange = match (&self.source, &self.kernel) {
            (Source::File(_), Kernel::Guest(machine)) => {
                let flows = world::emulate(machine, &network, seed, None).map(|done| done.flows);
                let flows = flows.map_err(|e| e.to_string())?;
                let names = network.flows.iter().map(|flow| flow.name);
                let mut errors = names.zip(&flows).filter_map(|(name, seen)| {
                    Some(format!("flow {name:?}: {}", seen.error.as_ref()?))
                });
                return errors.next().map_or_else(|| Ok(of_network(&network, &flows)), Err);
            }
            (_, Kernel::Guest(machine)) => {
                let experiment = Experiment::of(settings, seed)?;
                virtual_kernel::run(machine, &experiment, seed).map_err(|e| e.to_string())?
            }
            (_, Kernel::Running(runs)) => {
                let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
                let run = runs.remove(&(key(settings), seed));
                run.ok_or("the run was not made")?.exchange
            }
        };
        Ok(of_messages(&[exchange.seen(&network).ok_or("no flow")?]))
    }
}

/// What tells the cases of a plan from each other.
fn key(settings: &Settings) -> String {
    let words: Vec<_> = settings.values().map(|(name, value)| format!("{name}={value}")).collect();
    words.join(" ")
}

impl Scenario for InLinux {
    fn declaration(&self) -> &Declaration {
        self.inner.declaration()
    }

    fn world(&self) -> &'static str {
        match self.kernel {
            Kernel::Guest(_) => World::LinuxVt.name(),
            Kernel::Running(_) => World::Kernel.name(),
        }
    }

    fn expected(&self, settings: &Settings) -> Option<Expected> {
        self.inner.expected(settings)
    }

    /// Whether the kernel can be all of it is known before anything runs, too.
    fn check(&self, settings: &Settings) -> Result<(), SetError> {
        self.inner.check(settings)?;
        let cannot = |reason: String| SetError::World { world: self.world(), reason };
        if let Source::Nagle = self.source {
            let experiment = Experiment::of(settings, 0).map_err(cannot)?;
            return match &self.kernel {
                Kernel::Running(_) => {
                    Testbed::check(&experiment).map_err(|e| cannot(e.to_string()))
                }
                Kernel::Guest(_) => Ok(()),
            };
        }
        let (graph, settings) = self.source.network(settings, 0).map_err(cannot)?;
        let network = graph.blueprint(&settings, 0).map_err(cannot)?;
        world::ready(&network).map_err(|e| cannot(e.to_string()))
    }

    fn packets(&self, settings: &Settings) -> u64 {
        self.inner.packets(settings)
    }

    fn network_file(&self) -> Option<&acklab_lab::network_file::NetworkFile> {
        self.inner.network_file()
    }

    fn run(&self, settings: &Settings, seed: u64, _capture: Option<Capture<'_>>) -> Replication {
        self.attempt(settings, seed).unwrap_or_default()
    }

    fn attempt(&self, settings: &Settings, seed: u64) -> Option<Replication> {
        let made = self.replicate(settings, seed).map_err(|reason| {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(reason);
        });
        made.ok()
    }
}

/// All flows' hashes as one.
fn hash(seen: &[Seen]) -> u64 {
    seen.iter().fold(0, |hash, flow| hash.rotate_left(1) ^ flow.hash)
}

fn events(seen: &[Seen]) -> u64 {
    seen.iter().map(|flow| flow.segments + flow.acks).sum()
}

/// The metrics of nagle-delack that packets and the applications' stamps show.
fn of_messages(seen: &[Seen]) -> Replication {
    let mut metrics = Metrics::default();
    for flow in seen {
        let messages = flow.buffering_ms.len() as u64;
        let new = flow.segments - flow.retransmissions;
        let mut add = |name, value| metrics.insert(name, value);
        add("messages", Measured::Total(messages));
        add(
            "undelivered_messages",
            Measured::Total(messages.saturating_sub(flow.delays_ms.len() as u64)),
        );
        add("buffering_delay_ms", Measured::Samples(flow.buffering_ms.clone()));
        add("delivery_delay_ms", Measured::Samples(flow.delays_ms.clone()));
        add("segments", Measured::Total(new));
        add("messages_per_segment", Measured::Ratio { of: messages as f64, per: new as f64 });
        add("retransmissions", Measured::Total(flow.retransmissions));
        add("pure_acks", Measured::Total(flow.acks));
    }
    let flows = vec![Flow { id: "sender-receiver".into(), metrics: metrics.clone() }];
    Replication { hash: hash(seen), events: events(seen), metrics, flows, ..Replication::default() }
}

/// The metrics of networks that packets and the applications' stamps show.
fn of_network(network: &Blueprint<'_>, seen: &[Seen]) -> Replication {
    let end = Time::ZERO + network.duration;
    let one = |value: f64| Measured::Samples(vec![value]);
    let flows: Vec<Flow> = network
        .flows
        .iter()
        .zip(seen)
        .map(|(flow, seen)| {
            let mut metrics = Metrics::default();
            metrics.insert("throughput_bps", one(throughput_bps(flow, seen, end)));
            metrics.insert("retransmissions", one(seen.retransmissions as f64));
            Flow { id: flow.name.to_owned(), metrics }
        })
        .collect();
    let each = |name: &str| flows.iter().map(|flow| flow.metrics.number(name)).collect::<Vec<_>>();
    let rates = each("throughput_bps");
    let mut metrics = Metrics::default();
    metrics.insert("throughput_bps", one(rates.iter().sum()));
    metrics.insert("jain", one(jain_index(&rates).unwrap_or(1.0)));
    metrics.insert("retransmissions", one(each("retransmissions").iter().sum()));
    for (name, requests) in [("message_delay_ms", false), ("exchange_ms", true)] {
        let flows = network.flows.iter().zip(seen);
        let of_kind = flows.filter(|(flow, _)| (flow.sender() == flow.ends[1]) == requests);
        metrics.insert(
            name,
            Measured::Samples(of_kind.flat_map(|(_, seen)| seen.delays_ms.clone()).collect()),
        );
    }
    Replication { hash: hash(seen), events: events(seen), metrics, flows, ..Replication::default() }
}

/// As in virtual time: headers of full packets count, and the time is that of the whole run.
fn throughput_bps(flow: &Conversation<'_>, seen: &Seen, end: Time) -> f64 {
    let side = usize::from(flow.sender() == flow.ends[1]);
    let options = if flow.config.iter().all(|end| end.timestamps) { 12 } else { 0 };
    let payload = flow.config[side].mss.saturating_sub(options).max(1);
    let factor = f64::from(flow.packet) / f64::from(payload);
    8.0 * seen.acknowledged as f64 * factor / end.as_secs_f64()
}

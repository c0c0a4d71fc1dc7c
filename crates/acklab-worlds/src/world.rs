//! The worlds: each plays one replication of a network's file and hands over what was [`Seen`].

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::Path;
use std::str::FromStr;

use acklab_core::event::{Event, EventKind, Interest};
use acklab_core::packet::{NodeId, Packet};
use acklab_core::time::Time;
use acklab_core::wire::parse_ipv4;
use acklab_lab::blueprint::{Blueprint, Task};
use acklab_lab::parameter::Settings;
use acklab_lab::scenario::Graph;
use acklab_sim::Observer;
use acklab_sim::app::EXCHANGE_MS;
use acklab_trace::capture::{CaptureError, CaptureReader};

use crate::job::{FlowLog, Job};
use crate::linux_vt::{GuestError, Machine};
use crate::network::{self, CannotBuild};
use crate::seen::{Account, Seen, message_delays_ms, seconds};

/// Where a network runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum World {
    /// acklab's TCP and links in virtual time.
    Sim,
    /// The Linux kernel in virtual time.
    LinuxVt,
    /// The running Linux kernel: nagle-delack alone.
    Kernel,
}

impl World {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sim, Self::LinuxVt, Self::Kernel];

    /// As it is written on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::LinuxVt => "linux-vt",
            Self::Kernel => "kernel",
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for World {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|world| world.name() == name)
            .ok_or_else(|| format!("no world is called {name:?}; there are {}", known()))
    }
}

/// Why a world gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The network has a part that the world does not have.
    #[error(transparent)]
    CannotBuild(#[from] CannotBuild),
    /// The guest failed.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// Its captures cannot be read.
    #[error("the guest's capture: {0}")]
    Capture(#[from] CaptureError),
    /// They cannot be opened.
    #[error("the guest's capture: {0}")]
    File(#[from] io::Error),
    /// The captures have holes.
    #[error("{0} frames were lost in the guest's captures")]
    Lost(u64),
    /// There is no such network, or its flow failed.
    #[error("{0}")]
    Network(String),
}

/// One replication in virtual time.
pub fn simulate(
    graph: &Graph,
    settings: &Settings,
    network: &Blueprint<'_>,
    seed: u64,
) -> Vec<Seen> {
    let observer = Witness { account: Account::new(network), network, messages: Vec::new() };
    let interest = Interest::MESSAGE.with(Interest::CONGESTION);
    let observer = graph.observe(settings, seed, &network.senders(), interest, observer);
    observer.finish()
}

/// Listens in virtual time.
struct Witness<'a> {
    account: Account,
    network: &'a Blueprint<'a>,
    /// For each flow: the writes and reads of its messages.
    messages: Vec<[Vec<(f64, u64)>; 2]>,
}

impl Witness<'_> {
    /// Flow and side of an end.
    fn find(&self, addr: acklab_core::packet::Addr) -> Option<(usize, usize)> {
        let flows = self.network.flows.iter().enumerate();
        flows.into_iter().find_map(|(index, flow)| {
            flow.ends.iter().position(|end| *end == addr).map(|side| (index, side))
        })
    }

    fn finish(mut self) -> Vec<Seen> {
        self.messages.resize(self.network.flows.len(), Default::default());
        let mut seen = self.account.finish();
        for ((seen, flow), [writes, reads]) in
            seen.iter_mut().zip(&self.network.flows).zip(&self.messages)
        {
            if let Task::Writes(task) = &flow.task {
                // What was due at once is written at once; each message of it counts.
                let mut sizes = task.iter().map(|(_, bytes)| u64::from(*bytes));
                let writes = messages(writes, &mut sizes);
                let deliveries: Vec<_> = reads
                    .iter()
                    .zip(task)
                    .map(|((at, _), (_, bytes))| (*at, u64::from(*bytes)))
                    .collect();
                seen.delays_ms = message_delays_ms(&writes, &deliveries);
                seen.buffering_ms = message_delays_ms(&writes, &seen.departures);
            }
        }
        seen
    }

    /// A message was written (0) or has come (1), at its flow's end.
    fn message(&mut self, flow: usize, which: usize, now: Time, bytes: u32) {
        self.messages.resize(self.network.flows.len(), Default::default());
        self.messages[flow][which].push((seconds(now), u64::from(bytes)));
    }
}

impl Observer for Witness<'_> {
    fn on_event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Congestion { flow, cwnd, .. } => {
                let Some((index, side)) = self.find(flow.local) else { return };
                let of = &self.network.flows[index];
                if of.ends[side] == of.sender() {
                    let options = if of.config[side].timestamps { 12 } else { 0 };
                    let full = f64::from(of.config[side].mss.saturating_sub(options).max(1));
                    if let Some(seen) = self.account.of_sender(flow.local) {
                        seen.windows.push((seconds(event.time), *cwnd as f64 / full));
                    }
                }
            }
            EventKind::MessageWritten { flow, bytes, .. } => {
                if let Some((index, 0)) = self.find(flow.local) {
                    self.message(index, 0, event.time, *bytes);
                }
            }
            EventKind::MessageDelivered { flow, .. } => {
                if let Some((index, 1)) = self.find(flow.local) {
                    self.message(index, 1, event.time, 0);
                }
            }
            // The node is the flow's number here.
            EventKind::App { node, code: EXCHANGE_MS, value } => {
                if let Some(flow) = self.network.flows.get(usize::from(node.0)) {
                    let sender = flow.sender();
                    if let Some(seen) = self.account.of_sender(sender) {
                        seen.delays_ms.push(*value);
                    }
                }
            }
            _ => {}
        }
    }

    fn on_packet(&mut self, now: Time, node: NodeId, packet: &Packet) {
        self.account.on_packet(now, node, packet);
    }
}

/// Each message of `sizes` with the time at which its last byte was written.
fn messages(writes: &[(f64, u64)], sizes: &mut dyn Iterator<Item = u64>) -> Vec<(f64, u64)> {
    let (mut messages, mut open, mut next) = (Vec::new(), 0, sizes.next());
    for (at, bytes) in writes {
        open += bytes;
        while let Some(size) = next.filter(|size| *size <= open) {
            messages.push((*at, size));
            (open, next) = (open - size, sizes.next());
        }
    }
    messages
}

/// Whether the kernel can be `network`, and is there.
pub fn ready(network: &Blueprint<'_>) -> Result<(), WorldError> {
    Machine::image(&job(network)?)?;
    Ok(())
}

/// What a guest is told to do to be `network`.
pub(crate) fn job(network: &Blueprint<'_>) -> Result<Job, CannotBuild> {
    network::job(network, SAMPLING)
}

/// A replication of the kernel.
#[derive(Debug)]
pub struct Emulated {
    /// What it showed of each flow.
    pub flows: Vec<Seen>,
    /// `uname -r`.
    pub kernel: String,
}

/// One replication of the Linux kernel in virtual time; its log and captures are kept in the folder `keep`, one for each node
/// at which data under study is sent.
pub fn emulate(
    machine: &Machine,
    network: &Blueprint<'_>,
    seed: u64,
    keep: Option<&Path>,
) -> Result<Emulated, WorldError> {
    let job = job(network)?;
    let done = machine.run(&job, seed)?;
    if done.log.lost_frames > 0 {
        return Err(WorldError::Lost(done.log.lost_frames));
    }
    let mut account = Account::new(network);
    for node in network.senders() {
        let capture = done.capture(&network::space_of(node));
        read_capture(&capture, done.log.zero, node, &mut account)?;
        if let Some(folder) = keep {
            let name = format!("linux-vt-{}.pcapng", network.topology.name(node));
            fs::copy(capture, folder.join(name))?;
        }
    }
    if let Some(folder) = keep {
        let log = serde_json::to_vec(&done.log).map_err(io::Error::from)?;
        fs::write(folder.join("linux-vt-log.json"), log)?;
    }
    let mut flows = account.finish();
    for (flow, log) in flows.iter_mut().zip(&done.log.flows) {
        add_log(flow, log);
    }
    Ok(Emulated { flows, kernel: done.log.kernel.clone() })
}

/// From one look at the sockets to the next, ns.
const SAMPLING: u64 = 10_000_000;

fn read_capture(
    path: &Path,
    zero: u64,
    node: NodeId,
    account: &mut Account,
) -> Result<(), WorldError> {
    let mut reader = CaptureReader::new(BufReader::new(File::open(path)?))?;
    while let Some(frame) = reader.next_frame()? {
        let Some(at) = frame.time.as_nanos().checked_sub(zero) else { continue };
        let ip = frame.bytes.get(ETHERNET..).unwrap_or_default();
        if let Ok(packet) = parse_ipv4(ip, |address| NodeId::of(address.into())) {
            account.on_packet(Time::from_nanos(at), node, &packet);
        }
    }
    Ok(())
}

fn add_log(seen: &mut Seen, log: &FlowLog) {
    let at = |ns: u64| ns as f64 / 1e9;
    seen.error.clone_from(&log.error);
    let looks = log.samples.iter();
    seen.windows = looks.map(|look| (at(look.at), f64::from(look.cwnd))).collect();
    let list = |list: &[(u64, u32)]| -> Vec<(f64, u64)> {
        list.iter().map(|(time, bytes)| (at(*time), u64::from(*bytes))).collect()
    };
    let writes = list(&log.writes);
    seen.buffering_ms = message_delays_ms(&writes, &seen.departures);
    seen.delays_ms = if log.exchanges.is_empty() {
        message_delays_ms(&writes, &list(&log.reads))
    } else {
        log.exchanges.iter().map(|(asked, answered)| (at(*answered) - at(*asked)) * 1e3).collect()
    };
}

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;

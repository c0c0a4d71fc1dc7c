//! The scenario `nagle-delack` as hosts outside of virtual time can do it.

use std::fmt::Write as _;

use acklab_core::options::Word;
use acklab_core::rng::Rng;
use acklab_core::time::Span;
use acklab_core::units::BitRate;
use acklab_lab::network_file::NetworkFile;
use acklab_lab::parameter::Settings;
use acklab_tcp::System;
use serde::{Deserialize, Serialize};

/// The scenario's name.
pub const SCENARIO: &str = "nagle-delack";

/// One replication: small messages at a period, from the Linux kernel to a system that delays ACKs. Times are in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Name of the receiving system.
    pub receiver: String,
    /// Whether the sender holds small segments back.
    pub nagle: bool,
    /// Round-trip propagation delay.
    pub rtt: u64,
    /// From one write to the next.
    pub period: u64,
    /// Bytes of a message.
    pub message: u32,
    /// How many.
    pub messages: u64,
    /// From the connection to the first write.
    pub phase: u64,
    /// Where in its period a free-running timer of the receiver is at the start, in [0, 1).
    pub tick: f64,
    /// Of every link, bit/s; `None`: without end.
    pub rate: Option<u64>,
    /// Share of packets lost in each direction.
    pub loss: f64,
}

impl Experiment {
    /// The replication whose randomness is `seed`; the reason where the settings ask for what hosts outside of virtual
    /// time cannot do.
    pub fn of(settings: &Settings, seed: u64) -> Result<Self, String> {
        let word = |name: &str| settings.get::<&str>(name).unwrap_or_default();
        let span = |name: &str| settings.get::<Span>(name).unwrap_or_default();
        let count = |name: &str| settings.get::<u64>(name).unwrap_or_default();
        let refuse = |name: &str, reason: &str| Err(format!("{name}: {reason}"));
        if settings.is_chosen("sender") && word("sender") != "linux" {
            return refuse("sender", "is the Linux kernel here; leave it out, or say linux");
        }
        let receiver = word("receiver");
        if receiver.parse::<System>().is_err() {
            let systems = System::NAMES.join(", ");
            return refuse("receiver", &format!("must be a system here: {systems}"));
        }
        let nagle = match word("nagle") {
            "on" | "minshall" => true,
            "off" => false,
            _ => return refuse("nagle", "Linux has on, off and minshall"),
        };
        for name in ["reads", "jitter", "skew", "overhead", "jiffy"] {
            if settings.is_chosen(name) {
                return refuse(name, "cannot be set in other worlds");
            }
        }
        let messages = count("messages");
        if messages > MOST_MESSAGES {
            return refuse("messages", "at most 100000 in other worlds");
        }
        // In the order in which the simulated scenario draws.
        let mut draws = Rng::named(seed, "nagle-delack/start");
        let phase = draws.below(span("phase").as_nanos());
        let tick = if span("phase").is_zero() { 0.0 } else { draws.uniform() };
        Ok(Self {
            receiver: receiver.to_owned(),
            nagle,
            rtt: span("rtt").as_nanos(),
            period: span("period").as_nanos(),
            message: count("message") as u32,
            messages,
            phase,
            tick,
            rate: settings
                .get::<BitRate>("rate")
                .filter(|rate| *rate != BitRate::INFINITE)
                .map(BitRate::as_bps),
            loss: settings.get::<f64>("loss").unwrap_or_default() / 100.0,
        })
    }

    /// The receiving system.
    pub fn system(&self) -> System {
        self.receiver.parse().unwrap_or(System::Linux)
    }

    /// From the connection to the last write.
    pub const fn writing(&self) -> u64 {
        self.phase + self.period * self.messages
    }

    /// The network's file of it, with `receiver` at the far end.
    pub fn file(&self, receiver: System) -> Result<NetworkFile, String> {
        // The writes begin when the connection stands, after two round trips at the latest.
        let first = self.rtt * 2 + self.phase;
        let mut trace = String::new();
        for index in 0..self.messages {
            let at = first + self.period * index;
            let _ = write!(trace, "[\"{}us\", {}], ", at as f64 / 1e3, self.message);
        }
        let rate = self.rate.map_or("infinite".to_owned(), |bps| format!("{bps}bit"));
        let duration = first + self.period * self.messages + self.rtt * 4 + SECOND;
        let text = format!(
            "scenario = \"network\"\nduration = \"{}ms\"\nwatch = \"sender -> receiver\"\n\
             [[link]]\nbetween = [\"sender\", \"receiver\"]\nrate = \"{rate}\"\ndelay = \"{}us\"\nloss = {}\n\
             [[flow]]\nname = \"sender-receiver\"\nfrom = \"sender\"\nto = \"receiver\"\nkind = \"trace\"\n\
             nagle = {}\nreceiver = \"{}\"\ntrace = [{trace}]\n",
            duration.div_ceil(1_000_000),
            (self.rtt / 2) as f64 / 1e3,
            self.loss,
            self.nagle,
            receiver.name(),
        );
        NetworkFile::parse(&text).map_err(|mistake| mistake.to_string())
    }
}

const MOST_MESSAGES: u64 = 100_000;
const SECOND: u64 = 1_000_000_000;

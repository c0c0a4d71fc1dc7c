//! What can be chosen by name, with what can be set of it: the registries as lists, for the command line
//! and the documentation.

use std::fmt::Write as _;

use acklab_core::ack::Profile;
use acklab_core::cc::Algorithm;
use acklab_core::options::{Options, Parameter, Value, Word};
use acklab_core::queue::Discipline;
use acklab_tcp::System;

acklab_core::words! {
    /// What is chosen.
    pub enum Registry {
        /// What waits for a transmitter, and who is dropped or marked.
        Queues = "queues",
        /// How much may be on its way.
        CongestionControls = "congestion-controls",
        /// When a receiver acknowledges.
        Acks = "acks",
        /// Whose TCP is imitated.
        Systems = "systems",
    }
}

#[derive(Clone, Debug)]
pub struct Choice {
    pub name: &'static str,
    pub doc: &'static str,
    /// Of a system: the name of its ACK policy, which has the options.
    pub ack: Option<&'static str>,
    /// What can be set, with defaults.
    pub options: Vec<Parameter<Value>>,
}

impl Registry {
    /// All of them, in the order in which they are declared.
    pub fn choices(self) -> Vec<Choice> {
        macro_rules! listed {
            ($all:expr) => {
                $all.into_iter().map(|mut one| {
                    let (name, doc) = (one.name(), one.doc());
                    Choice { name, doc, ack: None, options: list(one.options()) }
                })
            };
        }
        match self {
            Self::Queues => listed!(Discipline::all()).collect(),
            Self::CongestionControls => listed!(Algorithm::all()).collect(),
            Self::Acks => listed!(Profile::all()).collect(),
            Self::Systems => System::ALL.iter().copied().map(of_system).collect(),
        }
    }

    /// The same as a table in Markdown: name, what it is, options with their defaults.
    pub fn markdown(self) -> String {
        let mut text =
            String::from("| name | what it is | options and defaults |\n|---|---|---|\n");
        for Choice { name, doc, ack, options } in self.choices() {
            let options = options.iter().map(|one| format!("`{}` {}", one.name, one.default));
            let options = options.collect::<Vec<_>>().join(", ");
            let ack = ack.map_or(String::new(), |ack| format!("`ack` {ack}: "));
            let _ = writeln!(text, "| `{name}` | {doc} | {ack}{options} |");
        }
        text
    }
}

fn of_system(system: System) -> Choice {
    let mut policy = system.config().ack;
    let (name, doc, ack) = (system.name(), system.doc(), Some(policy.name()));
    Choice { name, doc, ack, options: list(policy.options()) }
}

fn list(options: Option<&mut dyn Options>) -> Vec<Parameter<Value>> {
    options.map(|options| options.list()).unwrap_or_default()
}

//! The two testbeds of seed 3 (Statkus, Paulikas, Krukonis, Electronics 10(6):639, 2021, sections 4 and 5): a
//! bulk transfer over a link that is faster than the hosts' processors.
//!
//! Each is a network's file that comes with the program: what it says can be read there, and run with other values.

use std::sync::OnceLock;

use acklab_core::time::Time;
use acklab_lab::monitor::NetworkRecord;
use acklab_lab::network_file::NetworkFile;
use acklab_lab::parameter::{SetError, Settings};
use acklab_lab::scenario::{Capture, Declaration, Graph, Replication, Scenario};
use acklab_lab::signal::{Segment, Signal, Watch};

/// A scenario whose network stands in a file.
#[derive(Debug)]
pub struct Filed {
    name: &'static str,
    text: &'static str,
    made: OnceLock<(Declaration, &'static Graph)>,
}

impl Filed {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text, made: OnceLock::new() }
    }

    fn made(&self) -> &(Declaration, &'static Graph) {
        self.made.get_or_init(|| {
            let graph = NetworkFile::parse(self.text).and_then(Graph::from_file);
            let graph = graph.unwrap_or_else(|error| panic!("{}: {error}", self.name));
            let declaration = Declaration { name: self.name, ..*graph.declaration() };
            (declaration, graph)
        })
    }

    fn graph(&self) -> &'static Graph {
        self.made().1
    }
}

/// Two routers of 2009, the sender's processor the bottleneck.
pub static ROUTER: Filed = Filed::new("ack-rate-router", include_str!("ack_rate_router.toml"));
/// Two small virtual machines.
pub static VM: Filed = Filed::new("ack-rate-vm", include_str!("ack_rate_vm.toml"));

impl Scenario for Filed {
    fn declaration(&self) -> &Declaration {
        &self.made().0
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn check(&self, settings: &Settings) -> Result<(), SetError> {
        self.graph().check(settings)
    }

    fn packets(&self, settings: &Settings) -> u64 {
        self.graph().packets(settings)
    }

    fn most_packets(&self) -> u128 {
        self.graph().most_packets()
    }

    fn signals(&self, settings: &Settings) -> Vec<Signal> {
        self.graph().signals(settings)
    }

    fn watch(
        &self,
        settings: &Settings,
        path: &[Segment],
        until: Time,
        wanted: &[bool],
        each: Watch<'_>,
    ) {
        self.graph().watch(settings, path, until, wanted, each);
    }

    fn run(&self, settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication {
        self.graph().run(settings, seed, capture)
    }

    fn run_closely(
        &self,
        settings: &Settings,
        seed: u64,
        with_courses: bool,
    ) -> Option<(Replication, NetworkRecord)> {
        self.graph().run_closely(settings, seed, with_courses)
    }
}

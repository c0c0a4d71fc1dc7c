//! A router's death in the middle of a transfer.

use acklab_core::link::Outage;
use acklab_core::rng::replication_seed;
use acklab_core::time::{Span, Time};

use super::experiment::Machine;
use super::paper::ROWS;
use super::simulated::{Network, transfer};

/// What happened when the second router died.
#[derive(Clone, Copy, Debug)]
pub struct DeadPath {
    pub machine: Machine,
    /// Transfer time with both routers, seconds.
    pub alive_s: f64,
    /// Transfer time with the death, seconds.
    pub died_s: f64,
    /// Longest time without an ACK, seconds.
    pub longest_wait_s: f64,
}

impl DeadPath {
    /// At the paper's least loss, the second router dies after [`DEATH`].
    pub fn run(machine: Machine, chunks: u16, seed: u64) -> Self {
        let settings = machine.settings(chunks, 2);
        let network = machine.network(ROWS[0].loss);
        let outage = Some(Outage { from: Time::ZERO + DEATH, until: Time::MAX });
        let run = |network: &Network| transfer(network, settings, replication_seed(seed, 0), false);
        let (alive, died) = (run(&network), run(&Network { outage, ..network }));
        Self {
            machine,
            alive_s: alive.seconds.unwrap_or(f64::NAN),
            died_s: died.seconds.unwrap_or(f64::NAN),
            longest_wait_s: died.longest_wait,
        }
    }
}

/// When the second router dies.
const DEATH: Span = Span::from_secs(5);

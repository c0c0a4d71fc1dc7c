//! The six experiments, repeated, under each reading of what the hosts cost.
//!
//! The paper says nothing about processors, but its times are three times those of its network. One
//! Python interpreter does all the sending, and each router's program handles every packet, so their
//! time per packet is a parameter. [`MACHINES`] are three readings: nothing; the sender alone, with the
//! 4 ms that its totals suggest; and sender and routers with the two figures that come closest to all six
//! of the paper's means (least squares of the logarithms over a grid of 0.1 ms).

use std::sync::atomic::{AtomicBool, Ordering};

use acklab_core::rng::replication_seed;
use acklab_core::time::Span;
use acklab_stats::MeanInterval;
use rayon::prelude::*;

use super::paper::{LOSSES, ROWS, Row};
use super::protocol::Settings;
use super::simulated::{Network, Transfer, transfer};

/// What the hosts cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// In a few words.
    pub name: &'static str,
    /// The sender's time for a transmission.
    pub sender: Span,
    /// A router's time for a packet.
    pub router: Span,
}

/// Hosts that cost nothing.
pub const IDEAL: Machine =
    Machine { name: "no processor time", sender: Span::ZERO, router: Span::ZERO };
/// The sender's interpreter.
pub const INTERPRETER: Machine =
    Machine { name: "sender 4 ms", sender: Span::from_millis(4), router: Span::ZERO };
/// Both kinds of program, fitted to the paper.
pub const FITTED: Machine = Machine {
    name: "sender 3 ms, routers 1.7 ms",
    sender: Span::from_millis(3),
    router: Span::from_micros(1700),
};
/// The readings, in the order of the report.
pub const MACHINES: [Machine; 3] = [IDEAL, INTERPRETER, FITTED];

impl Machine {
    /// The course's network with these routers.
    pub fn network(&self, loss: f64) -> Network {
        Network { router_cpu: self.router, ..Network::new(loss) }
    }

    /// The course's protocol on this sender.
    pub const fn settings(&self, chunks: u16, paths: usize) -> Settings {
        Settings { cpu: self.sender, ..Settings::new(chunks, paths) }
    }

    pub fn transfer(&self, chunks: u16, row: Row, seed: u64) -> Transfer {
        transfer(&self.network(row.loss), self.settings(chunks, row.paths), seed, false)
    }
}

/// Repeats each row of the paper on all cores, under the seeds that follow from `seed`, until `ended` is set.
pub fn repeated<T: Send>(
    repetitions: u64,
    seed: u64,
    ended: &AtomicBool,
    run: impl Fn(Row, u64) -> T + Sync,
) -> Vec<(Row, Vec<T>)> {
    let repeat = |row: Row| {
        let one = |index| {
            let goes_on = !ended.load(Ordering::Relaxed);
            goes_on.then(|| run(row, replication_seed(seed, index)))
        };
        let indices = (0..repetitions).into_par_iter();
        (row, indices.filter_map(one).collect())
    };
    ROWS.into_par_iter().map(repeat).collect()
}

/// Repetitions of one experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    pub paper: Row,
    /// Each repetition, in the order of the seeds.
    pub transfers: Vec<Transfer>,
}

impl Experiment {
    /// Transfer times, seconds; NaN where one did not end.
    pub fn seconds(&self) -> Vec<f64> {
        self.transfers.iter().map(|transfer| transfer.seconds.unwrap_or(f64::NAN)).collect()
    }

    /// The mean with its 95 % interval; `None` where a transfer did not end.
    pub fn interval(&self) -> Option<MeanInterval> {
        MeanInterval::from_replications(&self.seconds(), 0.95)
    }

    /// The mean time, seconds.
    pub fn mean(&self) -> f64 {
        self.seconds().iter().sum::<f64>() / self.transfers.len() as f64
    }

    /// Transmissions for each packet of the file.
    pub fn tries(&self, chunks: u16) -> f64 {
        let sent: u64 = self.transfers.iter().map(|transfer| transfer.sent).sum();
        sent as f64 / (self.transfers.len() as f64 * f64::from(chunks))
    }

    /// Share of the transfers whose end packet was never answered.
    pub fn vain_ends(&self) -> f64 {
        self.vain_end_times().count() as f64 / self.transfers.len() as f64
    }

    /// How long the sender of such a transfer went on trying, seconds on average.
    pub fn vain_end_seconds(&self) -> f64 {
        match self.vain_end_times().count() {
            0 => 0.0,
            count => self.vain_end_times().sum::<f64>() / count as f64,
        }
    }

    fn vain_end_times(&self) -> impl Iterator<Item = f64> {
        let vain = self.transfers.iter().filter(|transfer| !transfer.end_answered);
        vain.filter_map(|transfer| transfer.end_seconds)
    }
}

/// The six experiments on one kind of machine, in the order of [`ROWS`].
#[derive(Clone, Debug)]
pub struct Experiments {
    pub machine: Machine,
    /// Packets of the file.
    pub chunks: u16,
    pub measured: Vec<Experiment>,
}

impl Experiments {
    /// Repeats each under the seeds that follow from `seed`, until `ended` is set.
    pub fn run(
        machine: Machine,
        chunks: u16,
        repetitions: u64,
        seed: u64,
        ended: &AtomicBool,
    ) -> Self {
        let run = |row, seed| machine.transfer(chunks, row, seed);
        let measured = repeated(repetitions, seed, ended, run)
            .into_iter()
            .map(|(paper, transfers)| Experiment { paper, transfers })
            .collect();
        Self { machine, chunks, measured }
    }

    /// An experiment by the number of its loss in [`LOSSES`] and its paths.
    pub fn at(&self, loss: usize, paths: usize) -> &Experiment {
        &self.measured[loss + LOSSES.len() * (paths - 1)]
    }

    /// Mean over repetitions of one path's time minus two paths', with its interval: they share seeds.
    pub fn gain(&self, loss: usize) -> Option<MeanInterval> {
        let (one, two) = (self.at(loss, 1).seconds(), self.at(loss, 2).seconds());
        let gains: Vec<f64> = one.iter().zip(&two).map(|(one, two)| one - two).collect();
        MeanInterval::from_replications(&gains, 0.95)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::rdt::paper::SIZE;
    use crate::reproduce::rdt::protocol::chunks;

    /// Means of five repetitions, in the order of [`ROWS`].
    fn means(machine: Machine) -> Vec<f64> {
        let chunks = chunks(SIZE).expect("5 MB");
        let experiments = Experiments::run(machine, chunks, 5, 1, &AtomicBool::new(false));
        experiments.measured.iter().map(Experiment::mean).collect()
    }

    #[track_caller]
    fn within(means: &[f64], expect: &[f64], share: f64) {
        for (mean, expect) in means.iter().zip(expect) {
            assert!((mean / expect - 1.0).abs() <= share, "{means:.2?} for {expect:?}");
        }
    }

    #[test]
    fn hosts_that_cost_nothing_take_what_another_simulator_takes() {
        // An independent event simulation of the same protocol.
        within(&means(IDEAL)[..3], &[17.0, 34.6, 76.8], 0.03);
    }

    #[test]
    fn four_milliseconds_per_transmission_come_near_the_paper_on_one_path() {
        let means = means(INTERPRETER);
        within(&means[..3], &[51.8, 82.7, 162.9], 0.07);
        within(&means[..3], &[48.15, 81.20, 172.96], 0.12);
        // And leave nothing for a second path to gain.
        within(&means[3..], &means[..3], 0.02);
    }

    #[test]
    fn routers_that_take_their_time_explain_what_the_second_path_gains() {
        let means = means(FITTED);
        let paper = ROWS.map(|row| row.mean);
        within(&means, &paper, 0.10);
        let gains = [0, 1, 2].map(|loss| means[loss] / means[loss + 3]);
        within(&gains, &[1.16, 1.11, 1.07], 0.10);
        assert!(gains.iter().all(|gain| *gain > 1.02), "{gains:?}");
    }
}

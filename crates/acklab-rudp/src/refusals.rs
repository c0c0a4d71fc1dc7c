//! Clients that a listener refused: how often it says so on the wire, and of whom its owner is yet to be told.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::allowance::Bucket;
use super::code::Code;
use acklab_core::time::Time;

/// Clients that are to be told of, at most.
const MOST: usize = 64;
/// REFUSE per second. RETRY has no limit: it is a twentieth of what it answers, and the way in.
const RATE: f64 = 100.0;
/// RESET per second.
const RESETS: f64 = 10.0;

pub(super) struct Refusals {
    rate: Bucket,
    resets: Bucket,
    /// To be told to the owner.
    untold: VecDeque<(SocketAddr, Code)>,
    /// The ids of the last clients that were noted here.
    noted: VecDeque<u64>,
}

impl Refusals {
    pub(super) const fn new(now: Time) -> Self {
        let rate = Bucket::new(now, RATE, RATE);
        let resets = Bucket::new(now, RESETS, RESETS);
        Self { rate, resets, untold: VecDeque::new(), noted: VecDeque::new() }
    }

    /// Whether one more REFUSE may leave.
    pub(super) fn may_answer(&mut self, now: Time) -> bool {
        self.rate.take(now)
    }

    /// Whether one more RESET may leave.
    pub(super) fn may_reset(&mut self, now: Time) -> bool {
        self.resets.take(now)
    }

    /// The client of id `source` was refused. Its copies are refused too, and noted once.
    pub(super) fn note(&mut self, remote: SocketAddr, source: u64, code: Code) {
        if self.untold.len() < MOST && !self.noted.contains(&source) {
            self.untold.push_back((remote, code));
            self.noted.push_back(source);
            if self.noted.len() > MOST {
                self.noted.pop_front();
            }
        }
    }

    pub(super) fn poll(&mut self) -> Option<(SocketAddr, Code)> {
        self.untold.pop_front()
    }
}

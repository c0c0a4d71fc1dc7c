//! Transfers that are complete though their senders may not have heard so.
//!
//! The last word may be lost with its copies. A sender that did not hear it greets anew and names everything
//! again; what was stored is remembered for that long, so that it is told instead of sent
//! (docs/rudp.md section 10).

use std::collections::VecDeque;
use std::thread::JoinHandle;

use acklab_core::time::{Span, Time};

use crate::transfer::receiver::{Destination, Printed};
use crate::transfer::worker::Worker;

/// How long: ten times a sender's patience.
const MEMORY: Span = Span::from_secs(600);
/// So many at most.
const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Remembered(VecDeque<(Time, Worker<Box<dyn Destination>>)>);

impl Remembered {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Remembers a transfer that is complete; the thread of one that is forgotten for it.
    pub(super) fn add(
        &mut self,
        now: Time,
        work: Worker<Box<dyn Destination>>,
    ) -> Option<JoinHandle<()>> {
        self.0.push_back((now + MEMORY, work));
        if self.0.len() > MOST { self.forget(true) } else { None }
    }

    /// Forgets what is too old; the threads of it.
    pub(super) fn expire(&mut self, now: Time) -> Vec<JoinHandle<()>> {
        let old = self.0.iter().take_while(|(until, _)| *until <= now).count();
        (0..old).filter_map(|_| self.forget(true)).collect()
    }

    /// The end of the program: what was stored is left for another one.
    pub(super) fn close(&mut self) -> Vec<JoinHandle<()>> {
        (0..self.0.len()).filter_map(|_| self.forget(false)).collect()
    }

    fn forget(&mut self, dismissed: bool) -> Option<JoinHandle<()>> {
        self.0.pop_front()?.1.close(dismissed)
    }

    /// What has gone to standard output.
    pub(super) fn printed(&self) -> Option<Printed> {
        self.0.iter().find_map(|(_, work)| work.state().printed)
    }
}

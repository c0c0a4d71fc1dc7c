//! Transfers that are complete though their senders may not have heard so.
//!
//! The last word may be lost with its copies. A sender that did not hear it greets anew and names everything
//! again; what was stored is remembered for that long, so that it is told instead of sent
//! (docs/rudp.md section 10).

use std::collections::VecDeque;

use acklab_core::time::{Span, Time};

use crate::transfer::receiver::{Destination, Printed};

/// How long: ten times a sender's patience.
const MEMORY: Span = Span::from_secs(600);
/// So many at most.
const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Remembered(VecDeque<(Time, Box<dyn Destination>)>);

impl Remembered {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Remembers a transfer that is complete.
    pub(super) fn add(&mut self, now: Time, destination: Box<dyn Destination>) {
        self.0.push_back((now + MEMORY, destination));
        if self.0.len() > MOST {
            self.forget();
        }
    }

    /// Forgets what is too old; whether there was any.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        let before = self.0.len();
        while self.0.front().is_some_and(|(until, _)| *until <= now) {
            self.forget();
        }
        self.0.len() < before
    }

    fn forget(&mut self) {
        if let Some((_, destination)) = self.0.pop_front() {
            destination.dismiss();
        }
    }

    /// What has gone to standard output.
    pub(super) fn printed(&self) -> Option<Printed> {
        self.0.iter().find_map(|(_, destination)| destination.printed())
    }
}

//! `acklab send`: a transfer's sender and its connection.
//!
//! The event loop of [`crate::rudp::driver`] hands blocks over while the connection has room, and closes when
//! all is stored; a thread reads and hashes them ahead. The time that is told runs from the first datagram to the receiver's word that everything
//! is stored. A receiver that falls silent is greeted anew for a minute, and the transfer goes on where
//! it was.

mod errand;
mod job;
mod sending;
mod status;
mod ways;

pub use self::errand::{Errand, ErrandError, RENEWAL, Secret, What};
pub use self::status::{End, News, Outcome, Status};

use std::sync::atomic::AtomicBool;

use acklab_rudp::Code;

use self::sending::attempt;
use self::status::Before;
pub use super::sender::Due;
use super::sender::Progress;

/// How long a receiver that is silent again and again and confirms nothing is greeted anew, seconds.
const PATIENCE: f64 = 60.0;

/// How long it has been tried in vain. That the receiver answers a greeting is no progress: some networks
/// pass greetings and no data.
#[derive(Debug, Default)]
struct Patience {
    /// Bytes and files confirmed, the most so far.
    confirmed: u64,
    /// The first silence since they rose, seconds from the start.
    since: Option<f64>,
}

impl Patience {
    /// The receiver has fallen silent, and this was its progress: whether to greet it anew.
    fn is_left(&mut self, seconds: f64, progress: &Progress) -> bool {
        let confirmed = progress.confirmed + progress.stored;
        if confirmed > self.confirmed {
            *self = Self { confirmed, since: None };
        }
        seconds - *self.since.get_or_insert(seconds) < PATIENCE
    }
}

/// Sends until all is stored, the connection cannot be had any more or `interrupted` becomes true.
pub fn send(
    errand: &Errand,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<Outcome, ErrandError> {
    let mut before = Before::default();
    let mut patience = Patience::default();
    loop {
        let mut outcome = attempt(errand, &before, interrupted, tell)?;
        if matches!(outcome.end, End::Renewed) {
            before.add(&mut outcome.status);
            continue;
        }
        let status = &outcome.status;
        let is_silent = matches!(outcome.end, End::Closed { code: Code::Idle, by_peer: false, .. });
        let may_go_on = (before.was_connected() || status.connected) && !errand.is_stream();
        if !is_silent || !may_go_on || !patience.is_left(status.seconds, &status.progress) {
            return Ok(outcome);
        }
        let lost = matches!(&outcome.end, End::Closed { text, .. } if !text.is_empty() && status.connected);
        let why = if lost { "has lost the connection" } else { "is silent" };
        tell(News::Problem(format!("the receiver {why}; greeting it anew")));
        before.add(&mut outcome.status);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_renewed_by_what_was_confirmed_and_by_nothing_else() {
        let confirmed = |confirmed| Progress { confirmed, ..Progress::default() };
        let mut patience = Patience::default();
        // Greeted every 5 s, answered each time: it ends after a minute.
        let rounds = (1..100).take_while(|n| patience.is_left(5.0 * f64::from(*n), &confirmed(0)));
        assert_eq!(rounds.count(), 12);
        let mut patience = Patience::default();
        assert!((1..100_u32).all(|n| patience.is_left(50.0 * f64::from(n), &confirmed(n.into()))));
        // A new connection begins to count what is held.
        assert!(
            patience.is_left(5000.0, &confirmed(7)) && !patience.is_left(5010.0, &confirmed(99))
        );
        let stored = Progress { stored: 100, ..Progress::default() };
        assert!(patience.is_left(5030.0, &stored), "empty files too");
    }
}

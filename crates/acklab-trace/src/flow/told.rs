//! What routers and hosts said by ICMP of a connection's packets.

use std::net::IpAddr;

use acklab_core::time::Time;

use crate::frame::Notice;
use crate::frame::notice::Reason;

/// What was said of a connection's packets that did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Told {
    /// Who said it first.
    pub by: IpAddr,
    /// Whose packets: 0, the client's, or 1.
    pub of: usize,
    /// Why they did not arrive, as it was said last.
    pub reason: Reason,
    /// The first frame that says so.
    pub frame: u64,
    /// Its time.
    pub since: Time,
    /// Time of the last.
    pub until: Time,
    /// How often it was said.
    pub count: u64,
}

impl Told {
    /// Adds what `notice` says of the packets of `of`. Only those of the endpoint that was first spoken of count.
    pub(super) fn add(told: &mut Option<Self>, notice: &Notice, of: usize) {
        let &Notice { by, reason, frame, time, .. } = notice;
        let first = Self { by, of, reason, frame, since: time, until: time, count: 0 };
        let told = told.get_or_insert(first);
        if told.of == of {
            told.reason = reason;
            told.count += 1;
            told.until = told.until.max(time);
        }
    }
}

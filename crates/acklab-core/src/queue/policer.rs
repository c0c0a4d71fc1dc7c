//! A policer: what exceeds a token bucket is dropped on arrival, and nothing waits for tokens. RFC 2697's meter with one
//! bucket whose excess is red, color-blind; `tc police rate RATE burst BURST` of Linux. Operators limit flows to a plan's rate
//! with it (Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016).
//!
//! The bucket is the virtual clock of the equivalent GCRA (ITU-T I.371): a packet conforms if the time at which the
//! bucket would have been used up by it is at most a burst ahead. What conforms waits, first in, first out, for the link,
//! which should be faster than the policer.

use super::{Fifo, Limit, Queue, Setup, Verdicts};
use crate::event::DropReason;
use crate::packet::Packet;
use crate::time::Time;
use crate::units::BitRate;

crate::options! {
    /// Parameters.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// At which the bucket fills, IP headers counted.
        committed_rate: BitRate = "10mbit",
        /// Bytes that the bucket holds: the committed burst, which must be the largest packet at least (RFC 2697
        /// section 2), or nothing larger ever passes. 100 ms of the default rate.
        burst: u32 as count(1500, 4_294_967_295) = "125000",
    }
    beside {
        /// How much may wait for the link.
        limit: Limit = Limit::NONE,
    }
}

impl Options {
    /// Room for `packets` before the link.
    pub fn packets(packets: u32) -> Self {
        Self { limit: Limit::packets(packets), ..Self::default() }
    }
}

/// First in, first out, behind a token bucket that delays nothing.
#[derive(Clone, Debug)]
pub struct Policer {
    options: Options,
    /// When the bucket will be full again.
    full_at: Time,
    waiting: Fifo,
}

impl Policer {
    /// An empty queue and a full bucket.
    pub fn new(options: Options, _setup: &Setup<'_>) -> Self {
        Self { options, full_at: Time::ZERO, waiting: Fifo::default() }
    }
}

impl Queue for Policer {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        let Options { committed_rate: rate, burst, limit } = self.options;
        if !self.waiting.admits(&limit, &packet) {
            verdicts.drop(packet, DropReason::Overflow);
            return;
        }
        let full_at = self.full_at.max(now) + rate.serialisation(packet.size().into());
        if full_at.since(now) > rate.serialisation(burst.into()) {
            verdicts.drop(packet, DropReason::Early);
            return;
        }
        self.full_at = full_at;
        self.waiting.push(now, packet);
    }

    fn dequeue(&mut self, _now: Time, _verdicts: &mut Verdicts) -> Option<Packet> {
        self.waiting.pop().map(|(_, packet)| packet)
    }

    crate::forward! { waiting: packets bytes }
}

//! Queueing disciplines: who waits, who is dropped or marked, who goes next. One discipline, one file.
//!
//! A [`Queue`] sees `now` at both ends, so that it can act on arrival (drop-tail, RED, PIE), on
//! departure (CoDel) or reorder (fair queueing); [`Fifo`] keeps the time each packet came in, for
//! those that judge by sojourn time. What a discipline throws away or marks goes into [`Verdicts`],
//! which the link that owns the queue empties and reports; nothing is allocated per packet.
//!
//! A discipline has no timer: what its RFC does periodically (PIE, DualPI2, adaptive RED) it does when
//! it is next looked at, for every period that has passed, which is the same because nothing changes
//! between two looks.
//!
//! A [`crate::link::Link`] serves plain drop-tail without asking this trait: there the departure of
//! every packet is known when it arrives.

pub mod ack_filter;
pub mod codel;
mod discipline;
pub mod drop_tail;
pub mod dualpi2;
pub mod ecn;
pub mod edctcp;
pub mod encn;
mod fifo;
mod flows;
pub mod fq_codel;
pub mod fq_pie;
pub mod jersey;
mod limit;
pub mod pie;
pub mod policer;
pub mod red;
pub mod threshold;
mod verdicts;

pub use ack_filter::AckFilter;
pub use codel::Codel;
pub use discipline::{Discipline, Factory};
pub use drop_tail::DropTail;
pub use dualpi2::DualPi2;
pub use edctcp::Edctcp;
pub use encn::Encn;
pub use fifo::{Fifo, Unit};
pub use fq_codel::FqCodel;
pub use fq_pie::FqPie;
pub use jersey::Jersey;
pub use limit::Limit;
pub use pie::Pie;
pub use policer::Policer;
pub use red::Red;
pub use threshold::Threshold;
pub use verdicts::{Verdict, Verdicts};

use crate::packet::Packet;
use crate::rng::Rng;
use crate::time::Time;
use crate::units::BitRate;

/// A queueing discipline. It may hold any number of packets and hands each out at most once.
///
/// Calls come in order of time: whatever was due to leave before `now` has been asked for.
pub trait Queue {
    /// A packet arrives: it is kept (perhaps marked) or dropped, and others may be dropped in its
    /// favour.
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts);

    /// The link is free: the packet that goes next, `None` where nothing waits.
    fn dequeue(&mut self, now: Time, verdicts: &mut Verdicts) -> Option<Packet>;

    /// Packets waiting.
    fn packets(&self) -> u32;

    /// Bytes waiting, as the IP layer counts them.
    fn bytes(&self) -> u64;

    /// From now on, coins fall as they would under `seed`: a run that branches. Those that flip none
    /// ignore it.
    fn reseed(&mut self, _seed: u64) {}
}

/// What a link tells the discipline that it builds.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The transmitter's rate.
    pub rate: BitRate,
    /// Seed of the world.
    pub seed: u64,
    /// Name of the link's streams: a discipline that flips coins draws from `NAME/queue`.
    pub name: &'a str,
}

impl Setup<'_> {
    /// The stream that a discipline draws from.
    pub fn stream(&self) -> Rng {
        Rng::named(self.seed, &format!("{}/queue", self.name))
    }
}

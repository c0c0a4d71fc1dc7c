//! The E-DCTCP switch (Huang and Hu, ICC 2015): DCTCP's threshold, and a TCP packet for which there is
//! no room is stamped and sent back to its sender instead of being dropped.
//!
//! The stamp is [`Packet::returned`], which the link sets when it hands the packet back
//! ([`DropReason::Returned`]). A packet that is on its way back already, or that is no TCP segment, is
//! dropped as in any queue: no sender expects it back. Only the abstract of the paper was
//! at hand; which queue a returned packet joins on its way back is the topology's affair here.

use super::threshold::{Options, Threshold};
use super::{Queue, Setup, Verdicts};
use crate::event::DropReason;
use crate::packet::{Body, Packet};
use crate::time::Time;

/// DCTCP's threshold with return instead of overflow.
#[derive(Clone, Debug)]
pub struct Edctcp(Threshold);

impl Edctcp {
    /// An empty queue.
    pub fn new(options: Options, setup: &Setup<'_>) -> Self {
        Self(Threshold::new(options, setup))
    }
}

impl Queue for Edctcp {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        let may_return = matches!(packet.body, Body::Tcp(_)) && !packet.returned;
        if may_return && !self.0.admits(&packet) {
            verdicts.drop(packet, DropReason::Returned);
        } else {
            self.0.enqueue(now, packet, verdicts);
        }
    }

    fn dequeue(&mut self, now: Time, verdicts: &mut Verdicts) -> Option<Packet> {
        self.0.dequeue(now, verdicts)
    }

    crate::forward! { 0: packets bytes }
}

//! FQ-CoDel: RFC 8290. Flows are hashed into queues, each under CoDel's law, served in turn
//! (`super::flows`).
//!
//! A full buffer drops half of the packets of the longest queue by bytes from its head, 64 at most
//! (section 4.1). CoDel's "no more than one packet left" looks at the flow's own queue, as RFC 8289 has it
//! for one queue, where Linux looks at all of them together; the packet is the largest of any flow.

use super::codel::{self, Law};
use super::ecn::Treatment;
use super::flows::Flows;
use super::{Limit, Queue, Setup, Verdicts};
use crate::event::DropReason;
use crate::packet::Packet;
use crate::time::{Span, Time};

crate::options! {
    /// Parameters.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// CoDel's target.
        target: Span as positive_span() = "5ms",
        /// CoDel's interval.
        interval: Span as positive_span() = "100ms",
        /// Queues that flows are hashed into (RFC 8290 section 5.2.6).
        flows: u32 as count(1, 65_536) = "1024",
        /// Bytes that a queue may send per round (section 5.2.4).
        quantum: u32 as count(100, 1_000_000) = "1514",
        /// How CoDel takes its square root.
        square_root: codel::SquareRoot = "exact",
        /// What happens to packets that CoDel chooses.
        ecn: Treatment = "mark",
    }
    beside {
        /// How much may wait in all queues together.
        limit: Limit = Limit::NONE,
    }
}

impl Options {
    /// RFC 8290 with room for `packets`.
    pub fn packets(packets: u32) -> Self {
        Self { limit: Limit::packets(packets), ..Self::default() }
    }
}

/// Flow queues under CoDel, in turn.
#[derive(Clone, Debug)]
pub struct FqCodel {
    limit: Limit,
    /// Bytes of the largest packet that came.
    max_packet: u32,
    flows: Flows<Law>,
}

impl FqCodel {
    /// Empty queues.
    pub fn new(options: Options, setup: &Setup<'_>) -> Self {
        let Options { target, interval, flows, quantum, square_root, ecn, limit } = options;
        let law =
            codel::Options { target, interval, square_root, ecn, ..codel::Options::default() };
        let law = Law::new(law);
        let flows = Flows::new(flows, quantum, law, setup.stream().next_u64());
        Self { limit, max_packet: 0, flows }
    }
}

impl Queue for FqCodel {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        self.max_packet = self.max_packet.max(packet.size());
        self.flows.arrive(packet, |_, waiting, packet| waiting.push(now, packet));
        while self.packets() > self.limit.packets || self.bytes() > self.limit.bytes {
            self.flows.halve_longest(|packet| verdicts.drop(packet, DropReason::Overflow));
        }
    }

    fn dequeue(&mut self, now: Time, verdicts: &mut Verdicts) -> Option<Packet> {
        let max_packet = self.max_packet;
        self.flows.next(|law, waiting| law.dequeue(now, waiting, max_packet, verdicts))
    }

    crate::forward! { flows: packets bytes }
}

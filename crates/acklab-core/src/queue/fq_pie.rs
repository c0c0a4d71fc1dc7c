//! FQ-PIE: the flow queues of RFC 8290, each under PIE's law (RFC 8033), as Linux's `fq_pie` has them.
//!
//! A packet that is chosen is dropped or marked as it arrives, by its own queue's probability and delay.
//! Where all queues together are full, the packet that arrives is dropped, whichever queue it is for:
//! FQ-CoDel would make room at the longest. Delays come from time stamps, because a queue that shares the
//! link cannot tell its delay from the link's rate.
//!
//! Unlike Linux's: marks are on (`ecn = "drop"` is its default), burst allowances shrink with each update
//! as in RFC 8033 section 4.4 rather than with each departure, and updates are those of each queue's own
//! time, see [`super`].

use super::flows::Flows;
use super::pie::{self, Delay, Law};
use super::{Limit, Queue, Setup, Verdicts};
use crate::packet::Packet;
use crate::rng::Rng;
use crate::time::Time;

crate::options! {
    /// Parameters; those of PIE hold for each queue.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// Queues that flows are hashed into (RFC 8290 section 5.2.6).
        flows: u32 as count(1, 65_536) = "1024",
        /// Bytes that a queue may send per round (section 5.2.4).
        quantum: u32 as count(100, 1_000_000) = "1514",
    }
    beside {
        /// How much may wait in all queues together.
        limit: Limit = Limit::NONE,
    }
    within {
        /// PIE; its limit is not used.
        pie: pie::Options = pie::Options { delay: Delay::TimeStamps, ..pie::Options::default() },
    }
}

impl Options {
    /// Linux's defaults, but marks, with room for `packets`.
    pub fn packets(packets: u32) -> Self {
        Self { limit: Limit::packets(packets), ..Self::default() }
    }
}

/// Flow queues under PIE, in turn.
#[derive(Clone, Debug)]
pub struct FqPie {
    limit: Limit,
    flows: Flows<Law>,
    rng: Rng,
}

impl FqPie {
    /// Empty queues.
    pub fn new(options: Options, setup: &Setup<'_>) -> Self {
        let Options { flows, quantum, limit, pie } = options;
        let mut rng = setup.stream();
        let flows = Flows::new(flows, quantum, Law::new(pie, setup.rate), rng.next_u64());
        Self { limit, flows, rng }
    }
}

impl Queue for FqPie {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        let Self { limit, flows, rng } = self;
        let room = flows.admits(limit, &packet);
        flows.arrive(packet, |law, waiting, packet| {
            if !room {
                law.overflow(packet, verdicts);
            } else if let Some(packet) = law.admit(now, packet, waiting, rng, verdicts) {
                waiting.push(now, packet);
            }
        });
    }

    fn dequeue(&mut self, now: Time, _verdicts: &mut Verdicts) -> Option<Packet> {
        self.flows.next(|law, waiting| law.dequeue(now, waiting))
    }

    crate::forward! { flows: packets bytes }

    fn reseed(&mut self, seed: u64) {
        self.rng.reseed(seed);
    }
}

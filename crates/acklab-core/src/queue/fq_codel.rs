//! FQ-CoDel: RFC 8290. Flows are hashed into queues, each under CoDel's law, served by deficit round
//! robin in which queues that have just become busy go first (DRR++).
//!
//! A full buffer drops from the head of the longest queue by bytes (section 4.1.2). A queue that is
//! empty when its turn comes leaves the new list for the end of the old one, and the old list for good
//! (section 4.2), so that a flow cannot jump the line by pausing.
//!
//! The hash is over addresses, ports and protocol, salted from the world's seed. CoDel's "no more than
//! one packet left" looks at the flow's own queue, as RFC 8289 has it for one queue; Linux looks at all
//! of them together, and drops up to 64 packets at once when full.

use std::collections::VecDeque;

use super::codel::{self, Law};
use super::ecn::Treatment;
use super::{Fifo, Limit, Queue, Setup, Verdicts};
use crate::event::DropReason;
use crate::packet::{Body, Packet};
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
    options: Options,
    salt: u64,
    flows: Vec<Flow>,
    /// Queues that have just become busy.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u32,
    bytes: u64,
}

#[derive(Clone, Debug)]
struct Flow {
    waiting: Fifo,
    law: Law,
    /// Bytes it may still send in this round.
    deficit: i64,
    /// Whether it stands in a list.
    listed: bool,
}

impl FqCodel {
    /// Empty queues.
    pub fn new(options: Options, setup: &Setup<'_>) -> Self {
        let Options { target, interval, ecn, .. } = options;
        let law = Law::new(codel::Options { target, interval, ecn, ..codel::Options::default() });
        let flow = Flow { waiting: Fifo::default(), law, deficit: 0, listed: false };
        Self {
            options,
            salt: setup.stream().next_u64(),
            flows: vec![flow; options.flows.max(1) as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    fn over_limit(&self) -> bool {
        self.packets > self.options.limit.packets || self.bytes > self.options.limit.bytes
    }

    /// Drops the oldest packet of the longest queue.
    fn drop_from_longest(&mut self, verdicts: &mut Verdicts) {
        let busy = self.new.iter().chain(&self.old);
        let length = |&&index: &&u32| self.flows[index as usize].waiting.bytes();
        // The first of equals, so that the order of the lists decides.
        let Some(&longest) = busy.rev().max_by_key(length) else { return };
        let Some((_, packet)) = self.flows[longest as usize].waiting.pop() else { return };
        self.packets -= 1;
        self.bytes -= u64::from(packet.size());
        verdicts.drop(packet, DropReason::Overflow);
    }

    fn queue_of(&self, packet: &Packet) -> usize {
        let ends = [packet.src, packet.dst]
            .iter()
            .fold(0, |sum, end| sum << 32 | u64::from(end.node.0) << 16 | u64::from(end.port));
        let protocol = u64::from(matches!(packet.body, Body::Tcp(_)));
        let mut mixed = (ends ^ self.salt).wrapping_add(protocol.wrapping_mul(0x9e37_79b9));
        // The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed % self.flows.len() as u64) as usize
    }
}

impl Queue for FqCodel {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        let index = self.queue_of(&packet);
        let flow = &mut self.flows[index];
        flow.law.on_arrival(&packet);
        flow.waiting.push(now, packet);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = i64::from(self.options.quantum);
            self.new.push_back(index as u32);
        }
        self.packets += 1;
        self.bytes += u64::from(packet.size());
        while self.over_limit() {
            self.drop_from_longest(verdicts);
        }
    }

    fn dequeue(&mut self, now: Time, verdicts: &mut Verdicts) -> Option<Packet> {
        loop {
            let from_new = !self.new.is_empty();
            let index = *self.new.front().or(self.old.front())?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit > 0 {
                let before = (flow.waiting.packets(), flow.waiting.bytes());
                let packet = flow.law.dequeue(now, &mut flow.waiting, verdicts);
                self.packets -= before.0 - flow.waiting.packets();
                self.bytes -= before.1 - flow.waiting.bytes();
                if let Some(packet) = packet {
                    flow.deficit -= i64::from(packet.size());
                    return Some(packet);
                }
                if !from_new {
                    flow.listed = false;
                    self.old.pop_front();
                    continue;
                }
            } else {
                flow.deficit += i64::from(self.options.quantum.max(1));
            }
            // To the end of the old list.
            if from_new {
                self.new.pop_front()
            } else {
                self.old.pop_front()
            };
            self.old.push_back(index);
        }
    }

    fn packets(&self) -> u32 {
        self.packets
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

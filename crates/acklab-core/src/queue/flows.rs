//! [`Flows`]: queues that flows are hashed into, served by deficit round robin in which queues that have
//! just become busy go first (DRR++, RFC 8290 section 4). What each queue does with its packets is the
//! business of the law that it is under.
//!
//! A queue that is empty when its turn comes leaves the new list for the end of the old one, and the old
//! list for good (section 4.2), so that a flow cannot jump the line by pausing. The hash is over addresses,
//! ports and protocol, salted from the world's seed.

use std::collections::VecDeque;

use super::{Fifo, Limit};
use crate::packet::{Body, Packet};

/// Queues under a law of type `L`, in turn.
#[derive(Clone, Debug)]
pub(super) struct Flows<L> {
    salt: u64,
    /// Bytes that a queue may send per round.
    quantum: i64,
    queues: Vec<Flow<L>>,
    /// Queues that have just become busy.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u32,
    bytes: u64,
}

#[derive(Clone, Debug)]
struct Flow<L> {
    waiting: Fifo,
    law: L,
    /// Bytes it may still send in this round.
    deficit: i64,
    /// Whether it stands in a list.
    listed: bool,
}

impl<L: Clone> Flows<L> {
    /// `count` empty queues, each under a law like `law`.
    pub(super) fn new(count: u32, quantum: u32, law: L, salt: u64) -> Self {
        let flow = Flow { waiting: Fifo::default(), law, deficit: 0, listed: false };
        Self {
            salt,
            quantum: i64::from(quantum.max(1)),
            queues: vec![flow; count.max(1) as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    /// Packets in all queues.
    pub(super) const fn packets(&self) -> u32 {
        self.packets
    }

    /// Bytes in all queues.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether `packet` fits beside all that wait.
    pub(super) fn admits(&self, limit: &Limit, packet: &Packet) -> bool {
        limit.admits(self.packets, self.bytes, packet.size())
    }

    /// Lets `act` see the queue of `packet` and its law. The queue takes its turn from now on if something
    /// waits in it.
    pub(super) fn arrive(&mut self, packet: Packet, act: impl FnOnce(&mut L, &mut Fifo, Packet)) {
        let index = self.queue_of(&packet);
        self.act(index, |law, waiting| act(law, waiting, packet));
        let quantum = self.quantum;
        let flow = &mut self.queues[index as usize];
        if !flow.listed && !flow.waiting.is_empty() {
            flow.listed = true;
            flow.deficit = quantum;
            self.new.push_back(index);
        }
    }

    /// What the next queue in turn lets go; `leave` takes it out under the queue's law.
    pub(super) fn next(
        &mut self,
        mut leave: impl FnMut(&mut L, &mut Fifo) -> Option<Packet>,
    ) -> Option<Packet> {
        loop {
            let from_new = !self.new.is_empty();
            let index = *self.new.front().or(self.old.front())?;
            if self.queues[index as usize].deficit > 0 {
                let packet = self.act(index, &mut leave);
                let flow = &mut self.queues[index as usize];
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
                self.queues[index as usize].deficit += self.quantum;
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

    /// Takes the older half of the packets, but 64 at most and one at least, out of the queue with the most
    /// bytes (RFC 8290 section 4.1).
    pub(super) fn halve_longest(&mut self, mut drop: impl FnMut(Packet)) {
        let busy = self.new.iter().chain(&self.old);
        let length = |&&index: &&u32| self.queues[index as usize].waiting.bytes();
        // The first of equals, so that the order of the lists decides.
        let Some(&longest) = busy.rev().max_by_key(length) else { return };
        self.act(longest, |_, waiting| {
            for _ in 0..(waiting.packets() / 2).clamp(1, 64) {
                waiting.pop().into_iter().for_each(|(_, packet)| drop(packet));
            }
        });
    }

    /// Acts on one queue and counts what came and went.
    fn act<T>(&mut self, index: u32, act: impl FnOnce(&mut L, &mut Fifo) -> T) -> T {
        let Flow { law, waiting, .. } = &mut self.queues[index as usize];
        let before = (waiting.packets(), waiting.bytes());
        let result = act(law, waiting);
        self.packets = self.packets - before.0 + waiting.packets();
        self.bytes = self.bytes - before.1 + waiting.bytes();
        result
    }

    fn queue_of(&self, packet: &Packet) -> u32 {
        let ends = [packet.src, packet.dst]
            .iter()
            .fold(0, |sum, end| sum << 32 | u64::from(end.node.0) << 16 | u64::from(end.port));
        let protocol = u64::from(matches!(packet.body, Body::Tcp(_)));
        let mut mixed = (ends ^ self.salt).wrapping_add(protocol.wrapping_mul(0x9e37_79b9));
        // The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed % self.queues.len() as u64) as u32
    }
}

//! CoDel, controlled delay: RFC 8289.
//!
//! Judges by how long the packet at the head has waited, when it leaves: above `target` for a whole
//! `interval`, one packet is chosen, and then one after each interval / sqrt(count), until the delay
//! falls below the target or no more than one packet of the largest size is left (sections 4 and 5).
//!
//! [`Variant::Article2012`] is the law of Nichols and Jacobson, ACM Queue 10(5), 2012, as its appendix
//! has it. It differs in three places: from outside the dropping state it enters only if it has been
//! above the target for a second interval or had left the state less than one ago; a re-entry
//! within one interval resumes with count - 2, where the RFC resumes, within 16 intervals, with the
//! drops of the last round; and only less than a packet of the largest size left is too little to choose.
//!
//! A packet that is marked instead counts as a drop, but ends that call, since no other takes its
//! place. An exempt packet passes without moving the law.

use super::ecn::Treatment;
use super::{Fifo, Limit, Queue, Setup, Verdicts};
use crate::event::DropReason;
use crate::packet::Packet;
use crate::time::{Span, Time};

crate::options! {
    /// Parameters.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// Standing delay that is fine (RFC 8289 section 4.3).
        target: Span as positive_span() = "5ms",
        /// A round trip of the longer kind (RFC 8289 section 4.2).
        interval: Span as positive_span() = "100ms",
        /// With no more bytes than this left, nothing is chosen: the MTU; 0: the largest packet that came
        /// so far (RFC 8289 section 5.4, maxpacket_).
        max_packet: Option<u32> as count(0, 65_535) = "0",
        /// Which control law.
        variant: Variant = "rfc8289",
        /// How the gap's square root is taken.
        square_root: SquareRoot = "exact",
        /// What happens to chosen packets.
        ecn: Treatment = "mark",
    }
    beside {
        /// How much may wait.
        limit: Limit = Limit::NONE,
    }
}

crate::words! {
    /// Which control law.
    pub enum Variant {
        /// RFC 8289 section 5.
        Rfc8289 = "rfc8289",
        /// ACM Queue, May 2012, appendix.
        Article2012 = "article-2012",
    }
}

crate::words! {
    /// How 1 / sqrt(count) is taken.
    pub enum SquareRoot {
        /// As the RFC's pseudocode has it.
        Exact = "exact",
        /// Linux's: 16 bits, and one step of Newton's method from the last value with each new count, so that the second
        /// drop of a round comes after half an interval instead of 0.71, and later ones soon as the law says.
        Newton = "newton",
    }
}

impl Options {
    /// RFC 8289 with room for `packets`.
    pub fn packets(packets: u32) -> Self {
        Self { limit: Limit::packets(packets), ..Self::default() }
    }
}

/// First in, first out, under CoDel's law.
#[derive(Clone, Debug)]
pub struct Codel {
    limit: Limit,
    /// Bytes of the largest packet, as told or as seen.
    max_packet: u32,
    fixed_max_packet: bool,
    waiting: Fifo,
    law: Law,
}

impl Codel {
    /// An empty queue.
    pub fn new(options: Options, _setup: &Setup<'_>) -> Self {
        Self {
            limit: options.limit,
            fixed_max_packet: options.max_packet.is_some(),
            max_packet: options.max_packet.unwrap_or(0),
            waiting: Fifo::default(),
            law: Law::new(options),
        }
    }
}

impl Queue for Codel {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        if self.waiting.admits(&self.limit, &packet) {
            if !self.fixed_max_packet {
                self.max_packet = self.max_packet.max(packet.size());
            }
            self.waiting.push(now, packet);
        } else {
            verdicts.drop(packet, DropReason::Overflow);
        }
    }

    fn dequeue(&mut self, now: Time, verdicts: &mut Verdicts) -> Option<Packet> {
        self.law.dequeue(now, &mut self.waiting, self.max_packet, verdicts)
    }

    crate::forward! { waiting: packets bytes }
}

/// The control law over one FIFO; FQ-CoDel runs one per flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    target: Span,
    interval: Span,
    variant: Variant,
    square_root: SquareRoot,
    ecn: Treatment,
    /// When the delay will have been above the target for an interval.
    first_above: Option<Time>,
    dropping: bool,
    drop_next: Time,
    count: u32,
    /// The count with which the last dropping state began.
    last_count: u32,
    /// 1 / sqrt(count) in units of 2^-16, as Newton's method has it.
    reciprocal: u32,
}

impl Law {
    pub(super) fn new(options: Options) -> Self {
        Self {
            target: options.target,
            interval: options.interval,
            variant: options.variant,
            square_root: options.square_root,
            ecn: options.ecn,
            first_above: None,
            dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            reciprocal: ONE,
        }
    }

    /// Takes the oldest packet out that is not dropped; the largest that came has `max_packet` bytes.
    pub(super) fn dequeue(
        &mut self,
        now: Time,
        queue: &mut Fifo,
        max_packet: u32,
        verdicts: &mut Verdicts,
    ) -> Option<Packet> {
        let (mut head, mut late) = self.take(now, queue, max_packet);
        self.dropping &= late;
        while self.dropping && now >= self.drop_next {
            let packet = head?;
            if self.ecn.exempts(&packet) {
                return head;
            }
            self.set_count(self.count + 1);
            if self.ecn.marks(&packet) {
                self.drop_next = self.control_law(self.drop_next);
                return Some(verdicts.mark(packet));
            }
            verdicts.drop(packet, DropReason::Early);
            (head, late) = self.take(now, queue, max_packet);
            self.dropping = late;
            if late {
                self.drop_next = self.control_law(self.drop_next);
            }
        }
        if !self.dropping && late && self.may_enter(now) {
            let packet = head?;
            if self.ecn.exempts(&packet) {
                return head;
            }
            head = self.ecn.choose(packet, verdicts);
            if head.is_none() {
                head = self.take(now, queue, max_packet).0;
            }
            self.enter(now);
        }
        head
    }

    /// Takes the head out and says whether it has been late for long enough.
    fn take(&mut self, now: Time, queue: &mut Fifo, max_packet: u32) -> (Option<Packet>, bool) {
        let Some((came, packet)) = queue.pop() else {
            self.first_above = None;
            return (None, false);
        };
        let max_packet = u64::from(max_packet);
        let is_little = match self.variant {
            Variant::Rfc8289 => queue.bytes() <= max_packet,
            Variant::Article2012 => queue.bytes() < max_packet,
        };
        if now.since(came) < self.target || is_little {
            self.first_above = None;
            return (Some(packet), false);
        }
        let first_above = *self.first_above.get_or_insert(now + self.interval);
        (Some(packet), first_above <= now)
    }

    fn may_enter(&self, now: Time) -> bool {
        match self.variant {
            Variant::Rfc8289 => true,
            Variant::Article2012 => {
                now < self.drop_next + self.interval
                    || self.first_above.is_some_and(|at| now >= at + self.interval)
            }
        }
    }

    fn enter(&mut self, now: Time) {
        self.dropping = true;
        let count = match self.variant {
            Variant::Rfc8289 => {
                let delta = self.count - self.last_count;
                let recent = now < self.drop_next + self.interval * 16;
                if delta > 1 && recent { delta } else { 1 }
            }
            Variant::Article2012 => {
                let recent = now < self.drop_next + self.interval;
                if recent && self.count > 2 { self.count - 2 } else { 1 }
            }
        };
        self.set_count(count);
        self.drop_next = self.control_law(now);
        self.last_count = self.count;
    }

    /// Newton's step towards x = 1 / sqrt(count): x (3 - count x^2) / 2, from 1 where the count begins anew.
    fn set_count(&mut self, count: u32) {
        self.count = count;
        let x = u64::from(self.reciprocal);
        let step = (x * (3_u64 << 32).saturating_sub(u64::from(count) * x * x)) >> 33;
        self.reciprocal = if count == 1 { ONE } else { (step as u32).clamp(1, ONE) };
    }

    fn control_law(&self, from: Time) -> Time {
        if self.square_root == SquareRoot::Newton {
            let gap = (u128::from(self.interval.as_nanos()) * u128::from(self.reciprocal)) >> 16;
            return from + Span::from_nanos(gap as u64);
        }
        let gap = self.interval.as_nanos() as f64 / f64::from(self.count).sqrt();
        from + Span::from_nanos((gap + 0.5) as u64)
    }
}

/// Just below 1, in units of 2^-16: what 16 bits hold.
const ONE: u32 = u16::MAX as u32;

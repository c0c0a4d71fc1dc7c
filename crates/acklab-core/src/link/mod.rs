//! A link in one direction: a queue, a rate, a propagation delay with jitter, and impairments.
//!
//! Behind drop-tail the departure of a packet is known when it arrives, so the link is one FIFO of
//! packets with their arrival times at the far end, and only the head needs a timer: one event per
//! packet. Behind a managed queue the link asks the discipline for the next packet when the last has
//! left the transmitter: one event more. Where packets may overtake or be copied, drop-tail runs as a
//! managed queue, too; such a queue must have room for one packet at least.
//!
//! Jitter is uniform on [0, jitter] and never reorders: a packet waits for the one before it. The
//! impairments ([`Impairments`]) happen on the wire, after queue and transmitter, to all packets, data
//! or pure ACKs: losses (independent, Gilbert-Elliott, by list), outages, damage, reordering, copies.
//!
//! Several links may share a [`Medium`]; then drop-tail runs as a managed queue, too.
//!
//! A queue's changes are told with the time they happened, which for a packet that went into service
//! may lie before the instant at which the link is next looked at. To be told at that time, look at
//! it then: [`Link::next_departure`], [`Link::advance`].

mod config;
mod disorder;
mod impair;
mod loss;
mod medium;
mod rate;
mod select;

pub use config::LinkConfig;
pub use disorder::{Corruption, Duplication, ErrorRate, Reordering, Shift};
pub use impair::Impairments;
pub use loss::{GilbertElliott, Loss, LossModel, Outage};
pub use medium::Medium;
pub use rate::RateChanges;
pub use select::{Packets, Share};

use std::collections::VecDeque;

use self::impair::{Fate, Passage, Wire};
use self::rate::Transmitter;
use crate::endpoint::Endpoint;
use crate::event::{DropReason, EventKind, Interest, Sink};
use crate::packet::Packet;
use crate::queue::{Discipline, Limit, Queue, Setup, Verdict, Verdicts, drop_tail};
use crate::rng::Rng;
use crate::time::{Span, Time};

/// A packet between the transmitter's queue and the far end. In this order, so that what is asked of it while
/// it waits lies together: with thousands of packets on their way each cache line counts.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Transit {
    /// When its transmission begins.
    start: Time,
    /// When it is at the far end.
    arrival: Time,
    /// The packet's, bytes.
    size: u32,
    fate: Fate,
    packet: Packet,
}

/// One direction of a link.
pub struct Link {
    index: u32,
    transmitter: Transmitter,
    delay: Span,
    jitter: Span,
    loss: f64,
    rng: Rng,
    /// Other impairments.
    wire: Option<Box<Wire>>,
    copies: u64,
    waiting: Waiting,
    medium: Option<Medium>,
    /// The transmitter is busy until then.
    free: Time,
    /// When the last packet that was not shifted arrives.
    latest: Time,
    /// In order of arrival.
    transit: VecDeque<Transit>,
    verdicts: Verdicts,
    /// Going back to where they came from.
    returned: VecDeque<Packet>,
}

enum Waiting {
    /// Part of `transit`: the first `started` packets there are past the queue, `bytes` are not.
    Computed { limit: Limit, started: usize, bytes: u64 },
    /// In the discipline.
    Managed(Box<dyn Queue + Send>),
}

impl Link {
    /// The link number `index` of a world; its randomness is the stream `link/INDEX` under `seed`.
    pub fn new(index: u32, seed: u64, config: LinkConfig) -> Self {
        Self::on_medium(index, seed, config, None)
    }

    /// The same on a medium that it shares.
    pub fn on_medium(
        index: u32,
        seed: u64,
        mut config: LinkConfig,
        medium: Option<Medium>,
    ) -> Self {
        let name = format!("link/{index}");
        let disturbs_order = config.impairments.disturbs_order();
        let waiting = match config.queue {
            Discipline::DropTail(drop_tail::Options { limit })
                if !disturbs_order && medium.is_none() =>
            {
                Waiting::Computed { limit, started: 0, bytes: 0 }
            }
            managed => {
                let setup = Setup { rate: config.rate, seed, name: &name };
                Waiting::Managed(managed.build(&setup))
            }
        };
        let loss = config.impairments.take_plain_loss();
        let impaired = config.impairments != Impairments::default();
        let wire = || Box::new(Wire::new(config.impairments, seed, &name));
        Self {
            index,
            transmitter: Transmitter::new(config.rate, config.changes, seed, &name),
            delay: config.delay,
            jitter: config.jitter,
            loss,
            wire: impaired.then(wire),
            copies: 0,
            latest: Time::ZERO,
            rng: Rng::named(seed, &name),
            waiting,
            medium,
            free: Time::ZERO,
            transit: VecDeque::new(),
            verdicts: Verdicts::default(),
            returned: VecDeque::new(),
        }
    }

    /// Copies made so far.
    pub const fn copies(&self) -> u64 {
        self.copies
    }

    /// Brings the queue up to `now` where an observer is told of it, or it is a managed one; a computed
    /// one can wait until it is asked for its length.
    #[inline]
    fn keep_up(&mut self, now: Time, sink: &mut Sink) {
        let told = sink.wants(Interest::QUEUE.with(Interest::PASSAGE));
        if told || matches!(self.waiting, Waiting::Managed(_)) {
            self.advance(now, sink);
        }
    }

    /// When the next packet leaves a computed queue. The link tells of it no sooner than it is next
    /// looked at ([`Link::advance`]), which may be a propagation delay later; `None` where nothing
    /// waits, and behind a managed queue, whose departures are deadlines.
    pub fn next_departure(&self) -> Option<Time> {
        match &self.waiting {
            Waiting::Computed { started, .. } => self.transit.get(*started).map(|next| next.start),
            Waiting::Managed(_) => None,
        }
    }

    /// Moves every packet whose turn has come from the queue into the transmitter, and tells of it.
    pub fn advance(&mut self, now: Time, sink: &mut Sink) {
        let Waiting::Computed { started, bytes, .. } = &mut self.waiting else {
            self.serve(now, sink);
            return;
        };
        while let Some(next) = self.transit.get(*started).filter(|next| next.start <= now) {
            *started += 1;
            *bytes -= u64::from(next.size);
            let link = self.index;
            let (packets, bytes) = ((self.transit.len() - *started) as u32, *bytes);
            // Nothing is copied for those who did not ask.
            if sink.wants(Interest::PASSAGE) {
                sink.record(next.start, EventKind::Served { link, packet: next.packet });
            }
            sink.record(next.start, EventKind::Queue { link, packets, bytes });
        }
    }

    /// The managed queue: transmits whatever may leave until `now`.
    fn serve(&mut self, now: Time, sink: &mut Sink) {
        while self.free <= now {
            let Waiting::Managed(queue) = &mut self.waiting else { return };
            let waits = queue.packets() > 0;
            if !Self::may_begin(self.medium.as_ref(), self.index, waits, now, &mut self.free) {
                return;
            }
            // A packet that comes to an idle transmitter starts when it comes.
            let start = self.free;
            let packet = queue.dequeue(start, &mut self.verdicts);
            if let Some(medium) = &self.medium {
                medium.want(self.index, queue.packets() > 0);
            }
            self.tell_queue(start, sink);
            let Some(packet) = packet else { return };
            if sink.wants(Interest::PASSAGE) {
                sink.record(start, EventKind::Served { link: self.index, packet });
            }
            self.transmit(start, &packet, packet.size(), sink);
        }
    }

    /// Whether a transmission may begin at `now`; a medium that is not free puts it off.
    fn may_begin(
        medium: Option<&Medium>,
        index: u32,
        waits: bool,
        now: Time,
        free: &mut Time,
    ) -> bool {
        let Some(medium) = medium else { return waits };
        medium.want(index, waits);
        *free = medium.free().max(*free);
        waits && *free <= now && medium.is_turn_of(index)
    }

    /// Puts a packet of `size` bytes on the wire from `start` on.
    fn transmit(&mut self, start: Time, packet: &Packet, size: u32, sink: &mut Sink) {
        let overhead = self.medium.as_ref().map_or(Span::ZERO, Medium::overhead);
        self.free = self.transmitter.finish(start + overhead, u64::from(size));
        if let Some(medium) = &self.medium {
            medium.take(self.index, self.free);
        }
        let mut arrival = self.free + self.delay;
        if !self.jitter.is_zero() {
            arrival += Span::from_nanos(self.rng.below(self.jitter.as_nanos() + 1));
            arrival = arrival.max(self.latest);
        }
        let lost = self.loss > 0.0 && self.rng.chance(self.loss);
        let fate = if lost { Fate::Lost } else { Fate::Arrives };
        let transit = Transit { start, arrival, packet: *packet, size, fate };
        if self.wire.is_some() {
            self.pass(transit, sink);
        } else {
            self.latest = arrival;
            self.transit.push_back(transit);
        }
    }

    /// Puts a packet through the impairments.
    fn pass(&mut self, mut transit: Transit, sink: &mut Sink) {
        let Some(wire) = &mut self.wire else { return };
        let Passage { fate, shift, copied } = wire.pass(transit.start, &transit.packet);
        if transit.fate == Fate::Arrives {
            transit.fate = fate;
        }
        match shift {
            None => self.latest = transit.arrival,
            Some(Shift::Late(by)) => transit.arrival += by,
            Some(Shift::Ahead(by)) => transit.arrival = (transit.arrival - by).max(self.free),
        }
        let place = if wire.disturbs_order {
            self.transit.partition_point(|other| other.arrival <= transit.arrival)
        } else {
            self.transit.len()
        };
        self.transit.insert(place, transit);
        if copied && transit.fate == Fate::Arrives {
            self.copies += 1;
            let (link, packet) = (self.index, transit.packet);
            sink.record(transit.start, EventKind::Copied { link, packet });
            self.transit.insert(place + 1, transit);
        }
    }

    /// Tells what became of packets, and how long the queue is. Most packets only pass, and most runs do
    /// not watch the queue.
    #[inline]
    fn tell_queue(&mut self, at: Time, sink: &mut Sink) {
        if !self.verdicts.is_empty() {
            self.tell_verdicts(at, sink);
        }
        if sink.wants(Interest::QUEUE) {
            self.tell_length(at, sink);
        }
    }

    fn tell_length(&self, at: Time, sink: &mut Sink) {
        let (packets, bytes) = match &self.waiting {
            Waiting::Computed { started, bytes, .. } => {
                ((self.transit.len() - started) as u32, *bytes)
            }
            Waiting::Managed(queue) => (queue.packets(), queue.bytes()),
        };
        sink.record(at, EventKind::Queue { link: self.index, packets, bytes });
    }

    fn tell_verdicts(&mut self, at: Time, sink: &mut Sink) {
        let link = self.index;
        for (packet, verdict) in self.verdicts.drain() {
            match verdict {
                Verdict::Marked => sink.record(at, EventKind::Marked { link, packet }),
                Verdict::Dropped(reason) => {
                    sink.record(at, EventKind::Dropped { link, reason, packet });
                    if reason == DropReason::Returned {
                        self.returned.push_back(Packet { returned: true, ..packet });
                    }
                }
            }
        }
    }
}

/// What arrives at the far end.
impl Link {
    /// Takes out the oldest packet that has arrived by `now` and is not lost.
    fn take_arrived(&mut self, now: Time, sink: &mut Sink) -> Option<Packet> {
        loop {
            self.transit.front().filter(|head| head.arrival <= now)?;
            self.keep_up(now, sink);
            // Copied from where it stands: a packet is large, and this is done for each.
            let head = self.transit.front()?;
            if let Waiting::Computed { started, bytes, .. } = &mut self.waiting {
                if *started > 0 {
                    *started -= 1;
                } else {
                    *bytes -= u64::from(head.size);
                }
            }
            let (packet, fate) = (head.packet, head.fate);
            self.transit.pop_front();
            let reason = match fate {
                Fate::Arrives => return Some(packet),
                Fate::Lost => DropReason::Loss,
                Fate::Corrupted => DropReason::Corrupted,
            };
            let link = self.index;
            sink.record(now, EventKind::Dropped { link, reason, packet });
        }
    }
}

impl Endpoint for Link {
    type Arrival<'a> = Packet;
    type Departure<'a> = Packet;
    /// A packet that goes back to its sender ([`Packet::returned`]).
    type AppEvent = Packet;

    fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink) {
        match self.waiting {
            Waiting::Computed { limit: Limit::NONE, .. } => self.keep_up(now, sink),
            _ => self.advance(now, sink),
        }
        if sink.wants(Interest::PASSAGE) {
            sink.record(now, EventKind::Offered { link: self.index, packet });
        }
        match &mut self.waiting {
            Waiting::Computed { limit, started, bytes } => {
                let waiting = (self.transit.len() - *started) as u32;
                let size = packet.size();
                if self.free > now && !limit.admits(waiting, *bytes, size) {
                    self.verdicts.drop(packet, DropReason::Overflow);
                } else {
                    *bytes += u64::from(size);
                    let start = self.free.max(now);
                    self.transmit(start, &packet, size, sink);
                }
                self.tell_queue(now, sink);
                self.keep_up(now, sink);
            }
            Waiting::Managed(queue) => {
                if queue.packets() == 0 {
                    self.free = self.free.max(now);
                }
                queue.enqueue(now, packet, &mut self.verdicts);
                self.tell_queue(now, sink);
                self.serve(now, sink);
            }
        }
    }

    fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        self.keep_up(now, sink);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time, sink: &mut Sink) -> Option<Packet> {
        // Half of all calls come too early: these are spared the rest.
        self.transit.front().filter(|head| head.arrival <= now)?;
        self.take_arrived(now, sink)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        let arrival = self.transit.front().map(|head| head.arrival);
        match &self.waiting {
            Waiting::Managed(queue) if queue.packets() > 0 => {
                let medium = self.medium.as_ref().map_or(Time::ZERO, Medium::free);
                let free = self.free.max(medium);
                Some(arrival.map_or(free, |at| at.min(free)))
            }
            _ => arrival,
        }
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Packet> {
        self.returned.pop_front()
    }

    /// What is on its way already keeps its fate.
    fn reseed(&mut self, seed: u64) {
        self.rng.reseed(seed);
        self.transmitter.reseed(seed);
        if let Some(wire) = &mut self.wire {
            wire.reseed(seed);
        }
        if let Waiting::Managed(queue) = &mut self.waiting {
            queue.reseed(seed);
        }
    }
}

#[cfg(test)]
mod tests;

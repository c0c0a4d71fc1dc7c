//! A link in one direction: a queue, a rate, a propagation delay with jitter, and losses.
//!
//! Behind drop-tail the departure of a packet is known when it arrives, so the link is one FIFO of
//! packets with their arrival times at the far end, and only the head needs a timer: one event per
//! packet. Behind a managed queue the link asks the discipline for the next packet when the last has
//! left the transmitter: one event more.
//!
//! Jitter is uniform on [0, jitter] and never reorders: a packet waits for the one before it. Losses
//! are independent and happen on the wire, after queue and transmitter. Reordering, duplication,
//! corruption and bursty loss are left out so far.
//!
//! A queue's changes are told with the time they happened, which for a packet that went into service
//! may lie before the instant at which the link is next looked at.

use std::collections::VecDeque;

use crate::endpoint::Endpoint;
use crate::event::{DropReason, EventKind, Interest, Sink};
use crate::packet::Packet;
use crate::queue::{Discipline, Limit, Queue, Setup, Verdict, Verdicts};
use crate::rng::Rng;
use crate::time::{Span, Time};
use crate::units::BitRate;

/// What a link is like.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Transmitter.
    pub rate: BitRate,
    /// Propagation.
    pub delay: Span,
    /// Added to the propagation of each packet, uniform on [0, jitter].
    pub jitter: Span,
    /// Probability that a packet is lost on the wire.
    pub loss: f64,
    /// What waits for the transmitter.
    pub queue: Discipline,
}

/// Infinitely fast, without delay or loss.
impl Default for LinkConfig {
    fn default() -> Self {
        Self::new(BitRate::INFINITE, Span::ZERO)
    }
}

impl LinkConfig {
    /// A rate and a delay; no jitter, no loss, an unlimited queue.
    pub fn new(rate: BitRate, delay: Span) -> Self {
        Self { rate, delay, jitter: Span::ZERO, loss: 0.0, queue: Discipline::default() }
    }

    /// With losses of probability `loss`.
    #[must_use]
    pub fn with_loss(mut self, loss: f64) -> Self {
        self.loss = loss;
        self
    }

    /// With jitter.
    #[must_use]
    pub fn with_jitter(mut self, jitter: Span) -> Self {
        self.jitter = jitter;
        self
    }

    /// With another queue.
    #[must_use]
    pub fn with_queue(mut self, queue: Discipline) -> Self {
        self.queue = queue;
        self
    }
}

/// A packet between the transmitter's queue and the far end.
#[derive(Clone, Copy, Debug)]
struct Transit {
    /// When its transmission begins.
    start: Time,
    /// When it is at the far end.
    arrival: Time,
    packet: Packet,
    lost: bool,
}

/// One direction of a link.
pub struct Link {
    index: u32,
    rate: BitRate,
    delay: Span,
    jitter: Span,
    loss: f64,
    rng: Rng,
    waiting: Waiting,
    /// The transmitter is busy until then.
    free: Time,
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
        let name = format!("link/{index}");
        let waiting = match config.queue {
            Discipline::DropTail(limit) => Waiting::Computed { limit, started: 0, bytes: 0 },
            managed => {
                let setup = Setup { rate: config.rate, seed, name: &name };
                Waiting::Managed(managed.build(&setup))
            }
        };
        Self {
            index,
            rate: config.rate,
            delay: config.delay,
            jitter: config.jitter,
            loss: config.loss,
            rng: Rng::named(seed, &name),
            waiting,
            free: Time::ZERO,
            transit: VecDeque::new(),
            verdicts: Verdicts::default(),
            returned: VecDeque::new(),
        }
    }

    /// From now on, this link and its queue draw as they would under `seed`: a run that branches.
    /// What is on its way already keeps its fate.
    pub fn reseed(&mut self, seed: u64) {
        let name = format!("link/{}", self.index);
        self.rng = Rng::named(seed, &name);
        if let Waiting::Managed(queue) = &mut self.waiting {
            queue.reseed(&Setup { rate: self.rate, seed, name: &name });
        }
    }

    /// Packets that wait for the transmitter at `now`.
    pub fn queued_packets(&mut self, now: Time) -> u32 {
        self.advance(now, &mut Sink::default());
        match &self.waiting {
            Waiting::Computed { started, .. } => (self.transit.len() - started) as u32,
            Waiting::Managed(queue) => queue.packets(),
        }
    }

    /// Bytes that wait for the transmitter at `now`.
    pub fn queued_bytes(&mut self, now: Time) -> u64 {
        self.advance(now, &mut Sink::default());
        match &self.waiting {
            Waiting::Computed { bytes, .. } => *bytes,
            Waiting::Managed(queue) => queue.bytes(),
        }
    }

    /// Moves every packet whose turn has come from the queue into the transmitter.
    fn advance(&mut self, now: Time, sink: &mut Sink) {
        let Waiting::Computed { started, bytes, .. } = &mut self.waiting else {
            self.serve(now, sink);
            return;
        };
        while let Some(next) = self.transit.get(*started).filter(|next| next.start <= now) {
            *started += 1;
            *bytes -= u64::from(next.packet.size());
            let (packets, bytes) = ((self.transit.len() - *started) as u32, *bytes);
            sink.record(next.start, EventKind::Queue { link: self.index, packets, bytes });
        }
    }

    /// The managed queue: transmits whatever may leave until `now`.
    fn serve(&mut self, now: Time, sink: &mut Sink) {
        while self.free <= now {
            let Waiting::Managed(queue) = &mut self.waiting else { return };
            if queue.packets() == 0 {
                return;
            }
            // A packet that comes to an idle transmitter starts when it comes.
            let start = self.free;
            let packet = queue.dequeue(start, &mut self.verdicts);
            self.tell_queue(start, sink);
            let Some(packet) = packet else { return };
            self.transmit(start, packet);
        }
    }

    /// Puts a packet on the wire from `start` on.
    fn transmit(&mut self, start: Time, packet: Packet) {
        self.free = start + self.rate.serialisation(u64::from(packet.size()));
        let mut arrival = self.free + self.delay;
        if !self.jitter.is_zero() {
            arrival += Span::from_nanos(self.rng.below(self.jitter.as_nanos() + 1));
            arrival = arrival.max(self.transit.back().map_or(Time::ZERO, |last| last.arrival));
        }
        let lost = self.loss > 0.0 && self.rng.chance(self.loss);
        self.transit.push_back(Transit { start, arrival, packet, lost });
    }

    fn tell_queue(&mut self, at: Time, sink: &mut Sink) {
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
        if sink.wants(Interest::QUEUE) {
            let (packets, bytes) = match &self.waiting {
                Waiting::Computed { started, bytes, .. } => {
                    ((self.transit.len() - started) as u32, *bytes)
                }
                Waiting::Managed(queue) => (queue.packets(), queue.bytes()),
            };
            sink.record(at, EventKind::Queue { link: self.index, packets, bytes });
        }
    }
}

impl Endpoint for Link {
    /// A packet that goes back to its sender ([`Packet::returned`]).
    type AppEvent = Packet;

    fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink) {
        self.advance(now, sink);
        match &mut self.waiting {
            Waiting::Computed { limit, started, bytes } => {
                let waiting = (self.transit.len() - *started) as u32;
                if self.free > now && !limit.admits(waiting, *bytes, packet.size()) {
                    self.verdicts.drop(packet, DropReason::Overflow);
                } else {
                    *bytes += u64::from(packet.size());
                    let start = self.free.max(now);
                    self.transmit(start, packet);
                }
                self.tell_queue(now, sink);
                self.advance(now, sink);
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
        self.advance(now, sink);
    }

    fn poll_transmit(&mut self, now: Time, sink: &mut Sink) -> Option<Packet> {
        loop {
            self.transit.front().filter(|head| head.arrival <= now)?;
            self.advance(now, sink);
            let head = self.transit.pop_front()?;
            if let Waiting::Computed { started, .. } = &mut self.waiting {
                *started -= 1;
            }
            if !head.lost {
                return Some(head.packet);
            }
            let (link, packet) = (self.index, head.packet);
            sink.record(now, EventKind::Dropped { link, reason: DropReason::Loss, packet });
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        let arrival = self.transit.front().map(|head| head.arrival);
        match &self.waiting {
            Waiting::Managed(queue) if queue.packets() > 0 => {
                Some(arrival.map_or(self.free, |at| at.min(self.free)))
            }
            _ => arrival,
        }
    }

    fn poll_event(&mut self) -> Option<Packet> {
        self.returned.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{check_quiet, drain};
    use crate::packet::{Addr, Body, Ecn};
    use crate::queue::{DropTail, Factory};

    fn datagram(number: u16) -> Packet {
        let src = Addr { port: number, ..Addr::default() };
        // 1000 bytes with both headers.
        Packet {
            src,
            dst: Addr::default(),
            ecn: Ecn::NotEct,
            returned: false,
            body: Body::Datagram { len: 972, words: [0; 2] },
        }
    }

    /// Sends a packet every `gap` and returns when each arrives.
    fn arrivals(link: &mut Link, count: u16, gap: Span) -> Vec<(u16, Time)> {
        let mut sink = Sink::new(Interest::ALL);
        let mut came = Vec::new();
        let (mut now, mut next) = (Time::ZERO, 0);
        loop {
            drain(link, now, &mut sink, |packet| came.push((packet.src.port, now)));
            check_quiet(link, now, &mut sink);
            let send = (next < count).then(|| Time::ZERO + gap * u64::from(next));
            let Some(at) = [send, link.poll_timeout()].into_iter().flatten().min() else { break };
            now = at;
            link.handle_timeout(now, &mut sink);
            if send == Some(at) {
                link.handle_packet(now, datagram(next), &mut sink);
                next += 1;
            }
        }
        came
    }

    fn both_kinds(rate: BitRate, limit: Limit) -> [Link; 2] {
        let plain =
            LinkConfig::new(rate, Span::from_millis(10)).with_queue(Discipline::DropTail(limit));
        let managed = plain
            .clone()
            .with_queue(Discipline::Custom(Factory::new(move |_| Box::new(DropTail::new(limit)))));
        [Link::new(0, 1, plain), Link::new(0, 1, managed)]
    }

    #[test]
    fn packets_arrive_after_queue_transmission_and_propagation() {
        let rate: BitRate = "1mbit".parse().unwrap();
        for mut link in both_kinds(rate, Limit::NONE) {
            let came = arrivals(&mut link, 3, Span::from_millis(1));
            let times: Vec<u64> = came.iter().map(|&(_, at)| at.as_nanos() / 1_000_000).collect();
            assert_eq!(times, [18, 26, 34]);
        }
    }

    #[test]
    fn what_does_not_fit_behind_the_packet_in_service_is_dropped() {
        let rate: BitRate = "1mbit".parse().unwrap();
        for limit in [Limit::packets(2), Limit::bytes(2500)] {
            for mut link in both_kinds(rate, limit) {
                let came = arrivals(&mut link, 12, Span::from_millis(1));
                let numbers: Vec<u16> = came.iter().map(|&(number, _)| number).collect();
                assert_eq!(numbers, [0, 1, 2, 8], "{limit:?}");
            }
        }
    }

    #[test]
    fn a_computed_queue_and_a_managed_one_agree_packet_by_packet() {
        let rate: BitRate = "3mbit".parse().unwrap();
        let [mut a, mut b] = both_kinds(rate, Limit::packets(5));
        let gap = Span::from_micros(1700);
        assert_eq!(arrivals(&mut a, 500, gap), arrivals(&mut b, 500, gap));
    }

    #[test]
    fn jitter_keeps_the_order_and_stays_within_its_bound() {
        let jitter = Span::from_millis(5);
        let config = LinkConfig::new(BitRate::INFINITE, Span::from_millis(10)).with_jitter(jitter);
        let gap = Span::from_millis(1);
        let came = arrivals(&mut Link::new(0, 3, config), 500, gap);
        assert!(came.is_sorted_by(|x, y| x.0 < y.0 && x.1 <= y.1));
        for (number, at) in came {
            let delay = at.since(Time::ZERO + gap * u64::from(number));
            assert!((Span::from_millis(10)..=Span::from_millis(15)).contains(&delay), "{delay}");
        }
    }

    #[test]
    fn losses_have_their_probability() {
        let config = LinkConfig::new(BitRate::INFINITE, Span::ZERO).with_loss(0.1);
        let came = arrivals(&mut Link::new(0, 3, config), 20_000, Span::from_micros(1)).len();
        // Five standard deviations of a binomial.
        assert!((17_788..=18_212).contains(&came), "{came}");
    }
}

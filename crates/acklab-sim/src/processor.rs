//! [`Processor`]: a host whose packets take time.
//!
//! One processor serves what arrives and what leaves, one packet at a time; each costs a fixed time by its kind and
//! a time per byte. What arrives waits in the network card's ring, and what finds it full is lost. An idle
//! processor is woken by an interrupt, which costs time and may be put off so that it is raised for several packets;
//! then it polls until the ring is empty (Linux's NAPI). What the host sends goes before the next packet in: the
//! answer to a segment is sent in the same run, as in Linux's receive path.
//!
//! Left out: several processors, the application's own work (it is part of the cost per byte), merging of segments
//! (GRO) and their splitting by the card (TSO), energy.

use std::collections::VecDeque;

use acklab_core::packet::{Body, Packet};
use acklab_core::time::{Span, Time};

acklab_core::options! {
    /// What packets cost.
    #[derive(Copy, PartialEq)]
    pub struct ProcessorOptions {
        /// Time to take in a packet with data.
        receive: Span = "0",
        /// Time to take in a pure ACK.
        receive_ack: Span = "0",
        /// Time to send a packet with data.
        send: Span = "0",
        /// Time to send a pure ACK.
        send_ack: Span = "0",
        /// Time for each byte of a packet in or out: copies, checksum.
        per_byte: f64 as number(0.0, 1e6, "ns") = "0",
        /// Time of an interrupt.
        interrupt: Span = "0",
        /// How long after the first packet the interrupt is raised.
        coalesce: Span = "0",
        /// Packets that may wait in the ring of the network card.
        ring: u32 as count(1, 1_000_000) = "256",
    }
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It arrived.
    In,
    /// It leaves.
    Out,
}

/// A packet at work.
#[derive(Clone, Copy, Debug)]
struct Job {
    done: Time,
    took: Span,
    way: Way,
    packet: Packet,
}

/// A packet that the processor is done with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    /// Which way it goes on.
    pub(crate) way: Way,
    /// The packet.
    pub(crate) packet: Packet,
    /// How long it took.
    pub(crate) took: Span,
}

/// A host's processor.
#[derive(Clone, Debug)]
pub(crate) struct Processor {
    options: ProcessorOptions,
    ring: VecDeque<Packet>,
    leaving: VecDeque<Packet>,
    at_work: Option<Job>,
    /// When the interrupt for what waits in the ring is raised.
    interrupt: Option<Time>,
}

impl Processor {
    /// An idle one.
    pub(crate) const fn new(options: ProcessorOptions) -> Self {
        Self {
            options,
            ring: VecDeque::new(),
            leaving: VecDeque::new(),
            at_work: None,
            interrupt: None,
        }
    }

    /// A packet arrives at the network card; `false`: its ring was full.
    pub(crate) fn receive(&mut self, now: Time, packet: &Packet) -> bool {
        if self.ring.len() as u64 >= u64::from(self.options.ring) {
            return false;
        }
        self.ring.push_back(*packet);
        if self.at_work.is_none() && self.interrupt.is_none() {
            self.interrupt = Some(now + self.options.coalesce);
        }
        true
    }

    /// The host sends a packet.
    pub(crate) fn send(&mut self, now: Time, packet: &Packet) {
        self.leaving.push_back(*packet);
        if self.at_work.is_none() {
            self.start_sending(now);
        }
    }

    fn start_sending(&mut self, now: Time) -> bool {
        let next = self.leaving.pop_front();
        if let Some(packet) = next {
            self.start(now, Way::Out, packet, Span::ZERO);
        }
        next.is_some()
    }

    fn start(&mut self, now: Time, way: Way, packet: Packet, before: Span) {
        let took = before + self.cost(way, &packet);
        self.at_work = Some(Job { done: now + took, took, way, packet });
    }

    fn cost(&self, way: Way, packet: &Packet) -> Span {
        let ProcessorOptions { receive, receive_ack, send, send_ack, per_byte, .. } = self.options;
        let pure_ack = matches!(&packet.body, Body::Tcp(tcp) if tcp.payload_len == 0);
        let fixed = match (way, pure_ack) {
            (Way::In, false) => receive,
            (Way::In, true) => receive_ack,
            (Way::Out, false) => send,
            (Way::Out, true) => send_ack,
        };
        fixed + Span::from_nanos((per_byte * f64::from(packet.size())) as u64)
    }

    /// When [`Processor::finish`] has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.at_work.map(|job| job.done).or(self.interrupt)
    }

    /// The packet that is done by `now`. What the host says to it is sent before [`Processor::go_on`].
    pub(crate) fn finish(&mut self, now: Time) -> Option<Finished> {
        let Job { way, packet, took, .. } = self.at_work.filter(|job| job.done <= now)?;
        self.at_work = None;
        Some(Finished { way, packet, took })
    }

    /// Begins with what is next, if the processor is free: what leaves, then the ring, which a free
    /// processor looks at after an interrupt (`polling`: it was just at work).
    pub(crate) fn go_on(&mut self, now: Time, polling: bool) {
        if self.at_work.is_some() || self.start_sending(now) {
            return;
        }
        let woken = self.interrupt.is_some_and(|at| at <= now);
        if !(polling || woken) {
            return;
        }
        self.interrupt = None;
        if let Some(packet) = self.ring.pop_front() {
            let before = if polling { Span::ZERO } else { self.options.interrupt };
            self.start(now, Way::In, packet, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acklab_core::packet::{Addr, Ecn, NodeId};

    fn packet(number: u64) -> Packet {
        let addr = Addr { node: NodeId(0), port: 1 };
        let body = Body::Datagram { len: 972, words: [number, 0] };
        Packet { src: addr, dst: addr, ecn: Ecn::NotEct, returned: false, body }
    }

    fn micros(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    /// When each of `arrivals` was done, µs; `u64::MAX`: lost at the ring.
    fn served(options: ProcessorOptions, arrivals: &[u64]) -> Vec<u64> {
        let mut processor = Processor::new(options);
        let mut done = vec![u64::MAX; arrivals.len()];
        let mut next = 0;
        loop {
            let due = processor.poll_timeout();
            let arrives = arrivals.get(next).map(|us| micros(*us));
            match (due, arrives) {
                (None, None) => return done,
                (due, Some(at)) if due.is_none_or(|due| at < due) => {
                    processor.receive(at, &packet(next as u64));
                    next += 1;
                }
                (Some(due), _) => {
                    let finished = processor.finish(due);
                    if let Some(Finished { packet: Packet { body, .. }, .. }) = finished
                        && let Body::Datagram { words: [number, _], .. } = body
                    {
                        done[number as usize] = due.as_nanos() / 1000;
                    }
                    processor.go_on(due, finished.is_some());
                }
                _ => unreachable!(),
            }
        }
    }

    fn costs() -> ProcessorOptions {
        ProcessorOptions { receive: Span::from_micros(10), ..ProcessorOptions::default() }
    }

    #[test]
    fn packets_wait_for_each_other_and_a_full_ring_loses_them() {
        assert_eq!(served(costs(), &[0, 100, 101, 102]), [10, 110, 120, 130]);
        let small = ProcessorOptions { ring: 2, ..costs() };
        assert_eq!(served(small, &[0, 1, 2, 3, 4]), [10, 20, 30, u64::MAX, u64::MAX]);
    }

    #[test]
    fn a_byte_costs_what_it_costs() {
        // 972 and 28 of headers.
        let options = ProcessorOptions { per_byte: 5.0, ..costs() };
        assert_eq!(served(options, &[0]), [15]);
    }

    #[test]
    fn an_idle_processor_is_interrupted_and_a_busy_one_polls() {
        let options = ProcessorOptions {
            interrupt: Span::from_micros(3),
            coalesce: Span::from_micros(20),
            ..costs()
        };
        // One interrupt 20 µs after the first; the fourth comes to an idle processor again.
        assert_eq!(served(options, &[0, 5, 30, 200]), [33, 43, 53, 233]);
    }

    #[test]
    fn what_the_host_sends_goes_before_the_next_packet_in() {
        let options = ProcessorOptions { send: Span::from_micros(7), ..costs() };
        let mut processor = Processor::new(options);
        let mut order = Vec::new();
        assert!(
            processor.receive(micros(0), &packet(0)) && processor.receive(micros(0), &packet(1))
        );
        while let Some(at) = processor.poll_timeout() {
            let finished = processor.finish(at);
            if let Some(Finished { way, .. }) = finished {
                order.push((at.as_nanos() / 1000, way));
                if way == Way::In {
                    processor.send(at, &packet(9));
                }
            }
            processor.go_on(at, finished.is_some());
        }
        assert_eq!(order, [(10, Way::In), (17, Way::Out), (27, Way::In), (34, Way::Out)]);
    }
}

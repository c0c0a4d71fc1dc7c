//! One direction of a path: the core's [`Link`] with the real bytes riding along.
//!
//! The link moves small values and never sees a byte. Each frame waits in a slot whose number is in the
//! packet's words, beside the time at which it came; when the link hands the packet out, the frame
//! leaves with the ECN field that a queue may have changed. What the link calls damaged leaves with one
//! bit flipped, since here there are bits. No clock is read: `now` is an argument, so the same machine
//! runs in virtual time.

use acklab_core::endpoint::Endpoint;
use acklab_core::event::{DropReason, EventKind, Interest, Sink};
use acklab_core::link::{Link, LinkConfig};
use acklab_core::packet::{Body, Packet};
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;

use super::frame;
use acklab_core::quantiles::Quantiles;

/// What passed one direction.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Packets that entered.
    pub packets: u64,
    /// Bytes that entered, IP headers included.
    pub bytes: u64,
    /// Packets that left at the far end, damaged ones and copies included.
    pub delivered: u64,
    pub delivered_bytes: u64,
    /// Dropped by the queue: no room, or its management chose them.
    pub dropped: u64,
    /// Lost on the wire: loss model or outage.
    pub lost: u64,
    /// Delivered with one bit flipped.
    pub corrupted: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets whose ECN field the queue changed.
    pub marked: u64,
    /// Time in the direction beyond transmission and propagation: the wait in the queue, plus jitter
    /// and reordering where there are any.
    pub queue: Quantiles,
}

/// A link and the frames that are on it.
pub struct Direction {
    link: Link,
    rate: BitRate,
    delay: Span,
    frames: Frames,
    sink: Sink,
    /// Which bit is flipped.
    bits: Rng,
    tally: Tally,
}

impl Direction {
    /// The link number `index` under `seed`, with nothing on it.
    pub fn new(index: u32, seed: u64, config: LinkConfig) -> Self {
        Self {
            rate: config.rate,
            delay: config.delay,
            frames: Frames::default(),
            sink: Sink::new(Interest::DROPS),
            bits: Rng::named(seed, &format!("link/{index}/bits")),
            tally: Tally::default(),
            link: Link::new(index, seed, config),
        }
    }

    /// What passed so far.
    pub fn tally(&self) -> Tally {
        Tally { duplicated: self.link.copies(), ..self.tally.clone() }
    }

    /// Takes a frame that enters at `now`; what was due before must have been asked for. What does
    /// not belong to the traffic is ignored.
    pub fn handle_frame(&mut self, now: Time, frame: &[u8]) {
        let words = [self.frames.next(), now.as_nanos()];
        let Some(packet) = frame::describe(frame, words) else { return };
        self.frames.keep(frame);
        self.tally.packets += 1;
        self.tally.bytes += frame.len() as u64;
        self.link.handle_packet(now, packet, &mut self.sink);
        self.settle(now, &mut |_| {});
    }

    /// When [`Self::handle_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.link.poll_timeout()
    }

    /// Does what is due at `due` and hands out the frames that leave then.
    pub fn handle_timeout(&mut self, due: Time, leave: &mut dyn FnMut(&[u8])) {
        self.link.handle_timeout(due, &mut self.sink);
        loop {
            let packet = self.link.poll_transmit(due, &mut self.sink);
            self.settle(due, leave);
            let Some(packet) = packet else { break };
            self.depart(due, &packet, leave);
        }
    }

    /// Counts what the link told; damaged packets leave all the same.
    fn settle(&mut self, now: Time, leave: &mut dyn FnMut(&[u8])) {
        let mut sink = std::mem::take(&mut self.sink);
        for event in sink.drain() {
            match event.kind {
                EventKind::Marked { .. } => self.tally.marked += 1,
                EventKind::Dropped { reason: DropReason::Corrupted, packet, .. } => {
                    self.tally.corrupted += 1;
                    frame::flip_bit(self.frames.at(slot(&packet)), self.bits.next_u64());
                    self.depart(now, &packet, leave);
                }
                EventKind::Dropped { reason, packet, .. } => {
                    match reason {
                        DropReason::Loss => self.tally.lost += 1,
                        _ => self.tally.dropped += 1,
                    }
                    self.frames.release(slot(&packet));
                }
                _ => {}
            }
        }
        self.sink = sink;
    }

    fn depart(&mut self, now: Time, packet: &Packet, leave: &mut dyn FnMut(&[u8])) {
        let frame = self.frames.at(slot(packet));
        frame::set_ecn(frame, packet.ecn);
        leave(frame);
        self.tally.delivered += 1;
        self.tally.delivered_bytes += frame.len() as u64;
        let bare = self.rate.serialisation(u64::from(packet.size())) + self.delay;
        self.tally.queue.record(now.since(came(packet)).saturating_sub(bare));
        self.frames.release(slot(packet));
    }
}

fn words(packet: &Packet) -> [u64; 2] {
    match packet.body {
        Body::Datagram { words, .. } => words,
        Body::Tcp(_) | Body::Stored { .. } => [0; 2],
    }
}

fn slot(packet: &Packet) -> usize {
    words(packet)[0] as usize
}

fn came(packet: &Packet) -> Time {
    Time::from_nanos(words(packet)[1])
}

/// The bytes of the frames on a link, in slots that are used again.
#[derive(Debug, Default)]
struct Frames {
    slots: Vec<Vec<u8>>,
    free: Vec<usize>,
    /// Released last. A copy leaves right behind its original, from the same slot; so a slot is free
    /// only when another one has been released.
    last: Option<usize>,
}

impl Frames {
    /// The slot that [`Self::keep`] will use.
    fn next(&self) -> u64 {
        self.free.last().copied().unwrap_or(self.slots.len()) as u64
    }

    fn keep(&mut self, frame: &[u8]) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Vec::new());
            self.slots.len() - 1
        });
        self.slots[slot].clear();
        self.slots[slot].extend_from_slice(frame);
    }

    fn at(&mut self, slot: usize) -> &mut [u8] {
        &mut self.slots[slot]
    }

    fn release(&mut self, slot: usize) {
        if let Some(last) = self.last.filter(|&last| last != slot) {
            self.free.push(last);
        }
        self.last = Some(slot);
    }
}

#[cfg(test)]
mod tests;

//! One direction of a link, watched: its queue, how long packets wait in it, what it carries.

use std::collections::VecDeque;

use acklab_core::event::{DropReason, EventKind};
use acklab_core::packet::Packet;
use acklab_core::time::Time;
use acklab_core::units::BitRate;

use super::cells::{Grid, Level, Points, Portions};
use super::delays::Delays;

/// A link to be watched.
#[derive(Clone, Debug)]
pub struct WatchedLink {
    /// Its index in the world.
    pub index: u32,
    /// Its name: "r1 -> r2".
    pub name: String,
    /// Its rate.
    pub rate: BitRate,
}

/// What was seen of a link.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LinkRecord {
    /// Its name.
    pub name: String,
    /// Its rate.
    pub rate: BitRate,
    /// Bytes of the packets whose transmission began, summed over the replications.
    pub carried_bytes: u64,
    /// Packets waiting, times seconds, summed likewise.
    pub packet_seconds: f64,
    /// Packets that its queue dropped, summed likewise.
    pub drops: u64,
    /// Packets that its queue marked, summed likewise.
    pub marks: u64,
    /// How long each packet waited until its transmission began, in all replications.
    pub waits: Delays,
    /// Packets waiting in the first replication: the mean of each cell.
    pub queue: Points,
    /// The most that waited in each cell.
    pub queue_peak: Points,
    /// The mean wait of the packets that left in each cell of the first replication, ms.
    pub wait: Points,
    /// The longest wait of each cell, ms.
    pub wait_peak: Points,
    /// Packets that the queue dropped in the first replication, for each second.
    pub drop_rate: Points,
    /// Packets that it marked, likewise.
    pub mark_rate: Points,
}

impl LinkRecord {
    pub(super) fn pool(&mut self, other: &Self) {
        self.carried_bytes += other.carried_bytes;
        self.packet_seconds += other.packet_seconds;
        self.drops += other.drops;
        self.marks += other.marks;
        self.waits.pool(&other.waits);
    }
}

/// Watches a link.
pub(super) struct LinkMonitor {
    link: WatchedLink,
    /// Packets in the queue with the time at which they came; few are looked at, as most queues serve
    /// them in this order.
    waiting: VecDeque<(Time, Packet)>,
    carried_bytes: u64,
    waits: Delays,
    queue: Level,
    wait: Portions,
    drops: Portions,
    marks: Portions,
    dropped: u64,
    marked: u64,
}

impl LinkMonitor {
    pub(super) fn new(link: WatchedLink, [fine, coarse]: [Grid; 2]) -> Self {
        Self {
            link,
            waiting: VecDeque::new(),
            carried_bytes: 0,
            waits: Delays::default(),
            queue: Level::new(fine),
            wait: Portions::new(fine),
            drops: Portions::new(coarse),
            marks: Portions::new(coarse),
            dropped: 0,
            marked: 0,
        }
    }

    pub(super) const fn index(&self) -> u32 {
        self.link.index
    }

    pub(super) fn on_event(&mut self, at: Time, kind: &EventKind) {
        match kind {
            EventKind::Queue { packets, .. } => self.queue.set(at, f64::from(*packets)),
            EventKind::Offered { packet, .. } => self.waiting.push_back((at, *packet)),
            EventKind::Served { packet, .. } => {
                self.carried_bytes += u64::from(packet.size());
                let place = self.waiting.iter().position(|(_, other)| is_same(packet, other));
                if let Some((came, _)) = place.and_then(|place| self.waiting.remove(place)) {
                    let wait = at.since(came);
                    self.waits.add(wait);
                    self.wait.add_span(at, wait);
                }
            }
            EventKind::Dropped { reason, packet, .. } => self.on_drop(at, *reason, packet),
            EventKind::Marked { .. } => {
                self.marks.add(at, 1.0);
                self.marked += 1;
            }
            _ => {}
        }
    }

    fn on_drop(&mut self, at: Time, reason: DropReason, packet: &Packet) {
        if !matches!(reason, DropReason::Overflow | DropReason::Early | DropReason::Returned) {
            return;
        }
        self.drops.add(at, 1.0);
        self.dropped += 1;
        let place = self.waiting.iter().rposition(|(_, other)| is_same(packet, other));
        place.and_then(|place| self.waiting.remove(place));
    }

    pub(super) fn finish(mut self, end: Time) -> LinkRecord {
        self.queue.pass(end);
        LinkRecord {
            name: self.link.name,
            rate: self.link.rate,
            carried_bytes: self.carried_bytes,
            packet_seconds: self.queue.integral(),
            drops: self.dropped,
            marks: self.marked,
            waits: self.waits,
            queue: self.queue.means(),
            queue_peak: self.queue.peaks(),
            wait: self.wait.means(),
            wait_peak: self.wait.peaks(),
            drop_rate: self.drops.rates(1.0),
            mark_rate: self.marks.rates(1.0),
        }
    }
}

/// Whether two packets are one, which a queue may have marked. Of two copies it does not matter which
/// one is meant.
fn is_same(one: &Packet, other: &Packet) -> bool {
    one.src == other.src && one.dst == other.dst && one.body == other.body
}

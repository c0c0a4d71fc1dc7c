//! One direction of a link, watched: its queue, how long packets wait in it, what it carries.

use acklab_core::event::{DropReason, EventKind};
use acklab_core::packet::Packet;
use acklab_core::time::Time;
use acklab_core::units::BitRate;

use super::cells::{Grid, Level, Points, Portions};
use super::course::Course;
use super::delays::Delays;
use super::waiting::Waiting;

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
    /// Packets waiting: the mean of each cell.
    pub queue: Course,
    /// The most that waited in each cell.
    pub queue_peak: Course,
    /// The mean wait of the packets that left in each cell ms.
    pub wait: Course,
    /// The longest wait of each cell, ms.
    pub wait_peak: Course,
    /// Packets that the queue dropped, for each second.
    pub drop_rate: Course,
    /// Packets that it marked, likewise.
    pub mark_rate: Course,
}

impl LinkRecord {
    pub(super) fn pool(&mut self, other: &Self) {
        self.carried_bytes += other.carried_bytes;
        self.packet_seconds += other.packet_seconds;
        self.drops += other.drops;
        self.marks += other.marks;
        self.waits.pool(&other.waits);
        self.queue.pool(&other.queue);
        self.queue_peak.pool(&other.queue_peak);
        self.wait.pool(&other.wait);
        self.wait_peak.pool(&other.wait_peak);
        self.drop_rate.pool(&other.drop_rate);
        self.mark_rate.pool(&other.mark_rate);
    }
}

/// Watches a link.
pub(super) struct LinkMonitor {
    link: WatchedLink,
    /// Packets in the queue.
    waiting: Waiting,
    carried_bytes: u64,
    waits: Delays,
    queue: Level,
    wait: Portions,
    drops: Portions,
    marks: Portions,
    dropped: u64,
    marked: u64,
    /// Packets waiting, times seconds, before the measurement begins.
    before: f64,
    with_courses: bool,
}

impl LinkMonitor {
    pub(super) fn new(link: WatchedLink, [fine, coarse]: [Grid; 2], with_courses: bool) -> Self {
        Self {
            link,
            waiting: Waiting::default(),
            carried_bytes: 0,
            waits: Delays::default(),
            queue: Level::new(fine),
            wait: Portions::new(fine),
            drops: Portions::new(coarse),
            marks: Portions::new(coarse),
            dropped: 0,
            marked: 0,
            before: 0.0,
            with_courses,
        }
    }

    /// The measurement begins: what was counted is forgotten, courses are not.
    pub(super) fn begin(&mut self, at: Time) {
        self.queue.pass(at);
        self.before = self.queue.integral();
        self.waits = Delays::default();
        (self.carried_bytes, self.dropped, self.marked) = (0, 0, 0);
    }

    pub(super) const fn index(&self) -> u32 {
        self.link.index
    }

    pub(super) fn on_event(&mut self, at: Time, kind: &EventKind) {
        match kind {
            EventKind::Queue { packets, .. } => self.queue.set(at, f64::from(*packets)),
            EventKind::Offered { packet, .. } => self.waiting.push(at, packet),
            EventKind::Served { packet, .. } => {
                self.carried_bytes += u64::from(packet.size());
                if let Some(wait) = self.waiting.take(at, packet) {
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
        self.waiting.drop(packet);
    }

    pub(super) fn finish(mut self, end: Time) -> LinkRecord {
        self.queue.pass(end);
        let of = |points: Points| if self.with_courses { points.into() } else { Course::default() };
        LinkRecord {
            name: self.link.name,
            rate: self.link.rate,
            carried_bytes: self.carried_bytes,
            packet_seconds: self.queue.integral() - self.before,
            drops: self.dropped,
            marks: self.marked,
            waits: self.waits,
            queue: of(self.queue.means()),
            queue_peak: of(self.queue.peaks()),
            wait: of(self.wait.means()),
            wait_peak: of(self.wait.peaks()),
            drop_rate: of(self.drops.rates(1.0)),
            mark_rate: of(self.marks.rates(1.0)),
        }
    }
}

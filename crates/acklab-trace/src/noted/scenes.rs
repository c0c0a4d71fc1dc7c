//! The packets around possible holds, kept so that one can be drawn later.
//!
//! A short ring of what passed last; when a pure ACK lets a small segment go, the ring is copied
//! and the next few packets are added. A few such scenes are kept per direction: the first ones and
//! the one that waited longest.

use acklab_core::time::Time;

use super::values::{Candidate, Fill};
use crate::flow::observe::{AckSeen, DataSeen};

/// Packets before the held segment, it included.
const BEFORE: usize = 8;
/// Packets after it.
const AFTER: usize = 4;
/// Scenes kept.
const SCENES_MAX: usize = 5;

/// One packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing {
    pub(crate) frame: u64,
    pub(crate) time: Time,
    /// Data of this direction, rather than a packet of the peer.
    pub(crate) data: bool,
    /// Offset of the first byte (data) or acknowledged offset (peer).
    pub(crate) offset: u64,
    /// Payload bytes.
    pub(crate) len: u32,
    /// PSH.
    pub(crate) push: bool,
}

/// The packets around one possible hold.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    /// Frame of the segment that was perhaps held.
    pub(crate) frame: u64,
    pub(crate) packets: Vec<Passing>,
    missing: usize,
}

/// Keeps the scenes of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scenes {
    /// The last packets; the oldest stands at `at` once there are [`BEFORE`].
    ring: Vec<Passing>,
    at: usize,
    kept: Vec<Scene>,
    open: Option<usize>,
    /// The longest wait of all scenes.
    longest: u64,
}

impl Scenes {
    /// A data segment of this direction.
    #[inline]
    pub(crate) fn on_data(&mut self, seen: &DataSeen<'_>) {
        self.push(Passing {
            frame: seen.frame,
            time: seen.time,
            data: true,
            offset: seen.offset,
            len: seen.len,
            push: seen.push,
        });
    }

    /// A packet of the peer.
    #[inline]
    pub(crate) fn on_ack(&mut self, seen: &AckSeen) {
        self.push(Passing {
            frame: seen.frame,
            time: seen.time,
            data: false,
            offset: seen.acked_to,
            len: seen.payload_len,
            push: false,
        });
    }

    #[inline]
    fn push(&mut self, packet: Passing) {
        if let Some(slot) = self.ring.get_mut(self.at) {
            *slot = packet;
        } else {
            self.ring.push(packet);
        }
        self.at = (self.at + 1) % BEFORE;
        if let Some(open) = self.open {
            self.go_on(open, packet);
        }
    }

    #[cold]
    fn go_on(&mut self, open: usize, packet: Passing) {
        let Some(scene) = self.kept.get_mut(open) else { return };
        scene.packets.push(packet);
        scene.missing -= 1;
        if scene.missing == 0 {
            self.open = None;
        }
    }

    /// A candidate, after its segment has been told with [`Self::on_data`].
    #[inline]
    pub(crate) fn on_candidate(&mut self, candidate: &Candidate) {
        let wait = candidate.ack.since(candidate.before).as_nanos();
        if candidate.marks.pure && candidate.peer_after.is_none() {
            self.offer(candidate.frame, wait);
        }
    }

    /// A segment that perhaps filled up, after it has been told with [`Self::on_data`].
    #[inline]
    pub(crate) fn on_fill(&mut self, fill: &Fill) {
        self.offer(fill.frame, fill.time.since(fill.before).as_nanos());
    }

    #[inline]
    fn offer(&mut self, frame: u64, wait: u64) {
        if self.kept.len() < SCENES_MAX || wait > self.longest {
            self.keep(frame, wait);
        }
    }

    #[cold]
    fn keep(&mut self, frame: u64, wait: u64) {
        let oldest = if self.ring.len() < BEFORE { 0 } else { self.at };
        let mut packets = Vec::with_capacity(BEFORE + AFTER);
        packets.extend_from_slice(&self.ring[oldest..]);
        packets.extend_from_slice(&self.ring[..oldest]);
        let scene = Scene { frame, packets, missing: AFTER };
        self.longest = self.longest.max(wait);
        if self.kept.len() < SCENES_MAX {
            self.kept.push(scene);
        } else {
            self.kept[SCENES_MAX - 1] = scene;
        }
        self.open = Some(self.kept.len() - 1);
    }

    pub(crate) fn into_kept(self) -> Vec<Scene> {
        self.kept
    }
}

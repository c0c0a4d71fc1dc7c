//! The packets around possible holds, kept so that one can be drawn later.
//!
//! A short ring of what passed last; when a pure ACK lets a small segment go, the ring is copied
//! and the next few packets are added. A few such scenes are kept per direction: the first ones and
//! the one that waited longest.

use acklab_core::time::Time;

use super::records::{Candidate, Fill};
use crate::flow::observe::{AckSeen, DataSeen};

/// Packets before the held segment, it included.
const BEFORE: usize = 8;
/// Packets after it.
const AFTER: usize = 4;
/// Scenes kept.
const SCENES_MAX: usize = 5;

/// One packet.
#[derive(Clone, Copy, Debug)]
pub struct Passing {
    /// Frame number.
    pub frame: u64,
    /// When.
    pub time: Time,
    /// Data of this direction, rather than a packet of the peer.
    pub data: bool,
    /// Offset of the first byte (data) or acknowledged offset (peer).
    pub offset: u64,
    /// Payload bytes.
    pub len: u32,
    /// PSH.
    pub push: bool,
}

/// The packets around one possible hold.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Frame of the segment that was perhaps held.
    pub frame: u64,
    /// How long the ACK took after the segment before, ns.
    pub wait: u64,
    /// The packets.
    pub packets: Vec<Passing>,
    missing: usize,
}

/// Keeps the scenes of one direction.
#[derive(Debug, Default)]
pub struct LadderTap {
    ring: Vec<Passing>,
    scenes: Vec<Scene>,
    open: Option<usize>,
}

impl LadderTap {
    /// A data segment of this direction.
    pub fn on_data(&mut self, seen: &DataSeen<'_>) {
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
    pub fn on_ack(&mut self, seen: &AckSeen) {
        self.push(Passing {
            frame: seen.frame,
            time: seen.time,
            data: false,
            offset: seen.acked_to,
            len: seen.payload_len,
            push: false,
        });
    }

    fn push(&mut self, packet: Passing) {
        if self.ring.len() == BEFORE {
            self.ring.remove(0);
        }
        self.ring.push(packet);
        if let Some(scene) = self.open.and_then(|i| self.scenes.get_mut(i)) {
            scene.packets.push(packet);
            scene.missing -= 1;
            if scene.missing == 0 {
                self.open = None;
            }
        }
    }

    /// A candidate, after its segment has been told with [`Self::on_data`].
    pub fn on_candidate(&mut self, candidate: &Candidate) {
        let wait = candidate.ack.since(candidate.before).as_nanos();
        if !candidate.marks.pure || candidate.peer_after.is_some() {
            return;
        }
        self.keep(candidate.frame, wait);
    }

    /// A segment that perhaps filled up, after it has been told with [`Self::on_data`].
    pub fn on_fill(&mut self, fill: &Fill) {
        self.keep(fill.frame, fill.time.since(fill.before).as_nanos());
    }

    fn keep(&mut self, frame: u64, wait: u64) {
        let scene = Scene { frame, wait, packets: self.ring.clone(), missing: AFTER };
        if self.scenes.len() < SCENES_MAX {
            self.scenes.push(scene);
            self.open = Some(self.scenes.len() - 1);
        } else if self.scenes.iter().all(|s| s.wait < wait) {
            self.scenes[SCENES_MAX - 1] = scene;
            self.open = Some(SCENES_MAX - 1);
        }
    }

    /// The scenes kept.
    pub fn scenes(&self) -> &[Scene] {
        &self.scenes
    }
}

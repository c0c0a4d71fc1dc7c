//! The segments of a capture, by connection, as far as two captures are compared by them.

use std::collections::BTreeMap;
use std::path::Path;

use super::translated;
use crate::capture::{CaptureError, CaptureReader};
use crate::frame::dissect;
use crate::segment::{Endpoint, Flags, Segment};

/// A segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// Capture time, ns.
    pub(super) time: u64,
    pub(super) frame: u64,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) len: u32,
    pub(super) ip_id: u16,
    pub(super) window: u16,
    pub(super) flags: u8,
    /// 0: from the first end.
    pub(super) from: u8,
}

impl Packet {
    pub(super) fn has(&self, flag: Flags) -> bool {
        Flags(self.flags).has(flag)
    }

    pub(super) fn is_reset(&self) -> bool {
        self.has(Flags::RST)
    }

    /// What the path leaves as it is.
    pub(super) const fn identity(&self) -> Identity {
        (self.from, self.ip_id, self.seq, self.ack, self.len, self.flags, self.window)
    }
}

/// What tells a segment from all others of its connection.
pub(super) type Identity = (u8, u16, u32, u32, u32, u8, u16);

/// All segments between two endpoints.
#[derive(Clone, Debug)]
pub(super) struct Talk {
    /// Client first, where that is known.
    pub(super) ends: [Endpoint; 2],
    pub(super) packets: Vec<Packet>,
}

/// The connections of a capture.
#[derive(Debug, Default)]
pub(super) struct Talks {
    by_ends: BTreeMap<[Endpoint; 2], Talk>,
    count: usize,
    /// There were more segments than are compared.
    pub(super) is_full: bool,
}

impl Talks {
    pub(super) fn read(path: &Path) -> Result<Self, CaptureError> {
        let mut reader = CaptureReader::open(path)?;
        let mut talks = Self::default();
        while let Some(frame) = reader.next_frame()? {
            if let Ok(dissected) = dissect(&frame) {
                if talks.count == PACKETS_MAX {
                    talks.is_full = true;
                    break;
                }
                talks.take(&dissected.segment);
            }
        }
        Ok(talks)
    }

    fn take(&mut self, segment: &Segment<'_>) {
        let mut key = [segment.src, segment.dst];
        key.sort_unstable();
        self.count += 1;
        let syn = segment.flags.has(Flags::SYN);
        let answers = syn && segment.flags.has(Flags::ACK);
        let ends = if answers { [segment.dst, segment.src] } else { [segment.src, segment.dst] };
        let talk = self.by_ends.entry(key).or_insert_with(|| Talk { ends, packets: Vec::new() });
        talk.packets.push(Packet {
            time: segment.time.as_nanos(),
            frame: segment.frame,
            seq: segment.seq,
            ack: segment.ack,
            len: segment.payload_len,
            ip_id: segment.ip_id,
            window: segment.window,
            flags: segment.flags.0,
            from: u8::from(segment.src != talk.ends[0]),
        });
    }

    /// The connections that stand in both, seen from the same end, in the order of time.
    pub(super) fn into_pairs(self, mut other: Self) -> Vec<[Talk; 2]> {
        let (mut pairs, mut alone) = (Vec::new(), Vec::new());
        for (key, mut talk) in self.by_ends {
            let Some(mut twin) = other.by_ends.remove(&key) else {
                alone.push(talk);
                continue;
            };
            // A SYN tells who is the client; without one, whichever file was right about it.
            if talk.ends != twin.ends {
                (talk, twin) =
                    if talk.has_syn() { (talk, twin.turned()) } else { (talk.turned(), twin) };
            }
            pairs.push([talk, twin]);
        }
        pairs.extend(translated::pairs(alone, other.by_ends.into_values().collect()));
        for talk in pairs.iter_mut().flatten() {
            talk.packets.sort_by_key(|packet| packet.time);
        }
        pairs
    }
}

impl Talk {
    fn has_syn(&self) -> bool {
        self.packets.iter().any(|packet| packet.has(Flags::SYN))
    }

    /// The same seen from the other end.
    pub(super) fn turned(self) -> Self {
        let [first, second] = self.ends;
        let turn = |packet: Packet| Packet { from: 1 - packet.from, ..packet };
        Self { ends: [second, first], packets: self.packets.into_iter().map(turn).collect() }
    }
}

/// Segments of a file that are compared: 160 MB of them.
pub(super) const PACKETS_MAX: usize = 4_000_000;

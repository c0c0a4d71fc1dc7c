//! [`Messages`]: where in a stream the writes of an application end, so that it can be told when each has left.

use std::collections::VecDeque;

use crate::time::Time;

/// Messages that were written and have not left.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    next_id: u64,
    /// Offset after the last byte written.
    end: u64,
    /// Bytes of the last one that found no room.
    missing: u32,
    /// Id, offset after its last byte, and when it was written.
    unsent: VecDeque<(u64, u64, Time)>,
}

impl Messages {
    /// The application wrote `bytes`, of which `taken` found room: the rest of a message that found too
    /// little, else a new one, whose id and bytes are returned.
    pub fn on_write(&mut self, now: Time, bytes: u32, taken: u32) -> Option<(u64, u32)> {
        let rest = bytes.min(self.missing);
        let continued = taken.min(rest);
        self.end += u64::from(taken);
        self.missing -= continued;
        if let Some((_, end, _)) = self.unsent.back_mut().filter(|_| continued > 0) {
            *end += u64::from(continued);
        }
        (bytes > rest).then(|| {
            let (id, new) = (self.next_id, bytes - rest);
            self.missing = new - (taken - continued);
            self.unsent.push_back((id, self.end, now));
            self.next_id += 1;
            (id, new)
        })
    }

    /// The next one of which everything has left, once `sent` bytes have.
    pub fn next_sent(&mut self, sent: u64) -> Option<(u64, Time)> {
        let last = self.missing > 0 && self.unsent.len() == 1;
        let (id, _, written_at) = self.unsent.pop_front_if(|(_, end, _)| *end <= sent && !last)?;
        Some((id, written_at))
    }
}

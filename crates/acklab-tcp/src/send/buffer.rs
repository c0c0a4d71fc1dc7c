//! What the application wrote and the peer has not acknowledged: lengths and message boundaries.
//!
//! One call of write is one message; the rest of one that found too little room is expected with the
//! next call and counts as the same message, as in a blocking write. Its boundary is kept until its last byte has left for the first
//! time, so that the delay the sender added can be measured; segments ignore it (TCP is a stream).

use std::collections::VecDeque;

use acklab_core::time::Time;

/// A message whose last byte has not left yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Count from 0.
    pub(super) id: u64,
    /// Offset after its last byte.
    pub(super) end: u64,
    /// Bytes, those included that found no room yet.
    pub(super) bytes: u32,
    pub(super) written_at: Time,
}

/// Bytes from the acknowledged offset to `end`, at most `capacity`.
#[derive(Clone, Debug)]
pub(super) struct SendBuffer {
    capacity: u64,
    end: u64,
    unsent: VecDeque<Message>,
    next_id: u64,
    /// Bytes of the last message that found no room yet.
    missing: u32,
    /// Messages at the tail of `unsent` that were not announced as written yet.
    unannounced: usize,
    /// The application closed: a FIN follows the last byte.
    closed: bool,
}

impl SendBuffer {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            capacity: u64::from(capacity),
            end: 1,
            unsent: VecDeque::new(),
            next_id: 0,
            missing: 0,
            unannounced: 0,
            closed: false,
        }
    }

    /// Takes up to `bytes`, as many as fit above `una`; returns how many.
    pub(super) fn write(&mut self, now: Time, bytes: u32, una: u64) -> u32 {
        let held = self.end - una.clamp(1, self.end);
        let taken = u64::from(bytes).min(self.capacity.saturating_sub(held)) as u32;
        let rest = bytes.min(self.missing);
        let continued = taken.min(rest);
        self.end += u64::from(continued);
        self.missing -= continued;
        if let Some(open) = self.unsent.back_mut().filter(|_| continued > 0) {
            open.end = self.end;
        }
        if bytes > rest {
            self.begin(now, bytes - rest, taken - continued);
        }
        taken
    }

    /// A message of `bytes` begins, `taken` of which find room.
    fn begin(&mut self, now: Time, bytes: u32, taken: u32) {
        self.end += u64::from(taken);
        self.missing = bytes - taken;
        self.unsent.push_back(Message { id: self.next_id, end: self.end, bytes, written_at: now });
        self.next_id += 1;
        self.unannounced += 1;
    }

    /// A FIN follows the last byte.
    pub(super) const fn close(&mut self) {
        self.closed = true;
    }

    /// Whether a FIN follows the last byte.
    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Offset after the last byte written.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Bytes that may be written now.
    pub(super) fn room(&self, una: u64) -> u64 {
        self.capacity.saturating_sub(self.end - una.clamp(1, self.end))
    }

    /// The next message written since the last call that returned `None`.
    pub(super) fn announce(&mut self) -> Option<Message> {
        let index = self.unsent.len() - self.unannounced;
        let message = self.unsent.get(index).copied()?;
        self.unannounced -= 1;
        Some(message)
    }

    /// The next message whose last byte lies before `sent_end`, which is now sent.
    pub(super) fn pop_sent(&mut self, sent_end: u64) -> Option<Message> {
        let is_whole = self.missing == 0 || self.unsent.len() > 1;
        let front = *self.unsent.front().filter(|m| is_whole && m.end <= sent_end)?;
        self.unsent.pop_front();
        self.unannounced = self.unannounced.min(self.unsent.len());
        Some(front)
    }

    /// Gives up what has not been sent.
    pub(super) fn clear(&mut self) {
        self.unsent.clear();
        self.unannounced = 0;
        self.missing = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_buffer_takes_part_of_a_write() {
        let mut buffer = SendBuffer::new(1000);
        assert_eq!(buffer.write(Time::ZERO, 700, 1), 700);
        assert_eq!(buffer.write(Time::ZERO, 700, 1), 300);
        assert_eq!((buffer.write(Time::ZERO, 1, 1), buffer.room(501)), (0, 500));
    }

    #[test]
    fn the_rest_of_a_message_that_found_no_room_is_the_same_message() {
        let mut buffer = SendBuffer::new(1000);
        assert_eq!(buffer.write(Time::from_nanos(5), 1600, 1), 1000);
        assert_eq!(buffer.announce().map(|m| m.bytes), Some(1600));
        assert_eq!(buffer.pop_sent(1001), None);
        assert_eq!(buffer.write(Time::from_nanos(9), 700, 1001), 700);
        assert_eq!(buffer.announce().map(|m| (m.id, m.bytes)), Some((1, 100)));
        assert_eq!(buffer.pop_sent(1600), None);
        let sent = buffer.pop_sent(1601).map(|m| (m.id, m.written_at));
        assert_eq!(sent, Some((0, Time::from_nanos(5))));
        assert_eq!(buffer.pop_sent(1701).map(|m| m.id), Some(1));
    }

    #[test]
    fn a_message_is_sent_when_its_last_byte_is() {
        let mut buffer = SendBuffer::new(1000);
        buffer.write(Time::from_nanos(5), 100, 1);
        buffer.write(Time::from_nanos(6), 100, 1);
        assert_eq!(buffer.announce().map(|m| m.id), Some(0));
        assert_eq!(buffer.announce().map(|m| m.id), Some(1));
        assert_eq!(buffer.announce(), None);
        assert_eq!(buffer.pop_sent(100), None);
        assert_eq!(buffer.pop_sent(150).map(|m| m.written_at), Some(Time::from_nanos(5)));
        assert_eq!(buffer.pop_sent(150), None);
        assert_eq!(buffer.pop_sent(201).map(|m| m.id), Some(1));
    }
}

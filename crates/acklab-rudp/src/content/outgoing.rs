//! The sending sides of streams: which there are, what they keep, and which of them have room.

use std::collections::BTreeMap;

use super::notes::Notes;
use crate::piece::ContentEvent;
use crate::priority::DEFAULT_PRIORITY;
use crate::send_stream::SendStream;

/// Bytes written and not acknowledged that a connection keeps (section 7, "Memory").
pub(super) const KEPT_MAX: u64 = 24 << 20;

/// Bytes written and not sent of one stream up to which it asks for more: enough to fill 1 Gbit/s
/// for 16 ms and little enough to stay in a processor's cache (ours).
const UNSENT_MAX: u64 = 2 << 20;

/// Room from which on a stream that had none is writable again.
const ROOM_AGAIN: u64 = UNSENT_MAX / 2;

/// The sending side of one stream.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Outgoing {
    pub(super) send: SendStream,
    pub(super) priority: u8,
    pub(super) redundant: bool,
    /// It stands among the turns.
    pub(super) queued: bool,
    /// The application found no room and is told when there is.
    wants_room: bool,
    /// The peer acknowledged RESET_STREAM.
    reset_acked: bool,
    /// The limit for which STREAM_DATA_BLOCKED was sent.
    pub(super) told_blocked: Option<u64>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct OutgoingStreams {
    streams: BTreeMap<u64, Outgoing>,
    /// Bytes that wait to leave, and bytes that are kept until they are acknowledged.
    waiting: u64,
    kept: u64,
    /// A stream found no room because of [`KEPT_MAX`].
    starved: bool,
}

impl OutgoingStreams {
    /// A new one, of which the peer takes `limit` bytes at first.
    pub(super) fn open(&mut self, stream: u64, limit: u64) {
        let outgoing = Outgoing {
            send: SendStream::new(limit),
            priority: DEFAULT_PRIORITY,
            redundant: false,
            queued: false,
            wants_room: false,
            reset_acked: false,
            told_blocked: None,
        };
        self.streams.insert(stream, outgoing);
    }

    pub(super) fn get(&self, stream: u64) -> Option<&Outgoing> {
        self.streams.get(&stream)
    }

    pub(super) fn get_mut(&mut self, stream: u64) -> Option<&mut Outgoing> {
        self.streams.get_mut(&stream)
    }

    /// Bytes that wait to leave.
    pub(super) const fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Bytes that are kept until they are acknowledged.
    #[cfg(test)]
    pub(super) const fn kept(&self) -> u64 {
        self.kept
    }

    #[cfg(test)]
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.streams.keys().copied()
    }

    /// How many more bytes a stream wants.
    pub(super) fn room(&self, stream: u64) -> u64 {
        self.get(stream).map_or(0, |known| room_of(&known.send, self.kept))
    }

    /// RESET_STREAM was acknowledged.
    pub(super) fn on_reset_acked(&mut self, stream: u64) {
        if let Some(known) = self.streams.get_mut(&stream) {
            known.reset_acked = true;
        }
    }

    /// Does `what` to `stream` and keeps the sums right.
    pub(super) fn with<T>(
        &mut self,
        stream: u64,
        notes: &mut Notes,
        what: impl FnOnce(&mut SendStream) -> T,
    ) -> Option<T> {
        let Outgoing { send, wants_room, .. } = self.streams.get_mut(&stream)?;
        let (waiting, kept) = (send.waiting(), send.kept());
        let result = what(send);
        self.waiting = self.waiting + send.waiting() - waiting;
        self.kept = self.kept + send.kept() - kept;
        if *wants_room && room_of(send, self.kept) >= ROOM_AGAIN {
            *wants_room = false;
            notes.tell(ContentEvent::Writable { stream });
        }
        Some(result)
    }

    /// Something was written on `stream`: whoever finds no room is told when there is.
    pub(super) fn note_room(&mut self, stream: u64) {
        if self.room(stream) > 0 {
            return;
        }
        if self.kept >= KEPT_MAX && !self.starved {
            // What this stream took leaves the others without room too.
            self.starved = true;
            self.streams.values_mut().for_each(|known| known.wants_room = true);
        }
        if let Some(known) = self.streams.get_mut(&stream) {
            known.wants_room = true;
        }
    }

    /// Tells the application which streams have room again, if it waits for that.
    fn offer_room(&mut self, notes: &mut Notes) {
        self.starved = false;
        for (&stream, known) in self.streams.iter_mut().filter(|(_, known)| known.wants_room) {
            if room_of(&known.send, self.kept) >= ROOM_AGAIN {
                known.wants_room = false;
                notes.tell(ContentEvent::Writable { stream });
            }
        }
    }

    /// Whether that side of `stream` is over, or was never there.
    pub(super) fn is_over(&self, stream: u64) -> bool {
        let known = self.streams.get(&stream);
        known.is_none_or(|known| known.send.is_delivered() || known.reset_acked)
    }

    /// Forgets `stream`; whether it was there.
    pub(super) fn forget(&mut self, stream: u64, notes: &mut Notes) -> bool {
        self.with(stream, notes, |send| send.reset(0));
        self.streams.remove(&stream).is_some()
    }

    /// Memory that was short may be there again.
    pub(super) fn end_starvation(&mut self, notes: &mut Notes) {
        if self.starved && self.kept <= KEPT_MAX / 4 * 3 {
            self.offer_room(notes);
        }
    }
}

/// How many more bytes a stream wants while `kept` are kept of all.
fn room_of(send: &SendStream, kept: u64) -> u64 {
    UNSENT_MAX.saturating_sub(send.unsent()).min(KEPT_MAX.saturating_sub(kept))
}

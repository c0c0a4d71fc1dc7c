//! What leaves: lost content first, then new content by class and turn.

use super::{Content, KEPT_MAX};
use crate::piece::{ContentEvent, ControlFrame, Piece};
use crate::priority::Source;
use crate::send_parcels::{Begin, SendParcel};
use crate::send_stream::SendStream;
use crate::wire::{StreamHeader, Writer, varint};
use acklab_core::time::Time;

/// Room below which no frame of content is begun, bytes: the longest header and some data.
const ROOM_MIN: usize = 32;

/// Whether a source may send something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    Ready,
    /// It waits for the connection's credit.
    Blocked,
    /// It waits for credit of its own, or has nothing.
    Idle,
}

impl Content {
    /// Whether lost content waits to leave again.
    pub fn has_lost(&self) -> bool {
        self.lost.iter().any(|&source| self.source_has_lost(source))
    }

    /// Whether new content waits that flow control lets go.
    pub fn has_new(&self, now: Time) -> bool {
        let ready = |source| self.readiness(source, now) == Readiness::Ready;
        self.turns.first().is_some_and(|(_, source)| ready(source)) || self.turns.iter().any(ready)
    }

    /// Bytes that wait to leave, lost ones and new ones, whether credit allows them or not.
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting
    }

    /// What leaves next in a packet that has `room` bytes left for this frame: lost content, else, if
    /// `allow_new`, new content. A packet may take several, each emitted before the next is asked for.
    pub fn next_piece(&mut self, now: Time, room: usize, allow_new: bool) -> Option<Piece> {
        if room < ROOM_MIN {
            return None;
        }
        while let Some(&source) = self.lost.front() {
            let piece = self.take(source, now, room, false);
            // A parcel that is about to expire sends no more and is dropped here.
            if piece.is_none() || !self.source_has_lost(source) {
                self.lost.pop_front();
            }
            if piece.is_some() {
                return piece;
            }
        }
        if allow_new { self.next_new(now, room) } else { None }
    }

    fn next_new(&mut self, now: Time, room: usize) -> Option<Piece> {
        self.prefer_urgent(now);
        while let Some((class, source)) = self.turns.first() {
            let piece = self.take(source, now, room, true);
            let after = self.readiness(source, now);
            if after == Readiness::Ready && piece.is_some() {
                self.turns.rotate(class);
                return piece;
            }
            self.turns.pop(class);
            self.set_queued(source, false);
            match source {
                Source::Stream(id) if after == Readiness::Blocked => {
                    if !self.blocked.contains(&id) {
                        self.blocked.push(id);
                    }
                    self.note_blocked();
                }
                Source::Stream(id) => self.note_stream_blocked(id),
                Source::Parcel(_) => {}
            }
            if piece.is_some() {
                return piece;
            }
        }
        None
    }

    /// Lets an EXPIRING parcel that is about to expire go ahead of its class.
    fn prefer_urgent(&mut self, now: Time) {
        if !self.any_expiring {
            return;
        }
        let Some((class, _)) = self.turns.first() else { return };
        let urgent = |source: &Source| match *source {
            Source::Parcel(id) => {
                let parcel = self.send_parcels.parcel(id);
                parcel.is_some_and(|p| p.is_urgent(now, self.srtt) && p.may_leave(now, self.srtt))
            }
            Source::Stream(_) => false,
        };
        let first = self.turns.class(class).find(urgent);
        if let Some(source) = first {
            self.turns.prefer(class, source);
        }
    }

    fn readiness(&self, source: Source, now: Time) -> Readiness {
        let credit = self.send_credit.left();
        match source {
            Source::Stream(id) => {
                match self.streams.get(&id).and_then(|stream| stream.send.as_ref()) {
                    Some(send) if !send.has_new() => Readiness::Idle,
                    Some(send) if send.needs_credit() && credit == 0 => Readiness::Blocked,
                    Some(_) => Readiness::Ready,
                    None => Readiness::Idle,
                }
            }
            Source::Parcel(id) => match self.send_parcels.parcel(id) {
                Some(p) if p.has_new() && p.may_leave(now, self.srtt) => Readiness::Ready,
                _ => Readiness::Idle,
            },
        }
    }

    fn source_has_lost(&self, source: Source) -> bool {
        match source {
            Source::Stream(id) => {
                let send = self.streams.get(&id).and_then(|stream| stream.send.as_ref());
                send.is_some_and(SendStream::has_lost)
            }
            Source::Parcel(id) => self.send_parcels.parcel(id).is_some_and(SendParcel::has_lost),
        }
    }

    /// Takes a piece out of `source`, lost before new.
    fn take(&mut self, source: Source, now: Time, room: usize, allow_new: bool) -> Option<Piece> {
        match source {
            Source::Stream(id) => self.take_stream(id, room, allow_new),
            Source::Parcel(id) => self.take_parcel(id, now, room, allow_new),
        }
    }

    fn take_stream(&mut self, stream: u64, room: usize, allow_new: bool) -> Option<Piece> {
        let credit = self.send_credit.left();
        let piece = self.with_send(stream, |send| {
            let header = 1 + varint::len(stream) + varint::len(send.next_offset());
            send.next((room - header) as u64, allow_new, credit)
        })??;
        self.send_credit.take(piece.fresh);
        self.first_sent += piece.fresh;
        Some(Piece::Stream { stream, offset: piece.offset, len: piece.len as u32, fin: piece.fin })
    }

    fn take_parcel(&mut self, id: u64, now: Time, room: usize, allow_new: bool) -> Option<Piece> {
        let parcel = self.send_parcels.parcel(id)?;
        if !parcel.may_leave(now, self.srtt) {
            return None;
        }
        let header = parcel.header(id, parcel.next_offset() as u32, now).len_to_end();
        let grace = self.pto * 3;
        let most = (room - header) as u64;
        let again = parcel.has_lost();
        let range = self.send_parcels.next(id, now, most, allow_new, grace)?;
        self.waiting -= range.end - range.start;
        self.first_sent += if again { 0 } else { range.end - range.start };
        let (offset, len) = (range.start as u32, (range.end - range.start) as u32);
        Some(Piece::Parcel { parcel: id, offset, len })
    }

    /// Puts a stream among the turns if it has something new and is not there yet.
    pub(super) fn enqueue(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if !stream.queued && stream.send.as_ref().is_some_and(SendStream::has_new) {
            stream.queued = true;
            self.turns.push(stream.priority, Source::Stream(id));
        } else {
            self.note_stream_blocked(id);
        }
    }

    /// Those that waited for credit of the connection may try again.
    pub(super) fn unblock(&mut self) {
        for stream in std::mem::take(&mut self.blocked) {
            self.enqueue(stream);
        }
        self.begin_parcels();
    }

    /// Lets parcels begin as far as their number and the connection's credit allow.
    pub(super) fn begin_parcels(&mut self) {
        if self.peer.is_none() {
            return;
        }
        loop {
            match self.send_parcels.begin(self.send_credit.left()) {
                Begin::Nothing => return,
                Begin::Blocked => return self.note_blocked(),
                Begin::Begun { parcel, priority, total } => {
                    self.send_credit.take(total);
                    self.turns.push(priority, Source::Parcel(parcel));
                }
            }
        }
    }

    /// Asks the peer for more of the connection's credit, once per limit.
    fn note_blocked(&mut self) {
        if self.send_credit.on_blocked() {
            self.want(ControlFrame::DataBlocked);
        }
    }

    fn set_queued(&mut self, source: Source, queued: bool) {
        if let Source::Stream(id) = source
            && let Some(stream) = self.streams.get_mut(&id)
        {
            stream.queued = queued;
        }
    }

    /// Asks the peer for more of a stream, once per limit.
    fn note_stream_blocked(&mut self, id: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let limit = stream.send.as_ref().filter(|send| send.is_blocked()).map(SendStream::limit);
        if limit.is_some() && stream.told_blocked != limit {
            stream.told_blocked = limit;
            self.want(ControlFrame::StreamDataBlocked(id));
        }
    }

    /// Appends the frame of `piece`, which fits: without a length where it reaches the writer's end, and
    /// with PADDING before it where only that makes it reach.
    pub fn emit(&self, piece: &Piece, now: Time, writer: &mut Writer<'_>) {
        let len = piece.len() as usize;
        let length_field = varint::len(len as u64);
        match *piece {
            Piece::Stream { stream, offset, fin, .. } => {
                let header = StreamHeader { stream, offset, fin };
                let to_end = fill_up(writer, header.len_to_end() + len, length_field);
                header.emit(writer, len, to_end);
                let send = self.streams.get(&stream).and_then(|stream| stream.send.as_ref());
                if let Some(send) = send {
                    send.copy_into(offset, &mut writer.rest_mut()[..len]);
                }
                writer.advance(len);
            }
            Piece::Parcel { parcel, offset, len } => {
                let Some(known) = self.send_parcels.parcel(parcel) else { return };
                let header = known.header(parcel, offset, now);
                let bytes = known.bytes(offset, len);
                let to_end = fill_up(writer, header.len_to_end() + bytes.len(), length_field);
                header.emit(writer, bytes.len(), to_end);
                writer.put_bytes(bytes);
            }
        }
    }

    /// Whether `piece` is to leave on two paths at once.
    pub fn is_redundant(&self, piece: &Piece) -> bool {
        match *piece {
            Piece::Stream { stream, .. } => {
                self.streams.get(&stream).is_some_and(|stream| stream.redundant)
            }
            Piece::Parcel { parcel, .. } => {
                self.send_parcels.parcel(parcel).is_some_and(SendParcel::is_redundant)
            }
        }
    }

    /// A packet with `piece` was acknowledged.
    pub fn on_acked(&mut self, piece: &Piece) {
        match *piece {
            Piece::Stream { stream, offset, len, fin } => {
                let news = self.with_send(stream, |send| {
                    let before = send.acknowledged();
                    send.on_acked(offset..offset + u64::from(len), fin);
                    (send.acknowledged() - before, send.is_delivered())
                });
                let (bytes, delivered) = news.unwrap_or_default();
                self.acknowledged += bytes;
                if delivered {
                    self.events.push_back(ContentEvent::StreamDelivered { stream });
                    self.close_if_over(stream);
                }
                if self.starved && self.kept <= KEPT_MAX / 4 * 3 {
                    self.offer_room();
                }
            }
            Piece::Parcel { parcel, offset, len } => {
                let range = u64::from(offset)..u64::from(offset + len);
                let waiting = |content: &Self| {
                    content.send_parcels.parcel(parcel).map_or(0, SendParcel::waiting)
                };
                let before = waiting(self);
                let (bytes, delivered) = self.send_parcels.on_acked(parcel, range);
                self.acknowledged += bytes;
                self.waiting = self.waiting + waiting(self) - before;
                if delivered {
                    self.events.push_back(ContentEvent::ParcelDelivered { parcel });
                    self.begin_parcels();
                }
            }
        }
    }

    /// A packet with `piece` was lost, or its path is suspect: what of it was not acknowledged leaves
    /// again, unless it is of a parcel that is not sent twice.
    pub fn on_lost(&mut self, piece: &Piece) {
        let source = match *piece {
            Piece::Stream { stream, offset, len, fin } => {
                self.with_send(stream, |send| {
                    send.on_lost(offset..offset + u64::from(len), fin);
                });
                Source::Stream(stream)
            }
            Piece::Parcel { parcel, offset, len } => {
                let Some(known) = self.send_parcels.parcel(parcel) else { return };
                let before = known.waiting();
                self.send_parcels.on_lost(parcel, u64::from(offset)..u64::from(offset + len));
                let after = self.send_parcels.parcel(parcel).map_or(0, SendParcel::waiting);
                self.waiting = self.waiting + after - before;
                Source::Parcel(parcel)
            }
        };
        if self.source_has_lost(source) && !self.lost.contains(&source) {
            self.lost.push_back(source);
        }
    }

    /// What of `piece` is still of use to the peer and may leave again: its first part that was not
    /// acknowledged. For tail duplicates and probes, made from the records of packets in flight.
    pub fn still_wanted(&self, piece: &Piece) -> Option<Piece> {
        match *piece {
            Piece::Stream { stream, offset, len, fin } => {
                let send = self.streams.get(&stream)?.send.as_ref()?;
                let left = send.unacked(offset..offset + u64::from(len))?;
                if left.len == 0 && !fin {
                    return None;
                }
                let (offset, len) = (left.offset, left.len as u32);
                Some(Piece::Stream { stream, offset, len, fin: left.fin })
            }
            Piece::Parcel { parcel, offset, len } => {
                let known = self.send_parcels.parcel(parcel)?;
                let left = known.unacked(u64::from(offset)..u64::from(offset + len))?;
                let (offset, len) = (left.start as u32, (left.end - left.start) as u32);
                Some(Piece::Parcel { parcel, offset, len })
            }
        }
    }

    /// What of `piece` may leave on a second path, for streams and parcels that are redundant: a
    /// ONE_SHOT parcel's too, which is never sent again for any other reason.
    pub fn second_copy(&self, piece: &Piece) -> Option<Piece> {
        match *piece {
            Piece::Stream { .. } => self.still_wanted(piece),
            Piece::Parcel { parcel, offset, len } => {
                let known = self.send_parcels.parcel(parcel)?;
                (known.bytes(offset, len).len() == len as usize).then_some(*piece)
            }
        }
    }

    /// Bytes of a packet that `piece` takes at least: the frame without a length field.
    pub fn len_of(&self, piece: &Piece, now: Time) -> usize {
        let header = match *piece {
            Piece::Stream { stream, offset, fin, .. } => {
                StreamHeader { stream, offset, fin }.len_to_end()
            }
            Piece::Parcel { parcel, offset, .. } => self
                .send_parcels
                .parcel(parcel)
                .map_or(0, |known| known.header(parcel, offset, now).len_to_end()),
        };
        header + piece.len() as usize
    }
}

/// Whether a frame that takes `len` bytes without its `length_field` is to reach the writer's end;
/// where it would almost do so, PADDING makes it.
fn fill_up(writer: &mut Writer<'_>, len: usize, length_field: usize) -> bool {
    if len + length_field <= writer.remaining() {
        return false;
    }
    writer.put_zeros(writer.remaining().saturating_sub(len));
    true
}

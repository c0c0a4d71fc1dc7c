//! What leaves: lost content first, then new content by class and turn. The sending sides of streams, the
//! parcels of ours, their credit and turns.

use std::collections::VecDeque;

use super::notes::Notes;
use super::outgoing::OutgoingStreams;
use crate::flow::SendCredit;
use crate::piece::{ContentEvent, ControlFrame, Piece};
use crate::priority::{Source, Turns};
use crate::send_parcels::{Begin, ParcelError, SendParcel, SendParcels};
use crate::send_stream::SendStream;
use crate::wire::{Kind, Parameters, varint};
use acklab_core::time::{Span, Time};

/// Room below which no frame of content is begun, bytes: the longest header and some data.
const ROOM_MIN: usize = 32;

/// Whether a source may send something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    Ready,
    /// It waits for the connection's credit.
    Blocked,
    /// It waits for its stream's credit, or has nothing.
    Idle,
}

/// Everything that this end sends.
#[derive(Debug)]
pub(crate) struct Sending {
    /// What the peer said of itself; nothing is sent before.
    peer: Option<Parameters>,
    streams: OutgoingStreams,
    parcels: SendParcels,
    credit: SendCredit,
    /// Those that have something new, and those that have something lost.
    turns: Turns,
    lost: VecDeque<Source>,
    /// Streams that have something new and wait for the connection's credit.
    blocked: Vec<u64>,
    /// Bytes of parcels that wait to leave.
    waiting: u64,
    /// Bytes that have left, and bytes that were acknowledged, each counted once.
    first_sent: u64,
    acknowledged: u64,
    /// EXPIRING parcels that may become urgent were sent.
    any_expiring: bool,
    srtt: Span,
    pto: Span,
}

/// What the application does.
impl Sending {
    pub(super) fn new() -> Self {
        Self {
            peer: None,
            streams: OutgoingStreams::default(),
            parcels: SendParcels::default(),
            credit: SendCredit::default(),
            turns: Turns::default(),
            lost: VecDeque::new(),
            blocked: Vec::new(),
            waiting: 0,
            first_sent: 0,
            acknowledged: 0,
            any_expiring: false,
            srtt: Span::from_millis(100),
            pto: Span::from_millis(300),
        }
    }

    pub(super) fn on_parameters(&mut self, peer: &Parameters, notes: &mut Notes) {
        self.credit.on_max_data(peer.max_data);
        self.peer = Some(peer.clone());
        self.unblock(notes);
    }

    pub(super) const fn on_rtt(&mut self, srtt: Span, pto: Span) {
        (self.srtt, self.pto) = (srtt, pto);
    }

    /// Whether the peer's parameters are known.
    pub(super) const fn is_open(&self) -> bool {
        self.peer.is_some()
    }

    /// The sending side of a new stream.
    pub(super) fn open(&mut self, stream: u64) {
        let limit = self.peer.as_ref().map_or(0, |peer| peer.max_stream_data);
        self.streams.open(stream, limit);
    }

    pub(super) fn set_priority(&mut self, stream: u64, priority: u8, redundant: bool) {
        let Some(known) = self.streams.get_mut(stream) else { return };
        known.redundant = redundant;
        let old = std::mem::replace(&mut known.priority, priority.min(7));
        if known.priority != old && known.queued {
            self.turns.prefer(old, Source::Stream(stream));
            self.turns.pop(old);
            self.turns.push(priority, Source::Stream(stream));
        }
    }

    pub(super) fn write(&mut self, stream: u64, bytes: Vec<u8>, notes: &mut Notes) -> bool {
        let written = self.streams.with(stream, notes, |send| send.write(bytes)).unwrap_or(false);
        if written {
            self.streams.note_room(stream);
            self.enqueue(stream, notes);
        }
        written
    }

    pub(super) fn finish(&mut self, stream: u64, notes: &mut Notes) {
        self.streams.with(stream, notes, SendStream::finish);
        self.enqueue(stream, notes);
    }

    /// Gives up sending `stream`; whether it did not before.
    pub(super) fn reset(&mut self, stream: u64, code: u64, notes: &mut Notes) -> bool {
        let resets = self.streams.with(stream, notes, |send| send.reset(code)).flatten().is_some();
        if resets {
            notes.want(ControlFrame::ResetStream(stream));
        }
        resets
    }

    pub(super) fn room(&self, stream: u64) -> u64 {
        self.streams.room(stream)
    }

    pub(super) fn send_parcel(
        &mut self,
        now: Time,
        bytes: Vec<u8>,
        kind: Kind,
        priority: u8,
        redundant: bool,
        notes: &mut Notes,
    ) -> Result<u64, ParcelError> {
        // What one window never holds could wait for ever.
        let peer = self.peer.as_ref().map(|peer| peer.parcel_max.min(peer.max_data));
        let most = peer.unwrap_or(Parameters::default().parcel_max);
        let len = bytes.len() as u64;
        if len > most {
            return Err(ParcelError::TooLarge { most });
        }
        let id = self.parcels.push(now, bytes, kind, priority, redundant)?;
        self.any_expiring |= matches!(kind, Kind::Expiring { .. });
        self.waiting += len;
        self.begin_parcels(notes);
        Ok(id)
    }

    /// The sending side of `stream`, until both of its sides are over.
    pub(super) fn stream(&self, stream: u64) -> Option<&SendStream> {
        self.streams.get(stream).map(|known| &known.send)
    }

    /// The sending sides of all streams.
    pub(super) const fn streams(&self) -> &OutgoingStreams {
        &self.streams
    }

    /// The same.
    pub(super) const fn streams_mut(&mut self) -> &mut OutgoingStreams {
        &mut self.streams
    }

    pub(super) fn parcel(&self, parcel: u64) -> Option<&SendParcel> {
        self.parcels.parcel(parcel)
    }

    /// The limit of the connection's credit.
    pub(super) fn limit(&self) -> u64 {
        self.credit.limit()
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.parcels.poll_timeout()
    }

    /// Gives up the parcels whose time is over.
    pub(super) fn handle_timeout(&mut self, now: Time, notes: &mut Notes) {
        let waiting = &mut self.waiting;
        self.parcels.expire(now, |parcel, unsent| {
            *waiting -= unsent;
            notes.want(ControlFrame::ParcelGone(parcel));
            notes.tell(ContentEvent::ParcelGone { parcel, ours: true });
        });
    }

    /// Bytes of all content that have left, each counted once.
    pub(crate) const fn first_sent(&self) -> u64 {
        self.first_sent
    }

    /// Bytes of all content that were acknowledged, each counted once.
    pub(crate) const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
}

/// What the peer says.
impl Sending {
    pub(super) fn on_max_data(&mut self, limit: u64, notes: &mut Notes) {
        if self.credit.on_max_data(limit) {
            self.unblock(notes);
        }
    }

    pub(super) fn on_max_stream_data(&mut self, stream: u64, bytes: u64, notes: &mut Notes) {
        if self.streams.with(stream, notes, |send| send.on_max_data(bytes)) == Some(true) {
            self.enqueue(stream, notes);
        }
    }

    /// PARCEL_GONE was acknowledged.
    pub(super) fn on_gone_acked(&mut self, parcel: u64, notes: &mut Notes) {
        self.parcels.on_gone_acked(parcel);
        self.begin_parcels(notes);
    }
}

/// What leaves, and what became of it.
impl Sending {
    /// Whether lost content waits to leave again.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost.iter().any(|&source| self.source_has_lost(source))
    }

    /// Whether new content waits that flow control lets go.
    pub(crate) fn has_new(&self, now: Time) -> bool {
        let ready = |source| self.readiness(source, now) == Readiness::Ready;
        self.turns.first().is_some_and(|(_, source)| ready(source)) || self.turns.iter().any(ready)
    }

    /// Bytes that wait to leave, lost ones and new ones, whether credit allows them or not.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting + self.streams.waiting()
    }

    /// What leaves next in a packet that has `room` bytes left for this frame: lost content, else, if
    /// `allow_new`, new content. A packet may take several, each emitted before the next is asked for.
    pub(super) fn next_piece(
        &mut self,
        now: Time,
        room: usize,
        allow_new: bool,
        notes: &mut Notes,
    ) -> Option<Piece> {
        if room < ROOM_MIN {
            return None;
        }
        while let Some(&source) = self.lost.front() {
            let piece = self.take(source, now, room, false, notes);
            // A parcel that is about to expire sends no more and is dropped here.
            if piece.is_none() || !self.source_has_lost(source) {
                self.lost.pop_front();
            }
            if piece.is_some() {
                return piece;
            }
        }
        if allow_new { self.next_new(now, room, notes) } else { None }
    }

    fn next_new(&mut self, now: Time, room: usize, notes: &mut Notes) -> Option<Piece> {
        self.prefer_urgent(now);
        while let Some((class, source)) = self.turns.first() {
            let piece = self.take(source, now, room, true, notes);
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
                    self.note_blocked(notes);
                }
                Source::Stream(id) => self.note_stream_blocked(id, notes),
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
                let parcel = self.parcels.parcel(id);
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
        let credit = self.credit.left();
        match source {
            Source::Stream(id) => match self.stream(id) {
                Some(send) if !send.has_new() => Readiness::Idle,
                Some(send) if send.needs_credit() && credit == 0 => Readiness::Blocked,
                Some(_) => Readiness::Ready,
                None => Readiness::Idle,
            },
            Source::Parcel(id) => match self.parcels.parcel(id) {
                Some(p) if p.has_new() && p.may_leave(now, self.srtt) => Readiness::Ready,
                _ => Readiness::Idle,
            },
        }
    }

    fn source_has_lost(&self, source: Source) -> bool {
        match source {
            Source::Stream(id) => self.stream(id).is_some_and(SendStream::has_lost),
            Source::Parcel(id) => self.parcels.parcel(id).is_some_and(SendParcel::has_lost),
        }
    }

    /// Takes a piece out of `source`, lost before new.
    fn take(
        &mut self,
        source: Source,
        now: Time,
        room: usize,
        allow_new: bool,
        notes: &mut Notes,
    ) -> Option<Piece> {
        match source {
            Source::Stream(id) => self.take_stream(id, room, allow_new, notes),
            Source::Parcel(id) => self.take_parcel(id, now, room, allow_new),
        }
    }

    fn take_stream(
        &mut self,
        stream: u64,
        room: usize,
        allow_new: bool,
        notes: &mut Notes,
    ) -> Option<Piece> {
        let credit = self.credit.left();
        let piece = self.streams.with(stream, notes, |send| {
            let header = 1 + varint::len(stream) + varint::len(send.next_offset());
            send.next((room - header) as u64, allow_new, credit)
        })??;
        self.credit.take(piece.fresh);
        self.first_sent += piece.fresh;
        Some(Piece::Stream { stream, offset: piece.offset, len: piece.len as u32, fin: piece.fin })
    }

    fn take_parcel(&mut self, id: u64, now: Time, room: usize, allow_new: bool) -> Option<Piece> {
        let parcel = self.parcels.parcel(id)?;
        if !parcel.may_leave(now, self.srtt) {
            return None;
        }
        let header = parcel.header(id, parcel.next_offset() as u32, now).len_to_end();
        let grace = self.pto * 3;
        let most = (room - header) as u64;
        let again = parcel.has_lost();
        let range = self.parcels.next(id, now, most, allow_new, grace)?;
        self.waiting -= range.end - range.start;
        self.first_sent += if again { 0 } else { range.end - range.start };
        let (offset, len) = (range.start as u32, (range.end - range.start) as u32);
        Some(Piece::Parcel { parcel: id, offset, len })
    }

    /// Puts a stream among the turns if it has something new and is not there yet.
    fn enqueue(&mut self, id: u64, notes: &mut Notes) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        if !stream.queued && stream.send.has_new() {
            stream.queued = true;
            self.turns.push(stream.priority, Source::Stream(id));
        } else {
            self.note_stream_blocked(id, notes);
        }
    }

    /// Those that waited for credit of the connection may try again.
    fn unblock(&mut self, notes: &mut Notes) {
        for stream in std::mem::take(&mut self.blocked) {
            self.enqueue(stream, notes);
        }
        self.begin_parcels(notes);
    }

    /// Lets parcels begin as far as their number and the connection's credit allow.
    fn begin_parcels(&mut self, notes: &mut Notes) {
        if self.peer.is_none() {
            return;
        }
        loop {
            match self.parcels.begin(self.credit.left()) {
                Begin::Nothing => return,
                Begin::Blocked => return self.note_blocked(notes),
                Begin::Begun { parcel, priority, total } => {
                    self.credit.take(total);
                    self.turns.push(priority, Source::Parcel(parcel));
                }
            }
        }
    }

    /// Asks the peer for more of the connection's credit, once per limit.
    fn note_blocked(&mut self, notes: &mut Notes) {
        if self.credit.on_blocked() {
            notes.want(ControlFrame::DataBlocked);
        }
    }

    fn set_queued(&mut self, source: Source, queued: bool) {
        if let Source::Stream(id) = source
            && let Some(stream) = self.streams.get_mut(id)
        {
            stream.queued = queued;
        }
    }

    /// Asks the peer for more of a stream, once per limit.
    fn note_stream_blocked(&mut self, id: u64, notes: &mut Notes) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let limit = stream.send.is_blocked().then(|| stream.send.limit());
        if limit.is_some() && stream.told_blocked != limit {
            stream.told_blocked = limit;
            notes.want(ControlFrame::StreamDataBlocked(id));
        }
    }

    /// A packet with `piece` was acknowledged; the stream of which all was delivered thereby.
    pub(super) fn on_acked(&mut self, piece: &Piece, notes: &mut Notes) -> Option<u64> {
        match *piece {
            Piece::Stream { stream, offset, len, fin } => {
                let news = self.streams.with(stream, notes, |send| {
                    let before = send.acknowledged();
                    send.on_acked(offset..offset + u64::from(len), fin);
                    (send.acknowledged() - before, send.is_delivered())
                });
                let (bytes, delivered) = news.unwrap_or_default();
                self.acknowledged += bytes;
                if delivered {
                    notes.tell(ContentEvent::StreamDelivered { stream });
                }
                delivered.then_some(stream)
            }
            Piece::Parcel { parcel, offset, len } => {
                let range = u64::from(offset)..u64::from(offset + len);
                let waiting =
                    |content: &Self| content.parcels.parcel(parcel).map_or(0, SendParcel::waiting);
                let before = waiting(self);
                let (bytes, delivered) = self.parcels.on_acked(parcel, range);
                self.acknowledged += bytes;
                self.waiting = self.waiting + waiting(self) - before;
                if delivered {
                    notes.tell(ContentEvent::ParcelDelivered { parcel });
                    self.begin_parcels(notes);
                }
                None
            }
        }
    }

    /// A packet with `piece` was lost, or its path is suspect: what of it was not acknowledged leaves
    /// again, unless it is of a parcel that is not sent twice.
    pub(super) fn on_lost(&mut self, piece: &Piece, notes: &mut Notes) {
        let source = match *piece {
            Piece::Stream { stream, offset, len, fin } => {
                self.streams.with(stream, notes, |send| {
                    send.on_lost(offset..offset + u64::from(len), fin);
                });
                Source::Stream(stream)
            }
            Piece::Parcel { parcel, offset, len } => {
                let Some(known) = self.parcels.parcel(parcel) else { return };
                let before = known.waiting();
                self.parcels.on_lost(parcel, u64::from(offset)..u64::from(offset + len));
                let after = self.parcels.parcel(parcel).map_or(0, SendParcel::waiting);
                self.waiting = self.waiting + after - before;
                Source::Parcel(parcel)
            }
        };
        if self.source_has_lost(source) && !self.lost.contains(&source) {
            self.lost.push_back(source);
        }
    }
}

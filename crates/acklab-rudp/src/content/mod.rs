//! Everything that a connection carries: streams, parcels, their flow control and turns
//! (docs/rudp.md section 7), behind the few calls that a connection needs.
//!
//! The connection asks [`Content::poll_control`] and [`Content::next_piece`] for what the next
//! packet holds, keeps the answers in its record of the packet, and tells what became of them:
//! `on_acked`, `on_lost`, `on_control_acked`, `on_control_lost`. It hands in the frames that arrive
//! ([`Content::handle_frame`]), the time ([`Content::handle_timeout`]) and the round trip
//! ([`Content::on_rtt`]). Nothing here knows of paths, packets or numbers. A stream's bytes are read
//! in order only; reading as they arrive is left out until an application needs it.

mod control;
#[cfg(test)]
mod hostile;
mod ids;
mod notes;
mod outgoing;
mod pieces;
mod receiving;
mod sending;
#[cfg(test)]
mod tests;

use self::ids::Ids;
use self::notes::Notes;
use self::receiving::Receiving;
use self::sending::Sending;
use super::piece::{ContentEvent, ControlFrame, Piece};
use super::receive_stream::{Block, ReceiveStream};
use super::send_parcels::ParcelError;
use super::send_stream::SendStream;
use crate::wire::{Kind, Parameters};
use acklab_core::time::{Span, Time};

/// The streams and parcels of one connection.
#[derive(Debug)]
pub struct Content {
    ids: Ids,
    sending: Sending,
    receiving: Receiving,
    notes: Notes,
}

impl Content {
    /// The content of a connection whose own parameters are `local`.
    pub fn new(client: bool, local: &Parameters) -> Self {
        Self {
            ids: Ids::new(client, local.max_streams),
            sending: Sending::new(),
            receiving: Receiving::new(local),
            notes: Notes::default(),
        }
    }

    /// The peer's parameters are known: from now on streams can be opened and content sent.
    pub fn on_parameters(&mut self, peer: &Parameters) {
        self.ids.allow(peer.max_streams);
        self.sending.on_parameters(peer, &mut self.notes);
    }

    /// The round trip of the best path and the longest probe time-out have changed.
    pub fn on_rtt(&mut self, srtt: Span, pto: Span) {
        self.sending.on_rtt(srtt, pto);
        self.receiving.on_rtt(srtt, pto);
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<ContentEvent> {
        self.notes.next_event()
    }

    /// The next moment at which [`Self::handle_timeout`] has something to do; it may come too early,
    /// never too late.
    pub fn poll_timeout(&self) -> Option<Time> {
        let (ours, theirs) = (self.sending.poll_timeout(), self.receiving.poll_timeout());
        ours.into_iter().chain(theirs).min()
    }

    /// Gives up the parcels whose time is over.
    pub fn handle_timeout(&mut self, now: Time) {
        self.sending.handle_timeout(now, &mut self.notes);
        self.receiving.handle_timeout(now, &mut self.notes);
    }

    /// Opens a stream, one-way or both ways; `None` while the peer allows no more.
    pub fn open_stream(&mut self, now: Time, both_ways: bool) -> Option<u64> {
        if !self.sending.is_open() {
            return None;
        }
        let id = self.ids.open(both_ways)?;
        self.sending.open(id);
        if both_ways {
            self.receiving.open(now, id);
        }
        Some(id)
    }

    /// Sets the class of a stream, 0 (first) to 7, and whether its packets leave on two paths at once.
    pub fn set_priority(&mut self, stream: u64, priority: u8, redundant: bool) {
        self.sending.set_priority(stream, priority, redundant);
    }

    /// Takes a block to send on `stream`, also beyond [`Self::room`]; false where the stream is not
    /// there, finished or reset.
    pub fn write(&mut self, stream: u64, bytes: Vec<u8>) -> bool {
        self.sending.write(stream, bytes, &mut self.notes)
    }

    /// Says that nothing more is written on `stream`.
    pub fn finish(&mut self, stream: u64) {
        self.sending.finish(stream, &mut self.notes);
    }

    /// Bytes of all content that have left, each counted once.
    pub fn first_sent(&self) -> u64 {
        self.sending.first_sent()
    }

    /// Bytes of all content that were acknowledged, each counted once.
    pub fn acknowledged(&self) -> u64 {
        self.sending.acknowledged()
    }

    /// Bytes that the peer may still begin without another grant.
    pub fn window(&self) -> u64 {
        self.receiving.window()
    }

    /// Bytes of `stream` that have left, from its beginning on; `None` once all of it is over.
    pub fn sent(&self, stream: u64) -> Option<u64> {
        self.sending.stream(stream).map(SendStream::sent)
    }

    /// How many more bytes `stream` wants now. After a write that left it none,
    /// [`ContentEvent::Writable`] follows.
    pub fn room(&self, stream: u64) -> u64 {
        self.sending.room(stream)
    }

    /// How many bytes of `stream` can be read now.
    pub fn readable(&self, stream: u64) -> u64 {
        self.receiving.stream(stream).map_or(0, ReceiveStream::readable)
    }

    /// The next bytes of `stream` in order; `None` while there are none, and after its end. Only after
    /// `None` does another [`ContentEvent::Readable`] follow.
    pub fn read(&mut self, now: Time, stream: u64) -> Option<Block> {
        let block = self.receiving.read(now, stream, &mut self.notes)?;
        if block.fin {
            self.close_if_over(stream);
        }
        self.receiving.grant(&mut self.notes);
        Some(block)
    }

    /// Gives up sending `stream`.
    pub fn reset_stream(&mut self, stream: u64, code: u64) {
        self.sending.reset(stream, code, &mut self.notes);
    }

    /// Does not want what the peer sends on `stream`.
    pub fn stop_stream(&mut self, stream: u64, code: u64) {
        if self.receiving.stop(stream, code, &mut self.notes) {
            self.receiving.grant(&mut self.notes);
            self.close_if_over(stream);
        }
    }

    /// Takes a parcel to send; its id.
    pub fn send_parcel(
        &mut self,
        now: Time,
        bytes: Vec<u8>,
        kind: Kind,
        priority: u8,
        redundant: bool,
    ) -> Result<u64, ParcelError> {
        self.sending.send_parcel(now, bytes, kind, priority, redundant, &mut self.notes)
    }

    /// A parcel that has arrived: the peer's id of it and its bytes.
    pub fn receive_parcel(&mut self) -> Option<(u64, Vec<u8>)> {
        let parcel = self.receiving.take_parcel()?;
        self.receiving.grant(&mut self.notes);
        Some(parcel)
    }

    /// What leaves next in a packet that has `room` bytes left for this frame: lost content, else, if
    /// `allow_new`, new content. A packet may take several, each emitted before the next is asked for.
    pub fn next_piece(&mut self, now: Time, room: usize, allow_new: bool) -> Option<Piece> {
        self.sending.next_piece(now, room, allow_new, &mut self.notes)
    }

    /// A packet with `piece` was acknowledged.
    pub fn on_acked(&mut self, piece: &Piece) {
        if let Some(stream) = self.sending.on_acked(piece, &mut self.notes) {
            self.close_if_over(stream);
        }
        if let Piece::Stream { .. } = piece {
            self.sending.streams_mut().end_starvation(&mut self.notes);
        }
    }

    /// A packet with `piece` was lost, or its path is suspect: what of it was not acknowledged leaves
    /// again, unless it is of a parcel that is not sent twice.
    pub fn on_lost(&mut self, piece: &Piece) {
        self.sending.on_lost(piece, &mut self.notes);
    }

    /// What waits to leave, and what pieces are.
    pub(super) const fn sending(&self) -> &Sending {
        &self.sending
    }

    /// Forgets `stream` if both of its sides are over.
    fn close_if_over(&mut self, stream: u64) {
        let streams = self.sending.streams_mut();
        if !streams.is_over(stream) || !self.receiving.is_over(stream) {
            return;
        }
        let sent = streams.forget(stream, &mut self.notes);
        let received = self.receiving.forget(stream);
        if (sent || received) && self.ids.on_closed(stream) {
            self.notes.want(ControlFrame::MaxStreams);
        }
    }
}

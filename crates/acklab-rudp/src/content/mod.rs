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
mod receiving;
mod sending;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use super::flow::{ReceiveCredit, SendCredit, StreamIds};
use super::piece::{ContentEvent, ControlFrame};
use super::priority::{DEFAULT_PRIORITY, Source, Turns};
use super::receive_parcels::ReceiveParcels;
use super::receive_stream::{Block, ReceiveStream};
use super::send_parcels::{ParcelError, SendParcels};
use super::send_stream::SendStream;
use crate::wire::{Kind, Parameters};
use acklab_core::time::{Span, Time};

/// Bytes written and not acknowledged that a connection keeps (section 7, "Memory").
const KEPT_MAX: u64 = 24 << 20;

/// Bytes written and not sent of one stream up to which it asks for more: enough to fill 1 Gbit/s
/// for 16 ms and little enough to stay in a processor's cache (ours).
const UNSENT_MAX: u64 = 2 << 20;

/// Room from which on a stream that had none is writable again.
const ROOM_AGAIN: u64 = UNSENT_MAX / 2;

/// One stream, both sides as far as it has them.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own")]
struct Stream {
    send: Option<SendStream>,
    receive: Option<ReceiveStream>,
    priority: u8,
    redundant: bool,
    /// It stands among the turns.
    queued: bool,
    /// The application found no room and is told when there is.
    wants_room: bool,
    /// The application knows that there is something to read.
    told_readable: bool,
    /// The code with which the application stopped the peer.
    stopped: Option<u64>,
    /// The peer acknowledged RESET_STREAM.
    reset_acked: bool,
    /// The limit for which STREAM_DATA_BLOCKED was sent.
    told_blocked: Option<u64>,
}

/// The streams and parcels of one connection.
#[derive(Debug)]
pub struct Content {
    local: Parameters,
    /// What the peer said of itself; nothing is sent before.
    peer: Option<Parameters>,
    streams: BTreeMap<u64, Stream>,
    own_ids: StreamIds,
    peer_ids: StreamIds,
    /// Streams of the peer that are over.
    peer_closed: u64,
    /// What the peer may send, and we.
    receive_credit: ReceiveCredit,
    send_credit: SendCredit,
    send_parcels: SendParcels,
    receive_parcels: ReceiveParcels,
    /// Those that have something new, and those that have something lost.
    turns: Turns,
    lost: VecDeque<Source>,
    /// Streams that have something new and wait for the connection's credit.
    blocked: Vec<u64>,
    control: VecDeque<ControlFrame>,
    events: VecDeque<ContentEvent>,
    srtt: Span,
    pto: Span,
    /// Bytes that wait to leave, and bytes that are kept until they are acknowledged.
    waiting: u64,
    kept: u64,
    /// Bytes that have left, and bytes that were acknowledged, each counted once.
    first_sent: u64,
    acknowledged: u64,
    /// EXPIRING parcels that may become urgent were sent.
    any_expiring: bool,
    /// A stream found no room because of [`KEPT_MAX`].
    starved: bool,
}

impl Content {
    /// The content of a connection whose own parameters are `local`.
    pub fn new(client: bool, local: &Parameters) -> Self {
        Self {
            local: local.clone(),
            peer: None,
            streams: BTreeMap::new(),
            own_ids: StreamIds::new(client, 0),
            peer_ids: StreamIds::new(!client, local.max_streams),
            peer_closed: 0,
            receive_credit: ReceiveCredit::new(local.max_data),
            send_credit: SendCredit::default(),
            send_parcels: SendParcels::default(),
            receive_parcels: ReceiveParcels::default(),
            turns: Turns::default(),
            lost: VecDeque::new(),
            blocked: Vec::new(),
            control: VecDeque::new(),
            events: VecDeque::new(),
            srtt: Span::from_millis(100),
            pto: Span::from_millis(300),
            waiting: 0,
            kept: 0,
            first_sent: 0,
            acknowledged: 0,
            any_expiring: false,
            starved: false,
        }
    }

    /// The peer's parameters are known: from now on streams can be opened and content sent.
    pub fn on_parameters(&mut self, peer: &Parameters) {
        self.own_ids.on_max_streams(peer.max_streams);
        self.send_credit.on_max_data(peer.max_data);
        self.peer = Some(peer.clone());
        self.unblock();
    }

    /// The round trip of the best path and the longest probe time-out have changed.
    pub fn on_rtt(&mut self, srtt: Span, pto: Span) {
        (self.srtt, self.pto) = (srtt, pto);
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<ContentEvent> {
        self.events.pop_front()
    }

    /// The next moment at which [`Self::handle_timeout`] has something to do; it may come too early,
    /// never too late.
    pub fn poll_timeout(&self) -> Option<Time> {
        let (ours, theirs) =
            (self.send_parcels.poll_timeout(), self.receive_parcels.poll_timeout());
        ours.into_iter().chain(theirs).min()
    }

    /// Gives up the parcels whose time is over.
    pub fn handle_timeout(&mut self, now: Time) {
        let (waiting, control, events) = (&mut self.waiting, &mut self.control, &mut self.events);
        self.send_parcels.expire(now, |parcel, unsent| {
            *waiting -= unsent;
            control.push_back(ControlFrame::ParcelGone(parcel));
            events.push_back(ContentEvent::ParcelGone { parcel, ours: true });
        });
        let credit = &mut self.receive_credit;
        self.receive_parcels.expire(now, |parcel, total| {
            credit.consume(total.into());
            events.push_back(ContentEvent::ParcelGone { parcel, ours: false });
        });
        self.want_max_data();
    }

    /// Opens a stream, one-way or both ways; `None` while the peer allows no more.
    pub fn open_stream(&mut self, now: Time, both_ways: bool) -> Option<u64> {
        let limit = self.peer.as_ref()?.max_stream_data;
        let id = self.own_ids.open(both_ways)?;
        let receive = both_ways.then(|| ReceiveStream::new(now, self.local.max_stream_data));
        self.streams.insert(id, Stream::new(Some(SendStream::new(limit)), receive));
        Some(id)
    }

    /// Sets the class of a stream, 0 (first) to 7, and whether its packets leave on two paths at once.
    pub fn set_priority(&mut self, stream: u64, priority: u8, redundant: bool) {
        let Some(known) = self.streams.get_mut(&stream) else { return };
        known.redundant = redundant;
        if known.priority != priority.min(7) && known.queued {
            let old = known.priority;
            known.priority = priority.min(7);
            self.turns.prefer(old, Source::Stream(stream));
            self.turns.pop(old);
            self.turns.push(priority, Source::Stream(stream));
        } else {
            known.priority = priority.min(7);
        }
    }

    /// Takes a block to send on `stream`, also beyond [`Self::room`]; false where the stream is not
    /// there, finished or reset.
    pub fn write(&mut self, stream: u64, bytes: Vec<u8>) -> bool {
        let written = self.with_send(stream, |send| send.write(bytes)).unwrap_or(false);
        if written {
            self.note_room(stream);
            self.enqueue(stream);
        }
        written
    }

    /// Says that nothing more is written on `stream`.
    pub fn finish(&mut self, stream: u64) {
        self.with_send(stream, SendStream::finish);
        self.enqueue(stream);
    }

    /// Bytes of all content that have left, each counted once.
    pub fn first_sent(&self) -> u64 {
        self.first_sent
    }

    /// Bytes of all content that were acknowledged, each counted once.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Bytes of `stream` that have left, from its beginning on; `None` once all of it is over.
    pub fn sent(&self, stream: u64) -> Option<u64> {
        self.streams.get(&stream)?.send.as_ref().map(SendStream::sent)
    }

    /// How many more bytes `stream` wants now. After a write that left it none,
    /// [`ContentEvent::Writable`] follows.
    pub fn room(&self, stream: u64) -> u64 {
        let unsent = self.streams.get(&stream).and_then(|stream| stream.send.as_ref());
        unsent.map_or(0, |send| room_of(send, self.kept))
    }

    /// The next bytes of `stream` in order; `None` while there are none, and after its end. Only after
    /// `None` does another [`ContentEvent::Readable`] follow.
    pub fn read(&mut self, now: Time, stream: u64) -> Option<Block> {
        let known = self.streams.get_mut(&stream)?;
        let receive = known.receive.as_mut()?;
        let Some(block) = receive.read() else {
            known.told_readable = false;
            return None;
        };
        self.receive_credit.consume(block.len() as u64);
        if receive.wants_grant() {
            receive.grant(now, self.srtt);
            self.want(ControlFrame::MaxStreamData(stream));
        }
        if block.fin {
            self.close_if_over(stream);
        }
        self.want_max_data();
        Some(block)
    }

    /// Gives up sending `stream`.
    pub fn reset_stream(&mut self, stream: u64, code: u64) {
        if self.with_send(stream, |send| send.reset(code)).flatten().is_some() {
            self.want(ControlFrame::ResetStream(stream));
        }
    }

    /// Does not want what the peer sends on `stream`.
    pub fn stop_stream(&mut self, stream: u64, code: u64) {
        let Some(known) = self.streams.get_mut(&stream) else { return };
        let Some(receive) = known.receive.as_mut().filter(|receive| !receive.is_discarding())
        else {
            return;
        };
        let before = receive.consumed();
        receive.discard();
        self.receive_credit.consume(receive.consumed() - before);
        known.stopped = Some(code);
        self.want(ControlFrame::StopSending(stream));
        self.want_max_data();
        self.close_if_over(stream);
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
        // What one window never holds could wait for ever.
        let peer = self.peer.as_ref().map(|peer| peer.parcel_max.min(peer.max_data));
        let most = peer.unwrap_or(Parameters::default().parcel_max);
        let len = bytes.len() as u64;
        if len > most {
            return Err(ParcelError::TooLarge { most });
        }
        let id = self.send_parcels.push(now, bytes, kind, priority, redundant)?;
        self.any_expiring |= matches!(kind, Kind::Expiring { .. });
        self.waiting += len;
        self.begin_parcels();
        Ok(id)
    }

    /// A parcel that has arrived: the peer's id of it and its bytes.
    pub fn receive_parcel(&mut self) -> Option<(u64, Vec<u8>)> {
        let (id, bytes) = self.receive_parcels.take()?;
        self.receive_credit.consume(bytes.len() as u64);
        self.want_max_data();
        Some((id, bytes))
    }

    /// Does `what` to the sending side of `stream` and keeps the sums right.
    fn with_send<T>(&mut self, stream: u64, what: impl FnOnce(&mut SendStream) -> T) -> Option<T> {
        let known = self.streams.get_mut(&stream)?;
        let send = known.send.as_mut()?;
        let (waiting, kept) = (send.waiting(), send.kept());
        let result = what(send);
        self.waiting = self.waiting + send.waiting() - waiting;
        self.kept = self.kept + send.kept() - kept;
        if known.wants_room && room_of(send, self.kept) >= ROOM_AGAIN {
            known.wants_room = false;
            self.events.push_back(ContentEvent::Writable { stream });
        }
        Some(result)
    }

    fn note_room(&mut self, stream: u64) {
        if self.room(stream) > 0 {
            return;
        }
        if self.kept >= KEPT_MAX && !self.starved {
            // What this stream took leaves the others without room too.
            self.starved = true;
            for known in self.streams.values_mut() {
                known.wants_room |= known.send.is_some();
            }
        }
        if let Some(known) = self.streams.get_mut(&stream) {
            known.wants_room = true;
        }
    }

    /// Tells the application which streams have room again, if it waits for that.
    fn offer_room(&mut self) {
        self.starved = false;
        for (&stream, known) in self.streams.iter_mut().filter(|(_, known)| known.wants_room) {
            if known.send.as_ref().is_some_and(|send| room_of(send, self.kept) >= ROOM_AGAIN) {
                known.wants_room = false;
                self.events.push_back(ContentEvent::Writable { stream });
            }
        }
    }

    /// Forgets `stream` if both of its sides are over.
    fn close_if_over(&mut self, stream: u64) {
        let over = self.streams.get(&stream).is_some_and(Stream::is_over);
        if !over {
            return;
        }
        self.with_send(stream, |send| send.reset(0));
        self.streams.remove(&stream);
        if self.peer_ids.owns(stream) {
            self.peer_closed += 1;
            let (target, limit) =
                (self.local.max_streams + self.peer_closed, self.peer_ids.limit());
            if (target - limit) * 4 >= self.local.max_streams {
                self.peer_ids.on_max_streams(target);
                self.want(ControlFrame::MaxStreams);
            }
        }
    }
}

/// How many more bytes a stream wants while `kept` are kept of all.
fn room_of(send: &SendStream, kept: u64) -> u64 {
    UNSENT_MAX.saturating_sub(send.unsent()).min(KEPT_MAX.saturating_sub(kept))
}

impl Stream {
    fn new(send: Option<SendStream>, receive: Option<ReceiveStream>) -> Self {
        Self {
            send,
            receive,
            priority: DEFAULT_PRIORITY,
            redundant: false,
            queued: false,
            wants_room: false,
            told_readable: false,
            stopped: None,
            reset_acked: false,
            told_blocked: None,
        }
    }

    fn is_over(&self) -> bool {
        let sent = self.send.as_ref().is_none_or(|send| send.is_delivered() || self.reset_acked);
        let received = self.receive.as_ref().is_none_or(ReceiveStream::is_over);
        sent && received
    }
}

//! A datagram arrives (docs/rudp.md sections 2 and 6).
//!
//! Nothing happens for a datagram that does not authenticate. What authenticates is taken frame by
//! frame; a frame that breaks a rule closes the connection with the code of that rule.

use super::closing::{Ending, printable};
use super::code::Code;
use super::connection::Connection;
use super::handshake::Answered;
use super::keys::Sealed;
use super::life::{Life, PathState};
use super::piece::Refused;
use super::protect::TAG;
use super::received::Arrival;
use super::report::{Event, PathAddrs};
use super::reset;
use super::sent::Item;
use super::stage::Stage;
use crate::wire::{
    AckFrame, Frame, Frames, Long, LongBody, RESET_TOKEN, SHORT_HEADER, ShortHeader, expand,
};
use acklab_core::packet::Ecn;
use acklab_core::time::{Span, Time};

/// A short packet that authenticated.
#[derive(Clone, Copy)]
struct Arrived {
    /// Of its path.
    index: usize,
    number: u64,
    /// No larger number arrived before.
    newest: bool,
    addrs: PathAddrs,
    ecn: Ecn,
    bytes: usize,
}

/// The handshake.
impl Connection {
    /// Takes a datagram that arrived at `now`; its bytes are decrypted in place.
    pub(super) fn on_datagram(
        &mut self,
        now: Time,
        from: PathAddrs,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        match datagram.first() {
            Some(&first) if ShortHeader::is_short(first) => {
                self.handle_short(now, from, ecn, datagram);
            }
            Some(_) => {
                if let Ok(packet) = Long::parse(datagram) {
                    self.handle_long(now, from, &packet);
                }
            }
            None => {}
        }
    }

    /// An INITIAL from `source` arrived at the server; whether it is this connection's.
    pub(super) fn takes_initial(
        &mut self,
        source: u64,
        initial: &[u8],
        copy: u8,
        from: PathAddrs,
    ) -> bool {
        if self.session.as_ref().is_none_or(|session| session.remote_id() != source) {
            return false;
        }
        match &mut self.stage {
            // Another message under the same id: one of them was altered on the way.
            Stage::Answering(answering) if !answering.is_for(initial) => false,
            Stage::Answering(answering) => {
                answering.on_copy(copy, from);
                true
            }
            // A late copy.
            _ => true,
        }
    }

    /// A long packet with this connection's id arrived.
    pub(super) fn handle_long(&mut self, now: Time, from: PathAddrs, packet: &Long<'_>) {
        if let LongBody::Reset { token } = packet.body {
            self.on_reset(packet.source, token);
            return;
        }
        if packet.destination != self.local_id {
            return;
        }
        match (&mut self.stage, packet.body) {
            (Stage::Greeting(greeting), LongBody::Answer { cipher, copy, message }) => {
                let answer = (cipher, copy, message);
                if let Some(answered) = greeting.on_answer(now, packet.source, answer) {
                    self.on_answered(now, from, packet.source, answered);
                }
            }
            (Stage::Greeting(greeting), LongBody::Retry { token }) => greeting.on_retry(now, token),
            (stage, LongBody::Refuse { code, text }) => {
                let Some(code) = Code::from_wire(u64::from(code)) else { return };
                match stage {
                    Stage::Greeting(greeting) => {
                        greeting.doubt(now, code, String::from_utf8_lossy(text).into_owned());
                    }
                    Stage::Answering(answering) if code == Code::WrongSecret => {
                        answering.on_refused(now);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// The server says that it does not know the connection any more: it is over, as after its idle time.
    fn on_reset(&mut self, id: u64, token: &[u8; RESET_TOKEN]) {
        let Some(session) = self.session.as_ref().filter(|_| self.is_open()) else { return };
        let told = session.peer().reset_token.as_ref();
        if session.remote_id() == id && told.is_some_and(|told| reset::is_same(told, token)) {
            self.on_ended(Code::Idle, "the peer has lost the connection".to_owned(), false);
        }
    }

    /// The handshake becomes an open connection. The path on which the answer came is the first; the
    /// others are opened now.
    fn on_answered(&mut self, now: Time, from: PathAddrs, source: u64, answered: Answered) {
        let Answered { agreed, parameters, rtt } = answered;
        let stage = std::mem::replace(&mut self.stage, Stage::Open);
        self.on_agreed(now, source, agreed, parameters);
        // The server is open when it hears a packet of ours.
        self.notices.ping();
        let (Stage::Greeting(greeting), Some(first)) = (stage, self.paths.get_mut(0)) else {
            return;
        };
        if let Some(rtt) = rtt {
            first.loss_mut().on_handshake_rtt(now, rtt);
        }
        let (addrs, others) = greeting.into_paths(first.addrs(), from);
        first.lead_to(addrs, &self.config);
        for addrs in others {
            self.add_path(now, addrs);
        }
    }
}

/// Short packets.
impl Connection {
    fn handle_short(&mut self, now: Time, addrs: PathAddrs, ecn: Ecn, datagram: &mut [u8]) {
        let Ok(header) = ShortHeader::parse(datagram) else { return };
        if header.connection != self.local_id || matches!(self.stage, Stage::Closed) {
            return;
        }
        let path = header.path;
        let known = self.paths.index_of(path);
        let number = match known {
            Some(index) => self.paths[index].number_of(&header),
            None => self.may_open(path).then(|| (expand(header.number32, 0), true)),
        };
        let Some((number, newest)) = number else { return };
        let keep = Span::from_nanos(3 * self.paths.slowest_pto().as_nanos());
        let sealed = Sealed { path, number, phase: header.key_phase, newest, keep };
        let Some(session) = &mut self.session else { return };
        if !session.open(now, &sealed, datagram) {
            if session.is_worn() {
                self.close(now, Code::AeadLimit, "");
            }
            return;
        }
        let index = known.unwrap_or_else(|| {
            self.push_path(now, path, addrs, Life::heard(now));
            self.paths.len() - 1
        });
        let arrived = Arrived { index, number, newest, addrs, ecn, bytes: datagram.len() };
        let frames = &datagram[SHORT_HEADER..datagram.len() - TAG];
        self.handle_authentic(now, arrived, frames);
    }

    /// Whether a packet with that unknown path id may open a path here.
    fn may_open(&self, path: u8) -> bool {
        !self.client
            && matches!(self.stage, Stage::Open | Stage::Answering(_))
            && self.paths.may_open(path)
    }

    fn handle_authentic(&mut self, now: Time, arrived: Arrived, frames: &[u8]) {
        self.idle.on_heard(now);
        let path = &mut self.paths[arrived.index];
        let id = path.id();
        if let Stage::Answering(answering) = &self.stage {
            if path.id() == 0 && answering.is_for_host(arrived.addrs.remote) {
                // The ANSWER went there, and whoever has the keys read it: no need to ask again.
                path.set_addrs(arrived.addrs);
            } else if path.id() == 0 {
                path.doubt(now);
            }
            self.stage = Stage::Open;
        }
        let from = (arrived.addrs, arrived.newest);
        path.on_authentic(now, arrived.bytes, from, self.client, &self.config);
        if let Stage::Ending(ending) = &mut self.stage {
            ending.on_packet(now, arrived.index);
        }
        match self.handle_frames(now, arrived, frames) {
            Ok(Some(taken)) => {
                let window = u32::try_from(self.content.window()).unwrap_or(u32::MAX);
                // A frame may have removed the path, or one before it.
                if let Some(path) = self.paths.by_id(id) {
                    path.on_taken(now, Arrival { len: frames.len() as u32, window, ..taken });
                }
            }
            // It counts as lost: its sender will say it again.
            Ok(None) => {}
            Err((code, text)) => self.close(now, code, text),
        }
    }

    /// What they came to; `None` where there was no room for all of it.
    fn handle_frames(
        &mut self,
        now: Time,
        arrived: Arrived,
        payload: &[u8],
    ) -> Result<Option<Arrival>, Fault> {
        let mut taken = Arrival::new(arrived.number, arrived.ecn);
        let mut whole = true;
        let id = self.paths[arrived.index].id();
        for frame in Frames::new(payload) {
            let frame = frame.map_err(|_| (Code::FrameEncoding, ""))?;
            taken.eliciting |= frame.is_ack_eliciting();
            match frame {
                Frame::Padding(_) | Frame::Ping => {}
                Frame::Ack(ack) => self.on_ack_frame(now, id, &ack)?,
                Frame::ImmediateAck { path } => taken.at_once |= path == id,
                Frame::PathChallenge(data) => {
                    taken.at_once = true;
                    self.notices.on_challenge(id, data);
                }
                Frame::PathResponse(data) => self.on_response(now, data),
                Frame::Close { code, text } => self.on_close_frame(now, code, text),
                Frame::AckFrequency { .. }
                | Frame::PathStatus { .. }
                | Frame::AddPath { .. }
                | Frame::RemovePath { .. } => self.on_path_frame(now, &frame),
                content if matches!(self.stage, Stage::Open) => {
                    taken.last |= is_last(&content);
                    match self.content.handle_frame(now, &content) {
                        Ok(()) => {}
                        Err(Refused::Lost) => whole = false,
                        Err(Refused::Close(code)) => return Err((code, "")),
                    }
                }
                _ => {}
            }
        }
        Ok(whole.then_some(taken))
    }

    fn on_ack_frame(&mut self, now: Time, came_by: u8, ack: &AckFrame<'_>) -> Result<(), Fault> {
        let Some(index) = self.paths.index_of(ack.path) else { return Ok(()) };
        self.news.clear();
        let path = &mut self.paths[index];
        let before = path.life().state();
        let confirmed = path
            .on_ack(now, ack, came_by != ack.path, &mut self.news)
            .map_err(|_| (Code::Protocol, "acknowledged what was not sent"))?;
        if let Some(session) = self.session.as_mut().filter(|_| confirmed) {
            session.on_confirmed();
        }
        self.tell_state(index, before);
        self.paths.couple(index);
        let before = self.content.acknowledged();
        self.settle();
        self.paths[index].on_delivered(self.content.acknowledged() - before);
        self.content.on_rtt(self.paths.best_rtt(), self.paths.slowest_pto());
        Ok(())
    }

    fn on_response(&mut self, now: Time, data: [u8; 8]) {
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            let before = path.life().state();
            if path.on_response(now, data, &self.config) {
                if before == PathState::Dead {
                    self.notices.push(Item::PathStatus(path.id()));
                }
                self.tell_state(index, before);
                return;
            }
        }
    }

    fn on_path_frame(&mut self, now: Time, frame: &Frame<'_>) {
        match *frame {
            Frame::AckFrequency { path, .. } => {
                let least = self.config.parameters.ack_delay_least_us;
                if let Some(path) = self.paths.by_id(path) {
                    path.on_asked(frame, least);
                }
            }
            Frame::PathStatus { path, sequence, status } => {
                if let Some(path) = self.paths.by_id(path) {
                    path.agreement_mut().on_status(sequence, status);
                }
            }
            Frame::AddPath { address, .. } => self.events.push_back(Event::Address(address)),
            Frame::RemovePath { path, .. } if self.paths.len() > 1 => self.drop_path(now, path),
            _ => {}
        }
    }

    fn on_close_frame(&mut self, now: Time, code: u64, text: &[u8]) {
        match &mut self.stage {
            Stage::Ending(ending) => ending.on_close(),
            Stage::Closed => {}
            _ => {
                let code = Code::from_wire(code).unwrap_or(Code::Protocol);
                let text = printable(&String::from_utf8_lossy(text));
                self.events.push_back(Event::Closed { code, text, by_peer: true });
                self.stage = Stage::Ending(Ending::theirs(now, &self.paths));
            }
        }
    }
}

/// Whether the frame ends a stream or parcel: the application may wait for that to be acknowledged.
fn is_last(frame: &Frame<'_>) -> bool {
    match frame {
        Frame::Stream { fin, .. } => *fin,
        Frame::Parcel { total, offset, data, .. } => {
            *offset as usize + data.len() == *total as usize
        }
        _ => false,
    }
}

/// A rule broken: the code to close with and a word about it.
type Fault = (Code, &'static str);

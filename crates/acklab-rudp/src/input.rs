//! A datagram arrives (docs/rudp.md sections 2 and 6).
//!
//! Nothing happens for a datagram that does not authenticate. What authenticates is taken frame by
//! frame; a frame that breaks a rule closes the connection with the code of that rule.

use super::code::Code;
use super::connection::{Connection, Event, PATHS, Stage};
use super::keys::FORGED;
use super::life::{Life, PathState};
use super::path::PathAddrs;
use super::piece::Refused;
use super::protect::TAG;
use super::received::{Arrival, Received};
use super::sent::Item;
use crate::wire::{AckFrame, Frame, Frames, Long, SHORT_HEADER, ShortHeader, expand};
use acklab_core::packet::Ecn;
use acklab_core::time::{Span, Time};

/// Responses that wait at most; more challenges are not answered.
const RESPONSES: usize = 8;

/// A short packet that authenticated.
#[derive(Clone, Copy)]
struct Arrived {
    index: usize,
    number: u64,
    addrs: PathAddrs,
    ecn: Ecn,
    bytes: usize,
}

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

    fn handle_short(&mut self, now: Time, addrs: PathAddrs, ecn: Ecn, datagram: &mut [u8]) {
        let Ok(header) = ShortHeader::parse(datagram) else { return };
        if header.connection != self.local_id || matches!(self.stage, Stage::Closed) {
            return;
        }
        let known = self.path_index(header.path);
        if known.is_none() && !self.may_open(header.path) {
            return;
        }
        let received = known.map(|index| &self.paths[index].received);
        let number = expand(header.number32, received.map_or(0, Received::expected));
        if received.is_some_and(|received| !received.is_fresh(number)) {
            return;
        }
        let newest = received.is_none_or(|received| received.is_newest(number));
        let keep = Span::from_nanos(3 * self.slowest_pto().as_nanos());
        let Some(keys) = &mut self.keys else { return };
        let id = header.path;
        if !keys.open(now, (id, number), header.key_phase, (newest, keep), datagram) {
            self.forged += 1;
            if self.forged >= FORGED {
                self.close(now, Code::AeadLimit, "");
            }
            return;
        }
        let index = known.unwrap_or_else(|| {
            self.next_path_id = id + 2;
            self.push_path(now, id, addrs, Life::heard(now));
            self.paths.len() - 1
        });
        let arrived = Arrived { index, number, addrs, ecn, bytes: datagram.len() };
        let frames = &datagram[SHORT_HEADER..datagram.len() - TAG];
        self.handle_authentic(now, arrived, newest, frames);
    }

    /// Whether a packet with that unknown path id may open a path here.
    fn may_open(&self, id: u8) -> bool {
        !self.client
            && matches!(self.stage, Stage::Open | Stage::Answering(_))
            && self.paths.len() < PATHS
            && id.is_multiple_of(2)
            && id > self.paths.iter().map(|path| path.id).max().unwrap_or(0)
            && u16::from(id) + 2 > u16::from(self.next_path_id)
    }

    fn handle_authentic(&mut self, now: Time, arrived: Arrived, newest: bool, frames: &[u8]) {
        self.last_heard = now;
        let answered = match &self.stage {
            Stage::Answering(answering) => Some(answering.is_for_host(arrived.addrs.remote)),
            _ => None,
        };
        if answered.is_some() {
            self.stage = Stage::Open;
        }
        let path = &mut self.paths[arrived.index];
        if answered == Some(true) && path.id == 0 {
            // The ANSWER went there, and whoever has the keys read it: no need to ask again.
            path.addrs = arrived.addrs;
        }
        path.last_heard = now;
        path.counters.packets_received += 1;
        path.counters.bytes_received += arrived.bytes as u64;
        if newest && !self.client && path.addrs != arrived.addrs {
            // The client is behind another address now; a server keeps its own.
            let port_only = path.addrs.remote.ip() == arrived.addrs.remote.ip();
            path.addrs = arrived.addrs;
            path.life.on_rebound(now);
            if !port_only {
                path.restart(now);
            }
        }
        path.life.on_received(arrived.bytes as u64);
        if matches!(self.stage, Stage::Ending(_)) {
            self.on_packet_while_ending(now, arrived.index);
        }
        match self.handle_frames(now, arrived, frames) {
            Ok(Some(taken)) => self.acknowledge(now, arrived, &taken, frames.len()),
            // It counts as lost: its sender will say it again.
            Ok(None) => {}
            Err((code, text)) => self.close(now, code, text),
        }
    }

    fn acknowledge(&mut self, now: Time, arrived: Arrived, taken: &Taken, len: usize) {
        // A frame may have removed the path.
        let Some(path) = self.paths.get_mut(arrived.index) else { return };
        let arrival = Arrival {
            number: arrived.number,
            eliciting: taken.eliciting,
            at_once: taken.at_once,
            last: taken.last,
            len: len as u32,
            mss: u32::MAX,
            ecn: arrived.ecn,
            srtt: path.rtt.is_measured().then(|| path.rtt.smoothed()),
            pto: path.pto(),
        };
        path.received.on_packet(now, &arrival);
    }

    /// What they came to; `None` where there was no room for all of it.
    fn handle_frames(
        &mut self,
        now: Time,
        arrived: Arrived,
        payload: &[u8],
    ) -> Result<Option<Taken>, Fault> {
        let mut taken = Taken { eliciting: false, at_once: false, last: false };
        let mut whole = true;
        let id = self.paths[arrived.index].id;
        for frame in Frames::new(payload) {
            let frame = frame.map_err(|_| (Code::FrameEncoding, ""))?;
            taken.eliciting |= frame.is_ack_eliciting();
            match frame {
                Frame::Padding(_) | Frame::Ping => {}
                Frame::Ack(ack) => self.on_ack_frame(now, id, &ack)?,
                Frame::ImmediateAck { path } => taken.at_once |= path == id,
                Frame::PathChallenge(data) => {
                    taken.at_once = true;
                    if self.responses.len() < RESPONSES {
                        self.responses.push_back((id, data));
                    }
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
        let Some(index) = self.path_index(ack.path) else { return Ok(()) };
        // Whatever it says, it counts as what was asked for at most.
        let delay = Span::from_micros(ack.delay_us.min(MOST_ACK_DELAY_US));
        self.news.clear();
        let path = &mut self.paths[index];
        let indirect = came_by != ack.path;
        path.on_ack(now, ack.ranges(), (delay, indirect), ack.ecn, &mut self.news)
            .map_err(|_| (Code::Protocol, "acknowledged what was not sent"))?;
        if let Some(largest) = self.news.largest_acknowledged {
            let before = path.life.state();
            path.life.on_news(now);
            let state = path.life.state();
            if largest >= path.key_from
                && let Some(keys) = &mut self.keys
            {
                keys.on_confirmed();
            }
            if state != before {
                self.events.push_back(Event::Path { id: ack.path, state });
            }
        }
        let before = self.content.acknowledged();
        self.settle();
        self.paths[index].counters.delivered += self.content.acknowledged() - before;
        let best = self.paths.iter().map(|path| path.rtt.smoothed()).min();
        self.content.on_rtt(best.unwrap_or_default(), self.slowest_pto());
        Ok(())
    }

    fn on_response(&mut self, now: Time, data: [u8; 8]) {
        for path in &mut self.paths {
            let before = path.life.state();
            if path.life.on_response(now, data) {
                if before == PathState::Dead {
                    path.restart(now);
                    self.notices.push_back(Item::PathStatus(path.id));
                }
                let state = path.life.state();
                if state != before {
                    self.events.push_back(Event::Path { id: path.id, state });
                }
                return;
            }
        }
    }

    fn on_path_frame(&mut self, now: Time, frame: &Frame<'_>) {
        match *frame {
            Frame::AckFrequency { path, sequence, packets, delay_us, reordering } => {
                let least = self.config.parameters.ack_delay_least_us;
                let delay = Span::from_micros(delay_us.clamp(least, MOST_ACK_DELAY_US));
                if let Some(index) = self.path_index(path) {
                    self.paths[index].received.on_asked(sequence, packets, delay, reordering);
                }
            }
            Frame::PathStatus { path, sequence, status } => {
                let Some(index) = self.path_index(path) else { return };
                let path = &mut self.paths[index];
                if path.status_heard.is_some_and(|heard| sequence <= heard) {
                    return;
                }
                path.status_heard = Some(sequence);
                path.status = status;
            }
            Frame::AddPath { address, .. } => self.events.push_back(Event::Address(address)),
            Frame::RemovePath { path, .. } if self.paths.len() > 1 => self.drop_path(now, path),
            _ => {}
        }
    }
}

/// Whether the frame ends a stream or parcel: somebody may wait for that to be acknowledged.
fn is_last(frame: &Frame<'_>) -> bool {
    match frame {
        Frame::Stream { fin, .. } => *fin,
        Frame::Parcel { total, offset, data, .. } => {
            *offset as usize + data.len() == *total as usize
        }
        _ => false,
    }
}

/// What a packet's frames came to.
struct Taken {
    eliciting: bool,
    /// Something asks for an acknowledgment at once.
    at_once: bool,
    /// It ends a stream or parcel.
    last: bool,
}

/// A rule broken: the code to close with and a word about it.
type Fault = (Code, &'static str);

/// A peer that asks for slower ACKs than this gets this, us.
const MOST_ACK_DELAY_US: u64 = 1_000_000;

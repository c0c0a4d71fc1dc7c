//! Datagrams leave (docs/rudp.md sections 4 to 6): which path, what is in the packet.
//!
//! A packet holds, in this order: ACKs, what concerns paths, limits and the like, content. Content is
//! what was lost before what is new; when neither waits, copies of what may be lost by the end of a
//! transfer.

use std::collections::VecDeque;

use super::code::Code;
use super::config::Config;
use super::content::Content;
use super::notices::{LEAST_ROOM, Notices};
use super::path::Departure;
use super::paths::Paths;
use super::piece::Piece;
use super::protect::{Entropy, TAG};
use super::report::Transmit;
use super::sent::{Item, Items};
use super::session::Session;
use super::telling::Telling;
use crate::wire::{Frame, SHORT_HEADER, Writer};
use acklab_core::packet::Ecn;
use acklab_core::time::{Span, Time};

/// What a packet may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// What concerns paths and limits.
    Control,
    /// That, and second copies of redundant content.
    Copies,
    /// Everything.
    Content,
}

/// What is kept from packet to packet.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Pieces that are to leave a second time, on another path than this one.
    redundant: VecDeque<(Piece, u8)>,
    /// The items of the packet that is being written.
    items: Vec<Item>,
}

/// The parts of an open connection from which its packets are made.
pub(super) struct Output<'a> {
    pub(super) now: Time,
    pub(super) config: &'a Config,
    pub(super) entropy: &'a mut dyn Entropy,
    pub(super) session: &'a mut Session,
    pub(super) paths: &'a mut Paths,
    pub(super) notices: &'a mut Notices,
    pub(super) content: &'a mut Content,
    pub(super) memory: &'a mut Memory,
    pub(super) telling: &'a mut Telling,
}

impl Output<'_> {
    /// Fills `buffer` with datagrams for one path.
    pub(super) fn transmit(&mut self, buffer: &mut [u8]) -> Option<Transmit> {
        self.update_keys();
        for path in self.paths.iter_mut() {
            path.begin_round();
        }
        for index in 0..self.paths.len() {
            if let Some(transmit) = self.question(index, buffer) {
                return Some(transmit);
            }
            if self.control_waits(index) {
                let probes = self.paths[index].loss().probes() > 0;
                let load = if probes { Load::Content } else { Load::Control };
                if let Some(transmit) = self.batch(index, buffer, 1, load) {
                    return Some(transmit);
                }
            }
            if let Some(transmit) = self.probe_size(index, buffer) {
                return Some(transmit);
            }
        }
        // Those that no one needs any more go without a packet; the next may be another path's.
        while let Some(&(_, first)) = self.memory.redundant.front()
            && let Some(index) = self.paths.for_copies(self.now, first)
        {
            let waited = self.memory.redundant.len();
            if let Some(transmit) = self.batch(index, buffer, 1, Load::Copies) {
                return Some(transmit);
            }
            if self.memory.redundant.len() == waited {
                break;
            }
        }
        let content = self.content_waits();
        // Without content or copies of it, a packet would hold nothing but an ACK that is not due.
        if (content || (self.paths.is_lossy() && self.copies_wait()))
            && let Some(index) = self.paths.choose(self.now, self.content.sending().waiting_bytes())
            && (content || self.paths[index].loss().is_lossy())
            && let Some(transmit) = self.batch(index, buffer, self.config.batch, Load::Content)
        {
            return Some(transmit);
        }
        for path in self.paths.iter_mut() {
            path.on_nothing_to_send();
        }
        None
    }

    /// A datagram that asks an address whether the peer is there now.
    fn question(&mut self, index: usize, buffer: &mut [u8]) -> Option<Transmit> {
        let question = self.paths[index].poll_question(self.now, self.entropy)?;
        let len = self.write_packet_of(index, buffer, question.most, |_, writer| {
            Frame::PathChallenge(question.challenge).emit(writer);
            Frame::Padding(writer.remaining()).emit(writer);
            // Its loss would say nothing of the path.
            false
        })?;
        Some(Transmit::one(question.addrs, len))
    }

    /// A datagram with CLOSE on that path.
    pub(super) fn close(
        &mut self,
        index: usize,
        code: Code,
        text: &str,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        let addrs = self.paths.get_mut(index)?.addrs();
        let len = self.write_packet(index, buffer, |_, writer| {
            Frame::Close { code: code as u64, text: text.as_bytes() }.emit(writer);
            false
        })?;
        Some(Transmit::one(addrs, len))
    }

    fn content_waits(&self) -> bool {
        self.content.sending().has_lost()
            || self.content.sending().has_new(self.now)
            || !self.memory.redundant.is_empty()
    }

    /// Whether all that was written has left: what waits for the peer's credit is no end, and copies would take the place
    /// of others in a queue.
    fn is_ending(&self) -> bool {
        self.content.sending().waiting_bytes() == 0
    }

    /// Whether anything on its way is worth a copy by now.
    fn copies_wait(&self) -> bool {
        let wanted = |item: &Item| match item {
            Item::Piece(piece) => self.content.sending().still_wanted(piece).is_some(),
            _ => false,
        };
        self.is_ending()
            && self.paths.is_ripe(self.now, |items| items.as_slice().iter().any(wanted))
    }

    /// Whether the path has something to say besides content.
    fn control_waits(&self, index: usize) -> bool {
        let path = &self.paths[index];
        if !path.life().may_speak(self.now) {
            return false;
        }
        let own = path.must_speak(self.now) || self.notices.responds_on(path.id());
        if own || !path.life().is_heard() {
            return own;
        }
        let all = self.paths.is_best(index)
            && (self.notices.is_waiting()
                || self.content.has_control()
                || self.paths.ack_is_due_elsewhere());
        all || path.asks() || (path.received().is_due() && !self.paths.acks_elsewhere(index))
    }

    /// Datagrams for one path, alike in length but for the last.
    fn batch(
        &mut self,
        index: usize,
        buffer: &mut [u8],
        most: usize,
        load: Load,
    ) -> Option<Transmit> {
        let now = self.now;
        let addrs = self.paths[index].addrs();
        let unmarked = (Ecn::NotEct, usize::MAX);
        let (ecn, markable) = if self.config.ecn { self.paths[index].mark(now) } else { unmarked };
        let most = most.min(markable);
        let (mut len, mut segment, mut count) = (0, 0, 0);
        let quantum = self.paths[index].batch();
        loop {
            let room = &mut buffer[len..];
            let written = self.write_packet(index, room, |output, writer| {
                output.write_frames(index, load, writer)
            });
            let Some(written) = written else { break };
            len += written;
            count += 1;
            if count == 1 {
                segment = written;
            }
            let path = &mut self.paths[index];
            if ecn != Ecn::NotEct {
                path.on_marked(now);
            }
            let full = written == segment && written == path.size_mut().current();
            let goes_on = load == Load::Content
                && full
                && count < most
                && (len as u64) < quantum
                && buffer.len() - len >= segment
                && path.may_reach()
                && path.may_send(now)
                && self.content_waits();
            if !goes_on {
                break;
            }
        }
        (len > 0).then_some(Transmit { addrs, ecn, len, segment })
    }

    /// One packet: `frames` writes them and says whether they ask for an acknowledgment. `None`, and
    /// nothing sent, where it wrote none.
    fn write_packet(
        &mut self,
        index: usize,
        buffer: &mut [u8],
        frames: impl FnOnce(&mut Self, &mut Writer<'_>) -> bool,
    ) -> Option<usize> {
        let size = self.paths[index].size_mut().current();
        self.write_packet_of(index, buffer, size, frames)
    }

    fn write_packet_of(
        &mut self,
        index: usize,
        buffer: &mut [u8],
        size: usize,
        frames: impl FnOnce(&mut Self, &mut Writer<'_>) -> bool,
    ) -> Option<usize> {
        let limit = size.min(buffer.len());
        let room = buffer.get_mut(SHORT_HEADER..limit.checked_sub(TAG)?)?;
        let mut writer = Writer::new(room);
        self.memory.items.clear();
        let left = self.content.first_sent();
        let eliciting = frames(self, &mut writer);
        let len = SHORT_HEADER + writer.position() + TAG;
        if writer.position() == 0 {
            return None;
        }
        let path = &mut self.paths[index];
        let skips: Option<&mut dyn Entropy> =
            if self.config.every_number { None } else { Some(self.entropy) };
        let number = path.loss_mut().next_number(self.now, skips);
        self.session.seal(path.id(), number, &mut buffer[..len]);
        let fresh = self.content.first_sent() - left;
        self.telling.packet(self.now, path.addrs().flow(), &self.memory.items, fresh, eliciting);
        let items = Items::gathered(&mut self.memory.items);
        let probes_size = eliciting && size > path.size_mut().current();
        path.on_sent(self.now, Departure { len, eliciting, items, probes_size });
        Some(len)
    }

    /// All frames of one packet; whether any asks for an acknowledgment.
    fn write_frames(&mut self, index: usize, load: Load, writer: &mut Writer<'_>) -> bool {
        let speaks = self.paths[index].life().is_heard();
        if speaks {
            self.write_acks(index, load != Load::Control, writer);
        }
        let mut eliciting = self.write_validation(index, writer);
        if speaks {
            eliciting |= self.write_control(index, writer);
        }
        if load == Load::Content && self.paths[index].life().is_usable() {
            eliciting |= self.write_content(index, writer);
        } else if load == Load::Copies {
            eliciting |= self.write_second_copies(index, writer);
        }
        let path = &self.paths[index];
        let probes = path.loss().probes() > 0;
        let pings = self.notices.is_pinging() && self.paths.is_best(index);
        if (probes || pings) && writer.remaining() > 4 {
            if !eliciting {
                Frame::Ping.emit(writer);
                eliciting = true;
            }
            Frame::ImmediateAck { path: path.id() }.emit(writer);
        }
        if eliciting {
            self.notices.on_eliciting();
        }
        eliciting
    }

    fn write_acks(&mut self, index: usize, content: bool, writer: &mut Writer<'_>) {
        let best = self.paths.is_best(index);
        for other in 0..self.paths.len() {
            let here = if self.paths.acks_elsewhere(other) { best } else { other == index };
            if !here {
                continue;
            }
            let path = &mut self.paths[other];
            let (since, reason) = (path.received().waiting_since(), path.received().reason());
            if path.write_ack(self.now, content, writer)
                && let Some(since) = since
            {
                self.telling.ack(self.now, path.addrs().flow(), since, reason);
            }
        }
    }

    /// Challenges and responses.
    fn write_validation(&mut self, index: usize, writer: &mut Writer<'_>) -> bool {
        let path = &mut self.paths[index];
        let responded = self.notices.write_responses(path.id(), writer);
        let (content, now) = (&*self.content, self.now);
        let fills = || content.sending().has_lost() || content.sending().has_new(now);
        responded | path.life_mut().write_challenge(now, fills, self.entropy, writer)
    }

    /// What concerns paths, limits, and the ends of streams and parcels.
    fn write_control(&mut self, index: usize, writer: &mut Writer<'_>) -> bool {
        let items = &mut self.memory.items;
        let request = self.paths[index].write_request(writer);
        let mut written = request.is_some();
        items.extend(request);
        if !self.paths.is_best(index) {
            return written;
        }
        written |= self.notices.write(self.paths, writer, items);
        while let Some((control, frame)) = self.content.poll_control(writer.remaining()) {
            frame.emit(writer);
            items.push(Item::Control(control));
            written = true;
        }
        written
    }

    fn write_content(&mut self, index: usize, writer: &mut Writer<'_>) -> bool {
        let mut written = self.write_second_copies(index, writer);
        while writer.remaining() > LEAST_ROOM
            && let Some(piece) = self.content.next_piece(self.now, writer.remaining(), true)
        {
            self.write_piece(index, &piece, writer);
            if self.content.sending().is_redundant(&piece) {
                self.memory.redundant.push_back((piece, self.paths[index].id()));
            }
            written = true;
        }
        if !written {
            written = self.write_duplicates(index, writer);
        }
        written
    }

    fn write_piece(&mut self, index: usize, piece: &Piece, writer: &mut Writer<'_>) {
        let before = writer.position();
        self.content.sending().emit(piece, self.now, writer);
        self.paths[index].on_content((writer.position() - before) as u64);
        self.memory.items.push(Item::Piece(*piece));
    }

    /// Pieces of redundant streams and parcels that left on another path.
    fn write_second_copies(&mut self, index: usize, writer: &mut Writer<'_>) -> bool {
        if !self.paths.takes_copies() {
            self.memory.redundant.clear();
            return false;
        }
        let id = self.paths[index].id();
        let mut written = false;
        while let Some(at) = self.memory.redundant.iter().position(|(_, first)| *first != id) {
            // The first copy may have arrived, or its parcel's time may be over: nothing is left to say.
            let wanted = self.content.sending().second_copy(&self.memory.redundant[at].0);
            if wanted.is_some_and(|piece| !self.fits(&piece, writer)) {
                break;
            }
            self.memory.redundant.remove(at);
            if let Some(piece) = wanted {
                self.write_piece(index, &piece, writer);
                written = true;
            }
        }
        written
    }

    fn fits(&self, piece: &Piece, writer: &Writer<'_>) -> bool {
        self.content.sending().len_of(piece, self.now) <= writer.remaining()
    }

    /// At the end of a transfer over a lossy path, or after a probe time-out: what has been on its way
    /// longest leaves again.
    fn write_duplicates(&mut self, index: usize, writer: &mut Writer<'_>) -> bool {
        if !self.paths[index].loss().is_lossy() || self.content_waits() {
            return false;
        }
        let probes = self.paths[index].loss().probes() > 0;
        if !probes && !self.is_ending() {
            return false;
        }
        let mut written = false;
        while let Some(items) = self.copy_oldest(probes, writer) {
            for item in items.as_slice() {
                if let Item::Piece(piece) = item
                    && let Some(piece) = self.content.sending().still_wanted(piece)
                    && self.fits(&piece, writer)
                {
                    self.write_piece(index, &piece, writer);
                    written = true;
                }
            }
        }
        written
    }

    /// The items of the outstanding packet that left longest ago, if anything of them is still wanted.
    fn copy_oldest(&mut self, urgent: bool, writer: &Writer<'_>) -> Option<Items> {
        let (content, now, room) = (&*self.content, self.now, writer.remaining());
        let wanted = |item: &Item| match item {
            Item::Piece(piece) => {
                let left = content.sending().still_wanted(piece);
                left.is_some_and(|piece| content.sending().len_of(&piece, now) <= room)
            }
            _ => false,
        };
        self.paths.copy_oldest(now, urgent, |items| items.as_slice().iter().any(wanted))
    }

    /// A datagram that finds out whether larger ones pass.
    fn probe_size(&mut self, index: usize, buffer: &mut [u8]) -> Option<Transmit> {
        let path = &self.paths[index];
        let size = path.probe_size(self.now).filter(|&size| size <= buffer.len())?;
        let addrs = path.addrs();
        let len = self.write_packet_of(index, buffer, size, |_, writer| {
            Frame::Ping.emit(writer);
            Frame::Padding(writer.remaining()).emit(writer);
            true
        })?;
        Some(Transmit::one(addrs, len))
    }

    fn update_keys(&mut self) {
        let least = Span::from_nanos(3 * self.paths.slowest_pto().as_nanos());
        if self.session.update_keys(self.now, self.config.key_packets, least) {
            self.paths.iter_mut().for_each(super::path::Path::on_key_update);
        }
    }
}

//! Datagrams leave (docs/rudp.md sections 4 to 6): which path, what is in the packet.
//!
//! A packet holds, in this order: ACKs, what concerns paths, limits and the like, content. Content is
//! what was lost before what is new; when neither waits, copies of what may be lost by the end of a
//! transfer.

use super::connection::{Connection, Stage, Transmit};
use super::life::PathState;
use super::piece::Piece;
use super::protect::TAG;
use super::scheduler::Candidate;
use super::sent::{Item, Items};
use crate::wire::{EcnCounts, Frame, PathStatus, SHORT_HEADER, ShortHeader, Writer, ack};
use acklab_core::packet::Ecn;
use acklab_core::time::{Span, Time};

/// Copies of any content at the end of a transfer, at most (docs/rudp.md section 4).
const COPIES: u8 = 4;
/// Content that would not fill so many bytes waits for the next packet.
const LEAST_ROOM: usize = 48;
/// Datagrams that announce or probe a path are so long (docs/rudp.md section 2).
const PADDED: usize = super::datagram_size::BASE;

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

impl Connection {
    /// Fills `buffer` with datagrams for one path; `None` when all that may leave now has left. The
    /// buffer must hold at least one datagram of the largest size.
    pub(super) fn transmit_into(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let sent = self.transmit_next(now, buffer);
        if sent.is_some() || self.next_deadline().is_none_or(|at| at > now) {
            return sent;
        }
        // What left was the evidence that a path has been silent for long: its load leaves elsewhere.
        self.on_timeout(now);
        self.transmit_next(now, buffer)
    }

    fn transmit_next(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        match self.stage {
            Stage::Greeting(_) | Stage::Answering(_) => self.transmit_handshake(now, buffer),
            Stage::Open => self.transmit(now, buffer),
            Stage::Ending(_) => self.transmit_close(now, buffer),
            Stage::Closed => None,
        }
    }

    fn transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        self.update_keys(now);
        for path in &mut self.paths {
            path.paced = false;
        }
        for index in 0..self.paths.len() {
            if self.control_waits(now, index) {
                let load = if self.paths[index].probes > 0 { Load::Content } else { Load::Control };
                if let Some(transmit) = self.batch(now, index, buffer, (1, load)) {
                    return Some(transmit);
                }
            }
            if let Some(transmit) = self.probe_size(now, index, buffer) {
                return Some(transmit);
            }
        }
        if let Some(index) = self.path_for_copies(now)
            && let Some(transmit) = self.batch(now, index, buffer, (1, Load::Copies))
        {
            return Some(transmit);
        }
        if let Some(index) = self.choose_path(now)
            && let Some(transmit) =
                self.batch(now, index, buffer, (self.config.batch, Load::Content))
        {
            return Some(transmit);
        }
        for path in &mut self.paths {
            path.on_nothing_to_send();
        }
        None
    }

    fn content_waits(&self, now: Time) -> bool {
        self.content.has_lost() || self.content.has_new(now) || !self.redundant.is_empty()
    }

    /// The path for second copies, if any wait: another than the first, which may never be full.
    fn path_for_copies(&mut self, now: Time) -> Option<usize> {
        let first = self.redundant.front()?.1;
        let takers = self.paths.iter_mut().enumerate().filter(|(_, path)| {
            path.id != first && path.life.takes_copies() && path.life.may_send(path.mss())
        });
        let open = takers
            .filter_map(|(index, path)| path.may_send(now).then_some((path.rtt.smoothed(), index)));
        open.min().map(|(_, index)| index)
    }

    /// The path for content, if any waits and may leave now.
    fn choose_path(&mut self, now: Time) -> Option<usize> {
        let waits = self.content_waits(now);
        if !waits && !self.paths.iter().any(|path| path.is_lossy() && path.sent.in_flight() > 0) {
            return None;
        }
        let spare = self.paths.iter().any(|path| path.life.is_usable() && !path.is_spare());
        let mut candidates = [const { None }; super::connection::PATHS];
        let mut count = 0;
        for (index, path) in self.paths.iter_mut().enumerate() {
            let usable =
                path.life.is_usable() && !path.is_silent_there() && !(spare && path.is_spare());
            if !usable {
                continue;
            }
            let open = path.life.may_send(path.mss()) && path.may_send(now);
            candidates[count] = Some(Candidate {
                index,
                srtt: path.rtt.smoothed(),
                variation: path.rtt.variation(),
                window: path.window(),
                open,
            });
            count += 1;
        }
        let candidates = candidates.map(|candidate| candidate.unwrap_or(NOBODY));
        self.scheduler.choose(&candidates[..count], self.content.waiting_bytes())
    }

    /// Whether the path has something to say besides content.
    fn control_waits(&self, now: Time, index: usize) -> bool {
        let path = &self.paths[index];
        if !path.life.may_send(PADDED as u64) && !path.life.challenge_is_due(now) {
            return false;
        }
        let own = path.life.challenge_is_due(now)
            || path.probes > 0
            || self.responses.iter().any(|(id, _)| *id == path.id);
        if own || !path.life.is_heard() {
            return own;
        }
        let all = self.is_best(index)
            && (self.ping
                || !self.notices.is_empty()
                || self.content.has_control()
                || self
                    .paths
                    .iter()
                    .any(|path| self.acks_elsewhere(path) && path.received.is_due()));
        all || path.ask || (path.received.is_due() && !self.acks_elsewhere(path))
    }

    /// Whether ACKs of this path leave on another.
    fn acks_elsewhere(&self, path: &super::path::Path) -> bool {
        (path.is_silent_there() || !path.life.is_heard())
            && self.paths.iter().any(|other| other.life.is_heard() && !other.is_silent_there())
    }

    /// Whether frames that belong to no path leave on this one.
    fn is_best(&self, index: usize) -> bool {
        let rank = |path: &super::path::Path| {
            let good = path.life.state() == PathState::Active && !path.is_silent_there();
            (!good, !path.life.is_heard(), path.rtt.smoothed(), path.id)
        };
        let best = self.paths.iter().enumerate().min_by_key(|(_, path)| rank(path));
        best.is_some_and(|(best, _)| best == index)
    }

    /// Datagrams for one path, alike in length but for the last.
    fn batch(
        &mut self,
        now: Time,
        index: usize,
        buffer: &mut [u8],
        (most, load): (usize, Load),
    ) -> Option<Transmit> {
        let addrs = self.paths[index].addrs;
        let (ecn, markable) = match self.config.ecn {
            true => self.paths[index].ecn.mark(now),
            false => (Ecn::NotEct, usize::MAX),
        };
        let most = most.min(markable);
        let (mut len, mut segment, mut count) = (0, 0, 0);
        let quantum = self.paths[index].batch();
        loop {
            let room = &mut buffer[len..];
            let written = self.write_packet(now, index, room, |connection, index, writer| {
                connection.write_frames(now, index, load, writer)
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
            let full = written == segment && written as u64 == path.mss();
            let goes_on = load == Load::Content
                && full
                && count < most
                && (len as u64) < quantum
                && buffer.len() - len >= segment
                && path.life.may_send(path.mss())
                && path.may_send(now)
                && self.content_waits(now);
            if !goes_on {
                break;
            }
        }
        (len > 0).then_some(Transmit { addrs, ecn, len, segment })
    }

    /// One packet: `frames` writes them and says whether they ask for an acknowledgment. `None`, and
    /// nothing sent, where it wrote none.
    pub(super) fn write_packet(
        &mut self,
        now: Time,
        index: usize,
        buffer: &mut [u8],
        frames: impl FnOnce(&mut Self, usize, &mut Writer<'_>) -> bool,
    ) -> Option<usize> {
        let size = self.paths[index].size.current();
        self.write_packet_of(now, index, buffer, size, frames)
    }

    fn write_packet_of(
        &mut self,
        now: Time,
        index: usize,
        buffer: &mut [u8],
        size: usize,
        frames: impl FnOnce(&mut Self, usize, &mut Writer<'_>) -> bool,
    ) -> Option<usize> {
        let limit = size.min(buffer.len());
        let room = buffer.get_mut(SHORT_HEADER..limit.checked_sub(TAG)?)?;
        let mut writer = Writer::new(room);
        self.items.clear();
        let left = self.content.first_sent();
        let eliciting = frames(self, index, &mut writer);
        let len = SHORT_HEADER + writer.position() + TAG;
        if writer.position() == 0 {
            return None;
        }
        self.skip_a_number(now, index);
        let (key_phase, connection) = (self.keys.as_ref()?.phase_bit(), self.remote_id);
        let path = &mut self.paths[index];
        let number = path.sent.next_number();
        let header = ShortHeader { key_phase, connection, path: path.id, number32: number as u32 };
        header.emit(&mut Writer::new(&mut buffer[..SHORT_HEADER]));
        if let Some(keys) = &mut self.keys {
            keys.seal(path.id, number, &mut buffer[..len]);
        }
        let fresh = self.content.first_sent() - left;
        let (flow, control) = (self.paths[index].addrs.flow(), eliciting || !self.is_open());
        self.telling.packet(now, flow, &self.items, fresh, control);
        let items = Items::gathered(&mut self.items);
        let path = &mut self.paths[index];
        path.on_sent(now, len as u32, eliciting, items, size > path.size.current());
        self.last_sent = now;
        Some(len)
    }

    fn skip_a_number(&mut self, now: Time, index: usize) {
        let path = &mut self.paths[index];
        let number = path.sent.next_number();
        if self.config.every_number || number < path.skip_at {
            return;
        }
        if path.skip_at > 0 {
            path.skip_number(now);
        }
        let mut random = [0; 2];
        self.entropy.fill(&mut random);
        path.skip_at = number + 1 + u64::from(u16::from_be_bytes(random) % SKIP_SPAN);
    }

    /// All frames of one packet; whether any asks for an acknowledgment.
    fn write_frames(
        &mut self,
        now: Time,
        index: usize,
        load: Load,
        writer: &mut Writer<'_>,
    ) -> bool {
        let speaks = self.paths[index].life.is_heard();
        if speaks {
            self.write_acks(now, index, load != Load::Control, writer);
        }
        let mut eliciting = self.write_validation(now, index, writer);
        if speaks {
            eliciting |= self.write_notices(index, writer);
            eliciting |= self.write_controls(index, writer);
        }
        if load == Load::Content && self.paths[index].life.is_usable() {
            eliciting |= self.write_content(now, index, writer);
        } else if load == Load::Copies {
            eliciting |= self.write_second_copies(now, index, writer);
        }
        let probes = self.paths[index].probes > 0;
        if (probes || (self.ping && self.is_best(index))) && writer.remaining() > 4 {
            let id = self.paths[index].id;
            if !eliciting {
                Frame::Ping.emit(writer);
                eliciting = true;
            }
            Frame::ImmediateAck { path: id }.emit(writer);
        }
        self.ping &= !eliciting;
        eliciting
    }

    fn write_acks(&mut self, now: Time, index: usize, content: bool, writer: &mut Writer<'_>) {
        let best = self.is_best(index);
        for other in 0..self.paths.len() {
            let path = &self.paths[other];
            let here = if self.acks_elsewhere(path) { best } else { other == index };
            let wanted = path.received.is_due() || (content && path.received.has_news());
            if !here || !wanted {
                continue;
            }
            let ranges = path.received.ranges().map(|range| *range.start()..*range.end() + 1);
            let delay = path.received.delay(now).as_micros();
            let ecn = Some(path.received.ecn()).filter(|&ecn| ecn != EcnCounts::default());
            if ack::emit(writer, path.id, ranges, delay, ecn) {
                self.telling.ack(now, path.addrs.flow(), &path.received);
                self.paths[other].received.on_ack_sent(now);
            }
        }
    }

    /// Challenges and responses.
    fn write_validation(&mut self, now: Time, index: usize, writer: &mut Writer<'_>) -> bool {
        let path = &mut self.paths[index];
        let mut written = false;
        while let Some(at) = self.responses.iter().position(|(id, _)| *id == path.id)
            && writer.remaining() >= 9
        {
            if let Some((_, data)) = self.responses.remove(at) {
                Frame::PathResponse(data).emit(writer);
                written = true;
            }
        }
        let entropy = &mut self.entropy;
        let random = || {
            let mut bytes = [0; 8];
            entropy.fill(&mut bytes);
            bytes
        };
        if let Some(data) = path.life.poll_challenge(now, random)
            && writer.remaining() >= 9
            && path.life.may_send(SMALL)
        {
            Frame::PathChallenge(data).emit(writer);
            written = true;
            if path.life.state() != PathState::Dead && path.life.may_send(PADDED as u64) {
                let padding = (PADDED - SHORT_HEADER - TAG).saturating_sub(writer.position());
                // A datagram of content is long enough by itself.
                if !self.content.has_lost() && !self.content.has_new(now) {
                    Frame::Padding(padding.min(writer.remaining())).emit(writer);
                }
            }
        }
        written
    }

    /// What concerns paths.
    fn write_notices(&mut self, index: usize, writer: &mut Writer<'_>) -> bool {
        let mut written = false;
        if self.paths[index].ask {
            let path = &mut self.paths[index];
            let asked = path.asked;
            let frame = Frame::AckFrequency {
                path: path.id,
                sequence: asked.sequence,
                packets: asked.packets,
                delay_us: asked.delay.as_micros(),
                reordering: asked.reordering,
            };
            if frame.len() <= writer.remaining() {
                frame.emit(writer);
                path.ask = false;
                self.items.push(Item::AckFrequency(path.id));
                written = true;
            }
        }
        if !self.is_best(index) {
            return written;
        }
        while writer.remaining() > LEAST_ROOM
            && let Some(notice) = self.notices.pop_front()
        {
            self.status_sequence += 1;
            let frame = match notice {
                Item::PathStatus(path) => {
                    let Some(index) = self.path_index(path) else { continue };
                    let status = match self.paths[index].life.state() {
                        PathState::Dead => PathStatus::Silent,
                        _ if self.paths[index].spare_here => PathStatus::Spare,
                        _ => PathStatus::Use,
                    };
                    Frame::PathStatus { path, sequence: self.status_sequence, status }
                }
                Item::RemovePath(path) => Frame::RemovePath { path, code: 0 },
                Item::AddPath(id) => match self.announced.get(usize::from(id)) {
                    Some(&address) => Frame::AddPath { id, address },
                    None => continue,
                },
                _ => continue,
            };
            frame.emit(writer);
            self.items.push(notice);
            written = true;
        }
        written
    }

    /// Limits and the ends of streams and parcels.
    fn write_controls(&mut self, index: usize, writer: &mut Writer<'_>) -> bool {
        let mut written = false;
        if !self.is_best(index) {
            return false;
        }
        while let Some((control, frame)) = self.content.poll_control(writer.remaining()) {
            frame.emit(writer);
            self.items.push(Item::Control(control));
            written = true;
        }
        written
    }

    fn write_content(&mut self, now: Time, index: usize, writer: &mut Writer<'_>) -> bool {
        let mut written = self.write_second_copies(now, index, writer);
        while writer.remaining() > LEAST_ROOM
            && let Some(piece) = self.content.next_piece(now, writer.remaining(), true)
        {
            self.write_piece(now, index, &piece, writer);
            if self.content.is_redundant(&piece) {
                self.redundant.push_back((piece, self.paths[index].id));
            }
            written = true;
        }
        if !written {
            written = self.write_duplicates(now, index, writer);
        }
        written
    }

    fn write_piece(&mut self, now: Time, index: usize, piece: &Piece, writer: &mut Writer<'_>) {
        let before = writer.position();
        self.content.emit(piece, now, writer);
        self.paths[index].counters.content += (writer.position() - before) as u64;
        self.items.push(Item::Piece(*piece));
    }

    /// Pieces of redundant streams and parcels that left on another path.
    fn write_second_copies(&mut self, now: Time, index: usize, writer: &mut Writer<'_>) -> bool {
        let id = self.paths[index].id;
        let takers = self.paths.iter().filter(|path| path.life.takes_copies()).count();
        if takers < 2 {
            self.redundant.clear();
            return false;
        }
        let mut written = false;
        while let Some(at) = self.redundant.iter().position(|(_, first)| *first != id) {
            // The first copy may have arrived, or its parcel's time may be over: nothing is left to say.
            let wanted = self.content.second_copy(&self.redundant[at].0);
            if wanted.is_some_and(|piece| self.content.len_of(&piece, now) > writer.remaining()) {
                break;
            }
            self.redundant.remove(at);
            if let Some(piece) = wanted {
                self.write_piece(now, index, &piece, writer);
                written = true;
            }
        }
        written
    }

    /// At the end of a transfer over a lossy path, or after a probe time-out: what has been on its way
    /// longest leaves again.
    fn write_duplicates(&mut self, now: Time, index: usize, writer: &mut Writer<'_>) -> bool {
        if !self.paths[index].is_lossy() || self.content_waits(now) {
            return false;
        }
        let probes = self.paths[index].probes > 0;
        let mut written = false;
        while let Some(pieces) = self.oldest_outstanding(now, probes, writer.remaining()) {
            for item in pieces.as_slice() {
                if let Item::Piece(piece) = item
                    && let Some(piece) = self.content.still_wanted(piece)
                    && self.content.len_of(&piece, now) <= writer.remaining()
                {
                    self.write_piece(now, index, &piece, writer);
                    written = true;
                }
            }
        }
        written
    }

    /// The items of the outstanding packet that left longest ago, counted as copied now.
    fn oldest_outstanding(&mut self, now: Time, probes: bool, room: usize) -> Option<Items> {
        let content = &self.content;
        let mut best: Option<(Time, &mut super::sent::Sent)> = None;
        for path in &mut self.paths {
            let half = Span::from_nanos(path.rtt.smoothed().as_nanos() / 2);
            for sent in path.sent.outstanding_mut() {
                let (left, copies) = sent.copied.unwrap_or((sent.at, 0));
                let ripe = probes || (copies < COPIES && now.since(left) >= half);
                if !ripe || best.as_ref().is_some_and(|(oldest, _)| *oldest <= left) {
                    continue;
                }
                let fits = |item: &Item| match item {
                    Item::Piece(piece) => content
                        .still_wanted(piece)
                        .is_some_and(|piece| content.len_of(&piece, now) <= room),
                    _ => false,
                };
                if left < now && sent.items.as_slice().iter().any(fits) {
                    best = Some((left, sent));
                }
            }
        }
        let (_, sent) = best?;
        let copies = sent.copied.map_or(0, |(_, copies)| copies);
        sent.copied = Some((now, copies.saturating_add(1)));
        Some(sent.items.copied())
    }

    /// A datagram that finds out whether larger ones pass.
    fn probe_size(&mut self, now: Time, index: usize, buffer: &mut [u8]) -> Option<Transmit> {
        let path = &mut self.paths[index];
        let size = path.size.poll_probe(now)?;
        let ready = path.life.state() == PathState::Active
            && buffer.len() >= size
            && path.life.may_send(size as u64)
            && path.sent.in_flight() + size as u64 <= path.window();
        if !ready {
            return None;
        }
        let addrs = path.addrs;
        let len = self.write_packet_of(now, index, buffer, size, |_, _, writer| {
            Frame::Ping.emit(writer);
            Frame::Padding(writer.remaining()).emit(writer);
            true
        })?;
        self.paths[index].size.on_probe_sent();
        Some(Transmit { addrs, ecn: Ecn::NotEct, len, segment: len })
    }

    fn update_keys(&mut self, now: Time) {
        let least = Span::from_nanos(3 * self.slowest_pto().as_nanos());
        let Some(keys) = &mut self.keys else { return };
        if keys.must_update(now, self.config.key_packets, least) {
            keys.update(now);
            for path in &mut self.paths {
                path.key_from = path.sent.next_number();
            }
        }
    }
}

/// A packet with a challenge and nothing else, bytes.
const SMALL: u64 = 64;
/// Numbers left out are so far apart at most; half of it on average.
const SKIP_SPAN: u16 = 2048;
/// Fills the places of paths that are not in use.
const NOBODY: Candidate =
    Candidate { index: usize::MAX, srtt: Span::MAX, variation: Span::ZERO, window: 0, open: false };

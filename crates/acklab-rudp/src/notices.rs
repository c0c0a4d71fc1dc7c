//! Frames that concern paths and wait to be sent, and the answers to challenges (docs/rudp.md section 6).

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::paths::{PATHS, Paths};
use super::sent::Item;
use crate::wire::{Frame, Writer};

/// Responses that wait at most; more challenges are not answered.
const RESPONSES: usize = 8;
/// A frame that would not leave so many bytes free waits for the next packet.
pub(super) const LEAST_ROOM: usize = 48;

/// What waits.
#[derive(Debug, Default)]
pub(super) struct Notices {
    queue: VecDeque<Item>,
    /// Responses to challenges, with the path that they leave on.
    responses: VecDeque<(u8, [u8; 8])>,
    /// Numbers of PATH_STATUS.
    sequence: u64,
    /// Other addresses of this end.
    announced: Vec<SocketAddr>,
    /// A packet that asks for an answer must leave, whatever it carries.
    ping: bool,
}

impl Notices {
    pub(super) fn push(&mut self, notice: Item) {
        self.queue.push_back(notice);
    }

    /// The peer is to know of these addresses too.
    pub(super) fn announce(&mut self, addresses: &[SocketAddr]) {
        for &address in addresses.iter().take(PATHS.saturating_sub(self.announced.len())) {
            self.push(Item::AddPath(self.announced.len() as u8));
            self.announced.push(address);
        }
    }

    /// A challenge arrived on path `id`.
    pub(super) fn on_challenge(&mut self, id: u8, data: [u8; 8]) {
        if self.responses.len() < RESPONSES {
            self.responses.push_back((id, data));
        }
    }

    /// Something must leave that asks for an answer.
    pub(super) const fn ping(&mut self) {
        self.ping = true;
    }

    /// Whether a packet that asks for an answer must leave.
    pub(super) const fn is_pinging(&self) -> bool {
        self.ping
    }

    /// A packet that asks for an answer was written.
    pub(super) const fn on_eliciting(&mut self) {
        self.ping = false;
    }

    /// Whether a frame waits that may leave on any path.
    pub(super) fn is_waiting(&self) -> bool {
        self.ping || !self.queue.is_empty()
    }

    /// Whether a response waits that leaves on path `id`.
    pub(super) fn responds_on(&self, id: u8) -> bool {
        self.responses.iter().any(|(path, _)| *path == id)
    }

    /// The responses that leave on path `id`; whether any was written.
    pub(super) fn write_responses(&mut self, id: u8, writer: &mut Writer<'_>) -> bool {
        let mut written = false;
        while let Some(at) = self.responses.iter().position(|(path, _)| *path == id)
            && writer.remaining() >= 9
        {
            if let Some((_, data)) = self.responses.remove(at) {
                Frame::PathResponse(data).emit(writer);
                written = true;
            }
        }
        written
    }

    /// What concerns `paths`, with the values of the moment; whether any was written.
    pub(super) fn write(
        &mut self,
        paths: &mut Paths,
        writer: &mut Writer<'_>,
        items: &mut Vec<Item>,
    ) -> bool {
        let mut written = false;
        while writer.remaining() > LEAST_ROOM
            && let Some(notice) = self.queue.pop_front()
        {
            self.sequence += 1;
            let frame = match notice {
                Item::PathStatus(id) => paths.by_id(id).map(|path| Frame::PathStatus {
                    path: id,
                    sequence: self.sequence,
                    status: path.status(),
                }),
                Item::RemovePath(path) => Some(Frame::RemovePath { path, code: 0 }),
                Item::AddPath(id) => {
                    let address = self.announced.get(usize::from(id));
                    address.map(|&address| Frame::AddPath { id, address })
                }
                _ => None,
            };
            if let Some(frame) = frame {
                frame.emit(writer);
                items.push(notice);
                written = true;
            }
        }
        written
    }
}

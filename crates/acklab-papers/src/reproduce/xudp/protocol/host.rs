//! The computer: one process that does one thing at a time.
//!
//! Each packet sent or received takes the same time. What has arrived waits in the UDP socket's buffer,
//! and is lost where that is full. The server reads before it sends.

use std::collections::VecDeque;

use acklab_core::time::{Span, Time};

use super::packet::Packet;

pub(super) struct Host {
    per_packet: Span,
    /// Packets that the socket's buffer holds.
    buffer: usize,
    arrived: VecDeque<Packet>,
    work: Option<(Time, Work)>,
}

/// What the process is at.
pub(super) enum Work {
    /// Reading a packet.
    Receive(Packet),
    Send(Packet),
}

impl Host {
    pub(super) fn new(per_packet: Span, buffer: usize) -> Self {
        Self { per_packet, buffer, arrived: VecDeque::new(), work: None }
    }

    /// A packet came out of the network; false where it was lost.
    pub(super) fn on_arrival(&mut self, packet: Packet) -> bool {
        let room = self.arrived.len() < self.buffer;
        if room {
            self.arrived.push_back(packet);
        }
        room
    }

    /// When something begun now will be done.
    pub(super) fn done(&self, now: Time) -> Time {
        now + self.per_packet
    }

    /// Whether the process is free to begin something.
    pub(super) fn is_free(&self) -> bool {
        self.work.is_none()
    }

    /// Begins to read, if something has arrived.
    pub(super) fn receive(&mut self, now: Time) -> bool {
        let Some(packet) = self.arrived.pop_front() else { return false };
        self.work = Some((self.done(now), Work::Receive(packet)));
        true
    }

    /// Begins to send.
    pub(super) fn send(&mut self, now: Time, packet: Packet) {
        self.work = Some((self.done(now), Work::Send(packet)));
    }

    /// What is done at `now`.
    pub(super) fn take_done(&mut self, now: Time) -> Option<Work> {
        let (_, work) = self.work.take_if(|(done, _)| *done <= now)?;
        Some(work)
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.work.as_ref().map(|(done, _)| *done)
    }
}

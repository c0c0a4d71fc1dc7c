//! The end of a connection (docs/rudp.md section 3, "Close, idle, reset"; RFC 9000 section 10.2).

use super::code::Code;
use super::connection::{Connection, Event, Stage, Transmit};
use crate::wire::{Frame, TEXT_MAX};
use acklab_core::packet::Ecn;
use acklab_core::time::{Span, Time};

/// CLOSE leaves so often at once on each path.
const COPIES: usize = 3;
/// Answers with CLOSE are at least so far apart.
const ANSWER_GAP: Span = Span::from_millis(100);
/// PTOs that an end waits for stragglers.
const WAIT_PTOS: u64 = 3;

/// Waiting for the last packets.
#[derive(Debug)]
pub(super) struct Ending {
    until: Time,
    /// Ours to say; `None` where the peer closed and nothing is sent any more.
    close: Option<(Code, String)>,
    /// Indices of the paths on which CLOSE is to leave.
    owed: Vec<usize>,
    answered_at: Time,
}

impl Ending {
    pub(super) const fn deadline(&self) -> Time {
        self.until
    }
}

impl Connection {
    /// Ends the connection and tells the peer why; what is not delivered yet will not be. `text` is cut
    /// to 80 bytes of printable ASCII.
    pub fn close(&mut self, now: Time, code: Code, text: &str) {
        if matches!(self.stage, Stage::Ending(_) | Stage::Closed) {
            return;
        }
        let text: String =
            text.chars().filter(|c| (' '..='~').contains(c)).take(TEXT_MAX).collect();
        if self.keys.is_none() || matches!(self.stage, Stage::Answering(_)) {
            self.on_ended(code, text, false);
            return;
        }
        self.events.push_back(Event::Closed { code, text: text.clone(), by_peer: false });
        let mut owed = Vec::new();
        for _ in 0..COPIES {
            let heard = |index: &usize| self.paths[*index].life.is_heard();
            owed.extend((0..self.paths.len()).filter(heard));
        }
        if owed.is_empty() {
            owed.extend((0..self.paths.len()).flat_map(|index| [index; COPIES]));
        }
        let until = now + Span::from_nanos(WAIT_PTOS * self.slowest_pto().as_nanos());
        self.stage =
            Stage::Ending(Ending { until, close: Some((code, text)), owed, answered_at: now });
    }

    /// The connection failed or was refused: nothing more is sent.
    pub(super) fn on_ended(&mut self, code: Code, text: String, by_peer: bool) {
        self.events.push_back(Event::Closed { code, text, by_peer });
        self.stage = Stage::Closed;
    }

    /// CLOSE arrived.
    pub(super) fn on_close_frame(&mut self, now: Time, code: u64, text: &[u8]) {
        match &mut self.stage {
            Stage::Ending(ending) => {
                ending.close = None;
                ending.owed.clear();
            }
            Stage::Closed => {}
            _ => {
                let code = Code::from_wire(code).unwrap_or(Code::Protocol);
                let text = String::from_utf8_lossy(text)
                    .chars()
                    .filter(|c| (' '..='~').contains(c))
                    .collect();
                self.events.push_back(Event::Closed { code, text, by_peer: true });
                let until = now + Span::from_nanos(WAIT_PTOS * self.slowest_pto().as_nanos());
                let owed = Vec::new();
                self.stage = Stage::Ending(Ending { until, close: None, owed, answered_at: now });
            }
        }
    }

    /// The peer has not heard our CLOSE: it gets another one.
    pub(super) fn on_packet_while_ending(&mut self, now: Time, index: usize) {
        if let Stage::Ending(ending) = &mut self.stage
            && ending.close.is_some()
            && now.since(ending.answered_at) >= ANSWER_GAP
        {
            ending.answered_at = now;
            ending.owed.push(index);
        }
    }

    /// A datagram with CLOSE, if one is owed.
    pub(super) fn transmit_close(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let Stage::Ending(ending) = &mut self.stage else { return None };
        let index = ending.owed.pop()?;
        let (code, text) = ending.close.clone()?;
        let addrs = self.paths.get(index)?.addrs;
        let len = self.write_packet(now, index, buffer, |_, _, writer| {
            Frame::Close { code: code as u64, text: text.as_bytes() }.emit(writer);
            false
        })?;
        Some(Transmit { addrs, ecn: Ecn::NotEct, len, segment: len })
    }
}

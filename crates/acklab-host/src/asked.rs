//! Requests for ACKs on their way: what a packet carries of them, and what the kernel's own rule for ACKs makes of one, an
//! ACK for so many segments in place of two.

use acklab_core::segment::AckRequest;
use acklab_tcp::{AckRequests, Requests};

use crate::asking::{REQUEST, add_request};
use crate::segment::{Segment, TcpOption};
use crate::tcp::{CaState, Tcp};

impl Tcp {
    /// A SYN offers it, or a SYN-ACK agrees.
    pub(crate) fn announce_requests(&self, options: &mut Vec<TcpOption>, answering: bool) {
        let Some(asking) = &self.ack.asking else { return };
        let by = if answering { asking.agreed() } else { asking.by };
        if let Some(request) = by.announcement() {
            add_request(options, request);
        }
    }

    /// What the peer's SYN, or SYN-ACK, leaves of it.
    pub(crate) fn agree_on_requests(&mut self, syn: &Segment) {
        if let Some(asking) = &mut self.ack.asking {
            let same = syn.ack_request() == asking.by.announcement();
            asking.ours = same.then(|| Requests::new(asking.by));
        }
    }

    /// A segment with data may say how often the peer wants ACKs.
    pub(crate) fn hear_request(&mut self, segment: &Segment) {
        let Some(asking) = &mut self.ack.asking else { return };
        match (asking.agreed(), segment.ack_request()) {
            (AckRequests::Tarr, Some(AckRequest::Tarr(0))) => self.ack.now = true,
            (AckRequests::Tarr, Some(AckRequest::Tarr(segments)))
            | (AckRequests::AckCc, Some(AckRequest::AckCc(segments))) => {
                asking.theirs = Some(segments.max(1));
            }
            _ => {}
        }
    }

    /// Segments per ACK that the peer asked for, of which a window of `window` bytes leaves two ACKs at least.
    pub(crate) fn asked_of_us(&self, window: u32) -> Option<u32> {
        let asked = self.ack.asking.as_ref()?.theirs?;
        let most = (window / self.terms.advmss.saturating_mul(2).max(1)).max(1);
        Some(most.min(asked.into()))
    }

    /// Whether the next packet of `mss` bytes carries a request, for which it has room.
    pub(crate) fn asks_now(&self, mss: u32) -> bool {
        let Some(asking) = &self.ack.asking else { return false };
        let header = self.terms.header + self.snd.mss.saturating_sub(mss);
        header + REQUEST <= 60
            && mss >= 2 * LEAST
            && asking.ours.as_ref().is_some_and(Requests::is_due)
    }

    /// Puts the request on a packet that has room for it.
    pub(crate) fn add_own_request(&mut self, segment: &mut Segment) {
        let end = self.offset_of(segment.end());
        let Some(requests) = self.ack.asking.as_mut().and_then(|asking| asking.ours.as_mut())
        else {
            return;
        };
        if let Some(request) = requests.take(end) {
            add_request(&mut segment.options, request);
        }
    }

    /// An ACK moved on by `bytes` after a state of `before`: what is wanted of the peer may change.
    pub(crate) fn follow_requests(&mut self, bytes: u32, before: CaState) {
        if self.ack.asking.is_none() || bytes == 0 {
            return;
        }
        // What fills a gap covers more than the segments that the peer held back.
        let open = |state: CaState| matches!(state, CaState::Open | CaState::Cwr);
        let is_clean = open(before) && open(self.rec.ca);
        let acked = if is_clean { bytes.div_ceil(self.snd.mss.max(1)) } else { 0 };
        let (una, nxt) = (self.offset_of(self.snd.una), self.offset_of(self.snd.nxt));
        let window = self.window.cwnd.into();
        if let Some(requests) = self.ack.asking.as_mut().and_then(|asking| asking.ours.as_mut()) {
            requests.on_ack(una, nxt, acked.into(), window);
        }
    }

    /// Something was lost, perhaps the packet with the last request.
    pub(crate) fn doubt_request(&mut self) {
        if let Some(requests) = self.ack.asking.as_mut().and_then(|asking| asking.ours.as_mut()) {
            requests.on_loss();
        }
    }

    /// How far a number that is out, or next, lies behind the first one.
    fn offset_of(&self, seq: u32) -> u64 {
        self.count.bytes_acked + u64::from(seq.wrapping_sub(self.snd.una))
    }
}

/// Linux's `TCP_MIN_SND_MSS`: a packet of twice that still carries data beside a request.
const LEAST: u32 = 48;

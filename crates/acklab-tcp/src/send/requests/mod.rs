//! How often the peer is to acknowledge, as this end wants it: one rule, one file. A rule says after each ACK with news what
//! it wants; here it is said, on a segment with data, when it differs enough, once a round trip at most, and again where
//! the segment that said it may be lost.

mod ack_cc;
mod rule;
mod tarr;

use crate::ack_requests::AckRequests;
use ack_cc::AckCc;
use acklab_core::segment::AckRequest;
use rule::{Heard, Rule};
use tarr::Tarr;

/// What is asked of the peer.
#[derive(Debug)]
pub struct Requests {
    by: AckRequests,
    rule: Option<Box<dyn Rule + Send>>,
    wanted: u8,
    /// What was asked last; `None` where the peer may not know it.
    asked: Option<u8>,
    /// The most that it may have in mind since the request before.
    most: u8,
    /// Where the segment with the last request ends, until it is acknowledged.
    place: Option<u64>,
    /// Where the present window of data ends.
    window_end: u64,
}

/// A copy is of a connection that has not begun.
impl Clone for Requests {
    fn clone(&self) -> Self {
        Self::new(self.by)
    }
}

impl Requests {
    /// The peer understands these.
    pub fn new(by: AckRequests) -> Self {
        let rule: Option<Box<dyn Rule + Send>> = match by {
            AckRequests::Off => None,
            AckRequests::Tarr => Some(Box::new(Tarr)),
            AckRequests::AckCc => Some(Box::new(AckCc::default())),
        };
        let (wanted, asked) = (DEFAULT, Some(DEFAULT));
        Self { by, rule, wanted, asked, most: DEFAULT, place: None, window_end: 0 }
    }

    /// An ACK brought news: everything below `una` is acknowledged, [una, nxt) is out; `acked` and `window` in full
    /// segments.
    pub fn on_ack(&mut self, una: u64, nxt: u64, acked: u64, window: u64) {
        let Some(rule) = &mut self.rule else { return };
        if self.place.is_some_and(|place| place <= una) {
            self.place = None;
            self.most = self.asked.unwrap_or(self.most);
        }
        let new_window = una >= self.window_end;
        if new_window {
            self.window_end = nxt;
        }
        let most = self.most.max(self.asked.unwrap_or(DEFAULT));
        self.wanted = rule.wants(&Heard { window, acked, new_window, asked: most });
    }

    /// Something was lost, perhaps the segment with the last request.
    pub fn on_loss(&mut self) {
        if self.place.take().is_some() {
            self.asked = None;
        }
    }

    /// Whether a request is to leave with the next segment that has room for it.
    pub fn is_due(&self) -> bool {
        let Some(rule) = &self.rule else { return false };
        self.place.is_none()
            && self.asked.is_none_or(|asked| rule.is_worthwhile(asked, self.wanted))
    }

    /// The request, on a segment that ends at `end`.
    pub fn take(&mut self, end: u64) -> Option<AckRequest> {
        self.most = self.most.max(self.wanted);
        (self.asked, self.place) = (Some(self.wanted), Some(end));
        self.by.request(self.wanted)
    }
}

/// Segments per ACK before anything was asked: RFC 9293 section 3.8.6.3.
const DEFAULT: u8 = 2;

//! The two halves of the path, seen from the capture point.
//!
//! A capture in the middle splits the round trip: *near* is from the capture point to the data's
//! receiver and back, *far* to the data's sender and back. An ACK delay seen at the capture point is
//! the receiver's own delay plus near; the gap from an ACK to the data that it lets go is far plus
//! the sender's reaction. The handshake gives both (SYN to SYN-ACK, SYN-ACK to ACK); the fastest
//! acknowledgment ever seen bounds them from above.

use acklab_core::time::Span;

use crate::flow::DirectionFacts;
use crate::flow::facts::CapturePoint;

/// The round trip of each half of the path of one direction, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RoundTrips {
    /// Capture point to receiver and back.
    pub(crate) near_ms: Option<f64>,
    /// Capture point to sender and back; without the handshake an upper bound.
    pub(crate) far_ms: Option<f64>,
    /// The handshake was captured, so that both are round trips and not delayed ACKs.
    pub(crate) handshake: bool,
    /// The data itself was put back by the echoes of what acknowledged it.
    pub(crate) unseen_data: bool,
    /// How exactly the times of ACKs are known.
    pub(crate) grain_ms: f64,
}

/// Without the handshake, the fastest ACK counts as a round trip only if the usual one takes longer
/// than it by this share: else all may have waited for the same timer. If the fastest is no length
/// that a timer has, it is enough that some take so much longer.
const SLOWER_SHARE: f64 = 0.25;
/// Where the common delayed-ACK timers lie: 40 and 50, 100, 200 ms (see [`super::receiver`]).
const TIMERS_MS: [(f64, f64); 3] = [(34.0, 54.0), (95.0, 112.0), (190.0, 216.0)];
/// ACKs that were put back by their echoes are known to a tick of their host's clock.
const ECHO_MS: f64 = 1.0;
/// An acknowledgment this fast cannot have waited for any delayed-ACK timer in use (the shortest is
/// a tick of 10 ms).
const PROMPT_MS: f64 = 8.0;

impl RoundTrips {
    pub(crate) fn of(facts: &DirectionFacts, opposite: &DirectionFacts) -> Self {
        let handshake = facts.stream.offer.is_some() && opposite.stream.offer.is_some();
        let near = facts.rtt.and_then(|r| r.to_receiver_min).map(Span::as_millis_f64);
        let usual = facts.ack_delay.as_ref().map_or(0.0, |d| d.p50.as_millis_f64());
        let slow = facts.ack_delay.as_ref().map_or(0.0, |d| d.p95.as_millis_f64());
        let known = |ms: &f64| {
            let share = *ms * SLOWER_SHARE;
            let like_a_timer = TIMERS_MS.iter().any(|(low, high)| (*low..=*high).contains(ms));
            handshake || *ms < PROMPT_MS || usual > share || (slow > share && !like_a_timer)
        };
        let far = facts.rtt.and_then(|r| r.to_sender_min).map(Span::as_millis_f64);
        let local = |at: CapturePoint| {
            facts.vantage.point == at || facts.vantage.point == CapturePoint::Loopback
        };
        Self {
            near_ms: near.filter(known).or_else(|| local(CapturePoint::Receiver).then_some(0.0)),
            far_ms: far.or_else(|| local(CapturePoint::Sender).then_some(0.0)),
            handshake,
            unseen_data: opposite.packets.inferred > 0,
            grain_ms: if facts.packets.inferred + opposite.packets.inferred > 0 {
                ECHO_MS
            } else {
                0.0
            },
        }
    }
}

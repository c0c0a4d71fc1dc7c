//! Delivery-rate samples (draft-ietf-ccwg-bbr section 4.1, draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Each packet that leaves remembers how much had been delivered by then, and when. The ACK that
//! delivers it compares: the bytes delivered in between, over the longer of the time in which they were
//! sent and the time in which their ACKs came, are a rate that the path can carry. An interval shorter
//! than the least round trip gives no sample. A sample is app-limited where the application left the
//! path idle before the packet left.
//!
//! What was sent and where its stamp is kept is the transport's business: TCP keeps stamps by place in
//! the stream, reliable UDP by packet number.

use crate::cc::RateSample;
use crate::time::{Span, Time};

/// What a packet remembers of its latest departure.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    sent: Time,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    app_limited: bool,
    in_flight: u64,
    lost: u64,
}

/// The state of one path.
#[derive(Debug)]
pub struct Estimator {
    delivered: u64,
    delivered_at: Time,
    /// When the first packet of the present sampling interval left.
    first_sent: Time,
    lost: u64,
    /// Packets are app-limited until so much is delivered.
    app_limited_until: u64,
    least_rtt: Option<Span>,
    /// The stamp of the newest packet that the present ACK delivers.
    newest: Option<Stamp>,
}

impl Estimator {
    /// Before the first packet.
    pub const fn new(now: Time) -> Self {
        Self {
            delivered: 0,
            delivered_at: now,
            first_sent: now,
            lost: 0,
            app_limited_until: 0,
            least_rtt: None,
            newest: None,
        }
    }

    /// `bytes` leave; `pipe` bytes were on the way before them.
    pub fn on_sent(&mut self, now: Time, bytes: u64, pipe: u64) -> Stamp {
        if pipe == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        Stamp {
            sent: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited_until > 0,
            in_flight: pipe + bytes,
            lost: self.lost,
        }
    }

    /// A packet is delivered: the one sent last, by what was delivered before, makes the sample.
    pub fn on_delivered(&mut self, stamp: Stamp) {
        let key = |stamp: Stamp| (stamp.delivered, stamp.sent);
        if self.newest.is_none_or(|newest| key(stamp) >= key(newest)) {
            self.newest = Some(stamp);
        }
    }

    /// The sample of an ACK that delivered and lost so many bytes.
    pub fn sample(
        &mut self,
        now: Time,
        (delivered, lost): (u64, u64),
        rtt: Option<Span>,
    ) -> Option<RateSample> {
        self.lost += lost;
        self.least_rtt = self.least_rtt.into_iter().chain(rtt).min();
        if delivered > 0 {
            self.delivered += delivered;
            self.delivered_at = now;
        }
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let stamp = self.newest.take()?;
        self.first_sent = stamp.sent;
        let sending = stamp.sent.since(stamp.first_sent);
        let interval = sending.max(now.since(stamp.delivered_at));
        if interval.is_zero() || self.least_rtt.is_some_and(|least| interval < least) {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered - stamp.delivered,
            interval,
            prior_delivered: stamp.delivered,
            total_delivered: self.delivered,
            app_limited: stamp.app_limited,
            tx_in_flight: stamp.in_flight,
            lost: self.lost - stamp.lost,
        })
    }

    /// A time-out inferred the loss of `bytes`.
    pub const fn on_lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Nothing waits though the window is open, with `pipe` bytes on the way.
    pub fn on_app_limited(&mut self, pipe: u64) {
        self.app_limited_until = (self.delivered + pipe).max(1);
    }
}

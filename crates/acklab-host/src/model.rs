//! A congestion control of the simulations behind the host's window: it counts bytes and owns its window, the host
//! counts packets. Here, and nowhere else, one becomes the other.
//!
//! The host detects loss, reduces proportionally (RFC 6937) to the window that the algorithm answered with, and grows
//! nothing by itself. An algorithm that paces owns its window in recovery, too, as `cong_control` of Linux does. What
//! was reduced needlessly stays reduced: these algorithms have no way back.

use acklab_core::cc::{
    AckSample, Algorithm, CongestionControl, Controller, EcnSample, LossSample, RateSample,
    ReturnedSample, RtoSample, SentSample, Start,
};
use acklab_core::packet::Ecn;
use acklab_core::time::{Span, Time};

use crate::segment::ecn as mark;
use crate::settings::INFINITE_SSTHRESH;
use crate::settings::Us;

/// The algorithm of one connection.
#[derive(Debug)]
pub struct Model {
    algorithm: Algorithm,
    /// It wants to hear of each mark.
    each_mark: bool,
    /// Of its coins.
    seed: u64,
    /// Payload of a full packet when data began to flow: what a packet counts in bytes.
    mss: u32,
    /// From then on.
    control: Option<Controller>,
    /// Round trip that the present ACK tells.
    rtt: Option<Us>,
    /// A reduction was under way at the last ACK.
    reducing: bool,
    /// When its pacing last kept data back.
    held_at: Option<Us>,
}

/// A copy is of a connection that has not begun.
impl Clone for Model {
    fn clone(&self) -> Self {
        Self::new(self.algorithm.clone(), self.seed)
    }
}

/// What an ACK told, in packets.
#[derive(Clone, Copy, Debug)]
pub struct News {
    /// Now.
    pub now: Us,
    /// Bytes acknowledged cumulatively.
    pub bytes: u32,
    /// Delivered, and taken for lost.
    pub delivered: u32,
    /// See above.
    pub lost: u32,
    /// It echoed a mark.
    pub ece: bool,
    /// Packets that were out before it.
    pub flight: u32,
    /// Smoothed round trip; 0: none.
    pub srtt: Us,
    /// The window was the limit.
    pub limited: bool,
    /// The window is being reduced.
    pub reducing: bool,
    /// Rate of the packet sent last that it delivers.
    pub rate: Option<Rate>,
}

/// A sample of the delivery rate, in packets.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Delivered over `interval`.
    pub delivered: u32,
    /// The longer of the send and the ACK phase.
    pub interval: Us,
    /// Delivered in all when the packet left.
    pub prior: u32,
    /// Delivered in all now.
    pub total: u32,
    /// The application limited the sending then.
    pub app_limited: bool,
    /// On the way with it.
    pub in_flight: u32,
    /// Taken for lost since.
    pub lost: u32,
}

/// Why the window falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Loss was found; the ACK echoed a mark.
    Loss {
        /// See above.
        ece: bool,
    },
    /// A mark was echoed.
    Mark,
    /// The retransmission timer expired.
    Timeout {
        /// Not the first time for this packet.
        again: bool,
    },
}

impl Model {
    /// For a connection that has not begun; its coins are those under `seed`.
    pub fn new(algorithm: Algorithm, seed: u64) -> Self {
        let each_mark = algorithm.needs_marks();
        Self {
            algorithm,
            each_mark,
            seed,
            mss: 1,
            control: None,
            rtt: None,
            reducing: false,
            held_at: None,
        }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.algorithm.name()
    }

    pub(crate) const fn hears_each_mark(&self) -> bool {
        self.each_mark
    }

    /// The ECN field of new data.
    pub(crate) fn codepoint(&self) -> u8 {
        match self.control.as_ref().map(CongestionControl::codepoint) {
            Some(Ecn::Ect1) => mark::ECT1,
            _ => mark::ECT0,
        }
    }

    /// Data begins to flow, in packets of `mss` bytes, with a window of so many and a threshold.
    pub(crate) fn begin(&mut self, mss: u32, cwnd: u32, ssthresh: u32) {
        self.mss = mss.max(1);
        let initial_ssthresh =
            if ssthresh == INFINITE_SSTHRESH { u64::MAX } else { self.bytes(ssthresh) };
        let start = Start {
            mss: self.mss,
            initial_window: self.bytes(cwnd),
            initial_ssthresh,
            seed: self.seed,
        };
        self.control = Some(self.algorithm.controller(&start));
    }

    /// `bytes` leave, with so many packets out after them.
    pub(crate) fn on_sent(&mut self, now: Us, bytes: u32, flight: u32, retransmission: bool) {
        let in_flight = self.bytes(flight);
        if let Some(control) = &mut self.control {
            control.on_sent(time(now), &SentSample { bytes, in_flight, retransmission });
        }
    }

    /// The round trip that an ACK tells, before the rest of it.
    pub(crate) const fn on_rtt(&mut self, rtt: Option<Us>) {
        self.rtt = rtt;
    }

    /// An ACK brought news.
    pub(crate) fn on_ack(&mut self, news: &News) {
        let sample = self.sample(news);
        let recovered = std::mem::replace(&mut self.reducing, news.reducing) && !news.reducing;
        let Some(control) = &mut self.control else { return };
        if recovered {
            control.on_recovered(time(news.now));
        }
        control.on_ack(time(news.now), &sample);
    }

    /// Its pacing keeps data back, so that what limits the sending is the algorithm's though the window is not full.
    pub(crate) const fn on_held(&mut self, now: Us) {
        self.held_at = Some(now);
    }

    fn sample(&mut self, news: &News) -> AckSample {
        let held = self.held_at.is_some_and(|at| news.now - at <= news.srtt);
        AckSample {
            acked: u64::from(news.bytes),
            delivered: self.bytes(news.delivered),
            lost: self.bytes(news.lost),
            ece: news.ece,
            marked: if news.ece { self.bytes(news.delivered) } else { 0 },
            rate: news.rate.filter(|_| self.wants_rate()).map(|rate| self.rate_of(&rate)),
            in_flight: self.bytes(news.flight),
            rtt: self.rtt.take().map(Span::from_micros),
            srtt: (news.srtt > 0).then(|| Span::from_micros(news.srtt)),
            cwnd_limited: news.limited || held,
            in_fast_recovery: news.reducing,
        }
    }

    fn rate_of(&self, rate: &Rate) -> RateSample {
        RateSample {
            delivered: self.bytes(rate.delivered),
            interval: Span::from_micros(rate.interval),
            prior_delivered: self.bytes(rate.prior),
            total_delivered: self.bytes(rate.total),
            app_limited: rate.app_limited,
            tx_in_flight: self.bytes(rate.in_flight),
            lost: self.bytes(rate.lost),
        }
    }

    /// The window falls, with `flight` packets out: the threshold that it falls to.
    pub(crate) fn cut(&mut self, now: Us, flight: u32, cut: Cut) -> u32 {
        let (now, in_flight, recovering) = (time(now), self.bytes(flight), self.reducing);
        let Some(control) = &mut self.control else { return INFINITE_SSTHRESH };
        match cut {
            Cut::Loss { ece } => control.on_loss(now, &LossSample { in_flight, ece }),
            Cut::Mark => control.on_ecn(now, &EcnSample { in_flight }),
            Cut::Timeout { again } => {
                control.on_rto(now, &RtoSample { in_flight, again, recovering });
                let threshold = control.snapshot().ssthresh;
                return self.packets(threshold).max(2);
            }
        }
        self.reducing = true;
        self.cwnd()
    }

    /// A packet came back, so often now, with `flight` packets out: how long it waits.
    pub(crate) fn on_returned(&mut self, now: Us, flight: u32, times: u32, srtt: Us) -> Us {
        let in_flight = self.bytes(flight);
        let srtt = (srtt > 0).then(|| Span::from_micros(srtt));
        let sample = ReturnedSample { in_flight, times, srtt };
        self.control
            .as_mut()
            .map_or(0, |control| control.on_returned(time(now), &sample).as_nanos().div_ceil(1000))
    }

    /// Nothing was sent for longer than the time-out.
    pub(crate) fn on_idle(&mut self, now: Us) {
        if let Some(control) = &mut self.control {
            control.on_idle(time(now));
        }
    }

    /// Congestion window, packets.
    pub(crate) fn cwnd(&self) -> u32 {
        self.control.as_ref().map_or(1, |control| self.packets(control.cwnd()).max(1))
    }

    /// Slow-start threshold, packets.
    pub(crate) fn threshold(&self) -> u32 {
        self.control
            .as_ref()
            .map_or(INFINITE_SSTHRESH, |control| self.packets(control.snapshot().ssthresh))
    }

    /// Rate at which it paces, bytes a second.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        Some(self.control.as_ref()?.pacing_rate()?.as_bps() / 8)
    }

    fn wants_rate(&self) -> bool {
        self.control.as_ref().is_some_and(CongestionControl::wants_rate)
    }

    fn bytes(&self, packets: u32) -> u64 {
        u64::from(packets) * u64::from(self.mss)
    }

    fn packets(&self, bytes: u64) -> u32 {
        let packets = bytes / u64::from(self.mss);
        packets.min(u64::from(INFINITE_SSTHRESH)) as u32
    }
}

const fn time(us: Us) -> Time {
    Time::from_nanos(us * 1000)
}

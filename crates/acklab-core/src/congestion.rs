//! Congestion control as a transport uses it, one for each path: the algorithm and what stands around it.
//!
//! TCP and reliable UDP drive the same [`Congestion`]. It samples the delivery rate, spaces departures,
//! remembers whether the window was the limit, and puts together the one [`AckSample`] that the algorithm
//! gets of an ACK. Which bytes leave, what was lost and how much is on the way is the transport's
//! business; a byte weighs what the transport says (RFC 9002 counts bytes, Linux full segments).
//!
//! ```
//! use acklab_core::cc::{Algorithm, Start};
//! use acklab_core::congestion::{Acked, Congestion, Departure};
//! use acklab_core::time::{Span, Time};
//!
//! let start = Start { mss: 1000, initial_window: 2000, initial_ssthresh: u64::MAX, seed: 0 };
//! let mut now = Time::ZERO;
//! let mut congestion = Congestion::new(now, Algorithm::Reno.controller(&start));
//! // Two packets fill the window.
//! for in_flight in [0, 1000] {
//!     assert!(congestion.has_room(in_flight, 1000) && congestion.pace_at(now).is_none());
//!     let _stamp = congestion.stamp(now, 1000, in_flight);
//!     congestion.on_sent(now, &Departure::new(1000, in_flight + 1000));
//! }
//! assert!(!congestion.has_room(2000, 1000));
//! congestion.on_held(now);
//! // A round trip later the first is acknowledged: in slow start the window grows by it.
//! now += Span::from_millis(20);
//! let rtt = Some(Span::from_millis(20));
//! congestion.on_ack(now, &Acked { in_flight: 2000, rtt, srtt: rtt, ..Acked::of(1000) });
//! assert_eq!(congestion.cwnd(), 3000);
//! ```

use std::ops::Range;

use crate::cc::{
    AckSample, CongestionControl, Controller, CoupledSample, EcnFeedback, EcnSample, LossSample,
    ReturnedSample, RtoSample, SentSample, Snapshot, UNKNOWN_RTT,
};
use crate::delivery_rate::{Estimator, Stamp};
use crate::pacing::{Pacer, quantum};
use crate::packet::Ecn;
use crate::time::{Span, Time};
use crate::units::BitRate;

/// A packet with payload leaves.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// What is paced, bytes.
    pub bytes: u32,
    /// What it weighs in the window, bytes.
    pub weight: u32,
    /// A full packet, bytes.
    pub mss: u32,
    /// On the way with it, as the window weighs it, bytes.
    pub in_flight: u64,
    /// Its content left before.
    pub retransmission: bool,
}

impl Departure {
    /// A full packet of new content that weighs its bytes, with `in_flight` bytes on the way after it.
    pub const fn new(bytes: u32, in_flight: u64) -> Self {
        Self { bytes, weight: bytes, mss: bytes, in_flight, retransmission: false }
    }
}

/// What an ACK says, as the transport understands it: [`AckSample`] but for what [`Congestion`] knows.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// [`AckSample::acked`].
    pub acked: u64,
    /// [`AckSample::delivered`].
    pub delivered: u64,
    /// [`AckSample::lost`].
    pub lost: u64,
    /// [`AckSample::ece`].
    pub ece: bool,
    /// [`AckSample::marked`].
    pub marked: u64,
    /// [`AckSample::in_flight`].
    pub in_flight: u64,
    /// [`AckSample::rtt`].
    pub rtt: Option<Span>,
    /// [`AckSample::srtt`].
    pub srtt: Option<Span>,
    /// [`AckSample::in_fast_recovery`].
    pub in_fast_recovery: bool,
    /// It ends fast recovery.
    pub recovered: bool,
}

impl Acked {
    /// So many bytes arrived in order, and nothing is known beyond that.
    pub const fn of(bytes: u64) -> Self {
        Self {
            acked: bytes,
            delivered: bytes,
            lost: 0,
            ece: false,
            marked: 0,
            in_flight: bytes,
            rtt: None,
            srtt: None,
            in_fast_recovery: false,
            recovered: false,
        }
    }
}

/// The congestion control of one path.
#[derive(Debug)]
pub struct Congestion<C = Controller> {
    control: C,
    /// Only for a control that asks for it.
    rate: Option<Estimator>,
    pacer: Pacer,
    usage: Usage,
    /// When window or pacing last held something back.
    held_at: Option<Time>,
}

impl<C: CongestionControl> Congestion<C> {
    /// For a path that begins at `now`.
    pub fn new(now: Time, control: C) -> Self {
        let rate = control.wants_rate().then(|| Estimator::new(now));
        Self { control, rate, pacer: Pacer::default(), usage: Usage::default(), held_at: None }
    }

    /// Begins anew with a fresh `control` of the same algorithm, for the path may lead elsewhere now.
    /// What left before keeps its stamps.
    pub fn restart(&mut self, control: C) {
        self.control = control;
        self.pacer = Pacer::default();
    }

    /// The algorithm.
    pub const fn control(&self) -> &C {
        &self.control
    }

    /// Congestion window, bytes.
    pub fn cwnd(&self) -> u64 {
        self.control.cwnd()
    }

    /// Whether the window lets `weight` bytes leave while `pipe` are on the way. One packet always may.
    pub fn has_room(&self, pipe: u64, weight: u64) -> bool {
        pipe + weight <= self.control.cwnd().max(weight)
    }

    /// When pacing lets the next packet leave, if that is after `now`.
    pub fn pace_at(&self, now: Time) -> Option<Time> {
        let next = self.pacer.next();
        (next > now && self.control.pacing_rate().is_some()).then_some(next)
    }

    /// The rate at which packets leave, if the algorithm has one.
    pub fn pacing_rate(&self) -> Option<BitRate> {
        self.control.pacing_rate()
    }

    /// How many bytes may leave at once without a burst; a full packet has `mss`.
    pub fn quantum(&self, mss: u32) -> Option<u64> {
        self.control.pacing_rate().map(|rate| quantum(rate, mss))
    }

    /// How marks are to reach the algorithm.
    pub fn ecn_feedback(&self) -> EcnFeedback {
        self.control.ecn_feedback()
    }

    /// With which mark packets say that they understand ECN.
    pub fn codepoint(&self) -> Ecn {
        self.control.codepoint()
    }

    /// Whether the algorithm should hear of each packet.
    pub fn wants_each_ack(&self) -> bool {
        self.control.wants_each_ack()
    }

    /// Whether departures need a [`Stamp`].
    pub const fn wants_stamps(&self) -> bool {
        self.rate.is_some()
    }

    /// State for reports.
    pub fn snapshot(&self) -> Snapshot {
        self.control.snapshot()
    }

    /// `weight` bytes leave while `pipe` are on the way: what [`Self::on_delivered`] will want to know,
    /// if the algorithm asks for the delivery rate.
    pub fn stamp(&mut self, now: Time, weight: u64, pipe: u64) -> Option<Stamp> {
        self.rate.as_mut().map(|rate| rate.on_sent(now, weight, pipe))
    }

    /// A packet with payload left.
    pub fn on_sent(&mut self, now: Time, departure: &Departure) {
        let Departure { bytes, weight, mss, in_flight, retransmission } = *departure;
        if let Some(rate) = self.control.pacing_rate() {
            self.pacer.on_sent(now, bytes, rate, mss);
        }
        self.control.on_sent(now, &SentSample { bytes: weight, in_flight, retransmission });
    }

    /// Window or pacing holds something back.
    pub const fn on_held(&mut self, now: Time) {
        self.held_at = Some(now);
    }

    /// Nothing more leaves for now, with `flight` bytes on the way in `data`, the window of data by its
    /// offsets; `limited`: because the window is full.
    pub const fn on_pass(&mut self, limited: bool, flight: u64, data: &Range<u64>) {
        self.usage.note(limited, flight, data);
    }

    /// Nothing waits though the window is open, with `pipe` bytes on the way.
    pub fn on_app_limited(&mut self, pipe: u64) {
        if let Some(rate) = &mut self.rate {
            rate.on_app_limited(pipe);
        }
    }

    /// A packet arrived: before [`Self::on_ack`] of the ACK that says so.
    pub fn on_delivered(&mut self, stamp: Stamp) {
        if let Some(rate) = &mut self.rate {
            rate.on_delivered(stamp);
        }
    }

    /// An ACK brought news.
    pub fn on_ack(&mut self, now: Time, news: &Acked) {
        let Acked {
            acked,
            delivered,
            lost,
            ece,
            marked,
            in_flight,
            rtt,
            srtt,
            in_fast_recovery,
            ..
        } = *news;
        let held = |at| now.since(at) <= srtt.unwrap_or(UNKNOWN_RTT);
        let cwnd_limited =
            self.usage.is_limited(self.control.snapshot()) || self.held_at.is_some_and(held);
        if news.recovered {
            self.control.on_recovered(now);
        }
        let rate = self.rate.as_mut().and_then(|rate| rate.sample(now, (delivered, lost), rtt));
        let sample = AckSample {
            acked,
            delivered,
            lost,
            ece,
            marked,
            rate,
            in_flight,
            rtt,
            srtt,
            cwnd_limited,
            in_fast_recovery,
        };
        self.control.on_ack(now, &sample);
    }

    /// Loss was inferred: once per recovery.
    pub fn on_loss(&mut self, now: Time, sample: &LossSample) {
        self.control.on_loss(now, sample);
    }

    /// Congestion was echoed: once per window.
    pub fn on_ecn(&mut self, now: Time, in_flight: u64) {
        self.control.on_ecn(now, &EcnSample { in_flight });
    }

    /// The retransmission timer expired, and `lost` bytes are taken for lost.
    pub fn on_rto(&mut self, now: Time, sample: &RtoSample, lost: u64) {
        if let Some(rate) = &mut self.rate {
            rate.on_lost(lost);
        }
        self.control.on_rto(now, sample);
    }

    /// What it is of a connection of several paths has changed.
    pub fn on_coupled(&mut self, sample: &CoupledSample) {
        self.control.on_coupled(sample);
    }

    /// Nothing was sent for longer than the retransmission time-out.
    pub fn on_idle(&mut self, now: Time) {
        self.control.on_idle(now);
    }

    /// From now on the algorithm's coins are those under `seed`.
    pub fn reseed(&mut self, seed: u64) {
        self.control.reseed(seed);
    }

    /// A segment came back; how long it waits.
    pub fn on_returned(&mut self, now: Time, sample: &ReturnedSample) -> Span {
        self.control.on_returned(now, sample)
    }
}

/// How far the present window of data used the congestion window, as in Linux (`tcp_cwnd_validate`): the
/// ACKs of a flight that filled the window find it full, though ever less is on its way as they come. In
/// slow start half a window in use is enough, since it doubles (RFC 7661 section 4.1).
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// It kept something back, or was full.
    limited: bool,
    /// The largest flight, bytes.
    most: u64,
    /// Where the window of data ends that this is about.
    until: u64,
}

impl Usage {
    const fn note(&mut self, limited: bool, flight: u64, data: &Range<u64>) {
        if limited || data.start >= self.until || (!self.limited && flight > self.most) {
            *self = Self { limited, most: flight, until: data.end };
        }
    }

    const fn is_limited(&self, state: Snapshot) -> bool {
        self.limited || (state.cwnd < state.ssthresh && state.cwnd < self.most.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{Algorithm, Start};

    const MSS: u32 = 1000;
    const RTT: Option<Span> = Some(Span::from_millis(20));

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn congestion(algorithm: &str, initial_ssthresh: u64) -> Congestion {
        let start = Start { mss: MSS, initial_window: 10_000, initial_ssthresh, seed: 0 };
        let algorithm: Algorithm = algorithm.parse().unwrap();
        Congestion::new(Time::ZERO, algorithm.controller(&start))
    }

    /// Whether an ACK at `millis` opens the window of Reno in slow start.
    fn opens(congestion: &mut Congestion, millis: u64) -> bool {
        let before = congestion.cwnd();
        congestion.on_ack(at(millis), &Acked { srtt: RTT, ..Acked::of(1000) });
        congestion.cwnd() > before
    }

    #[test]
    fn a_window_that_held_something_back_may_grow_for_a_round_trip() {
        let mut congestion = congestion("reno", u64::MAX);
        assert!(!opens(&mut congestion, 0));
        congestion.on_held(at(5));
        assert!(opens(&mut congestion, 25));
        assert!(!opens(&mut congestion, 26));
    }

    #[test]
    fn a_window_of_data_that_filled_the_window_lets_it_grow_until_all_of_it_is_acknowledged() {
        let mut congestion = congestion("reno", 0);
        congestion.on_pass(true, 10_000, &(0..10_000));
        // Ever less is on its way, and what was noted stands.
        congestion.on_pass(false, 4000, &(6000..10_000));
        assert!((0..10).any(|ms| opens(&mut congestion, ms)));
        congestion.on_pass(false, 4000, &(10_000..14_000));
        assert!((10..40).all(|ms| !opens(&mut congestion, ms)));
    }

    #[test]
    fn half_a_window_in_use_is_enough_in_slow_start() {
        for (flight, enough) in [(5000, false), (5001, true)] {
            let mut congestion = congestion("reno", u64::MAX);
            congestion.on_pass(false, flight, &(0..flight));
            assert_eq!(opens(&mut congestion, 0), enough, "{flight}");
        }
    }

    #[test]
    fn a_window_that_the_application_does_not_fill_does_not_grow_whatever_the_algorithm() {
        for name in Algorithm::NAMES {
            let mut congestion = congestion(name, u64::MAX);
            // Two packets a round trip, for as long as a window that grows by them takes to 40 MB.
            for round in 0..20_000 {
                let now = at(20 * round);
                let stamps = [0, 1000].map(|pipe| {
                    let stamp = congestion.stamp(now, 1000, pipe);
                    congestion.on_sent(now, &Departure::new(MSS, pipe + 1000));
                    stamp
                });
                congestion.on_app_limited(2000);
                congestion.on_pass(false, 2000, &(2000 * round..2000 * round + 2000));
                stamps.into_iter().flatten().for_each(|stamp| congestion.on_delivered(stamp));
                let news = Acked { in_flight: 2000, rtt: RTT, srtt: RTT, ..Acked::of(2000) };
                congestion.on_ack(at(20 * round + 20), &news);
            }
            let cwnd = congestion.cwnd();
            assert!(cwnd <= 64_000, "{name}: {cwnd} bytes, of which 2000 were ever used");
        }
    }

    /// Asks for everything and keeps what it is told.
    #[derive(Debug, Default)]
    struct Listener(Vec<AckSample>);

    impl CongestionControl for Listener {
        fn on_ack(&mut self, _: Time, sample: &AckSample) {
            self.0.push(*sample);
        }

        fn on_loss(&mut self, _: Time, _: &LossSample) {}

        fn on_ecn(&mut self, _: Time, _: &EcnSample) {}

        fn on_rto(&mut self, _: Time, _: &RtoSample) {}

        fn wants_rate(&self) -> bool {
            true
        }

        fn cwnd(&self) -> u64 {
            10_000
        }

        fn pacing_rate(&self) -> Option<BitRate> {
            BitRate::from_bps(8_000_000)
        }

        fn snapshot(&self) -> Snapshot {
            Snapshot { cwnd: 10_000, ssthresh: 10_000 }
        }
    }

    #[test]
    fn delivery_rates_are_sampled_and_departures_spaced_where_the_algorithm_asks() {
        assert!(congestion("reno", u64::MAX).stamp(at(1000), 1000, 0).is_none());
        let mut congestion = Congestion::new(at(1000), Listener::default());
        let mut stamps = Vec::new();
        for n in 0..4 {
            // 8 Mbit/s carry a packet in 1 ms; two may leave at once.
            assert_eq!(congestion.pace_at(at(1000)), (n > 2).then(|| at(998 + n)));
            stamps.push(congestion.stamp(at(1000), 1000, 1000 * n).expect("it asks"));
            congestion.on_sent(at(1000), &Departure::new(MSS, 1000 * (n + 1)));
        }
        congestion.on_delivered(stamps[0]);
        congestion.on_delivered(stamps[1]);
        let news = Acked { lost: 1000, in_flight: 4000, rtt: RTT, srtt: RTT, ..Acked::of(2000) };
        congestion.on_ack(at(1020), &news);
        congestion.on_ack(at(1021), &Acked { in_flight: 1000, ..Acked::of(0) });
        let [sample, without] = congestion.control().0[..] else { panic!("two samples") };
        let rate = sample.rate.expect("a rate");
        assert_eq!((rate.delivered, rate.interval, rate.lost), (2000, Span::from_millis(20), 1000));
        assert_eq!((sample.lost, sample.in_flight, sample.cwnd_limited), (1000, 4000, false));
        assert_eq!(without.rate, None, "it delivered nothing");
    }
}

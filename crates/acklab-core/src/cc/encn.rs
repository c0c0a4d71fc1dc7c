//! ENCN's sender: the router says when there is *no* congestion (Sup, Moraes and Bauchspiess, INDIN 2016,
//! as its successor ANCE describes it; its full text was not to be had).
//!
//! The router marks a packet while its queue is below Qmin ([`crate::queue`]), and the receiver echoes
//! each mark on the ACK of the packet that bore it (the feedback of RFC 8257 section 3.2). A marked ACK
//! says that the path is free; the window is [`super::balance`], whose balance fairness the descriptions
//! neither grant nor deny it.
//!
//! Slow start ends as ANCE's prose has it, because that is how ENCN is described: the first mark sets W to
//! min(rwnd, Ssthr). On a path without such a router every ACK reads "congested", and W goes to its floor.

use super::balance::{self, Balance, SlowStart};
use super::{
    AckSample, CongestionControl, EcnFeedback, EcnSample, LossSample, RtoSample, Snapshot, Start,
};
use crate::time::Time;

crate::options! {
    /// What the descriptions leave open.
    #[derive(Copy, PartialEq)]
    pub struct Options {}
    within {
        /// The window.
        window: balance::Options = balance::Options {
            slow_start: SlowStart::Prose,
            ..balance::Options::default()
        },
    }
}

/// ENCN's sender.
#[derive(Clone, Copy, Debug)]
pub struct Encn {
    window: Balance,
}

impl Encn {
    /// A fresh connection.
    pub fn new(start: &Start, options: Options) -> Self {
        Self { window: Balance::new(start, options.window) }
    }

    /// The balance BF, ACKs.
    pub const fn bf(&self) -> f64 {
        self.window.bf()
    }
}

impl CongestionControl for Encn {
    fn on_ack(&mut self, _now: Time, sample: &AckSample) {
        self.window.on_ack(sample, !sample.ece);
    }

    fn on_loss(&mut self, _now: Time, sample: &LossSample) {
        self.window.on_loss(sample.in_flight);
    }

    /// Here a mark is good news.
    fn on_ecn(&mut self, _now: Time, _sample: &EcnSample) {}

    fn on_rto(&mut self, _now: Time, sample: &RtoSample) {
        self.window.on_rto(sample);
    }

    fn on_idle(&mut self, _now: Time) {
        self.window.on_idle();
    }

    fn ecn_feedback(&self) -> EcnFeedback {
        EcnFeedback::PerAck
    }

    fn cwnd(&self) -> u64 {
        self.window.snapshot().cwnd
    }

    fn snapshot(&self) -> Snapshot {
        self.window.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 960;

    fn acks(encn: &mut Encn, ece: bool, count: u32) -> u64 {
        for _ in 0..count {
            encn.on_ack(Time::ZERO, &AckSample { ece, ..crate::cc::ack_of(MSS) });
        }
        encn.cwnd() / u64::from(MSS)
    }

    #[test]
    fn marks_end_slow_start_and_let_w_grow_and_their_absence_shrinks_it() {
        let mss = u64::from(MSS);
        let start = Start { mss: MSS, initial_window: mss, initial_ssthresh: 16 * mss, seed: 1 };
        let mut encn = Encn::new(&start, Options::default());
        assert_eq!(acks(&mut encn, false, 2), 3);
        assert_eq!((acks(&mut encn, true, 1), encn.bf()), (16, 16.0));
        assert_eq!((acks(&mut encn, true, 15), encn.bf()), (17, 8.0));
        assert_eq!((acks(&mut encn, false, 8), encn.bf()), (16, 12.0));
        assert_eq!((acks(&mut encn, false, 11), encn.bf()), (16, 12.0));
        assert_eq!((acks(&mut encn, false, 1), encn.bf()), (15, 18.0));
    }
}

//! Congestion controls by name: what a scenario chooses and a connection builds.

use super::{
    AckSample, CongestionControl, CoupledSample, EcnFeedback, EcnSample, LossSample,
    ReturnedSample, RtoSample, SentSample, Snapshot, Start, ance, bbr, cdg, cubic, dctcp, edctcp,
    encn, jersey, lossy, prague, reno, vegas, westwood,
};
use crate::packet::Ecn;
use crate::time::{Span, Time};
use crate::units::BitRate;

crate::options::registry! {
    /// Which congestion control a connection gets.
    pub enum Algorithm, a "congestion control", built by controllers: dyn CongestionControl
        from start: &Start;

    /// RFC 5681, byte counting with L = 1. Needs losses or RFC 3168 marks.
    "reno" Reno => reno::Reno;
    /// As Linux has it, with HyStart, or RFC 9438 with HyStart++ (RFC 9406). Needs losses or RFC 3168 marks, and
    /// round trips.
    "cubic" Cubic(options: cubic::Options) => cubic::Cubic;
    /// Queue kept at a threshold by the sender's own estimate: Sup, Moraes and Bauchspiess, algorithm 1.
    /// Needs round trips and the spacing of ACKs.
    "ance" Ance(options: ance::Options) => ance::Ance;
    /// Queue kept at a threshold by routers that mark the absence of congestion: the same authors, INDIN
    /// 2016, as ANCE's paper describes it. Needs marks per ACK.
    "encn" Encn(options: encn::Options) => encn::Encn;
    /// Bandwidth estimated from ACKs, congestion warned of by routers: Xu, Tian and Ansari, JSAC 22(4)
    /// 2004. Needs round trips, and warnings per ACK.
    "jersey" Jersey(options: jersey::Options) => jersey::Jersey;
    /// RFC 8257. Needs marks per ACK.
    "dctcp" Dctcp(options: dctcp::Options) => dctcp::Dctcp;
    /// DCTCP with packets that a full switch hands back: Huang and Hu, ICC 2015 (abstract).
    "edctcp" Edctcp(options: edctcp::Options) => edctcp::Edctcp;
    /// A few segments kept in the queue: Brakmo and Peterson, JSAC 13(8), 1995. Needs round trips and losses.
    "vegas" Vegas(options: vegas::Options) => vegas::Vegas;
    /// Westwood+, after a loss what the path was measured to carry: Grieco and Mascolo, CCR 34(2), 2004.
    /// Needs delivered bytes, round trips and losses.
    "westwood" Westwood(options: westwood::Options) => westwood::Westwood;
    /// Windows that shrink by chance as round trips grow: CDG, Hayes and Armitage, IFIP Networking 2011. Needs
    /// round trips and losses.
    "cdg" Cdg(options: cdg::Options) => cdg::Cdg;
    /// BBR version 1, a model of the path rather than losses: draft-cardwell-iccrg-bbr-congestion-control-00.
    /// Needs rate samples and round trips; paces.
    "bbr1" Bbr1 => bbr::v1::BbrV1;
    /// BBR version 3, bounded by loss: draft-ietf-ccwg-bbr-06. Needs rate samples, round trips, losses, RFC
    /// 3168 marks; paces.
    "bbr3" Bbr3 => bbr::v3::BbrV3;
    /// For links that lose without being full, rate from what was served, by delay beside its like: ours,
    /// docs/rudp.md section 8. Needs rate samples, round trips, losses, RFC 3168 marks; paces.
    "lossy" Lossy => lossy::Lossy;
    /// The L4S service's scalable response to marks: RFC 9331 section 4.3, draft-briscoe-iccrg-prague-congestion-control. Needs
    /// marks per ACK and round trips; paces.
    "prague" Prague => prague::Prague;
}

/// Each builds the state of one connection.
macro_rules! controllers {
    ($Choice:ident from $context:ident: $Context:ty; $($line:tt)+) => {
        crate::options::dispatched! {
            $Choice =>
            /// The congestion control of one connection; built-ins are dispatched without a pointer.
            Controller: dyn CongestionControl, controller from $context: $Context;
            $($line)+
        }
    };
}

use controllers;

impl Algorithm {
    /// Whether it is nothing without marks: those that want to hear of each.
    pub fn needs_marks(&self) -> bool {
        let start = Start { mss: 1000, initial_window: 1000, initial_ssthresh: u64::MAX, seed: 0 };
        self.controller(&start).ecn_feedback() == EcnFeedback::PerAck
    }
}

#[expect(clippy::derivable_impls, reason = "the table has no place for #[default]")]
impl Default for Algorithm {
    fn default() -> Self {
        Self::Reno
    }
}

impl CongestionControl for Controller {
    fn on_sent(&mut self, now: Time, sample: &SentSample) {
        each!(self, cc => cc.on_sent(now, sample));
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        each!(self, cc => cc.on_ack(now, sample));
    }

    fn on_loss(&mut self, now: Time, sample: &LossSample) {
        each!(self, cc => cc.on_loss(now, sample));
    }

    fn on_recovered(&mut self, now: Time) {
        each!(self, cc => cc.on_recovered(now));
    }

    fn on_ecn(&mut self, now: Time, sample: &EcnSample) {
        each!(self, cc => cc.on_ecn(now, sample));
    }

    fn on_rto(&mut self, now: Time, sample: &RtoSample) {
        each!(self, cc => cc.on_rto(now, sample));
    }

    fn on_idle(&mut self, now: Time) {
        each!(self, cc => cc.on_idle(now));
    }

    fn on_returned(&mut self, now: Time, sample: &ReturnedSample) -> Span {
        each!(self, cc => cc.on_returned(now, sample))
    }

    fn on_coupled(&mut self, sample: &CoupledSample) {
        each!(self, cc => cc.on_coupled(sample));
    }

    fn ecn_feedback(&self) -> EcnFeedback {
        each!(self, cc => cc.ecn_feedback())
    }

    fn codepoint(&self) -> Ecn {
        each!(self, cc => cc.codepoint())
    }

    fn wants_rate(&self) -> bool {
        each!(self, cc => cc.wants_rate())
    }

    fn wants_each_ack(&self) -> bool {
        each!(self, cc => cc.wants_each_ack())
    }

    fn cwnd(&self) -> u64 {
        each!(self, cc => cc.cwnd())
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        each!(self, cc => cc.pacing_rate())
    }

    fn snapshot(&self) -> Snapshot {
        each!(self, cc => cc.snapshot())
    }

    fn reseed(&mut self, seed: u64) {
        each!(self, cc => cc.reseed(seed));
    }
}

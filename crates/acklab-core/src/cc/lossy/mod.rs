//! Congestion control for links that lose without being full (docs/rudp.md section 8; ours).
//!
//! The bottleneck serves what arrives and what is lost behind it; so what a flow gets of it is S =
//! (delivered + lost) / time, which random loss neither lowers nor makes noisy. Around S a delay-based law
//! keeps a few packets in the queue (`share`). How S is found at first is in `start_up`, which losses
//! are random in `losses` and `overflow`, what waits in `delay`.
//!
//! Where the delay varies by itself, no round trip shows a queue, and BBR takes over (`varying`).
//!
//! A law that follows delay starves beside cross traffic that fills the queue. So where the queue stays though we
//! give way, or loses more than the path's own share, a window of CUBIC takes over (`rivalry`), until a
//! check finds no cross traffic in the queue; now and then it tries whether what is lost is the path's own (`probation`).
//! Cross traffic that does not give way to loss is met by BBR (`unyielding`).
//!
//! The least round trip is as old as 10 s at most: then half of the rate for a round shows it again.
//!
//! Left out: how many packets were marked; one mark is a congestion event.

mod delay;
mod losses;
mod noise;
mod overflow;
mod probation;
mod rivalry;
mod share;
mod start_up;
mod tally;
mod unyielding;
mod varying;

use self::delay::{Delay, FULL};
use self::losses::Losses;
use self::rivalry::{Finding, Rivals, Round};
use self::share::{LOSING, Served, Share, wanted_queue};
use self::start_up::StartUp;
use self::tally::{Packets, Tally};
use self::unyielding::{Matching, Trial};
use self::varying::Varying;
use super::bbr::filter::WindowedMax;
use super::bbr::pipe::Pipe;
use super::{
    AckSample, CongestionControl, CoupledSample, EcnSample, LossSample, RateSample, RtoSample,
    SentSample, Snapshot, Start,
};
use crate::math;
use crate::time::{Span, Time};
use crate::units::BitRate;

/// What it is about.
#[derive(Clone, Debug)]
enum Phase {
    /// Looking for the bottleneck's rate.
    StartUp(StartUp),
    /// Following the delay.
    Delay,
    /// Rounds at half of the rate, and the one that shows what they did, to see the round trip without a
    /// queue again.
    Refresh { rounds: u32 },
    /// Cross traffic fills the queue.
    Compete,
    /// Cross traffic fills the queue and does not give way to loss.
    Match(Box<Matching>),
    /// The delay varies by itself, by more than the queue that we would keep.
    Varying(Box<Varying>),
}

/// The sender's state; rates in bytes per second, times in seconds.
#[derive(Clone, Debug)]
pub struct Lossy {
    mss: f64,
    start: Start,
    phase: Phase,
    tally: Tally,
    delay: Delay,
    losses: Losses,
    /// Rounds of packets that left before so much was delivered tell of the start-up, bytes.
    steady_from: u64,
    share: Box<Share>,
    rate: f64,
    srtt: f64,
    pipe: Pipe,
    /// What was on the way in each of the last rounds, bytes.
    flight: WindowedMax<FLIGHT_ROUNDS>,
    rivals: Rivals,
    marked: bool,
    /// A time-out, and no ACK since.
    is_silent: bool,
}

impl Lossy {
    /// A fresh connection.
    pub fn new(start: &Start) -> Self {
        let mss = f64::from(start.mss.max(1));
        let initial_window = (start.initial_window as f64).max(mss);
        let start_up = StartUp::new(initial_window);
        Self {
            mss,
            start: Start { initial_window: initial_window as u64, ..*start },
            rate: start_up.pace,
            phase: Phase::StartUp(start_up),
            tally: Tally::new(mss),
            delay: Delay::new(),
            losses: Losses::default(),
            steady_from: 0,
            share: Box::new(Share::new(mss)),
            pipe: Pipe::default(),
            srtt: 0.0,
            flight: WindowedMax::default(),
            rivals: Rivals::default(),
            marked: false,
            is_silent: false,
        }
    }

    /// Whether it takes cross traffic to be filling the queue.
    pub const fn is_competing(&self) -> bool {
        matches!(self.phase, Phase::Compete)
    }

    /// Whether the start-up is over.
    const fn is_found(&self) -> bool {
        !matches!(self.phase, Phase::StartUp(_))
    }

    /// The window that the present phase wants, bytes.
    fn wanted_window(&self) -> f64 {
        match &self.phase {
            Phase::StartUp(_) if self.tally.delivered() == 0.0 => self.start.initial_window as f64,
            Phase::StartUp(_) => f64::INFINITY,
            Phase::Delay | Phase::Refresh { .. } => {
                let trip = 2.0 * self.delay.least().unwrap_or(0.0) + ACK_GAP;
                (self.rate * trip).max(4.0 * self.mss)
            }
            Phase::Compete => {
                let window = self.rivals.window() / (1.0 - self.losses.share());
                self.losses
                    .window_of_trial()
                    .map_or(window, |least| least.max(4.0 * self.mss).min(window))
            }
            Phase::Match(matching) => matching.cwnd() as f64,
            Phase::Varying(varying) => varying.cwnd() as f64,
        }
    }

    /// The most that full windows have shown to be carried, bytes. It doubles in a round trip, as in slow start; at a
    /// rate that was found, in a reference round trip if that is shorter, so that a long road is full soon.
    fn validated_window(&self) -> f64 {
        let trips = match self.phase {
            Phase::Delay => self.delay.least().unwrap_or(0.0) / REFERENCE_TRIP,
            _ => 1.0,
        };
        let growth = math::pow(2.0, trips.clamp(1.0, TRIPS_MOST)) - 1.0;
        let initial = (self.start.initial_window as f64).max(64.0 * self.mss);
        initial + growth * self.tally.validated()
    }

    /// Whether the queue is as long as it gets, so that a loss is an overflow.
    fn is_full(&self) -> bool {
        let (delay, least) = (&self.delay, self.share.wanted_queue() / 4.0);
        if self.share.is_short() {
            return delay.queue_now() > FULL * delay.peak();
        }
        delay.lately() > (FULL * delay.peak()).max(UNEVEN * delay.noise().size()).max(least)
    }

    /// Whether the queue holds as much as half of the round trip.
    fn is_roomy(&self) -> bool {
        self.delay.peak() > ROOMY * self.delay.least().unwrap_or(0.0)
    }

    /// Whether the delay varies by itself, by so much of the queue that is wanted at that rate. A long queue has
    /// noise of its own.
    fn varies(&self, share: f64, rate: f64) -> bool {
        let noise = self.delay.noise().size();
        // What the law does of a wait it does over a round trip.
        let matters = !self.is_long() || noise > HARMLESS * self.delay.least().unwrap_or(0.0);
        matters && noise > share * wanted_queue(rate) && noise > self.delay.lately() / 6.0
    }

    /// Whether the round trip is so long that what is done in every one of them is done seldom.
    fn is_long(&self) -> bool {
        self.delay.least().is_some_and(|least| least > REFERENCE_TRIP)
    }

    /// A round ends; what it served becomes S.
    fn end_round(&mut self, now: Time, rate: &RateSample) {
        let has_delay = self.delay.end_round();
        let Some((packets, served)) = self.tally.next_round(now) else { return };
        let Packets { sent, lost } = packets;
        let varies = self.varies(VARIES, self.rate);
        self.delay.noise_mut().end_round(varies);
        let got = served * (1.0 - lost / sent);
        self.share.note(got);
        self.rivals.unyielding().note(packets, got);
        if self.share.look_for_short_buffer(lost > LOSING * sent, &self.delay) {
            self.losses.forget();
        }
        // Also where the delay seemed to vary by itself: it was the queue's.
        if self.delay.reveals_queue() && !matches!(self.phase, Phase::StartUp(_) | Phase::Match(_))
        {
            // What was lost may have overflowed.
            self.losses.forget();
            if lost > LOSING * sent {
                self.share.limit(got);
            }
        }
        let trip = self.delay.least().unwrap_or(0.0) + self.delay.queue();
        let congested = self.look_for_congestion(now, packets);
        self.tally.judged(packets, congested);
        let overflows = congested || matches!(self.phase, Phase::Match(_));
        if !overflows && self.delay.queue_most() < self.harmless_queue() {
            self.losses.learn(sent, lost);
        }
        if self.look_for_ruin(now, packets, got) {
            return;
        }
        match &mut self.phase {
            Phase::Delay if rate.app_limited && served < self.rate => {}
            Phase::Delay if rate.prior_delivered < self.steady_from => {
                self.share.raise(served, &self.delay);
            }
            Phase::Delay if has_delay => {
                let number = self.tally.rounds();
                self.flight.record(number, served * trip);
                let round = Served { number, rate: served, sent, lost };
                if self.share.learn(&round, &self.delay) {
                    self.losses.relearn(0.0, 0.0);
                }
                self.look_at_queue(now);
            }
            Phase::StartUp(_) | Phase::Delay => {}
            &mut Phase::Refresh { rounds } => self.refresh(now, rounds),
            Phase::Compete => self.end_round_of_rivalry(now, served, packets),
            Phase::Varying(_) => self.end_uneven_round(served, packets),
            Phase::Match(_) => self.end_round_of_match(now, got),
        }
        self.look_for_unyielding(now, packets, got);
    }

    /// Flows of this kind that begin in a full queue take its round trip for the path's and each other's overflow for the
    /// path's loss, and none gives way. So whoever loses that much goes on with what arrived, and stands back at
    /// first: where others do so too, the queue shows. True where that begins.
    fn look_for_ruin(&mut self, now: Time, packets: Packets, got: f64) -> bool {
        if !self.tally.is_ruined(now, packets, matches!(self.phase, Phase::Delay)) {
            return false;
        }
        self.losses.forget();
        self.share.limit(got);
        self.rate = got;
        self.phase = Phase::Refresh { rounds: RETREAT_ROUNDS };
        true
    }

    /// Whether rivals fill the queue that do not give way to loss: then BBR meets them.
    fn look_for_unyielding(&mut self, now: Time, packets: Packets, got: f64) {
        // BBR knows no coupled paths.
        if !matches!(self.phase, Phase::Delay | Phase::Compete) || self.share.is_coupled() {
            return;
        }
        let (queue, peak) = (self.delay.queue(), self.delay.peak());
        let clear = (UNEVEN * self.delay.noise().size()).max(LEAST_PEAK);
        let full = peak > clear && queue > FULL * peak;
        let heeds_loss = self.is_competing();
        let own = self.losses.share();
        let roomy = self.is_roomy();
        let round = unyielding::Round { packets, full, roomy, got, own, heeds_loss };
        if self.rivals.unyielding().on_round(now, &round) {
            let start = self.start_from_here();
            let least = Span::from_secs_f64(self.delay.least().unwrap_or(0.0));
            let matching = self.rivals.unyielding().begin(now, &start, least);
            self.phase = Phase::Match(Box::new(matching));
        }
    }

    /// A round ends in which BBR governs beside its like.
    fn end_round_of_match(&mut self, now: Time, got: f64) {
        let Phase::Match(matching) = &mut self.phase else { return };
        let trial = matching.end_round(now, got, self.rivals.unyielding());
        if trial != Trial::GoesOn {
            let trip = self.delay.least().unwrap_or(0.0) + self.delay.queue();
            let flight = matching.share(trial) * trip;
            self.rivals.unyielding().end(now, trial);
            self.compete(now, flight, true);
        }
    }

    /// What BBR begins with.
    fn start_from_here(&self) -> Start {
        let initial_window = self.pipe.bytes().max(self.start.initial_window);
        Start { initial_window, initial_ssthresh: u64::MAX, ..self.start }
    }

    /// A longer queue in a round, seconds, may have overflowed.
    fn harmless_queue(&self) -> f64 {
        if self.is_competing() {
            return self.delay.nothing();
        }
        let half = self.delay.peak() / 2.0;
        if self.share.is_short() {
            FULL * self.delay.peak()
        } else {
            self.share.own_queue().max(half)
        }
    }

    /// A round ends on a path whose delay varies by itself, or did.
    fn end_uneven_round(&mut self, served: f64, packets: Packets) {
        let varies = self.varies(VARIES / 2.0, served);
        let flight = self.pipe.bytes().max(self.start.initial_window);
        let Phase::Varying(varying) = &mut self.phase else { return };
        if let Some(rate) = varying.end_round(packets, flight, varies) {
            self.share.begin(rate);
            self.phase = Phase::Delay;
        }
    }

    /// The delay varies by itself: what arrives is to be followed.
    fn look_for_variation(&mut self) {
        let varies = match self.phase {
            Phase::Varying(_) | Phase::Match(_) => false,
            // What rivals do to the queue in a round or two is not it.
            Phase::Compete => self.delay.noise().lasts(),
            _ => self.varies(VARIES, self.rate),
        };
        if varies {
            self.phase = Phase::Varying(Box::new(Varying::new(&self.start_from_here())));
        }
    }

    fn look_at_queue(&mut self, now: Time) {
        if self.share.is_crowded() {
            self.compete(now, self.flight.max(), false);
        } else if self.delay.is_stale(now) {
            self.phase = Phase::Refresh { rounds: 2 };
        }
    }

    fn refresh(&mut self, now: Time, rounds: u32) {
        if rounds > 1 {
            self.phase = Phase::Refresh { rounds: rounds - 1 };
        } else if self.delay.queue() > self.share.wanted_queue() {
            // It stayed though we gave way.
            self.compete(now, self.flight.max(), false);
        } else {
            self.delay.renew(now);
            self.phase = Phase::Delay;
        }
    }

    /// CUBIC's window takes over, with so much on the way, bytes.
    fn compete(&mut self, now: Time, flight: f64, doubtful: bool) {
        if !self.losses.is_known() {
            // Nothing is learned while rivals fill the queue, and a share that a few packets tell explains any loss.
            self.losses.forget();
        }
        self.rivals.begin(now, self.mss, flight, doubtful);
        self.phase = Phase::Compete;
    }

    /// A round of the competition ends.
    fn end_round_of_rivalry(&mut self, now: Time, served: f64, packets: Packets) {
        let Packets { sent, lost } = packets;
        let least = self.delay.least().unwrap_or(0.0);
        let delivered = served * (1.0 - lost / sent) * least;
        self.losses.try_share(sent, lost, delivered);
        self.losses.doubt(sent, lost);
        // What overflowed was not served.
        let through = (1.0 - packets.lost / packets.sent) / (1.0 - self.losses.share());
        let served = served * through.min(1.0);
        let round = Round {
            number: self.tally.rounds(),
            served,
            flight: self.pipe.bytes() as f64,
            least_rtt: self.delay.least().unwrap_or(0.0),
            queue: self.delay.queue(),
        };
        let finding = self.rivals.end_round(now, &round);
        if finding != Finding::None && self.losses.is_excess(packets.sent, packets.lost) {
            self.losses.relearn(packets.sent, packets.lost);
        }
        if let Finding::Alone(served) = finding {
            self.share.begin(served);
            self.phase = Phase::Delay;
        }
    }

    /// Takes an ACK in which losses or marks show, or a round of so many packets, so many lost; true
    /// if they are more than the path's own.
    fn look_for_congestion(&mut self, now: Time, packets: Packets) -> bool {
        let marked = std::mem::take(&mut self.marked);
        let is_excess = |of: Packets| self.losses.is_excess(of.sent.max(1.0), of.lost);
        let all = self.tally.since().plus(packets);
        let excess = is_excess(packets) || (packets.lost > 0.0 && is_excess(all));
        if !marked && !excess {
            return false;
        }
        let is_overflow = marked || (self.is_full() && self.losses.is_known());
        match self.phase {
            // Nothing waits: what is lost did not overflow.
            Phase::Compete if !marked && self.delay.queue_now() < self.delay.nothing() => {}
            Phase::Compete => self.rivals.on_congestion(now, self.tally.rounds()),
            Phase::Varying(_) | Phase::Match(_) if !marked => {}
            Phase::Delay | Phase::Varying(_) | Phase::Match(_) if is_overflow => {
                let trip = self.delay.least().unwrap_or(0.0) + self.delay.queue();
                self.compete(now, AFTER_LOSS * self.share.served() * trip, true);
            }
            _ => {}
        }
        is_overflow
    }
}

impl CongestionControl for Lossy {
    fn on_sent(&mut self, now: Time, sample: &SentSample) {
        self.pipe.on_sent(sample);
        match &mut self.phase {
            Phase::Varying(varying) => varying.on_sent(now, sample),
            Phase::Match(matching) => matching.on_sent(now, sample),
            _ => {}
        }
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        if let Some(rtt) = sample.rtt.filter(|rtt| !rtt.is_zero()) {
            self.delay.on_rtt(now, rtt);
        }
        self.srtt = sample.srtt.map_or(self.srtt, Span::as_secs_f64);
        self.pipe.on_ack(sample);
        self.is_silent &= sample.delivered == 0;
        self.tally.on_ack(sample);
        if self.is_competing() {
            self.rivals.on_ack(now, sample);
        }
        // On a clean path the first loss counts; else only a whole round of them says something.
        if self.marked || (sample.lost > 0 && self.losses.is_clean()) {
            self.look_for_congestion(now, self.tally.round());
        }
        self.look_for_variation();
        match &mut self.phase {
            Phase::Varying(varying) => varying.on_ack(now, sample),
            Phase::Match(matching) => matching.on_ack(now, sample),
            _ => {}
        }
        let Some(rate) = sample.rate.filter(|rate| !rate.interval.is_zero()) else { return };
        if let (Phase::StartUp(start_up), Some(least)) = (&mut self.phase, self.delay.least()) {
            let served = (self.tally.served(), self.mss);
            let queue = self.delay.lately();
            let found = start_up.on_ack(now, &rate, served, least, queue);
            self.rate = found.unwrap_or(start_up.pace);
            if let Some(found) = found {
                // To double it for a long round trip, to see whether it is too little, would overflow what is found
                // to hold: there it grows with time.
                if least > REFERENCE_TRIP {
                    self.share.begin(found);
                } else {
                    self.share.begin_unproven(found);
                }
                self.steady_from = rate.total_delivered + self.pipe.bytes();
                self.phase = Phase::Delay;
            }
        }
        if self.tally.ends_round(&rate) {
            self.end_round(now, &rate);
        }
        if let Phase::Delay = self.phase {
            self.rate = self.share.pace(&self.delay, self.pipe.bytes()).unwrap_or(self.rate);
            if self.is_long() && self.wanted_window() > self.validated_window() {
                // Most of the round nothing leaves: what is served then says little of what could be.
                self.steady_from = rate.total_delivered + self.pipe.bytes();
            }
        }
    }

    fn on_loss(&mut self, now: Time, sample: &LossSample) {
        if let Phase::Match(matching) = &mut self.phase {
            matching.on_loss(now, sample);
        }
    }

    fn on_recovered(&mut self, now: Time) {
        if let Phase::Match(matching) = &mut self.phase {
            matching.on_recovered(now);
        }
    }

    fn on_ecn(&mut self, _now: Time, _sample: &EcnSample) {
        self.marked = true;
    }

    fn on_rto(&mut self, now: Time, sample: &RtoSample) {
        self.is_silent = true;
        self.pipe.on_rto(sample);
        match &mut self.phase {
            Phase::Varying(varying) => varying.on_rto(now, sample),
            Phase::Match(matching) => matching.on_rto(now, sample),
            _ => {}
        }
        if sample.again {
            self.share.halve();
        }
    }

    fn on_idle(&mut self, _now: Time) {
        self.share.halve();
        self.rate /= 2.0;
    }

    fn on_coupled(&mut self, sample: &CoupledSample) {
        self.share.couple(sample.part);
        self.rivals.couple(sample.growth);
    }

    fn wants_rate(&self) -> bool {
        true
    }

    /// Beside cross traffic in a short queue, of which few ACKs show too little. In a long one who hears of each packet would send
    /// one into each place that comes free, which those that send two at once do not get (docs/lossy.md). A delay that
    /// varies by itself is told from a queue by what few ACKs say.
    fn wants_each_ack(&self) -> bool {
        match self.phase {
            Phase::Compete => !self.is_roomy(),
            // Who does not give way has nothing taken.
            Phase::Match(_) => true,
            _ => false,
        }
    }

    fn cwnd(&self) -> u64 {
        let most = if self.is_silent { 2.0 * self.mss } else { self.validated_window() };
        self.wanted_window().min(most).max(self.mss) as u64
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        let rate = match &self.phase {
            Phase::StartUp(start_up) => start_up.pace,
            Phase::Delay | Phase::Refresh { rounds: 1 } => self.rate,
            Phase::Refresh { .. } => REFRESH * self.rate,
            Phase::Match(matching) => return matching.pacing_rate(),
            Phase::Varying(varying) => return varying.pacing_rate(),
            Phase::Compete => HEADROOM * self.cwnd() as f64 / self.srtt.max(1e-4),
        };
        BitRate::from_bps((rate.max(self.mss) * 8.0) as u64)
    }

    /// There is no ssthresh: arbitrarily high until the bottleneck is found, then the window.
    fn snapshot(&self) -> Snapshot {
        let cwnd = self.cwnd();
        Snapshot {
            cwnd,
            ssthresh: if self.is_found() { cwnd.max(2 * self.mss as u64) } else { u64::MAX },
        }
    }
}

// All ours, measured in docs/lossy.md.
/// Of the queue that is wanted: from there on the delay-based law loses throughput (docs/lossy.md).
const VARIES: f64 = 0.35;
/// A queue is longer than so many times the noise of the delay.
const UNEVEN: f64 = 3.0;
/// Of the round trip without a queue.
const ROOMY: f64 = 0.5;
/// Seconds: a longest queue below this may be hosts' jitter.
const LEAST_PEAK: f64 = 0.001;
const FLIGHT_ROUNDS: usize = 10;
const REFRESH: f64 = 0.5;
/// A flow with a longer round trip grows as one with this, seconds: the idea of TCP Hybla (Caini, Firrincieli 2004,
/// where it is 25 ms).
const REFERENCE_TRIP: f64 = 0.25;
const RETREAT_ROUNDS: u32 = 4;
/// Of a long round trip: the noise of its delay that the law does not mind.
const HARMLESS: f64 = 0.02;
/// By no more than sixteenfold in a round trip.
const TRIPS_MOST: f64 = 4.0;
/// For gaps between ACKs, seconds.
const ACK_GAP: f64 = 0.010;
/// Pacing above the window's own rate.
const HEADROOM: f64 = 1.2;
/// Of what was on the way: CUBIC's (RFC 9438 section 4.6).
const AFTER_LOSS: f64 = 0.7;

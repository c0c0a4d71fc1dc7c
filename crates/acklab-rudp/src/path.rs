//! One path: its numbers both ways, round trips, loss detection, congestion control, pacing and size of
//! datagrams (docs/rudp.md sections 2, 4, 5, 6 and 8). Whether it lives is [`super::life`]'s business.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use super::config::{Config, INITIAL_RTT};
use super::datagram_size::DatagramSize;
use super::ecn::EcnCheck;
use super::life::Life;
use super::received::{FIRST_DELAY, Received};
use super::rtt::Rtt;
use super::sent::{Items, NeverSent, News, Sent, SentPackets};
use crate::wire::{EcnCounts, PathStatus};
use acklab_core::cc::{
    AckSample, CongestionControl, Controller, EcnFeedback, EcnSample, LossSample, RtoSample,
    SentSample, Start,
};
use acklab_core::delivery_rate::Estimator;
use acklab_core::event::FlowKey;
use acklab_core::pacing::{Pacer, quantum};
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;

/// The two ends of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathAddrs {
    /// Where this end sends from.
    pub local: SocketAddr,
    /// Where it sends to.
    pub remote: SocketAddr,
}

impl PathAddrs {
    /// The flow as which the event stream knows a path with these ends.
    pub fn flow(&self) -> FlowKey {
        FlowKey { local: self.local.into(), remote: self.remote.into() }
    }
}

/// What a path has done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Packets and bytes of UDP payload sent.
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Packets and bytes of UDP payload received, authentic ones.
    pub(super) packets_received: u64,
    pub(super) bytes_received: u64,
    /// Bytes acknowledged, bytes declared lost and not acknowledged since.
    pub(super) acknowledged: u64,
    pub(super) lost: u64,
    /// Bytes of content sent, copies included, and acknowledged for the first time.
    pub(super) content: u64,
    pub(super) delivered: u64,
    /// Recoveries begun, and probe time-outs that expired.
    pub(super) recoveries: u64,
    pub(super) timeouts: u64,
}

/// Longest probe time-out, back-off included (docs/rudp.md section 4).
const PTO_MOST: Span = Span::from_secs(2);
/// Probes per time-out (RFC 9002 section 6.2.4).
const PROBES: u32 = 2;
/// After so many time-outs in a row without an answer, congestion is persistent (RFC 9002 section 7.6).
const PERSISTENT: u32 = 3;
/// Loss counts as such for the tail duplicates above this share (docs/rudp.md section 4).
const LOSSY_SHARE: f64 = 0.005;

/// So many unanswered packets make a path silent whose other direction works: 0.48^10 is 0.0007, at 28 %
/// of loss in both directions \[ours\].
const EVIDENCE: u32 = 10;

/// The requested ACK frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AckRequest {
    pub(super) sequence: u64,
    pub(super) packets: u64,
    pub(super) delay: Span,
    pub(super) reordering: u8,
}

/// The state of one path.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) id: u8,
    pub(super) addrs: PathAddrs,
    pub(super) life: Life,
    pub(super) rtt: Rtt,
    pub(super) sent: SentPackets,
    pub(super) received: Received,
    pub(super) size: DatagramSize,
    pub(super) counters: Counters,
    pub(super) cc: Controller,
    pub(super) rate: Estimator,
    pacer: Pacer,
    start_rate: Option<BitRate>,
    /// Time-outs in a row without an answer, and probes that may leave past the window.
    pub(super) pto_count: u32,
    pub(super) probes: u32,
    pto_fired: Time,
    /// Losses of packets from this number on begin a new recovery; `Some` while one is under way.
    recovery: Option<u64>,
    recovered_to: u64,
    /// Lost between ACKs, to be told with the next one.
    lost_untold: u64,
    /// When window or pacing last held data back.
    limited_at: Option<Time>,
    /// Data waited for pacing when this path was last asked.
    pub(super) paced: bool,
    /// The last ACK with news, or the departure that ended a silence.
    last_news: Time,
    /// Packets sent since then that ask for an answer.
    unanswered: u32,
    /// The last authentic packet of the peer's on this path.
    pub(super) last_heard: Time,
    pub(super) asked: AckRequest,
    pub(super) ask: bool,
    /// Numbers from this one on were sent under the present key.
    pub(super) key_from: u64,
    /// The next number to be left out.
    pub(super) skip_at: u64,
    /// What the peer says of the path.
    pub(super) status: PathStatus,
    /// This end wants it used only if no other is.
    pub(super) spare_here: bool,
    pub(super) status_heard: Option<u64>,
    asked_at: Time,
    pub(super) ecn: EcnCheck,
    /// The share of lost bytes, over about the last 100 packets.
    loss_share: f64,
    initial_window: u64,
    algorithm: acklab_core::cc::Algorithm,
    seed: u64,
}

impl Path {
    pub(super) fn new(now: Time, id: u8, addrs: PathAddrs, config: &Config, life: Life) -> Self {
        let size = DatagramSize::new(config.largest_datagram, addrs.remote);
        let seed = config.seed ^ (u64::from(id) << 56);
        let mut path = Self {
            id,
            addrs,
            life,
            rtt: Rtt::new(INITIAL_RTT),
            sent: SentPackets::default(),
            received: Received::new(config.ack.as_ref()),
            counters: Counters::default(),
            cc: controller(&config.algorithm, size.current(), config.initial_window, seed),
            rate: Estimator::new(now),
            pacer: Pacer::default(),
            start_rate: None,
            pto_count: 0,
            probes: 0,
            pto_fired: Time::ZERO,
            recovery: None,
            recovered_to: 0,
            lost_untold: 0,
            limited_at: None,
            paced: false,
            last_news: now,
            unanswered: 0,
            last_heard: now,
            asked: AckRequest { sequence: 0, packets: 2, delay: FIRST_DELAY, reordering: 3 },
            ask: false,
            key_from: 0,
            skip_at: 0,
            status: PathStatus::Use,
            spare_here: false,
            status_heard: None,
            asked_at: Time::ZERO,
            ecn: EcnCheck::default(),
            loss_share: 0.0,
            initial_window: u64::from(config.initial_window),
            algorithm: config.algorithm.clone(),
            seed,
            size,
        };
        path.pace_the_start();
        path
    }

    /// The initial window leaves over one round trip, where the congestion control has no rate yet.
    fn pace_the_start(&mut self) {
        if let Some(rtt) = self.rtt.least() {
            let bits = self.initial_window * self.mss() * 8;
            let nanos = rtt.as_nanos().max(1);
            let bps = u128::from(bits) * 1_000_000_000 / u128::from(nanos);
            self.start_rate = BitRate::from_bps(bps.min(u128::from(u64::MAX / 2)) as u64);
        }
    }

    /// The handshake took so long.
    pub(super) fn on_handshake_rtt(&mut self, now: Time, rtt: Span) {
        self.rtt.on_sample(now, rtt, Span::ZERO, true);
        self.on_news(now);
    }

    /// Begins anew after the path was dead (docs/rudp.md section 6, "Back").
    pub(super) fn restart(&mut self, now: Time) {
        self.cc =
            controller(&self.algorithm, self.size.current(), self.initial_window as u32, self.seed);
        self.pacer = Pacer::default();
        self.rtt.forget_least();
        self.pto_count = 0;
        self.probes = 0;
        self.recovery = None;
        self.recovered_to = self.sent.next_number();
        self.ecn.restart();
        self.on_news(now);
    }

    /// Bytes of a full datagram; the unit of the congestion control.
    pub(super) const fn mss(&self) -> u64 {
        self.size.current() as u64
    }

    /// The probe time-out without back-off.
    pub(super) fn pto(&self) -> Span {
        self.rtt.pto(self.asked.delay)
    }

    /// When the probe time-out expires.
    pub(super) fn pto_at(&self) -> Option<Time> {
        let last = self.sent.last_eliciting()?.max(self.pto_fired);
        let doubled = self.pto().as_nanos() << self.pto_count.min(16);
        Some(last + Span::from_nanos(doubled).min(PTO_MOST))
    }

    /// The probe time-out expired: probes leave, whatever the window says.
    pub(super) fn on_pto(&mut self, now: Time) {
        self.pto_count += 1;
        self.counters.timeouts += 1;
        self.probes = PROBES;
        self.pto_fired = now;
        if self.pto_count == PERSISTENT {
            self.size.on_silence(now);
            self.ecn.on_silence();
            let (in_flight, recovering) = (self.sent.in_flight(), self.recovery.is_some());
            let sample = RtoSample { in_flight, again: false, recovering };
            self.cc.on_rto(now, &sample);
        }
    }

    /// Something was acknowledged at `at`, or nothing was outstanding until then.
    fn on_news(&mut self, at: Time) {
        self.last_news = at;
        self.unanswered = 0;
    }

    /// Since when the path has been silent, where something is outstanding. While the peer's packets
    /// come, a few of ours without an answer say little: on a lossy path each may be lost, or its ACK.
    pub(super) fn silent_since(&self) -> Option<Time> {
        let silent = self.sent.oldest_outstanding()?.max(self.last_news);
        let weak = self.unanswered < EVIDENCE;
        Some(if weak { silent.max(self.last_heard) } else { silent })
    }

    /// Whether window and pacing let a packet of content leave now.
    pub(super) fn may_send(&mut self, now: Time) -> bool {
        self.paced = false;
        if self.probes > 0 {
            return true;
        }
        if self.sent.is_full()
            || self.sent.in_flight() + self.mss() > self.cc.cwnd().max(self.mss())
        {
            self.limited_at = Some(now);
            return false;
        }
        if self.pacing_rate().is_some() && self.pacer.next() > now {
            self.paced = true;
            self.limited_at = Some(now);
            return false;
        }
        true
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        self.cc.pacing_rate().or(self.start_rate.filter(|_| self.counters.acknowledged == 0))
    }

    /// When pacing lets the next packet leave, if something waits for that.
    pub(super) fn pace_at(&self) -> Option<Time> {
        self.paced.then(|| self.pacer.next())
    }

    /// How many bytes one batch may hold, so that it does not burst.
    pub(super) fn batch(&self) -> u64 {
        self.pacing_rate().map_or(64 << 10, |rate| quantum(rate, self.mss() as u32))
    }

    /// What the path carries in a round trip, bytes: the scheduler's window.
    pub(super) fn window(&self) -> u64 {
        let cwnd = self.cc.cwnd();
        self.cc.pacing_rate().map_or(cwnd, |rate| {
            let bytes = rate.as_bps() as f64 / 8.0 * self.rtt.smoothed().as_secs_f64();
            cwnd.min(bytes as u64)
        })
    }

    /// Nothing waits to be sent here though, perhaps, something could be.
    pub(super) fn on_nothing_to_send(&mut self) {
        let in_flight = self.sent.in_flight();
        if !self.paced && in_flight + self.mss() <= self.cc.cwnd() {
            self.rate.on_app_limited(in_flight);
        }
    }

    /// A packet leaves.
    pub(super) fn on_sent(
        &mut self,
        now: Time,
        bytes: u32,
        eliciting: bool,
        items: Items,
        probes_size: bool,
    ) {
        let in_flight = self.sent.in_flight();
        if eliciting && in_flight == 0 {
            self.on_news(self.last_news.max(now));
        }
        self.unanswered += u32::from(eliciting);
        let stamp = self.rate.on_sent(now, u64::from(bytes), in_flight);
        let mut sent = Sent::new(now, bytes, eliciting, stamp, items);
        sent.probes_size = probes_size;
        self.sent.push(sent);
        self.counters.packets += 1;
        self.counters.bytes += u64::from(bytes);
        self.life.on_sent(u64::from(bytes));
        if !eliciting {
            return;
        }
        self.probes = self.probes.saturating_sub(1);
        if let Some(rate) = self.pacing_rate() {
            self.pacer.on_sent(now, bytes, rate, self.mss() as u32);
        }
        let in_flight = self.sent.in_flight();
        self.cc.on_sent(now, &SentSample { bytes, in_flight, retransmission: false });
    }

    /// The packet that has just left bears a mark.
    pub(super) fn on_marked(&mut self, now: Time) {
        self.sent.mark_last();
        self.ecn.on_sent(now, self.pto());
    }

    /// Leaves a number out.
    pub(super) fn skip_number(&mut self, now: Time) {
        let in_flight = self.sent.in_flight();
        let stamp = self.rate.on_sent(now, 0, in_flight.max(1));
        self.sent.skip(stamp, now);
    }

    /// An ACK frame for this path; `delay` as the peer told it, `indirect` if it came by another path.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ranges: impl Iterator<Item = RangeInclusive<u64>>,
        (delay, indirect): (Span, bool),
        ecn: Option<EcnCounts>,
        news: &mut News,
    ) -> Result<(), NeverSent> {
        let in_flight = self.sent.in_flight();
        let before = self.sent.largest_acknowledged();
        let rate = &mut self.rate;
        self.sent.on_ack(now, ranges, &mut |stamp| rate.on_delivered(stamp), news)?;
        let Some(largest) = news.largest_acknowledged else { return Ok(()) };
        let rtt = news.sent_at.filter(|_| news.eliciting).map(|at| now.since(at));
        if let Some(sample) = rtt {
            self.rtt.on_sample(now, sample, delay.min(self.asked.delay), indirect);
            if self.start_rate.is_none() {
                self.pace_the_start();
            }
        }
        self.on_news(now);
        self.pto_count = 0;
        self.probes = 0;
        self.detect_losses(now, news);
        let newest = self.sent.largest_acknowledged() > before;
        let marked = self.ecn.on_ack(ecn, news.marked, newest);
        self.tell_congestion_control(now, (in_flight, largest), rtt, marked, news);
        self.counters.acknowledged += news.delivered;
        self.counters.lost = self.counters.lost.saturating_sub(news.spurious);
        self.ask_for_acks(now);
        Ok(())
    }

    /// Packets overtaken for too long are lost; the caller passes their items on.
    pub(super) fn detect_losses(&mut self, now: Time, news: &mut News) {
        let rtt = &self.rtt;
        let before = news.lost;
        self.sent.detect_losses(now, |eighths| rtt.loss_delay(eighths), news);
        let lost = news.lost - before;
        self.lost_untold += lost;
        self.counters.lost += lost;
        if news.size_lost {
            self.size.on_lost(now);
        }
        if let Some(size) = news.size_arrived {
            self.size.on_arrived(size);
        }
        let keep = Span::from_nanos(2 * self.pto().as_nanos());
        self.sent.forget(now, keep);
        if lost > 0 {
            self.on_loss(now, news);
        }
    }

    fn on_loss(&mut self, now: Time, news: &News) {
        let new = news.largest_lost.is_some_and(|number| number >= self.recovered_to);
        if new {
            self.recovered_to = self.sent.next_number();
            self.recovery = Some(self.recovered_to);
            self.counters.recoveries += 1;
            let in_flight = self.sent.in_flight() + news.lost;
            self.cc.on_loss(now, &LossSample { in_flight, ece: false });
        }
    }

    fn tell_congestion_control(
        &mut self,
        now: Time,
        (in_flight, largest): (u64, u64),
        rtt: Option<Span>,
        marked: bool,
        news: &News,
    ) {
        let lost = std::mem::take(&mut self.lost_untold);
        let total = (news.delivered + lost) as f64;
        if total > 0.0 {
            let weight = (total / (100.0 * self.mss() as f64)).min(1.0);
            self.loss_share += weight * (lost as f64 / total - self.loss_share);
        }
        let rate = self.rate.sample(now, (news.delivered, lost), rtt);
        let per_ack = self.cc.ecn_feedback() == EcnFeedback::PerAck;
        if self.recovery.is_some_and(|from| largest >= from) {
            self.recovery = None;
            self.cc.on_recovered(now);
        }
        let cwnd_limited = self.limited_at.is_some_and(|at| now.since(at) <= self.rtt.smoothed());
        let sample = AckSample {
            acked: news.delivered,
            delivered: news.delivered,
            lost,
            ece: marked && per_ack,
            rate,
            in_flight,
            rtt,
            srtt: self.rtt.is_measured().then(|| self.rtt.smoothed()),
            cwnd_limited,
            in_fast_recovery: self.recovery.is_some(),
        };
        self.cc.on_ack(now, &sample);
        if marked && !per_ack && largest >= self.recovered_to {
            self.recovered_to = self.sent.next_number();
            self.cc.on_ecn(now, &EcnSample { in_flight: self.sent.in_flight() });
        }
    }

    /// Asks for another ACK frequency when what it should be is a quarter off (docs/rudp.md section 5).
    fn ask_for_acks(&mut self, now: Time) {
        let Some(least) = self.rtt.least() else { return };
        if self.asked.sequence > 0 && now.since(self.asked_at) < self.rtt.smoothed() {
            return;
        }
        let delay = Span::from_nanos(least.as_nanos() / 5)
            .clamp(Span::from_millis(1), Span::from_millis(8));
        let packets = (self.cc.cwnd() / self.mss() / 8).clamp(2, 64);
        let reordering = if self.loss_share > 0.01 { 0 } else { 3 };
        let off = |new: u64, old: u64| new.abs_diff(old) * 4 > old;
        let differs = off(packets, self.asked.packets)
            || off(delay.as_nanos(), self.asked.delay.as_nanos())
            || reordering != self.asked.reordering;
        if self.asked.sequence == 0 || differs {
            let sequence = self.asked.sequence + 1;
            self.asked = AckRequest { sequence, packets, delay, reordering };
            self.asked_at = now;
            self.ask = true;
        }
    }

    /// The peer hears nothing here.
    pub(super) fn is_silent_there(&self) -> bool {
        self.status == PathStatus::Silent
    }

    /// One of the ends wants it used only if no other is.
    pub(super) fn is_spare(&self) -> bool {
        self.spare_here || self.status == PathStatus::Spare
    }

    /// For reports.
    pub(super) fn stats(&self) -> super::connection::PathStats {
        super::connection::PathStats {
            id: self.id,
            addrs: self.addrs,
            state: self.life.state(),
            packets: self.counters.packets,
            bytes: self.counters.bytes,
            bytes_received: self.counters.bytes_received,
            content: self.counters.content,
            lost: self.counters.lost,
            in_flight: self.sent.in_flight(),
            srtt: self.rtt.is_measured().then(|| self.rtt.smoothed()),
            least_rtt: self.rtt.least(),
            cwnd: self.cc.cwnd(),
            rate: self.cc.pacing_rate(),
            datagram: self.size.current(),
        }
    }

    /// Whether packets are lost often enough that the end of a transfer is worth copies.
    pub(super) fn is_lossy(&self) -> bool {
        self.loss_share > LOSSY_SHARE || self.pto_count > 0
    }
}

fn controller(
    algorithm: &acklab_core::cc::Algorithm,
    mss: usize,
    window: u32,
    seed: u64,
) -> Controller {
    algorithm.controller(&Start {
        mss: mss as u32,
        initial_window: u64::from(window) * mss as u64,
        initial_ssthresh: u64::MAX,
        seed,
    })
}

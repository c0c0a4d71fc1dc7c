//! Loss detection of one path (RFC 9002 sections 5 and 6; docs/rudp.md section 4): what was sent, the
//! round trip, the probe time-out, and since when the path has been silent.

use std::ops::RangeInclusive;

use super::config::INITIAL_RTT;
use super::protect::Entropy;
use super::rtt::Rtt;
use super::sent::{Items, NeverSent, News, Sent, SentPackets};
use acklab_core::delivery_rate::Stamp;
use acklab_core::time::{Span, Time};

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

/// Numbers left out are so far apart at most; half of it on average.
const SKIP_SPAN: u16 = 2048;

/// An ACK that newly acknowledges something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// The largest number that it newly acknowledges.
    pub(super) largest: u64,
    /// No number as large was acknowledged before.
    pub(super) newest: bool,
    /// The round trip, if it shows one.
    pub(super) rtt: Option<Span>,
}

/// The state of one path.
#[derive(Debug)]
pub(super) struct LossDetection {
    sent: SentPackets,
    /// The next number to be left out.
    skip_at: u64,
    rtt: Rtt,
    /// Time-outs in a row without an answer, and probes that may leave past the window.
    timeouts: u32,
    probes: u32,
    timed_out_at: Time,
    /// Bytes lost between ACKs, to be told with the next one.
    untold: u64,
    /// The share of lost bytes, over about the last 100 packets.
    share: f64,
    /// The last ACK with news, or the departure that ended a silence.
    last_news: Time,
    /// Packets sent since then that ask for an answer.
    unanswered: u32,
}

impl LossDetection {
    pub(super) fn new(now: Time) -> Self {
        Self {
            sent: SentPackets::default(),
            skip_at: 0,
            rtt: Rtt::new(INITIAL_RTT),
            timeouts: 0,
            probes: 0,
            timed_out_at: Time::ZERO,
            untold: 0,
            share: 0.0,
            last_news: now,
            unanswered: 0,
        }
    }

    /// The path may lead elsewhere now.
    pub(super) fn restart(&mut self, now: Time) {
        self.rtt.forget_least();
        self.timeouts = 0;
        self.probes = 0;
        self.on_news(now);
    }

    /// The handshake took so long.
    pub(super) fn on_handshake_rtt(&mut self, now: Time, rtt: Span) {
        self.rtt.on_sample(now, rtt, Span::ZERO, true);
        self.on_news(now);
    }

    pub(super) const fn sent(&self) -> &SentPackets {
        &self.sent
    }

    pub(super) const fn sent_mut(&mut self) -> &mut SentPackets {
        &mut self.sent
    }

    pub(super) const fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// Probes that may leave past the window.
    pub(super) const fn probes(&self) -> u32 {
        self.probes
    }

    /// The share of lost bytes.
    pub(super) const fn share(&self) -> f64 {
        self.share
    }

    /// Whether packets are lost often enough that the end of a transfer is worth copies.
    pub(super) fn is_lossy(&self) -> bool {
        self.share > LOSSY_SHARE || self.timeouts > 0
    }

    /// When the probe time-out expires, `pto` without back-off.
    pub(super) fn pto_at(&self, pto: Span) -> Option<Time> {
        let last = self.sent.last_eliciting()?.max(self.timed_out_at);
        let doubled = pto.as_nanos() << self.timeouts.min(16);
        Some(last + Span::from_nanos(doubled).min(PTO_MOST))
    }

    /// The probe time-out expired: probes leave, whatever the window says. Whether congestion is
    /// persistent from now on.
    pub(super) fn on_pto(&mut self, now: Time) -> bool {
        self.timeouts += 1;
        self.probes = PROBES;
        self.timed_out_at = now;
        self.timeouts == PERSISTENT
    }

    /// Something was acknowledged at `at`, or nothing was outstanding until then.
    fn on_news(&mut self, at: Time) {
        self.last_news = at;
        self.unanswered = 0;
    }

    /// Since when the path has been silent, where something is outstanding. While the peer's packets
    /// come, the last of them at `last_heard`, a few of ours without an answer say little: on a lossy path
    /// each may be lost, or its ACK.
    pub(super) fn silent_since(&self, last_heard: Time) -> Option<Time> {
        let silent = self.sent.oldest_outstanding()?.max(self.last_news);
        let weak = self.unanswered < EVIDENCE;
        Some(if weak { silent.max(last_heard) } else { silent })
    }

    /// The number of the next packet. Now and then one is left out, with `skips`: an acknowledgment of it
    /// is a lie.
    pub(super) fn next_number(&mut self, now: Time, skips: Option<&mut dyn Entropy>) -> u64 {
        let number = self.sent.next_number();
        let Some(entropy) = skips.filter(|_| number >= self.skip_at) else { return number };
        if self.skip_at > 0 {
            self.sent.skip(now);
        }
        let mut random = [0; 2];
        entropy.fill(&mut random);
        self.skip_at = number + 1 + u64::from(u16::from_be_bytes(random) % SKIP_SPAN);
        self.sent.next_number()
    }

    /// A packet leaves.
    pub(super) fn on_sent(&mut self, now: Time, sent: Sent) {
        if sent.eliciting {
            if self.sent.in_flight() == 0 {
                self.on_news(self.last_news.max(now));
            }
            self.unanswered += 1;
            self.probes = self.probes.saturating_sub(1);
        }
        self.sent.push(sent);
    }

    /// A packet left that asks for no answer, so that perhaps none comes: old records go now. They are kept for `keep`.
    pub(super) fn forget(&mut self, now: Time, keep: Span) {
        self.sent.forget(now, keep);
    }

    /// An ACK frame of `ranges`, held back for `delay` by the peer; `indirect`: by another path.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ranges: impl Iterator<Item = RangeInclusive<u64>>,
        (delay, indirect): (Span, bool),
        stamps: &mut impl FnMut(Stamp),
        news: &mut News,
    ) -> Result<Option<Heard>, NeverSent> {
        let before = self.sent.largest_acknowledged();
        self.sent.on_ack(now, ranges, stamps, news)?;
        let told = news.tally();
        let Some(largest) = told.largest_acknowledged else { return Ok(None) };
        let rtt = told.sent_at.filter(|_| told.eliciting).map(|at| now.since(at));
        if let Some(sample) = rtt {
            self.rtt.on_sample(now, sample, delay, indirect);
        }
        self.on_news(now);
        self.timeouts = 0;
        self.probes = 0;
        let newest = self.sent.largest_acknowledged() > before;
        Ok(Some(Heard { largest, newest, rtt }))
    }

    /// Packets overtaken for too long, or, but for `by_time`, by too many, are lost; bytes of them. Records are kept for `keep`.
    pub(super) fn detect(&mut self, now: Time, keep: Span, by_time: bool, news: &mut News) -> u64 {
        let rtt = &self.rtt;
        let before = news.tally().lost;
        self.sent.detect_losses(now, |eighths| rtt.loss_delay(eighths), by_time, news);
        self.sent.forget(now, keep);
        let lost = news.tally().lost - before;
        self.untold += lost;
        lost
    }

    /// Bytes lost since the ACK before this one, which delivered so many; a full packet has `mss`.
    pub(super) fn take_lost(&mut self, delivered: u64, mss: u64) -> u64 {
        let lost = std::mem::take(&mut self.untold);
        let total = (delivered + lost) as f64;
        if total > 0.0 {
            let weight = (total / (100.0 * mss as f64)).min(1.0);
            self.share += weight * (lost as f64 / total - self.share);
        }
        lost
    }

    /// Of the packets whose items `fit`, the one that left longest ago and may be copied: half a round
    /// trip after it or its last copy left, or at once where `urgent`.
    pub(super) fn ripest(
        &self,
        now: Time,
        urgent: bool,
        fit: impl Fn(&Items) -> bool,
    ) -> Option<(Time, u64)> {
        let half = Span::from_nanos(self.rtt.smoothed().as_nanos() / 2);
        self.sent.ripest(now, (!urgent).then_some(half), fit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(40);

    /// Packets 0 to 9 leave together, and only the last is acknowledged: what is lost at once, and when the rest will be.
    fn overtaken(by_time: bool) -> (u64, Option<Span>) {
        let (mut detection, mut news) = (LossDetection::new(Time::ZERO), News::default());
        for _ in 0..10 {
            detection.on_sent(Time::ZERO, Sent::new(Time::ZERO, 1000, true, None, Items::None));
        }
        let now = Time::ZERO + RTT;
        let told = detection.on_ack(
            now,
            std::iter::once(9..=9),
            (Span::ZERO, false),
            &mut |_| {},
            &mut news,
        );
        assert!(told.is_ok());
        let lost = detection.detect(now, Span::from_secs(1), by_time, &mut news) / 1000;
        (lost, detection.sent().loss_at().map(|at| at.since(now)))
    }

    #[test]
    fn three_later_packets_make_a_loss_but_where_time_alone_counts() {
        // RFC 9002 section 6.1: kPacketThreshold is 3, kTimeThreshold 9/8 of a round trip.
        assert_eq!(overtaken(false), (7, Some(RTT / 8)));
        assert_eq!(overtaken(true), (0, Some(RTT / 8)));
    }
}

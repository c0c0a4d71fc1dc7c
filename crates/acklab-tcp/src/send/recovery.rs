//! Loss: when data is taken for lost, which of it is sent again, and how much counts as being on the way.
//!
//! - with SACK: RFC 6675, its `pipe`, `NextSeg` rules 1 to 4 and the rescue retransmission;
//! - with RACK: the same, and retransmissions that are lost in their turn ([`super::resent`]);
//! - without: fast retransmit and NewReno (RFC 6582), where duplicate ACKs inflate the window. The
//!   inflation is kept apart from cwnd and taken off the pipe, which is the same inequality;
//! - classic Reno (RFC 5681 section 3.2, 4.3BSD-Reno): the same up to the first ACK of new data, which
//!   ends recovery; nothing keeps the duplicates of one window from beginning another;
//! - after a time-out: all but what SACK reported (RFC 6675 section 5.1) counts as lost and is sent again
//!   as the window allows (RFC 5681 section 3.1).
//!
//! RFC 6675 lets the rescue leave at once and even if its bytes were sent again already; we wait for the first
//! partial ACK and take only bytes sent once, for until then the tail's own SACK is still on its way.
//!
//! The time-out is RFC 6298's. Round trips are those of the newest segment that an ACK covers, where nothing
//! below it was sent twice (Karn's algorithm, its section 3); a timestamp's echo serves where Karn forbids.
//!
//! What arrived is counted once, as the window counts it: with SACK when it is first reported; without, a
//! duplicate counts as one segment on account, which the next cumulative ACKs settle (of each of them one
//! segment, the hole it filled, was not). Once SACKs were thrown away bytes may count twice.
//!
//! After a second time-out in a row the scoreboard is thrown away, since the peer may have reneged
//! (RFC 2018 section 8). Left out: F-RTO, DSACK undo.

use super::queue::Queue;
use super::reduction::Reduction;
use super::resent::Resent;
use crate::config::{Loss, LossRecovery, Rto};
use acklab_core::time::Span;

/// What the sender is doing about loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing.
    Open,
    /// Fast recovery.
    Fast,
    /// Recovery from a time-out.
    Timeout,
}

/// A stretch to send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Again {
    pub(super) start: u64,
    pub(super) end: u64,
    rule: Rule,
}

impl Again {
    /// A segment that came back.
    pub(super) const fn returned(start: u64, end: u64) -> Self {
        Self { start, end, rule: Rule::Returned }
    }

    /// Whether it leaves whatever the window.
    pub(super) const fn is_forced(&self) -> bool {
        matches!(self.rule, Rule::Forced | Rule::Returned)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The first segment of a recovery, or of a partial ACK: whatever the window.
    Forced,
    /// `NextSeg` rules 1 and 3.
    Hole,
    /// `NextSeg` rule 4.
    Rescue,
    /// A switch sent it back.
    Returned,
}

/// The sender's recovery state.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    phase: Phase,
    /// `Sack` and `Rack` only where it was negotiated.
    rules: Loss,
    /// Highest offset sent when the last recovery began: RFC 6675's RecoveryPoint, RFC 6582's
    /// recover.
    point: u64,
    /// Sent again in this recovery, up to here (HighRxt).
    high_rxt: u64,
    resent: Resent,
    /// The first unacknowledged segment leaves whatever the window.
    forced: bool,
    rescued: bool,
    /// The cumulative ACK when fast recovery began.
    entry: u64,
    dup_acks: u32,
    /// Bytes that duplicate ACKs say have left the network (without SACK).
    inflation: u64,
    /// Everything unmarked below has been counted as lost.
    counted: u64,
    /// Lost without SACK's word for it and not told yet, bytes.
    untold: u64,
    /// No RTT is measured below (Karn's algorithm): highest offset sent twice.
    karn_below: u64,
    account: Account,
    /// Fast recovery under way that is proportional.
    reduction: Option<Reduction>,
}

impl Recovery {
    pub(super) fn new(config: Loss) -> Self {
        let rules = Loss { dup_thresh: config.dup_thresh.max(1), ..config };
        Self {
            phase: Phase::Open,
            rules,
            point: 0,
            high_rxt: 0,
            resent: Resent::default(),
            forced: false,
            rescued: false,
            entry: 0,
            dup_acks: 0,
            inflation: 0,
            counted: 0,
            untold: 0,
            karn_below: 0,
            account: Account::default(),
            reduction: None,
        }
    }

    /// SACK was negotiated, or not.
    pub(super) fn use_sack(&mut self, sack: bool) {
        self.rules.recovery = match (sack, self.rules.recovery) {
            (true, LossRecovery::Rack) => LossRecovery::Rack,
            (true, _) => LossRecovery::Sack,
            (false, LossRecovery::Reno) => LossRecovery::Reno,
            (false, _) => LossRecovery::NewReno,
        };
    }

    fn sack(&self) -> bool {
        self.rules.recovery.is_selective()
    }

    /// Whether the order of time tells of losses.
    pub(super) fn is_timed(&self) -> bool {
        self.rules.recovery == LossRecovery::Rack
    }

    fn is_classic(&self) -> bool {
        self.rules.recovery == LossRecovery::Reno
    }

    /// What the sender is doing about loss.
    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Fast recovery has begun: the window is reduced from `before` to `threshold`.
    pub(super) fn reduce(&mut self, before: u64, threshold: u64, queue: &Queue) {
        if self.rules.proportional && self.sack() {
            self.reduction = Some(Reduction::new(before, threshold, queue.mss()));
        }
    }

    /// So much arrived; `clean`: the cumulative ACK moved and nothing more was found lost.
    pub(super) fn on_delivered(&mut self, news: u64, clean: bool, queue: &Queue) {
        let pipe = self.pipe(queue);
        if let Some(reduction) = self.reduction.as_mut().filter(|_| self.phase == Phase::Fast) {
            reduction.on_ack(news, pipe, clean);
        }
    }

    /// Something of that weight left.
    pub(super) fn on_sent(&mut self, weight: u64) {
        if let Some(reduction) = self.reduction.as_mut().filter(|_| self.phase == Phase::Fast) {
            reduction.on_sent(weight);
        }
    }

    /// How much may be on the way in fast recovery, where that is not the congestion window.
    pub(super) fn window(&self) -> Option<u64> {
        self.reduction.filter(|_| self.phase == Phase::Fast).map(|reduction| reduction.window())
    }

    /// What is on the way (RFC 6675 `pipe`; FlightSize less inflation without SACK), as the window
    /// counts it; what came back keeps its place.
    pub(super) fn pipe(&self, queue: &Queue) -> u64 {
        let (una, nxt) = (queue.una(), queue.nxt());
        let pipe = match self.phase {
            Phase::Timeout => {
                let point = self.point.clamp(una, nxt);
                queue.unmarked(una, self.high_rxt.min(point)) + queue.unmarked(point, nxt)
            }
            _ if queue.is_unmarked() => queue.flight_size().saturating_sub(self.inflation),
            phase => {
                let lost = queue.lost_below(self.rules.dup_thresh).max(una);
                let again = if phase == Phase::Fast { self.high_rxt } else { una };
                queue.unmarked(lost, nxt) + queue.unmarked(una, again.min(nxt))
            }
        };
        let pipe = pipe.saturating_sub(self.resent.weight(queue));
        pipe + queue.weigh_returned(|offset| self.is_in_pipe(offset, queue))
    }

    /// Extra bytes that limited transmit allows (RFC 3042; with SACK the pipe has it already).
    pub(super) fn limited_transmit(&self, mss: u32) -> u64 {
        if self.rules.limited_transmit && self.phase == Phase::Open && !self.sack() {
            u64::from(self.dup_acks.min(2)) * u64::from(mss)
        } else {
            0
        }
    }

    /// What an ACK up to `ack` is the first to report, `acked` of it cumulatively and `sacked` by blocks that
    /// the queue knows already, while it knows nothing of the advance.
    pub(super) fn newly_delivered(
        &mut self,
        ack: u64,
        acked: u64,
        sacked: u64,
        queue: &Queue,
    ) -> u64 {
        let una = queue.una();
        if self.sack() && queue.is_unmarked() {
            acked
        } else if self.sack() {
            sacked + queue.unmarked(una, ack)
        } else if ack > una {
            self.account.on_advance(acked, queue.mss())
        } else {
            self.account.on_duplicate(queue.flight_size(), queue.mss())
        }
    }

    /// The cumulative ACK moved, by so much as the window counts it; returns whether recovery ended.
    pub(super) fn on_advance(&mut self, acked: u64, queue: &Queue) -> bool {
        let una = queue.una();
        self.dup_acks = 0;
        self.high_rxt = self.high_rxt.max(una);
        if self.phase == Phase::Open {
            self.inflation = 0;
            return false;
        }
        if una >= self.point || (self.is_classic() && self.phase == Phase::Fast) {
            self.phase = Phase::Open;
            self.inflation = 0;
            self.forced = false;
            self.resent.reset();
            return true;
        }
        if self.phase == Phase::Fast && !self.sack() {
            // RFC 6582 section 3.2, step 3: a partial ACK. Send the next hole again, deflate by the
            // amount acknowledged and add back one segment.
            self.forced = true;
            let mss = queue.mss();
            self.untold += mss;
            self.inflation = self.inflation.saturating_sub(acked);
            if acked >= mss {
                self.inflation += mss;
            }
        }
        false
    }

    /// A duplicate ACK came: without SACK by RFC 5681's definition, with SACK one that brought news.
    /// Returns whether fast recovery begins.
    pub(super) fn on_duplicate(&mut self, queue: &Queue) -> bool {
        self.dup_acks = self.dup_acks.saturating_add(1);
        match self.phase {
            Phase::Fast if !self.sack() => self.inflation += queue.mss(),
            Phase::Open if self.is_loss(queue) => {
                self.enter_fast(queue);
                return true;
            }
            _ => {}
        }
        false
    }

    /// RFC 6675 section 5, steps 1 and 2; RFC 6582 section 3.2, step 2.
    fn is_loss(&self, queue: &Queue) -> bool {
        let una = queue.una();
        let enough = self.dup_acks >= self.rules.dup_thresh
            || (self.sack() && queue.lost_below(self.rules.dup_thresh) > una);
        enough && (self.is_classic() || self.point == 0 || una >= self.point)
    }

    fn enter_fast(&mut self, queue: &Queue) {
        self.phase = Phase::Fast;
        self.reduction = None;
        self.point = queue.nxt();
        self.high_rxt = queue.una();
        self.resent.reset();
        self.forced = true;
        self.rescued = false;
        self.entry = queue.una();
        if !self.sack() {
            self.untold += queue.mss();
            self.inflation = u64::from(self.rules.dup_thresh) * queue.mss();
        }
    }

    /// The retransmission timer expired (RFC 6298 section 5.4); `again`: not for the first time.
    /// Returns how much it is the first to call lost.
    pub(super) fn on_timeout(&mut self, again: bool, queue: &mut Queue) -> u64 {
        let (una, nxt) = (queue.una(), queue.nxt());
        let lost = queue.unmarked(self.counted.max(una), nxt);
        self.counted = self.counted.max(nxt);
        if again {
            queue.forget_marks();
        }
        self.phase = Phase::Timeout;
        self.point = nxt;
        self.high_rxt = una;
        self.resent.reset();
        self.forced = true;
        self.rescued = true;
        self.dup_acks = 0;
        self.inflation = 0;
        lost
    }

    /// What was inferred lost since the last call: with SACK what the scoreboard shows (`IsLost`), without
    /// one segment for each that is sent again. A time-out counts all that is out. What is sent again may be lost
    /// again: `reordering` is how much earlier it has to have left than what arrived.
    pub(super) fn take_lost(&mut self, reordering: Span, queue: &Queue) -> u64 {
        if self.is_timed() && self.phase != Phase::Open {
            self.untold += self.resent.update(self.high_rxt.min(queue.nxt()), reordering, queue);
        }
        let mut lost = std::mem::take(&mut self.untold).min(queue.flight_size());
        if !queue.is_unmarked() {
            let below = queue.lost_below(self.rules.dup_thresh).min(queue.nxt());
            lost += queue.unmarked(self.counted.max(queue.una()), below);
            self.counted = self.counted.max(below);
        }
        lost
    }

    /// Whether [`Recovery::pipe`] counts the unmarked byte at `offset`, had it not come back.
    fn is_in_pipe(&self, offset: u64, queue: &Queue) -> bool {
        match self.phase {
            Phase::Timeout => offset < self.high_rxt || offset >= self.point,
            _ if queue.is_unmarked() => true,
            phase => {
                offset >= queue.lost_below(self.rules.dup_thresh)
                    || (phase == Phase::Fast && offset < self.high_rxt)
            }
        }
    }

    /// What ends at `end` leaves a second time, or may.
    pub(super) fn on_sent_twice(&mut self, end: u64) {
        self.karn_below = self.karn_below.max(end);
    }

    /// Whether everything from `una` on left once (Karn's algorithm).
    pub(super) const fn left_once(&self, una: u64) -> bool {
        una >= self.karn_below
    }

    /// What to send again next, at most `mss` bytes, before new data: forced, rule 1.
    #[inline]
    pub(super) fn next_lost(&mut self, mss: u32, queue: &Queue) -> Option<Again> {
        while let Some(lost) = self.find_lost(mss, queue) {
            match queue.returned_until(lost.start) {
                Some(end) => self.on_filled(end),
                None => return Some(lost),
            }
        }
        None
    }

    /// What to send again when there is no new data to send: `NextSeg` rules 3 and 4.
    #[inline]
    pub(super) fn next_doubtful(&mut self, mss: u32, queue: &Queue) -> Option<Again> {
        while let Some(doubtful) = self.find_doubtful(mss, queue) {
            match queue.returned_until(doubtful.start) {
                Some(end) => self.on_filled(end),
                None => return Some(doubtful),
            }
        }
        None
    }

    #[inline]
    fn find_lost(&self, mss: u32, queue: &Queue) -> Option<Again> {
        let (una, nxt) = (queue.una(), queue.nxt());
        if self.phase == Phase::Open || una >= nxt {
            return None;
        }
        let bounded = |(start, end): (u64, u64), rule| Again {
            start,
            end: end.min(start + u64::from(mss)),
            rule,
        };
        if self.forced {
            return Some(bounded(queue.next_hole(una, nxt)?, Rule::Forced));
        }
        if let Some(hole) = self.resent.pending(queue) {
            return Some(bounded(hole, Rule::Hole));
        }
        let limit = match self.phase {
            Phase::Timeout => self.point,
            _ if self.sack() => queue.lost_below(self.rules.dup_thresh),
            _ => 0,
        };
        let hole = queue.next_hole(self.high_rxt.max(una), limit.min(nxt))?;
        Some(bounded(hole, Rule::Hole))
    }

    #[inline]
    fn find_doubtful(&self, mss: u32, queue: &Queue) -> Option<Again> {
        if self.phase != Phase::Fast || !self.sack() {
            return None;
        }
        let (una, nxt, mss) = (queue.una(), queue.nxt(), u64::from(mss));
        let limit = queue.highest_marked().unwrap_or(0).min(nxt);
        if let Some((start, end)) = queue.next_hole(self.high_rxt.max(una), limit) {
            return Some(Again { start, end: end.min(start + mss), rule: Rule::Hole });
        }
        if self.rescued || una == self.entry {
            return None;
        }
        let (start, end) = queue.last_hole(self.high_rxt.max(una), self.point.min(nxt))?;
        Some(Again { start: start.max(end.saturating_sub(mss)), end, rule: Rule::Rescue })
    }

    pub(super) fn on_resent(&mut self, sent: Again) {
        self.on_sent_twice(sent.end);
        match sent.rule {
            Rule::Rescue => self.rescued = true,
            Rule::Returned => {}
            Rule::Forced | Rule::Hole => self.on_filled(sent.end),
        }
    }

    /// What is missing below `end` left again, or is for a segment that came back to bring.
    fn on_filled(&mut self, end: u64) {
        self.forced = false;
        self.high_rxt = self.high_rxt.max(end);
        self.resent.on_filled(end);
    }
}

/// Deliveries that duplicate ACKs showed and no cumulative ACK has confirmed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account(u64);

impl Account {
    /// A duplicate ACK with `in_flight` unacknowledged; returns what it delivered.
    pub(super) fn on_duplicate(&mut self, in_flight: u64, mss: u64) -> u64 {
        // The segment that is missing is not among them.
        let delivered = in_flight.saturating_sub(mss + self.0).min(mss);
        self.0 += delivered;
        delivered
    }

    /// `acked` is acknowledged; returns what of it had not been counted.
    pub(super) fn on_advance(&mut self, acked: u64, mss: u64) -> u64 {
        let delivered = acked.saturating_sub(self.0).max(acked.min(mss));
        self.0 = self.0.saturating_sub(acked - delivered);
        delivered
    }
}

/// The retransmission time-out (RFC 6298): SRTT, RTTVAR and the back-off.
#[derive(Clone, Copy, Debug)]
pub(super) struct RtoEstimator {
    bounds: Rto,
    measured: Option<Measured>,
    backoffs: u32,
    /// Expiries since the last progress.
    attempts: u32,
    /// In force.
    rto: Span,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    srtt: Span,
    rttvar: Span,
    least: Span,
}

impl RtoEstimator {
    /// Nothing measured yet: the initial time-out holds (section 2.1).
    pub(super) fn new(bounds: Rto) -> Self {
        let rto = bounds.initial.min(bounds.max);
        Self { bounds, measured: None, backoffs: 0, attempts: 0, rto }
    }

    /// A round trip was measured (sections 2.2 and 2.3); it ends the back-off.
    pub(super) fn on_sample(&mut self, rtt: Span) {
        self.backoffs = 0;
        let r = rtt.as_nanos();
        self.measured = Some(match self.measured {
            None => Measured { srtt: rtt, rttvar: rtt / 2, least: rtt },
            Some(m) => {
                let (srtt, rttvar) = (m.srtt.as_nanos(), m.rttvar.as_nanos());
                // alpha = 1/8, beta = 1/4; RTTVAR first, with the old SRTT.
                let rttvar = rttvar - rttvar / 4 + srtt.abs_diff(r) / 4;
                let srtt = srtt - srtt / 8 + r / 8;
                Measured {
                    srtt: Span::from_nanos(srtt),
                    rttvar: Span::from_nanos(rttvar),
                    least: m.least.min(rtt),
                }
            }
        });
        self.update();
    }

    /// The timer expired: twice the time-out from now on (section 5.5).
    pub(super) fn on_timeout(&mut self) {
        self.backoffs = self.backoffs.saturating_add(1);
        self.attempts += 1;
        self.update();
    }

    /// The peer acknowledged something new.
    pub(super) const fn on_progress(&mut self) {
        self.attempts = 0;
    }

    /// Expiries since the last progress.
    pub(super) const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The SYN had to be sent again: the initial time-out is 3 s once data flows (section 5.7).
    pub(super) fn on_syn_timeout(&mut self) {
        self.bounds.initial = self.bounds.initial.max(Span::from_secs(3));
        self.backoffs = 0;
        self.update();
    }

    /// The smoothed round trip.
    pub(super) fn srtt(&self) -> Option<Span> {
        self.measured.map(|m| m.srtt)
    }

    /// The least round trip; zero before the first.
    pub(super) fn least_rtt(&self) -> Span {
        self.measured.map_or(Span::ZERO, |m| m.least)
    }

    /// The time-out in force.
    pub(super) const fn rto(&self) -> Span {
        self.rto
    }

    /// Sections 2.3, 2.4 and 5.5.
    fn update(&mut self) {
        let bounds = &self.bounds;
        let base = match self.measured {
            None => bounds.initial,
            Some(m) => {
                let mut variance = bounds.granularity.max(m.rttvar * 4);
                if bounds.min_on_variance {
                    variance = variance.max(bounds.min);
                }
                (m.srtt + variance + bounds.slop).max(bounds.min)
            }
        };
        let factor = 1_u64 << self.backoffs.min(40);
        self.rto = (base * factor).min(bounds.max);
    }
}

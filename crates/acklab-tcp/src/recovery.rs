//! Loss recovery: which bytes are sent again, and how much counts as being on the way.
//!
//! - with SACK: RFC 6675, its `pipe`, `NextSeg` rules 1 to 4 and the rescue retransmission;
//! - without: fast retransmit and NewReno (RFC 6582), where duplicate ACKs inflate the window. The
//!   inflation is kept apart from cwnd and taken off the pipe, which is the same inequality;
//! - classic Reno (RFC 5681 section 3.2, 4.3BSD-Reno): the same up to the first ACK of new data, which
//!   ends recovery; nothing keeps the duplicates of one window from beginning another;
//! - after a time-out: everything unacknowledged counts as lost and is sent again as the window
//!   allows (RFC 5681 section 3.1), skipping what SACK reported (RFC 6675 section 5.1).
//!
//! RFC 6675 lets the rescue leave at once and even if its bytes were sent again already; we wait for the
//! first partial ACK and take only bytes sent once, because until then the tail's own SACK is still on
//! its way.
//!
//! After a second time-out in a row the scoreboard is thrown away, since the peer may have reneged
//! (RFC 2018 section 8). Left out: F-RTO, DSACK undo, RACK.

use super::config::{Config, LossRecovery};
use super::flight::Flight;
use super::sack::Scoreboard;

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
    pub(super) fn is_forced(&self) -> bool {
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
    /// None of ours: a switch sent it back.
    Returned,
}

/// What an ACK did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Fast recovery begins.
    pub(super) entered: bool,
    /// Recovery ended.
    pub(super) left: bool,
}

/// The sender's recovery state.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    pub(super) phase: Phase,
    pub(super) board: Scoreboard,
    /// `Sack` only where it was negotiated.
    convention: LossRecovery,
    dup_thresh: u32,
    /// Highest offset sent when the last recovery began: RFC 6675's RecoveryPoint, RFC 6582's
    /// recover.
    point: u64,
    /// Sent again in this recovery, up to here (HighRxt).
    high_rxt: u64,
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
    pub(super) karn_below: u64,
}

impl Recovery {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            phase: Phase::Open,
            board: Scoreboard::default(),
            convention: config.recovery,
            dup_thresh: config.dup_thresh.max(1),
            point: 0,
            high_rxt: 0,
            forced: false,
            rescued: false,
            entry: 0,
            dup_acks: 0,
            inflation: 0,
            counted: 0,
            untold: 0,
            karn_below: 0,
        }
    }

    /// SACK was negotiated, or not.
    pub(super) fn use_sack(&mut self, sack: bool) {
        self.convention = match (sack, self.convention) {
            (true, _) => LossRecovery::Sack,
            (false, LossRecovery::Reno) => LossRecovery::Reno,
            (false, _) => LossRecovery::NewReno,
        };
    }

    fn sack(&self) -> bool {
        self.convention == LossRecovery::Sack
    }

    fn is_classic(&self) -> bool {
        self.convention == LossRecovery::Reno
    }

    /// What is on the way (RFC 6675 `pipe`; FlightSize less inflation without SACK), as the window
    /// counts it.
    pub(super) fn pipe(&self, una: u64, nxt: u64, flight: &Flight) -> u64 {
        let unmarked = |from, to| self.unmarked(from, to, flight);
        match self.phase {
            Phase::Timeout => {
                let point = self.point.clamp(una, nxt);
                unmarked(una, self.high_rxt.min(point)) + unmarked(point, nxt)
            }
            _ if self.board.is_empty() => flight.weigh_all(una, nxt).saturating_sub(self.inflation),
            phase => {
                let lost = self.lost_below(flight).max(una);
                let again = if phase == Phase::Fast { self.high_rxt } else { una };
                unmarked(lost, nxt) + unmarked(una, again.min(nxt))
            }
        }
    }

    fn unmarked(&self, from: u64, to: u64, flight: &Flight) -> u64 {
        self.board.unmarked(from, to, |left, right| flight.weigh(left, right))
    }

    fn lost_below(&self, flight: &Flight) -> u64 {
        self.board.lost_below(flight.mss, self.dup_thresh)
    }

    /// Extra bytes that limited transmit allows (RFC 3042; with SACK the pipe has it already).
    pub(super) fn limited_transmit(&self, mss: u32) -> u64 {
        if self.phase == Phase::Open && !self.sack() {
            u64::from(self.dup_acks.min(2)) * u64::from(mss)
        } else {
            0
        }
    }

    /// The cumulative ACK moved to `una`, by so much as the window counts it.
    pub(super) fn on_advance(&mut self, una: u64, acked: u64, flight: &Flight) -> Outcome {
        self.board.advance(una, |left, right| flight.weigh(left, right));
        self.dup_acks = 0;
        self.high_rxt = self.high_rxt.max(una);
        if self.phase == Phase::Open {
            self.inflation = 0;
            return Outcome::default();
        }
        if una >= self.point || (self.is_classic() && self.phase == Phase::Fast) {
            self.phase = Phase::Open;
            self.inflation = 0;
            self.forced = false;
            return Outcome { left: true, ..Outcome::default() };
        }
        if self.phase == Phase::Fast && !self.sack() {
            // RFC 6582 section 3.2, step 3: a partial ACK. Send the next hole again, deflate by the
            // amount acknowledged and add back one segment.
            self.forced = true;
            let mss = flight.mss;
            self.untold += mss;
            self.inflation = self.inflation.saturating_sub(acked);
            if acked >= mss {
                self.inflation += mss;
            }
        }
        Outcome::default()
    }

    /// A duplicate ACK came: without SACK by RFC 5681's definition, with SACK one that brought news.
    pub(super) fn on_duplicate(&mut self, una: u64, nxt: u64, flight: &Flight) -> Outcome {
        self.dup_acks = self.dup_acks.saturating_add(1);
        match self.phase {
            Phase::Fast if !self.sack() => self.inflation += flight.mss,
            Phase::Open if self.is_loss(una, flight) => {
                self.enter_fast(una, nxt, flight.mss);
                return Outcome { entered: true, ..Outcome::default() };
            }
            _ => {}
        }
        Outcome::default()
    }

    /// RFC 6675 section 5, steps 1 and 2; RFC 6582 section 3.2, step 2.
    fn is_loss(&self, una: u64, flight: &Flight) -> bool {
        let enough =
            self.dup_acks >= self.dup_thresh || (self.sack() && self.lost_below(flight) > una);
        enough && (self.is_classic() || self.point == 0 || una >= self.point)
    }

    fn enter_fast(&mut self, una: u64, nxt: u64, mss: u64) {
        self.phase = Phase::Fast;
        self.point = nxt;
        self.high_rxt = una;
        self.forced = true;
        self.rescued = false;
        self.entry = una;
        if !self.sack() {
            self.untold += mss;
            self.inflation = u64::from(self.dup_thresh) * mss;
        }
    }

    /// The retransmission timer expired (RFC 6298 section 5.4); `again`: not for the first time.
    /// Returns how much it is the first to call lost.
    pub(super) fn on_timeout(&mut self, una: u64, nxt: u64, again: bool, flight: &Flight) -> u64 {
        let lost = self.unmarked(self.counted.max(una), nxt, flight);
        self.counted = self.counted.max(nxt);
        if again {
            self.board.clear();
        }
        self.phase = Phase::Timeout;
        self.point = nxt;
        self.high_rxt = una;
        self.forced = true;
        self.rescued = true;
        self.dup_acks = 0;
        self.inflation = 0;
        lost
    }

    /// What was inferred lost since the last call: with SACK what the scoreboard shows (`IsLost`), without
    /// one segment for each that is sent again. A time-out counts all that is out.
    pub(super) fn take_lost(&mut self, una: u64, nxt: u64, flight: &Flight) -> u64 {
        let mut lost = std::mem::take(&mut self.untold).min(flight.weigh_all(una, nxt));
        if !self.board.is_empty() {
            let below = self.lost_below(flight).min(nxt);
            lost += self.unmarked(self.counted.max(una), below, flight);
            self.counted = self.counted.max(below);
        }
        lost
    }

    /// Whether [`Recovery::pipe`] counts the unmarked byte at `offset`.
    pub(super) fn is_in_pipe(&self, offset: u64, flight: &Flight) -> bool {
        match self.phase {
            Phase::Timeout => offset < self.high_rxt || offset >= self.point,
            _ if self.board.is_empty() => true,
            phase => {
                offset >= self.lost_below(flight)
                    || (phase == Phase::Fast && offset < self.high_rxt)
            }
        }
    }

    /// The hole in front of `end` is somebody else's to fill.
    pub(super) fn pass_over(&mut self, end: u64) {
        self.forced = false;
        self.high_rxt = self.high_rxt.max(end);
    }

    /// What to send again next, at most `mss` bytes. Offered before new data: forced, rule 1.
    pub(super) fn next_lost(&self, una: u64, nxt: u64, mss: u32, flight: &Flight) -> Option<Again> {
        if self.phase == Phase::Open || una >= nxt {
            return None;
        }
        let bounded = |(start, end): (u64, u64), rule| Again {
            start,
            end: end.min(start + u64::from(mss)),
            rule,
        };
        if self.forced {
            return Some(bounded(self.board.next_hole(una, nxt)?, Rule::Forced));
        }
        let limit = match self.phase {
            Phase::Timeout => self.point,
            _ if self.sack() => self.lost_below(flight),
            _ => 0,
        };
        let hole = self.board.next_hole(self.high_rxt.max(una), limit.min(nxt))?;
        Some(bounded(hole, Rule::Hole))
    }

    /// What to send again when there is no new data to send: `NextSeg` rules 3 and 4.
    pub(super) fn next_doubtful(&self, una: u64, nxt: u64, mss: u32) -> Option<Again> {
        if self.phase != Phase::Fast || !self.sack() {
            return None;
        }
        let mss = u64::from(mss);
        let limit = self.board.highest().unwrap_or(0).min(nxt);
        if let Some((start, end)) = self.board.next_hole(self.high_rxt.max(una), limit) {
            return Some(Again { start, end: end.min(start + mss), rule: Rule::Hole });
        }
        if self.rescued || una == self.entry {
            return None;
        }
        let (start, end) = self.board.last_hole(self.high_rxt.max(una), self.point.min(nxt))?;
        Some(Again { start: start.max(end.saturating_sub(mss)), end, rule: Rule::Rescue })
    }

    /// A stretch was sent again.
    pub(super) fn on_resent(&mut self, sent: Again) {
        self.karn_below = self.karn_below.max(sent.end);
        match sent.rule {
            Rule::Rescue => self.rescued = true,
            Rule::Returned => {}
            Rule::Forced | Rule::Hole => {
                self.forced = false;
                self.high_rxt = self.high_rxt.max(sent.end);
            }
        }
    }
}

//! Congestion control as Linux counts it: windows in packets, integers throughout.
//!
//! Reno is RFC 5681 with appropriate byte counting of packets; CUBIC is RFC 9438 in the integer arithmetic of
//! `tcp_cubic` with its `HyStart`; DCTCP is RFC 8257. The transport owns the window ([`Window`]); an algorithm
//! answers questions about it. Any other of the simulations stands behind a [`Model`].

use acklab_core::cc::cubic::Growth;
use acklab_core::time::{Span, Time};

use crate::mib::Mib;
use crate::model::{Cut, Model};
use crate::segment::{after, ecn as mark};
use crate::settings::{INFINITE_SSTHRESH, MS, Us};

/// The congestion window, packets.
#[derive(Clone, Debug)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u32,
    /// Slow-start threshold.
    pub ssthresh: u32,
    /// Packets acknowledged towards the next increase.
    pub count: u32,
    /// Largest window.
    pub clamp: u32,
    /// Window when the last reduction began.
    pub prior_cwnd: u32,
    /// Threshold to return to when a reduction was spurious; 0: none.
    pub prior_ssthresh: u32,
    /// Last instant at which the window was used or changed.
    pub stamp: Us,
    /// Most packets out since `stamp`.
    pub used: u32,
    /// The window was the limit in the window of data up to `usage_seq`.
    pub limited: bool,
    /// Most packets out in that window of data.
    pub max_packets_out: u32,
    /// End of that window of data.
    pub usage_seq: u32,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            cwnd: 10,
            ssthresh: INFINITE_SSTHRESH,
            count: 0,
            clamp: u32::MAX,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            stamp: 0,
            used: 0,
            limited: false,
            max_packets_out: 0,
            usage_seq: 0,
        }
    }
}

impl Window {
    /// Whether the window is below the threshold.
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether the window, not the application, was the limit lately: in slow start half of it in use is enough.
    pub const fn was_limit(&self) -> bool {
        self.limited || (self.in_slow_start() && self.cwnd < 2 * self.max_packets_out)
    }

    /// Grows by one packet for each one acknowledged up to the threshold; returns how many remain.
    const fn slow_start(&mut self, acked: u32) -> u32 {
        let target = self.cwnd.saturating_add(acked);
        let target = if target < self.ssthresh { target } else { self.ssthresh };
        let left = acked - (target - self.cwnd);
        self.cwnd = if target < self.clamp { target } else { self.clamp };
        left
    }

    /// Grows by one packet for each `every` acknowledged.
    fn additive_increase(&mut self, every: u32, acked: u32) {
        if self.count >= every {
            self.count = 0;
            self.cwnd += 1;
        }
        self.count += acked;
        if self.count >= every {
            let steps = self.count / every;
            self.count -= steps * every;
            self.cwnd += steps;
        }
        self.cwnd = self.cwnd.min(self.clamp);
    }
}

/// What an ACK told of timing.
#[derive(Clone, Copy, Debug)]
pub struct AckTiming {
    /// Now.
    pub now: Us,
    /// Round trip of the newest data it covers.
    pub rtt: Option<Us>,
    /// Oldest byte unacknowledged, and next to send.
    pub una: u32,
    /// Next byte to send.
    pub nxt: u32,
}

/// A congestion control.
#[derive(Clone, Debug, Default)]
pub enum Congestion {
    /// Reno.
    #[default]
    Reno,
    /// CUBIC.
    Cubic(Cubic),
    /// DCTCP.
    Dctcp(Dctcp),
    /// One of the simulations' algorithms.
    Model(Box<Model>),
}

impl Congestion {
    /// By its name; `None`: not one of those here.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "reno" => Some(Self::Reno),
            "cubic" => {
                let growth = Growth::ticking(TICK_MS);
                Some(Self::Cubic(Cubic { growth, ..Cubic::default() }))
            }
            "dctcp" => Some(Self::Dctcp(Dctcp::default())),
            _ => None,
        }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic(_) => "cubic",
            Self::Dctcp(_) => "dctcp",
            Self::Model(model) => model.name(),
        }
    }

    /// The same for another connection.
    #[must_use]
    pub fn again(&self) -> Self {
        match self {
            Self::Model(model) => Self::Model(model.clone()),
            _ => Self::named(self.name()).unwrap_or_default(),
        }
    }

    /// The simulations' algorithm, if it is one.
    pub fn model(&mut self) -> Option<&mut Model> {
        match self {
            Self::Model(model) => Some(model),
            _ => None,
        }
    }

    /// The rate at which it paces, bytes a second; `None`: as the window says.
    pub fn pacing_rate(&self) -> Option<u64> {
        match self {
            Self::Model(model) => model.pacing_rate(),
            _ => None,
        }
    }

    /// Whether every packet is to be ECN-capable.
    pub const fn is_dctcp(&self) -> bool {
        matches!(self, Self::Dctcp(_))
    }

    /// Whether marks come back one by one (RFC 8257 section 3.2), in both directions.
    pub fn hears_each_mark(&self) -> bool {
        match self {
            Self::Dctcp(_) => true,
            Self::Model(model) => model.hears_each_mark(),
            Self::Reno | Self::Cubic(_) => false,
        }
    }

    /// Whether a mark's echo begins a reduction; an algorithm of the simulations that hears of each decides by itself.
    pub fn obeys_marks(&self) -> bool {
        !matches!(self, Self::Model(model) if model.hears_each_mark())
    }

    /// The ECN field of new data.
    pub fn codepoint(&self) -> u8 {
        match self {
            Self::Model(model) => model.codepoint(),
            _ => mark::ECT0,
        }
    }

    /// The threshold after a reduction that begins now, with `flight` packets out.
    pub fn ssthresh(&mut self, window: &Window, now: Us, flight: u32, cut: Cut) -> u32 {
        match self {
            Self::Model(model) => model.cut(now, flight, cut),
            Self::Reno => (window.cwnd >> 1).max(2),
            Self::Cubic(cubic) => cubic.growth.reduce(window.cwnd, true),
            Self::Dctcp(dctcp) => {
                let cut = (u64::from(window.cwnd) * u64::from(dctcp.alpha)) >> 11;
                window.cwnd.saturating_sub(cut as u32).max(2)
            }
        }
    }

    /// The window to return to after a spurious reduction.
    pub fn undo(&self, window: &Window) -> u32 {
        match self {
            Self::Model(_) => window.cwnd,
            _ => window.cwnd.max(window.prior_cwnd),
        }
    }

    /// `acked` packets were delivered and the window may grow.
    pub fn grow(&mut self, window: &mut Window, acked: u32, now: Us) {
        if !window.was_limit() {
            return;
        }
        let mut acked = acked;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        let every = match self {
            Self::Cubic(cubic) => cubic.growth.every(window.cwnd, acked, time(now), true),
            _ => window.cwnd,
        };
        window.additive_increase(every.max(1), acked);
    }

    /// An ACK covered data. Returns the counters of what ended slow start, if that did.
    pub fn on_ack(&mut self, window: &mut Window, timing: AckTiming) -> Option<[Mib; 2]> {
        match (self, timing.rtt) {
            (Self::Cubic(cubic), Some(rtt)) => return cubic.on_ack(window, timing, rtt),
            (Self::Model(model), rtt) => model.on_rtt(rtt),
            _ => {}
        }
        None
    }

    /// A time-out began recovery.
    pub fn on_timeout(&mut self, now: Us, nxt: u32) {
        if let Self::Cubic(cubic) = self {
            cubic.growth.forget();
            *cubic = Cubic { detect: cubic.detect, growth: cubic.growth, ..Cubic::default() };
            cubic.begin_round(now, nxt);
        }
    }

    /// Data leaves after nothing was out since `idle` ago.
    pub fn on_restart(&mut self, now: Us, idle: Us) {
        if let Self::Cubic(cubic) = self {
            cubic.growth.on_idle(time(now), Span::from_micros(idle));
        }
    }

    /// Whether CUBIC leaves slow start by trains of ACKs (1), delay (2) or both.
    pub const fn set_hystart(&mut self, detect: i64) {
        if let Self::Cubic(cubic) = self {
            cubic.detect = Some(detect);
        }
    }

    /// The connection is established.
    pub fn init(&mut self, now: Us, nxt: u32) {
        match self {
            Self::Cubic(cubic) => cubic.begin_round(now, nxt),
            Self::Dctcp(dctcp) => dctcp.next_seq = nxt,
            Self::Reno | Self::Model(_) => {}
        }
    }

    /// DCTCP's estimate: `delivered` packets were acknowledged, `marked` of them echoed as marked.
    pub fn on_marks(&mut self, una: u32, nxt: u32, delivered: u32, marked: u32) {
        if let Self::Dctcp(dctcp) = self {
            dctcp.on_marks(una, nxt, delivered, marked);
        }
    }
}

/// DCTCP's state.
#[derive(Clone, Debug)]
pub struct Dctcp {
    /// Share of marked packets, of 1024.
    pub alpha: u32,
    /// End of the window of data that is being watched.
    pub next_seq: u32,
    /// Packets delivered in it.
    pub delivered: u32,
    /// Of these marked.
    pub marked: u32,
}

impl Default for Dctcp {
    fn default() -> Self {
        Self { alpha: 1024, next_seq: 0, delivered: 0, marked: 0 }
    }
}

impl Dctcp {
    fn on_marks(&mut self, una: u32, nxt: u32, delivered: u32, marked: u32) {
        self.delivered += delivered;
        self.marked += marked;
        if crate::segment::before(una, self.next_seq) {
            return;
        }
        // RFC 8257 section 3.3 with g = 1/16.
        let shrink = if self.alpha >> 4 == 0 { self.alpha } else { self.alpha >> 4 };
        self.alpha -= shrink;
        if self.marked > 0 {
            let add = (u64::from(self.marked) << 6) / u64::from(self.delivered.max(1));
            self.alpha = (self.alpha + add as u32).min(1024);
        }
        (self.delivered, self.marked, self.next_seq) = (0, 0, nxt);
    }
}

/// CUBIC: its growth is the simulator's ([`Growth`]), rounds go by sequence numbers.
#[derive(Clone, Debug, Default)]
pub struct Cubic {
    growth: Growth,
    /// What `HyStart` looks at: trains (1), delay (2); both where nothing is set.
    detect: Option<i64>,
    /// `HyStart` has ended slow start.
    found: bool,
    /// Samples in this round.
    samples: u32,
    /// Least round trip of this round.
    round_rtt: Us,
    /// When this round began.
    round_start: Us,
    /// The last ACK of its train.
    last_ack: Us,
    /// The round's end.
    round_end: u32,
}

/// Ticks of the reference kernel, as of distributions': CONFIG_HZ=250.
const TICK_MS: u8 = 4;
/// Windows below which `HyStart` says nothing.
const HYSTART_LOW: u32 = 16;
const HYSTART_SAMPLES: u32 = 8;

const fn time(us: Us) -> Time {
    Time::from_nanos(us * 1000)
}

impl Cubic {
    const fn begin_round(&mut self, now: Us, nxt: u32) {
        self.round_start = now;
        self.last_ack = now;
        self.round_end = nxt;
        self.round_rtt = Us::MAX;
        self.samples = 0;
    }

    fn on_ack(&mut self, window: &mut Window, timing: AckTiming, rtt: Us) -> Option<[Mib; 2]> {
        let now = timing.now;
        if self.growth.is_young(time(now)) {
            return None;
        }
        let delay = rtt.max(1);
        self.growth.on_rtt(time(now), Span::from_micros(delay));
        if self.found || !window.in_slow_start() {
            return None;
        }
        // Rounds begin with the first ACK, below the window at which anything is looked for, too.
        if after(timing.una, self.round_end) {
            self.begin_round(now, timing.nxt);
        }
        if window.cwnd < HYSTART_LOW {
            return None;
        }
        let least = self.growth.least_rtt().map_or(delay, |least| least.as_nanos() / 1000);
        let detect = self.detect.unwrap_or(3);
        let mut counted = None;
        if detect & 1 != 0 && now - self.last_ack <= 2 * MS {
            self.last_ack = now;
            // Half of the least round trip and of what bursts may have delayed ACKs by, a millisecond at most.
            if now - self.round_start > least.midpoint(MS) {
                self.found = true;
                window.ssthresh = window.cwnd;
                counted = Some([Mib::TCPHystartTrainDetect, Mib::TCPHystartTrainCwnd]);
            }
        }
        if detect & 2 == 0 {
            return counted;
        }
        self.round_rtt = self.round_rtt.min(delay);
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
        } else if self.round_rtt > least + (least / 8).clamp(4 * MS, 16 * MS) {
            self.found = true;
            window.ssthresh = window.cwnd;
            counted = Some([Mib::TCPHystartDelayDetect, Mib::TCPHystartDelayCwnd]);
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_counts_packets_up_to_the_threshold_and_the_rest_goes_on_linearly() {
        let mut window = Window { cwnd: 10, ssthresh: 12, limited: true, ..Window::default() };
        Congestion::Reno.grow(&mut window, 5, 0);
        assert_eq!((window.cwnd, window.count), (12, 3));
    }

    #[test]
    fn a_window_that_was_not_the_limit_does_not_grow() {
        let mut window = Window { cwnd: 10, max_packets_out: 4, ..Window::default() };
        Congestion::Reno.grow(&mut window, 2, 0);
        assert_eq!(window.cwnd, 10);
    }

    #[test]
    fn what_can_be_chosen_is_there() {
        for name in crate::settings::CONGESTION_CONTROLS {
            assert_eq!(Congestion::named(name).map(|cc| cc.name()), Some(name));
        }
    }
}

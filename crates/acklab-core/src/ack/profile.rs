//! ACK policies by name and option: what a scenario chooses and a connection builds. The policy of a
//! whole system with its numbers is that of its TCP (`acklab_tcp::System`).

use super::{
    AckPolicy, DataSample, Decision, Disorder, ReadSample, ack_frequency, ack_rate_limit, delayed,
    every_segment, linux, macos, solaris, tack, tick,
};
use crate::time::{Span, Time};

crate::options::registry! {
    /// Which policy a connection gets.
    pub enum Profile, a "ACK policy", built by policies: dyn AckPolicy from phase: f64;

    /// Every segment at once: no delay (RFC 9293 section 3.8.6.3 makes delaying a SHOULD).
    "every-segment" EverySegment => every_segment::EverySegment;
    /// Every n-th segment, or a fixed time after the first unacknowledged one: RFC 1122 section 4.2.3.2.
    "delayed" Delayed(options: delayed::Options) => delayed::Delayed;
    /// Every n-th segment, or a tick of a free-running clock: 4.4BSD, tcp_fasttimo.
    "tick" Tick(options: tick::Options) => tick::Tick;
    /// Linux's state machine, 4.15 to 6.x: quick ACKs, ping-pong mode, adaptive time-out, ACK on read.
    "linux" Linux(options: linux::Options) => linux::Linux;
    /// macOS (xnu): a segment with PSH at once, others delayed, streams stretched.
    "macos" MacOs(options: macos::Options) => macos::MacOs;
    /// Solaris and illumos: every n-th segment, n growing to a maximum that sinks where delaying did harm.
    "solaris" Solaris(options: solaris::Options) => solaris::Solaris;
    /// Linux with ACKs made rarer step by step as long as that does no harm: Statkus et al. 2021.
    "ack-rate-limit" AckRateLimit(options: ack_rate_limit::Options) => ack_rate_limit::AckRateLimit;
    /// The rarer of every second full segment and 4 ACKs per round trip: TACK, SIGCOMM 2020.
    "tack" Tack(options: tack::Options) => tack::Tack;
    /// A threshold of segments and a delay after a warm-up, as QUIC asks for: draft-ietf-quic-ack-frequency-13.
    "ack-frequency" AckFrequency(options: ack_frequency::Options) => ack_frequency::AckFrequency;
}

/// Each builds the state of one connection.
macro_rules! policies {
    ($Choice:ident from $context:ident: $Context:ty; $($line:tt)+) => {
        crate::options::dispatched! {
            $Choice =>
            /// The policy of one connection; built-ins are dispatched without a pointer. `phase`, in [0, 1),
            /// places a free-running tick (or the jiffy grid) against the world's clock.
            Policy: dyn AckPolicy, policy from $context: $Context;
            $($line)+
        }
    };
}

use policies;

impl Profile {
    /// Every `segments`-th segment, or `delay` after the first unacknowledged one.
    pub const fn delayed(segments: u32, delay: Span) -> Self {
        Self::Delayed(delayed::Options { segments, delay, quick: 0, push: false })
    }

    /// Whether it acknowledges as the sender asks, where it asks.
    pub const fn honours_requests(&self) -> bool {
        matches!(self, Self::Delayed(_) | Self::Tick(_) | Self::Linux(_) | Self::AckFrequency(_))
    }

    /// Every `segments`-th segment, or the `ticks`-th tick of a clock of this `period`; 1 is the next.
    pub const fn tick(segments: u32, period: Span, ticks: u32) -> Self {
        Self::Tick(tick::Options { segments, period, ticks })
    }
}

impl AckPolicy for Policy {
    fn on_data(&mut self, now: Time, sample: &DataSample) -> Decision {
        each!(self, policy => policy.on_data(now, sample))
    }

    fn on_disorder(&mut self, now: Time, disorder: Disorder, window: u32) {
        each!(self, policy => policy.on_disorder(now, disorder, window));
    }

    fn on_read(&mut self, now: Time, sample: &ReadSample) -> Decision {
        each!(self, policy => policy.on_read(now, sample))
    }

    fn on_data_sent(&mut self, now: Time) {
        each!(self, policy => policy.on_data_sent(now));
    }

    fn on_request(&mut self, segments: u32) {
        each!(self, policy => policy.on_request(segments));
    }

    fn poll_rate(&mut self) -> Option<[u32; 2]> {
        each!(self, policy => policy.poll_rate())
    }

    fn on_ack_sent(&mut self, now: Time) {
        each!(self, policy => policy.on_ack_sent(now));
    }

    fn on_quickack(&mut self, now: Time, on: bool, always: bool) {
        each!(self, policy => policy.on_quickack(now, on, always));
    }

    fn handle_timeout(&mut self, now: Time, rto: Span) -> Decision {
        each!(self, policy => policy.handle_timeout(now, rto))
    }

    fn poll_timeout(&self) -> Option<Time> {
        each!(self, policy => policy.poll_timeout())
    }
}

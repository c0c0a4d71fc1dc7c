//! An ACK policy of the simulations in place of the kernel's rules for data that comes in order; [`crate::ruled`] asks it.

use acklab_core::ack::{AckPolicy, DataSample, Decision, Disorder, Policy, Profile, ReadSample};
use acklab_core::time::{Span, Time};

use crate::settings::Us;

/// The policy of one connection.
#[derive(Debug)]
pub struct Ruling {
    profile: Profile,
    phase: f64,
    policy: Policy,
    /// Segments in order since our last ACK.
    segments: u32,
    /// The segment that is being taken: its payload, whether PSH was set, and whether the window grew by it.
    arrived: Option<(u32, bool, bool)>,
}

/// A copy is of a connection that has not begun.
impl Clone for Ruling {
    fn clone(&self) -> Self {
        Self::new(self.profile.clone(), self.phase)
    }
}

impl Ruling {
    /// For a connection that has not begun; a free-running tick stands at `phase` of its period at time zero.
    pub fn new(profile: Profile, phase: f64) -> Self {
        let policy = profile.policy(phase);
        Self { profile, phase, policy, segments: 0, arrived: None }
    }

    /// Segments per ACK and the most that they may become, where the policy limits them and they changed.
    pub(crate) fn poll_rate(&mut self) -> Option<[u32; 2]> {
        self.policy.poll_rate()
    }

    /// A segment came in order; what is owed for it is asked by [`Self::is_due`].
    pub(crate) const fn on_data(&mut self, len: u32, push: bool, grew: bool) {
        self.segments += 1;
        self.arrived = Some((len, push, grew));
    }

    /// A segment came that is not simply the next.
    pub(crate) fn on_disorder(&mut self, now: Us, disorder: Disorder, window: u32) {
        self.arrived = None;
        self.policy.on_disorder(time(now), disorder, window);
    }

    /// Whether what came leaves an ACK at once: what is not data in order does.
    pub(crate) fn is_due(&mut self, now: Us, sample: DataSample) -> bool {
        let Some((len, push, window_grew)) = self.arrived.take() else { return true };
        let unacked_segments = self.segments;
        let sample = DataSample { len, push, unacked_segments, window_grew, ..sample };
        self.policy.on_data(time(now), &sample) == Decision::Now
    }

    /// The peer wants an ACK each `segments` full segments.
    pub(crate) fn on_request(&mut self, segments: u32) {
        self.policy.on_request(segments);
    }

    /// The timer is due: whether an ACK leaves.
    pub(crate) fn on_time(&mut self, now: Us, rto: Us) -> bool {
        self.policy.handle_timeout(time(now), Span::from_micros(rto)) == Decision::Now
    }

    /// The program read: whether an ACK leaves.
    pub(crate) fn on_read(&mut self, now: Us, sample: &ReadSample) -> bool {
        self.policy.on_read(time(now), sample) == Decision::Now
    }

    /// An ACK left, with `data` or without.
    pub(crate) fn on_ack_sent(&mut self, now: Us, data: bool) {
        self.segments = 0;
        self.policy.on_ack_sent(time(now));
        if data {
            self.policy.on_data_sent(time(now));
        }
    }

    /// When the timer is due.
    pub(crate) fn deadline(&self) -> Option<Us> {
        self.policy.poll_timeout().map(|at| at.as_nanos().div_ceil(1000))
    }
}

const fn time(us: Us) -> Time {
    Time::from_nanos(us * 1000)
}

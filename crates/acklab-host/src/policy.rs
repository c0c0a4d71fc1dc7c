//! An ACK policy of the simulations in place of the kernel's rules for data that comes in order. Disorder, a FIN and
//! challenges are answered at once, whatever the policy; nothing is compressed.

use acklab_core::ack::{AckPolicy, DataSample, Decision, Disorder, Policy, Profile, ReadSample};
use acklab_core::time::{Span, Time};

use crate::settings::{Env, Us};
use crate::tcp::Tcp;

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

    /// A segment came in order.
    pub(crate) const fn on_data(&mut self, len: u32, push: bool, grew: bool) {
        self.segments += 1;
        self.arrived = Some((len, push, grew));
    }

    fn deadline(&self) -> Option<Us> {
        self.policy.poll_timeout().map(|at| at.as_nanos().div_ceil(1000))
    }
}

/// Acknowledging by a policy.
impl Tcp {
    /// Data came that is not simply the next.
    pub(crate) fn note_disorder(&mut self, env: &Env<'_>, disorder: Disorder) {
        if self.ack.policy.is_none() {
            return;
        }
        let window = self.space();
        if let Some(ruling) = &mut self.ack.policy {
            ruling.arrived = None;
            ruling.policy.on_disorder(time(env.now), disorder, window);
        }
    }

    /// Whether what came leaves an ACK at once; else the policy's timer is armed.
    pub(crate) fn is_ack_ruled(&mut self, env: &Env<'_>) -> bool {
        let sample = self.data_sample(env);
        let at_once = self.ack.now || self.rcv.fin;
        let Some(ruling) = &mut self.ack.policy else { return false };
        let Some((len, push, window_grew)) = ruling.arrived.take() else { return true };
        let unacked_segments = ruling.segments;
        let sample = DataSample { len, push, unacked_segments, window_grew, ..sample };
        let decision = ruling.policy.on_data(time(env.now), &sample);
        if at_once || decision == Decision::Now {
            return true;
        }
        self.timers.delack = ruling.deadline();
        false
    }

    fn data_sample(&mut self, env: &Env<'_>) -> DataSample {
        let (last, quick) = (self.rcv.wnd, self.ack.quick);
        let window = self.select_window(env);
        self.ack.quick = quick;
        DataSample {
            mss: self.terms.advmss,
            unacked_bytes: self.rcv.nxt.wrapping_sub(self.rcv.wup),
            window,
            window_not_shrunk: window >= last,
            was_zero_window: last == 0,
            srtt: (self.rtt.srtt8 > 0).then(|| Span::from_micros(self.rtt.srtt())),
            rto: Span::from_micros(self.rtt.rto),
            ..DataSample::default()
        }
    }

    /// The policy's timer is due: whether an ACK leaves.
    pub(crate) fn is_timer_ruled(&mut self, env: &Env<'_>) -> bool {
        let rto = Span::from_micros(self.rtt.rto);
        let Some(ruling) = &mut self.ack.policy else { return false };
        if ruling.policy.handle_timeout(time(env.now), rto) == Decision::Now {
            return true;
        }
        self.timers.delack = ruling.deadline();
        false
    }

    /// The program read `copied` bytes: whether an ACK leaves.
    pub(crate) fn is_read_ruled(&mut self, env: &Env<'_>, copied: u32) -> bool {
        let quick = self.ack.quick;
        let window = self.select_window(env);
        self.ack.quick = quick;
        let sample = ReadSample {
            copied,
            unacked_bytes: self.rcv.nxt.wrapping_sub(self.rcv.wup),
            queue_empty: self.rcv.queue.is_empty(),
            window,
            advertised: self.receive_window(),
        };
        let Some(ruling) = &mut self.ack.policy else { return false };
        let decision = ruling.policy.on_read(time(env.now), &sample);
        self.timers.delack = ruling.deadline();
        decision == Decision::Now
    }

    /// An ACK left, with `data` or without.
    pub(crate) fn on_ruled_ack_sent(&mut self, env: &Env<'_>, data: bool) {
        let Some(ruling) = &mut self.ack.policy else { return };
        ruling.segments = 0;
        ruling.policy.on_ack_sent(time(env.now));
        if data {
            ruling.policy.on_data_sent(time(env.now));
        }
        self.timers.delack = ruling.deadline();
    }
}

const fn time(us: Us) -> Time {
    Time::from_nanos(us * 1000)
}

//! Where ProbeBW is in its cycle (draft-ietf-ccwg-bbr-06 section 5.3.3).

use crate::time::{Span, Time};

/// Where the samples of a probe are (BBR.ack_phase).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    /// The probe has begun; its samples are a round trip away.
    Starting,
    /// The samples of the probe arrive.
    Feedback,
    /// The probe has ended; its last samples arrive for a round trip.
    Stopping,
}

/// The state of ProbeBW.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probing {
    pub(super) ack_phase: AckPhase,
    pub(super) rounds_since_probe_up: u64,
    /// Samples of REFILL or UP arrive, and none has lost too much yet.
    pub(super) is_sample: bool,
    pub(super) prev_too_high: bool,
    pub(super) prev_precautionary: bool,
    pub(super) cycle_stamp: Time,
    pub(super) wait: Span,
    pub(super) up_rounds: u32,
    pub(super) up_acked: f64,
    pub(super) up_acked_per_increment: f64,
}

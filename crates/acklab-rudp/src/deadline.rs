//! A path's deadlines, each of which follows from the state of one of its parts.

use acklab_core::timer::TimerKind;

/// Why a path wants to be called.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deadline {
    /// An overtaken packet counts as lost.
    Loss,
    /// The probe time-out.
    Probe,
    /// An ACK that was held back leaves.
    Ack,
    /// Pacing lets the next packet go.
    Pace,
    /// Silence is judged, a challenge leaves.
    Life,
    /// A challenge to another address leaves.
    Rebinding,
}

impl From<Deadline> for usize {
    fn from(deadline: Deadline) -> Self {
        deadline as Self
    }
}

impl TimerKind for Deadline {
    const COUNT: usize = 6;
}

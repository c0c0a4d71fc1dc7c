//! How the two ends want a path to be used (docs/rudp.md section 6).

use super::life::PathState;
use crate::wire::PathStatus;

/// What both ends say of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreement {
    /// What the peer says, and the number of that.
    theirs: PathStatus,
    heard: Option<u64>,
    /// This end wants it used only if no other is.
    spare: bool,
}

impl Agreement {
    pub(super) const fn new() -> Self {
        Self { theirs: PathStatus::Use, heard: None, spare: false }
    }

    /// PATH_STATUS arrived; an older one than the last is ignored.
    pub(super) fn on_status(&mut self, sequence: u64, status: PathStatus) {
        if self.heard.is_none_or(|heard| sequence > heard) {
            (self.heard, self.theirs) = (Some(sequence), status);
        }
    }

    /// Keeps it as a spare.
    pub(super) const fn set_spare(&mut self, spare: bool) {
        self.spare = spare;
    }

    /// The peer hears nothing here.
    pub(super) fn is_silent_there(&self) -> bool {
        self.theirs == PathStatus::Silent
    }

    /// One of the ends wants it used only if no other is.
    pub(super) fn is_spare(&self) -> bool {
        self.spare || self.theirs == PathStatus::Spare
    }

    /// What this end says of a path in that state.
    pub(super) const fn ours(&self, state: PathState) -> PathStatus {
        match state {
            PathState::Dead => PathStatus::Silent,
            _ if self.spare => PathStatus::Spare,
            _ => PathStatus::Use,
        }
    }
}

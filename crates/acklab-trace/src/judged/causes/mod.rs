//! The causes of waiting beside Nagle's algorithm, each by its proof and none by default; one cause = one file.
//!
//! A connection without any has no list: what cannot be proved is not said.

mod cause;
mod closed_window;
mod loss;
mod opening;
mod path_mtu;
mod turns;
mod unreachable;

use super::direction::Direction;

pub use cause::{Cause, CauseKind};

pub(super) use cause::Conversation;
pub(super) use opening::cut_off;
pub(crate) use opening::unopened;

/// What can be proved of one connection by its directions, the client's first.
pub(super) fn of(talk: &Conversation<'_>, directions: &[Direction]) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, direction) in directions.iter().enumerate() {
        causes.extend(turns::of(talk, index, direction));
        causes.extend(closed_window::of(talk, direction));
        causes.extend(loss::of(talk, index, direction));
        causes.extend(path_mtu::of(talk, index, direction));
    }
    causes.extend(unreachable::of(talk));
    causes
}

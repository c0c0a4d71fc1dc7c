//! The first floor: what one direction shows while the capture is read. Nothing is concluded here.
//!
//! [`Recorder`] is told every segment and writes it on a [`tape`], a few bytes each, so that memory
//! stays bounded however long the capture is; message boundaries are found on the way ([`framing`]).
//! When the direction is over, [`Notes`] are all that is left, and all that inference stands on; it may
//! go over them as often as it likes.

pub(crate) mod course;
pub(crate) mod event;
pub(crate) mod framing;
mod line;
mod notes;
pub(crate) mod opening;
mod recorder;
mod tape;

pub(crate) use framing::{BareHeaders, LINES, bare_lines};
pub(crate) use line::Line;
pub(crate) use notes::Notes;
pub(crate) use recorder::{BURST, Recorder};

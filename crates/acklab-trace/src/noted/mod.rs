//! The first floor: what one direction shows while the capture is read. Nothing is concluded here.
//!
//! [`Recorder`] is told every segment and makes compact notes of each moment that could be a hold, at
//! a few nanoseconds per bulk segment: what the data's sender knew then ([`sender`], [`way`]), the
//! ACKs and how late they came, silences, and message boundaries ([`framing`]). They are written on a
//! [`tape`], so that memory stays bounded however long the capture is. When the direction is over,
//! [`Notes`] are all that is left, and all that inference stands on; it may go over them as often as
//! it likes.

pub(crate) mod course;
pub(crate) mod framing;
mod line;
mod log;
mod notes;
mod recorder;
pub(crate) mod scenes;
mod sender;
mod tape;
pub(crate) mod values;
mod way;

pub(crate) use line::Line;
pub(crate) use notes::Notes;
pub(crate) use recorder::Recorder;

//! Stalls: what one direction shows while the capture is read, and which of its waits were holds.
//!
//! A *hold* is a new segment that left only because an acknowledgment came for the data before it,
//! or because the queue reached one MSS (RFC 896; RFC 9293 section 3.7.4). While the capture is
//! read, [`Recorder`] notes compact records of every moment that could be one, at a few
//! nanoseconds per bulk segment. When the direction is over, [`holds`] decides with the whole
//! sample at hand, [`fill`] looks for segments that filled up, and [`added`] estimates when each
//! message was written.

pub mod added;
mod beat;
pub mod fill;
pub mod holds;
pub mod ladder;
pub mod piggyback;
mod recorder;
pub mod records;
mod sender_side;
pub mod tape;

pub use recorder::{BURST, Recorder};

//! What can be inferred of both ends from one direction's records.
//!
//! [`nagle`] says whether the sender holds small segments, [`receiver`] how the receiver times its
//! acknowledgments, [`writes`] what the application wrote. Each answer carries its evidence in
//! sentences with numbers, and "unknown" is an answer.

mod lockstep;
pub mod nagle;
pub mod path;
pub mod receiver;
pub mod spread;
pub mod writes;

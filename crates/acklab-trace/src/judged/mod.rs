//! The third floor: what a diagnosis says. Seconds, shares, findings in words, remedies, and the forms
//! in which people and programs read it; nothing is inferred here.
//!
//! [`Direction`] puts notes and inference together, [`Flow`] two directions, [`Verdict`] all flows.
//! The JSON is stable (`acklab.diagnose/1`); its schema is checked in and a test holds it current.

pub(crate) mod bare_acks;
mod capture;
pub(crate) mod causes;
pub mod check;
mod cure;
mod diagnosis;
mod direction;
mod finding;
mod flow;
mod joined;
mod ladder;
mod outcome;
mod pair;
mod pair_text;
mod plots;
mod protocol;
mod remedy;
#[cfg(test)]
mod schema;
mod stall;
mod text;
mod verdict;

pub use capture::Capture;
pub use causes::{Cause, CauseKind};
pub use cure::{Cure, CureDelays, CureState, Prediction, Tried};
pub use diagnosis::Diagnosis;
pub(crate) use diagnosis::SCHEMA;
pub use direction::{AckFacts, Direction, Spread};
pub use finding::Finding;
pub use flow::{Flow, Handshake};
pub use ladder::{Ladder, Rung};
pub use pair::{Clock, Kept, Lost, OneWay, Pair, Shared, Waited, Way};
pub use plots::{Plots, Points};
pub use stall::{Held, Stall};
pub use text::set_text_width;
pub use verdict::{State, Verdict};

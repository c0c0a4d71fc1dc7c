//! From segments to connections: who talks to whom, what is in flight, what was lost, and the facts
//! of each direction.
//!
//! [`FlowTable`] takes segments in capture order and follows every connection; each direction has
//! an observer ([`DirectionObserver`]) that is told every segment in its place, and facts
//! ([`DirectionFacts`]) that are counted on the way. The capture may begin in the middle of a
//! connection, hold frames twice, out of order or not at all, and reuse ports.

mod connection;
mod direction;
pub mod facts;
mod key;
mod life;
mod mss;
pub mod observe;
mod outstanding;
mod report;
mod rtt;
mod stream;
mod table;
mod told;
mod unseen;
mod vantage;

pub use facts::DirectionFacts;
pub use life::{Life, Reset};
pub use observe::DirectionObserver;
pub use report::{DirectionReport, Ending, FlowReport, FlowReports, Others};
pub use table::{FlowTable, TableOptions};
pub use told::Told;

pub use crate::frame::notice::Reason;

#[cfg(test)]
mod tests;

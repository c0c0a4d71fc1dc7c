//! The report of a network: every flow and every watched link over time, in distribution and in numbers.

mod page;
mod plots;
mod tables;

pub use page::NetworkReport;
pub use tables::Network;

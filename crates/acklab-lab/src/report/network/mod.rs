//! The report of a network: every flow and every watched link over time, in distribution and in numbers.

mod cases;
mod page;
mod plots;
mod tables;

pub use cases::CasesReport;
pub use page::NetworkReport;
pub use tables::Network;

//! Whole papers, run again: every configuration, every figure, and claim by claim whether it holds.
//!
//! A paper is a protocol, its configurations and its claims. What was measured stands in tables, each
//! column of which says once what it is called on the page, in JSON and on the terminal.

pub mod ack_rate;
pub mod ance;
mod course;
pub mod rdt;
pub mod xudp;

use std::path::Path;

use acklab_lab::report::Page;
use serde_json::Value;

pub use course::{Course, Parts, Stop};

pub const SCHEMA: &str = "acklab.reproduce/1";

/// A paper that was run again, for whoever tells of it.
pub trait Reproduced {
    /// All that was measured; [`SCHEMA`].
    fn to_json(&self) -> Value;

    fn page(&self) -> Page;

    /// The main tables for a terminal; `report` is where the page was written.
    fn text(&self, report: &Path) -> String;
}

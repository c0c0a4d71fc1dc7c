//! Captures: reading and writing, flow reconstruction, policy inference, stall diagnosis.
//!
//! The road of a packet: [`capture`] bytes -> [`frame`] -> [`segment::Segment`] -> [`flow`]
//! tracker -> per-direction observations ([`flow::observe`]) -> facts, inference, stalls ->
//! report. [`read::read_capture`] drives it.
//!
#![doc = include_str!("../README.md")]

pub mod capture;
pub mod check;
pub mod diagnose;
pub mod diagnosis;
pub mod flow;
pub mod frame;
pub mod framing;
pub mod infer;
pub mod quantiles;
pub mod read;
pub mod segment;
pub mod stall;
pub mod verdict;

pub use diagnose::{Options, diagnose, diagnose_reader};
pub use diagnosis::Diagnosis;

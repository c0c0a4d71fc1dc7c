//! Captures: reading and writing, flow reconstruction, policy inference, stall diagnosis.
//!
//! The road of a packet: [`capture`](https://en.wikipedia.org/wiki/Pcap) bytes -> frame ->
//! [`segment::Segment`] -> [`flow`] tracker -> per-direction observations
//! ([`flow::observe`]) -> facts, inference, stalls -> report.

pub mod flow;
pub mod segment;

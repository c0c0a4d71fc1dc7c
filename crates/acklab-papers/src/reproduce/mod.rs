//! Whole papers, run again: every configuration, every figure, and claim by claim whether it holds.

pub mod ance;
pub mod rdt;
pub mod xudp;

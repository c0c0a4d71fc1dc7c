//! Scenario -> plan -> run -> results -> report.

pub mod report;

//! The laboratory: scenario -> plan -> run -> results -> report.
//!
//! A [`scenario::Scenario`] declares typed parameters and documented metrics; a [`plan::Plan`] is
//! cases of it times replications; [`run::run`] carries it out on all cores, pooled in the order of
//! the seeds; [`results::Results`] is the contract's JSON, and [`output::Folder`] the files. The
//! doors (command line, Python, browser) call this and compute nothing themselves.

#![allow(
    missing_docs,
    reason = "not published: a line of documentation says what the name does not"
)]

pub mod blueprint;
pub mod capture;
pub mod choices;
pub mod columns;
pub mod expected;
pub mod file;
pub mod held;
pub mod measured;
pub mod metric_list;
pub mod monitor;
pub mod network_file;
pub mod output;
pub mod own_ack;
pub mod parameter;
pub mod plan;
pub mod replications;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod series;
pub mod signal;
pub mod sweep;
pub mod timing;
pub mod verify;
pub mod whatif;

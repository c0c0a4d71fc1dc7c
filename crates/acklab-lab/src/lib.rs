//! The laboratory: scenario -> plan -> run -> results -> report.
//!
//! A [`scenario::Scenario`] declares typed parameters and documented metrics; a [`plan::Plan`] is
//! cases of it times replications; [`run::run`] carries it out on all cores, pooled in the order of
//! the seeds; [`results::Results`] is the contract's JSON, and [`output::Folder`] the files. The
//! doors (command line, Python, browser) call this and compute nothing themselves.

pub mod capture;
pub mod closed_form;
pub mod columns;
pub mod demo;
#[cfg(target_os = "linux")]
pub mod emulation;
pub mod file;
pub mod measured;
pub mod network_file;
pub mod output;
pub mod parameter;
pub mod plan;
#[cfg(target_os = "linux")]
pub mod recording;
pub mod report;
pub mod reproduce;
pub mod results;
pub mod run;
pub mod scenario;
pub mod series;
pub mod signal;
pub mod timing;
#[cfg(target_os = "linux")]
pub mod transfer;
pub mod uppaal;
pub mod verify;

/// Captures and their diagnosis, for the doors, which see this crate alone.
pub use acklab_trace as trace;

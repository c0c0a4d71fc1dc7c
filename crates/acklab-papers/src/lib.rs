//! The experiments that come with acklab: scenarios with a name, and whole papers run again.
//!
//! [`scenario::SCENARIOS`] is what `acklab run` knows; [`reproduce`] holds the papers; [`demo`] is the
//! twin in virtual time of the capture in `demo/`. Everything here stands on the laboratory's engine, as
//! a user's own experiment does.

#![allow(
    missing_docs,
    reason = "not published: a line of documentation says what the name does not"
)]

pub mod closed_form;
pub mod demo;
pub mod reproduce;
pub mod scenario;

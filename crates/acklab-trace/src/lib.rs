#![doc = include_str!("../README.md")]
//!
//! ## The road of a packet
//!
//! Capture bytes ([`capture`]) -> dissector -> [`segment::Segment`] -> [`flow`] table, which tells each
//! direction's observer where the segment belongs; [`read::read_capture`] drives it. For a diagnosis
//! three floors stand on that, and none knows of those above it: what was noted of a direction while
//! the capture was read, what is inferred of the notes when it is over, and what is judged
//! ([`diagnosis`]).

pub mod anonymise;
pub mod capture;
mod diagnose;
pub mod flow;
mod frame;
mod inferred;
mod judged;
pub mod live;
mod noted;
mod paired;
pub mod read;
pub mod segment;

pub use diagnose::{
    Analyst, FIRST_WRITES, Options, diagnose, diagnose_reader, explain, explain_worst,
    explain_worst_reader,
};
pub use judged::{Diagnosis, check, set_text_width};
pub use paired::diagnose_pair;

/// What a diagnosis says. Times are milliseconds unless the name says otherwise; frame numbers count
/// from 1 as in Wireshark.
pub mod diagnosis {
    pub use crate::inferred::{
        AddedDelay, Lack, Mechanism, Nagle, NagleState, PolicyKind, ReceiverPolicy, Wait,
        WaitCause, Writes, Written,
    };
    pub use crate::judged::{
        AckFacts, Capture, Cause, CauseKind, Clock, Cure, CureDelays, CureState, Diagnosis,
        Direction, Finding, Flow, Handshake, Held, Kept, Ladder, Lost, OneWay, Pair, Plots, Points,
        Prediction, Rung, Shared, Spread, Stall, State, Tried, Verdict, Waited, Way,
    };
}

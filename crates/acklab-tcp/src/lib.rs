//! One TCP connection, sans-IO: RFC 9293 with the extensions that every system in use has.
//!
//! [`Connection`] answers to the five verbs of [`acklab_core::endpoint::Endpoint`] and to the
//! application's verbs (write, read, close, the socket options). Which file does what:
//! - `state`: the states, one transition table; `connection`: the block and the application's verbs;
//! - `input`: segment arrival in the order of RFC 9293 section 3.10.7; `opening`: the SYN states;
//! - `output`: what may leave now; `timers`: what a deadline does;
//! - `send_buffer`, `receive_buffer`: lengths only, see below; `options`: what was negotiated;
//! - `nagle`, `rto`, `sack`, `recovery`, `ecn`: the algorithms, each by its RFC;
//! - `flight`: the segments that are out and what they weigh in the window; `usage`: whether it was full;
//! - `news`: what the congestion control is told of each ACK; `rate`, `pacing`: the same of
//!   delivery rates, and departures at the rate it asks for; `returned`: segments sent back.
//!
//! Internally every position in a direction is a 64-bit offset from the initial sequence number
//! (SYN at 0, first byte at 1, FIN after the last byte), so nothing inside wraps; `Seq` appears only
//! where a segment is read or written. Payload is a length here. Where real bytes are carried, the
//! caller keeps them in a buffer of its own and asks [`Connection::outbound_range`] and
//! [`Connection::inbound_range`] which bytes of the stream a segment stands for.
//!
//! Left out so far: urgent data, accurate ECN and L4S (RFC 9768, RFC 9331), fast open, RACK-TLP (RFC 8985).
//!
#![doc = include_str!("../README.md")]

mod config;
mod connection;
pub mod harness;
mod input;
mod life;
mod nagle;
mod options;
mod output;
mod receive;
mod send;
mod state;
mod system;

pub use config::{
    Config, CwndUnit, InitialWindow, KeepAlive, Loss, LossRecovery, Patience, Rto, Window,
    WindowUpdate,
};
pub use connection::{Connection, Snapshot};
pub use life::AppEvent;
pub use nagle::{Nagle, Unacked};
pub use state::{Cause, State, TRANSITIONS, diagram};
pub use system::System;

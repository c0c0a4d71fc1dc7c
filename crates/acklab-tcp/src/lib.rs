//! One TCP connection, sans-IO: RFC 9293 with the extensions that every system in use has.
//!
//! [`Connection`] answers to the five verbs of [`acklab_core::endpoint::Endpoint`] and to the
//! application's verbs (write, read, close, the socket options). Which file does what:
//! - `connection`: the verbs, which ask the three owners: `life` (the states of `state`'s table, probes,
//!   TIME-WAIT), `send` and `receive`;
//! - `input`: segment arrival in the order of RFC 9293 section 3.10.7; `output`: segments of ours; both own
//!   nothing;
//! - `send`: what each ACK tells; `send::next`: what may leave; `send::queue`: the segments that are out;
//!   `send::recovery`: what is lost and sent again, and the time-out; `send::scoreboard`: SACK; `send::requests`: how
//!   often the peer is asked to acknowledge;
//! - `receive`: what arrives and is owed for it; buffers on both sides hold lengths only, see below;
//! - `options`: what the SYNs agree on; `config`, `system`, `nagle`: what a connection is set up with.
//!
//! Internally every position in a direction is a 64-bit offset from the initial sequence number
//! (SYN at 0, first byte at 1, FIN after the last byte), so nothing inside wraps; `Seq` appears only
//! where a segment is read or written. Payload is a length here. Where real bytes are carried, the
//! caller keeps them and asks [`Connection::outbound_range`] which bytes of the stream a
//! segment carries, and [`Connection::take_packet`] which it brought.
//!
//! Left out so far: urgent data, accurate ECN and L4S (RFC 9768, RFC 9331), fast open, RACK-TLP (RFC 8985) but for
//! lost retransmissions (`recovery=rack`).
//!
#![doc = include_str!("../README.md")]

mod ack_requests;
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
mod settings;
mod state;
mod system;

pub use ack_requests::AckRequests;
pub use acklab_core::notices::AppEvent;
pub use config::{
    Config, CwndUnit, InitialWindow, KeepAlive, Loss, LossRecovery, Patience, Rto, Stack, Window,
    WindowUpdate,
};
pub use connection::{Connection, Snapshot};
pub use input::reset_for;
pub use nagle::{Nagle, Unacked};
pub use options::Terms;
pub use send::Requests;
pub use state::{Cause, State, TRANSITIONS, diagram};
pub use system::System;

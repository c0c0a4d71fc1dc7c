//! Reliable UDP: streams and parcels over several paths, sans-IO; docs/rudp.md is its specification.
//!
//! The same state machine serves sockets and virtual time: it takes datagrams as bytes with the
//! addresses they came from and gives datagrams as bytes with the addresses they go to. What protects
//! them is behind the traits of [`protect`].
//!
#![doc = include_str!("../README.md")]

mod ack_requests;
mod allowance;
mod closing;
mod code;
mod config;
mod congestion;
mod connection;
pub mod content;
mod counters;
mod datagram_size;
mod deadline;
mod delivery;
mod ecn;
mod endpoint;
mod flow;
mod handshake;
pub mod harness;
mod idle;
mod input;
mod keys;
mod life;
mod listener;
mod loss;
mod notices;
mod output;
mod path;
mod path_status;
mod paths;
mod piece;
mod priority;
pub mod protect;
mod rebinding;
mod receive_parcels;
mod receive_stream;
mod received;
mod refusals;
mod report;
mod reset;
mod rtt;
mod scheduler;
mod send_parcels;
mod send_stream;
mod sent;
mod session;
mod settings;
mod stage;
mod telling;
pub mod wire;

pub use ack_requests::Options as AckRequestOptions;
pub use code::Code;
pub use config::Config;
pub use connection::Connection;
pub use content::Content;
pub use endpoint::{Batch, Datagram};
pub use life::PathState;
pub use listener::{Handle, Limits, Listener};
pub use piece::{ContentEvent, ControlFrame, Piece, Refused};
pub use priority::DEFAULT_PRIORITY;
pub use receive_stream::Block;
pub use report::{Event, PathAddrs, PathStats};
pub use send_parcels::ParcelError;

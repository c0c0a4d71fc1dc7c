//! Reliable UDP: streams and parcels over several paths, sans-IO; docs/rudp.md is its specification.
//!
//! The same state machine serves sockets and virtual time: it takes datagrams as bytes with the
//! addresses they came from and gives datagrams as bytes with the addresses they go to. What protects
//! them is behind the traits of [`protect`].

mod code;
pub mod content;
mod delivery;
mod flow;
mod piece;
mod priority;
pub mod protect;
pub mod ranges;
mod receive_parcels;
mod receive_stream;
mod send_parcels;
mod send_stream;

pub use code::Code;
pub use content::Content;
pub use piece::{ContentEvent, ControlFrame, Piece, Refused};
pub use priority::DEFAULT_PRIORITY;
pub use receive_stream::Block;
pub use send_parcels::ParcelError;

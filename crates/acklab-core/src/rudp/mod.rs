//! Reliable UDP: streams and parcels over several paths, sans-IO; docs/rudp.md is its specification.
//!
//! The same state machine serves sockets and virtual time: it takes datagrams as bytes with the
//! addresses they came from and gives datagrams as bytes with the addresses they go to. What protects
//! them is behind the traits of [`protect`].

mod code;
pub mod protect;

pub use code::Code;

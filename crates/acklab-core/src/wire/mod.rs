//! Wire formats: parsed values (`Repr`) and, at the edges only, their bytes.

pub mod checksum;
mod ipv4;
pub mod rudp;
pub mod tcp;
mod tcp_bytes;

pub use ipv4::{ParseError, emit_ipv4, parse_ipv4};

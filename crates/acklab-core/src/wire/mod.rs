//! Wire formats: parsed values (`Repr`) and, at the edges only, their bytes.

pub mod checksum;
mod error;
mod ipv4;
mod tcp;

pub use error::ParseError;
pub use ipv4::{emit_ipv4, parse_ipv4};

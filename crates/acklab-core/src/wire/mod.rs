//! Wire formats: parsed values (`Repr`) and, at the edges only, their bytes.

pub mod checksum;
mod error;
mod icmp;
mod ip;
mod ipv4;
mod tcp;

pub use error::ParseError;
pub use icmp::{IcmpReport, Trouble, parse_icmp};
pub use ip::{IpPacket, emit_ip, parse_ip, transport_checksum};
pub use ipv4::{emit_ipv4, parse_ipv4};
pub use tcp::{TcpPacket, emit_tcp, parse_tcp};

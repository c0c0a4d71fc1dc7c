//! XUDP as it was in February and March 1997, as far as its thesis tells: M. J. Andrews, "XUDP: A
//! Real-Time Multimedia Networking Protocol", Worcester Polytechnic Institute, 1997.
//!
//! Told there (sections 4.3, 5, 8): parcels of three kinds, packets of 512 bytes, the queues, a sliding
//! window in packets with slow start, a time stamp per packet, a time-out from the round trip's variance,
//! acknowledgments of packets and of parcels as commands behind the header of the next outgoing packet,
//! and the timer that held them back. Not told: the layout of the header, every constant, what a server
//! does in which order. Those are [`super::parameters`]; no other constant here is missing in the thesis
//! but the sizes in [`packet`].
//!
//! Left out: connection set-up, version, checksum, several connections on one server.

mod acknowledging;
pub mod application;
mod host;
mod incoming;
mod outgoing;
pub mod packet;
mod retransmission;
pub mod server;
mod window;

pub use outgoing::Sending;
pub use retransmission::Rules as TimeoutRules;
pub use server::{Server, Setup};
pub use window::Rules as WindowRules;

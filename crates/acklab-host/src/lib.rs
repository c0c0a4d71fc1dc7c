//! A host with TCP sockets, in virtual time.
//!
//! Where `acklab-tcp` models TCP as systems in use have it, lengths and offsets alone, this crate has what a test of
//! a Linux stack can see: a queue of segments with their marks, windows in packets, bursts, memory, socket calls
//! with their errors, poll and epoll, TCP_INFO. The reference is Linux 6.18, written from the RFCs and from
//! documented and observed behaviour. Everything takes `now`; nothing waits.
//!
//! - [`host`]: sockets by descriptor, demultiplexing; `listening`: requests; `icmp`: reports; [`calls`], [`sockopt`], [`watch`]: the calls;
//! - [`tcp`]: one connection's state; `open`, `input`, `ack`, `loss`, `receive`, `output`, `write`, `timers`,
//!   `mtu`, `ecn`, `accecn`: its rules;
//! - [`datagram`], `datagram_calls`: UDP;
//! - [`connection`]: one connection as an end of the simulations' links; [`packet`]: their packets;
//! - [`mib`]: what is counted; [`segment`]: what is on the wire; [`settings`]: system controls and the route.

mod accecn;
pub mod accurate;
mod ack;
mod acking;
mod asked;
pub mod asking;
mod bytes;
pub mod calls;
pub mod cc;
pub mod config;
pub mod connection;
pub mod datagram;
mod datagram_calls;
mod detect;
pub mod ecn;
mod ended;
pub mod errno;
pub mod errqueue;
pub mod fastopen;
pub mod host;
mod icmp;
pub mod info;
mod input;
mod listening;
mod loss;
mod memory;
pub mod mib;
pub mod model;
mod mtu;
pub mod open;
mod output;
pub mod packet;
pub mod policy;
mod rate;
mod receive;
pub mod request;
mod retransmit;
mod returned;
pub mod rtt;
mod ruled;
mod sack;
pub mod segment;
pub mod settings;
pub mod skb;
pub mod socket;
pub mod sockopt;
mod tail;
pub mod tcp;
mod timers;
mod transmit;
mod undo;
pub mod watch;
mod window;
pub mod write;

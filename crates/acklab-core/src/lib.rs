//! The transport core of acklab: sans-IO, deterministic, no clock, socket, file, thread or unsafe.
//!
//! Everything that takes packets answers to the same five verbs ([`endpoint::Endpoint`]), so that
//! hosts, links and queues compose in virtual time and on the real network alike. Times are
//! [`time::Time`] (nanoseconds since the start of the world), randomness comes from named streams
//! ([`rng::Rng`]), transcendental functions from [`math`], and whatever a component has to tell is
//! a typed [`event::Event`] in the caller's [`event::Sink`].
//!
#![doc = include_str!("../README.md")]

pub mod ack;
pub mod cc;
pub mod congestion;
pub mod contract;
pub mod delivery_rate;
pub mod endpoint;
pub mod event;
pub mod forward;
pub mod link;
pub mod math;
pub mod messages;
pub mod notices;
pub mod options;
pub mod pacing;
pub mod packet;
pub mod quantiles;
pub mod queue;
pub mod ranges;
pub mod rng;
pub mod segment;
pub mod seq;
pub mod time;
pub mod timer;
pub mod units;
pub mod wire;

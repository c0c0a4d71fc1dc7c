//! The virtual-time world: event loop, nodes, links, sockets and applications.
//!
//! A [`Topology`] says what is connected to what; a [`World`] made of it carries TCP connections
//! whose ends are driven by [`app::App`]s, and an [`Observer`] watches events and packets. The same
//! topology, seed and applications give the same events, to the bit, on every machine;
//! [`ResultHash`] says so in one number.
//!
#![doc = include_str!("../README.md")]

mod alarm;
pub mod app;
pub mod arrivals;
pub mod distribution;
mod hash;
mod observer;
pub mod peer;
mod processor;
mod queue;
pub mod rudp;
pub use acklab_host::config as segments;
mod socket;
mod store;
mod topology;
mod world;

pub use hash::ResultHash;
pub use observer::Observer;
pub use processor::ProcessorOptions;
pub use queue::{EventQueue, Target};
pub use store::Store;
pub use topology::{Access, Chain, Dumbbell, Duplex, Topology, TopologyError};
pub use world::{End, Middlebox, PeerId, World};

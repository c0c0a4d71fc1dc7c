//! What is left of connections that are over.

use acklab_core::time::{Span, Time};

use super::facts::DirectionFacts;
use super::life::Life;
use crate::segment::Endpoint;

/// A connection that is over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlowReport<R> {
    /// Its number in the order of first packets, from 1.
    pub id: u64,
    /// Client and server, where the handshake was captured; else who was seen first.
    pub endpoints: [Endpoint; 2],
    /// Its first frame.
    pub first_frame: u64,
    /// Time of its first packet.
    pub first_time: Time,
    /// Time of its last.
    pub last_time: Time,
    /// TCP packets in both directions.
    pub packets: u64,
    /// Packets of a host that the capture lacks altogether, put back by the timestamps that the other echoed.
    pub inferred: u64,
    /// How it began, and whether it was reset.
    pub life: Life,
    /// How it ended.
    pub ending: Ending,
    /// Client to server, server to client.
    pub directions: [DirectionReport<R>; 2],
}

impl<R> FlowReport<R> {
    /// Stream bytes in both directions.
    pub fn bytes(&self) -> u64 {
        self.directions.iter().map(|d: &DirectionReport<R>| d.facts.stream.bytes).sum()
    }
}

/// What is left of the connections that are not reported in detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Others {
    /// Their number.
    pub flows: u64,
    /// Packets in both directions.
    pub packets: u64,
    /// Stream bytes in both directions.
    pub bytes: u64,
    /// Time that they lost in stalls.
    pub stalled: Span,
}

/// Everything that a capture held.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlowReports<R> {
    /// The detailed reports, in order of first packets.
    pub flows: Vec<FlowReport<R>>,
    /// The rest.
    pub others: Others,
    /// Connections in all.
    pub total: u64,
    /// Connections closed early because too many were live.
    pub evicted: u64,
}

/// What is left of a direction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DirectionReport<R> {
    /// What was counted and measured.
    pub facts: DirectionFacts,
    /// What the observer made of it.
    pub observed: R,
}

/// How a connection came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// Both sides sent FIN and had it acknowledged.
    Closed,
    /// One side sent RST.
    Reset,
    /// The same endpoints began anew.
    Replaced,
    /// Nothing for a long time, or too many live connections.
    Idle,
    /// The capture ended first.
    CaptureEnd,
}

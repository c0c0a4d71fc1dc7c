//! The receiving side, and when acknowledgments leave.

use std::collections::VecDeque;

use crate::asking::Asking;
use crate::policy::Ruling;
use crate::settings::Us;

/// Bytes received and not read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chunk {
    /// First sequence number.
    pub seq: u32,
    /// After the last.
    pub end: u32,
    /// Memory it takes.
    pub truesize: u32,
    /// Bytes that its buffer still has room for.
    pub room: u32,
}

/// The receiving side.
#[derive(Clone, Debug, Default)]
pub struct Receive {
    /// Initial sequence number of the peer's.
    pub isn: u32,
    /// Next expected.
    pub nxt: u32,
    /// Next expected when the window was last announced.
    pub wup: u32,
    /// The window then.
    pub wnd: u32,
    /// Largest window to announce.
    pub clamp: u32,
    /// Slow-start threshold of the window.
    pub ssthresh: u32,
    /// Read up to here.
    pub copied: u32,
    /// Received in order and not read.
    pub queue: VecDeque<Chunk>,
    /// Received out of order, by where they begin; they may overlap.
    pub ooo: Vec<Chunk>,
    /// SACK blocks, most recent first.
    pub sacks: Vec<(u32, u32)>,
    /// What arrived twice.
    pub dsack: Option<(u32, u32)>,
    /// Buffer, bytes of memory.
    pub buffer: u32,
    /// Memory in use.
    pub memory: u32,
    /// Room behind the payload of the segment at hand.
    pub room: u32,
    /// Share of memory that is payload, of 256.
    pub ratio: u32,
    /// Where the FIN stands that came out of order.
    pub fin_at: Option<u32>,
    /// The peer's FIN is in order.
    pub fin: bool,
    /// The peer's last timestamp in order, and when it came.
    pub recent: Option<(u32, Us)>,
    /// The echo of the last segment.
    pub echo: Option<u32>,
    /// When the peer was last heard.
    pub heard: Us,
    /// When data last came.
    pub last_data: Us,
    /// When an out-of-window segment was last answered.
    pub oow_answered: Option<Us>,
    /// Receiver's estimate of the round trip, eight times.
    pub rtt8: Us,
    /// Sequence number and time of its measurement without timestamps.
    pub rtt_seq: u32,
    /// Its time.
    pub rtt_at: Us,
    /// TSecr last measured.
    pub rtt_echo: u32,
    /// Bytes read in the last round trip, where its count began, and when.
    pub space: u32,
    /// Where.
    pub space_seq: u32,
    /// When.
    pub space_at: Us,
    /// The last urgent byte, until it was passed.
    pub urgent: Option<Urgent>,
}

/// An urgent byte of the peer's (RFC 9293 section 3.8.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Urgent {
    /// Its sequence number.
    pub at: u32,
    /// What became of it.
    pub byte: UrgentByte,
}

/// What became of an urgent byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrgentByte {
    /// It was announced.
    Announced,
    /// It came, be it out of order.
    Here,
    /// It was read out of band.
    Read,
}

/// When acknowledgments leave.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, one flag each")]
pub struct Acking {
    /// The peer's segment size, as seen.
    pub rcv_mss: u32,
    /// Size of the last small segment.
    pub last_small: u32,
    /// Adaptive delay.
    pub ato: Us,
    /// ACKs left to send at once.
    pub quick: u32,
    /// Replies in a row.
    pub pingpong: u32,
    /// An ACK is owed.
    pub scheduled: bool,
    /// It must leave now.
    pub now: bool,
    /// A small segment ended a write.
    pub pushed: bool,
    /// Two did.
    pub pushed_twice: bool,
    /// Data was dropped for want of memory.
    pub no_memory: bool,
    /// ACKs compressed.
    pub compressed: u32,
    /// Duplicate ACKs sent at once for this hole.
    pub duplicates: u32,
    /// The hole.
    pub hole: u32,
    /// A policy of the simulations rules instead.
    pub policy: Option<Box<Ruling>>,
    /// The ends of a simulation ask each other for them.
    pub asking: Option<Box<Asking>>,
}

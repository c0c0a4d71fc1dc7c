//! What the program at either end of a connection does, step by step.

use serde::{Deserialize, Serialize};

/// One call, or a pause between two. Times are in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Waits for so long.
    Sleep(u64),
    /// Waits until so long after the connection was there.
    Until(u64),
    /// Writes so many bytes with one call.
    Write(u32),
    /// Reads so many bytes, with as many calls as that takes.
    Read(u64),
    /// `TCP_NODELAY`.
    Nodelay(bool),
    /// Writes so many bytes with `MSG_MORE`, which holds small segments as `TCP_CORK` does.
    WriteMore(u32),
}

/// What one end is and does. Tracks run side by side, each in its own thread; at most one of them writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The tracks' steps. When all are done, the end closes if it closes first, and then reads to the end.
    pub tracks: Vec<Vec<Step>>,
    /// `TCP_NODELAY` from the start.
    pub nodelay: bool,
    /// `TCP_QUICKACK` anew behind each read.
    pub quickack: bool,
    /// `SO_RCVBUF`, where it is not left to the kernel.
    pub receive_buffer: Option<u32>,
    /// System controls of its namespace, by their names below `net/ipv4`.
    #[serde(default)]
    pub controls: Vec<(String, String)>,
    /// `TCP_CONGESTION`, where it is not left to the kernel.
    #[serde(default)]
    pub congestion: Option<String>,
    /// acklab's TCP with this system's profile instead of the kernel's.
    pub foreign: Option<String>,
}

/// A conversation and the path it takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Tells it from others; the same for its repetitions.
    pub name: String,
    /// What the programs do, in a word.
    pub pattern: String,
    /// The client, which asks, and the server. Whose TCP connects is another matter: acklab's, where one is.
    pub ends: [End; 2],
    /// Which end closes first.
    pub closes: usize,
    /// Either direction in netem's words, from the client on.
    pub link: [String; 2],
    /// Of all that is random.
    pub seed: u64,
}

/// What an end did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// Wrote bytes.
    Write(u32),
    /// Read bytes.
    Read(u32),
    /// Set `TCP_NODELAY`.
    Nodelay(bool),
    /// Wrote bytes with `MSG_MORE`.
    WriteMore(u32),
    /// Closed its direction.
    Close,
}

/// One call with the time of day just before and just behind it, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logged {
    /// Just before.
    pub at: u64,
    /// Just behind.
    pub done: u64,
    /// What.
    pub call: Call,
}

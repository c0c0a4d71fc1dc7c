//! [`Job`]: what a guest is to do, and [`Log`]: what it saw; both travel as JSON files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A network to be built with `ip`, `tc` and `ethtool`, and who talks over it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Lines for `ip -batch` that make namespaces and links.
    pub links: Vec<String>,
    /// For each namespace: lines for `ip -batch`, then `tc -batch`, there.
    pub spaces: Vec<Space>,
    /// The conversations.
    pub flows: Vec<Flow>,
    /// How long after time zero the guest ends, ns.
    pub duration: u64,
    /// From one look at the sockets' `TCP_INFO` to the next, ns; 0: none.
    pub sampling: u64,
}

impl Job {
    /// Whether a receiver limits its ACKs, for which the kernel needs kernel/ack-rate-limit.patch.
    pub fn limits_acks(&self) -> bool {
        let mut settings = self.spaces.iter().flat_map(|space| &space.sysctls);
        settings.any(|(name, _)| name == ACK_LIMIT)
    }
}

/// The setting that limits ACKs; those of the policy's parameters begin with it.
pub(crate) const ACK_LIMIT: &str = "ipv4/tcp_ack_limit";

/// A network namespace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Space {
    /// Its name.
    pub name: String,
    /// Settings under /proc/sys/net, made before any interface is up.
    pub sysctls: Vec<(String, String)>,
    /// Interfaces that must not hand over more than the wire would carry at once, nor leave checksums out.
    pub plain: Vec<String>,
    /// Addresses and routes.
    pub ip: Vec<String>,
    /// Queues.
    pub tc: Vec<String>,
    /// Whether frames are captured here.
    pub capture: bool,
}

/// A connection and what its ends do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Flow {
    /// Name in results.
    pub name: String,
    /// The end that connects, then the one that listens.
    pub ends: [End; 2],
    /// When it connects, ns after time zero.
    pub start: u64,
    /// Nothing new is written from then on.
    pub stop: Option<u64>,
    /// What it carries.
    pub task: Task,
}

/// One end of a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct End {
    /// Its namespace.
    pub space: String,
    /// Address and port.
    pub address: std::net::SocketAddrV4,
    /// `TCP_CONGESTION`.
    pub congestion: String,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `SO_RCVBUF`, where it is not left to the kernel.
    pub receive_buffer: Option<u32>,
    /// acklab's TCP at this address instead of the kernel's; of ends that listen and read alone.
    pub foreign: Option<Foreign>,
}

/// acklab's TCP behind a TUN device, with another system's profile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Foreign {
    /// The system's name.
    pub system: String,
    /// Where in its period a free-running timer is at the start, in [0, 1).
    pub tick: f64,
    /// The kernel's end of the device.
    pub host: std::net::Ipv4Addr,
}

/// What a flow carries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// So many bytes, or without end.
    Bulk(Option<u64>),
    /// (ns after time zero, bytes), rising.
    Writes(Vec<(u64, u32)>),
    /// Requests in turn.
    Requests {
        /// How many.
        count: u64,
        /// Bytes of each.
        request: u32,
        /// Bytes of its answer.
        reply: u32,
        /// What the server takes to answer, ns.
        service: u64,
        /// From an answer to the next request, ns.
        think: u64,
    },
}

/// What the guest saw, beside the captures.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Log {
    /// `uname -r`.
    pub kernel: String,
    /// Time zero, ns since the epoch of the guest's clock.
    pub zero: u64,
    /// In the order of the job.
    pub flows: Vec<FlowLog>,
    /// Frames that the captures had no room for.
    pub lost_frames: u64,
    /// By namespace: its counters in /proc/net/netstat that are not 0.
    pub counters: BTreeMap<String, BTreeMap<String, u64>>,
}

/// What one flow did; times in ns after time zero.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FlowLog {
    /// What went wrong.
    pub error: Option<String>,
    /// Writes of messages: just before the call, bytes.
    pub writes: Vec<(u64, u32)>,
    /// Reads of messages: just after the call, bytes.
    pub reads: Vec<(u64, u32)>,
    /// Exchanges: asked at, answered at.
    pub exchanges: Vec<(u64, u64)>,
    /// Bytes that arrived, of bulk flows.
    pub received: u64,
    /// Looks at the sending socket.
    pub samples: Vec<Sample>,
}

/// `TCP_INFO` at one time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// ns after time zero.
    pub at: u64,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow-start threshold, segments.
    pub ssthresh: u32,
    /// Smoothed round trip, µs.
    pub srtt_us: u32,
    /// Segments sent again so far.
    pub retransmissions: u32,
}

//! The sending side, packets and what became of them, and what is counted.

use crate::mib::Mib;
use std::collections::VecDeque;

use crate::settings::Us;
use crate::skb::{Return, Skb};
use crate::tcp::CaState;

/// The sending side.
#[derive(Clone, Debug, Default)]
pub struct Send {
    /// Initial sequence number.
    pub isn: u32,
    /// How often time-outs chose another path: the flow label follows.
    pub paths: u32,
    /// Oldest unacknowledged.
    pub una: u32,
    /// Next to send.
    pub nxt: u32,
    /// The peer's window, bytes.
    pub wnd: u32,
    /// The largest it was.
    pub max_window: u32,
    /// Sequence number of the segment that last changed it.
    pub wl1: u32,
    /// After the last byte written.
    pub write_seq: u32,
    /// Pushed up to here.
    pub pushed_seq: u32,
    /// End of the last small packet.
    pub small_end: u32,
    /// Payload of a full packet, bytes.
    pub mss: u32,
    /// Path MTU in use.
    pub pmtu: u32,
    /// Packets that are out, oldest first.
    pub out: VecDeque<Skb>,
    /// What has not left yet.
    pub queue: VecDeque<Skb>,
    /// When data last left.
    pub last_sent: Us,
    /// When anything last left.
    pub last_wire: Us,
    /// Memory of what is queued and out.
    pub memory: u32,
    /// A writer waits for space.
    pub no_space: bool,
    /// Urgent pointer.
    pub urgent: u32,
    /// The peer's window or ours kept data back since.
    pub rwnd_limited: bool,
    /// MTU probing: search range of packet sizes and the probe that is out.
    pub mtu_low: u32,
    /// Upper end.
    pub mtu_high: u32,
    /// Size of the probe that is out; 0: none.
    pub mtu_probe: u32,
    /// Its sequence numbers.
    pub mtu_probe_seq: (u32, u32),
    /// Probing is on.
    pub mtu_probing: bool,
    /// When the last probe left.
    pub mtu_probed_at: Us,
}

/// Packets and what became of them.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// State.
    pub ca: CaState,
    /// Packets selectively acknowledged (or counted by duplicate ACKs).
    pub sacked: u32,
    /// After the highest of those selectively acknowledged, while there are any.
    pub sacked_end: u32,
    /// Taken for lost.
    pub lost: u32,
    /// Retransmissions that are out.
    pub retrans: u32,
    /// Packets delivered so far.
    pub delivered: u32,
    /// Of these marked.
    pub delivered_ce: u32,
    /// Packets taken for lost so far.
    pub lost_total: u32,
    /// End of this episode.
    pub high_seq: u32,
    /// Start of an episode that may turn out spurious; `None`: nothing to undo.
    pub undo_marker: Option<u32>,
    /// Retransmissions not yet shown needless; negative: none was sent yet.
    pub undo_retrans: i32,
    /// Timestamp of the first retransmission of this episode.
    pub retrans_stamp: Option<u32>,
    /// PRR's counters.
    pub prr_delivered: u32,
    /// PRR's counters.
    pub prr_out: u32,
    /// Degree of reordering, packets.
    pub reordering: u32,
    /// Times reordering was seen.
    pub reord_seen: u32,
    /// F-RTO is asking whether a time-out was spurious.
    pub frto: bool,
    /// End of what was out when a tail loss probe left; `None`: none is out.
    pub tlp_end: Option<u32>,
    /// The probe was a retransmission.
    pub tlp_retrans: bool,
    /// The peer dropped what it had SACKed.
    pub reneged: bool,
    /// Expiries of the timer without progress.
    pub retransmits: u32,
    /// Since the connection began.
    pub total_rto: u32,
    /// Paths that time-outs changed.
    pub rehash: u32,
    /// Retransmissions since it began.
    pub total_retrans: u32,
    /// DSACKs since it began.
    pub dsack_dups: u32,
    /// RACK.
    pub rack: Rack,
    /// Unanswered probes of window or keep-alive.
    pub probes_out: u32,
    /// When probing began.
    pub probes_since: Option<Us>,
    /// What a switch sent back and is not acknowledged.
    pub returned: Vec<Return>,
    /// Packets of these that wait, and are neither lost nor in flight.
    pub waiting: u32,
    /// Episodes of time-out.
    pub rto_recoveries: u16,
}

/// RACK (RFC 8985).
#[derive(Clone, Debug, Default)]
pub struct Rack {
    /// When the most recently sent packet that was delivered left.
    pub sent: Us,
    /// Its end.
    pub end: u32,
    /// Its round trip.
    pub rtt: Us,
    /// Something new was delivered.
    pub advanced: bool,
    /// Quarter round trips of the reordering window.
    pub steps: u32,
    /// Recoveries for which these last.
    pub persist: u32,
    /// A DSACK came in this round.
    pub dsack_seen: bool,
    /// Delivered when the window was last updated.
    pub last_delivered: u32,
}

/// What TCP_INFO counts.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Segments sent.
    pub segs_out: u32,
    /// Segments received.
    pub segs_in: u32,
    /// Segments with data sent.
    pub data_segs_out: u32,
    /// Segments with data received.
    pub data_segs_in: u32,
    /// Bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Bytes retransmitted.
    pub bytes_retrans: u64,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Segments received out of order.
    pub rcv_ooopack: u32,
    /// Time busy, limited by the peer's window, limited by the send buffer.
    pub chrono: [Us; 3],
    /// Which of these runs, since.
    pub chrono_runs: Option<(usize, Us)>,
    /// When delivery was last counted, and the first packet of its flight left.
    pub delivered_at: Us,
    /// See above.
    pub first_sent: Us,
    /// The application limited the sending until this many are delivered.
    pub app_limited: u32,
    /// The last rate sample: packets and interval.
    pub rate: (u32, Us),
    /// It was limited by the application.
    pub rate_app_limited: bool,
    /// Pacing rate, bytes a second.
    pub pacing_rate: u64,
    /// The congestion control asks for it.
    pub paces: bool,
    /// What the host has not added to its own counters yet.
    pub mibs: Vec<(Mib, u32)>,
}

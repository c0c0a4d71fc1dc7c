//! One connection's control block, by subject; the other files are its rules.

use std::collections::VecDeque;

use crate::cc::{Congestion, Window};
use crate::errqueue::ErrorQueue;
use crate::rtt::Rtt;
use crate::segment::{Place, Segment};
use crate::settings::{Env, Us};
use crate::skb::Skb;

/// State of a connection (RFC 9293 section 3.3.2), numbered as TCP_INFO does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Open.
    Established = 1,
    /// Our SYN is out.
    SynSent = 2,
    /// The peer's SYN was answered.
    SynRecv = 3,
    /// We closed.
    FinWait1 = 4,
    /// Our FIN is acknowledged.
    FinWait2 = 5,
    /// Both closed.
    TimeWait = 6,
    /// No connection.
    #[default]
    Close = 7,
    /// The peer closed.
    CloseWait = 8,
    /// The peer closed, then we.
    LastAck = 9,
    /// Waiting for connections.
    Listen = 10,
    /// Both closed at once.
    Closing = 11,
}

impl State {
    /// Whether data of the peer's is taken.
    pub const fn may_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Whether data of ours may leave.
    pub const fn may_send(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait)
    }
}

/// What the sender does about loss, numbered as TCP_INFO does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaState {
    /// Nothing.
    #[default]
    Open,
    /// Duplicate or selective acknowledgments came.
    Disorder,
    /// The window is being reduced for a mark.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// Recovery from a time-out.
    Loss,
}

/// Which ECN a connection uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnMode {
    /// None.
    #[default]
    Off,
    /// RFC 3168.
    Classic,
}

/// What both ends agreed on.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// SACK.
    pub sack: bool,
    /// Timestamps.
    pub stamps: bool,
    /// Window scaling.
    pub scaling: bool,
    /// The peer's window is shifted by it.
    pub send_scale: u8,
    /// Ours is.
    pub receive_scale: u8,
    /// Largest payload that the peer takes.
    pub mss_clamp: u32,
    /// What we announced.
    pub advmss: u32,
    /// The TCP header of a segment with data, without SACK blocks.
    pub header: u32,
}

/// The sending side.
#[derive(Clone, Debug, Default)]
pub struct Send {
    /// Initial sequence number.
    pub isn: u32,
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
    /// Received out of order, ascending and disjoint.
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
    /// Where the urgent byte stands, until it was passed.
    pub urgent: Option<u32>,
    /// It was read out of band.
    pub urgent_read: bool,
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
}

/// What the single transmit timer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// RFC 6298.
    Retransmit,
    /// A window probe.
    Probe,
    /// RACK's reordering window.
    Reorder,
    /// A tail loss probe.
    TailLoss,
}

/// Deadlines.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    /// The transmit timer.
    pub transmit: Option<(Wait, Us)>,
    /// Delayed ACK.
    pub delack: Option<Us>,
    /// Compressed ACK.
    pub compressed: Option<Us>,
    /// Keep-alive, or the end of FIN-WAIT-2.
    pub keepalive: Option<Us>,
    /// The end of TIME-WAIT.
    pub time_wait: Option<Us>,
    /// Pacing lets the next packet go.
    pub pace: Option<Us>,
}

/// ECN of both directions.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, one flag each")]
pub struct Ecn {
    /// Which.
    pub mode: EcnMode,
    /// ECE goes out.
    pub demand_cwr: bool,
    /// CWR goes out with new data.
    pub queue_cwr: bool,
    /// A marked or markable packet was seen.
    pub seen: bool,
    /// DCTCP: the last packet was marked.
    pub ce_state: bool,
}

/// Options of the socket that TCP asks for.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, one flag each")]
pub struct Options {
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// TCP_CORK.
    pub cork: bool,
    /// Data leaves whatever Nagle says until the queue is empty.
    pub push: bool,
    /// SO_SNDBUF, bytes of memory.
    pub sndbuf: u32,
    /// Set by the program.
    pub sndbuf_locked: bool,
    /// SO_RCVBUF was set by the program.
    pub rcvbuf_locked: bool,
    /// TCP_MAXSEG; 0: not set.
    pub user_mss: u32,
    /// TCP_WINDOW_CLAMP; 0: not set.
    pub window_clamp: u32,
    /// TCP_USER_TIMEOUT; 0: not set.
    pub user_timeout: Us,
    /// TCP_NOTSENT_LOWAT; 0: the system's.
    pub notsent_lowat: u32,
    /// TCP_SYNCNT; 0: the system's.
    pub syn_retries: u32,
    /// SO_KEEPALIVE.
    pub keepalive: bool,
    /// TCP_KEEPIDLE.
    pub keep_idle: Us,
    /// TCP_KEEPINTVL.
    pub keep_interval: Us,
    /// TCP_KEEPCNT; 0: the system's.
    pub keep_count: u32,
    /// TCP_LINGER2: `None` the system's, negative at once.
    pub linger2: Option<i64>,
    /// SO_LINGER.
    pub linger: Option<Us>,
    /// TCP_DEFER_ACCEPT in SYN-ACK retransmissions.
    pub defer_accept: u32,
    /// SO_RCVLOWAT.
    pub rcvlowat: u32,
    /// IP_TOS.
    pub tos: u8,
    /// SO_MAX_PACING_RATE, bytes a second; 0: none.
    pub pacing: u64,
    /// IP_MTU_DISCOVER: 0 never, 1 wanted, 2 do, 3 probe.
    pub pmtu_discover: u8,
    /// SO_PRIORITY.
    pub priority: u32,
    /// IP_RECVERR.
    pub recverr: bool,
    /// TCP_FASTOPEN's queue length.
    pub fastopen: u32,
    /// TCP_THIN_LINEAR_TIMEOUTS.
    pub thin_linear: bool,
    /// TCP_DELACK_MAX_US, TCP_RTO_MIN_US, TCP_RTO_MAX_MS; 0: not set.
    pub delack_max: Us,
    /// See above.
    pub rto_min: Us,
    /// See above.
    pub rto_max: Us,
    /// TCP_SAVE_SYN.
    pub save_syn: bool,
    /// TCP_TX_DELAY.
    pub tx_delay: Us,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodelay: false,
            cork: false,
            push: false,
            sndbuf: 16_384,
            sndbuf_locked: false,
            rcvbuf_locked: false,
            user_mss: 0,
            window_clamp: 0,
            user_timeout: 0,
            notsent_lowat: 0,
            syn_retries: 0,
            keepalive: false,
            keep_idle: 0,
            keep_interval: 0,
            keep_count: 0,
            linger2: None,
            linger: None,
            defer_accept: 0,
            rcvlowat: 1,
            tos: 0,
            pacing: 0,
            pmtu_discover: 1,
            priority: 0,
            recverr: false,
            fastopen: 0,
            thin_linear: false,
            delack_max: 0,
            rto_min: 0,
            rto_max: 0,
            save_syn: false,
            tx_delay: 0,
        }
    }
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
}

/// How a connection came to its end, or what a program is to be told.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, one flag each")]
pub struct Fate {
    /// Pending error (SO_ERROR), as errno.
    pub error: i32,
    /// An error that counts only if the connection fails.
    pub soft_error: i32,
    /// We shut down reading.
    pub shut_read: bool,
    /// We shut down writing.
    pub shut_write: bool,
    /// No descriptor is left.
    pub orphan: bool,
    /// Events since the host looked last: poll's mask.
    pub wake: u32,
    /// TIME-WAIT is over or the block is of no use: the host may drop it.
    pub gone: bool,
}

/// Whether a listener keeps it as a request, and what it knows.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, one flag each")]
pub struct Opening {
    /// It came of a listener.
    pub passive: bool,
    /// The window scale that our SYN offers.
    pub offered_scale: Option<u8>,
    /// Retransmissions of our SYN or SYN-ACK.
    pub retries: u32,
    /// When it left.
    pub sent: Us,
    /// TFO: cookie to send on the SYN-ACK.
    pub cookie: Option<Vec<u8>>,
    /// The cookie goes in the experimental option.
    pub experimental: bool,
    /// TFO: the child exists before the handshake is over.
    pub early: bool,
    /// The peer's SYN carried AccECN's flags.
    pub syn_flags: u16,
    /// Data that the SYN carried.
    pub syn_data: u32,
    /// The SYN-ACK was acknowledged with no room in the accept queue, or deferred.
    pub acked: bool,
    /// TCP_FASTOPEN_CONNECT and MSG_FASTOPEN: data goes with the SYN.
    pub with_data: bool,
    /// TFO: our SYN carries a request for a cookie, or the cookie.
    pub request: Option<Vec<u8>>,
    /// The SYN-ACK acknowledged data of our SYN.
    pub data_acked: bool,
}

/// A connection.
#[derive(Clone, Debug, Default)]
pub struct Tcp {
    /// Our address.
    pub local: Place,
    /// The peer's.
    pub remote: Place,
    /// State.
    pub state: State,
    /// What was agreed.
    pub terms: Terms,
    /// Sending side.
    pub snd: Send,
    /// Receiving side.
    pub rcv: Receive,
    /// Loss.
    pub rec: Recovery,
    /// Round trips.
    pub rtt: Rtt,
    /// Congestion window.
    pub window: Window,
    /// Congestion control.
    pub cc: Congestion,
    /// Acknowledgments.
    pub ack: Acking,
    /// Deadlines.
    pub timers: Timers,
    /// ECN.
    pub ecn: Ecn,
    /// Socket options.
    pub opt: Options,
    /// Counters.
    pub count: Counters,
    /// Errors, shutdown, events.
    pub fate: Fate,
    /// The handshake.
    pub open: Opening,
    /// Error queue.
    pub errors: ErrorQueue,
    /// Segments to send, in order.
    pub wire: Vec<Segment>,
}

/// Poll's masks.
pub mod poll {
    /// Data may be read.
    pub const IN: u32 = 0x001;
    /// Urgent data.
    pub const PRI: u32 = 0x002;
    /// Data may be written.
    pub const OUT: u32 = 0x004;
    /// An error.
    pub const ERR: u32 = 0x008;
    /// Both directions are closed.
    pub const HUP: u32 = 0x010;
    /// No such descriptor.
    pub const NVAL: u32 = 0x020;
    /// As IN.
    pub const RDNORM: u32 = 0x040;
    /// Out-of-band data.
    pub const RDBAND: u32 = 0x080;
    /// As OUT.
    pub const WRNORM: u32 = 0x100;
    /// Priority data may be written.
    pub const WRBAND: u32 = 0x200;
    /// The peer closed its direction.
    pub const RDHUP: u32 = 0x2000;
}

impl Tcp {
    /// Packets on the way: out, less those delivered or lost, and retransmissions.
    pub fn in_flight(&self) -> u32 {
        (self.packets_out() + self.rec.retrans).saturating_sub(self.rec.sacked + self.rec.lost)
    }

    /// Packets that are out.
    pub fn packets_out(&self) -> u32 {
        self.snd.out.len() as u32
    }

    /// The end of what the peer's window admits.
    pub const fn window_end(&self) -> u32 {
        self.snd.una.wrapping_add(self.snd.wnd)
    }

    /// What of the announced window is left.
    pub const fn receive_window(&self) -> u32 {
        let left = self.rcv.wup.wrapping_add(self.rcv.wnd).wrapping_sub(self.rcv.nxt) as i32;
        if left < 0 { 0 } else { left as u32 }
    }

    /// Whether the window is being reduced.
    pub const fn in_reduction(&self) -> bool {
        matches!(self.rec.ca, CaState::Cwr | CaState::Recovery)
    }

    /// The threshold if nothing had been lost.
    pub const fn current_ssthresh(&self) -> u32 {
        let three_quarters = (self.window.cwnd >> 1) + (self.window.cwnd >> 2);
        if self.in_reduction() || self.window.ssthresh > three_quarters {
            self.window.ssthresh
        } else {
            three_quarters
        }
    }

    /// The ceiling of time-outs.
    pub fn rto_max(&self, env: &Env<'_>) -> Us {
        if self.opt.rto_max > 0 {
            self.opt.rto_max
        } else {
            env.sysctls.of("tcp_rto_max_ms") as Us * 1000
        }
    }

    /// The least time-out.
    pub fn rto_min(&self, env: &Env<'_>) -> Us {
        if env.route.rto_min > 0 {
            env.route.rto_min
        } else if self.opt.rto_min > 0 {
            self.opt.rto_min
        } else {
            env.sysctls.of("tcp_rto_min_us") as Us
        }
    }

    /// Wakes who polls for `mask`.
    pub const fn wake(&mut self, mask: u32) {
        self.fate.wake |= mask;
    }

    /// Sets the transmit timer.
    pub const fn arm(&mut self, wait: Wait, at: Us) {
        self.timers.transmit = Some((wait, at));
    }

    /// Whether the transmit timer waits for `wait`.
    pub fn waits_for(&self, wait: Wait) -> bool {
        self.timers.transmit.is_some_and(|(kind, _)| kind == wait)
    }

    /// The connection is over.
    pub fn done(&mut self) {
        self.state = State::Close;
        self.timers = Timers::default();
        self.fate.shut_read = true;
        self.fate.shut_write = true;
        self.wake(poll::IN | poll::OUT | poll::RDNORM | poll::WRNORM | poll::RDHUP | poll::HUP);
        if self.fate.orphan {
            self.fate.gone = true;
        }
    }

    /// Nothing of what was written leaves any more.
    pub fn drop_all(&mut self) {
        self.snd.queue.clear();
        self.snd.out.clear();
        self.snd.memory = 0;
        (self.rec.sacked, self.rec.lost, self.rec.retrans) = (0, 0, 0);
        self.errors.acknowledge_all();
    }

    /// It ends with `error`.
    pub fn fail(&mut self, error: i32) {
        self.fate.error = error;
        self.drop_all();
        self.wake(poll::ERR);
        self.done();
    }

    /// The earliest deadline.
    pub fn deadline(&self) -> Option<Us> {
        let timers = &self.timers;
        [
            timers.transmit.map(|(_, at)| at),
            timers.delack,
            timers.compressed,
            timers.keepalive,
            timers.time_wait,
            timers.pace,
        ]
        .into_iter()
        .flatten()
        .min()
    }
}

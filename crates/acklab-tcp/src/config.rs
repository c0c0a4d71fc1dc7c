//! What a connection is set up with: the defaults of the systems that are imitated, and what a
//! scenario changes about them.

use super::ack_requests::AckRequests;
use super::nagle::Nagle;
use acklab_core::ack;
use acklab_core::cc;
use acklab_core::options::Conflict;
use acklab_core::time::Span;

/// A connection's parameters.
///
/// ```
/// use acklab_core::time::Span;
/// use acklab_tcp::{Config, LossRecovery, Nagle, System};
///
/// // QNX as it comes, but for what this run is about.
/// let mut config = Config { nagle: Nagle::Off, ..System::Qnx70.config() };
/// config.loss.recovery = LossRecovery::NewReno;
/// config.rto.min = Span::from_millis(200);
/// assert_eq!(config.mss, System::Qnx70.config().mss);
/// ```
#[expect(clippy::struct_excessive_bools, reason = "each switches a habit of its own on")]
#[derive(Clone, Debug)]
pub struct Config {
    /// Which implementation carries it.
    pub stack: Stack,
    /// Largest segment we accept and, capped by the peer's, send: bytes without options.
    pub mss: u16,
    /// Bytes the application may have written and the peer not acknowledged.
    pub send_buffer: u32,
    /// Bytes that may wait for the application to read.
    pub receive_buffer: u32,
    /// The window opens with what the application reads in a round trip (Linux); else with what arrives.
    pub receive_tuning: bool,
    /// Our window scale shift, 0 to 14; `None`: the option is not offered (RFC 7323 section 2).
    pub window_scale: Option<u8>,
    /// When reading alone makes us announce a larger window.
    pub window_update: WindowUpdate,
    /// Negotiate ECN (RFC 3168); what an echoed mark does is the congestion control's business.
    pub ecn: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Nagle's algorithm.
    pub nagle: Nagle,
    /// Segments that leave together end with PSH, as where segmentation offload makes them (Linux 5.4 and later).
    pub push_bursts: bool,
    /// When to acknowledge.
    pub ack: ack::Profile,
    /// How the data sender asks for ACKs, where both ends can; only policies that honour requests announce it
    /// ([`ack::Profile::honours_requests`]).
    pub ack_requests: AckRequests,
    /// Where in its period a free-running ACK tick stands at time zero, in [0, 1).
    pub ack_phase: f64,
    /// Congestion control.
    pub congestion: cc::Algorithm,
    /// What the congestion window starts from and counts.
    pub window: Window,
    /// How lost data is found and sent again.
    pub loss: Loss,
    /// The retransmission time-out.
    pub rto: Rto,
    /// When the connection is given up or forgotten.
    pub patience: Patience,
}

acklab_core::words! {
    /// Which implementation carries a connection.
    pub enum Stack {
        /// This crate's, which knows places in a stream and all systems' habits.
        Stream = "stream",
        /// The host's of acklab-host, which has Linux's queue of segments, windows in packets and memory. Worlds that
        /// have it build the connection there.
        Segments = "segments",
    }
}

/// What the congestion window starts from and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Initial congestion window.
    pub initial: InitialWindow,
    /// Initial slow-start threshold, bytes; `None`: arbitrarily high (RFC 5681 section 3.1).
    pub ssthresh: Option<u64>,
    /// What it counts.
    pub unit: CwndUnit,
    /// Fall back to the initial window after an idle RTO (RFC 5681 section 4.1).
    pub idle_restart: bool,
    /// Retransmissions of our SYN that leave the initial window as it is. RFC 5681 section 3.1 forgives
    /// none; Linux (`tcp_init_transfer`) and FreeBSD (`sc_rxmits`) forgive one, since on a path of more
    /// than a second it is sent twice without a loss.
    pub forgiven_syns: u32,
}

/// How lost data is found and sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// By which rules; SACK (RFC 2018) is offered where they make use of it.
    pub recovery: LossRecovery,
    /// Duplicate ACKs (or, with SACK, segments above) that mean loss: 3 in RFC 5681 and RFC 6675.
    pub dup_thresh: u32,
    /// Send new data on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Fast recovery with SACK reduces the window in proportion to what arrives (RFC 6937); else at once. Congestion controls that
    /// pace decide by themselves.
    pub proportional: bool,
}

/// The retransmission time-out (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rto {
    /// Before the first measurement (section 2.1).
    pub initial: Span,
    /// Lower bound (section 2.4 says 1 s; no system does).
    pub min: Span,
    /// Upper bound.
    pub max: Span,
    /// Clock granularity G.
    pub granularity: Span,
    /// The lower bound applies to the term 4 x RTTVAR alone, as in Linux, not to the sum.
    pub min_on_variance: bool,
    /// Added to a measured time-out: BSD's allowance for the peer's delayed ACK.
    pub slop: Span,
}

/// When a connection is given up or forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Retransmissions of one segment before the connection is given up.
    pub retries: u32,
    /// Retransmissions of a SYN before the connection is given up.
    pub syn_retries: u32,
    /// The same for the SYN-ACK of a listener.
    pub syn_ack_retries: u32,
    /// Length of TIME-WAIT, 2 MSL.
    pub time_wait: Span,
    /// Keep-alive probes (RFC 9293 section 3.8.4); off by default everywhere.
    pub keep_alive: Option<KeepAlive>,
}

/// The initial congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// RFC 6928: min(10 MSS, max(2 MSS, 14600)).
    Rfc6928,
    /// RFC 3390: min(4 MSS, max(2 MSS, 4380)).
    Rfc3390,
    /// A number of segments.
    Segments(u32),
}

impl InitialWindow {
    /// Bytes, for segments of `mss` bytes.
    pub fn bytes(self, mss: u32) -> u64 {
        let mss = u64::from(mss);
        match self {
            Self::Rfc6928 => (10 * mss).min((2 * mss).max(14_600)),
            Self::Rfc3390 => (4 * mss).min((2 * mss).max(4_380)),
            Self::Segments(n) => u64::from(n.max(1)) * mss,
        }
    }
}

/// What the congestion window counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CwndUnit {
    /// Bytes, as in the RFCs, BSD and Windows.
    Bytes,
    /// Segments whatever their size, as in Linux: ten 100-byte messages fill a window of ten.
    Segments,
}

acklab_core::words! {
    /// How the sender finds out what was lost and sends it again.
    pub enum LossRecovery {
        /// RFC 6675 where SACK was negotiated, RFC 6582 where not.
        Sack = "sack",
        /// RFC 6582, without SACK: a partial ACK sends the next hole again.
        NewReno = "newreno",
        /// RFC 5681 section 3.2 and 4.3BSD-Reno, without SACK: the first ACK of new data ends fast
        /// recovery, so that a second loss of one window needs three more duplicates and halves the
        /// window once more.
        Reno = "reno",
        /// As `sack`, and a retransmission is lost, too, once something that left later by a fourth of the least
        /// round trip has arrived (RFC 8985 section 6.2); `sack` waits for the time-out there.
        Rack = "rack",
    }
}

impl LossRecovery {
    /// Whether it makes use of SACK.
    pub const fn is_selective(self) -> bool {
        matches!(self, Self::Sack | Self::Rack)
    }
}

/// Keep-alive probing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Silence before the first probe.
    pub idle: Span,
    /// Time between probes.
    pub interval: Span,
    /// Unanswered probes before the connection is given up.
    pub probes: u32,
}

/// When a read makes us announce a larger window (RFC 9293 section 3.8.6.2.2 bounds it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowUpdate {
    /// When it at least doubles and the old one was at most half the buffer (Linux).
    Doubled,
    /// When it grew by two segments or half the buffer (4.4BSD and its descendants).
    TwoSegments,
}

impl Config {
    /// TCP as papers and plain simulators have it, with segments of exactly `mss` payload bytes: 960
    /// gives packets of 1000 bytes and ACKs of 40.
    ///
    /// - headers of 40 bytes: no timestamps, no SACK, no window scaling (options on SYNs only);
    /// - a receive window of 64 segments (at most 65535 bytes) that prompt reading keeps open, without
    ///   window updates before it is half closed; set `receive_buffer` for another;
    /// - every segment acknowledged at once, no Nagle, no slow start after idleness;
    /// - the window counts bytes, starts at one segment and at `initial_ssthresh` (unset: no limit);
    /// - Reno, with NewReno's recovery (RFC 6582) after three duplicates, no limited transmit;
    /// - time-outs of RFC 6298 to the letter: 1 s at first and at least, 60 s at most;
    /// - ECN off: set `ecn` at both ends.
    pub fn textbook(mss: u16) -> Self {
        Self {
            mss,
            send_buffer: 1 << 20,
            receive_buffer: (64 * u32::from(mss)).min(u32::from(u16::MAX)),
            receive_tuning: false,
            window_scale: None,
            timestamps: false,
            nagle: Nagle::Off,
            push_bursts: false,
            ack: ack::Profile::EverySegment,
            congestion: cc::Algorithm::Reno,
            window: Window {
                initial: InitialWindow::Segments(1),
                unit: CwndUnit::Bytes,
                idle_restart: false,
                forgiven_syns: 0,
                ..Window::LINUX
            },
            loss: Loss { recovery: LossRecovery::NewReno, limited_transmit: false, ..Loss::MODERN },
            rto: Rto {
                min: Span::from_secs(1),
                max: Span::from_secs(60),
                min_on_variance: false,
                ..Rto::LINUX
            },
            ..Self::linux()
        }
    }

    /// Refuses requests for ACKs beside a policy that does not honour them.
    pub fn check_requests(&self) -> Result<(), Conflict> {
        if self.ack_requests == AckRequests::Off || self.ack.honours_requests() {
            return Ok(());
        }
        let own = self.ack.name();
        let reason = format!(
            "goes with ack = linux, delayed, tick or ack-frequency; {own} decides by itself"
        );
        Err(Conflict { name: "ack_requests", reason })
    }

    /// The requests for ACKs that our SYN offers to understand.
    pub const fn announced_requests(&self) -> AckRequests {
        if self.ack.honours_requests() { self.ack_requests } else { AckRequests::Off }
    }

    /// Whether our SYN offers SACK.
    pub(super) fn offers_sack(&self) -> bool {
        self.loss.recovery.is_selective()
    }

    /// Linux 6.18 segment by segment: its defaults, carried by a host with its queue of segments ([`Stack::Segments`]).
    pub fn segments() -> Self {
        Self { stack: Stack::Segments, ..Self::linux() }
    }

    pub(super) fn linux() -> Self {
        Self {
            stack: Stack::Stream,
            mss: 1460,
            // tcp_wmem[2], and half of tcp_rmem[2] (tcp_adv_win_scale = 1).
            send_buffer: 4 << 20,
            receive_buffer: 3 << 20,
            receive_tuning: true,
            window_scale: Some(7),
            window_update: WindowUpdate::Doubled,
            ecn: false,
            timestamps: true,
            nagle: Nagle::Minshall,
            push_bursts: true,
            ack: ack::Profile::Linux(ack::linux::Options::default()),
            ack_requests: AckRequests::Off,
            ack_phase: 0.0,
            congestion: cc::Algorithm::Cubic(cc::cubic::Options::default()),
            window: Window::LINUX,
            loss: Loss::LINUX,
            rto: Rto::LINUX,
            patience: Patience::LINUX,
        }
    }

    pub(super) fn freebsd(ack: ack::Profile) -> Self {
        Self {
            send_buffer: 2 << 20,
            receive_buffer: 2 << 20,
            receive_tuning: false,
            push_bursts: false,
            window_scale: Some(6),
            window_update: WindowUpdate::TwoSegments,
            nagle: Nagle::Bsd,
            ack,
            congestion: cc::Algorithm::Reno,
            window: Window { initial: InitialWindow::Rfc6928, forgiven_syns: 1, ..Window::BSD },
            loss: Loss::MODERN,
            rto: Rto::FREEBSD,
            // net.inet.tcp.syncache.rexmtlimit.
            patience: Patience { retries: 12, syn_ack_retries: 3, ..Patience::LINUX },
            ..Self::linux()
        }
    }

    pub(super) fn windows_7(ack: ack::Profile) -> Self {
        Self {
            send_buffer: 1 << 20,
            receive_buffer: 1 << 20,
            window_scale: Some(8),
            nagle: Nagle::Classic,
            timestamps: false,
            window: Window { initial: InitialWindow::Segments(2), ..Window::BSD },
            rto: Rto::WINDOWS_7,
            // TcpMaxDataRetransmissions 5, TcpMaxConnectRetransmissions and
            // TcpMaxConnectResponseRetransmissions 2, TcpTimedWaitDelay.
            patience: Patience {
                retries: 5,
                syn_retries: 2,
                syn_ack_retries: 2,
                time_wait: Span::from_secs(120),
                keep_alive: None,
            },
            ..Self::freebsd(ack)
        }
    }

    pub(super) fn qnx(ack: ack::Profile) -> Self {
        Self {
            // NetBSD: tcp_sendspace and tcp_recvspace 32 KiB, TCPTV_MIN 1 s, hz = 100.
            send_buffer: 32 << 10,
            receive_buffer: 32 << 10,
            window_scale: Some(0),
            window: Window { initial: InitialWindow::Segments(4), ..Window::BSD },
            rto: Rto {
                min: Span::from_secs(1),
                granularity: Span::from_millis(500),
                slop: Span::ZERO,
                ..Rto::FREEBSD
            },
            ..Self::freebsd(ack)
        }
    }
}

impl Window {
    const LINUX: Self = Self {
        // TCP_INIT_CWND of include/net/tcp.h: whatever their size.
        initial: InitialWindow::Segments(10),
        ssthresh: None,
        unit: CwndUnit::Segments,
        idle_restart: true,
        forgiven_syns: 1,
    };
    pub(super) const BSD: Self = Self { unit: CwndUnit::Bytes, forgiven_syns: 0, ..Self::LINUX };
}

impl Loss {
    const MODERN: Self = Self {
        recovery: LossRecovery::Sack,
        dup_thresh: 3,
        limited_transmit: true,
        proportional: false,
    };
    const LINUX: Self = Self { recovery: LossRecovery::Rack, proportional: true, ..Self::MODERN };
}

impl Rto {
    /// TCP_TIMEOUT_INIT, TCP_RTO_MIN, TCP_RTO_MAX of include/net/tcp.h.
    const LINUX: Self = Self {
        initial: Span::from_secs(1),
        min: Span::from_millis(200),
        max: Span::from_secs(120),
        granularity: Span::from_millis(1),
        min_on_variance: true,
        slop: Span::ZERO,
    };
    /// net.inet.tcp.rexmit_min; TCPTV_REXMTMAX; TCPTV_CPU_VAR, hz/5, in TCPT_RANGESET (xnu:
    /// TCP_ADD_REXMTSLOP).
    const FREEBSD: Self = Self {
        min: Span::from_millis(30),
        max: Span::from_secs(64),
        min_on_variance: false,
        slop: Span::from_millis(200),
        ..Self::LINUX
    };
    /// TcpInitialRtt.
    pub(super) const WINDOWS_7: Self = Self {
        initial: Span::from_secs(3),
        min: Span::from_millis(300),
        slop: Span::ZERO,
        ..Self::FREEBSD
    };
}

impl Patience {
    const LINUX: Self = Self {
        retries: 15,
        // tcp_syn_retries, tcp_synack_retries.
        syn_retries: 6,
        syn_ack_retries: 5,
        time_wait: Span::from_secs(60),
        keep_alive: None,
    };
}

/// Linux's, as this crate imitates it ([`Stack::Stream`]).
impl Default for Config {
    fn default() -> Self {
        Self::linux()
    }
}

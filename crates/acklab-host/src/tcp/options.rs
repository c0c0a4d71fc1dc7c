//! Options of the socket that TCP asks for.

use crate::settings::Us;

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
    /// IP_TTL; 0: not set.
    pub ttl: u8,
    /// IP_MINTTL.
    pub min_ttl: u8,
    /// SO_PEEK_OFF: where the next look begins; negative: at the front.
    pub peek_off: i64,
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
    /// The first retransmission time-out, as a BPF program may set it (BPF_SOCK_OPS_TIMEOUT_INIT); 0: a second.
    pub initial_rto: Us,
    /// Nagle's algorithm of RFC 896: a small segment waits while anything is out.
    pub classic_nagle: bool,
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
            ttl: 0,
            min_ttl: 0,
            peek_off: -1,
            pacing: 0,
            pmtu_discover: 1,
            priority: 0,
            recverr: false,
            fastopen: 0,
            thin_linear: false,
            delack_max: 0,
            rto_min: 0,
            rto_max: 0,
            initial_rto: 0,
            classic_nagle: false,
            save_syn: false,
            tx_delay: 0,
        }
    }
}

//! One connection's control block, by subject; the other files are its rules.

mod options;
mod receiver;
mod sender;

use crate::cc::{Congestion, Window};
use crate::errqueue::ErrorQueue;
use crate::mib::Mib;
use crate::rtt::Rtt;
use crate::segment::{Place, Segment};
use crate::settings::{Env, SECOND, Us};

pub use options::Options;
pub use receiver::{Acking, Chunk, Receive, Urgent, UrgentByte};
pub use sender::{Counters, Rack, Recovery, Send};

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
    /// RFC 9768 was offered.
    Asked,
    /// RFC 9768.
    Accurate,
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
    /// What a switch sent back goes again.
    pub returned: Option<Us>,
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
    /// Where each mark is echoed: the last packet was marked.
    pub ce_state: bool,
    /// The next number expected after the last packet whose mark was looked at.
    pub turned_at: Option<u32>,
    /// RFC 9768.
    pub accurate: crate::accurate::Accurate,
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

/// What a client knows of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Its cookie; empty: none.
    pub cookie: Vec<u8>,
    /// Its MSS; 0: not known.
    pub mss: u32,
    /// The next request: 1 in the experimental option, 2 in the standard's again.
    pub experiment: u8,
    /// The cookie came in the experimental option.
    pub experimental: bool,
}

/// What a client knows of its peers, by host.
pub type Cache = std::collections::BTreeMap<u32, Known>;

/// What a SYN carries of fast open.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// The option: a cookie, or empty to ask for one; `None`: no option.
    pub option: Option<(Vec<u8>, bool)>,
    /// Bytes that the program wants to send with it.
    pub bytes: u32,
    /// The peer's MSS as it was last; 0: not known.
    pub mss: u32,
}

/// Whether a listener keeps it as a request, and what it knows.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, one flag each")]
pub struct Opening {
    /// It came of a listener.
    pub passive: bool,
    /// Its SYN-ACK was sent again by a time-out.
    pub timed_out: bool,
    /// The window scale that our SYN offers.
    pub offered_scale: Option<u8>,
    /// TFO: it came of a SYN with data or cookie.
    pub fast_child: bool,
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
    /// Data that our SYN carried.
    pub syn_data: u32,
    /// The SYN-ACK was acknowledged with no room in the accept queue, or deferred.
    pub acked: bool,
    /// TFO: what our first SYN is to carry.
    pub ask: Option<Ask>,
    /// TFO: our SYN carried the option, the experimental one if so.
    pub asked: Option<bool>,
    /// TFO: what the SYN-ACK told, for the host to keep.
    pub learned: Option<Known>,
    /// TCP_INFO's reason why fast open did not work.
    pub client_fail: u8,
    /// TFO: data of the SYN was taken.
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
        let gone = self.rec.sacked + self.rec.lost + self.rec.waiting;
        (self.packets_out() + self.rec.retrans).saturating_sub(gone)
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

    /// The time-out before the first measurement (`tcp_timeout_init`).
    pub const fn initial_rto(&self) -> Us {
        if self.opt.initial_rto > 0 { self.opt.initial_rto } else { SECOND }
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
        if matches!(self.state, State::Established | State::CloseWait) {
            self.tally(Mib::EstabResets);
        }
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
        self.rtt.backoff = 0;
        self.errors.acknowledge_all();
    }

    /// Sizes without what a peer agrees to.
    fn terms_of_none(&self) -> Terms {
        let Terms { mss_clamp, advmss, header, .. } = self.terms;
        Terms { mss_clamp, advmss, header, ..Terms::default() }
    }

    /// It ends with `error`.
    pub fn fail(&mut self, error: i32) {
        self.fate.error = error;
        if error != 0 && matches!(self.state, State::SynSent | State::SynRecv) {
            self.tally(Mib::AttemptFails);
        }
        if self.state == State::SynSent {
            // Nothing was agreed.
            self.terms = self.terms_of_none();
        }
        self.drop_all();
        self.wake(poll::ERR);
        self.done();
    }

    /// The earliest deadline.
    pub fn deadline(&self) -> Option<Us> {
        let timers = &self.timers;
        let transmit = timers.transmit.map(|(_, at)| at);
        let acks = earlier(timers.delack, timers.compressed);
        let slow = earlier(timers.keepalive, timers.time_wait);
        let paced = earlier(timers.pace, timers.returned);
        earlier(earlier(transmit, paced), earlier(acks, slow))
    }
}

/// The earlier of two deadlines.
pub(crate) fn earlier(one: Option<Us>, other: Option<Us>) -> Option<Us> {
    // No time is as late as the latest.
    let first = one.unwrap_or(Us::MAX).min(other.unwrap_or(Us::MAX));
    (first < Us::MAX).then_some(first)
}

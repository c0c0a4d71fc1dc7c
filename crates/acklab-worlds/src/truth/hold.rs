//! What happened, out of both ends' logs and complete captures: when each write left, what it waited for, and what
//! ended the wait.
//!
//! The sender's own capture shows each departure and each ACK that came, so the state that Nagle's algorithm looks at
//! is known at every instant: Linux holds a segment below one MSS while a small one is unacknowledged (Minshall's
//! variant, `tcp_nagle_check`), the classic rule while anything is. A wait counts as Nagle's from the moment at which the
//! bytes were written and everything before them had left.

use std::net::SocketAddr;

use acklab_core::segment::{Flags, TcpRepr};
use acklab_core::seq::Seq;
use serde::{Deserialize, Serialize};

use super::script::{Call, Logged};
use super::vantage::{Frame, Seen, twins};

/// Why bytes that could have left did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// They left within 1 ms.
    None,
    /// Nagle's algorithm.
    Nagle,
    /// The program had announced more (`MSG_MORE`).
    Cork,
    /// The receiver's window.
    ReceiveWindow,
    /// The congestion window.
    CongestionWindow,
    /// Lost segments were sent again meanwhile.
    Recovery,
    /// The host: its processor, its queues.
    Host,
}

/// What ended a wait for Nagle's algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// A pure ACK that the receiver had kept for 10 ms or longer.
    DelayedAck,
    /// A pure ACK that the receiver sent sooner.
    Ack,
    /// An ACK on the receiver's own data.
    AckOnData,
    /// More was written and filled a segment.
    Filled,
    /// `TCP_NODELAY` was set.
    Nodelay,
    /// The end of the stream, or a timer of the sender.
    Other,
}

/// A write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Just before the call, ns since the epoch.
    pub at: u64,
    /// Its first byte's place in the stream.
    pub offset: u64,
    /// Bytes.
    pub bytes: u32,
    /// `MSG_MORE`: small segments wait for more.
    pub more: bool,
    /// When its first byte left, and its last.
    pub left: Option<[u64; 2]>,
}

/// A segment that left with bytes that had not left before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// Place in the stream of its first new byte.
    pub offset: u64,
    /// New bytes.
    pub bytes: u32,
    /// When the oldest of them was written, ns since the epoch.
    pub written: u64,
    /// When it was written and all before it had left.
    pub free: u64,
    /// When it left.
    pub left: u64,
    /// When it came to the receiver, the first time.
    pub arrived: Option<u64>,
    /// What it waited for from `free` to `left`.
    pub cause: Cause,
    /// Where that was Nagle's algorithm: what ended it.
    pub release: Option<Release>,
    /// How long the receiver had kept the ACK that ended it, ns.
    pub ack_delay: Option<u64>,
}

/// Nagle's algorithm over the time of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nagle {
    /// On throughout.
    On,
    /// Off throughout.
    Off,
    /// `TCP_NODELAY` was set between.
    Switched,
}

/// One direction's truth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Direction {
    /// Who writes.
    pub from: SocketAddr,
    /// Who reads.
    pub to: SocketAddr,
    /// The receiving system: `linux`, the running kernel, or a profile of acklab's.
    pub receiver: String,
    /// The sending system.
    pub sender: String,
    /// Nagle's algorithm in the sender.
    pub nagle: Nagle,
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Sequence number of the first byte.
    pub first: u32,
    /// Each write.
    pub writes: Vec<Written>,
    /// Each departure.
    pub departures: Vec<Departure>,
    /// Segments with payload that were sent again.
    pub sent_again: u32,
    /// Segments with payload that the link lost, by place in the stream, and when they left.
    pub lost: Vec<(u64, u64)>,
}

impl Direction {
    /// How long Nagle's algorithm held a departure, ms; 0 where it did not. A full segment it holds no longer than until
    /// its last byte was written: what paces it from then on is something else.
    pub fn held_ms(&self, one: &Departure) -> f64 {
        if one.cause != Cause::Nagle {
            return 0.0;
        }
        let end = one.offset + u64::from(one.bytes);
        let filled = || self.writes.iter().rfind(|written| written.offset < end).map(|w| w.at);
        let until = if one.bytes < self.mss { None } else { filled() };
        let until = until.map_or(one.left, |at| at.clamp(one.free, one.left));
        (until - one.free) as f64 / 1e6
    }
}

/// What one end is, for its direction.
pub struct EndFacts<'a> {
    /// Its log.
    pub log: &'a [Logged],
    /// Its capture.
    pub frames: &'a [Frame],
    /// The system whose TCP it is.
    pub system: &'a str,
    /// `TCP_NODELAY` from the start.
    pub nodelay: bool,
}

/// The addresses of client and server in a capture of both, told by who sent which end's data. `None`: no connection.
pub fn addresses(frames: &[Frame], client_connects: bool) -> Option<[SocketAddr; 2]> {
    let mut packets =
        frames.iter().filter_map(|(_, bytes)| acklab_core::wire::parse_tcp(bytes).ok());
    let syn = packets.find(|packet| packet.segment.flags == Flags::SYN)?;
    let ends = [syn.source, syn.destination];
    Some(if client_connects { ends } else { [ends[1], ends[0]] })
}

/// The truth of the direction from `sender`, which is the client or not.
pub fn direction(
    sender: &EndFacts<'_>,
    receiver: &EndFacts<'_>,
    addresses: [SocketAddr; 2],
    of_client: bool,
) -> Option<Direction> {
    let server = addresses[1];
    let parse = |frames: &[Frame]| -> Vec<Seen> {
        frames.iter().filter_map(|frame| Seen::of(frame, server)).collect()
    };
    let (here, there) = (parse(sender.frames), parse(receiver.frames));
    let syn = |own: bool| {
        here.iter()
            .find(|seen| (seen.of_client == of_client) == own && seen.tcp.flags.has(Flags::SYN))
    };
    let (own, peer) = (syn(true)?.tcp, syn(false)?.tcp);
    let wire = Wire {
        first: own.seq + 1,
        mss: effective_mss(&own, &peer),
        scale: if own.options.window_scale.is_some() {
            peer.options.window_scale.unwrap_or(0)
        } else {
            0
        },
        of_client,
        out: twins(&here, &there, of_client),
        back: twins(&there, &here, !of_client),
        here: &here,
        there: &there,
    };
    let classic = !matches!(sender.system, "linux" | "macos");
    let mut writes = writes(sender.log);
    let walked = wire.walk(sender, classic, &mut writes);
    let [from, to] = if of_client { addresses } else { [addresses[1], addresses[0]] };
    let switches = sender.log.iter().any(|logged| matches!(logged.call, Call::Nodelay(_)));
    let nagle = match (switches, sender.nodelay) {
        (true, _) => Nagle::Switched,
        (false, true) => Nagle::Off,
        (false, false) => Nagle::On,
    };
    Some(Direction {
        from,
        to,
        receiver: receiver.system.to_owned(),
        sender: sender.system.to_owned(),
        nagle,
        mss: wire.mss,
        first: wire.first.0,
        writes,
        departures: walked.departures,
        sent_again: walked.sent_again,
        lost: walked.lost,
    })
}

fn effective_mss(own: &TcpRepr, peer: &TcpRepr) -> u32 {
    let announced = |tcp: &TcpRepr| u32::from(tcp.options.mss.unwrap_or(536));
    let stamps = own.options.timestamp.is_some() && peer.options.timestamp.is_some();
    announced(own).min(announced(peer)) - if stamps { 12 } else { 0 }
}

fn writes(log: &[Logged]) -> Vec<Written> {
    let mut offset = 0;
    let written = |logged: &Logged| match logged.call {
        Call::Write(bytes) | Call::WriteMore(bytes) => {
            let more = matches!(logged.call, Call::WriteMore(_));
            let at = offset;
            offset += u64::from(bytes);
            Some(Written { at: logged.at, offset: at, bytes, more, left: None })
        }
        _ => None,
    };
    log.iter().filter_map(written).collect()
}

/// Both ends' wires, from the sender's side.
struct Wire<'a> {
    first: Seq,
    mss: u32,
    /// Of the peer's window.
    scale: u8,
    of_client: bool,
    /// Where the sender's segments came to the receiver.
    out: Vec<Option<usize>>,
    /// Where the receiver's segments came to the sender.
    back: Vec<Option<usize>>,
    here: &'a [Seen],
    there: &'a [Seen],
}

#[derive(Default)]
struct Walked {
    departures: Vec<Departure>,
    sent_again: u32,
    lost: Vec<(u64, u64)>,
}

/// An ACK as it came to the sender.
#[derive(Clone, Copy)]
struct Ack {
    at: u64,
    /// Place up to which it acknowledges.
    una: u64,
    /// Last place that may be sent.
    edge: u64,
    /// Its index at the sender.
    index: usize,
}

impl Wire<'_> {
    fn place(&self, seq: Seq) -> u64 {
        seq.distance(self.first).max(0) as u64
    }

    /// The ACKs that came, each with the most that was acknowledged and permitted by then.
    fn acks(&self) -> Vec<Ack> {
        let (mut una, mut edge) = (0, 0);
        let mut acks = Vec::new();
        for (index, seen) in self.here.iter().enumerate() {
            if seen.of_client == self.of_client || !seen.tcp.flags.has(Flags::ACK) {
                continue;
            }
            let scale = if seen.tcp.flags.has(Flags::SYN) { 0 } else { self.scale };
            una = una.max(self.place(seen.tcp.ack));
            edge = edge.max(self.place(seen.tcp.ack) + (u64::from(seen.tcp.window) << scale));
            acks.push(Ack { at: seen.at, una, edge, index });
        }
        acks
    }

    fn walk(&self, sender: &EndFacts<'_>, classic: bool, writes: &mut [Written]) -> Walked {
        let acks = self.acks();
        let mut walked = Walked::default();
        let (mut high, mut small, mut before) = (0, 0, 0);
        let mut again = Vec::new();
        for (index, seen) in self.here.iter().enumerate() {
            if seen.of_client != self.of_client || seen.tcp.payload_len == 0 {
                continue;
            }
            let start = self.place(seen.tcp.seq);
            let end = start + u64::from(seen.tcp.payload_len);
            if self.out[index].is_none() {
                walked.lost.push((start, seen.at));
            }
            if start < high {
                walked.sent_again += 1;
                again.push(seen.at);
            }
            if end <= high {
                continue;
            }
            let start = start.max(high);
            let Some(written) = writes.iter().rfind(|written| written.offset <= start) else {
                continue;
            };
            let free = written.at.max(before).min(seen.at);
            let full = seen.tcp.payload_len >= self.mss;
            let waited = Waited { free, left: seen.at, sent: high, end, full, more: written.more };
            let outstanding = if classic { high } else { small };
            let (cause, release, ack_delay) =
                self.cause(&waited, outstanding, &acks, sender, &again);
            walked.departures.push(Departure {
                offset: start,
                bytes: (end - start) as u32,
                written: written.at,
                free,
                left: seen.at,
                arrived: self.arrival(start),
                cause,
                release,
                ack_delay,
            });
            if !waited.full {
                small = end;
            }
            (high, before) = (end, seen.at);
        }
        for written in writes {
            let last = written.offset + u64::from(written.bytes) - 1;
            let left = |place: u64| {
                let covers = |one: &&Departure| {
                    (one.offset..one.offset + u64::from(one.bytes)).contains(&place)
                };
                walked.departures.iter().find(covers).map(|one| one.left)
            };
            written.left = left(written.offset).zip(left(last)).map(<[u64; 2]>::from);
        }
        walked
    }

    /// Why it waited, what ended that, and how long the receiver had kept the ACK that did.
    fn cause(
        &self,
        waited: &Waited,
        outstanding: u64,
        acks: &[Ack],
        sender: &EndFacts<'_>,
        again: &[u64],
    ) -> (Cause, Option<Release>, Option<u64>) {
        let &Waited { free, left, end, full, more, .. } = waited;
        if left - free < WAITED {
            return (Cause::None, None, None);
        }
        let upto = |at: u64| acks.partition_point(|ack| ack.at <= at);
        let at_free =
            upto(free).checked_sub(1).map_or((0, 0), |last| (acks[last].una, acks[last].edge));
        let nodelay = |at: u64| {
            let calls = sender.log.iter().filter(|logged| logged.at <= at);
            let set =
                |logged: &Logged| if let Call::Nodelay(on) = logged.call { Some(on) } else { None };
            calls.filter_map(set).next_back().unwrap_or(sender.nodelay)
        };
        if more {
            return (Cause::Cork, None, None);
        }
        if at_free.1 < end {
            return (Cause::ReceiveWindow, None, None);
        }
        if !nodelay(free) && at_free.0 < outstanding {
            let freeing = acks.iter().find(|ack| ack.at > free && ack.una >= outstanding);
            match freeing.filter(|ack| ack.at <= left + AT_ONCE) {
                // The greater part of the wait was for something else.
                Some(ack) if left.saturating_sub(ack.at) > (ack.at - free).max(AT_ONCE) => {}
                Some(ack) => {
                    let (release, delay) = self.release(ack, acks);
                    return (Cause::Nagle, Some(release), delay);
                }
                None if full => return (Cause::Nagle, Some(Release::Filled), None),
                None if nodelay(left) => {
                    return (Cause::Nagle, Some(Release::Nodelay), None);
                }
                None => return (Cause::Nagle, Some(Release::Other), None),
            }
        }
        if again.iter().any(|at| (free..=left).contains(at)) {
            return (Cause::Recovery, None, None);
        }
        let flies = at_free.0 < waited.sent;
        (if flies { Cause::CongestionWindow } else { Cause::Host }, None, None)
    }

    /// What kind of ACK that was, and how long the receiver had kept it.
    fn release(&self, ack: &Ack, acks: &[Ack]) -> (Release, Option<u64>) {
        let seen = &self.here[ack.index];
        let sent = self.back.iter().position(|twin| *twin == Some(ack.index));
        let before =
            acks.iter().rfind(|earlier| earlier.una < ack.una).map_or(0, |earlier| earlier.una);
        let kept = sent
            .zip(self.arrival(before))
            .map(|(sent, arrived)| self.there[sent].at.saturating_sub(arrived));
        let release = match kept {
            _ if seen.tcp.payload_len > 0 => Release::AckOnData,
            Some(kept) if kept >= KEPT => Release::DelayedAck,
            _ => Release::Ack,
        };
        (release, kept)
    }

    /// When the byte at `place` came to the receiver first.
    fn arrival(&self, place: u64) -> Option<u64> {
        let covers = |seen: &&Seen| {
            let start = self.place(seen.tcp.seq);
            seen.of_client == self.of_client
                && (start..start + u64::from(seen.tcp.payload_len)).contains(&place)
        };
        self.there.iter().find(covers).map(|seen| seen.at)
    }
}

struct Waited {
    free: u64,
    left: u64,
    /// Where what had left before it ended.
    sent: u64,
    end: u64,
    full: bool,
    more: bool,
}

/// What left sooner did not wait, ns.
const WAITED: u64 = 1_000_000;
/// Who leaves so soon behind an ACK leaves because of it, ns.
const AT_ONCE: u64 = 2_000_000;
/// An ACK that was kept for so long was delayed, ns.
const KEPT: u64 = 10_000_000;

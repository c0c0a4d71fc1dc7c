//! What the SYNs negotiate: sizes, options (RFC 7323, RFC 2018) and ECN (RFC 3168).

use crate::ack_requests::AckRequests;
use crate::config::Config;
use acklab_core::segment::{Flags, TcpOptions, TcpRepr, Timestamp};
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};

/// What both ends agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Payload of a full segment that carries no SACK blocks, bytes.
    pub mss: u32,
    /// SACK may be sent and is understood.
    pub sack: bool,
    /// Shift of the windows we announce.
    pub our_scale: u8,
    /// Shift of the windows the peer announces.
    pub peer_scale: u8,
    /// Timestamps are on every segment.
    pub timestamps: bool,
    /// Congestion is marked and echoed.
    pub ecn: bool,
    /// How the ends ask each other for ACKs.
    pub ack_requests: AckRequests,
}

impl Terms {
    /// Before the peer's SYN: nothing is agreed.
    pub(super) fn new(config: &Config) -> Self {
        Self {
            mss: u32::from(config.mss).clamp(MIN_MSS, DEFAULT_MSS),
            sack: false,
            our_scale: 0,
            peer_scale: 0,
            timestamps: false,
            ecn: false,
            ack_requests: AckRequests::Off,
        }
    }

    /// The peer's SYN, or its SYN-ACK, arrived.
    pub(super) fn agree(config: &Config, syn: &TcpRepr) -> Self {
        let (theirs, flags) = (&syn.options, syn.flags);
        let timestamps = config.timestamps && theirs.timestamp.is_some();
        // RFC 9293 section 3.7.1: 536 where the option is missing.
        let peer = theirs.mss.map_or(DEFAULT_MSS, u32::from);
        let mss = peer.min(u32::from(config.mss));
        let (our_scale, peer_scale) = match (our_scale(config), theirs.window_scale) {
            // RFC 7323 section 2.3: more than 14 counts as 14.
            (Some(ours), Some(peer)) => (ours, peer.min(14)),
            _ => (0, 0),
        };
        let both = flags.has(Flags::ECE) && flags.has(Flags::CWR);
        let with_ecn = if flags.has(Flags::ACK) { flags.has(Flags::ECE) && !both } else { both };
        let agreed = Self {
            mss,
            sack: config.offers_sack() && theirs.sack_permitted,
            our_scale,
            peer_scale,
            timestamps,
            ecn: config.ecn && with_ecn,
            ack_requests: if theirs.ack_request == config.announced_requests().announcement() {
                config.announced_requests()
            } else {
                AckRequests::Off
            },
        };
        Self { mss: agreed.with_options(mss), ..agreed }
    }

    /// Payload of a full segment where `mss` bytes would fit without options (RFC 6691).
    pub(super) fn with_options(&self, mss: u32) -> u32 {
        mss.max(MIN_MSS) - if self.timestamps { TIMESTAMP_BYTES } else { 0 }
    }

    /// Options of our SYN, or of our SYN-ACK where `answering`, which leaves with `stamp`.
    pub(super) fn syn_options(
        &self,
        config: &Config,
        answering: bool,
        stamp: Timestamp,
    ) -> TcpOptions {
        let offer_scale = !answering || self.our_scale > 0 || self.peer_scale > 0;
        let timestamps = if answering { self.timestamps } else { config.timestamps };
        let requests = if answering { self.ack_requests } else { config.announced_requests() };
        TcpOptions {
            mss: Some(config.mss),
            window_scale: our_scale(config).filter(|_| offer_scale),
            sack_permitted: if answering { self.sack } else { config.offers_sack() },
            timestamp: timestamps.then_some(stamp),
            ack_request: requests.announcement(),
            ..TcpOptions::default()
        }
    }

    /// What our SYN, or our SYN-ACK where `answering`, says about ECN (RFC 3168 section 6.1.1).
    pub(super) const fn syn_flags(&self, config: &Config, answering: bool) -> Flags {
        match (answering, config.ecn, self.ecn) {
            (false, true, _) => Flags::ECE.with(Flags::CWR),
            (true, _, true) => Flags::ECE,
            _ => Flags(0),
        }
    }

    /// The round trip that an echo shows, to the millisecond.
    pub(super) fn echoed_rtt(&self, now: Time, theirs: Timestamp) -> Option<Span> {
        let elapsed = Seq(clock(now)).distance(Seq(theirs.echo));
        (self.timestamps && theirs.echo != 0 && elapsed >= 0)
            .then(|| Span::from_millis(elapsed as u64))
    }

    /// Payload bytes of a full segment that carries `sack_blocks` blocks, and a request for ACKs or not (RFC 6691).
    pub(super) const fn full_segment(&self, sack_blocks: u32, request: bool) -> u32 {
        let blocks = if sack_blocks > 0 { 4 + 8 * sack_blocks } else { 0 };
        self.mss - blocks - if request { REQUEST_BYTES } else { 0 }
    }

    /// Whether a request for ACKs fits beside so many blocks.
    pub(super) const fn has_room_for_request(&self, sack_blocks: u32) -> bool {
        // A full segment of the least size still carries data.
        (sack_blocks as usize) < self.max_sack_blocks() && self.mss >= 2 * MIN_MSS
    }

    /// SACK blocks that fit beside the other options (RFC 2018 section 3).
    pub(super) const fn max_sack_blocks(&self) -> usize {
        if self.timestamps { 3 } else { 4 }
    }
}

/// The shift we offer: the configured one, but never so large that the buffer is less than eight
/// steps of it, for such a window could not be announced.
fn our_scale(config: &Config) -> Option<u8> {
    let finest = (config.receive_buffer / 8).max(1).ilog2() as u8;
    config.window_scale.map(|shift| shift.min(14).min(finest))
}

/// The timestamp clock: milliseconds of the world, from 1 so that an echo of 0 means none.
pub(super) fn clock(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000).wrapping_add(1) as u32
}

/// RFC 9293 section 3.7.1.
const DEFAULT_MSS: u32 = 536;
/// Linux `TCP_MIN_SND_MSS`: leaves room for 40 bytes of options and 8 of data, against a hostile SYN.
const MIN_MSS: u32 = 48;
/// [`acklab_core::segment::AckRequest::wire_len`] of a request.
const REQUEST_BYTES: u32 = 8;
/// On every segment once agreed (RFC 7323 appendix A).
const TIMESTAMP_BYTES: u32 = 12;

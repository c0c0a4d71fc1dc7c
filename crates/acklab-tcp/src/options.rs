//! What the SYNs negotiated, and the timestamp state (RFC 7323).
//!
//! Timestamps tick once a millisecond of the world's clock. PAWS (section 5) refuses segments whose
//! timestamp is older than the last one taken in order; after 24 days of silence it lets the next
//! one pass (section 5.5).

use super::config::Config;
use acklab_core::segment::{TcpOptions, Timestamp};
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};

/// What both ends agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Largest segment that may be sent, without options, bytes.
    pub(super) mss: u32,
    /// SACK may be sent and is understood.
    pub(super) sack: bool,
    /// Shift of the windows we announce.
    pub(super) our_scale: u8,
    /// Shift of the windows the peer announces.
    pub(super) peer_scale: u8,
    /// Timestamps are on every segment.
    pub(super) timestamps: bool,
    /// The peer's last timestamp taken in order, and when.
    recent: Option<(u32, Time)>,
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
            recent: None,
        }
    }

    /// The peer's SYN arrived.
    pub(super) fn on_syn(&mut self, now: Time, config: &Config, theirs: &TcpOptions) {
        // RFC 9293 section 3.7.1: 536 where the option is missing.
        let peer = theirs.mss.map_or(DEFAULT_MSS, u32::from);
        self.mss = peer.min(u32::from(config.mss)).max(MIN_MSS);
        self.sack = config.offers_sack() && theirs.sack_permitted;
        if let (Some(ours), Some(peer)) = (our_scale(config), theirs.window_scale) {
            // RFC 7323 section 2.3: more than 14 counts as 14.
            (self.our_scale, self.peer_scale) = (ours, peer.min(14));
        }
        self.timestamps = config.timestamps && theirs.timestamp.is_some();
        self.recent = theirs.timestamp.filter(|_| self.timestamps).map(|ts| (ts.value, now));
    }

    /// Options of our SYN, or of our SYN-ACK where `answering`.
    pub(super) fn syn_options(&self, now: Time, config: &Config, answering: bool) -> TcpOptions {
        let offer_scale = !answering || self.our_scale > 0 || self.peer_scale > 0;
        TcpOptions {
            mss: Some(config.mss),
            window_scale: our_scale(config).filter(|_| offer_scale),
            sack_permitted: if answering { self.sack } else { config.offers_sack() },
            timestamp: (if answering { self.timestamps } else { config.timestamps })
                .then(|| self.stamp(now)),
            ..TcpOptions::default()
        }
    }

    /// The timestamp of a segment that leaves now.
    pub(super) fn stamp(&self, now: Time) -> Timestamp {
        Timestamp { value: clock(now), echo: self.recent.map_or(0, |(value, _)| value) }
    }

    /// Whether PAWS refuses a segment with this timestamp (RFC 7323 section 5.3, R1).
    pub(super) fn is_too_old(&self, now: Time, theirs: Timestamp) -> bool {
        self.recent.is_some_and(|(value, at)| {
            Seq(theirs.value).before(Seq(value)) && now.since(at) < PAWS_IDLE
        })
    }

    /// An acceptable segment carried this timestamp and covered the last byte acknowledged
    /// (RFC 7323 section 4.3).
    pub(super) fn on_timestamp(&mut self, now: Time, theirs: Timestamp) {
        self.recent = Some((theirs.value, now));
    }

    /// The round trip that an echo shows, to the millisecond.
    pub(super) fn echoed_rtt(&self, now: Time, theirs: Timestamp) -> Option<Span> {
        let elapsed = Seq(clock(now)).distance(Seq(theirs.echo));
        (self.timestamps && theirs.echo != 0 && elapsed >= 0)
            .then(|| Span::from_millis(elapsed as u64))
    }

    /// Payload bytes of a full segment that carries `sack_blocks` blocks (RFC 6691).
    pub(super) const fn full_segment(&self, sack_blocks: u32) -> u32 {
        let mut options = 0;
        if self.timestamps {
            options += 12;
        }
        if sack_blocks > 0 {
            options += 4 + 8 * sack_blocks;
        }
        self.mss - options
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
fn clock(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000).wrapping_add(1) as u32
}

/// RFC 9293 section 3.7.1.
const DEFAULT_MSS: u32 = 536;
/// Linux `TCP_MIN_SND_MSS`: leaves room for 40 bytes of options and 8 of data, against a hostile SYN.
const MIN_MSS: u32 = 48;
/// RFC 7323 section 5.5.
const PAWS_IDLE: Span = Span::from_secs(24 * 24 * 3600);

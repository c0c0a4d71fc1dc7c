//! A stream of bytes in sequence space: what each segment brings, what each ACK takes off.
//!
//! Positions are sequence numbers unwrapped to 64 bits around the highest seen (RFC 9293 section
//! 3.4), so a stream may wrap any number of times; the first byte seen stands at offset 0. Old data
//! is told apart as follows: the same bytes with the same IPv4 identification within 100 ms, or at
//! the same instant, were captured twice; bytes that fill a hole came late ([`DataKind::Reordered`])
//! if their identification precedes that of the segment which jumped ahead, or, without
//! identifications, if they come within 3 ms or the least RTT, as Wireshark has it; all else was
//! sent again.

use acklab_core::time::{Span, Time};

use super::facts::{Offer, StreamFacts};
use super::mss::Mss;
use super::observe::DataKind;
use super::outstanding::{Acked, Holes, Outstanding, Sent};
use crate::segment::{Flags, Segment};

/// The data of one endpoint, and what the other acknowledged of it.
#[derive(Debug, Default)]
pub(super) struct Stream {
    started: bool,
    /// Position of offset 0.
    start: u64,
    /// One past the highest byte seen.
    next: u64,
    /// The highest acknowledgment seen.
    acked: u64,
    fin: Option<u64>,
    outstanding: Outstanding,
    holes: Holes,
    pub(super) offer: Option<Offer>,
    mss: Mss,
    unseen_bytes: u64,
    gaps: u64,
    in_flight_max: u64,
    /// Segments in a row that lie outside of any window.
    strays: u32,
}

/// A data segment in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) kind: DataKind,
    pub(super) offset: u64,
    pub(super) in_flight: u64,
    pub(super) window_left: Option<u64>,
}

/// An acknowledgment in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckPlaced {
    pub(super) acked_to: u64,
    pub(super) newly_acked: u64,
    pub(super) in_flight: u64,
    pub(super) acked: Acked,
    /// Below what was acknowledged before: an ACK that came late.
    pub(super) stale: bool,
}

impl Stream {
    /// Takes the sender's SYN, first or again. What a SYN with cut options offered is not known,
    /// as if the capture had begun after it.
    pub(super) fn on_syn(&mut self, segment: &Segment<'_>) {
        let options = &segment.options;
        self.offer = (!options.cut).then_some(Offer {
            mss: options.mss,
            window_scale: options.window_scale,
            sack_permitted: options.sack_permitted,
            timestamps: options.timestamp.is_some(),
        });
        if !self.started {
            self.begin(segment.seq.wrapping_add(1));
        }
    }

    /// Whether `seq` is that of the SYN which opened this stream.
    pub(super) fn is_own_syn(&self, seq: u32) -> bool {
        self.started && self.start as u32 == seq.wrapping_add(1)
    }

    fn begin(&mut self, seq: u32) {
        self.started = true;
        self.start = WRAP + u64::from(seq);
        self.next = self.start;
        self.acked = self.start;
    }

    /// What both SYNs agreed on. A host that offers nothing is sent 536 bytes (RFC 9293 section 3.7.1), and may send more.
    pub(super) fn agree(&mut self, peer: Offer) {
        let Some(own) = self.offer else { return };
        let timestamps = if own.timestamps && peer.timestamps { TIMESTAMP_OPTION } else { 0 };
        let peer = peer.mss.map_or(super::mss::DEFAULT, u32::from);
        let mss = own.mss.map_or(peer, |own| peer.min(own.into()));
        self.mss.agree(mss.saturating_sub(timestamps));
    }

    pub(super) fn mss(&self) -> Mss {
        self.mss
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.next - self.acked
    }

    /// What is known of the stream.
    pub(super) fn facts(&self) -> StreamFacts {
        StreamFacts {
            bytes: self.bytes(),
            gaps: self.gaps,
            unseen_bytes: self.unseen_bytes,
            in_flight_max: self.in_flight_max,
            mss: self.mss.bytes(),
            offer: self.offer,
        }
    }

    /// Bytes acknowledged that were never seen.
    #[inline]
    pub(super) fn unseen_bytes(&self) -> u64 {
        self.unseen_bytes
    }

    /// Stream bytes seen or acknowledged.
    pub(super) fn bytes(&self) -> u64 {
        self.next - self.start
    }

    /// Whether the sender has gone elsewhere: a new connection whose SYN the capture lacks.
    #[inline]
    pub(super) fn is_elsewhere(&self) -> bool {
        self.strays >= STRAYS_MAX
    }

    /// Whether everything up to the FIN has been acknowledged.
    pub(super) fn is_closed(&self) -> bool {
        self.fin.is_some_and(|fin| self.acked >= fin)
    }

    /// The position of `seq` that is nearest to the highest seen.
    #[inline]
    fn place(&self, seq: u32) -> u64 {
        let distance = seq.wrapping_sub(self.next as u32) as i32;
        self.next.saturating_add_signed(i64::from(distance))
    }

    /// Whether a segment without payload probes the peer: a keep-alive (RFC 9293 section 3.8.4)
    /// or Linux's zero-window probe, one below what is next.
    pub(super) fn is_probe(&self, segment: &Segment<'_>) -> bool {
        let is_special =
            || [Flags::SYN, Flags::FIN, Flags::RST].iter().any(|flag| segment.flags.has(*flag));
        self.started
            && segment.payload_len <= 1
            && self.acked == self.next
            && self.place(segment.seq) + 1 == self.next
            && !is_special()
    }

    /// Puts a segment with payload or FIN in its place. `window_edge` is the position that the
    /// receiver's window ends at, `rtt_min` the least RTT known.
    pub(super) fn on_data(
        &mut self,
        segment: &Segment<'_>,
        window_edge: Option<u64>,
        rtt_min: Option<Span>,
    ) -> Option<Placed> {
        let syn = u32::from(segment.flags.has(Flags::SYN));
        let seq = segment.seq.wrapping_add(syn);
        if !self.started {
            self.begin(seq);
        }
        let start = self.place(seq);
        if start.abs_diff(self.next) > JUMP_MAX {
            self.strays += 1;
            return None;
        }
        self.strays = 0;
        let end = start + u64::from(segment.payload_len);
        let placed = |kind, stream: &Self| Placed {
            kind,
            offset: start.saturating_sub(stream.start),
            in_flight: stream.in_flight(),
            window_left: window_edge.map(|edge| edge.saturating_sub(stream.next)),
        };
        let result = if self.is_probe(segment) {
            placed(DataKind::Probe, self)
        } else if segment.payload_len == 0 {
            let again = self.fin == Some(end);
            placed(if again { DataKind::Retransmission } else { DataKind::New }, self)
        } else if start >= self.next {
            let gap = start > self.next;
            let result = placed(if gap { DataKind::NewAfterGap } else { DataKind::New }, self);
            if gap {
                self.gaps += 1;
                self.holes.open(self.next, start, segment.time, segment.ip_id);
            }
            self.send(segment, start, end, false);
            result
        } else {
            let kind = self.kind_of_old(segment, start, end, rtt_min);
            let result = placed(kind, self);
            self.take_old(segment, start, end, kind);
            result
        };
        if segment.flags.has(Flags::FIN) && end >= self.next {
            self.fin = Some(end);
        }
        Some(result)
    }

    fn kind_of_old(
        &mut self,
        segment: &Segment<'_>,
        start: u64,
        end: u64,
        rtt_min: Option<Span>,
    ) -> DataKind {
        if let Some(sent) = self.outstanding.find(start, end) {
            let since = segment.time.since(sent.time);
            let same_id = segment.ip_id != 0 && sent.ip_id == segment.ip_id;
            if (same_id && since < DUPLICATE_WITHIN)
                || (sent.ip_id == segment.ip_id && since < SAME_INSTANT)
            {
                return DataKind::Duplicate;
            }
        }
        let Some(hole) = self.holes.fill(start, end) else { return DataKind::Retransmission };
        let late = if segment.ip_id != 0 && hole.ip_id != 0 {
            (segment.ip_id.wrapping_sub(hole.ip_id) as i16) < 0
        } else {
            let patience = rtt_min.map_or(REORDER_WITHIN, |rtt| rtt.max(REORDER_WITHIN));
            segment.time.since(hole.time) < patience
        };
        if late { DataKind::Reordered } else { DataKind::Retransmission }
    }

    fn take_old(&mut self, segment: &Segment<'_>, start: u64, end: u64, kind: DataKind) {
        let resent = kind == DataKind::Retransmission;
        if kind == DataKind::Duplicate {
            return;
        }
        if resent {
            self.outstanding.mark_resent(start, end);
        }
        let below = end.min(self.next);
        if below > self.acked {
            // Only where it fills a hole does this find a place.
            self.outstanding.insert(Sent {
                start,
                end: below,
                time: segment.time,
                ip_id: segment.ip_id,
                resent,
            });
        }
        if end > self.next {
            self.send(segment, self.next, end, resent);
        }
    }

    #[inline]
    fn send(&mut self, segment: &Segment<'_>, start: u64, end: u64, resent: bool) {
        self.mss.on_segment(segment.payload_len, segment.flags.has(Flags::PSH));
        self.outstanding.push(Sent {
            start,
            end,
            time: segment.time,
            ip_id: segment.ip_id,
            resent,
        });
        self.next = end;
        self.in_flight_max = self.in_flight_max.max(self.in_flight());
    }

    /// Puts an acknowledgment number in its place; `None` if it cannot be of this stream.
    pub(super) fn on_ack(&mut self, ack: u32, now: Time) -> Option<AckPlaced> {
        if !self.started {
            self.begin(ack);
        }
        let mut position = self.place(ack);
        if self.fin.is_some_and(|fin| position == fin + 1) {
            position -= 1;
        }
        if position > self.next {
            if position - self.next > JUMP_MAX {
                return None;
            }
            self.unseen_bytes += position - self.next;
            self.gaps += 1;
            self.holes.open(self.next, position, now, 0);
            self.next = position;
        }
        let newly_acked = position.saturating_sub(self.acked);
        let stale = position < self.acked;
        let acked = if newly_acked > 0 {
            self.acked = position;
            self.outstanding.acknowledge(position)
        } else {
            Acked::default()
        };
        Some(AckPlaced {
            acked_to: position.saturating_sub(self.start),
            newly_acked,
            in_flight: self.in_flight(),
            acked,
            stale,
        })
    }

    /// The position that lies `window` beyond an acknowledgment number.
    pub(super) fn edge(&self, ack: u32, window: u64) -> u64 {
        self.place(ack) + window
    }
}

/// Added to positions so that segments before the first one seen have one too.
const WRAP: u64 = 1 << 32;
/// The largest window there is (RFC 7323 section 2.3): what jumps further is not of this stream.
const JUMP_MAX: u64 = 1 << 30;
/// So many strays in a row are no accident.
const STRAYS_MAX: u32 = 3;
/// Ten bytes and two of padding on every segment (RFC 7323 appendix A).
const TIMESTAMP_OPTION: u32 = 12;
/// The same identification this soon is the same packet, seen at two interfaces of a host or
/// mirrored twice; shorter than the least RTO there is (200 ms in Linux).
const DUPLICATE_WITHIN: Span = Span::from_millis(100);
/// Nothing is sent again so soon.
const SAME_INSTANT: Span = Span::from_micros(20);
/// Wireshark's limit for out-of-order segments (packet-tcp.c, 3 ms).
const REORDER_WITHIN: Span = Span::from_millis(3);

//! Accurate ECN (RFC 9768) as Linux has it since 7.0; 6.18 holds the machinery, but refuses to offer it. What it knows is
//! in [`crate::accurate`].

use crate::accurate::{
    ACE, Accurate, FIRST_ACE, Fit, MEAN_SHIFT, MOST_MARKS, Seen, ace, ace_flags, failed, is_asked,
    reflected, reflection,
};
use crate::segment::{AccEcn, Segment, TcpOption, ecn as mark, flag};
use crate::settings::{Env, Us};
use crate::tcp::{EcnMode, Tcp};

impl Tcp {
    /// Whether both ends do it.
    pub(crate) fn is_accurate(&self) -> bool {
        self.ecn.mode == EcnMode::Accurate
    }

    /// Marks of a segment that arrived (RFC 9768 section 3.2.2).
    pub(crate) fn count_marks(&mut self, segment: &Segment) {
        let field = segment.ecn;
        let packets = if segment.gso > 0 { segment.len.div_ceil(segment.gso) } else { 1 };
        let state = &mut self.ecn.accurate;
        if field != mark::NOT_ECT {
            self.ecn.seen = true;
            if field == mark::CE {
                state.received = state.received.wrapping_add(packets);
                state.pending = (state.pending + packets).min(15);
            }
            if segment.len > 0 {
                let bytes = &mut state.received_bytes[usize::from(field) - 1];
                let before = *bytes;
                *bytes = bytes.wrapping_add(segment.len);
                if (before ^ *bytes) >> 22 != 0 {
                    state.leaving.demand = state.leaving.demand.max(1);
                }
                // In the option's order: ECT(1), CE, ECT(0).
                let place = match field {
                    mark::ECT1 => 1,
                    mark::CE => 2,
                    _ => 3,
                };
                state.leaving.least = state.leaving.least.max(place);
            }
        }
        let edge = state.previous != field;
        if edge || field == mark::CE {
            state.previous = field;
            state.leaving.demand = 2;
            self.ack.now |= edge;
        }
    }

    /// ECN field and ACE of a segment that leaves, whatever it carries.
    pub(crate) fn mark_accurately(&mut self, segment: &mut Segment) {
        let state = &mut self.ecn.accurate;
        segment.ecn = if state.marks() { mark::ECT0 } else { mark::NOT_ECT };
        segment.flags &= !ACE;
        segment.accurate = true;
        if std::mem::take(&mut state.reflects) {
            segment.flags |= reflection(state.syn_heard);
        } else {
            segment.flags |= ace_flags((state.received.wrapping_add(FIRST_ACE) & 7) as u8);
            state.pending = 0;
        }
    }

    /// The time by which the option is due.
    pub(crate) fn judge_option(&mut self, env: &Env<'_>) {
        let of = |name| env.sysctls.of(name);
        self.ecn.accurate.leaving.wish =
            (of("tcp_ecn_option"), of("tcp_ecn_option_beacon"), env.now);
    }

    /// The option that leaves next.
    pub(crate) fn accurate_option(&self) -> Option<Fit> {
        let state = &self.ecn.accurate;
        let (wish, beacon, now) = state.leaving.wish;
        if !self.is_accurate() || wish == 0 || state.seen == Seen::Nothing {
            return None;
        }
        if state.failed & failed::OPTION_SENT != 0 && wish < 3 {
            return None;
        }
        let due =
            beacon > 0 && now.saturating_sub(state.leaving.at) * beacon as Us >= self.rtt.srtt();
        if wish < 2 && state.leaving.demand == 0 && !due {
            return None;
        }
        let others = (if self.terms.stamps { 12 } else { 0 }) + self.sack_bytes();
        let sacks = (self.sack_bytes() / 8) as usize;
        state.fit(others, sacks)
    }

    /// The option left, or a segment without it.
    pub(crate) fn note_option(&mut self, env: &Env<'_>, left: bool, dsack: Option<(u32, u32)>) {
        let state = &mut self.ecn.accurate;
        state.leaving.with_dsack = dsack.filter(|_| left).map(|(seq, _)| seq);
        if left {
            state.leaving.least = 0;
            state.leaving.at = env.now;
            state.leaving.demand = state.leaving.demand.saturating_sub(1);
        }
    }

    /// Data came again whose DSACK left with the option: such ACKs do not arrive.
    pub(crate) fn suspect_option(&mut self, seq: u32) {
        if self.is_accurate() && self.ecn.accurate.leaving.with_dsack == Some(seq) {
            self.ecn.accurate.failed |= failed::OPTION_SENT;
        }
    }

    /// The end of a handshake: what its ACE says of our SYN-ACK (RFC 9768 table 4).
    pub(crate) fn take_third_ack(&mut self, env: &Env<'_>, segment: &Segment) {
        let value = ace(segment);
        match value {
            0 => self.ecn.accurate.failed |= failed::ACE_HEARD,
            1 | 5 | 7 => {}
            _ => {
                let plain = segment.end() == segment.seq && segment.sack().is_empty();
                if plain
                    && self.ecn.accurate.is_possible(env, value)
                    && reflected(value) == mark::CE
                    && self.rec.delivered_ce == 0
                {
                    self.rec.delivered_ce = 1;
                }
            }
        }
    }

    /// What an ACK delivered: `waited` bytes were undelivered before.
    pub(crate) fn take_delivered(&mut self, waited: u32) {
        self.ecn.accurate.delivered_now = waited.saturating_sub(self.undelivered());
    }

    /// Bytes out that were not SACKed: what an ACK delivers is the difference.
    pub(crate) fn undelivered(&self) -> u32 {
        let sacked = |skb: &&crate::skb::Skb| !skb.marks.sacked;
        self.snd.out.iter().filter(sacked).map(crate::skb::Skb::len).sum()
    }

    /// How many packets an ACK says were marked, after it delivered `packets` (RFC 9768 appendix A).
    /// `handshake`: ACE is not a count yet.
    pub(crate) fn hear_marks(&mut self, segment: &Segment, packets: u32, handshake: bool) -> u32 {
        let before = self.ecn.accurate.delivered_bytes[2];
        let sent = self.count.bytes_sent;
        let state = &mut self.ecn.accurate;
        let clear = state.take_option(segment, sent);
        if packets > 0 {
            let now = packets << MEAN_SHIFT;
            let mean = state.mean;
            state.mean =
                if mean == 0 { now } else { ((mean << MEAN_SHIFT) - mean + now) >> MEAN_SHIFT };
            state.mean = state.mean.min(0xffff);
        }
        if handshake {
            return 0;
        }
        if state.pending >= MOST_MARKS {
            self.ack.now = true;
        }
        let told = u32::from(ace(segment)).wrapping_sub(FIRST_ACE);
        let delta = told.wrapping_sub(self.rec.delivered_ce) & 7;
        let marks = if packets <= 7 {
            delta
        } else {
            self.unwrapped(delta, packets, clear.then(|| state_bytes(&self.ecn.accurate, before)))
        };
        self.rec.delivered_ce = self.rec.delivered_ce.wrapping_add(marks);
        marks
    }

    /// ACE may have wrapped: `delta` or the most that it can stand for; `bytes`: marked ones, where the option told.
    fn unwrapped(&self, delta: u32, packets: u32, bytes: Option<u32>) -> u32 {
        let most = packets - (packets.wrapping_sub(delta) & 7);
        let mss = self.snd.mss;
        let Some(marked) = bytes else {
            let compressed = self.ecn.accurate.mean > 4 << MEAN_SHIFT;
            return if compressed { delta } else { most };
        };
        if marked == 0 {
            return delta;
        }
        let orderly = self.terms.sack
            || self.rec.ca == crate::tcp::CaState::Open
            || self.rec.ca == crate::tcp::CaState::Cwr;
        if packets >= 16 && orderly {
            let delivered = self.ecn.accurate.delivered_now;
            if delivered <= marked {
                return most;
            }
            let share = (u64::from(marked) * u64::from(packets)).div_ceil(u64::from(delivered));
            return most.min(delta + (share as u32 & !7));
        }
        if marked > delta * mss {
            most
        } else if marked < (most * mss) >> 1 {
            delta
        } else {
            most
        }
    }

    /// A SYN-ACK said what the peer does (RFC 9768 table 2).
    pub(crate) fn agree_on_ecn(&mut self, env: &Env<'_>, segment: &Segment) {
        if self.ecn.mode == EcnMode::Off {
            return;
        }
        match ace(segment) {
            0b000 | 0b111 => self.ecn.mode = EcnMode::Off,
            0b001 | 0b101 => self.ecn.mode = EcnMode::Classic,
            _ => {
                self.ecn.mode = EcnMode::Accurate;
                self.ecn.accurate.begin(env, segment);
            }
        }
    }

    /// The peer's SYN crossed ours.
    pub(crate) fn cross_ecn(&mut self, segment: &Segment) {
        if self.ecn.mode == EcnMode::Asked {
            if is_asked(segment) {
                self.ecn.mode = EcnMode::Accurate;
                self.ecn.accurate.syn_heard = segment.ecn;
                self.ecn.accurate.previous = segment.ecn;
            } else {
                self.ecn.mode = EcnMode::Classic;
            }
        }
        if self.ecn.mode == EcnMode::Classic && !segment.has(flag::ECE | flag::CWR) {
            self.ecn.mode = EcnMode::Off;
        }
    }
}

const fn state_bytes(state: &Accurate, before: u32) -> u32 {
    state.delivered_bytes[2].wrapping_sub(before)
}

/// Options with the counters: behind the timestamps, in the place of padding before SACK blocks where they fit there.
pub(crate) fn add_option(options: &mut Vec<TcpOption>, counters: AccEcn, sack: Option<TcpOption>) {
    let fields = counters.fields().len();
    options.push(TcpOption::AccEcn(counters));
    let padding = match (fields, &sack) {
        (3, None) | (1, Some(_)) => 1,
        (3 | 2, Some(_)) => {
            if fields == 3 {
                3
            } else {
                2
            }
        }
        (1, None) => 3,
        (0, None) => 2,
        _ => 0,
    };
    options.extend((0..padding).map(|_| TcpOption::Nop));
    options.extend(sack);
}

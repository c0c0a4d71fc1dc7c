//! Accurate ECN (RFC 9768) as Linux has it since 7.0; 6.18 holds the machinery, but refuses to offer it.

use crate::ecn::{ACE, ace_flags};
use crate::segment::{AccEcn, Segment, TcpOption, ecn as mark, flag};
use crate::settings::{Env, Us};
use crate::tcp::{EcnMode, Tcp};

/// ACE counts from here (section 3.2.1).
const FIRST_ACE: u32 = 5;
/// Marks that one ACK can tell without doubt (section 3.2.2.5.1).
const MOST_MARKS: u32 = 6;
/// Byte counters begin at 0 for CE and at 1 for ECT (section 3.2.1), so that cleared options are seen.
const FIRST_BYTES: u32 = 1;
/// The mean of packets per ACK in 64ths, and its weight.
const MEAN_SHIFT: u32 = 6;

/// What is not done any more, and why (section 3.2.2 and 3.2.3).
pub mod failed {
    /// Our SYN-ACKs were lost: marks are not risked.
    pub const ACE_SENT: u8 = 1;
    /// The peer's ACE was cleared or cannot be.
    pub const ACE_HEARD: u8 = 2;
    /// ACKs with the option do not arrive.
    pub const OPTION_SENT: u8 = 4;
    /// The peer's option was cleared.
    pub const OPTION_HEARD: u8 = 8;
}

/// What was seen of the peer's option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// Nothing.
    #[default]
    Nothing,
    /// One without counters.
    Empty,
    /// Counters.
    Counters,
    /// Counters that were cleared on their way.
    Cleared,
}

/// How the option finds its room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    /// Counters.
    fields: usize,
    /// SACK blocks that it takes the place of.
    pub(crate) given: usize,
    /// Bytes of its own, without padding of others that it uses.
    pub(crate) bytes: u32,
}

/// State of one connection.
#[derive(Clone, Debug, Default)]
pub struct Accurate {
    /// ECN field with which our SYN or SYN-ACK left.
    syn_sent: u8,
    /// The ECN field of the peer's.
    syn_heard: u8,
    /// Packets that came marked.
    pub received: u32,
    /// Of these, those that no ACK told yet.
    pending: u32,
    /// Bytes that came marked ECT(1), ECT(0), CE.
    pub received_bytes: [u32; 3],
    /// Bytes of ours that the peer says came so.
    pub delivered_bytes: [u32; 3],
    /// The ECN field of the segment before.
    previous: u8,
    /// The counter that grew last; 0: none, or not clear.
    estimate: u8,
    /// The peer's option.
    pub seen: Seen,
    /// [`failed`].
    failed: u8,
    /// The option that leaves.
    option: Leaving,
    /// Packets per ACK on average.
    mean: u32,
    /// Bytes acknowledged by the ACK that is being taken.
    pub delivered_now: u32,
    /// The next ACK answers a SYN or SYN-ACK.
    pub reflects: bool,
}

/// When the option leaves.
#[derive(Clone, Copy, Debug, Default)]
struct Leaving {
    /// Counters that the next one must have.
    least: usize,
    /// ACKs that are to have it.
    demand: u8,
    /// When it left last.
    at: Us,
    /// What arrived twice according to it, where it left last with a DSACK.
    with_dsack: Option<u32>,
    /// `tcp_ecn_option` and `tcp_ecn_option_beacon`, and the time by which both are judged.
    wish: (i64, i64, Us),
}

/// The answer to a SYN's or SYN-ACK's ECN field (RFC 9768 table 2).
const fn reflection(field: u8) -> u16 {
    ace_flags(match field {
        mark::NOT_ECT => 0b010,
        mark::ECT1 => 0b011,
        mark::ECT0 => 0b100,
        _ => 0b110,
    })
}

/// ACE's three flags as a number.
pub(crate) const fn ace(segment: &Segment) -> u8 {
    (segment.has(flag::AE) as u8) << 2
        | (segment.has(flag::CWR) as u8) << 1
        | segment.has(flag::ECE) as u8
}

/// The ECN field that an answer reflects.
const fn reflected(ace: u8) -> u8 {
    match ace {
        0b010 => mark::NOT_ECT,
        0b110 => mark::CE,
        0b000 | 0b100 => mark::ECT0,
        _ => mark::ECT1,
    }
}

/// Whether a SYN asks for it (RFC 9768 section 3.1.2).
pub(crate) const fn is_asked(syn: &Segment) -> bool {
    !matches!(ace(syn), 0b000 | 0b011)
}

/// The option of a handshake: nothing arrived yet.
pub(crate) const fn first_option() -> AccEcn {
    AccEcn { order: 1, e0b: Some(FIRST_BYTES), ceb: Some(0), e1b: Some(FIRST_BYTES) }
}

impl Accurate {
    /// Our SYN or SYN-ACK leaves with the ECN field of `tos`.
    pub(crate) const fn send_syn(&mut self, tos: u8) {
        self.syn_sent = tos & 3;
    }

    /// The peer's SYN came with this ECN field.
    pub(crate) const fn hear_syn(&mut self, field: u8) {
        self.syn_heard = field;
    }

    /// The answer to the peer's SYN or SYN-ACK.
    pub(crate) const fn reflection(&self) -> u16 {
        reflection(self.syn_heard)
    }

    /// Something is not done any more.
    pub(crate) const fn fail(&mut self, what: u8) {
        self.failed |= what;
    }

    /// What is not done any more: [`failed`].
    pub const fn failures(&self) -> u8 {
        self.failed
    }

    /// Whether packets are marked.
    pub(crate) const fn marks(&self) -> bool {
        self.failed & (failed::ACE_SENT | failed::ACE_HEARD) == 0
    }

    /// The peer's first option: cleared counters are never used.
    pub(crate) fn see(&mut self, segment: &Segment) {
        let Some(option) = segment.acc_ecn().filter(|_| self.seen < Seen::Counters) else { return };
        let fields = option.fields();
        self.seen = match fields.as_slice() {
            [] => Seen::Empty,
            [0, ..] | [_, _, 0] => Seen::Cleared,
            _ => Seen::Counters,
        };
        if self.seen == Seen::Cleared {
            self.failed |= failed::OPTION_HEARD;
        }
    }

    /// Whether what the peer saw can come of what we sent.
    fn is_possible(&mut self, env: &Env<'_>, ace: u8) -> bool {
        let (sent, heard) = (self.syn_sent, reflected(ace));
        let possible =
            sent == heard || (sent != mark::NOT_ECT && heard != mark::NOT_ECT && sent != mark::CE);
        if env.sysctls.is_on("tcp_ecn_fallback") && !possible {
            self.failed |= failed::ACE_HEARD;
            return false;
        }
        true
    }

    /// A SYN-ACK said that the peer does it.
    pub(crate) fn begin(&mut self, env: &Env<'_>, segment: &Segment) {
        self.syn_heard = segment.ecn;
        if segment.acc_ecn().is_some() && self.seen < Seen::Counters {
            self.see(segment);
            self.option.demand = 2;
        }
        if segment.ecn == mark::CE && self.is_possible(env, ace(segment)) {
            self.received += 1;
            self.pending += 1;
        }
    }

    /// The end of the handshake at a listener.
    pub(crate) fn accept(&mut self) {
        self.previous = self.syn_heard;
        self.option.demand = 1;
    }

    /// The option of a segment behind `others` bytes of options, `sacks` SACK blocks among them: counters that fit
    /// in the option's order, and SACK blocks that make room for them.
    fn fit(&self, others: u32, sacks: usize) -> Option<Fit> {
        let saving = if sacks > 0 { 2 } else { 0 };
        let (mut fields, mut given) = (3, 0);
        loop {
            let size = 2 + 3 * fields as u32;
            let room = 40_u32.saturating_sub(others) + 8 * given as u32;
            let aligned = if size % 4 > saving { size.next_multiple_of(4) } else { size & !3 };
            if room >= aligned {
                return Some(Fit { fields, given, bytes: aligned });
            }
            if fields > self.option.least {
                fields -= 1;
            } else if self.option.least > 0 && sacks - given > 2 {
                given += 1;
                fields = 3;
            } else {
                return None;
            }
        }
    }

    pub(crate) fn counters(&self, Fit { fields, .. }: Fit) -> AccEcn {
        let low = |value: u32, first: u32| value.wrapping_add(first) & 0x00ff_ffff;
        let [e1b, e0b, ceb] = self.received_bytes;
        AccEcn {
            order: 1,
            e1b: (fields > 0).then(|| low(e1b, FIRST_BYTES)),
            ceb: (fields > 1).then(|| low(ceb, 0)),
            e0b: (fields > 2).then(|| low(e0b, FIRST_BYTES)),
        }
    }

    /// Takes the counters of the peer's option; whether they tell without doubt what was delivered.
    fn take_option(&mut self, segment: &Segment, sent: u64) -> bool {
        if self.failed & failed::OPTION_HEARD != 0 {
            return false;
        }
        let estimate = self.estimate;
        let Some(option) = segment.acc_ecn() else {
            if self.seen == Seen::Nothing {
                // Counters may have wrapped: too late to begin.
                if sent >= (1 << 23) - 1 {
                    self.seen = Seen::Cleared;
                    self.failed |= failed::OPTION_HEARD;
                }
                return false;
            }
            if estimate > 0 {
                self.delivered_bytes[usize::from(estimate) - 1] += self.delivered_now;
            }
            return estimate > 0;
        };
        self.see(segment);
        let (mut clear, mut doubt, mut changed) = (estimate > 0, false, false);
        let order = if option.order == 1 { [1, 3, 2] } else { [2, 3, 1] };
        for (value, field) in option.fields().into_iter().zip(order) {
            let first = if field == mark::CE { 0 } else { FIRST_BYTES };
            let known = &mut self.delivered_bytes[usize::from(field) - 1];
            let delta = value.wrapping_sub(first).wrapping_sub(*known) & 0x00ff_ffff;
            // 24 bits with a sign.
            let delta = ((delta << 8) as i32) >> 8;
            *known = known.wrapping_add_signed(delta);
            doubt |= delta < 0;
            if delta != 0 && field != estimate {
                doubt |= changed;
                if !changed {
                    self.estimate = field;
                }
                changed = true;
            }
        }
        clear &= !doubt;
        if doubt {
            self.estimate = 0;
        }
        clear
    }
}

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
                    state.option.demand = state.option.demand.max(1);
                }
                // In the option's order: ECT(1), CE, ECT(0).
                let place = match field {
                    mark::ECT1 => 1,
                    mark::CE => 2,
                    _ => 3,
                };
                state.option.least = state.option.least.max(place);
            }
        }
        let edge = state.previous != field;
        if edge || field == mark::CE {
            state.previous = field;
            state.option.demand = 2;
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
        self.ecn.accurate.option.wish =
            (of("tcp_ecn_option"), of("tcp_ecn_option_beacon"), env.now);
    }

    /// The option that leaves next.
    pub(crate) fn accurate_option(&self) -> Option<Fit> {
        let state = &self.ecn.accurate;
        let (wish, beacon, now) = state.option.wish;
        if !self.is_accurate() || wish == 0 || state.seen == Seen::Nothing {
            return None;
        }
        if state.failed & failed::OPTION_SENT != 0 && wish < 3 {
            return None;
        }
        let due =
            beacon > 0 && now.saturating_sub(state.option.at) * beacon as Us >= self.rtt.srtt();
        if wish < 2 && state.option.demand == 0 && !due {
            return None;
        }
        let others = (if self.terms.stamps { 12 } else { 0 }) + self.sack_bytes();
        let sacks = (self.sack_bytes() / 8) as usize;
        state.fit(others, sacks)
    }

    /// The option left, or a segment without it.
    pub(crate) fn note_option(&mut self, env: &Env<'_>, left: bool, dsack: Option<(u32, u32)>) {
        let state = &mut self.ecn.accurate;
        state.option.with_dsack = dsack.filter(|_| left).map(|(seq, _)| seq);
        if left {
            state.option.least = 0;
            state.option.at = env.now;
            state.option.demand = state.option.demand.saturating_sub(1);
        }
    }

    /// Data came again whose DSACK left with the option: such ACKs do not arrive.
    pub(crate) fn suspect_option(&mut self, seq: u32) {
        if self.is_accurate() && self.ecn.accurate.option.with_dsack == Some(seq) {
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

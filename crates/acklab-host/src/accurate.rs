//! What accurate ECN (RFC 9768) knows of a connection: its counters, what was sent and heard, what failed.

use crate::segment::{AccEcn, Segment, ecn as mark, flag};
use crate::settings::{Env, Us};

/// ACE counts from here (section 3.2.1).
pub(crate) const FIRST_ACE: u32 = 5;
/// Marks that one ACK can tell without doubt (section 3.2.2.5.1).
pub(crate) const MOST_MARKS: u32 = 6;
/// Byte counters begin at 0 for CE and at 1 for ECT (section 3.2.1), so that cleared options are seen.
pub(crate) const FIRST_BYTES: u32 = 1;
/// The mean of packets per ACK in 64ths, and its weight.
pub(crate) const MEAN_SHIFT: u32 = 6;

/// ACE's three flags.
pub const ACE: u16 = flag::AE | flag::CWR | flag::ECE;

/// A number as ACE's flags.
pub const fn ace_flags(value: u8) -> u16 {
    let mut flags = 0;
    if value & 4 != 0 {
        flags |= flag::AE;
    }
    if value & 2 != 0 {
        flags |= flag::CWR;
    }
    if value & 1 != 0 {
        flags |= flag::ECE;
    }
    flags
}

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
    pub(crate) fields: usize,
    /// SACK blocks that it takes the place of.
    pub(crate) given: usize,
    /// Bytes of its own, without padding of others that it uses.
    pub(crate) bytes: u32,
}

/// State of one connection.
#[derive(Clone, Debug, Default)]
pub struct Accurate {
    /// ECN field with which our SYN or SYN-ACK left.
    pub(crate) syn_sent: u8,
    /// The ECN field of the peer's.
    pub(crate) syn_heard: u8,
    /// Packets that came marked.
    pub received: u32,
    /// Of these, those that no ACK told yet.
    pub(crate) pending: u32,
    /// Bytes that came marked ECT(1), ECT(0), CE.
    pub received_bytes: [u32; 3],
    /// Bytes of ours that the peer says came so.
    pub delivered_bytes: [u32; 3],
    /// The ECN field of the segment before.
    pub(crate) previous: u8,
    /// The counter that grew last; 0: none, or not clear.
    pub(crate) estimate: u8,
    /// The peer's option.
    pub seen: Seen,
    /// [`failed`].
    pub(crate) failed: u8,
    /// The option that leaves.
    pub(crate) leaving: Leaving,
    /// Packets per ACK on average.
    pub(crate) mean: u32,
    /// Bytes acknowledged by the ACK that is being taken.
    pub delivered_now: u32,
    /// The next ACK answers a SYN or SYN-ACK.
    pub reflects: bool,
}

/// When the option leaves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaving {
    /// Counters that the next one must have.
    pub(crate) least: usize,
    /// ACKs that are to have it.
    pub(crate) demand: u8,
    /// When it left last.
    pub(crate) at: Us,
    /// What arrived twice according to it, where it left last with a DSACK.
    pub(crate) with_dsack: Option<u32>,
    /// `tcp_ecn_option` and `tcp_ecn_option_beacon`, and the time by which both are judged.
    pub(crate) wish: (i64, i64, Us),
}

/// The answer to a SYN's or SYN-ACK's ECN field (RFC 9768 table 2).
pub(crate) const fn reflection(field: u8) -> u16 {
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
pub(crate) const fn reflected(ace: u8) -> u8 {
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
    /// What TCP_INFO says of it.
    pub(crate) fn info(&self) -> [(&'static str, u64); 9] {
        let v = u64::from;
        let ([d_e1, d_e0, d_ce], [r_e1, r_e0, r_ce]) = (self.delivered_bytes, self.received_bytes);
        [
            ("tcpi_received_ce", v(self.received)),
            ("tcpi_delivered_e0_bytes", v(d_e0)),
            ("tcpi_delivered_ce_bytes", v(d_ce)),
            ("tcpi_delivered_e1_bytes", v(d_e1)),
            ("tcpi_received_e0_bytes", v(r_e0)),
            ("tcpi_received_ce_bytes", v(r_ce)),
            ("tcpi_received_e1_bytes", v(r_e1)),
            ("tcpi_accecn_fail_mode", u64::from(self.failures())),
            ("tcpi_accecn_opt_seen", self.seen as u64),
        ]
    }

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
    pub(crate) fn is_possible(&mut self, env: &Env<'_>, ace: u8) -> bool {
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
            self.leaving.demand = 2;
        }
        if segment.ecn == mark::CE && self.is_possible(env, ace(segment)) {
            self.received += 1;
            self.pending += 1;
        }
    }

    /// The end of the handshake at a listener.
    pub(crate) fn accept(&mut self) {
        self.previous = self.syn_heard;
        self.leaving.demand = 1;
    }

    /// The option of a segment behind `others` bytes of options, `sacks` SACK blocks among them: counters that fit
    /// in the option's order, and SACK blocks that make room for them.
    pub(crate) fn fit(&self, others: u32, sacks: usize) -> Option<Fit> {
        let saving = if sacks > 0 { 2 } else { 0 };
        let (mut fields, mut given) = (3, 0);
        loop {
            let size = 2 + 3 * fields as u32;
            let room = 40_u32.saturating_sub(others) + 8 * given as u32;
            let aligned = if size % 4 > saving { size.next_multiple_of(4) } else { size & !3 };
            if room >= aligned {
                return Some(Fit { fields, given, bytes: aligned });
            }
            if fields > self.leaving.least {
                fields -= 1;
            } else if self.leaving.least > 0 && sacks - given > 2 {
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
    pub(crate) fn take_option(&mut self, segment: &Segment, sent: u64) -> bool {
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

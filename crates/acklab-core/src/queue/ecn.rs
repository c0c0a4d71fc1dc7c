//! What a discipline does to a packet that it chose: [`Treatment`], common to all of them.
//!
//! RFC 3168 section 5: an ECN-capable packet is marked where another would be dropped, and a packet
//! that is not ECN-capable is dropped. Both halves are options here, because papers differ: an
//! experiment may drop everything ([`Treatment::DROP`]), or let traffic that cannot answer a mark
//! pass until the queue overflows ([`Treatment::EXEMPT`]), such as the samples of a control loop or
//! pure ACKs (not ECT by RFC 3168 section 6.1.4). An exempt packet takes its place in the queue and
//! in its averages, but no discipline ever chooses it.

use super::Verdicts;
use crate::event::DropReason;
use crate::packet::{Ecn, Packet};

/// What happens to chosen packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Treatment {
    /// To those that are ECN-capable.
    pub ect: Ect,
    /// To the others.
    pub not_ect: NotEct,
}

/// What happens to a chosen ECN-capable packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ect {
    /// It is marked congestion-experienced and stays.
    Mark,
    /// It is dropped.
    Drop,
}

/// What happens to a packet that is not ECN-capable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotEct {
    /// It is dropped where another would be marked.
    Drop,
    /// It is never chosen; only a full queue drops it.
    Exempt,
}

/// As RFC 3168 has it.
impl Default for Treatment {
    fn default() -> Self {
        Self::MARK
    }
}

impl Treatment {
    /// RFC 3168: ECN-capable packets are marked, the others dropped.
    pub const MARK: Self = Self { ect: Ect::Mark, not_ect: NotEct::Drop };
    /// A router without ECN: all are dropped.
    pub const DROP: Self = Self { ect: Ect::Drop, not_ect: NotEct::Drop };
    /// ECN-capable packets are marked, the others left alone.
    pub const EXEMPT: Self = Self { ect: Ect::Mark, not_ect: NotEct::Exempt };

    /// Whether `packet` is never chosen.
    pub fn exempts(&self, packet: &Packet) -> bool {
        self.not_ect == NotEct::Exempt && packet.ecn == Ecn::NotEct
    }

    /// Whether `packet`, chosen, would be marked rather than dropped.
    pub fn marks(&self, packet: &Packet) -> bool {
        self.ect == Ect::Mark && packet.ecn != Ecn::NotEct
    }

    /// Marks or drops a chosen packet; returns it where it lives on.
    pub fn choose(&self, packet: Packet, verdicts: &mut Verdicts) -> Option<Packet> {
        if self.marks(&packet) {
            return Some(verdicts.mark(packet));
        }
        verdicts.drop(packet, DropReason::Early);
        None
    }
}

/// When a discipline that compares the queue with a threshold looks at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moment {
    /// When the packet arrives: the queue that it finds.
    #[default]
    Arrival,
    /// When the packet goes into service: the queue that it leaves behind. The mark is younger by
    /// the time the packet waited.
    Departure,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Addr, Body};

    #[test]
    fn chosen_packets_are_marked_dropped_or_never_chosen() {
        let packet = |ecn| Packet {
            src: Addr::default(),
            dst: Addr::default(),
            ecn,
            returned: false,
            body: Body::Datagram { len: 0, words: [0; 2] },
        };
        let cases = [
            (Treatment::MARK, Ecn::NotEct, None, false),
            (Treatment::MARK, Ecn::Ect0, Some(Ecn::Ce), false),
            (Treatment::MARK, Ecn::Ect1, Some(Ecn::Ce), false),
            (Treatment::MARK, Ecn::Ce, Some(Ecn::Ce), false),
            (Treatment::DROP, Ecn::Ect0, None, false),
            (Treatment::EXEMPT, Ecn::NotEct, None, true),
            (Treatment::EXEMPT, Ecn::Ect0, Some(Ecn::Ce), false),
        ];
        for (treatment, ecn, left, exempt) in cases {
            let mut verdicts = Verdicts::default();
            let packet = packet(ecn);
            assert_eq!(treatment.exempts(&packet), exempt, "{treatment:?} {ecn:?}");
            let kept = treatment.choose(packet, &mut verdicts);
            assert_eq!(kept.map(|p| p.ecn), left, "{treatment:?} {ecn:?}");
            assert_eq!(verdicts.drain().count(), 1);
        }
    }
}

//! What a discipline does to a packet that it chose: [`Treatment`], common to all of them.
//!
//! RFC 3168 section 5: an ECN-capable packet is marked where another would be dropped, and a packet
//! that is not ECN-capable is dropped. Both halves are options here, because papers differ: an
//! experiment may drop everything ([`Treatment::Drop`]), or let traffic that cannot answer a mark
//! pass until the queue overflows ([`Treatment::Exempt`]), such as the samples of a control loop or
//! pure ACKs (not ECT by RFC 3168 section 6.1.4). An exempt packet takes its place in the queue and
//! in its averages, but no discipline ever chooses it.

use super::Verdicts;
use crate::event::DropReason;
use crate::packet::{Ecn, Packet};

crate::words! {
    /// What happens to chosen packets.
    #[derive(Default)]
    pub enum Treatment {
        /// RFC 3168: ECN-capable packets are marked, the others dropped.
        #[default]
        Mark = "mark",
        /// A router without ECN: all are dropped.
        Drop = "drop",
        /// ECN-capable packets are marked, the others never chosen; only a full queue drops them.
        Exempt = "exempt",
    }
}

impl Treatment {
    /// Whether `packet` is never chosen.
    pub fn exempts(&self, packet: &Packet) -> bool {
        *self == Self::Exempt && packet.ecn == Ecn::NotEct
    }

    /// Whether `packet`, chosen, would be marked rather than dropped.
    pub fn marks(&self, packet: &Packet) -> bool {
        *self != Self::Drop && packet.ecn != Ecn::NotEct
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

crate::words! {
    /// When a discipline that compares the queue with a threshold looks at it.
    #[derive(Default)]
    pub enum Moment {
        /// When the packet arrives: the queue that it finds.
        #[default]
        Arrival = "arrival",
        /// When the packet goes into service: the queue that it leaves behind. The mark is younger by
        /// the time the packet waited.
        Departure = "departure",
    }
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
            (Treatment::Mark, Ecn::NotEct, None, false),
            (Treatment::Mark, Ecn::Ect0, Some(Ecn::Ce), false),
            (Treatment::Mark, Ecn::Ect1, Some(Ecn::Ce), false),
            (Treatment::Mark, Ecn::Ce, Some(Ecn::Ce), false),
            (Treatment::Drop, Ecn::Ect0, None, false),
            (Treatment::Exempt, Ecn::NotEct, None, true),
            (Treatment::Exempt, Ecn::Ect0, Some(Ecn::Ce), false),
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

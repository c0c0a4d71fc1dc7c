//! Drop-tail that thins out acknowledgments, as CAKE's `ack-filter` does at the slow side of an asymmetric link
//! (Høiland-Jørgensen, Täht, Morton: Piece of CAKE, 2018, section IV-D; RFC 3449 section 5.2.2).
//!
//! A pure ACK that arrives makes an older one of the same connection superfluous where it acknowledges more and says
//! the rest as well: same flags, neither with SACK blocks. An ACK for nothing new (a duplicate, an answer to a probe),
//! one with ECE or CWR of its own, a SYN, FIN or RST, and whatever bears data is never touched, so that loss
//! recovery and ECN see what the receiver said. `aggressive` drops the oldest superfluous ACK whenever there is one,
//! `conservative` keeps one superfluous ACK waiting, so that the loss of one costs nothing.
//!
//! It reads TCP headers, so packets whose headers the link does not see (datagrams, traffic of real
//! programs) pass as through drop-tail.

use super::{Fifo, Limit, Queue, Setup, Verdicts};
use crate::event::DropReason;
use crate::packet::{Body, Packet};
use crate::segment::{Flags, TcpRepr};
use crate::time::Time;

crate::words! {
    /// How many superfluous ACKs stay.
    pub enum Mode {
        /// One stays.
        Conservative = "conservative",
        /// None stays.
        Aggressive = "aggressive",
    }
}

crate::options! {
    /// How far to go.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// How many superfluous ACKs stay: one, or none.
        mode: Mode = "conservative",
    }
    beside {
        /// How much may wait.
        limit: Limit = Limit::NONE,
    }
}

impl Options {
    /// Room for `packets`.
    pub fn packets(packets: u32) -> Self {
        Self { limit: Limit::packets(packets), ..Self::default() }
    }
}

/// First in, first out, with superfluous ACKs taken out.
#[derive(Clone, Debug)]
pub struct AckFilter {
    options: Options,
    waiting: Fifo,
}

impl AckFilter {
    /// An empty queue.
    pub fn new(options: Options, _setup: &Setup<'_>) -> Self {
        Self { options, waiting: Fifo::default() }
    }

    /// The oldest ACK that `packet` makes superfluous, where one too many of them waits.
    fn superfluous(&self, packet: &Packet) -> Option<usize> {
        let newer = pure_ack(packet)?;
        let same_way = |other: &Packet| other.src == packet.src && other.dst == packet.dst;
        let mut found = self.waiting.iter().enumerate().filter(|(_, waiting)| {
            same_way(waiting) && pure_ack(waiting).is_some_and(|older| covers(newer, older))
        });
        let oldest = found.next()?.0;
        let enough = self.options.mode == Mode::Aggressive || found.next().is_some();
        enough.then_some(oldest)
    }
}

/// The segment, if it is an acknowledgment and nothing else.
fn pure_ack(packet: &Packet) -> Option<&TcpRepr> {
    let Body::Tcp(tcp) = &packet.body else { return None };
    let plain = tcp.payload_len == 0 && tcp.flags == Flags::ACK && !packet.returned;
    (plain && tcp.options.sack.is_empty()).then_some(tcp)
}

/// Whether `newer` says whatever `older` does, and acknowledges more.
fn covers(newer: &TcpRepr, older: &TcpRepr) -> bool {
    older.ack.before(newer.ack)
        && older.options.timestamp.is_some() == newer.options.timestamp.is_some()
}

impl Queue for AckFilter {
    fn enqueue(&mut self, now: Time, packet: Packet, verdicts: &mut Verdicts) {
        let old = self.superfluous(&packet).and_then(|at| self.waiting.remove(at));
        if let Some((_, old)) = old {
            verdicts.drop(old, DropReason::Filtered);
        }
        if self.waiting.admits(&self.options.limit, &packet) {
            self.waiting.push(now, packet);
        } else {
            verdicts.drop(packet, DropReason::Overflow);
        }
    }

    fn dequeue(&mut self, _now: Time, _verdicts: &mut Verdicts) -> Option<Packet> {
        self.waiting.pop().map(|(_, packet)| packet)
    }

    crate::forward! { waiting: packets bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Addr, Ecn, NodeId};
    use crate::queue::Verdict;
    use crate::segment::{SackBlock, TcpOptions, Timestamp};
    use crate::seq::Seq;
    use crate::units::BitRate;

    fn ack(port: u16, number: u32) -> Packet {
        let addr = |node, port| Addr { node: NodeId(node), port };
        let tcp = TcpRepr { ack: Seq(number), flags: Flags::ACK, ..TcpRepr::default() };
        let [src, dst] = [addr(0, port), addr(1, 80)];
        Packet { src, dst, ecn: Ecn::NotEct, returned: false, body: Body::Tcp(tcp) }
    }

    fn with(packet: Packet, change: impl FnOnce(&mut TcpRepr)) -> Packet {
        let Body::Tcp(mut tcp) = packet.body else { return packet };
        change(&mut tcp);
        Packet { body: Body::Tcp(tcp), ..packet }
    }

    /// What leaves, after all of `packets` arrived; what was dropped was filtered.
    fn left(mode: Mode, packets: &[Packet]) -> Vec<Packet> {
        let setup = Setup { rate: BitRate::INFINITE, seed: 1, name: "link/0" };
        let mut queue = AckFilter::new(Options { mode, ..Options::packets(100) }, &setup);
        let mut verdicts = Verdicts::default();
        for packet in packets {
            queue.enqueue(Time::ZERO, *packet, &mut verdicts);
        }
        let mut dropped = verdicts.as_slice().iter();
        assert!(dropped.all(|(_, verdict)| *verdict == Verdict::Dropped(DropReason::Filtered)));
        std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut Verdicts::default())).collect()
    }

    #[test]
    fn a_burst_of_acks_leaves_its_newest_and_conservatively_one_more() {
        let burst: Vec<Packet> = (1..=10).map(|n| ack(1, n * 1000)).collect();
        assert_eq!(left(Mode::Aggressive, &burst), [ack(1, 10_000)]);
        assert_eq!(left(Mode::Conservative, &burst), [ack(1, 9000), ack(1, 10_000)]);
    }

    #[test]
    fn each_connection_keeps_its_own() {
        let mixed: Vec<Packet> = (1..=10).map(|n| ack(n as u16 % 2, n * 1000)).collect();
        assert_eq!(left(Mode::Aggressive, &mixed), [ack(1, 9000), ack(0, 10_000)]);
    }

    #[test]
    fn what_says_more_than_a_number_stays() {
        let sack = |packet| {
            with(packet, |tcp| {
                tcp.options.sack.push(SackBlock { left: Seq(5000), right: Seq(6000) });
            })
        };
        let bearing = |len| move |tcp: &mut TcpRepr| tcp.payload_len = len;
        let flagged = |flags| move |tcp: &mut TcpRepr| tcp.flags = Flags::ACK.with(flags);
        let keep = [
            with(ack(1, 1000), bearing(100)),
            with(ack(1, 1000), flagged(Flags::FIN)),
            with(ack(1, 1000), flagged(Flags::ECE)),
            sack(ack(1, 1000)),
            // Duplicates: none acknowledges more than the other.
            ack(1, 2000),
            ack(1, 2000),
            ack(1, 2000),
            sack(ack(1, 3000)),
        ];
        assert_eq!(left(Mode::Aggressive, &keep), keep);
        let stamped = |packet| {
            let options =
                TcpOptions { timestamp: Some(Timestamp::default()), ..TcpOptions::default() };
            with(packet, |tcp| tcp.options = options)
        };
        let mixed = [stamped(ack(1, 1000)), ack(1, 2000)];
        assert_eq!(left(Mode::Aggressive, &mixed), mixed);
    }
}

//! Goal: a filter of ACKs takes away nothing that was said. Method: ACKs, duplicates, SACKs and data of several
//! connections in any order, with departures between; what a receiver of them all knows must be what it would know
//! without the filter, and what its mode says must stay.

use acklab_core::event::DropReason;
use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};
use acklab_core::queue::ack_filter::{AckFilter, Mode, Options};
use acklab_core::queue::{Queue, Setup, Verdict, Verdicts};
use acklab_core::segment::{Flags, SackBlock, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::Time;
use acklab_core::units::BitRate;
use proptest::prelude::*;

/// A packet of connection `port`: an ACK one further, a duplicate, one with SACK, or data.
fn packet(port: u16, kind: u8, acked: &mut u32) -> Packet {
    *acked += u32::from(kind < 5) * 1000;
    let mut tcp = TcpRepr { ack: Seq(*acked), flags: Flags::ACK, ..TcpRepr::default() };
    match kind {
        6 => {
            tcp.options
                .sack
                .push(SackBlock { left: Seq(*acked + 1000), right: Seq(*acked + 2000) });
        }
        7 => tcp.payload_len = 100,
        _ => {}
    }
    let [src, dst] = [0, 1].map(|node| Addr { node: NodeId(node), port });
    Packet { src, dst, ecn: Ecn::NotEct, returned: false, body: Body::Tcp(tcp) }
}

fn tcp(packet: &Packet) -> TcpRepr {
    let Body::Tcp(tcp) = packet.body else { panic!("TCP alone was sent") };
    tcp
}

proptest! {
    #[test]
    fn what_is_known_in_the_end_is_what_was_said(
        steps in proptest::collection::vec((0_u16..3, 0_u8..8, 0_u8..4), 1..400),
    ) {
        for mode in [Mode::Conservative, Mode::Aggressive] {
            let setup = Setup { rate: BitRate::INFINITE, seed: 1, name: "link/0" };
            let mut queue = AckFilter::new(Options { mode, ..Options::packets(u32::MAX) }, &setup);
            let (mut verdicts, mut acked, mut known) = (Verdicts::default(), [0_u32; 3], [0_u32; 3]);
            let (mut kept, mut left) = (0, 0);
            let mut leave = |queue: &mut AckFilter| {
                let Some(packet) = queue.dequeue(Time::ZERO, &mut Verdicts::default()) else { return false };
                let port = usize::from(packet.src.port);
                known[port] = known[port].max(tcp(&packet).ack.0);
                left += u32::from(tcp(&packet).payload_len > 0 || !tcp(&packet).options.sack.is_empty());
                true
            };
            for &(port, kind, departs) in &steps {
                queue.enqueue(Time::ZERO, packet(port, kind, &mut acked[usize::from(port)]), &mut verdicts);
                kept += u32::from(kind >= 6);
                if departs == 0 {
                    leave(&mut queue);
                }
            }
            while leave(&mut queue) {}
            prop_assert_eq!(known, acked, "the last word of each connection, {:?}", mode);
            prop_assert_eq!(left, kept, "SACK and data, {:?}", mode);
            for (packet, verdict) in verdicts.drain() {
                prop_assert_eq!(verdict, Verdict::Dropped(DropReason::Filtered));
                prop_assert!(tcp(&packet).payload_len == 0 && tcp(&packet).options.sack.is_empty());
            }
        }
    }
}

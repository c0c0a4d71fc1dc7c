//! Segments as the core's packets, and back: what the simulations, links and captures carry.
//!
//! A burst becomes its packets here, as where segmentation offload ends. What a packet of virtual time has no
//! place for (AE, traffic class, time to live, fast open) is left out, and options stand in the common order.

use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};
use acklab_core::segment::{
    AckRequest, Flags, SackBlock, SackBlocks, TcpOptions, TcpRepr, Timestamp,
};
use acklab_core::seq::Seq;

use crate::asking::add_request;
use crate::segment::{Place, Segment, TcpOption, ecn, flag};

/// The place of an address: host 0 means any, so that nodes begin at 1.
pub const fn place(addr: Addr) -> Place {
    Place { host: addr.node.0 as u32 + 1, port: addr.port }
}

pub(crate) const fn addr(place: Place) -> Addr {
    Addr { node: NodeId(place.host.wrapping_sub(1) as u16), port: place.port }
}

/// A packet's segment; `None` where it carries none.
pub fn segment_of(packet: &Packet) -> Option<Segment> {
    let Body::Tcp(tcp) = &packet.body else { return None };
    Some(Segment {
        src: place(packet.src),
        dst: place(packet.dst),
        seq: tcp.seq.0,
        ack: tcp.ack.0,
        flags: u16::from(tcp.flags.0),
        window: tcp.window,
        options: options_of(&tcp.options),
        len: tcp.payload_len,
        ecn: match packet.ecn {
            Ecn::NotEct => ecn::NOT_ECT,
            Ecn::Ect0 => ecn::ECT0,
            Ecn::Ect1 => ecn::ECT1,
            Ecn::Ce => ecn::CE,
        },
        ..Segment::default()
    })
}

fn options_of(options: &TcpOptions) -> Vec<TcpOption> {
    let TcpOptions { mss, window_scale, sack_permitted, sack, timestamp, ack_request } = options;
    let mut all = Vec::with_capacity(4);
    all.extend(mss.map(TcpOption::Mss));
    all.extend(sack_permitted.then_some(TcpOption::SackOk));
    if let Some(stamp) = timestamp {
        all.extend([TcpOption::Nop, TcpOption::Nop, TcpOption::Stamp(stamp.value, stamp.echo)]);
    }
    all.extend(window_scale.map(TcpOption::Scale));
    if !sack.is_empty() {
        let blocks = sack.as_slice().iter().map(|block| (block.left.0, block.right.0));
        all.extend([TcpOption::Nop, TcpOption::Nop, TcpOption::Sack(blocks.collect())]);
    }
    if let Some(request) = ack_request {
        add_request(&mut all, *request);
    }
    all
}

/// The packets of a segment that leaves, of which a burst has several, in order.
#[derive(Clone, Debug)]
pub struct Packets {
    /// The next packet, with all that is left as its payload.
    rest: Packet,
    /// Payload of each, bytes; 0: there is one.
    each: u32,
    /// Flags of the last alone.
    last: u8,
    over: bool,
}

impl Packets {
    /// Those of `segment`.
    pub fn of(segment: &Segment) -> Self {
        let last = segment.flags & (flag::PSH | flag::FIN);
        let tcp = TcpRepr {
            seq: Seq(segment.seq),
            ack: Seq(segment.ack),
            flags: Flags((segment.flags & !last) as u8),
            window: segment.window,
            options: options_in(&segment.options),
            payload_len: segment.len,
        };
        let ecn = match segment.ecn {
            ecn::ECT0 => Ecn::Ect0,
            ecn::ECT1 => Ecn::Ect1,
            ecn::CE => Ecn::Ce,
            _ => Ecn::NotEct,
        };
        let (src, dst) = (addr(segment.src), addr(segment.dst));
        let rest = Packet { src, dst, ecn, returned: false, body: Body::Tcp(tcp) };
        Self { rest, each: segment.gso, last: last as u8, over: false }
    }
}

impl Iterator for Packets {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        let Body::Tcp(rest) = &mut self.rest.body else { return None };
        if self.over {
            return None;
        }
        let mut tcp = *rest;
        if self.each == 0 || rest.payload_len <= self.each {
            self.over = true;
            tcp.flags = tcp.flags.with(Flags(self.last));
        } else {
            tcp.payload_len = self.each;
            rest.seq = rest.seq + self.each;
            rest.payload_len -= self.each;
            rest.flags.0 &= !Flags::CWR.0;
        }
        Some(Packet { body: Body::Tcp(tcp), ..self.rest })
    }
}

fn options_in(options: &[TcpOption]) -> TcpOptions {
    let mut all = TcpOptions::default();
    for option in options {
        match option {
            TcpOption::Mss(mss) => all.mss = Some(*mss),
            TcpOption::Scale(shift) => all.window_scale = Some(*shift),
            TcpOption::SackOk => all.sack_permitted = true,
            TcpOption::Stamp(value, echo) => {
                all.timestamp = Some(Timestamp { value: *value, echo: *echo });
            }
            TcpOption::Sack(blocks) => {
                let mut sack = SackBlocks::default();
                for &(left, right) in blocks {
                    sack.push(SackBlock { left: Seq(left), right: Seq(right) });
                }
                all.sack = sack;
            }
            TcpOption::Other(kind, content) => {
                all.ack_request = AckRequest::of_option(*kind, content).or(all.ack_request);
            }
            TcpOption::End | TcpOption::Nop | TcpOption::FastOpen(..) | TcpOption::AccEcn(_) => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst() -> Segment {
        let options = vec![
            TcpOption::Nop,
            TcpOption::Nop,
            TcpOption::Stamp(7, 8),
            TcpOption::Nop,
            TcpOption::Nop,
            TcpOption::Sack(vec![(1, 2), (5, 9)]),
        ];
        Segment {
            src: Place { host: 3, port: 50_000 },
            dst: Place { host: 1, port: 80 },
            seq: u32::MAX - 100,
            ack: 77,
            flags: flag::ACK | flag::PSH | flag::CWR | flag::FIN,
            window: 500,
            options,
            len: 2500,
            ecn: ecn::ECT0,
            gso: 1000,
            ..Segment::default()
        }
    }

    #[test]
    fn a_burst_becomes_its_packets_and_each_reads_back_as_its_segment() {
        let whole = burst();
        let mut expected = vec![whole.clone()];
        while expected[expected.len() - 1].len > 1000 {
            let rest = expected.last_mut().map(|last| last.split(1000));
            expected.extend(rest);
        }
        let plain = |segment: &Segment| Segment { gso: 0, ..segment.clone() };
        let read: Vec<_> = Packets::of(&whole).filter_map(|packet| segment_of(&packet)).collect();
        assert_eq!(read, expected.iter().map(plain).collect::<Vec<_>>());
        assert_eq!(read.iter().map(|one| one.len).collect::<Vec<_>>(), [1000, 1000, 500]);
    }

    #[test]
    fn a_syn_keeps_its_options() {
        let options = vec![
            TcpOption::Mss(1460),
            TcpOption::SackOk,
            TcpOption::Nop,
            TcpOption::Nop,
            TcpOption::Stamp(1, 0),
            TcpOption::Scale(7),
        ];
        let syn = Segment { flags: flag::SYN, options, gso: 0, len: 0, ..burst() };
        let read: Vec<_> = Packets::of(&syn).filter_map(|packet| segment_of(&packet)).collect();
        assert_eq!(read, [syn]);
    }
}

//! Connections whose addresses a NAT changes between the two captures, found by what it leaves as it is.
//!
//! A NAT keeps sequence and acknowledgment numbers and lengths (RFC 3022 section 4.1 lists what it changes). Both numbers
//! of a connection begin at random (RFC 9293 section 3.4.1), so a few segments with the same two are no chance. One that
//! draws initial numbers anew, or ends connections and opens its own (a proxy), is not seen through.

use std::collections::BTreeMap;

use super::packets::{Packet, Talk};
use crate::segment::Flags;

/// Pairs of those that stand in both; `there` may be named from the other end.
pub(super) fn pairs(here: Vec<Talk>, there: Vec<Talk>) -> Vec<[Talk; 2]> {
    let mut holders: BTreeMap<Numbers, Vec<(usize, u8)>> = BTreeMap::new();
    for (at, talk) in there.iter().enumerate() {
        for packet in talk.packets.iter().filter(|packet| tells(packet)) {
            holders.entry(numbers(packet)).or_default().push((at, packet.from));
        }
    }
    let mut there: Vec<Option<Talk>> = there.into_iter().map(Some).collect();
    let found = here.into_iter().filter_map(|talk| {
        let (at, turned) = twin_of(&talk, &holders)?;
        let twin = there[at].take()?;
        Some([talk, if turned { twin.turned() } else { twin }])
    });
    found.collect()
}

/// The one that holds most of the talk's segments, twice as many as any other; and whether it names the ends in
/// the other order.
fn twin_of(talk: &Talk, holders: &BTreeMap<Numbers, Vec<(usize, u8)>>) -> Option<(usize, bool)> {
    let mut shared: BTreeMap<(usize, bool), usize> = BTreeMap::new();
    for packet in talk.packets.iter().filter(|packet| tells(packet)) {
        for (at, from) in holders.get(&numbers(packet)).into_iter().flatten() {
            *shared.entry((*at, *from != packet.from)).or_default() += 1;
        }
    }
    let (twin, most) = shared.iter().max_by_key(|(_, count)| **count)?;
    let rival = shared.iter().filter(|(other, _)| *other != twin).map(|(_, count)| *count).max();
    (*most >= LEAST && *most >= 2 * rival.unwrap_or(0)).then_some(*twin)
}

/// Sequence number, acknowledgment number, length.
type Numbers = (u32, u32, u32);

const fn numbers(packet: &Packet) -> Numbers {
    (packet.seq, packet.ack, packet.len)
}

/// Whether both numbers stand in it, and something of its own: a SYN's answer, or data.
fn tells(packet: &Packet) -> bool {
    packet.has(Flags::ACK) && (packet.len > 0 || packet.has(Flags::SYN))
}

/// Segments that have to be the same.
const LEAST: usize = 2;

//! Which segment of one capture is which of the other, and what became of those that are in one alone.
//!
//! A segment is known by what the path leaves as it is: numbers, flags, length, window, and the IPv4 identification. A host
//! whose network card cuts segments (TSO) or joins them (GRO) shows other lengths than its wire: what is left is then
//! matched by the bytes it carries. A segment that did not come was lost if its bytes left again or were never
//! acknowledged, and was missed by the capture if the peer acknowledged them all the same.

use std::collections::{BTreeMap, VecDeque};

use acklab_core::ranges::RangeSet;
use acklab_core::seq::Seq;

use super::clock::Point;
use super::packets::{Identity, Packet, Talk};
use crate::segment::Flags;

/// What became of a segment that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// It came as this one of the other capture.
    Arrived(usize),
    /// It did not come.
    Lost,
    /// It came, and the capture at the receiver does not hold it.
    Missed,
    /// It left when the other capture was not running.
    Outside,
}

/// The segments of both captures of a connection, matched.
#[derive(Debug)]
pub(super) struct Matched {
    /// By sender: each segment in its capture, and what became of it.
    fates: [Vec<(usize, Match)>; 2],
    /// By sender: segments in the receiver's capture that its own does not hold although it was running.
    strays: [Vec<usize>; 2],
}

impl Matched {
    pub(super) fn of(pair: &[Talk; 2]) -> Self {
        let [(fates_of_client, strays_of_client), (fates_of_server, strays_of_server)] =
            [0, 1].map(|sender| Sender::new(pair, sender).matched());
        Self {
            fates: [fates_of_client, fates_of_server],
            strays: [strays_of_client, strays_of_server],
        }
    }

    /// Every segment that `sender` sent, by its own capture.
    pub(super) fn fates(&self, sender: usize) -> impl Iterator<Item = (usize, Match)> + '_ {
        self.fates[sender].iter().copied()
    }

    /// Segments that came from `sender` and that its own capture does not hold: indices in the receiver's.
    pub(super) fn strays(&self, sender: usize) -> &[usize] {
        &self.strays[sender]
    }

    /// When each lost segment with data left, and when its bytes left again, by the sender's clock, ns.
    pub(super) fn lost_until_sent_again<'a>(
        &'a self,
        sender: usize,
        talk: &'a Talk,
    ) -> impl Iterator<Item = [u64; 2]> + 'a {
        let fates = &self.fates[sender];
        fates.iter().enumerate().filter_map(move |(at, (index, fate))| {
            let lost = &talk.packets[*index];
            let again = |other: &&(usize, Match)| {
                let other = &talk.packets[other.0];
                other.len > 0 && lost.seq.wrapping_sub(other.seq) < other.len
            };
            let later = fates[at + 1..].iter().take(WITHIN).find(again)?;
            (*fate == Match::Lost && lost.len > 0).then(|| [lost.time, talk.packets[later.0].time])
        })
    }

    /// Sender, index at the sender, index at the receiver.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        [0, 1].into_iter().flat_map(|sender| {
            self.fates(sender).filter_map(move |(index, fate)| match fate {
                Match::Arrived(other) => Some((sender, index, other)),
                _ => None,
            })
        })
    }

    /// What the pairs say of the clocks.
    pub(super) fn points<'a>(&'a self, pair: &'a [Talk; 2]) -> impl Iterator<Item = Point> + 'a {
        self.pairs().map(|(sender, sent, came)| {
            let [sent, came] =
                [pair[sender].packets[sent].time, pair[1 - sender].packets[came].time];
            let (client, server) = if sender == 0 { (sent, came) } else { (came, sent) };
            Point { at: client, ahead: server as i64 - client as i64, to_server: sender == 0 }
        })
    }
}

/// One sender's segments in both captures.
struct Sender<'a> {
    near: &'a [Packet],
    far: &'a [Packet],
    number: u8,
}

impl<'a> Sender<'a> {
    fn new(pair: &'a [Talk; 2], sender: usize) -> Self {
        let (near, far) = (&pair[sender].packets, &pair[1 - sender].packets);
        Self { near, far, number: sender as u8 }
    }

    fn of(&self, packets: &'a [Packet]) -> impl DoubleEndedIterator<Item = (usize, &'a Packet)> {
        let number = self.number;
        packets.iter().enumerate().filter(move |(_, packet)| packet.from == number)
    }

    fn matched(&self) -> (Vec<(usize, Match)>, Vec<usize>) {
        let mut came: BTreeMap<Identity, VecDeque<usize>> = BTreeMap::new();
        for (index, packet) in self.of(self.far) {
            came.entry(packet.identity()).or_default().push_back(index);
        }
        let mut left_behind: BTreeMap<Identity, usize> = BTreeMap::new();
        for (_, packet) in self.of(self.near) {
            *left_behind.entry(packet.identity()).or_default() += 1;
        }
        // Of several that look alike and did not all come, the first ones died: a SYN-ACK is sent again because of that.
        for (identity, left) in &mut left_behind {
            *left = left.saturating_sub(came.get(identity).map_or(0, VecDeque::len));
        }
        let mut seen: BTreeMap<Identity, usize> = BTreeMap::new();
        let mut fates: Vec<(usize, Match)> = Vec::new();
        for (index, packet) in self.of(self.near) {
            let dies = left_behind
                .get_mut(&packet.identity())
                .filter(|left| packet.ip_id == 0 && **left > 0);
            let twin = match dies {
                Some(left) => {
                    *left -= 1;
                    None
                }
                None => came.get_mut(&packet.identity()).and_then(VecDeque::pop_front),
            };
            // A frame that stands twice in one file and once in the other did not leave twice.
            let copy = twin.is_none() && packet.ip_id != 0 && seen.contains_key(&packet.identity());
            seen.insert(packet.identity(), index);
            if !copy {
                fates.push((index, twin.map_or(Match::Lost, Match::Arrived)));
            }
        }
        let mut left: Vec<usize> = came
            .into_iter()
            .flat_map(|(identity, indices)| {
                let copies = identity.1 != 0 && seen.contains_key(&identity);
                indices.into_iter().filter(move |_| !copies)
            })
            .collect();
        left.sort_unstable();
        self.by_bytes(&mut fates, &mut left);
        self.judge(&mut fates);
        self.drop_outside(&mut left, &fates);
        (fates, left)
    }

    /// Matches what card or kernel cut or joined.
    fn by_bytes(&self, fates: &mut [(usize, Match)], left: &mut Vec<usize>) {
        let mut spare: Vec<(usize, RangeSet)> = Vec::new();
        let origin = fates.first().map_or(0, |(index, _)| self.near[*index].seq);
        let range = |packet: &Packet| {
            let start = (1 << 32) + i64::from(Seq(packet.seq).distance(Seq(origin)));
            start as u64..start as u64 + u64::from(packet.len)
        };
        for &index in left.iter().filter(|&&index| self.far[index].len > 0) {
            let mut bytes = RangeSet::new();
            bytes.insert(range(&self.far[index]));
            spare.push((index, bytes));
        }
        for (index, fate) in fates.iter_mut() {
            let packet = &self.near[*index];
            if *fate != Match::Lost || packet.len == 0 {
                continue;
            }
            let wanted = range(packet);
            let mut parts = RangeSet::new();
            let mut first = None;
            for (other, bytes) in &spare {
                for part in bytes.iter() {
                    let (start, end) = (part.start.max(wanted.start), part.end.min(wanted.end));
                    if start < end {
                        first.get_or_insert(*other);
                        parts.insert(start..end);
                    }
                }
            }
            if let Some(first) = first.filter(|_| parts.covers(&wanted)) {
                *fate = Match::Arrived(first);
                for (_, bytes) in &mut spare {
                    bytes.remove(wanted.clone());
                }
            }
        }
        let used =
            |index: &usize| spare.iter().any(|(one, bytes)| one == index && bytes.is_empty());
        left.retain(|index| !used(index));
    }

    /// Tells what was lost from what the capture at the receiver missed, and from what left while it was not running.
    fn judge(&self, fates: &mut [(usize, Match)]) {
        let arrived = |(_, fate): &&(usize, Match)| matches!(fate, Match::Arrived(_));
        let first = fates.iter().find(arrived).map(|(index, _)| *index);
        let last = fates.iter().rfind(arrived).map(|(index, _)| *index);
        let (Some(first), Some(last)) = (first, last) else { return };
        for at in 0..fates.len() {
            let (index, fate) = fates[at];
            if fate != Match::Lost {
                continue;
            }
            let packet = &self.near[index];
            let is_outside = index < first && !packet.has(Flags::SYN)
                || index > last && !self.is_repeated(fates, at);
            let told = packet.len > 0
                && !self.is_repeated(fates, at)
                && self.is_acknowledged(packet, index);
            fates[at].1 = match (told, is_outside) {
                (true, false) => Match::Missed,
                (_, true) => Match::Outside,
                (false, false) => Match::Lost,
            };
        }
    }

    /// Whether the bytes of the segment left before or again.
    fn is_repeated(&self, fates: &[(usize, Match)], at: usize) -> bool {
        let packet = &self.near[fates[at].0];
        let same = |(other, _): &(usize, Match)| {
            let other = &self.near[*other];
            let after = other.seq.wrapping_sub(packet.seq);
            let before = packet.seq.wrapping_sub(other.seq);
            other.len > 0 && (after < packet.len || before < other.len)
        };
        let near = at.saturating_sub(WITHIN)..(at + WITHIN).min(fates.len());
        packet.len > 0 && near.filter(|&other| other != at).any(|other| same(&fates[other]))
    }

    /// Whether the peer acknowledged the end of the segment later on.
    fn is_acknowledged(&self, packet: &Packet, index: usize) -> bool {
        let end = Seq(packet.seq) + packet.len;
        let later = self.near[index..].iter().filter(|other| other.from != packet.from);
        later.take(WITHIN).any(|other| other.has(Flags::ACK) && Seq(other.ack).distance(end) >= 0)
    }

    /// What came before the first, or behind the last, that both captures hold says nothing.
    fn drop_outside(&self, left: &mut Vec<usize>, fates: &[(usize, Match)]) {
        let arrivals = fates.iter().filter_map(|(_, fate)| match fate {
            Match::Arrived(other) => Some(*other),
            _ => None,
        });
        let (first, last) = (arrivals.clone().min(), arrivals.max());
        let inside = |index: usize| {
            first.is_some_and(|first| first < index) && last.is_some_and(|last| index < last)
        };
        left.retain(|&index| inside(index) || self.far[index].is_reset());
    }
}

/// Segments before and behind one that are looked through for its bytes.
const WITHIN: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Endpoint;
    use std::net::{IpAddr, Ipv4Addr};

    fn packet(ms: u64, from: u8, seq: u32, len: u32, ack: u32, ip_id: u16) -> Packet {
        let flags = Flags::ACK.0;
        Packet { time: ms * 1_000_000, frame: ms, seq, ack, len, ip_id, window: 1000, flags, from }
    }

    fn talk(packets: Vec<Packet>) -> Talk {
        let end = |host| Endpoint { addr: IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port: 80 };
        Talk { ends: [end(1), end(2)], packets }
    }

    fn fates(near: Vec<Packet>, far: Vec<Packet>) -> Vec<Match> {
        let matched = Matched::of(&[talk(near), talk(far)]);
        matched.fates(0).map(|(_, fate)| fate).collect()
    }

    /// A card that cuts (TSO): 3000 bytes leave as one segment of the capture and come as three.
    #[test]
    fn what_a_card_cut_is_matched_by_its_bytes() {
        let near = vec![packet(0, 0, 1, 10, 1, 1), packet(5, 0, 11, 3000, 1, 2)];
        let parts = [(11, 1460, 2), (1471, 1460, 3), (2931, 80, 4)];
        let part = |(seq, len, id): (u32, u32, u16)| packet(15, 0, seq, len, 1, id);
        let mut far = vec![packet(10, 0, 1, 10, 1, 1)];
        far.extend(parts.map(part));
        assert_eq!(fates(near.clone(), far.clone()), [Match::Arrived(0), Match::Arrived(1)]);
        // One of the three died, and its bytes leave again.
        far.remove(2);
        far.push(packet(60, 0, 1471, 1460, 1, 9));
        let near = [near, vec![packet(50, 0, 1471, 1460, 1, 9)]].concat();
        assert_eq!(fates(near, far)[1..], [Match::Lost, Match::Arrived(3)]);
    }

    /// A kernel that joins (GRO): three segments leave and come as one.
    #[test]
    fn what_a_kernel_joined_is_matched_by_its_bytes() {
        let leaves = |(seq, id): (u32, u16)| packet(5, 0, seq, 1000, 1, id);
        let near = [(1, 1), (1001, 2), (2001, 3)].map(leaves).to_vec();
        let far = vec![packet(15, 0, 1, 3000, 1, 1)];
        assert_eq!(fates(near, far), [Match::Arrived(0); 3]);
    }

    #[test]
    fn what_was_acknowledged_at_once_was_missed_and_what_left_again_was_lost() {
        let near = vec![
            packet(0, 0, 1, 10, 1, 1),
            packet(5, 0, 11, 10, 1, 2),
            packet(25, 1, 1, 0, 21, 50),
            packet(30, 0, 21, 10, 1, 3),
            packet(300, 0, 21, 10, 1, 4),
        ];
        let far = vec![
            packet(10, 0, 1, 10, 1, 1),
            packet(15, 1, 1, 0, 21, 50),
            packet(310, 0, 21, 10, 1, 4),
        ];
        let expected = [Match::Arrived(0), Match::Missed, Match::Lost, Match::Arrived(2)];
        assert_eq!(fates(near, far), expected);
    }
}

//! Which host waited: whose write ended each time in which nothing was on its way.
//!
//! Where the peer's data came to a host before it wrote, both stamps are of its own clock, and the alignment of the clocks
//! does not matter; where a host paused between its own writes, it does.

use acklab_core::seq::Seq;

use super::clock::Line;
use super::matching::Matched;
use super::packets::Talk;
use crate::judged::{Kept, Waited};
use crate::segment::Flags;

/// Where the time between the first and the last data went.
pub(super) fn of(pair: &[Talk; 2], matched: &Matched, line: &Line) -> Waited {
    // By the client's clock: when data left, when it came, from whom.
    let at_client = |end: usize, time: u64| {
        if end == 0 { time as f64 } else { line.at_client(time) }
    };
    let mut ways: Vec<(f64, f64, usize)> = matched
        .pairs()
        .filter(|(sender, sent, _)| pair[*sender].packets[*sent].len > 0)
        .map(|(sender, sent, came)| {
            let left = at_client(sender, pair[sender].packets[sent].time);
            let came = at_client(1 - sender, pair[1 - sender].packets[came].time);
            (left, came.max(left), sender)
        })
        .collect();
    // What was lost is on its way until it left again.
    for sender in [0, 1] {
        let lost = matched.lost_until_sent_again(sender, &pair[sender]);
        ways.extend(
            lost.map(|[left, again]| (at_client(sender, left), at_client(sender, again), sender)),
        );
    }
    ways.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut waited = Waited::default();
    let Some(&(first, mut until, mut last)) = ways.first() else { return waited };
    let mut end = first;
    for &(left, came, sender) in &ways {
        let idle = (left - until).max(0.0) / 1e9;
        let host = if sender == 0 { &mut waited.client_s } else { &mut waited.server_s };
        *host += idle;
        waited.turns += u64::from(sender != last);
        (until, last, end) = (until.max(came), sender, end.max(came));
    }
    waited.network_s = ((end - first) / 1e9 - waited.client_s - waited.server_s).max(0.0);
    waited
}

/// How long the `receiver` of a capture at its own end kept pure ACKs: from the arrival of the oldest segment that each
/// newly acknowledges.
pub(super) fn acks_kept(talk: &Talk, receiver: usize) -> Option<Kept> {
    let mut waiting: Vec<(Seq, u64)> = Vec::new();
    let mut kept = Vec::new();
    for packet in &talk.packets {
        if usize::from(packet.from) != receiver {
            if packet.len > 0 {
                waiting.push((Seq(packet.seq) + packet.len, packet.time));
            }
            continue;
        }
        if !packet.has(Flags::ACK) {
            continue;
        }
        let acked = |(end, _): &(Seq, u64)| Seq(packet.ack).distance(*end) >= 0;
        let oldest = waiting.iter().filter(|one| acked(one)).map(|(_, at)| *at).min();
        waiting.retain(|one| !acked(one));
        if let Some(oldest) = oldest.filter(|_| packet.len == 0) {
            kept.push(packet.time.saturating_sub(oldest) as f64 / 1e6);
        }
    }
    kept.sort_by(f64::total_cmp);
    let at = |share: f64| kept[((kept.len() - 1) as f64 * share).round() as usize];
    (!kept.is_empty()).then(|| Kept {
        count: kept.len() as u64,
        p50: at(0.5),
        p95: at(0.95),
        max: at(1.0),
    })
}

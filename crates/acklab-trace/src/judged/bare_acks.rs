//! Captures that were filtered by length: no packet without data is left, and with them went the ACKs that let held
//! segments go, or that came before a segment which seems to break Nagle's rule.

use super::Flow;
use crate::flow::facts::PacketCounts;
use crate::inferred::Lack;

/// Whether a connection shows it: each ACK of both directions rides on data, and data was left unacknowledged for longer than
/// any receiver may.
pub(super) fn are_missing(directions: [&PacketCounts; 2]) -> bool {
    let none = directions.iter().all(|packets| packets.pure_acks + packets.inferred == 0);
    none && directions.iter().any(|packets| packets.overdue_acks > 0)
}

/// Leaves open what cannot be told of the other connections in such a capture, where they lack these packets, too: they may
/// have been too short to show it.
pub(crate) fn leave_open(flows: &mut [Flow]) {
    let lacks = |flow: &Flow| flow.directions.iter().any(|d| d.lacks == Some(Lack::BareAcks));
    if !flows.iter().any(lacks) {
        return;
    }
    let bare = |flow: &Flow| {
        flow.handshake.is_some() || flow.directions.iter().any(|direction| direction.acks.pure > 0)
    };
    for flow in flows.iter_mut().filter(|flow| !bare(flow) && !lacks(flow)) {
        let directions = std::mem::take(&mut flow.directions);
        flow.directions = directions.into_iter().map(|d| d.left_open(Lack::BareAcks)).collect();
    }
}

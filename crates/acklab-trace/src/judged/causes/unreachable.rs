//! Packets that a router or host threw away and said so by ICMP.

use super::cause::{Cause, CauseKind, Conversation};
use crate::flow::{Reason, Told};
use crate::noted::course::Spell;

/// What a connection that was open was told of its packets.
pub(super) fn of(talk: &Conversation<'_>) -> Option<Cause> {
    let told = talk.unreachable?;
    let [from, to] = [&talk.endpoints[told.of], &talk.endpoints[1 - told.of]];
    let took = told.until.since(told.since);
    let spell = Spell { count: told.count, sum: took, longest: took, frame: told.frame };
    let proof = format!(
        "{} said {} times (first in frame {}) that packets from {from} do not reach {to}: {}.",
        told.by,
        told.count,
        told.frame,
        words(told.reason)
    );
    let remedy = remedy(&told, to);
    Some(Cause { proof, remedy, ..Cause::of(CauseKind::Unreachable, talk, to, spell) })
}

/// The reason as a clause.
pub(super) fn words(reason: Reason) -> &'static str {
    match reason {
        Reason::TooBig { .. } => "they are larger than what may pass",
        Reason::NoRoute => "it has no route there",
        Reason::HostUnreachable => "it does not reach the host",
        Reason::PortUnreachable => "nothing takes them there, or a firewall rejects them so",
        Reason::Prohibited => "a rule forbids it",
        Reason::HopsExceeded => "they went through more routers than they may, mostly in a circle",
    }
}

/// Where to look.
pub(super) fn remedy(told: &Told, to: &str) -> String {
    let by = told.by;
    match told.reason {
        Reason::TooBig { .. } => format!("Look at the MTU behind {by}."),
        Reason::NoRoute => format!("Look at the routes of {by}: none leads to {to}."),
        Reason::HostUnreachable => {
            format!(
                "The host of {to} is off its network, or has another address: look there, and at ARP or neighbour entries of {by}."
            )
        }
        Reason::PortUnreachable => {
            format!("Nothing listens at {to}, or a firewall on {by} rejects: look at its rules.")
        }
        Reason::Prohibited => {
            format!("Look at the firewall rules of {by}: they forbid the way to {to}.")
        }
        Reason::HopsExceeded => {
            format!(
                "Two routers send packets to {to} to each other: follow the way with traceroute, beginning at {by}."
            )
        }
    }
}

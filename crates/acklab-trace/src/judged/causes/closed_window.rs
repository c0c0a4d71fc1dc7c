//! A receiver whose program does not read.

use super::super::direction::Direction;
use super::cause::{Cause, CauseKind, Conversation, hosts};

pub(super) fn of(talk: &Conversation<'_>, direction: &Direction) -> Option<Cause> {
    let spell = direction.course.closed;
    let [from, to] = hosts(direction);
    (spell.count > 0).then(|| {
        let cause = Cause::of(CauseKind::ClosedWindow, talk, to, spell);
        let proof = format!(
            "{} times {to} said that it has no room (window 0) and took it back only later: {:.2} s in all, {:.1} ms at most, \
             until frame {}. {from} may not send meanwhile.",
            cause.count, cause.seconds, cause.longest_ms, cause.frame
        );
        let remedy = format!(
            "Let the program on {to} read sooner, or give its socket a larger buffer (SO_RCVBUF, on Linux \
             net.ipv4.tcp_rmem); the network and {from} are not the cause."
        );
        Cause { proof, remedy, ..cause }
    })
}

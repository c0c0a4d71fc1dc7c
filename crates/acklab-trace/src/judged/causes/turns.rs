//! A program that had everything it waited for and wrote late.

use std::fmt::Write as _;

use super::super::direction::Direction;
use super::cause::{Cause, CauseKind, Conversation, hosts};

/// Of direction number `index`; the client's is the first. Who is the client only the handshake tells.
pub(super) fn of(talk: &Conversation<'_>, index: usize, direction: &Direction) -> Option<Cause> {
    let (turns, long) = (direction.course.turns, direction.course.long_turns);
    let near = talk.near;
    let at_sender = near == Some(&direction.from) || near == Some("both");
    // Were every second answer lost, others would be missing, too.
    let is_rule = direction.course.lost_before == 0 && long.count * 2 > direction.course.all_turns;
    let sure = at_sender || (is_rule && long.count >= TURNS_LEAST);
    let (spell, open) = if sure { (turns.and(long), 0) } else { (turns, long.count) };
    if spell.count < TURNS_LEAST || !talk.opened {
        return None;
    }
    let [from, to] = hosts(direction);
    let (kind, who, what) = if index == 1 {
        (CauseKind::SlowServer, "server", "answers")
    } else {
        (CauseKind::SlowClient, "client", "next requests")
    };
    let cause = Cause::of(kind, talk, from, spell);
    let mean = cause.seconds * 1e3 / cause.count as f64;
    let mut proof = format!(
        "{} times {from} had the data of {to}, nothing of its own was unacknowledged, and its {what} began {mean:.1} ms later on \
         average ({:.1} ms at most, frame {}): {:.2} s in all, in which TCP had nothing to send.",
        cause.count, cause.longest_ms, cause.frame, cause.seconds
    );
    if open > 0 {
        let _ = write!(
            proof,
            " {open} more pauses of 190 ms or longer may be that, or first tries that died before the capture point: a capture at \
             {from} tells."
        );
    }
    let remedy = format!(
        "Look into the {who}'s program on {from}: what it does between reading and writing is what takes this time; \
         no socket option shortens it."
    );
    Some(Cause { proof, remedy, ..cause })
}

/// Fewer say nothing of a program.
const TURNS_LEAST: u64 = 3;

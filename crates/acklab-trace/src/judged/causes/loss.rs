//! Segments that died, and on which side of the capture point.

use std::fmt::Write as _;

use super::super::direction::Direction;
use super::cause::{Cause, CauseKind, Conversation, hosts};
use crate::noted::course::Spell;

/// One cause for each side of the capture point on which some died; silences count where most did.
pub(super) fn of(talk: &Conversation<'_>, index: usize, direction: &Direction) -> Vec<Cause> {
    let course = &direction.course;
    // What came twice was sent again although it was there: its acknowledgment was late.
    let behind = course.lost_behind.saturating_sub(course.came_twice);
    // What a router threw away and said so is no such loss; what was too big comes again in two pieces.
    let told = [(talk.too_big, 2), (talk.unreachable, 1)].into_iter();
    let told = told
        .filter_map(|(told, pieces)| told.filter(|it| it.of == index).map(|it| it.count * pieces));
    let behind = behind.saturating_sub(told.sum());
    let sides = [(CauseKind::LossBefore, course.lost_before), (CauseKind::LossBehind, behind)];
    let most = sides[0].1.max(sides[1].1);
    let [from, to] = hosts(direction);
    let mut silences = Some(course.silences);
    let cause = |(kind, count): (CauseKind, u64)| {
        let spell =
            if count == most { silences.take().unwrap_or_default() } else { Spell::default() };
        let cause = Cause { count, ..Cause::of(kind, talk, to, spell) };
        let share = 100.0 * count as f64 / (direction.segments.max(1)) as f64;
        let (where_, how, died) = if kind == CauseKind::LossBefore {
            (
                format!("between {from} and the capture point"),
                "came late and had not passed before",
                "their first tries died",
            )
        } else {
            let at_receiver = talk.near == Some(&direction.to);
            let behind = format!("between the capture point and {to}");
            (
                if at_receiver { format!("on {to} itself") } else { behind },
                "passed more than once",
                "they or their acknowledgments died, or were late,",
            )
        };
        let mut proof = format!(
            "{count} of {} segments from {from} ({share:.1} %) {how}: {died} {where_}",
            direction.segments
        );
        if cause.count > 0 && cause.seconds > 0.0 {
            let _ = write!(
                proof,
                "; {:.2} s of silence ended so, {:.1} ms at most (frame {})",
                cause.seconds, cause.longest_ms, cause.frame
            );
        }
        proof.push('.');
        let remedy = format!("Look {where_}: at queues, buffers, radio, cables.");
        Cause { proof, remedy, ..cause }
    };
    sides.into_iter().filter(|(_, count)| *count > 0).map(cause).collect()
}

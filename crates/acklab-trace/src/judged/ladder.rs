//! The ladder diagram of one hold: the packets around it, drawn between two hosts.
//!
//! Data goes one way, acknowledgments the other; the line of the wait stands where it happened. The
//! times are those of the capture point.

use std::fmt::Write as _;

use acklab_core::time::Time;
use schemars::JsonSchema;
use serde::Serialize;

use crate::flow::DirectionFacts;
use crate::inferred::{Hold, SMALL_HOLD_MS, Sample};
use crate::noted::Notes;
use crate::noted::event::{DataNote, Event};

/// The packets around one hold, in capture order.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Ladder {
    /// The data sender, drawn on the left.
    pub left: String,
    /// The receiver, drawn on the right.
    pub right: String,
    /// The packets.
    pub rungs: Vec<Rung>,
}

/// One packet of a ladder.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Rung {
    /// Frame number.
    pub frame: u64,
    /// Milliseconds since the ladder's first packet.
    pub t_ms: f64,
    /// From left to right.
    pub rightward: bool,
    /// Flags, for example `PSH,ACK`.
    pub flags: String,
    /// Offset of the first byte in the direction's stream.
    pub seq: u64,
    /// Payload bytes.
    pub len: u32,
    /// Acknowledged offset of the left host's data, where the packet carries it.
    pub ack: Option<u64>,
    /// How long the packet's oldest byte had waited in the sender, milliseconds, where it was held.
    pub held_ms: Option<f64>,
    /// What the reader should see here.
    pub note: Option<String>,
}

impl Ladder {
    /// The ladder of the most typical hold.
    pub(super) fn of(notes: &Notes<'_>, holds: &[Hold]) -> Option<Self> {
        let median = Sample::new(holds.iter().map(Hold::length_ms).collect()).median();
        let off = |hold: &Hold| (hold.length_ms() - median).abs();
        let long = holds.iter().filter(|h| h.upper_ms() >= SMALL_HOLD_MS);
        let typical = long.min_by(|a, b| off(a).total_cmp(&off(b)))?;
        let is_it = |event: &Event| matches!(event, Event::Data(d) if d.frame == typical.frame);
        let at = notes.events.iter().position(is_it)?;
        let around = at.saturating_sub(BEFORE)..(at + 1 + AFTER).min(notes.events.len());
        Some(Self::draw(&notes.events[around], typical, holds, notes.facts))
    }

    /// One hold is told of; of the others around it, that they are some.
    fn draw(events: &[Event], hold: &Hold, all: &[Hold], facts: &DirectionFacts) -> Self {
        let origin = events.first().map_or(hold.before, Event::time);
        let mut rungs: Vec<Rung> =
            events.iter().map(|event| Rung::of(event, hold, origin)).collect();
        for rung in rungs.iter_mut().filter(|rung| rung.rightward && rung.note.is_none()) {
            let other = all.iter().find(|other| other.frame == rung.frame);
            rung.note = other.map(|other| format!("held {:.1} ms as well", other.length_ms()));
        }
        Self { left: facts.from.to_string(), right: facts.to.to_string(), rungs }
    }

    /// Draws the ladder with box characters, one packet a line, and what is to be seen beside it or, where that is
    /// wider than `columns`, below.
    pub fn to_text(&self, columns: usize) -> String {
        let mut out = String::new();
        let notes = self.rungs.iter().filter_map(|rung| rung.note.as_ref());
        let widest = notes.map(|note| note.chars().count()).max().unwrap_or(0);
        let beside = BESIDE + widest <= columns;
        let _ = writeln!(
            out,
            "  {:>9}  {:>7}  {:<w$}{}",
            "time ms",
            "frame",
            self.left,
            self.right,
            w = WIDTH + 2
        );
        for rung in &self.rungs {
            let label = rung.label();
            let room = WIDTH.saturating_sub(label.chars().count() + 3);
            let bar: String = "─".repeat(room);
            let arrow = if rung.rightward {
                format!("─ {label} {bar}▶")
            } else {
                format!("◀{bar} {label} ─")
            };
            let note = match &rung.note {
                Some(note) if beside => format!("   ← {note}"),
                Some(note) => format!("\n{:20} ↑ {note}", ""),
                None => String::new(),
            };
            let _ = writeln!(out, "  {:>9.2}  {:>7}  │{arrow}│{note}", rung.t_ms, rung.frame);
        }
        out
    }
}

impl Rung {
    fn of(event: &Event, hold: &Hold, origin: Time) -> Self {
        let t_ms = event.time().signed_since(origin) as f64 / 1e6;
        match event {
            Event::Data(data) => Self {
                frame: data.frame,
                t_ms,
                rightward: true,
                flags: if data.push { "PSH,ACK".into() } else { "ACK".into() },
                seq: data.offset,
                len: data.len,
                ack: None,
                held_ms: (data.frame == hold.frame).then(|| hold.length_ms()),
                note: note_on_data(data, hold),
            },
            Event::Ack(ack) => Self {
                frame: ack.frame,
                t_ms,
                flags: "ACK".into(),
                len: ack.len,
                ack: Some(ack.acked_to),
                note: note_on_ack(ack.time, hold),
                ..Self::default()
            },
        }
    }

    fn label(&self) -> String {
        if self.rightward {
            format!("{} B", self.len)
        } else if self.len > 0 {
            match self.ack {
                Some(ack) => format!("{} B, ACK {ack}", self.len),
                None => format!("{} B", self.len),
            }
        } else {
            format!("ACK {}", self.ack.unwrap_or(0))
        }
    }
}

fn note_on_data(data: &DataNote, hold: &Hold) -> Option<String> {
    if data.frame == hold.frame && hold.filled {
        return Some(format!("held {:.1} ms, until it filled a segment", hold.length_ms()));
    }
    if data.frame == hold.frame {
        let gap = hold.release.signed_since(hold.ack) as f64 / 1e6;
        return Some(format!("held {:.1} ms, leaves {gap:.2} ms after the ACK", hold.length_ms()));
    }
    let before = data.time == hold.before;
    before.then(|| "unacknowledged: what is written next must wait".into())
}

fn note_on_ack(time: Time, hold: &Hold) -> Option<String> {
    (!hold.filled && time == hold.ack).then(|| match hold.ack_delay_ms {
        Some(delay) if delay >= 1.0 => format!("this ACK came {delay:.1} ms late"),
        _ => "this ACK lets the next segment go".into(),
    })
}

/// Packets drawn before the held segment, and after it.
const BEFORE: usize = 7;
const AFTER: usize = 4;
/// Columns between the two hosts' lines.
const WIDTH: usize = 40;
/// Columns of a drawn line and the arrow to its note.
const BESIDE: usize = 70;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_drawn_ladder_is_as_wide_between_the_hosts() {
        let rung = |rightward, len, ack| Rung { rightward, len, ack, frame: 7, ..Rung::default() };
        let ladder = Ladder {
            left: "10.0.0.1:1000".into(),
            right: "10.0.0.2:502".into(),
            rungs: vec![rung(true, 10, None), rung(false, 0, Some(10)), rung(false, 25, Some(10))],
        };
        let text = ladder.to_text(usize::MAX);
        let widths: Vec<usize> = text
            .lines()
            .skip(1)
            .map(|l| l.chars().take_while(|c| *c != '←').filter(|c| !c.is_ascii_digit()).count())
            .collect();
        assert_eq!(text.lines().count(), 4);
        assert!(text.lines().skip(1).all(|l| l.matches('│').count() == 2), "{text} {widths:?}");
    }

    #[test]
    fn a_note_stands_beside_its_packet_or_below_where_there_is_no_room() {
        let note = Some("held 40.0 ms as well".to_owned());
        let rung = Rung { rightward: true, len: 5, note, ..Rung::default() };
        let ladder = Ladder { rungs: vec![rung], ..Ladder::default() };
        let (wide, narrow) = (ladder.to_text(90), ladder.to_text(80));
        assert_eq!((wide.lines().count(), narrow.lines().count()), (2, 3), "{narrow}");
        assert!(wide.lines().all(|line| line.chars().count() <= 90));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    }
}

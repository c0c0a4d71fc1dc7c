//! The ladder diagram of one hold: the packets around it, drawn between two hosts.
//!
//! Data goes one way, acknowledgments the other; the line of the wait stands where it happened. The
//! times are those of the capture point.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use crate::flow::DirectionFacts;
use crate::inferred::{Hold, SMALL_HOLD_MS, Sample};
use crate::noted::Notes;
use crate::noted::scenes::{Passing, Scene};

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
    /// The ladder of the most typical hold whose packets were kept.
    pub(super) fn of(notes: &Notes<'_>, holds: &[Hold]) -> Option<Self> {
        let median = Sample::new(holds.iter().map(Hold::length_ms).collect()).median();
        let off = |hold: &Hold| (hold.length_ms() - median).abs();
        let scenes = notes.drawings.scenes.iter();
        let (scene, typical) = scenes
            .filter_map(|s| holds.iter().find(|h| h.frame == s.frame).map(|h| (s, h)))
            .filter(|(_, h)| h.upper_ms() >= SMALL_HOLD_MS)
            .min_by(|a, b| off(a.1).total_cmp(&off(b.1)))?;
        Some(Self::draw(scene, typical, notes.facts))
    }

    fn draw(scene: &Scene, hold: &Hold, facts: &DirectionFacts) -> Self {
        let origin = scene.packets.first().map_or(hold.before, |p| p.time);
        let rungs = scene
            .packets
            .iter()
            .map(|p| Rung {
                frame: p.frame,
                t_ms: p.time.since(origin).as_millis_f64(),
                rightward: p.data,
                flags: if p.push { "PSH,ACK".into() } else { "ACK".into() },
                seq: if p.data { p.offset } else { 0 },
                len: p.len,
                ack: (!p.data).then_some(p.offset),
                held_ms: (p.data && p.frame == hold.frame).then(|| hold.length_ms()),
                note: note(p, hold),
            })
            .collect();
        Self { left: facts.from.to_string(), right: facts.to.to_string(), rungs }
    }

    /// Draws the ladder with box characters, one packet a line.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
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
            let note = rung.note.as_deref().map_or(String::new(), |n| format!("   ← {n}"));
            let _ = writeln!(out, "  {:>9.2}  {:>7}  │{arrow}│{note}", rung.t_ms, rung.frame);
        }
        out
    }
}

impl Rung {
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

fn note(packet: &Passing, hold: &Hold) -> Option<String> {
    if packet.data && packet.frame == hold.frame && hold.filled {
        return Some(format!("held {:.1} ms, until it filled a segment", hold.length_ms()));
    }
    if packet.data && packet.frame == hold.frame {
        let gap = hold.release.since(hold.ack).as_millis_f64();
        return Some(format!("held {:.1} ms, leaves {gap:.2} ms after the ACK", hold.length_ms()));
    }
    if packet.data && packet.time == hold.before {
        return Some("unacknowledged: what is written next must wait".into());
    }
    (!packet.data && !hold.filled && packet.time == hold.ack).then(|| match hold.ack_delay_ms {
        Some(delay) if delay >= 1.0 => format!("this ACK came {delay:.1} ms late"),
        _ => "this ACK lets the next segment go".into(),
    })
}

/// Columns between the two hosts' lines.
const WIDTH: usize = 40;

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
        let text = ladder.to_text();
        let widths: Vec<usize> = text
            .lines()
            .skip(1)
            .map(|l| l.chars().take_while(|c| *c != '←').filter(|c| !c.is_ascii_digit()).count())
            .collect();
        assert_eq!(text.lines().count(), 4);
        assert!(text.lines().skip(1).all(|l| l.matches('│').count() == 2), "{text} {widths:?}");
    }
}

//! The ladder diagram of one hold: the packets around it, drawn between two hosts.
//!
//! Data goes one way, acknowledgments the other; the line of the wait stands where it happened. The
//! times are those of the capture point.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

/// The packets around one hold, in capture order.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
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

/// Columns between the two hosts' lines.
const WIDTH: usize = 40;

impl Ladder {
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

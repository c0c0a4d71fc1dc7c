//! The answer for people.

use std::fmt::Write;

use super::{Sum, WhatIf};

impl WhatIf {
    /// The answer as text.
    pub fn to_text(&self) -> String {
        let mut text = format!("Connection {}, {} to {}", self.flow, self.from, self.to);
        let _ = writeln!(text, ", round trip {:.1} ms\n", self.rtt_ms);
        let _ = writeln!(
            text,
            "  delay from write to departure, ms   messages     p50     p95    mean   total"
        );
        row(&mut text, "measured", &self.measured);
        row(&mut text, "replayed as it was", &self.replay.delay);
        if self.remedies.is_empty() {
            row(&mut text, &self.set.join(" "), &self.predicted.delay);
        }
        for remedy in &self.remedies {
            row(&mut text, &remedy.set, &remedy.delay);
        }
        let interval = &self.predicted.interval;
        let _ = writeln!(
            text,
            "\nWith {}: {:+.2} s; p50 {:.1} to {:.1} ms, p95 {:.1} to {:.1} ms, by what the capture \
             leaves open.",
            self.set.join(" "),
            -self.predicted.saved_s,
            interval.p50_ms[0],
            interval.p50_ms[1],
            interval.p95_ms[0],
            interval.p95_ms[1],
        );
        let segments = &self.replay.segments;
        let _ = writeln!(
            text,
            "Replay beside capture: Kolmogorov-Smirnov distance {:.2}; {} segments ({} held) for {} ({} held).",
            self.replay.ks,
            segments.replayed,
            segments.replayed_held,
            segments.captured,
            segments.captured_held,
        );
        for assumed in &self.assumed {
            let _ = writeln!(text, "Assumed: {assumed}.");
        }
        text
    }
}

fn row(text: &mut String, name: &str, sum: &Sum) {
    let _ = writeln!(
        text,
        "  {name:<35} {:>8} {:>7.1} {:>7.1} {:>7.1} {:>6.2} s",
        sum.messages, sum.p50_ms, sum.p95_ms, sum.mean_ms, sum.seconds
    );
}

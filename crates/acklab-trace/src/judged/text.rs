//! The diagnosis as text: verdict first, then a table of the connections, then one ladder.
//!
//! Lines are as wide as the terminal; without one text has 96 columns, and tables and the ladder what they need. Numbers
//! carry their unit.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::cure::{Cure, CureDelays};
use super::diagnosis::Diagnosis;
use super::direction::Direction;
use super::finding::Finding;
use super::flow::Flow;
use super::verdict::State;
use crate::inferred::NagleState;

/// How many columns the terminal has, once it is known: text is broken to fit.
pub fn set_text_width(columns: usize) {
    WIDTH.store(columns.max(WIDTH_MIN), Ordering::Relaxed);
}

/// Columns of the terminal; without one every table fits.
fn terminal() -> usize {
    WIDTH.load(Ordering::Relaxed)
}

/// Where text is broken.
fn width() -> usize {
    match terminal() {
        UNKNOWN => WIDTH_WITHOUT_TERMINAL,
        columns => columns,
    }
}

static WIDTH: AtomicUsize = AtomicUsize::new(UNKNOWN);
const UNKNOWN: usize = usize::MAX;
/// Without a terminal text is broken here.
const WIDTH_WITHOUT_TERMINAL: usize = 96;
/// No narrower, for words have to fit.
const WIDTH_MIN: usize = 40;
/// Of the table of connections.
const TABLE_WIDTH: usize = 129;
/// Of the table of predicted delays.
const CURE_WIDTH: usize = 89;
/// Connections listed.
const FLOWS_MAX: usize = 20;

impl Diagnosis {
    /// The diagnosis for people.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        if self.flows.is_empty() {
            out.push_str("NOTHING TO JUDGE\n\n");
        } else {
            let word = match self.verdict.state {
                State::Stalled => "STALLED",
                State::NotStalled => "NOT STALLED",
                State::CannotTell => "CANNOT TELL: held with a probability of",
            };
            let percent = self.verdict.confidence * 100.0;
            let open = self.verdict.state == State::CannotTell;
            let of = if open { format!("{percent:.0} %") } else { format!("({percent:.0} %)") };
            let _ = writeln!(out, "{word} {of}\n");
        }
        paragraph(&mut out, "", &self.verdict.summary);
        if let Some(cause) = self.instead() {
            paragraph(&mut out, "", &format!("Look at this instead: {cause}."));
        }
        for finding in &self.verdict.findings {
            // What the summary says already is not said again.
            let is_said = self.verdict.summary.contains(&finding.headline);
            write_finding(&mut out, finding, !is_said);
        }
        self.write_table(&mut out);
        let causes: Vec<String> =
            self.causes.iter().map(|cause| format!("{} {}", cause.proof, cause.remedy)).collect();
        list(&mut out, "What else took time, each by its proof", &causes);
        if let Some(pair) = &self.pair {
            let title = format!("What {} and {} say together", pair.client, pair.server);
            list(&mut out, &title, &pair.sentences());
        }
        self.write_ladder(&mut out);
        list(&mut out, "What would decide it", &self.verdict.decides);
        list(&mut out, "What limits this answer", &self.verdict.limits);
        list(&mut out, "About the capture", &self.capture.notes);
        if let Some(cure) = &self.cure {
            write_cure(&mut out, cure);
        }
        out
    }

    fn write_table(&self, out: &mut String) {
        if self.flows.is_empty() {
            return;
        }
        if terminal() < TABLE_WIDTH {
            return self.write_narrow_table(out);
        }
        let _ = writeln!(
            out,
            "\n{:>5}  {:<45} {:>8} {:>9} {:<7} {:<22} {:>6} {:>8} {:>8}",
            "flow",
            "from > to",
            "segments",
            "bytes",
            "nagle",
            "receiver",
            "holds",
            "s lost",
            "p95 ms"
        );
        for flow in self.flows.iter().take(FLOWS_MAX) {
            for direction in flow.directions.iter().filter(|d| d.bytes > 0) {
                write_row(out, flow, direction);
            }
        }
        let more = self.flows.len().saturating_sub(FLOWS_MAX) as u64 + self.flows_not_listed;
        if more > 0 {
            let _ = writeln!(out, "       and {more} more connections");
        }
    }

    /// The table on a narrow terminal: a line or two for each direction.
    fn write_narrow_table(&self, out: &mut String) {
        out.push('\n');
        for flow in self.flows.iter().take(FLOWS_MAX) {
            for d in flow.directions.iter().filter(|d| d.bytes > 0) {
                let text = format!(
                    "{} > {}: {} segments, {} bytes; {} holds, {:.2} s lost, p95 {:.1} ms",
                    d.from,
                    d.to,
                    d.segments,
                    d.bytes,
                    d.holds(),
                    d.stalled_s(),
                    d.added_delay_ms.p95
                );
                paragraph(out, &format!("{:>5}  ", flow.id), &text);
            }
        }
        let more = self.flows.len().saturating_sub(FLOWS_MAX) as u64 + self.flows_not_listed;
        if more > 0 {
            let _ = writeln!(out, "       and {more} more connections");
        }
    }

    fn write_ladder(&self, out: &mut String) {
        let ladder = self
            .flows
            .iter()
            .flat_map(|f| &f.directions)
            .filter(|d| !d.stalls.is_empty())
            .find_map(|d| d.plots.ladder.as_ref());
        if let Some(ladder) = ladder {
            let _ = writeln!(out, "\nOne stall, packet by packet:\n");
            out.push_str(&ladder.to_text(terminal()));
        }
    }
}

fn write_row(out: &mut String, flow: &Flow, d: &Direction) {
    let nagle = match d.nagle.state {
        NagleState::On => "on",
        NagleState::Off => "off",
        NagleState::Unknown => "?",
    };
    let receiver = match (d.receiver_policy.profile, d.receiver_policy.timer_ms) {
        (Some(profile), Some(timer)) => format!("{profile} {timer:.0} ms"),
        (Some(profile), None) => profile.to_owned(),
        _ => "?".to_owned(),
    };
    let _ = writeln!(
        out,
        "{:>5}  {:<45} {:>8} {:>9} {:<7} {:<22} {:>6} {:>8.2} {:>8.1}",
        flow.id,
        format!("{} > {}", d.from, d.to),
        d.segments,
        d.bytes,
        nagle,
        receiver,
        d.holds(),
        d.stalled_s(),
        d.added_delay_ms.p95
    );
}

fn write_finding(out: &mut String, finding: &Finding, with_headline: bool) {
    out.push('\n');
    if with_headline {
        paragraph(out, "* ", &finding.headline);
    }
    paragraph(out, "  ", &finding.explanation);
    if !finding.sender_fix.is_empty() {
        let _ = writeln!(out, "  On {} (sender), best first:", finding.from);
        finding.sender_fix.iter().for_each(|fix| paragraph(out, "    - ", fix));
    }
    if !finding.receiver_fix.is_empty() {
        let _ = writeln!(out, "  Or on {} (receiver):", finding.to);
        finding.receiver_fix.iter().for_each(|fix| paragraph(out, "    - ", fix));
    }
}

fn write_cure(out: &mut String, cure: &Cure) {
    out.push('\n');
    paragraph(out, "", &cure.sentence());
    let Some(told) = &cure.prediction else { return };
    let is_wide = terminal() >= CURE_WIDTH;
    let title = "delay from write to departure, ms";
    let _ = if is_wide {
        writeln!(out, "\n  {title:<52} {:>7} {:>7} {:>7} {:>10}", "p50", "p95", "mean", "saved")
    } else {
        writeln!(out, "\n  {title}:")
    };
    let mut row = |name: &str, delays: &CureDelays, saved_s: Option<f64>| {
        let CureDelays { p50_ms, p95_ms, mean_ms, .. } = delays;
        if is_wide {
            let saved = saved_s.map_or(String::new(), |s| format!(" {s:>8.2} s"));
            let _ = writeln!(out, "  {name:<52} {p50_ms:>7.1} {p95_ms:>7.1} {mean_ms:>7.1}{saved}");
        } else {
            let saved = saved_s.map_or(String::new(), |s| format!(", saved {s:.2} s"));
            let text =
                format!("{name}: p50 {p50_ms:.1}, p95 {p95_ms:.1}, mean {mean_ms:.1}{saved}");
            paragraph(out, "  - ", &text);
        }
    };
    row("measured", &told.measured, None);
    for tried in &told.remedies {
        row(&tried.words, &tried.delays, Some(tried.saved_s));
    }
    out.push('\n');
    paragraph(out, "  ", &told.ground());
}

fn list(out: &mut String, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}:");
    for item in items {
        paragraph(out, "  - ", item);
    }
}

/// Breaks `text` at spaces; the lines after the first are indented as far.
fn paragraph(out: &mut String, lead: &str, text: &str) {
    let width = width();
    let mut line = String::from(lead);
    let indent = " ".repeat(lead.chars().count());
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            let _ = writeln!(out, "{line}");
            line.clone_from(&indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    let _ = writeln!(out, "{line}");
}

//! The verdict on a capture: whether writes were held, how sure that is, and what it cannot tell.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::capture::Capture;
use super::direction::Direction;
use super::finding::Finding;
use super::flow::Flow;
use crate::inferred::{NagleState, WaitCause};

/// The answer in words, with what stands behind it.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether writes were held in a sender by Nagle's algorithm.
    pub stalled: bool,
    /// How sure, 0 to 1.
    pub confidence: f64,
    /// Two or three sentences for a reader who never heard of Nagle.
    pub summary: String,
    /// One finding per stalled direction, worst first.
    pub findings: Vec<Finding>,
    /// What the capture cannot tell, and why.
    pub limits: Vec<String>,
}

impl Verdict {
    /// Judges a capture by its connections, the most stalled first.
    pub(crate) fn of(capture: &Capture, flows: &[Flow]) -> Self {
        let directions: Vec<&Direction> = flows.iter().flat_map(|f| &f.directions).collect();
        let mut stalled: Vec<(&Flow, &Direction)> = flows
            .iter()
            .flat_map(|f| f.directions.iter().map(move |d| (f, d)))
            .filter(|(_, d)| !d.stalls.is_empty())
            .collect();
        stalled.sort_by(|a, b| b.1.stalled_s().total_cmp(&a.1.stalled_s()));
        let findings: Vec<Finding> =
            stalled.iter().take(FINDINGS_MAX).map(|(f, d)| Finding::of(f, d)).collect();
        let limits = limits(flows);
        if stalled.is_empty() {
            let confidence = clean_confidence(&directions);
            let summary = clean_summary(capture, &directions);
            return Self { stalled: false, confidence, summary, findings, limits };
        }
        let seconds = stalled.iter().fold(0.0, |sum, (_, d)| sum + d.stalled_s());
        let confidence = stalled.iter().map(|(_, d)| certainty(d)).fold(0.0, f64::max);
        let summary = stalled_summary(&findings, stalled.len(), seconds);
        Self { stalled: true, confidence, summary, findings, limits }
    }
}

fn certainty(direction: &Direction) -> f64 {
    // A sender that switched Nagle off mid-way was still held before.
    if direction.nagle.state == NagleState::On { direction.nagle.confidence } else { 0.7 }
}

/// How sure "not stalled" is: every data direction proved off is certain, unknown ones less so.
fn clean_confidence(directions: &[&Direction]) -> f64 {
    let with_data = directions.iter().filter(|d| d.segments > 0).count();
    if with_data == 0 {
        return 0.0;
    }
    let off = directions.iter().filter(|d| d.nagle.state == NagleState::Off).count();
    0.8 + 0.19 * off as f64 / with_data as f64
}

fn stalled_summary(findings: &[Finding], count: usize, seconds: f64) -> String {
    let Some(worst) = findings.first() else { return String::new() };
    let more = match count {
        0 | 1 => String::new(),
        n => format!(" In all, {n} directions are affected, for {seconds:.2} s together."),
    };
    format!("Confirmed: {}.{more}", worst.headline)
}

fn clean_summary(capture: &Capture, directions: &[&Direction]) -> String {
    if capture.tcp_segments == 0 {
        return "There is no TCP in this capture, so nothing can be said.".into();
    }
    let directions: Vec<&&Direction> = directions.iter().filter(|d| d.segments > 0).collect();
    let small: u64 = directions.iter().map(|d| d.small_holds).sum();
    let mut text = format!(
        "Refuted for this capture: in {} direction{} with data, no write was held in the sender for \
         10 ms or longer by Nagle's algorithm.",
        directions.len(),
        if directions.len() == 1 { "" } else { "s" }
    );
    if small > 0 {
        let _ = write!(text, " {small} writes were held for less than 10 ms.");
    }
    let longest = directions
        .iter()
        .flat_map(|d| d.waits.iter().map(move |w| (w, d)))
        .max_by(|a, b| a.0.seconds.total_cmp(&b.0.seconds));
    if let Some((wait, d)) = longest {
        let cause = match wait.cause {
            WaitCause::Application => "the application had nothing to send",
            WaitCause::Window => "the receiver's window was full",
            WaitCause::Congestion => "the congestion window was full",
            WaitCause::LossRecovery => "lost segments were being repaired",
        };
        let _ = write!(
            text,
            " Where {} was silent, it was mostly because {cause} ({:.1} s in {} pauses).",
            d.from, wait.seconds, wait.count
        );
    }
    text
}

/// What the captures cannot tell.
fn limits(flows: &[Flow]) -> Vec<String> {
    let mut limits = Vec::new();
    let headless = flows.iter().filter(|f| f.handshake.is_none()).count();
    if headless > 0 {
        limits.push(format!(
            "{headless} connection{} began before the capture: the round trip, and with it the \
             receiver's own share of an ACK's delay, is less certain. Start the capture before the \
             connection.",
            if headless == 1 { "" } else { "s" }
        ));
    }
    let sampled = flows.iter().flat_map(|f| &f.directions).filter(|d| d.sampled).count();
    if sampled > 0 {
        limits.push(format!(
            "{sampled} direction{} had more small segments than are kept on record: holds are counted \
             on the first part and scaled up to the whole.",
            if sampled == 1 { "" } else { "s" }
        ));
    }
    let open = flows
        .iter()
        .flat_map(|f| &f.directions)
        .filter(|d| d.segments >= 10 && d.nagle.state == NagleState::Unknown)
        .count();
    if open > 0 {
        limits.push(format!(
            "In {open} direction{} the traffic never put Nagle's algorithm to the test, so whether it \
             is on there is not known.",
            if open == 1 { "" } else { "s" }
        ));
    }
    let unsure = flows
        .iter()
        .flat_map(|f| &f.directions)
        .find(|d| !d.stalls.is_empty() && d.receiver_policy.candidates.len() > 1);
    if let Some(d) = unsure {
        limits.push(format!(
            "{} behaves like any of: {}.",
            d.to,
            d.receiver_policy.candidates.join(", ")
        ));
    }
    limits
}

/// A direction is named in the verdict with its worst holds; beyond so many, only counted.
const FINDINGS_MAX: usize = 10;

//! The verdict on a capture: whether writes were held, how sure that is, and what it cannot tell.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::capture::Capture;
use super::direction::Direction;
use super::finding::Finding;
use super::flow::Flow;
use crate::inferred::{Lack, NagleState, OPEN, WaitCause};

/// The answer in words, with what stands behind it.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether writes were held in a sender by Nagle's algorithm; `null`: the capture cannot tell.
    pub stalled: Option<bool>,
    /// The same as a word.
    pub state: State,
    /// The probability that the answer is right, 0 to 1; where there is none, that writes were held.
    pub confidence: f64,
    /// Two or three sentences for a reader who never heard of Nagle.
    pub summary: String,
    /// What would decide it, where the capture cannot tell.
    pub decides: Vec<String>,
    /// One finding per stalled direction, worst first.
    pub findings: Vec<Finding>,
    /// What the capture cannot tell, and why.
    pub limits: Vec<String>,
}

/// What the verdict is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Writes were held.
    Stalled,
    /// None was held for 10 ms or longer.
    NotStalled,
    /// The capture does not show it.
    #[default]
    CannotTell,
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
        let open: Vec<&Direction> = directions
            .iter()
            .copied()
            .filter(|d| d.stalls.is_empty() && d.stalled_probability >= OPEN)
            .collect();
        // What is unlikely in one direction is not likelier in a thousand of the same kind.
        let any = directions.iter().map(|d| d.stalled_probability).fold(0.0, f64::max);
        let seconds = stalled.iter().fold(0.0, |sum, (_, d)| sum + d.stalled_s());
        let (stalled, state, confidence, summary) = if !stalled.is_empty() {
            let summary = stalled_summary(&findings, stalled.len(), seconds, any);
            (Some(true), State::Stalled, any, summary)
        } else if !open.is_empty() || directions.iter().all(|d| d.bytes == 0) {
            (None, State::CannotTell, any, open_summary(capture, &open))
        } else if capture.disordered {
            let why = "Open: the capture's packets are not in the order in which they passed, so that ACKs \
                       stand behind what they let go.";
            (None, State::CannotTell, any.max(OPEN), why.into())
        } else {
            (Some(false), State::NotStalled, 1.0 - any, clean_summary(&directions))
        };
        let decides = if stalled.is_none() { decides(capture, &open) } else { Vec::new() };
        Self { stalled, state, confidence, summary, decides, findings, limits: limits(flows) }
    }
}

fn stalled_summary(findings: &[Finding], count: usize, seconds: f64, confidence: f64) -> String {
    let Some(worst) = findings.first() else { return String::new() };
    let more = match count {
        0 | 1 => String::new(),
        n => format!(" In all, {n} directions are affected, for {seconds:.2} s together."),
    };
    format!("{}: {}.{more}", how_sure(confidence), worst.headline)
}

/// The word for a probability.
const fn how_sure(confidence: f64) -> &'static str {
    match confidence {
        0.95.. => "Confirmed",
        0.8.. => "Likely",
        _ => "Possible",
    }
}

/// What is said where nothing can be.
fn open_summary(capture: &Capture, open: &[&Direction]) -> String {
    if capture.tcp_segments == 0 {
        return "There is no TCP in this capture, so nothing can be said.".into();
    }
    let Some(worst) =
        open.iter().max_by(|a, b| a.stalled_probability.total_cmp(&b.stalled_probability))
    else {
        return "No connection in this capture carried data, so nothing can be said.".into();
    };
    let why = match worst.lacks {
        Some(Lack::BothDirections) => {
            "its packets, or the acknowledgments of them, were not captured"
        }
        Some(Lack::SenderSide) => {
            "the capture began after the connection and away from the sender, where writes on a beat of \
             their own look like held ones"
        }
        Some(Lack::FinerClock) => "its time stamps are too coarse to show a wait of 10 ms",
        Some(Lack::AllInOrder) => "too many of its packets are missing or not in their order",
        Some(Lack::BareAcks) => "acknowledgments that carry no data were not captured",
        _ => "too few packets say anything",
    };
    format!(
        "Open: whether writes of {} to {} were held cannot be told from this capture ({:.0} % likely): \
         {why}.",
        worst.from,
        worst.to,
        worst.stalled_probability * 100.0
    )
}

/// What would decide it, most wanted first.
fn decides(capture: &Capture, open: &[&Direction]) -> Vec<String> {
    let order = capture.disordered.then_some(Lack::AllInOrder);
    let mut lacks: Vec<Lack> = open.iter().filter_map(|d| d.lacks).chain(order).collect();
    lacks.sort_unstable();
    lacks.dedup();
    lacks.into_iter().map(|lack| lack.remedy().to_owned()).collect()
}

fn clean_summary(directions: &[&Direction]) -> String {
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
    let echoed = flows.iter().filter(|f| f.inferred > 0).count();
    if echoed > 0 {
        limits.push(format!(
            "Of {echoed} connection{} the packets of one host were not captured; they were put back by the \
             timestamps that the other echoed, to a millisecond. Capture both directions.",
            if echoed == 1 { "" } else { "s" }
        ));
    }
    let missing: u64 = flows.iter().flat_map(|f| &f.directions).map(|d| d.missing_segments).sum();
    if missing > 0 {
        limits.push(format!(
            "About {missing} segments were acknowledged that the capture does not hold: it lacks frames, and \
             with them some of the holds."
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

#[cfg(test)]
mod tests {
    use super::how_sure;

    #[test]
    fn only_what_is_sure_is_confirmed() {
        let words = [0.99, 0.95, 0.94, 0.8, 0.64].map(how_sure);
        assert_eq!(words, ["Confirmed", "Confirmed", "Likely", "Likely", "Possible"]);
    }
}

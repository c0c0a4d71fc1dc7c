//! The verdict in words: what happens, on which host, how bad it is, and what to change.
//!
//! Written for someone who runs a plant or a service and never heard of Nagle. Every sentence is
//! made from numbers in the result; the remedies stand in [`remedy`].

pub mod remedy;

use std::fmt::Write as _;

use crate::diagnosis::{Capture, Direction, Finding, Flow, Mechanism, NagleState, Stall, Verdict};

/// A direction is named in the verdict with its worst holds; beyond so many, only counted.
const FINDINGS_MAX: usize = 10;

/// Judges a capture by its connections, the most stalled first.
pub fn judge(capture: &Capture, flows: &[Flow]) -> Verdict {
    let mut findings: Vec<(f64, Finding)> = Vec::new();
    for flow in flows {
        for direction in flow.directions.iter().filter(|d| !d.stalls.is_empty()) {
            let seconds = direction.stalled_s();
            findings.push((seconds, finding(flow, direction)));
        }
    }
    findings.sort_by(|a, b| b.0.total_cmp(&a.0));
    let stalled = !findings.is_empty();
    let seconds = findings.iter().fold(0.0, |sum, f| sum + f.0);
    let directions: Vec<&Direction> = flows.iter().flat_map(|f| &f.directions).collect();
    let confidence = if stalled {
        directions.iter().filter(|d| !d.stalls.is_empty()).map(|d| certainty(d)).fold(0.0, f64::max)
    } else {
        clean_confidence(&directions)
    };
    let count = findings.len();
    let mut kept: Vec<Finding> = findings.into_iter().map(|f| f.1).collect();
    kept.truncate(FINDINGS_MAX);
    let summary = if stalled {
        stalled_summary(&kept, count, seconds)
    } else {
        clean_summary(capture, flows)
    };
    Verdict { stalled, confidence, summary, findings: kept, limits: limits(flows) }
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

fn clean_summary(capture: &Capture, flows: &[Flow]) -> String {
    if capture.tcp_segments == 0 {
        return "There is no TCP in this capture, so nothing can be said.".into();
    }
    let directions: Vec<&Direction> =
        flows.iter().flat_map(|f| &f.directions).filter(|d| d.segments > 0).collect();
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
            crate::diagnosis::WaitCause::Application => "the application had nothing to send",
            crate::diagnosis::WaitCause::Window => "the receiver's window was full",
            crate::diagnosis::WaitCause::Congestion => "the congestion window was full",
            crate::diagnosis::WaitCause::LossRecovery => "lost segments were being repaired",
        };
        let _ = write!(
            text,
            " Where {} was silent, it was mostly because {cause} ({:.1} s in {} pauses).",
            d.from, wait.seconds, wait.count
        );
    }
    text
}

fn finding(flow: &Flow, d: &Direction) -> Finding {
    let worst = d
        .stalls
        .iter()
        .max_by(|a, b| a.seconds.total_cmp(&b.seconds))
        .map_or(Mechanism::AckClocked, |s| s.mechanism);
    Finding {
        flow: flow.id,
        from: d.from.clone(),
        to: d.to.clone(),
        mechanism: worst,
        headline: headline(d),
        explanation: explanation(d, worst),
        sender_fix: remedy::at_sender(d),
        receiver_fix: remedy::at_receiver(d),
    }
}

fn headline(d: &Direction) -> String {
    let (count, seconds, share) = (d.holds(), d.stalled_s(), d.stalled_share());
    let delay = &d.added_delay_ms;
    let late = if delay.source == "upper_bound" {
        worst_held(&d.stalls)
    } else {
        format!(
            "{} of {} messages were late, by {:.1} ms at the median and {:.1} ms at the 95th percentile",
            delay.delayed, delay.messages, delay.p50, delay.p95
        )
    };
    format!(
        "{} held back its writes to {} {count} time{}, {seconds:.2} s in all ({:.0} % of the \
         connection's time): {late}",
        d.from,
        d.to,
        if count == 1 { "" } else { "s" },
        share * 100.0
    )
}

fn worst_held(stalls: &[Stall]) -> String {
    let most = stalls.iter().max_by_key(|s| s.count);
    let p50 = most.map_or(0.0, |s| s.added_delay_ms.p50);
    let max = stalls.iter().map(|s| s.added_delay_ms.max).fold(0.0, f64::max);
    format!("a held write waited about {p50:.0} ms, at most {max:.0} ms")
}

fn explanation(d: &Direction, mechanism: Mechanism) -> String {
    let start = format!(
        "{} sends small pieces of data. Its TCP keeps a new piece back as long as the one before is \
         not acknowledged (Nagle's algorithm, on by default).",
        d.from
    );
    let then = match mechanism {
        Mechanism::DelayedAckTimer => delayed_ack_words(d),
        Mechanism::MssFilled => format!(
            "Pieces gather until they fill a whole segment of {} bytes; only then do they leave. No \
             timer limits this wait: the slower the data comes, the longer it takes.",
            d.mss
        ),
        Mechanism::AckClocked if d.rtt_to_receiver_ms.is_none() => format!(
            "Each piece waits for the acknowledgment of the one before. Whether that takes so long for \
             the network's round trip or because {} delays it cannot be told: the connection began \
             before the capture.",
            d.to
        ),
        Mechanism::AckClocked => {
            let rtt = d.rtt_ms.map_or(String::new(), |r| format!(" (round trip {:.1} ms)", r.p50));
            format!(
                "{} acknowledges without a delay of its own worth naming, but each piece still waits \
                 for the acknowledgment of the one before to come back over the network{rtt} or with \
                 {}'s next own packet.",
                d.to, d.to
            )
        }
    };
    let mix = d
        .stalls
        .iter()
        .map(|s| format!("{} by {}", s.count, words(s.mechanism)))
        .collect::<Vec<_>>()
        .join(", ");
    format!("{start} {then} Released: {mix}.")
}

fn words(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::DelayedAckTimer => "the receiver's delayed-ACK timer",
        Mechanism::MssFilled => "a full segment",
        Mechanism::AckClocked => "an ordinary acknowledgment",
    }
}

fn delayed_ack_words(d: &Direction) -> String {
    let timer = match d.receiver_policy.timer_ms {
        Some(ms) => format!(" by up to {ms:.0} ms"),
        None => String::new(),
    };
    format!(
        "{} delays its acknowledgments{timer}, hoping to send them along with data of its own (delayed \
         ACK). Neither side is broken; together they add the delay to the data.",
        d.to
    )
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

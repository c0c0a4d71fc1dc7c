//! How a diagnosis ends: the best of the usual remedies and what it would have done.

use acklab_trace::Diagnosis;
use acklab_trace::diagnosis::{Cure, CureDelays, CureState, Prediction, Tried};

use super::{Change, Refusal, Sum, WhatIf, ask};

/// The best remedy for the direction that was held longest, by a diagnosis made by [`acklab_trace::explain_worst`]; `None`
/// where nothing was held.
pub fn cure(diagnosis: &Diagnosis) -> Option<Cure> {
    let finding = diagnosis.verdict.findings.first()?;
    let written = |d: &acklab_trace::diagnosis::Direction| !d.script.is_empty();
    let flow = diagnosis.flows.iter().find(|flow| flow.directions.iter().any(written));
    let flow = flow.map_or(finding.flow, |flow| flow.id);
    Some(match ask(diagnosis, Some(flow), &[]) {
        Ok(told) => predicted(&told),
        Err(refusal) => {
            let why = match refusal {
                Refusal::CannotTell { why, .. } => why,
                other => other.to_string(),
            };
            open(flow, &finding.from, &finding.to, why)
        }
    })
}

/// What is predicted, where the conversation played as it was is like the capture.
fn predicted(told: &WhatIf) -> Cure {
    let WhatIf { flow, from, to, .. } = told;
    let messages = told.measured.messages;
    if messages < MESSAGES_MIN {
        return open(*flow, from, to, format!("{messages} messages are too few"));
    }
    let (replayed, measured) = (told.replay.delay.seconds, told.measured.seconds);
    if told.replay.ks > KS_MAX || (replayed - measured).abs() > SECONDS_OFF * measured {
        let why = format!(
            "played again as it was, the conversation is not like the capture ({replayed:.2} s of delay for {measured:.2}, \
             Kolmogorov-Smirnov distance {:.2})",
            told.replay.ks
        );
        return open(*flow, from, to, why);
    }
    // What the replay saves as a share, of what was measured.
    let share = measured / replayed.max(f64::MIN_POSITIVE);
    let remedies = told.remedies.iter().map(|remedy| {
        let words = remedy.set.parse::<Change>().map(|change| change.words(from, to));
        Tried {
            set: remedy.set.clone(),
            words: words.unwrap_or_default(),
            delays: delays(&remedy.delay),
            saved_s: remedy.saved_s * share,
        }
    });
    let prediction = Prediction {
        first_s: told.first_s,
        messages,
        measured: delays(&told.measured),
        ks: told.replay.ks,
        remedies: remedies.collect(),
        p95_interval_ms: told.predicted.interval.p95_ms,
    };
    Cure {
        flow: *flow,
        from: from.clone(),
        to: to.clone(),
        state: CureState::Predicted,
        why: None,
        prediction: Some(prediction),
    }
}

fn open(flow: u64, from: &str, to: &str, why: String) -> Cure {
    Cure {
        flow,
        from: from.into(),
        to: to.into(),
        state: CureState::CannotTell,
        why: Some(why),
        prediction: None,
    }
}

const fn delays(sum: &Sum) -> CureDelays {
    let Sum { p50_ms, p95_ms, mean_ms, seconds, .. } = *sum;
    CureDelays { p50_ms, p95_ms, mean_ms, seconds }
}

/// Fewer messages have no 95th percentile.
const MESSAGES_MIN: u64 = 20;
/// Beyond this distance the conversation played as it was is another one.
const KS_MAX: f64 = 0.25;
/// The same as a share of the delay.
const SECONDS_OFF: f64 = 0.25;

//! An answer in words.

use std::fmt::Write as _;

use acklab_lab::report::text::lay_out;
use acklab_lab::verify::{
    Claim, Decision, Interval, MAX_ROWS, Precision, Report, SplitVerification, Steadiness,
    TooShort, Validity, Verification,
};

/// The answer to a query.
pub(super) fn of(verification: &Verification, precision: &Precision) -> String {
    let report = &verification.report;
    let mut text = format!("{}: {}\n\n", verification.scenario, verification.query);
    for line in answer(report, precision) {
        let _ = writeln!(text, "  {line}");
    }
    let _ = match report.successes {
        Some(successes) => writeln!(text, "  {successes} of {} runs", report.runs),
        None => writeln!(text, "  {} runs", report.runs),
    };
    if let Some(without @ 1..) = report.runs_without_value {
        let _ = writeln!(text, "  {without} of them without a value, which are not counted in");
    }
    trajectories(&mut text, verification);
    if !report.complete {
        let why = if report.kind == "simulation" {
            format!(
                "interrupted, or at the limit of {MAX_ROWS} rows; ask for fewer runs or a shorter time"
            )
        } else {
            "more runs are needed for the precision asked for".into()
        };
        let _ = writeln!(text, "\n  not complete: {why}");
    }
    let timing = verification.timing;
    let _ = writeln!(text, "\n{:.2} CPU s, {:.2} s", timing.cpu_s, timing.wall_s);
    text
}

/// Decision, estimate and what they rest on, in lines.
fn answer(report: &Report, precision: &Precision) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(report.decision.map(|decision| decided(decision, report.claim, precision)));
    match (report.estimate, report.interval) {
        (Some(estimate), Some(interval)) => {
            lines.push(format!("{estimate:.6} in {}", inside(&interval)));
        }
        (Some(estimate), None) => lines.push(format!("{estimate:.6}, without an interval")),
        (None, _) => {}
    }
    if let Some(at_most) = report.differing_at_most {
        lines.push(
            "all runs have this one value: without any spread the mean has no interval".into(),
        );
        lines.push(format!(
            "another value has a probability of at most {at_most:.4}, {} confidence",
            per_cent(1.0 - precision.alpha)
        ));
    }
    if let (Some(least), Some(interval)) = (report.runs_least, report.interval)
        && !(interval.low.is_finite() && interval.high.is_finite())
    {
        lines.push(format!("an end beyond all values is unknown: {least} runs or more have both"));
    }
    for (side, estimate) in ["left", "right"].iter().zip(report.sides.iter().flatten()) {
        lines.push(format!(
            "{side}: {:.6} in {}, {} of {} runs",
            estimate.estimate,
            inside(&estimate.interval),
            estimate.successes,
            estimate.runs
        ));
    }
    lines.extend(report.steadiness.iter().flat_map(steady));
    lines
}

/// What was decided, with the region of indifference.
fn decided(decision: Decision, claim: Option<Claim>, precision: &Precision) -> String {
    let Some(claim) = claim else { return "undecided".into() };
    let Precision { delta_minus, delta_plus, .. } = precision;
    let delta = if claim.at_least.is_some() { delta_minus } else { delta_plus };
    let is_ratio = claim.about == "odds-ratio";
    let mut line = match decision {
        Decision::Accepted if is_ratio => "holds, or nearly".into(),
        Decision::Accepted => format!("holds, or is within {delta} of it"),
        Decision::Rejected if is_ratio => "does not hold, or hardly".into(),
        Decision::Rejected => format!("does not hold, or is within {delta} of the bound"),
        _ => "the two are as good as equal".to_owned(),
    };
    let what = match claim.about {
        "odds-ratio" => "the ratio of the left's odds to the right's",
        "difference" => "the difference of their probabilities",
        "mean" => "the mean",
        _ => "the probability",
    };
    let _ = match (claim.at_least, claim.at_most) {
        (Some(bound), _) => write!(line, ": {what} is at least {}", rounded(bound)),
        (_, Some(bound)) => write!(line, ": {what} is at most {}", rounded(bound)),
        _ => Ok(()),
    };
    let _ = write!(line, ", {} confidence", per_cent(claim.confidence));
    line
}

/// A sum of two settings without the last digits of its binary fraction.
fn rounded(bound: f64) -> f64 {
    (bound * 1e12).round() / 1e12
}

fn inside(interval: &Interval) -> String {
    let validity = match interval.validity {
        Validity::AnyTime => "confidence whenever one looks",
        Validity::FixedRuns => "confidence for a number of runs fixed ahead",
        Validity::Nominal => "nominal confidence: the outcomes ended the runs",
    };
    format!(
        "[{:.6}, {:.6}], {} {validity} ({})",
        interval.low,
        interval.high,
        per_cent(interval.confidence),
        interval.method
    )
}

fn per_cent(share: f64) -> String {
    // Two digits behind the point at most, none where they would be 0.
    format!("{} %", (share * 1e4).round() / 1e2)
}

fn steady(found: &Steadiness) -> Vec<String> {
    let mut line = format!("from {} on", rounded(found.warm_up));
    if let Some(batches) = found.batches {
        let _ = write!(line, ", one run in {batches} batches");
    }
    if let Some(correlation) = found.correlation {
        let _ = write!(line, ", whose neighbours have a correlation of {correlation:.2}");
    }
    let why = found.too_short.map(|why| {
        match why {
            TooShort::StillWarmingUp => {
                "no interval: more than half of the run would be its warm-up; ask for a longer run"
            }
            TooShort::BatchesCorrelated => {
                "no interval: one batch tells of the next; ask for a longer run, or for several: \
                 S[<=T; 20](…)"
            }
        }
        .to_owned()
    });
    std::iter::once(line).chain(why).collect()
}

fn trajectories(text: &mut String, verification: &Verification) {
    for (number, run) in verification.trajectories.iter().enumerate() {
        let mut headings = vec!["time"];
        headings.extend(verification.columns.iter().map(String::as_str));
        let row = |(time, values): &(f64, Vec<f64>)| {
            std::iter::once(time).chain(values).map(|value| format!("{value:.6}")).collect()
        };
        let rows: Vec<Vec<String>> = run.rows.iter().map(row).collect();
        let _ = write!(text, "\nrun {number}\n{}", lay_out(&headings, &rows));
    }
}

/// A probability found by splitting.
pub(super) fn of_splitting(query: &str, split: &SplitVerification) -> String {
    let estimate = split.estimate;
    let mut text = format!(
        "{query}\n\n  {:.3e} in [{:.3e}, {:.3e}], {:.0} % confidence, importance splitting\n  {} \
         trajectories in {} replications\n\n",
        estimate.estimate,
        estimate.low,
        estimate.high,
        100.0 * estimate.confidence,
        estimate.trajectories,
        estimate.replications
    );
    let last = split.levels.len().saturating_sub(1);
    let stages = split.levels.iter().zip(&split.passed).enumerate();
    let rows: Vec<Vec<String>> = stages
        .map(|(stage, (level, passed))| {
            let level = if stage == last { "the event".into() } else { format!("{level:.3}") };
            vec![level, format!("{:.1} %", 100.0 * passed)]
        })
        .collect();
    text.push_str(&lay_out(&["level", "trajectories that reached it"], &rows));
    let _ = writeln!(text, "\n{:.2} CPU s, {:.2} s", split.timing.cpu_s, split.timing.wall_s);
    text
}

//! What the files of a data set say of each other: columns that must agree, numbers that must follow, differences that
//! must be right.

use std::collections::BTreeSet;
use std::fs;

use super::case::{CaseFiles, RunFiles};
use super::decimal::Decimal;
use super::layout::{File, RUNS};
use super::rows::{Fault, Row, Table};

/// Checks a case as it was read.
pub(super) fn check(case: &CaseFiles, faults: &mut Vec<Fault>) {
    files(case, faults);
    for run in &case.runs {
        numbers(run, faults);
        times(run, faults);
        expansion(run, faults);
        differences(run, faults);
    }
    all(case, faults);
    distribution(case, faults);
}

/// The folder has the files of ten runs, and no others.
fn files(case: &CaseFiles, faults: &mut Vec<Fault>) {
    if case.runs.len() != RUNS {
        let what = format!("{} runs (Sender-out-i.txt); the layout has {RUNS}", case.runs.len());
        faults.push(Fault::in_file(&case.path, what));
    }
    let known: BTreeSet<String> =
        File::of_case(case.runs.len().max(RUNS)).into_iter().map(File::name).collect();
    let entries = fs::read_dir(&case.path).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !known.contains(&name) {
            faults.push(Fault::in_file(&entry.path(), "does not belong to the layout"));
        }
    }
}

/// IDs count from 1, in both files that have them.
fn numbers(run: &RunFiles, faults: &mut Vec<Fault>) {
    let mut check = |ids: &mut dyn Iterator<Item = u64>, fault: &dyn Fn(usize, String) -> Fault| {
        // What follows a gap follows it to the end; the first tells.
        let wrong = (0..).zip(ids).find(|(index, id)| *id != *index as u64 + 1);
        faults.extend(wrong.map(|(index, id)| {
            fault(index, format!("the ID is {id} where {} should be", index + 1))
        }));
    };
    check(&mut run.made.values().map(|made| made.id), &|at, what| run.made.fault(at, what));
    check(&mut run.waited.values().map(|one| one.made.id), &|at, what| run.waited.fault(at, what));
}

/// Time does not run backwards.
fn times(run: &RunFiles, faults: &mut Vec<Fault>) {
    fn check<R: Row>(table: &Table<R>, at: impl Fn(&R) -> Decimal, faults: &mut Vec<Fault>) {
        for (index, pair) in table.rows.windows(2).enumerate() {
            let [before, after] = [&pair[0], &pair[1]].map(|numbered| at(&numbered.row));
            if after < before {
                faults.push(table.fault(index + 1, format!("{after} s is before {before} s")));
            }
        }
    }
    check(&run.made, |row| row.at, faults);
    check(&run.sniffed, |row| row.at, faults);
    check(&run.left, |row| row.at, faults);
}

/// `SnifferTimestamp` is `Sniffer` message by message: each left with the segment that has its last byte.
fn expansion(run: &RunFiles, faults: &mut Vec<Fault>) {
    let [segments, messages] = [
        run.sniffed.values().map(|row| row.length).sum::<u64>(),
        run.left.values().map(|row| row.length).sum(),
    ];
    if segments != messages {
        let what = format!(
            "its segments have {segments} B, the messages of {} {messages} B",
            run.left.path.file_name().unwrap_or_default().display()
        );
        faults.push(Fault::in_file(&run.sniffed.path, what));
    }
    let (mut upto, mut gone) = (0, 0);
    let mut sniffed = run.sniffed.rows.iter();
    let mut segment = None;
    for (index, message) in run.left.values().enumerate() {
        upto += message.length;
        while gone < upto {
            let Some(next) = sniffed.next() else { return };
            gone += next.row.length;
            segment = Some(next);
        }
        let Some(segment) = segment else { continue };
        if segment.row.at != message.at {
            let what = format!(
                "it left at {} s, but its last byte is in the segment of {} s ({}, line {})",
                message.at,
                segment.row.at,
                run.sniffed.path.file_name().unwrap_or_default().display(),
                segment.line
            );
            faults.push(run.left.fault(index, what));
            // Everything after it is shifted.
            return;
        }
    }
}

/// `App-Net-Delay-Sniffer` repeats `Sender-out` and `SnifferTimestamp`, and its delay is their difference.
fn differences(run: &RunFiles, faults: &mut Vec<Fault>) {
    let rows = run.waited.rows.len();
    for (path, count) in
        [(&run.made.path, run.made.rows.len()), (&run.left.path, run.left.rows.len())]
    {
        if count != rows {
            let name = path.file_name().unwrap_or_default().display();
            let what = format!("{rows} messages, where {name} has {count}");
            faults.push(Fault::in_file(&run.waited.path, what));
        }
    }
    let others = run.made.values().zip(run.left.values());
    for (index, (waited, (made, left))) in run.waited.values().zip(others).enumerate() {
        let mut wrong = |what: String| faults.push(run.waited.fault(index, what));
        if waited.made != *made {
            wrong(format!("\"{}\" is \"{made}\" in Sender-out", waited.made));
        }
        if waited.left != *left {
            wrong(format!("\"{}\" is \"{left}\" in SnifferTimestamp", waited.left));
        }
        let difference = waited.left.at.minus(waited.made.at).times_ten_to(6);
        if !agree(waited.delay, difference, waited.left.at.digits()) {
            let what =
                format!("the delay is {} us, the times differ by {difference} us", waited.delay);
            wrong(what);
        }
        if waited.delay < Decimal::new(0, 0) {
            wrong(format!("a delay of {} us: it left before it was made", waited.delay));
        }
    }
}

/// Whether a delay in us is the difference of two times in s with `digits` decimals, as far as their decimals go.
fn agree(delay: Decimal, difference: Decimal, digits: u32) -> bool {
    let finest = delay.digits().max(difference.digits());
    // Half of the delay's last digit for its rounding, and one of the times' for theirs, where they are coarser.
    let rounding = Decimal::new(5, delay.digits() + 1).units(finest + 1);
    let times = if digits < 6 + delay.digits() {
        Decimal::new(1, digits).times_ten_to(6)
    } else {
        Decimal::new(0, 0)
    };
    let apart = delay.minus(difference).units(finest + 1).abs();
    apart <= rounding + times.units(finest + 1)
}

/// `App-Net-Delay-ALL` is the runs' delays one after the other.
fn all(case: &CaseFiles, faults: &mut Vec<Fault>) {
    let runs = case.runs.iter().flat_map(|run| run.waited.rows.iter().map(move |row| (run, row)));
    let each: Vec<_> = runs.collect();
    if each.len() != case.all.rows.len() {
        let what = format!("{} delays, where the runs have {}", case.all.rows.len(), each.len());
        faults.push(Fault::in_file(&case.all.path, what));
    }
    for (index, (ours, (run, theirs))) in case.all.values().zip(each).enumerate() {
        if (ours.id, ours.delay) != (theirs.row.made.id, theirs.row.delay) {
            let what = format!(
                "\"{ours}\" is \"{} {}\" in {}, line {}",
                theirs.row.made.id,
                theirs.row.delay,
                run.waited.path.file_name().unwrap_or_default().display(),
                theirs.line
            );
            faults.push(case.all.fault(index, what));
            // Where one is missing, all after it are shifted.
            return;
        }
    }
}

/// `CDF` rises to 1, and each of its points lies on the staircase of the samples.
fn distribution(case: &CaseFiles, faults: &mut Vec<Fault>) {
    let mut samples: Vec<Decimal> = case.all.values().map(|row| row.delay.over_ten_to(3)).collect();
    samples.sort_unstable();
    let zero = Decimal::new(0, 0);
    let mut before = None;
    for (index, point) in case.cdf.values().enumerate() {
        let mut wrong = |what: String| faults.push(case.cdf.fault(index, what));
        if let Some((delay, share)) = before.replace((point.delay, point.share))
            && (point.delay < delay || point.share < share)
        {
            wrong("the points do not rise".to_owned());
        }
        // The delay may be rounded: samples within half of its last digit may count or not.
        let half = Decimal::new(5, point.delay.digits() + 1);
        let [low, high] = [
            samples.partition_point(|sample| *sample < point.delay.minus(half)),
            samples.partition_point(|sample| zero.minus(half) <= point.delay.minus(*sample)),
        ];
        let count = samples.len().max(1) as f64;
        let slack = 0.5 / 10_i128.pow(point.share.digits()) as f64 * (1.0 + 1e-9);
        let (low, high) = (low as f64 / count - slack, high as f64 / count + slack);
        let share = point.share.value();
        if !(low..=high).contains(&share) {
            wrong(format!(
                "{share} of the delays are said to be at most {} ms; it is between {:.9} and {:.9}",
                point.delay,
                low + slack,
                high - slack
            ));
        }
    }
    match case.cdf.values().last() {
        Some(last) if (last.share.value() - 1.0).abs() > 1e-6 => {
            let what = format!("the last value is {}, not 1", last.share);
            faults.push(case.cdf.fault(case.cdf.rows.len() - 1, what));
        }
        None if !samples.is_empty() => faults.push(Fault::in_file(&case.cdf.path, "no points")),
        _ => {}
    }
}

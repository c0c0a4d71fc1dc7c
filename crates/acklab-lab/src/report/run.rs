//! The report of a run: distributions of the scenario's main metric, case by case.
//!
//! Input is plain: names, samples and numbers, so that any scenario can be reported. With one case
//! the page shows its distribution, the metric of each message in turn, and a ladder if there is
//! one; with a grid, one table row per case and the figures that the scenario asks for. Where the scenario
//! knows a closed form, the table and the plot show it beside what was simulated, and a row that leaves
//! its bounds is marked.

use acklab_stats::{Ecdf, Summary};

use super::compare::axis_cell;
use super::html::ReportError;
use super::ladder::Ladder;
use super::page::{Block, Figure, Page, Section, Verdict};
use super::plot::{Cdf, CdfSeries, LineSeries, Lines, Plot};
use super::table::{Cell, Column, Table, measure};
use super::text::capitalised;
use crate::expected::{Comparison, Expected};

/// What a run gave, ready to be told.
#[derive(Clone, Debug, Default)]
pub struct RunReport<'a> {
    /// The scenario's name.
    pub scenario: String,
    /// What the scenario is, in one line.
    pub summary: String,
    /// The main metric in words: "buffering delay".
    pub metric: String,
    pub unit: String,
    /// Names and units of the numbers each case has beside the main metric; a count of things has only
    /// the one or the other.
    pub numbers: Vec<(String, String)>,
    /// The cases, in the plan's order.
    pub cases: Vec<RunCase<'a>>,
    /// Replications pooled into each case.
    pub replications: u64,
    /// Which distributions to compare, for a grid.
    pub figures: &'a [Comparison],
    /// The first replication over time, for a plan of one case.
    pub courses: Vec<Figure<Plot>>,
    /// A few packets of the first case.
    pub ladder: Option<Ladder>,
    /// Keys of glossary entries.
    pub terms: Vec<&'static str>,
    /// Command, version, seed and the like, as (name, value).
    pub conditions: Vec<(String, String)>,
    /// What was done otherwise than the settings say.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct RunCase<'a> {
    /// What tells it from the others: (parameter, value).
    pub axes: Vec<(String, String)>,
    /// Samples of the main metric, replication after replication in the order of messages.
    pub samples: &'a [f64],
    /// One number per entry of [`RunReport::numbers`].
    pub numbers: Vec<f64>,
    /// What theory says.
    pub expected: Option<Expected>,
}

/// The report as one HTML file.
pub fn run_html(report: &RunReport<'_>) -> Result<String, ReportError> {
    page(report).to_html()
}

/// The report as a page, for callers that add to it.
pub fn page(report: &RunReport<'_>) -> Page {
    let mut evidence = match report.cases.as_slice() {
        [only] => single_case(report, only),
        _ => grid(report),
    };
    if let Some(ladder) = &report.ladder {
        evidence.push(Block::Ladder(Figure {
            title: "The longest wait, packet by packet".into(),
            caption:
                "The first replication’s. Time runs downwards; long waits are drawn shortened, so \
                      read the times."
                    .into(),
            drawing: ladder.clone(),
        }));
    }
    let courses = report.courses.iter().cloned().map(Block::Figure).collect();
    let mut sections = vec![
        Section::new("Over time", courses),
        Section::new("Distributions", evidence),
        Section::new("Numbers", vec![table(report).into()]),
    ];
    sections.retain(|section| !section.blocks.is_empty());
    Page {
        title: format!("acklab run {}", report.scenario),
        subject: report.summary.clone(),
        verdict: verdict(report),
        sections,
        terms: report.terms.clone(),
        conditions: report.conditions.clone(),
    }
}

/// "1 replication", "3 replications".
fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn verdict(report: &RunReport<'_>) -> Verdict {
    let known: Vec<(&RunCase<'_>, Summary)> = report
        .cases
        .iter()
        .filter_map(|case| Some((case, Summary::from_samples(case.samples)?)))
        .collect();
    let sentence = |summary: &Summary| {
        let unit = &report.unit;
        let [mean, p95, max] = [summary.mean, summary.p95, summary.max].map(measure);
        if mean == max {
            let all = if summary.count > 1 { ", the same in all samples" } else { "" };
            return format!("{mean} {unit}{all}");
        }
        format!("{mean} {unit} on average, {p95} {unit} at p95, at most {max} {unit}")
    };
    let metric = capitalised(&report.metric);
    let by_mean = |a: &&(_, Summary), b: &&(_, Summary)| a.1.mean.total_cmp(&b.1.mean);
    let (headline, mut explanation) = match known.as_slice() {
        [] => (format!("{metric}: nothing was measured."), vec![]),
        [(_, only)] => (format!("{metric}: {}.", sentence(only)), vec![]),
        _ => {
            let worst = known.iter().max_by(by_mean).expect("more than one case");
            let best = known.iter().min_by(by_mean).expect("more than one case");
            let headline = format!(
                "{metric} lies between {} and {} {} on average, depending on the case.",
                measure(best.1.mean),
                measure(worst.1.mean),
                report.unit
            );
            let tell = |word: &str, (case, summary): &(&RunCase<'_>, Summary)| {
                format!("{word} case, {}: {}.", case_name(case), sentence(summary))
            };
            (headline, vec![tell("Worst", worst), tell("Best", best)])
        }
    };
    explanation.extend(agreement(report));
    explanation.extend(report.notes.iter().cloned());
    Verdict { headline, explanation, ..Verdict::default() }
}

/// One sentence on how the cases keep to their closed form, if they have one.
fn agreement(report: &RunReport<'_>) -> Option<String> {
    let checked: Vec<bool> = report.cases.iter().filter_map(keeps_to_the_law).collect();
    let kept = checked.iter().filter(|kept| **kept).count();
    match (checked.len(), kept) {
        (0, _) => None,
        (1, 1) => Some("Mean and maximum are what the closed form predicts.".into()),
        (1, _) => Some("Mean or maximum differs from what the closed form predicts.".into()),
        (all, kept) if all == kept => {
            Some(format!("Mean and maximum are what the closed form predicts in all {all} cases."))
        }
        (all, kept) => Some(format!(
            "Mean and maximum are what the closed form predicts in {kept} of the {all} cases that \
             have one."
        )),
    }
}

/// Whether mean and maximum lie within the closed form's bounds; `None` where there is none.
fn keeps_to_the_law(case: &RunCase<'_>) -> Option<bool> {
    let expected = case.expected.as_ref()?;
    let summary = Summary::from_samples(case.samples)?;
    let slack = |value: f64| LAW_SLACK * value + LAW_SLACK_ABSOLUTE;
    let mean_fits = summary.mean >= expected.mean_low - slack(expected.mean_low)
        && summary.mean <= expected.mean_high + slack(expected.mean_high);
    Some(mean_fits && summary.max <= expected.max + slack(expected.max))
}

fn single_case(report: &RunReport<'_>, case: &RunCase<'_>) -> Vec<Block> {
    let of_one = case.samples.len() / usize::try_from(report.replications.max(1)).unwrap_or(1);
    // One value has no distribution, and one per replication no order.
    let mut figures = Vec::new();
    if case.samples.len() > 1 {
        figures.push(distribution(report, case));
    }
    if of_one > 1 {
        figures.push(message_by_message(report, &case.samples[..of_one.min(POINTS_OF_A_SERIES)]));
    }
    figures
}

fn distribution(report: &RunReport<'_>, case: &RunCase<'_>) -> Block {
    let mut series: Vec<CdfSeries> = cdf_series("simulated".into(), case).into_iter().collect();
    let law = case.expected.as_ref().map(|expected| &expected.law).filter(|law| !law.is_empty());
    series.extend(law.map(|law| CdfSeries {
        name: "closed form".into(),
        points: law.clone(),
        straight: true,
    }));
    let drifting = case.expected.as_ref().is_some_and(|law| law.mean_low < law.mean_high);
    Block::plot(
        format!("Distribution of the {}", report.metric),
        format!(
            "{} from {}.{}",
            counted(case.samples.len() as u64, "sample"),
            counted(report.replications, "replication"),
            if drifting { DRIFTING } else { "" }
        ),
        Cdf { x_title: axis_title(report), series, marks: vec![] },
    )
}

fn message_by_message(report: &RunReport<'_>, first: &[f64]) -> Block {
    let points = first.iter().enumerate().map(|(index, sample)| (index as f64, *sample)).collect();
    Block::plot(
        format!("{} of each message", capitalised(&report.metric)),
        "The first replication, in the order in which the messages were written.",
        Lines {
            x_title: "message".into(),
            y_title: axis_title(report),
            series: vec![LineSeries { name: "first replication".into(), points }],
            scatter: true,
            ..Lines::default()
        },
    )
}

fn grid(report: &RunReport<'_>) -> Vec<Block> {
    let figure = |comparison: &Comparison| {
        let series: Vec<CdfSeries> = report
            .cases
            .iter()
            .filter(|case| comparison.fixed.iter().all(|(name, value)| axis(case, name) == *value))
            .filter_map(|case| cdf_series(axis(case, comparison.series).to_owned(), case))
            .collect();
        let drawing = Cdf { x_title: axis_title(report), series, marks: vec![] };
        let drawn = !drawing.series.is_empty();
        drawn.then(|| Block::plot(comparison.title, comparison.caption, drawing))
    };
    report.figures.iter().filter_map(figure).collect()
}

fn cdf_series(name: String, case: &RunCase<'_>) -> Option<CdfSeries> {
    let ecdf = Ecdf::from_samples(case.samples.to_vec())?;
    Some(CdfSeries { name, points: ecdf.points(POINTS_OF_A_CDF), straight: false })
}

fn table(report: &RunReport<'_>) -> Table {
    let cases = &report.cases;
    let parameter = |(index, (name, _)): (usize, &(String, String))| {
        Column::text(capitalised(&name.replace('_', " ")))
            .over(cases, |case| axis_cell(&case.axes[index].1))
    };
    let number = |(index, (name, unit)): (usize, &(String, String))| {
        let column = match name.as_str() {
            "" => Column::number(capitalised(unit), ""),
            name => Column::number(capitalised(name), unit.as_str()),
        };
        column.over(cases, |case| case.numbers[index])
    };
    let parameters = cases.first().map_or(&[][..], |case| &case.axes);
    let mut columns: Vec<Column> = parameters.iter().enumerate().map(parameter).collect();
    columns.extend(summaries(report));
    let with_law = cases.iter().any(|case| case.expected.is_some());
    if with_law {
        columns.extend(closed_form(report));
    }
    columns.extend(report.numbers.iter().enumerate().map(number));
    let caption = format!(
        "{}, {} for each case. Click a heading to sort.",
        capitalised(&report.metric),
        counted(report.replications, "replication")
    );
    let table = Table::new(caption, columns)
        .flag(cases.iter().map(|case| keeps_to_the_law(case) == Some(false)));
    if !with_law {
        return table;
    }
    table.note(format!(
        "The closed form’s mean is given for ideal and for drifting clocks. Rows marked at the left leave its bounds by \
         more than {} % and {} {}.",
        LAW_SLACK * 100.0,
        LAW_SLACK_ABSOLUTE,
        report.unit
    ))
}

/// What was measured of the main metric.
fn summaries(report: &RunReport<'_>) -> [Column; 4] {
    let cases = report.cases.iter();
    let summaries: Vec<_> = cases.map(|case| Summary::from_samples(case.samples)).collect();
    let column = |name: &str, pick: fn(&Summary) -> f64| {
        let column = Column::number(name, report.unit.as_str());
        column.over(&summaries, |summary| summary.as_ref().map(pick))
    };
    [
        column("Mean", |summary| summary.mean),
        column("p50", |summary| summary.p50),
        column("p95", |summary| summary.p95),
        column("Maximum", |summary| summary.max),
    ]
}

/// What theory says of it.
fn closed_form(report: &RunReport<'_>) -> [Column; 2] {
    let column = |name: &str, cell: fn(&Expected) -> Cell| {
        let column = Column::number(name, report.unit.as_str());
        column.over(&report.cases, |case| case.expected.as_ref().map(cell))
    };
    [
        column("Mean by closed form", mean_by_law),
        column("Maximum by closed form", |expected| expected.max.into()),
    ]
}

fn mean_by_law(expected: &Expected) -> Cell {
    let (low, high) = (measure(expected.mean_low), measure(expected.mean_high));
    let words = if low == high { low } else { format!("{low} to {high}") };
    Cell::Ranked { words, value: expected.mean_high }
}

fn axis<'case>(case: &'case RunCase<'_>, name: &str) -> &'case str {
    case.axes.iter().find(|axis| axis.0 == name).map_or("", |axis| axis.1.as_str())
}

fn case_name(case: &RunCase<'_>) -> String {
    let words: Vec<String> =
        case.axes.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    words.join(", ")
}

fn axis_title(report: &RunReport<'_>) -> String {
    format!("{} ({})", report.metric, report.unit)
}

/// Points of a distribution's line: finer than a pixel of the plot's height.
const POINTS_OF_A_CDF: usize = 320;
/// Messages drawn one by one.
const POINTS_OF_A_SERIES: usize = 2000;
/// What the caption says of a law whose clocks drift.
const DRIFTING: &str = " The closed form is that of drifting clocks, a straight line; ideal clocks give steps \
                        about it.";
/// How far a case may leave its closed form before it is marked: 5 % ...
const LAW_SLACK: f64 = 0.05;
/// ... and this much, in the metric's unit.
const LAW_SLACK_ABSOLUTE: f64 = 1.0;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn case<'a>(receiver: &str, rtt: &str, samples: &'a [f64], max: f64) -> RunCase<'a> {
        RunCase {
            axes: vec![
                ("receiver".into(), receiver.into()),
                ("nagle".into(), "on".into()),
                ("rtt".into(), rtt.into()),
            ],
            samples,
            numbers: vec![2.1],
            expected: Some(Expected {
                mean_low: (max - 10.0) / 2.0,
                mean_high: max / 2.0,
                max,
                law: vec![],
            }),
        }
    }

    const FIGURES: [Comparison; 2] = [
        Comparison {
            title: "1",
            caption: "",
            fixed: &[("nagle", "on"), ("rtt", "30ms")],
            series: "receiver",
        },
        Comparison { title: "2", caption: "", fixed: &[("receiver", "windows-7")], series: "rtt" },
    ];

    fn report(cases: Vec<RunCase<'_>>) -> RunReport<'_> {
        RunReport {
            scenario: "nagle-delack".into(),
            metric: "buffering delay".into(),
            unit: "ms".into(),
            numbers: vec![("Messages per segment".into(), String::new())],
            cases,
            replications: 2,
            figures: &FIGURES,
            ..RunReport::default()
        }
    }

    #[test]
    fn a_grid_has_a_row_per_case_and_the_figures_it_has_data_for() {
        let samples: Vec<f64> = (0..231).map(f64::from).collect();
        let report = report(vec![
            case("qnx-7.0", "30ms", &samples, 230.0),
            case("linux", "30ms", &[0.0, 0.0], 0.0),
        ]);
        let page = page(&report);
        let figures = page.sections[0].blocks.len();
        assert_eq!(figures, 1, "only figure 1 has cases");
        let Block::Table(table) = &page.sections[1].blocks[0] else { panic!("no table") };
        let table = serde_json::to_value(table.on_page()).expect("a table");
        let length = |part: &serde_json::Value| part.as_array().map(Vec::len);
        assert_eq!(length(&table["rows"]), Some(2));
        assert_eq!(length(&table["columns"]), Some(3 + 4 + 2 + 1));
        assert_eq!(table["rows"][0]["cells"][2], json!({"text": "30ms", "value": 30.0}));
        assert!(page.verdict.explanation[0].contains("receiver = qnx-7.0"));
        assert!(page.verdict.explanation[2].contains("in all 2 cases"));
    }

    #[test]
    fn a_case_that_leaves_its_closed_form_is_marked() {
        let samples = [0.0, 300.0];
        let report = report(vec![
            case("qnx-7.0", "30ms", &samples, 230.0),
            case("linux", "30ms", &[0.0, 0.0], 0.0),
        ]);
        let Block::Table(table) = &page(&report).sections[1].blocks[0] else { panic!("no table") };
        let table = serde_json::to_value(table.on_page()).expect("a table");
        assert_eq!([0, 1].map(|row| &table["rows"][row]["flagged"]), [true, false]);
    }

    #[test]
    fn one_case_shows_its_distribution_beside_the_law_and_one_replication_in_time() {
        let samples = [0.0, 100.0, 200.0, 30.0, 130.0, 229.0];
        let mut only = case("qnx-7.0", "30ms", &samples, 230.0);
        only.expected.as_mut().expect("a law").law = vec![(0.0, 0.0), (230.0, 1.0)];
        let page = page(&report(vec![only]));
        let [Block::Figure(cdf), Block::Figure(time)] = page.sections[0].blocks.as_slice() else {
            panic!("two figures")
        };
        let Plot::Cdf(cdf) = &cdf.drawing else { panic!("no CDF") };
        assert_eq!(cdf.series.len(), 2);
        let Plot::Lines(lines) = &time.drawing else { panic!("no time series") };
        assert_eq!(lines.series[0].points, [(0.0, 0.0), (1.0, 100.0), (2.0, 200.0)]);
    }

    #[test]
    fn no_samples_are_told_as_such() {
        let page = page(&report(vec![case("linux", "10ms", &[], 0.0)]));
        assert_eq!(page.verdict.headline, "Buffering delay: nothing was measured.");
        assert!(page.to_html().is_ok());
    }
}

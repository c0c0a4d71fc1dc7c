//! The cases of a grid side by side: a table and, for each metric, boxes across the axes.
//!
//! Every metric is told by one value per replication: boxes show these, dots their mean, thick lines its interval
//! (Student's, or Clopper and Pearson's where a replication answers yes or no).

use acklab_stats::{MeanInterval, ProportionMethod, quantile_of_sorted};
use serde_json::{Value, json};

use super::claim::Outcome;
use super::page::Block;
use super::plot::{BoxOf, Boxes, Mark};
use super::table::{Cell, Column, Table, Unit, measure};
use super::text::capitalised;

/// A metric that cases are compared by.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// What it is, in sentences.
    pub doc: String,
    /// Where it stands in the query that bounds it: `at least` if true, else `at most`, and the bound.
    pub bound: Option<(bool, f64)>,
    /// Whether each replication answers 0 or 1.
    pub yes_or_no: bool,
    /// The values of each case, one per replication.
    pub values: Vec<Vec<f64>>,
}

/// The mean of a case's values with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The interval's ends.
    pub ends: Option<(f64, f64)>,
}

impl Compared {
    /// A case's mean with its 95 % interval; `None` where nothing was measured.
    pub fn mean(&self, case: usize) -> Option<Mean> {
        let values = &self.values[case];
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        if self.yes_or_no {
            let yes = values.iter().filter(|value| **value > 0.5).count() as u64;
            let all = values.len() as u64;
            let interval = ProportionMethod::ClopperPearson.interval(yes, all, CONFIDENCE);
            return Some(Mean { mean, ends: interval.map(|ends| (ends.low, ends.high)) });
        }
        let interval = MeanInterval::from_replications(values, CONFIDENCE);
        // Values without any spread are no evidence that there is none.
        let spread = interval.filter(|interval| interval.half_width > 0.0);
        Some(Mean { mean, ends: spread.map(|ends| (ends.low, ends.high)) })
    }

    /// What becomes of the bound in a case.
    pub fn outcome(&self, case: usize) -> Option<Outcome> {
        let (at_least, bound) = self.bound?;
        let Some((low, high)) = self.mean(case).and_then(|mean| mean.ends) else {
            return Some(Outcome::Open);
        };
        Some(match at_least {
            true if low >= bound => Outcome::Holds,
            true if high < bound => Outcome::Fails,
            false if high <= bound => Outcome::Holds,
            false if low > bound => Outcome::Fails,
            _ => Outcome::Open,
        })
    }

    /// The mean of each case in words: "queue delay: codel 10.98 ms, pie 15.99 ms".
    fn sentence(&self, cases: &[Vec<String>]) -> String {
        let unit = self.read_in();
        let words = |case: usize| {
            let mean = self.mean(case)?;
            let number = format!("{:.2} {}", unit.of(mean.mean), unit.name());
            Some(format!("{} {}", cases[case].join(" "), number.trim_end()))
        };
        let all: Vec<_> = (0..cases.len()).filter_map(words).collect();
        format!("{}: {}.", capitalised(&self.title()), all.join(", "))
    }

    /// The unit in which it is read.
    fn read_in(&self) -> Unit {
        let most = self.values.iter().flatten().fold(0.0, |most: f64, value| most.max(value.abs()));
        match self.unit.as_str() {
            "bit/s" if most >= 1e6 => Unit::mega("Mbit/s"),
            "bit/s" if most >= 1e3 => Unit::kilo("kbit/s"),
            unit => Unit::from(unit),
        }
    }

    /// "queue delay p99" of "queue_delay_p99_ms".
    fn title(&self) -> String {
        let unit = match self.unit.as_str() {
            "bit/s" => "bps".to_owned(),
            unit => unit.replace(' ', "_").replace('²', "2"),
        };
        let name = self.name.strip_suffix(&unit).filter(|_| !unit.is_empty());
        let name = name.filter(|name| name.ends_with('_')).unwrap_or(&self.name);
        name.trim_end_matches('_').replace('_', " ")
    }
}

/// The cases of a grid.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// What varies; the last is told apart by colour.
    pub axes: Vec<String>,
    /// The values of each case.
    pub cases: Vec<Vec<String>>,
    /// What is compared, the most important first.
    pub metrics: Vec<Compared>,
}

impl Comparison {
    /// A row per case, an interval per metric, and what became of the bounds.
    pub fn table(&self) -> Table {
        let cases = 0..self.cases.len();
        let axis = |(index, name): (usize, &String)| {
            let column = Column::text(capitalised(name)).plain(name.clone(), 0);
            column.over(&self.cases, |case| axis_cell(&case[index]))
        };
        let mut columns: Vec<Column> = self.axes.iter().enumerate().map(axis).collect();
        for metric in &self.metrics {
            let unit = metric.read_in();
            let heading = match unit.name() {
                "" | "share" => metric.title(),
                unit => format!("{}, {unit}", metric.title()),
            };
            let decimals = if unit.name() == "share" { 4 } else { 2 };
            let number =
                Column::number(capitalised(&metric.title()), unit).plain(heading, decimals);
            columns.push(number.over(cases.clone(), |case| metric.cell(case)));
            if metric.bound.is_some() {
                let title = metric.bound_words();
                let column = Column::text(title.clone()).plain(title, 0);
                columns.push(column.over(cases.clone(), |case| {
                    metric.outcome(case).map(|outcome| match outcome {
                        Outcome::Open => "cannot tell",
                        decided => decided.word(),
                    })
                }));
            }
        }
        let failing =
            |case| self.metrics.iter().any(|metric| metric.outcome(case) == Some(Outcome::Fails));
        Table::new("Every case, means over its replications. Click a heading to sort.", columns)
            .flag(cases.map(failing))
            .note(NOTE)
    }

    /// The first metrics in words, where there are few cases: what a page begins with.
    pub fn sentences(&self) -> Vec<String> {
        if self.cases.len() > FEW {
            return Vec::new();
        }
        self.metrics.iter().take(3).map(|metric| metric.sentence(&self.cases)).collect()
    }

    /// For each metric the boxes of all cases; of a metric that was measured in none, nothing.
    pub fn figures(&self) -> Vec<Block> {
        self.metrics.iter().filter_map(|metric| self.figure(metric)).collect()
    }

    fn figure(&self, metric: &Compared) -> Option<Block> {
        let (unit, series) = (metric.read_in(), self.series());
        let boxes = self.cases.iter().enumerate().filter_map(|(case, axes)| {
            let mut sorted: Vec<f64> =
                metric.values[case].iter().map(|value| unit.of(*value)).collect();
            sorted.sort_by(f64::total_cmp);
            let (low, high) = (*sorted.first()?, *sorted.last()?);
            let mean = metric.mean(case).map(|Mean { mean, ends }| {
                let (from, to) = ends.unwrap_or((mean, mean));
                // What cannot be negative is not drawn below zero.
                let from = if low < 0.0 { from } else { from.max(0.0) };
                [mean, from, to].map(|value| unit.of(value))
            });
            let quartile = |share| quantile_of_sorted(&sorted, share);
            let ends = [low, quartile(0.25), quartile(0.5), quartile(0.75), high];
            let (last, rest) = axes.split_last()?;
            let (category, series) = if rest.is_empty() {
                (last.clone(), String::new())
            } else {
                (rest.join(", "), last.clone())
            };
            Some(BoxOf { category, series, ends, mean })
        });
        let boxes: Vec<BoxOf> = boxes.collect();
        let title = capitalised(&metric.title());
        let y_title = match unit.name() {
            "" => metric.title(),
            name => format!("{} ({name})", metric.title()),
        };
        let limit = metric.bound.map(|(at_least, bound)| Mark {
            at: unit.of(bound),
            label: format!(
                "{} {}",
                if at_least { "at least" } else { "at most" },
                measure(unit.of(bound))
            ),
        });
        let any = !boxes.is_empty();
        let (x_title, _) = self.titles();
        any.then(|| {
            Block::plot(title, metric.caption(), Boxes { x_title, y_title, series, boxes, limit })
        })
    }

    /// What stands below the plots, and what is told apart by colour.
    fn titles(&self) -> (String, String) {
        match self.axes.split_last() {
            Some((last, [])) => (last.clone(), String::new()),
            Some((last, rest)) => (rest.join(", "), last.clone()),
            None => Default::default(),
        }
    }

    /// The values of the last axis, if it is not the only one.
    fn series(&self) -> Vec<String> {
        let mut series: Vec<String> = Vec::new();
        for case in self.cases.iter().filter(|_| self.axes.len() > 1) {
            if let Some(value) = case.last().filter(|value| !series.contains(value)) {
                series.push(value.clone());
            }
        }
        if series.is_empty() { vec![String::new()] } else { series }
    }

    /// How many cases keep to each bound, in a sentence.
    pub fn outcomes(&self) -> Vec<String> {
        let bounded = self.metrics.iter().filter(|metric| metric.bound.is_some());
        let sentence = |metric: &Compared| {
            let count = |wanted| {
                let outcomes =
                    (0..self.cases.len()).filter(|case| metric.outcome(*case) == Some(wanted));
                outcomes.count()
            };
            format!(
                "{} holds in {} of {} cases, fails in {}; in {} the replications do not tell.",
                capitalised(&metric.bound_words()),
                count(Outcome::Holds),
                self.cases.len(),
                count(Outcome::Fails),
                count(Outcome::Open)
            )
        };
        bounded.map(sentence).collect()
    }

    /// What became of the bounds in a case, as JSON.
    pub fn outcomes_json(&self, case: usize) -> Value {
        let bounded = self.metrics.iter().filter(|metric| metric.bound.is_some());
        let one = |metric: &Compared| {
            let mean = metric.mean(case);
            let ends = mean.and_then(|mean| mean.ends);
            json!({
                "name": metric.name,
                "mean": mean.map(|mean| mean.mean),
                "low": ends.map(|ends| ends.0),
                "high": ends.map(|ends| ends.1),
                "bound": metric.bound.map(|(_, bound)| bound),
                "at_least": metric.bound.map(|(at_least, _)| at_least),
                "outcome": metric.outcome(case).map(Outcome::word),
            })
        };
        bounded.map(one).collect()
    }
}

impl Compared {
    /// What is shown, and how to read it.
    fn caption(&self) -> String {
        format!("{} {CAPTION}", self.doc.replace('`', ""))
    }

    fn cell(&self, case: usize) -> Cell {
        match self.mean(case) {
            Some(Mean { mean, ends: Some((low, high)) }) => {
                Cell::Interval { mean, half_width: (high - mean).max(mean - low) }
            }
            Some(Mean { mean, ends: None }) => mean.into(),
            None => Cell::Missing,
        }
    }

    /// "late <= 0.05".
    fn bound_words(&self) -> String {
        let (at_least, bound) = self.bound.unwrap_or_default();
        format!("{} {} {bound}", self.title(), if at_least { ">=" } else { "<=" })
    }
}

/// A parameter's value; one that begins with a number sorts by it.
pub(super) fn axis_cell(value: &str) -> Cell {
    let digits = value.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    match digits.parse() {
        Ok(number) if value.starts_with(|first: char| first.is_ascii_digit()) => {
            Cell::Ranked { words: value.into(), value: number }
        }
        _ => value.into(),
    }
}

/// Cases that can be told in a sentence.
const FEW: usize = 4;
const CONFIDENCE: f64 = 0.95;
const NOTE: &str = "± is half of the 95 % confidence interval over the replications. A bound holds where the whole \
                    interval keeps to it and fails where the whole interval does not; replications without any spread \
                    have no interval and tell nothing. acklab verify decides with stated risks.";
const CAPTION: &str = "Box: quartiles and median of the replications, thin line: all of them; dot and thick line: mean \
                       with its 95 % interval.";

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::{Fails, Holds, Open};

    fn compared(values: Vec<Vec<f64>>, bound: Option<(bool, f64)>) -> Compared {
        Compared { name: "late".into(), unit: "share".into(), bound, values, ..Compared::default() }
    }

    #[test]
    fn a_bound_is_decided_by_the_whole_interval() {
        let values = vec![
            vec![0.01, 0.02, 0.015],
            vec![0.2, 0.25, 0.22],
            vec![0.04, 0.06, 0.05],
            vec![0.0, 0.0, 0.0],
            vec![],
        ];
        let at_most = compared(values.clone(), Some((false, 0.05)));
        let outcomes: Vec<_> = (0..5).filter_map(|case| at_most.outcome(case)).collect();
        // Without any spread nothing is decided: three equal values do not show that all are.
        assert_eq!(outcomes, [Holds, Fails, Open, Open, Open]);
        let at_least = compared(values, Some((true, 0.05)));
        assert_eq!([0, 1].map(|case| at_least.outcome(case)), [Some(Fails), Some(Holds)]);
    }

    #[test]
    fn a_table_has_a_row_per_case_and_the_bound_beside_its_metric() {
        let comparison = Comparison {
            axes: vec!["queue".into(), "cc".into()],
            cases: vec![vec!["pie".into(), "reno".into()], vec!["pie".into(), "cubic".into()]],
            metrics: vec![compared(vec![vec![0.01, 0.02], vec![0.5, 0.51]], Some((false, 0.05)))],
        };
        let text = comparison.table().to_text();
        assert!(text.starts_with("queue  cc     late"), "{text}");
        assert!(text.contains("cannot tell") && text.contains("fails"), "{text}");
        let [Block::Figure(figure)] = &comparison.figures()[..] else { panic!("one figure") };
        let crate::report::Plot::Boxes(boxes) = &figure.drawing else { panic!("boxes") };
        assert_eq!(
            (boxes.x_title.as_str(), boxes.series.len(), boxes.boxes.len()),
            ("queue", 2, 2)
        );
        let expected = [0.01, 0.0125, 0.015, 0.0175, 0.02];
        let near = |(a, b): (f64, f64)| (a - b).abs() < 1e-12;
        assert!(boxes.boxes[0].ends.into_iter().zip(expected).all(near));
    }
}

//! Data sets side by side: the same case in each, how far they are apart, and how far from the closed form.

use acklab_lab::report::text::{lay_out, number};
use acklab_stats::{Summary, ks_to_law, two_sample_ks};
use serde_json::{Map, Value, json};

use super::case::CaseFiles;
use super::layout::CaseName;

/// Kolmogorov-Smirnov distances of two worlds, and of one to the closed form, that count as agreement: declared before
/// the first data sets were compared.
pub const MARGIN: f64 = 0.05;

/// Several data sets.
#[derive(Debug)]
pub struct Comparison {
    labels: Vec<String>,
    rows: Vec<Compared>,
}

/// One case.
#[derive(Debug)]
struct Compared {
    name: CaseName,
    /// Of each data set that has it.
    summaries: Vec<Option<Summary>>,
    /// Of each data set to the closed form.
    laws: Vec<Option<f64>>,
    /// Of each pair, the first with those after it, and so on.
    pairs: Vec<Option<f64>>,
}

impl Comparison {
    /// Of data sets with their names; `law` is the distribution that a case should have, where theory says.
    pub fn new(
        sets: &[(String, Vec<CaseFiles>)],
        law: impl Fn(&CaseName) -> Option<Vec<(f64, f64)>>,
    ) -> Self {
        let mut names: Vec<&CaseName> =
            sets.iter().flat_map(|(_, cases)| cases.iter().map(|case| &case.name)).collect();
        names.sort_unstable();
        names.dedup();
        let compared = |name: &CaseName| {
            let delays = sets.iter().map(|(_, cases)| {
                cases.iter().find(|case| case.name == *name).map(CaseFiles::delays_ms)
            });
            let delays: Vec<Option<Vec<f64>>> = delays.collect();
            let law = law(name);
            let to_law = |one: &Option<Vec<f64>>| ks_to_law(one.clone()?, law.as_ref()?);
            let pairs = indices(sets.len())
                .map(|[a, b]| two_sample_ks(delays[a].clone()?, delays[b].clone()?));
            Compared {
                name: name.clone(),
                summaries: delays.iter().map(|one| Summary::from_samples(one.as_ref()?)).collect(),
                laws: delays.iter().map(to_law).collect(),
                pairs: pairs.collect(),
            }
        };
        let labels = sets.iter().map(|(label, _)| label.clone()).collect();
        Self { labels, rows: names.into_iter().map(compared).collect() }
    }

    /// Names of the pairs.
    fn pairs(&self) -> Vec<String> {
        let name = |[a, b]: [usize; 2]| format!("{},{}", self.labels[a], self.labels[b]);
        indices(self.labels.len()).map(name).collect()
    }

    /// The tables for a terminal: delays, then distances.
    pub fn to_text(&self) -> String {
        let mut heading = vec!["delay, ms".to_owned()];
        for figure in FIGURES {
            heading.extend(self.labels.iter().map(|label| format!("{figure} {label}")));
        }
        let delays: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| {
                let mut cells = vec![row.name.to_string()];
                for index in 0..FIGURES.len() {
                    let values = row.summaries.iter().map(|one| {
                        let Summary { mean, p50, p95, max, .. } = one.as_ref()?;
                        Some([mean, p50, p95, max][index])
                    });
                    cells.extend(values.map(|value| number(*value.unwrap_or(&f64::NAN), 1)));
                }
                cells
            })
            .collect();
        let mut of_distances = vec!["KS distance".to_owned()];
        of_distances.extend(self.pairs());
        of_distances.extend(self.labels.iter().map(|label| format!("{label},law")));
        let distances: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| {
                let mut cells = vec![row.name.to_string()];
                let values = row.pairs.iter().chain(&row.laws);
                cells.extend(values.map(|value| number(value.unwrap_or(f64::NAN), 3)));
                cells
            })
            .collect();
        let table = |heading: &[String], rows: &[Vec<String>]| {
            lay_out(&heading.iter().map(String::as_str).collect::<Vec<_>>(), rows)
        };
        format!(
            "{}\n{}\nwithin {MARGIN}: {}\n",
            table(&heading, &delays),
            table(&of_distances, &distances),
            self.within()
        )
    }

    /// How many cases of each pair are within the margin.
    fn within(&self) -> String {
        let count = |label: &str, of: &dyn Fn(&Compared) -> Option<f64>| {
            let known: Vec<f64> = self.rows.iter().filter_map(of).collect();
            let good = known.iter().filter(|value| **value <= MARGIN).count();
            format!("{label} {good} of {}", known.len())
        };
        let pairs = self.pairs().into_iter().enumerate();
        let pairs = pairs.map(|(index, label)| count(&label, &|row| row.pairs[index]));
        let laws = self.labels.iter().enumerate();
        let laws =
            laws.map(|(index, label)| count(&format!("{label},law"), &|row| row.laws[index]));
        pairs.chain(laws).collect::<Vec<_>>().join("; ")
    }

    /// `acklab.dataset-compare/1`.
    pub fn to_json(&self) -> Value {
        let row = |row: &Compared| {
            let delays: Map<String, Value> = self
                .labels
                .iter()
                .zip(&row.summaries)
                .filter_map(|(label, summary)| {
                    let Summary { count, mean, p50, p95, max, .. } = summary.as_ref()?;
                    let figures = json!({"messages": count, "mean": mean, "p50": p50, "p95": p95, "max": max});
                    Some((label.clone(), figures))
                })
                .collect();
            let pairs: Map<String, Value> =
                self.pairs().into_iter().zip(row.pairs.iter().map(|one| json!(one))).collect();
            let laws: Map<String, Value> =
                self.labels.iter().cloned().zip(row.laws.iter().map(|one| json!(one))).collect();
            json!({
                "case": row.name.to_string(),
                "buffering_delay_ms": delays,
                "ks": pairs,
                "ks_closed_form": laws,
            })
        };
        json!({
            "schema": "acklab.dataset-compare/1",
            "margin": MARGIN,
            "cases": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }
}

/// What the table tells of a distribution.
const FIGURES: [&str; 4] = ["mean", "p50", "p95", "max"];

/// Pairs of `count` things.
fn indices(count: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..count).flat_map(move |a| (a + 1..count).map(move |b| [a, b]))
}

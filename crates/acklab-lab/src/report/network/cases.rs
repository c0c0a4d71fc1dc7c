//! The report of several networks that differ in the values of some axes: what was measured of each, side by side.

use super::plots::{POINTS, caption};
use super::tables::Network;
use crate::report::compare::Comparison;
use crate::report::page::{Block, Page, Section, Verdict};
use crate::report::plot::{Band, Cdf, CdfSeries, LineSeries, Lines};

/// The networks of a grid, ready to be told.
#[derive(Clone, Debug)]
pub struct CasesReport<'a> {
    /// The heading.
    pub title: String,
    /// What the networks are, in one line.
    pub summary: String,
    /// The cases by their metrics.
    pub comparison: Comparison,
    /// What was seen of each case.
    pub networks: Vec<Network<'a>>,
    /// Keys of glossary entries.
    pub terms: Vec<&'static str>,
    /// Command, version, seed and the like, as (name, value).
    pub conditions: Vec<(String, String)>,
}

impl CasesReport<'_> {
    /// The report as a page.
    pub fn page(&self) -> Page {
        let mut sections = vec![
            Section::new("Cases", vec![self.comparison.table().into()]),
            Section::new("Across the axes", self.comparison.figures()),
            Section::new("Distributions", self.together(Self::distribution)),
            Section::new("Over time", self.together(Self::over_time)),
        ];
        sections.retain(|section| !section.blocks.is_empty());
        Page {
            title: self.title.clone(),
            subject: self.summary.clone(),
            verdict: self.verdict(),
            sections,
            terms: self.terms.clone(),
            conditions: self.conditions.clone(),
        }
    }

    fn verdict(&self) -> Verdict {
        let mut outcomes = self.comparison.outcomes();
        let cases =
            format!("{} cases of {}.", self.networks.len(), self.comparison.axes.join(", "));
        outcomes.extend(self.comparison.sentences());
        outcomes.push(cases);
        let headline = outcomes.remove(0);
        Verdict { headline, explanation: outcomes, ..Verdict::default() }
    }

    /// A figure for all cases that differ in the last axis alone.
    fn together(
        &self,
        figure: impl Fn(&Self, &str, &[(String, usize)]) -> Option<Block>,
    ) -> Vec<Block> {
        let mut groups: Vec<(String, Vec<(String, usize)>)> = Vec::new();
        for (index, case) in self.comparison.cases.iter().enumerate() {
            let Some((last, rest)) = case.split_last() else { continue };
            let axes = self.comparison.axes.iter().zip(rest);
            let words: Vec<_> = axes.map(|(axis, value)| format!("{axis} {value}")).collect();
            let (name, entry) = (words.join(", "), (last.clone(), index));
            match groups.iter_mut().find(|group| group.0 == name) {
                Some((_, cases)) => cases.push(entry),
                None => groups.push((name, vec![entry])),
            }
        }
        let drawn = groups.iter().take(MOST_FIGURES);
        drawn.filter_map(|(name, cases)| figure(self, name, cases)).collect()
    }

    fn distribution(&self, name: &str, cases: &[(String, usize)]) -> Option<Block> {
        let line = |(name, case): &(String, usize)| {
            let delays = self.networks[*case].metrics.delays("queue_delay_ms")?;
            let points = delays.distribution(POINTS);
            Some(CdfSeries { name: name.clone(), points, straight: false })
        };
        let series: Vec<_> = cases.iter().filter_map(line).collect();
        let drawing = Cdf { x_title: "queueing delay (ms)".into(), series, marks: vec![] };
        let caption = "All packets that left the watched queue, in all replications.";
        let any = drawing.series.iter().any(|series| !series.points.is_empty());
        any.then(|| Block::plot(titled("Queueing delay", name), caption, drawing))
    }

    fn over_time(&self, name: &str, cases: &[(String, usize)]) -> Option<Block> {
        let waits = |case: usize| self.networks[case].record.links.first().map(|link| &link.wait);
        let drawn = cases.iter().filter_map(|(name, case)| Some((name, waits(*case)?)));
        let drawn: Vec<_> = drawn.filter(|(_, course)| !course.is_empty()).collect();
        let (_, first) = drawn.first()?;
        let words = caption("Mean wait of the packets that left the watched queue", first);
        let series = drawn
            .iter()
            .map(|(name, course)| LineSeries { name: (*name).clone(), points: course.median() });
        let bands = drawn
            .iter()
            .map(|(name, course)| Band { series: (*name).clone(), points: course.band() });
        let drawing = Lines {
            x_title: "time (s)".into(),
            y_title: "queueing delay (ms)".into(),
            series: series.collect(),
            bands: bands.filter(|band| !band.points.is_empty()).collect(),
            solid: true,
            ..Lines::default()
        };
        Some(Block::plot(titled("Queueing delay over time", name), words, drawing))
    }
}

fn titled(title: &str, name: &str) -> String {
    if name.is_empty() { title.to_owned() } else { format!("{title}: {name}") }
}

/// Figures of one kind.
const MOST_FIGURES: usize = 12;

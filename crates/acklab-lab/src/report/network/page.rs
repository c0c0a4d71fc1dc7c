//! A network's report as a page.

use super::plots::{distributions, over_time};
use super::tables::Network;
use crate::report::page::{Page, Section};

/// A network's report, ready to be told.
#[derive(Clone, Debug)]
pub struct NetworkReport<'a> {
    pub title: String,
    /// What the network is, in one line.
    pub summary: String,
    pub network: Network<'a>,
    /// Keys of glossary entries.
    pub terms: Vec<&'static str>,
    /// Command, version, seed and the like, as (name, value).
    pub conditions: Vec<(String, String)>,
}

impl NetworkReport<'_> {
    pub fn page(&self) -> Page {
        let network = &self.network;
        let mut numbers = vec![network.flow_table().into(), network.link_table().into()];
        numbers.extend(network.delay_table().map(Into::into));
        Page {
            title: self.title.clone(),
            subject: self.summary.clone(),
            verdict: network.verdict(),
            sections: vec![
                Section::new("Flows and links", numbers),
                Section::new("Over time", over_time(network)),
                Section::new("Distributions", distributions(network)),
            ],
            terms: self.terms.clone(),
            conditions: self.conditions.clone(),
        }
    }
}

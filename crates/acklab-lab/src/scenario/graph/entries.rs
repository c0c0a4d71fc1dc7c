//! Links and flows as a scenario file writes them, and the graph they describe.
//!
//! Every mistake is told with the line and column of the entry that it is in.

use acklab_core::cc::Algorithm;
use acklab_core::link::LinkConfig;
use acklab_core::packet::NodeId;
use acklab_core::queue::Discipline;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::Topology;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::Graph;

/// A link: both directions alike, or one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkEntry {
    /// Name of the node at one end.
    pub from: String,
    /// Name of the node at the other.
    pub to: String,
    /// Rate, as in `10mbit`.
    pub rate: String,
    /// Propagation, as in `5ms`.
    pub delay: String,
    /// Name of the queue discipline; drop-tail where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Packets that the queue holds; without limit where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Nothing goes back: another entry may say how the other direction is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_way: bool,
    /// The queue from `from` to `to` is the one that is measured; else the first link's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watch: bool,
}

/// A TCP flow that writes all the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowEntry {
    /// Name of the node that sends.
    pub from: String,
    /// Name of the node that receives.
    pub to: String,
    /// Congestion control; Reno where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cc: Option<String>,
    /// When it starts, as in `2s`; at once where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
}

/// A mistake in a graph, with its place in the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct GraphError {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1.
    pub column: usize,
    /// What is wrong and how to mend it.
    pub what: String,
}

/// A flow with its own hosts at the nodes that were named.
#[derive(Clone, Debug)]
pub(super) struct FlowSpec {
    pub(super) name: String,
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) cc: Algorithm,
    pub(super) start: Time,
}

/// Builds the graph that the entries of `text` describe.
pub fn build(
    links: &[Spanned<LinkEntry>],
    flows: &[Spanned<FlowEntry>],
    text: &str,
) -> Result<Graph, GraphError> {
    let at = |start: usize, what: String| {
        let before = text.get(..start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        GraphError { line, column: start - line_start.min(start) + 1, what }
    };
    if links.is_empty() || flows.is_empty() {
        let what = "a graph needs at least one [[link]] and one [[flow]]";
        return Err(at(0, what.to_owned()));
    }
    let mut topology = Topology::default();
    let mut watched = None;
    for link in links {
        let entry = link.get_ref();
        let place = |what| at(link.span().start, what);
        let config = config(entry).map_err(place)?;
        let [from, to] = [&entry.from, &entry.to].map(|name| node(&mut topology, name));
        if from == to {
            return Err(place(format!("a link leads from node {:?} to itself", entry.from)));
        }
        let rate = config.rate;
        let index = topology.link(from, to, config.clone());
        if entry.watch || watched.is_none() {
            watched = Some((index, rate));
        }
        if !entry.one_way {
            topology.link(to, from, config);
        }
    }
    let Some((watched, rate)) = watched.filter(|(_, rate)| *rate != BitRate::INFINITE) else {
        let what = "the link to watch needs a finite rate: without one it has no queue";
        return Err(at(links[0].span().start, what.to_owned()));
    };
    let mut ends = Vec::with_capacity(flows.len());
    for (index, flow) in flows.iter().enumerate() {
        let spec = spec(&topology, index + 1, flow.get_ref());
        ends.push(spec.map_err(|what| at(flow.span().start, what))?);
    }
    // Each flow gets hosts of its own, so that flows of one node are told apart.
    for flow in &mut ends {
        for end in [&mut flow.from, &mut flow.to] {
            let host = topology.node();
            topology.duplex(host, *end, &LinkConfig::default());
            *end = host;
        }
    }
    Ok(Graph {
        topology,
        flows: ends,
        watched,
        rate,
        links: links.to_vec(),
        entries: flows.to_vec(),
    })
}

fn node(topology: &mut Topology, name: &str) -> NodeId {
    topology.find(name).or_else(|_| topology.named_node(name)).unwrap_or_default()
}

fn config(entry: &LinkEntry) -> Result<LinkConfig, String> {
    let rate: BitRate = entry.rate.parse().map_err(|e| format!("rate {:?}: {e}", entry.rate))?;
    let delay: Span = entry.delay.parse().map_err(|e| format!("delay {:?}: {e}", entry.delay))?;
    let queue = entry.queue.as_deref().unwrap_or("drop-tail");
    let queue = Discipline::by_name(queue, entry.limit.unwrap_or(u32::MAX));
    Ok(LinkConfig::new(rate, delay).with_queue(queue.map_err(|e| e.to_string())?))
}

fn spec(topology: &Topology, number: usize, entry: &FlowEntry) -> Result<FlowSpec, String> {
    let from = topology.find(&entry.from).map_err(|e| e.to_string())?;
    let to = topology.find(&entry.to).map_err(|e| e.to_string())?;
    topology.check_flow(from, to).map_err(|e| e.to_string())?;
    let cc = entry.cc.as_deref().unwrap_or("reno");
    let cc = cc.parse::<Algorithm>().map_err(|e| e.to_string())?;
    let start = match &entry.start {
        Some(text) => text.parse().map_err(|e| format!("start {text:?}: {e}"))?,
        None => Span::ZERO,
    };
    let name = format!("flow {number}, {} to {}", entry.from, entry.to);
    Ok(FlowSpec { name, from, to, cc, start: Time::ZERO + start })
}

//! [`Network`]: one network of a file, read and checked: its links, its flows and what is measured of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use acklab_core::link::{LinkConfig, Reordering, Shift};
use acklab_core::packet::NodeId;
use acklab_core::queue::Discipline;
use acklab_core::time::Span;
use acklab_core::units::BitRate;
use acklab_sim::Topology;
use toml::de::DeTable;

use super::flows::{self, Access, Flow, Traffic, Way};
use super::hosts::{self, Host};
use super::links::{self, Direction, Node};
use super::loops::ControlLoop;
use super::reader::{Field, Fields, Mistake};
use crate::parameter::nearest;

/// A network with its flows.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) duration: Span,
    pub(crate) topology: Topology,
    /// Each direction of each link, by its index in the world.
    pub(crate) links: Vec<Link>,
    /// Indices of the links that are watched; the first is the one whose queue is measured.
    pub(crate) watch: Vec<u32>,
    /// The flows with their ends, in the order of the file.
    pub(crate) flows: Vec<(NodeId, NodeId, Flow)>,
    ways: Vec<Way>,
    /// Flows that are looked at together: names with the flows' numbers.
    pub(crate) groups: Vec<(String, Vec<usize>)>,
    /// Hosts with a processor: their nodes and names.
    pub(crate) hosts: Vec<(NodeId, String)>,
    /// From when to when it is measured.
    pub(crate) measured: Measured,
    /// What is asked of each run.
    pub(crate) queries: Vec<Asked>,
}

/// What stands at the top of a file beside the network.
#[derive(Clone, Debug)]
pub(super) struct Top {
    pub(super) about: Option<String>,
    pub(super) seed: u64,
    pub(super) replications: u64,
}

/// What the `scenario` of such a file is called.
pub(crate) const SCENARIO: &str = "network";

/// The times that are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    /// The warm-up ends here.
    pub(crate) from: Span,
    /// The run ends here, if not before.
    pub(crate) to: Option<Span>,
}

/// A query of the file.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) name: String,
    pub(crate) text: String,
    /// Where it stands in the file.
    pub(crate) at: Range<usize>,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// `r1 -> r2`.
    pub(crate) name: String,
    pub(crate) from: NodeId,
    pub(crate) rate: BitRate,
    /// The least that a packet takes, beside its transmission.
    delay: Span,
    /// Its rate changes.
    pub(crate) changes: bool,
    /// Its queue returns to their senders what it has no room for.
    hands_back: bool,
}

impl Network {
    /// Reads a network from a file's root, and what stands there beside it.
    pub(super) fn read(text: &str, root: &DeTable<'_>) -> Result<(Self, Top), Mistake> {
        let mut top = Fields::new(text, "a network file", root, 0..0);
        top.need("scenario", "scenario = \"network\"")?.word(&[SCENARIO])?;
        let about = top.take("about").map(|field| field.string()).transpose()?.map(str::to_owned);
        let seed = top.take("seed").map_or(Ok(1), |field| field.count(0, u64::MAX))?;
        let replications =
            top.take("replications").map_or(Ok(1), |field| field.count(1, MOST_REPLICATIONS))?;
        top.take("sweep");
        let duration = top.need("duration", "duration = \"30s\"")?.time_above_zero()?;
        let watch = top.need("watch", "watch = \"r1 -> r2\", the link whose queue is measured")?;
        let measured = top
            .take("measure")
            .map_or(Ok(Measured::default()), |table| measured(&table, duration))?;
        let mut builder = Builder::default();
        for link in top.need("link", "[[link]] with between, rate and delay")?.tables("a link")? {
            let links::Links { directions, half_duplex } = links::read(link)?;
            let first = builder.links.len() as u32;
            directions.into_iter().try_for_each(|direction| builder.link(direction))?;
            if let Some(overhead) = half_duplex {
                builder.topology.share_medium(&[first, first + 1], overhead);
            }
        }
        if let Some(hosts) = top.take("host") {
            hosts
                .tables("a host")?
                .into_iter()
                .try_for_each(|host| builder.host(hosts::read(host)?))?;
        }
        let flows = top.need("flow", "[[flow]] with from, to and kind")?.tables("a flow")?;
        for (index, flow) in flows.into_iter().enumerate() {
            builder.flow(flows::read(flow, index, duration)?)?;
        }
        let watch = builder.all_watched(&watch)?;
        let queries = top.take("query").map_or(Ok(Vec::new()), |tables| queries(&tables))?;
        top.finish()?;
        let Builder { topology, links, flows, ways, groups, hosts, .. } = builder;
        let network = Self {
            duration,
            topology,
            links,
            watch,
            flows,
            ways,
            groups,
            hosts,
            measured,
            queries,
        };
        Ok((network, Top { about, seed, replications }))
    }

    /// About how many packets its flows send within `seconds`: of flows that share their narrowest link no more than
    /// it carries.
    pub(crate) fn packets(&self, seconds: f64) -> f64 {
        let mut carried: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        let mut unbounded = 0.0;
        for ((.., flow), way) in self.flows.iter().zip(&self.ways) {
            let packets = flow.packets(way, seconds);
            match flow.full_packet().filter(|_| way.rate != BitRate::INFINITE) {
                Some(bytes) => {
                    let most = way.rate.as_bps() as f64 * seconds / (8.0 * bytes);
                    let (sum, capacity) = carried.entry(way.narrowest).or_default();
                    (*sum, *capacity) = (*sum + packets, capacity.max(most));
                }
                None => unbounded += packets,
            }
        }
        unbounded + carried.values().map(|(sum, capacity)| sum.min(*capacity)).sum::<f64>()
    }

    /// Sampling period of its control loop, if it has one.
    pub(crate) fn loop_period(&self) -> Option<Span> {
        self.control_loop().map(|control| control.period)
    }

    /// Its control loop, if it has one.
    pub(crate) fn control_loop(&self) -> Option<&ControlLoop> {
        self.flows.iter().find_map(|(.., flow)| match &flow.traffic {
            Traffic::Loop(control) => Some(&**control),
            _ => None,
        })
    }

    /// Index of the link of that name.
    pub(super) fn link(&self, name: &str) -> Result<u32, String> {
        watched(&self.links, name)
    }
}

fn measured(field: &Field<'_>, duration: Span) -> Result<Measured, Mistake> {
    let mut table = field.fields("the measurement")?;
    let from = table.take("from").map_or(Ok(Span::ZERO), |from| from.time())?;
    if let Some(field) = table.take("from").filter(|_| from >= duration) {
        return Err(field.refuse(format!("must be before the end, at {duration}")));
    }
    let to = table.take("to");
    let end = to.as_ref().map(Field::time).transpose()?;
    if let (Some(field), Some(end)) = (to, end)
        && (end <= from || end > duration)
    {
        return Err(field.refuse(format!("must be after {from} and at most {duration}")));
    }
    table.finish()?;
    Ok(Measured { from, to: end })
}

fn queries(tables: &Field<'_>) -> Result<Vec<Asked>, Mistake> {
    let mut queries: Vec<Asked> = Vec::new();
    for mut table in tables.tables("a query")? {
        let name = table.need("name", "name = \"late\"")?;
        let ask = table.need(
            "ask",
            "ask = \"E[<=30](share per queue.served: queue_delay_ms > 20) <= 0.05\"",
        )?;
        table.finish()?;
        let word = name.string()?;
        if word.is_empty()
            || word.chars().count() > LONGEST_QUERY
            || word.chars().any(char::is_control)
        {
            return Err(name.refuse(format!("a query's name is 1 to {LONGEST_QUERY} characters")));
        }
        if queries.iter().any(|query| query.name == word) {
            return Err(name.refuse("a second query of that name"));
        }
        let text = ask.string()?.to_owned();
        queries.push(Asked { name: word.to_owned(), text, at: ask.span() });
    }
    Ok(queries)
}

/// What the file's tables add up to.
#[derive(Default)]
struct Builder {
    topology: Topology,
    nodes: BTreeMap<String, NodeId>,
    links: Vec<Link>,
    directions: BTreeSet<String>,
    flows: Vec<(NodeId, NodeId, Flow)>,
    ways: Vec<Way>,
    names: BTreeSet<String>,
    groups: Vec<(String, Vec<usize>)>,
    hosts: Vec<(NodeId, String)>,
}

impl Builder {
    fn host(&mut self, host: Host) -> Result<(), Mistake> {
        let Host { name, name_at, processor } = host;
        let node = self.known(&Node { name: name.clone(), span: name_at.clone() })?;
        if self.hosts.iter().any(|(other, _)| *other == node) {
            return Err(Mistake::new(&name_at, format!("a second processor of node {name:?}")));
        }
        self.topology.set_processor(node, processor);
        self.hosts.push((node, name));
        Ok(())
    }

    fn link(&mut self, direction: Direction) -> Result<(), Mistake> {
        let Direction { from, to, config } = direction;
        let name = format!("{} -> {}", from.name, to.name);
        if !self.directions.insert(name.clone()) {
            let message = format!(
                "a second link from {} to {}; packets would never take it: leave one out, or put a \
                 node between",
                from.name, to.name
            );
            return Err(Mistake::new(&to.span, message));
        }
        if self.links.len() >= MOST_LINKS {
            let message = format!("more than {MOST_LINKS} links, counting each direction");
            return Err(Mistake::new(&from.span, message));
        }
        let (a, b) = (self.node(&from)?, self.node(&to)?);
        let delay = match config.impairments.reordering {
            Some(Reordering { shift: Shift::Ahead(ahead), .. }) => {
                config.delay.saturating_sub(ahead)
            }
            _ => config.delay,
        };
        let hands_back = matches!(config.queue, Discipline::Edctcp(_));
        let (rate, changes) = (config.rate, config.changes.is_some());
        self.links.push(Link { name, from: a, rate, delay, changes, hands_back });
        self.topology.link(a, b, config);
        Ok(())
    }

    fn node(&mut self, node: &Node) -> Result<NodeId, Mistake> {
        if let Some(&known) = self.nodes.get(&node.name) {
            return Ok(known);
        }
        if self.nodes.len() >= MOST_NODES {
            return Err(Mistake::new(&node.span, format!("more than {MOST_NODES} nodes")));
        }
        let new = self.topology.named_node(&node.name);
        let new = new.map_err(|error| Mistake::new(&node.span, error.to_string()))?;
        self.nodes.insert(node.name.clone(), new);
        Ok(new)
    }

    fn flow(&mut self, entry: flows::Entry) -> Result<(), Mistake> {
        let flows::Entry { mut from, to, flow, name_at, access, group } = entry;
        if !self.names.insert(flow.name.clone()) {
            let message = format!("a second flow called {:?}; names must differ", flow.name);
            return Err(Mistake::new(&name_at, message));
        }
        if self.flows.len() >= MOST_FLOWS {
            return Err(Mistake::new(&name_at, format!("more than {MOST_FLOWS} flows")));
        }
        if let Some(access) = access {
            from = self.attach(&from, &to, &flow.name, &access)?;
        }
        if matches!(flow.traffic, Traffic::Loop(_)) && self.control_loop().is_some() {
            let message = format!("flow {:?}: a second loop; a network has one", flow.name);
            return Err(Mistake::new(&name_at, message));
        }
        self.join(group);
        let (a, b) = (self.known(&from)?, self.known(&to)?);
        let there = self.path("", (a, &from.name), (b, &to.name), &to)?;
        let back = if flow.is_two_way() {
            self.path(" back, which a connection needs,", (b, &to.name), (a, &from.name), &to)?
        } else {
            Vec::new()
        };
        let narrowest = there.iter().min_by_key(|link| link.rate).copied();
        let rate = narrowest.map_or(BitRate::INFINITE, |link| link.rate);
        let narrowest = narrowest
            .and_then(|link| self.links.iter().position(|other| std::ptr::eq(link, other)));
        let narrowest = narrowest.unwrap_or_default() as u32;
        let mut round = there.iter().chain(&back);
        if let Some(link) = round.clone().find(|link| link.hands_back)
            && !flow.waits_when_returned()
        {
            let message = format!(
                "flow {:?} crosses {}, whose queue edctcp hands packets back; only TCP with cc = \"edctcp\" waits \
                 before it sends them again: use it, or another queue",
                flow.name, link.name
            );
            return Err(Mistake::new(&name_at, message));
        }
        let round_trip = rate.serialisation(FULL_PACKET);
        let round_trip = round.by_ref().fold(round_trip, |sum, link| sum + link.delay);
        if round_trip.is_zero() {
            let message = format!(
                "packets from {} to {} take no time at all, so that time would never pass: give a \
                 link on the way a delay or a rate",
                from.name, to.name
            );
            return Err(Mistake::new(&to.span, message));
        }
        self.ways.push(Way { rate, narrowest, round_trip });
        self.flows.push((a, b, flow));
        Ok(())
    }

    /// Gives the flow `name` a separate host at `from`, so far away that a round trip to `to` takes as long as is
    /// asked for; returns the host.
    fn attach(
        &mut self,
        from: &Node,
        to: &Node,
        name: &str,
        access: &Access,
    ) -> Result<Node, Mistake> {
        let host = Node { name: name.to_owned(), span: from.span.clone() };
        if self.nodes.contains_key(name) {
            let message = format!(
                "flow {name:?} has `rtt` and so a host of that name; a node has it already"
            );
            return Err(Mistake::new(&access.at, message));
        }
        let (a, b) = (self.known(from)?, self.known(to)?);
        let there = self.path("", (a, &from.name), (b, &to.name), to)?;
        let back = self.path(" back", (b, &to.name), (a, &from.name), to)?;
        let least = there.iter().chain(&back).fold(Span::ZERO, |sum, link| sum + link.delay);
        if access.rtt < least {
            let message = format!(
                "rtt = {}: a round trip from {} to {} takes {least} without the flow's own link",
                access.rtt, from.name, to.name
            );
            return Err(Mistake::new(&access.at, message));
        }
        let rest = access.rtt.saturating_sub(least);
        let half = Span::from_nanos(rest.as_nanos() / 2);
        for (from, to, delay) in [(&host, from, half), (from, &host, rest.saturating_sub(half))] {
            let config = LinkConfig::new(access.rate, delay).with_jitter(access.jitter);
            self.link(Direction { from: from.clone(), to: to.clone(), config })?;
        }
        Ok(host)
    }

    /// The control loop that there is.
    fn control_loop(&self) -> Option<&Flow> {
        let mut flows = self.flows.iter().map(|(.., flow)| flow);
        flows.find(|flow| matches!(flow.traffic, Traffic::Loop(_)))
    }

    /// The next flow belongs to this group.
    fn join(&mut self, group: Option<String>) {
        let Some(name) = group else { return };
        let flow = self.flows.len();
        match self.groups.iter_mut().find(|group| group.0 == name) {
            Some((_, flows)) => flows.push(flow),
            None => self.groups.push((name, vec![flow])),
        }
    }

    fn known(&self, node: &Node) -> Result<NodeId, Mistake> {
        self.nodes.get(&node.name).copied().ok_or_else(|| {
            let names = self.nodes.keys().map(String::as_str);
            let message = format!(
                "no link leads to a node {:?}; {}the nodes are {}",
                node.name,
                nearest(&node.name, names.clone()),
                some(names)
            );
            Mistake::new(&node.span, message)
        })
    }

    /// The links that packets from `a` to `b` take.
    fn path(
        &self,
        which: &str,
        (a, from): (NodeId, &str),
        (b, to): (NodeId, &str),
        at: &Node,
    ) -> Result<Vec<&Link>, Mistake> {
        let path = self.topology.path(a, b);
        let links = path.map(|path| path.iter().map(|link| &self.links[*link as usize]).collect());
        links.ok_or_else(|| {
            let reached =
                self.nodes.iter().filter(|(_, node)| self.topology.path(a, **node).is_some());
            let reached = some(reached.map(|(name, _)| name.as_str()).filter(|name| *name != from));
            let message = format!(
                "no route{which} from {from} to {to}: from {from}, links lead to {}; add the link that is \
                 missing, or its other direction",
                if reached.is_empty() { "no other node" } else { &reached }
            );
            Mistake::new(&at.span, message)
        })
    }

    /// The links that `watch` names: one, or a list.
    fn all_watched(&self, watch: &Field<'_>) -> Result<Vec<u32>, Mistake> {
        let one = |field: &Field<'_>| {
            let name = field.string()?;
            watched(&self.links, name).map_err(|reason| field.refuse(reason))
        };
        let wrong = || watch.refuse("must be a text such as \"r1 -> r2\", or a list of them");
        if watch.string().is_ok() {
            return Ok(vec![one(watch)?]);
        }
        let items = watch.items().ok().filter(|items| !items.is_empty()).ok_or_else(wrong)?;
        items.iter().map(one).collect()
    }
}

/// The index of the link of that name.
fn watched(links: &[Link], name: &str) -> Result<u32, String> {
    let words: Vec<&str> = name.split("->").map(str::trim).collect();
    let wanted = words.join(" -> ");
    let index = links.iter().position(|link| link.name == wanted);
    index.map(|index| index as u32).ok_or_else(|| {
        let names = links.iter().map(|link| link.name.as_str());
        format!(
            "no link has that name; {}the links are {}",
            nearest(&wanted, names.clone()),
            some(names)
        )
    })
}

/// The names, or the first of them.
fn some<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names[..names.len().min(MOST_SHOWN)].join(", ");
    if names.len() > MOST_SHOWN { format!("{shown}, ... ({} in all)", names.len()) } else { shown }
}

/// What `--replications` allows.
const MOST_REPLICATIONS: u64 = 1_000_000;
pub(super) const MOST_FLOWS: usize = 1000;
/// The table of routes has an entry for each pair.
const MOST_NODES: usize = 1000;
const MOST_LINKS: usize = 10_000;
/// Names in a message.
const MOST_SHOWN: usize = 12;
const FULL_PACKET: u64 = 1500;
const LONGEST_QUERY: usize = 60;

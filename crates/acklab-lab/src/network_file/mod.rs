//! A network in a TOML file: nodes, links and flows of any graph (docs/network-file.md).
//!
//! [`NetworkFile::parse`] reads and checks everything that can be wrong before anything runs: keys,
//! types, names, ranges, and that packets find their way. A refusal says where (line and column), what
//! and how to mend it. Nodes are those that links name. Routes are static, by fewest links.
//!
//! A file keeps its text, so that a run can write down what it ran: values at the top level are replaced and
//! everything else, comments too, stays as its author wrote it.

mod flows;
mod links;
mod queues;
mod reader;
mod transport;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use acklab_core::link::{Reordering, Shift};
use acklab_core::packet::NodeId;
use acklab_core::queue::Discipline;
use acklab_core::time::Span;
use acklab_core::units::BitRate;
use acklab_sim::Topology;
use toml::de::DeTable;

use self::flows::Way;
use self::links::{Direction, Node};
use self::reader::{Field, Fields, Mistake};
use crate::parameter::nearest;

pub(crate) use flows::{Ends, Flow, Over, Traffic};
pub use reader::{FileMistake, Place};

/// A network with its flows, read and checked.
#[derive(Clone, Debug)]
pub struct NetworkFile {
    text: String,
    /// Where the values at the top level are in the text.
    values: BTreeMap<String, Range<usize>>,
    about: Option<String>,
    seed: u64,
    replications: u64,
    duration: Span,
    topology: Topology,
    links: Vec<Link>,
    /// The first is the one whose queue is measured.
    watch: Vec<u32>,
    flows: Vec<(NodeId, NodeId, Flow)>,
    ways: Vec<Way>,
}

/// What the `scenario` of such a file is called.
pub(crate) const SCENARIO: &str = "network";

/// One direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// `r1 -> r2`.
    pub(crate) name: String,
    pub(crate) from: NodeId,
    pub(crate) rate: BitRate,
    /// The least that a packet takes, beside its transmission.
    delay: Span,
    /// Its queue returns to their senders what it has no room for.
    hands_back: bool,
}

/// Files are the same when their texts are.
impl PartialEq for NetworkFile {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NetworkFile {}

impl NetworkFile {
    /// Reads and checks a file's text.
    pub fn parse(text: &str) -> Result<Self, FileMistake> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root = DeTable::parse(text).map_err(|error| FileMistake::from((text, error)))?;
        Self::read(text, root.get_ref()).map_err(|mistake| mistake.locate(text))
    }

    fn read(text: &str, root: &DeTable<'_>) -> Result<Self, Mistake> {
        let mut top = Fields::new(text, "a network file", root, 0..0);
        top.need("scenario", "scenario = \"network\"")?.word(&[SCENARIO])?;
        let about = top.take("about").map(|field| field.string()).transpose()?.map(str::to_owned);
        let seed = top.take("seed").map_or(Ok(1), |field| field.count(0, u64::MAX))?;
        let replications =
            top.take("replications").map_or(Ok(1), |field| field.count(1, MOST_REPLICATIONS))?;
        let duration = top.need("duration", "duration = \"30s\"")?.time_above_zero()?;
        let watch = top.need("watch", "watch = \"r1 -> r2\", the link whose queue is measured")?;
        let mut builder = Builder::default();
        for link in top.need("link", "[[link]] with between, rate and delay")?.tables("a link")? {
            links::read(link)?.into_iter().try_for_each(|direction| builder.link(direction))?;
        }
        let flows = top.need("flow", "[[flow]] with from, to and kind")?.tables("a flow")?;
        for (index, flow) in flows.into_iter().enumerate() {
            builder.flow(flows::read(flow, index, duration)?)?;
        }
        let watch = builder.all_watched(&watch)?;
        top.finish()?;
        let values = root.iter().map(|(key, value)| (key.get_ref().to_string(), value.span()));
        Ok(Self {
            text: text.to_owned(),
            values: values.collect(),
            about,
            seed,
            replications,
            duration,
            watch,
            topology: builder.topology,
            links: builder.links,
            flows: builder.flows,
            ways: builder.ways,
        })
    }

    /// What its author says it is.
    pub(crate) fn about(&self) -> Option<&str> {
        self.about.as_deref()
    }

    /// Seed of the first replication; 1 where the file names none.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Replications; 1 where the file names none.
    pub const fn replications(&self) -> u64 {
        self.replications
    }

    pub(crate) const fn duration(&self) -> Span {
        self.duration
    }

    pub(crate) const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Each direction of each link, by its index in the world.
    pub(crate) fn links(&self) -> &[Link] {
        &self.links
    }

    /// Index of the link that is watched, the first of them.
    pub(crate) fn watch(&self) -> u32 {
        self.watch[0]
    }

    /// Indices of all links that are watched.
    pub(crate) fn all_watched(&self) -> &[u32] {
        &self.watch
    }

    /// The same network with these links watched, the first for the metrics.
    pub(crate) fn watching(&self, names: &[String]) -> Result<Self, String> {
        let mut list = Vec::new();
        for name in names {
            let index = watched(&self.links, name)?;
            // A node's name has neither a quote nor a backslash in it.
            list.push(format!("\"{}\"", self.links[index as usize].name));
        }
        Ok(self.with(&[("watch", format!("[{}]", list.join(", ")))]))
    }

    /// The flows with their ends, in the order of the file.
    pub(crate) fn flows(&self) -> &[(NodeId, NodeId, Flow)] {
        &self.flows
    }

    /// About how many packets its flows send within `seconds`.
    pub(crate) fn packets(&self, seconds: f64) -> f64 {
        self.flows.iter().zip(&self.ways).map(|((.., flow), way)| flow.packets(way, seconds)).sum()
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same network with other values, as TOML, for keys at the top level.
    pub(crate) fn with(&self, values: &[(&str, String)]) -> Self {
        let (mut text, mut places) = (String::new(), Vec::new());
        for (key, value) in values {
            match self.values.get(*key) {
                Some(span) => places.push((span.clone(), value)),
                None => text.extend([key, " = ", value, "\n"]),
            }
        }
        places.sort_by_key(|(span, _)| span.start);
        let mut from = 0;
        for (span, value) in places {
            text.push_str(&self.text[from..span.start]);
            text.push_str(value);
            from = span.end;
        }
        text.push_str(&self.text[from..]);
        Self::parse(&text).expect("values that a plan was made with fit their keys")
    }
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
}

impl Builder {
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
        self.links.push(Link { name, from: a, rate: config.rate, delay, hands_back });
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
        let flows::Entry { from, to, flow, name_at } = entry;
        if !self.names.insert(flow.name.clone()) {
            let message = format!("a second flow called {:?}; names must differ", flow.name);
            return Err(Mistake::new(&name_at, message));
        }
        if self.flows.len() >= MOST_FLOWS {
            return Err(Mistake::new(&name_at, format!("more than {MOST_FLOWS} flows")));
        }
        let (a, b) = (self.known(&from)?, self.known(&to)?);
        let there = self.path("", (a, &from.name), (b, &to.name), &to)?;
        let back = if flow.is_two_way() {
            self.path(" back, which a connection needs,", (b, &to.name), (a, &from.name), &to)?
        } else {
            Vec::new()
        };
        let rate = there.iter().map(|link| link.rate).min().unwrap_or(BitRate::INFINITE);
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
        self.ways.push(Way { rate, round_trip });
        self.flows.push((a, b, flow));
        Ok(())
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
/// The table of routes has an entry for each pair.
const MOST_NODES: usize = 1000;
const MOST_LINKS: usize = 10_000;
const MOST_FLOWS: usize = 1000;
/// Names in a message.
const MOST_SHOWN: usize = 12;
const FULL_PACKET: u64 = 1500;

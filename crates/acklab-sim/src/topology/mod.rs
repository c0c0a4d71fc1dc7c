//! [`Topology`]: nodes, links between them, and the routes that follow.
//!
//! Routes are static: for each pair of nodes the path of fewest links, ties to the link declared
//! first. A node that is not a packet's destination forwards it; there is no forwarding delay but
//! that of the links. The usual shapes (chain, dumbbell, parking lot) are built by [`shapes`].
//!
//! A flow between nodes that no path connects would be silent for ever, so
//! [`Topology::check_flow`] refuses it by the names of both.

mod shapes;

use std::collections::VecDeque;

use acklab_core::link::LinkConfig;
use acklab_core::packet::NodeId;
use acklab_core::time::Span;

use crate::processor::ProcessorOptions;

pub use shapes::{Access, Chain, Dumbbell, Duplex};

/// One direction of a connection between two nodes.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) config: LinkConfig,
    /// The medium that it shares, by its place.
    pub(crate) medium: Option<usize>,
}

/// What is connected to what.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    names: Vec<String>,
    pub(crate) edges: Vec<Edge>,
    /// What a transmission costs beside its bits on each medium that links share.
    pub(crate) media: Vec<Span>,
    /// Hosts whose packets take time.
    pub(crate) processors: Vec<(NodeId, ProcessorOptions)>,
}

/// Why a topology does not do what was asked of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// A flow's packets would never arrive.
    #[error(
        "no route leads from node {from:?} to node {to:?}: a link is missing on the way, or its \
         direction"
    )]
    NoRoute {
        /// Where packets start.
        from: String,
        /// Where they should go.
        to: String,
    },
    /// A name that no node has.
    #[error("no node is called {name:?}; the nodes are {known}")]
    UnknownNode {
        /// What was given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Two nodes of one name.
    #[error("two nodes are called {name:?}; names must differ")]
    SameName {
        /// The name.
        name: String,
    },
}

impl Topology {
    /// Every direction of every link: from, to and what it is like.
    pub fn links(&self) -> impl Iterator<Item = (NodeId, NodeId, &LinkConfig)> {
        self.edges.iter().map(|edge| (edge.from, edge.to, &edge.config))
    }

    /// Adds a node called by its number.
    pub fn node(&mut self) -> NodeId {
        let name = self.names.len().to_string();
        self.push(name)
    }

    /// Adds a node of that name.
    pub fn named_node(&mut self, name: &str) -> Result<NodeId, TopologyError> {
        if self.names.iter().any(|other| other == name) {
            return Err(TopologyError::SameName { name: name.to_owned() });
        }
        Ok(self.push(name.to_owned()))
    }

    fn push(&mut self, name: String) -> NodeId {
        self.names.push(name);
        NodeId(self.names.len() as u16 - 1)
    }

    /// The node of that name.
    pub fn find(&self, name: &str) -> Result<NodeId, TopologyError> {
        let index = self.names.iter().position(|other| other == name);
        index.map(|index| NodeId(index as u16)).ok_or_else(|| TopologyError::UnknownNode {
            name: name.to_owned(),
            known: self.names.join(", "),
        })
    }

    /// The name of a node; empty where there is no such node.
    pub fn name(&self, node: NodeId) -> &str {
        self.names.get(usize::from(node.0)).map_or("", String::as_str)
    }

    /// Adds a link that carries packets from `from` to `to`; returns its index in the world.
    pub fn link(&mut self, from: NodeId, to: NodeId, config: LinkConfig) -> u32 {
        self.edges.push(Edge { from, to, config, medium: None });
        self.edges.len() as u32 - 1
    }

    /// Adds a link of the same kind in each direction.
    pub fn duplex(&mut self, a: NodeId, b: NodeId, config: &LinkConfig) {
        self.link(a, b, config.clone());
        self.link(b, a, config.clone());
    }

    /// These links are heard one at a time from now on; each transmission costs `overhead` beside its bits.
    pub fn share_medium(&mut self, links: &[u32], overhead: Span) {
        for link in links {
            self.edges[*link as usize].medium = Some(self.media.len());
        }
        self.media.push(overhead);
    }

    /// Whether any links share a medium.
    pub fn has_media(&self) -> bool {
        !self.media.is_empty()
    }

    /// What packets cost at a node from now on; nothing at the others.
    pub fn set_processor(&mut self, node: NodeId, options: ProcessorOptions) {
        self.processors.retain(|(other, _)| *other != node);
        self.processors.push((node, options));
    }

    /// The nodes where packets cost time.
    pub fn processors(&self) -> impl Iterator<Item = NodeId> {
        self.processors.iter().map(|(node, _)| *node)
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u16 {
        self.names.len() as u16
    }

    /// Whether packets find their way from `a` to `b` and back.
    pub fn check_flow(&self, a: NodeId, b: NodeId) -> Result<(), TopologyError> {
        let routes = self.routes();
        for (from, to) in [(a, b), (b, a)] {
            if from != to && routes.next_link(from, to).is_none() {
                let [from, to] = [from, to].map(|node| self.name(node).to_owned());
                return Err(TopologyError::NoRoute { from, to });
            }
        }
        Ok(())
    }

    /// The links that packets from `from` to `to` take, in order; `None` where no way leads there.
    pub fn path(&self, from: NodeId, to: NodeId) -> Option<Vec<u32>> {
        let (from, to) = (usize::from(from.0), usize::from(to.0));
        let incoming = self.incoming();
        let mut next = vec![NO_ROUTE; self.names.len()];
        let mut frontier = VecDeque::from([to]);
        while let Some(node) = frontier.pop_front() {
            for &(link, before) in incoming.get(node)? {
                if before != to && next[before] == NO_ROUTE {
                    next[before] = link;
                    frontier.push_back(before);
                }
            }
        }
        let (mut path, mut at) = (Vec::new(), from);
        while at != to {
            let link = *next.get(at).filter(|&&link| link != NO_ROUTE)?;
            path.push(link);
            at = usize::from(self.edges[link as usize].to.0);
        }
        Some(path)
    }

    /// The links into each node, as (link, node before), in the order of their declaration.
    fn incoming(&self) -> Vec<Vec<(u32, usize)>> {
        let mut incoming = vec![Vec::new(); self.names.len()];
        for (index, edge) in self.edges.iter().enumerate() {
            incoming[usize::from(edge.to.0)].push((index as u32, usize::from(edge.from.0)));
        }
        incoming
    }

    /// For each node and destination, the index of the link to take; `NO_ROUTE` where there is
    /// none.
    pub(crate) fn routes(&self) -> Routes {
        let nodes = self.names.len();
        let incoming = self.incoming();
        let mut links = vec![NO_ROUTE; nodes * nodes];
        let mut frontier = VecDeque::new();
        for destination in 0..nodes {
            frontier.push_back(destination);
            while let Some(node) = frontier.pop_front() {
                for &(link, before) in &incoming[node] {
                    let slot = &mut links[before * nodes + destination];
                    if before != destination && *slot == NO_ROUTE {
                        *slot = link;
                        frontier.push_back(before);
                    }
                }
            }
        }
        Routes { nodes, links }
    }
}

/// The next link for each node and destination.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    nodes: usize,
    links: Vec<u32>,
}

impl Routes {
    /// The link that a packet for `destination` takes at `node`.
    #[inline]
    pub(crate) fn next_link(&self, node: NodeId, destination: NodeId) -> Option<u32> {
        let destination = usize::from(destination.0);
        if destination >= self.nodes {
            return None;
        }
        Some(self.links[usize::from(node.0) * self.nodes + destination])
            .filter(|&link| link != NO_ROUTE)
    }
}

const NO_ROUTE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_take_the_path_of_fewest_links() {
        let mut topology = Topology::default();
        let [a, b, c, d] = std::array::from_fn(|_| topology.node());
        let config = LinkConfig::default();
        topology.duplex(a, b, &config); // 0, 1
        topology.duplex(b, c, &config); // 2, 3
        topology.duplex(a, c, &config); // 4, 5
        let routes = topology.routes();
        assert_eq!(routes.next_link(a, c), Some(4));
        assert_eq!(routes.next_link(b, a), Some(1));
        assert_eq!(topology.path(a, c), Some(vec![4]));
        assert_eq!(topology.path(a, d), None);
        assert_eq!(topology.path(b, b), Some(vec![]));
        assert_eq!(routes.next_link(a, a), None);
        assert_eq!(routes.next_link(a, d), None, "nothing leads there");
        assert_eq!(routes.next_link(a, NodeId(9)), None, "no such node");
    }

    #[test]
    fn a_flow_without_a_way_there_or_back_is_refused_by_name() {
        let mut topology = Topology::default();
        let [a, b] = ["plant", "controller"].map(|name| topology.named_node(name).unwrap());
        topology.link(a, b, LinkConfig::default());
        let error = topology.check_flow(a, b).unwrap_err();
        assert_eq!(
            error,
            TopologyError::NoRoute { from: "controller".into(), to: "plant".into() },
            "{error}"
        );
        topology.link(b, a, LinkConfig::default());
        assert_eq!(topology.check_flow(a, b), Ok(()));
    }

    #[test]
    fn nodes_are_found_by_their_names_which_are_unique() {
        let mut topology = Topology::default();
        let router = topology.named_node("R1").unwrap();
        assert_eq!((topology.find("R1"), topology.name(router)), (Ok(router), "R1"));
        let error = topology.find("R2").unwrap_err().to_string();
        assert!(error.contains("\"R2\"; the nodes are R1"), "{error}");
        assert!(topology.named_node("R1").is_err());
    }

    #[test]
    fn a_chain_is_crossed_link_by_link() {
        let mut topology = Topology::default();
        let [a, b, c] = std::array::from_fn(|_| topology.node());
        topology.duplex(a, b, &LinkConfig::default());
        topology.duplex(b, c, &LinkConfig::default());
        let routes = topology.routes();
        assert_eq!((routes.next_link(a, c), routes.next_link(b, c)), (Some(0), Some(2)));
        assert_eq!((routes.next_link(c, a), routes.next_link(b, a)), (Some(3), Some(1)));
        assert_eq!(
            (topology.path(a, c), topology.path(c, a)),
            (Some(vec![0, 2]), Some(vec![3, 1]))
        );
    }
}

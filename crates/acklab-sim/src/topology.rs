//! [`Topology`]: nodes, links between them, and the routes that follow.
//!
//! Routes are static: for each pair of nodes the path of fewest links, ties to the link declared
//! first. A node that is not a packet's destination forwards it; there is no forwarding delay but
//! that of the links.

use std::collections::VecDeque;

use acklab_core::link::LinkConfig;
use acklab_core::packet::NodeId;

/// One direction of a connection between two nodes.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) config: LinkConfig,
}

/// What is connected to what.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    nodes: u16,
    pub(crate) edges: Vec<Edge>,
}

impl Topology {
    /// Adds a node.
    pub fn node(&mut self) -> NodeId {
        self.nodes += 1;
        NodeId(self.nodes - 1)
    }

    /// Adds a link that carries packets from `from` to `to`; returns its index in the world.
    pub fn link(&mut self, from: NodeId, to: NodeId, config: LinkConfig) -> u32 {
        self.edges.push(Edge { from, to, config });
        self.edges.len() as u32 - 1
    }

    /// Adds a link of the same kind in each direction.
    pub fn duplex(&mut self, a: NodeId, b: NodeId, config: &LinkConfig) {
        self.link(a, b, config.clone());
        self.link(b, a, config.clone());
    }

    /// Number of nodes.
    pub const fn nodes(&self) -> u16 {
        self.nodes
    }

    /// For each node and destination, the index of the link to take; `NO_ROUTE` where there is
    /// none.
    pub(crate) fn routes(&self) -> Routes {
        let nodes = usize::from(self.nodes);
        let mut incoming = vec![Vec::new(); nodes];
        for (index, edge) in self.edges.iter().enumerate() {
            incoming[usize::from(edge.to.0)].push((index as u32, usize::from(edge.from.0)));
        }
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
        assert_eq!(routes.next_link(a, a), None);
        assert_eq!(routes.next_link(a, d), None, "nothing leads there");
        assert_eq!(routes.next_link(a, NodeId(9)), None, "no such node");
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
    }
}

//! The shapes that papers use: daisy chain and dumbbell.
//!
//! Every link has its two directions apart, so that a queue can stand in one of them only. Each
//! builder adds to a topology and returns where things are: nodes in order, links by their index in
//! the world. `forward` is from the first node to the last, or from left to right.

use acklab_core::link::LinkConfig;
use acklab_core::packet::NodeId;

use super::Topology;

/// A link in both directions.
#[derive(Clone, Debug, Default)]
pub struct Duplex {
    /// From the first node to the second.
    pub forward: LinkConfig,
    /// Back.
    pub backward: LinkConfig,
}

impl Duplex {
    /// The same both ways.
    pub fn symmetric(config: LinkConfig) -> Self {
        Self { forward: config.clone(), backward: config }
    }
}

/// A row of nodes.
#[derive(Clone, Debug)]
pub struct Chain {
    /// From end to end: one more than there are links.
    pub nodes: Vec<NodeId>,
    /// Links from each node to the next.
    pub forward: Vec<u32>,
    /// Links back from the next node, in the same order.
    pub backward: Vec<u32>,
}

/// The two access links of one flow through a dumbbell.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// From the host on the left to the left router.
    pub left: Duplex,
    /// From the right router to the host on the right.
    pub right: Duplex,
}

/// Pairs of hosts around one bottleneck.
#[derive(Clone, Debug)]
pub struct Dumbbell {
    /// The router on the left.
    pub left_router: NodeId,
    /// The router on the right.
    pub right_router: NodeId,
    /// The bottleneck from left to right.
    pub forward: u32,
    /// The bottleneck from right to left.
    pub backward: u32,
    /// The hosts of each flow, left and right.
    pub pairs: Vec<(NodeId, NodeId)>,
}

impl Topology {
    /// A row of `hops.len() + 1` nodes.
    pub fn daisy_chain(&mut self, hops: &[Duplex]) -> Chain {
        let first = self.node();
        let mut chain = Chain { nodes: vec![first], forward: Vec::new(), backward: Vec::new() };
        let mut last = first;
        for hop in hops {
            let next = self.node();
            let (forward, backward) = self.hop(last, next, hop);
            chain.nodes.push(next);
            chain.forward.push(forward);
            chain.backward.push(backward);
            last = next;
        }
        chain
    }

    /// Two routers with `bottleneck` between them, and a pair of hosts for each entry of `flows`.
    ///
    /// ```
    /// use acklab_core::{link::LinkConfig, time::Span};
    /// use acklab_sim::{Access, Duplex, Topology};
    ///
    /// let link = |rate: &str, ms| {
    ///     let rate = rate.parse().expect("a rate");
    ///     Duplex::symmetric(LinkConfig::new(rate, Span::from_millis(ms)))
    /// };
    /// let access = Access { left: link("100mbit", 1), right: link("100mbit", 2) };
    /// let mut topology = Topology::default();
    /// let dumbbell = topology.dumbbell(&link("10mbit", 20), &[access.clone(), access]);
    /// assert_eq!(dumbbell.pairs.len(), 2);
    /// let (left, right) = dumbbell.pairs[1];
    /// assert_eq!(topology.check_flow(left, right), Ok(()));
    /// ```
    pub fn dumbbell(&mut self, bottleneck: &Duplex, flows: &[Access]) -> Dumbbell {
        let [left_router, right_router] = [self.node(), self.node()];
        let (forward, backward) = self.hop(left_router, right_router, bottleneck);
        let pairs = flows
            .iter()
            .map(|access| {
                let [left, right] = [self.node(), self.node()];
                self.hop(left, left_router, &access.left);
                self.hop(right_router, right, &access.right);
                (left, right)
            })
            .collect();
        Dumbbell { left_router, right_router, forward, backward, pairs }
    }

    /// Adds both directions of a link; returns their indices, forward first.
    pub fn hop(&mut self, a: NodeId, b: NodeId, config: &Duplex) -> (u32, u32) {
        (self.link(a, b, config.forward.clone()), self.link(b, a, config.backward.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nodes that a packet passes from `from` to `to`.
    fn way(topology: &Topology, from: NodeId, to: NodeId) -> Vec<NodeId> {
        let routes = topology.routes();
        let mut way = vec![from];
        while let Some(link) = way.last().and_then(|&at| routes.next_link(at, to)) {
            way.push(topology.edges[link as usize].to);
        }
        way
    }

    #[test]
    fn flows_of_a_dumbbell_share_the_bottleneck_and_nothing_else() {
        let mut topology = Topology::default();
        let built = topology.dumbbell(&Duplex::default(), &vec![Access::default(); 3]);
        for &(left, right) in &built.pairs {
            assert_eq!(
                way(&topology, left, right),
                [left, built.left_router, built.right_router, right]
            );
            assert_eq!(topology.check_flow(left, right), Ok(()));
        }
        let edge = &topology.edges[built.backward as usize];
        assert_eq!((edge.from, edge.to), (built.right_router, built.left_router));
        assert_eq!(topology.edges.len(), 2 + 3 * 4);
    }

    #[test]
    fn a_daisy_chain_without_hops_is_one_node() {
        let mut topology = Topology::default();
        assert_eq!(topology.daisy_chain(&[]).nodes, [NodeId(0)]);
        let chain = topology.daisy_chain(&vec![Duplex::default(); 2]);
        assert_eq!(way(&topology, chain.nodes[0], chain.nodes[2]), chain.nodes);
    }
}

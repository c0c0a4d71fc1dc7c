//! A [`Blueprint`] as namespaces, virtual Ethernet pairs and queues of the kernel: a [`Job`].
//!
//! Every node is a namespace. A link is a pair of interfaces between each of its nodes and a namespace
//! called `wires`, in which each direction passes two stages: an interface whose queue discipline is the
//! link's queue and transmitter, then one that delays and damages. So the hosts' own interfaces queue nothing,
//! and a capture at a host sees a segment when TCP sends it, as in virtual time. Frames carry an Ethernet header
//! that the rates do not count.

mod cannot_build;
mod ends;
mod queue;
mod wire;

use std::collections::{BTreeMap, BTreeSet};

use acklab_core::packet::NodeId;
use acklab_lab::blueprint::{Blueprint, Task};

pub use self::cannot_build::CannotBuild;
pub(crate) use self::ends::space_of;
use crate::job::{self, Job, Space};

/// The job that builds `network` and lets its flows talk, with a look at each sender every `sampling` ns.
pub fn job(network: &Blueprint<'_>, sampling: u64) -> Result<Job, CannotBuild> {
    let mut builder = Builder::new(network)?;
    let pairs: BTreeSet<[NodeId; 2]> =
        network.topology.links().map(|(a, b, _)| [a.min(b), a.max(b)]).collect();
    for (index, pair) in pairs.into_iter().enumerate() {
        builder.pair(index, pair)?;
    }
    builder.routes()?;
    let flows = network.flows.iter().map(flow).collect::<Result<_, _>>()?;
    let Builder { mut links, spaces, wires, .. } = builder;
    links.insert(0, format!("netns add {WIRES}"));
    let mut spaces: Vec<Space> = spaces.into_values().collect();
    spaces.push(wires);
    let duration = network.duration.as_nanos();
    Ok(Job { links, spaces, flows, duration, sampling })
}

/// The namespace of all links' stages.
const WIRES: &str = "wires";

struct Builder<'a> {
    network: &'a Blueprint<'a>,
    links: Vec<String>,
    spaces: BTreeMap<NodeId, Space>,
    wires: Space,
    /// The interface of a node that leads to a neighbour.
    towards: BTreeMap<(NodeId, NodeId), Towards>,
    /// Bytes of the largest packet that each host sends.
    mtus: BTreeMap<NodeId, u16>,
}

/// How a node reaches its neighbour.
struct Towards {
    interface: String,
    gateway: String,
}

impl<'a> Builder<'a> {
    fn new(network: &'a Blueprint<'a>) -> Result<Self, CannotBuild> {
        let senders = network.senders();
        let mtus = ends::packets(network)?;
        let mut spaces = BTreeMap::new();
        let mut links = Vec::new();
        for node in (0..network.topology.nodes()).map(NodeId) {
            let name = space_of(node);
            links.push(format!("netns add {name}"));
            let ip =
                vec!["link set lo up".into(), format!("addr add {}/32 dev lo", node.address())];
            let capture = senders.contains(&node);
            let sysctls = ends::sysctls(network, node)?;
            spaces.insert(node, Space { name, sysctls, ip, capture, ..Space::default() });
        }
        let sysctls = ends::quiet();
        let wires = Space { name: WIRES.into(), sysctls, ..Space::default() };
        Ok(Self { network, links, spaces, wires, towards: BTreeMap::new(), mtus })
    }

    /// Both directions between two nodes.
    fn pair(&mut self, index: usize, [a, b]: [NodeId; 2]) -> Result<(), CannotBuild> {
        let [near, far] = [format!("w{index}a"), format!("w{index}b")];
        for (side, node, neighbour, wire) in [(0, a, b, &near), (1, b, a, &far)] {
            let host = format!("l{index}");
            let [own, other] = [side, 1 - side].map(|side| hardware(index, side));
            let mtu = self.mtus.get(&node).copied().unwrap_or(1500);
            self.links.push(format!(
                "link add {host} address {own} netns {} type veth peer name {wire} netns {WIRES}",
                space_of(node)
            ));
            let gateway = format!("169.254.{}.{}", index / 100, 2 * (index % 100) + 2 - side);
            if let Some(space) = self.spaces.get_mut(&node) {
                space.plain.push(host.clone());
                space.ip.extend([
                    format!("link set {host} mtu {mtu} up"),
                    format!("neigh add {gateway} lladdr {other} dev {host} nud permanent"),
                ]);
            }
            self.wires.plain.push(wire.clone());
            self.wires.ip.push(format!("link set {wire} mtu {LARGEST} up"));
            self.wires.tc.push(format!("qdisc add dev {wire} clsact"));
            self.towards.insert((node, neighbour), Towards { interface: host, gateway });
        }
        for (from, to, into, out, letter) in [(a, b, &near, &far, 'f'), (b, a, &far, &near, 'r')] {
            let config = self.network.topology.links().find(|(x, y, _)| (*x, *y) == (from, to));
            let Some((.., config)) = config else { continue };
            let place = || format!("link {:?}", self.name_of(from, to));
            let largest = self.mtus.values().copied().max().unwrap_or(1500);
            let stages = wire::stages(config, largest)
                .map_err(|reason| CannotBuild::new(place(), reason))?;
            if let (Some(queue), Some(host)) = (&stages.queue, self.spaces.get_mut(&from))
                && !queue.transmits
            {
                host.tc.push(format!("qdisc add dev l{index} {ORPHAN}"));
            }
            let next = match stages.queue {
                None => out.clone(),
                Some(queue) => {
                    let [enter, leave] = ["q", "p"].map(|end| format!("{end}{index}{letter}"));
                    self.links.push(format!(
                        "link add {enter} netns {WIRES} type veth peer name {leave} netns {WIRES}"
                    ));
                    let mtu = queue.unit.map_or(LARGEST, as_mtu);
                    for (end, mtu) in [(&enter, mtu), (&leave, LARGEST)] {
                        self.wires.plain.push(end.clone());
                        self.wires.ip.push(format!("link set {end} mtu {mtu} up"));
                    }
                    for [kind, line] in &queue.lines {
                        self.wires.tc.push(format!("{kind} add dev {enter} {line}"));
                    }
                    self.wires.tc.push(format!("qdisc add dev {leave} clsact"));
                    self.wires.tc.push(redirect(&leave, out));
                    enter
                }
            };
            self.wires
                .tc
                .extend(stages.wire.iter().map(|line| format!("qdisc add dev {out} {line}")));
            self.wires.tc.push(redirect(into, &next));
        }
        Ok(())
    }

    fn name_of(&self, from: NodeId, to: NodeId) -> String {
        let [from, to] = [from, to].map(|node| self.network.topology.name(node));
        format!("{from} -> {to}")
    }

    /// From every node that a flow's packets pass to where they go.
    fn routes(&mut self) -> Result<(), CannotBuild> {
        let links: Vec<_> = self.network.topology.links().map(|(from, to, _)| (from, to)).collect();
        let mut routes = BTreeMap::<(NodeId, NodeId), (NodeId, String)>::new();
        for flow in &self.network.flows {
            for [from, to] in [flow.ends, [flow.ends[1], flow.ends[0]]] {
                let attributes = ends::route_attributes(flow, from == flow.ends[0]);
                let path = self.network.topology.path(from.node, to.node).unwrap_or_default();
                for link in path {
                    let (at, next) = links[link as usize];
                    let own = if at == from.node { attributes.clone() } else { String::new() };
                    let route = routes.entry((at, to.node)).or_insert_with(|| (next, own.clone()));
                    if at == from.node && route.1 != own {
                        let place = format!("flow {:?}", flow.name);
                        let reason = "iw, ssthresh and min_rto belong to the route, and another flow between the \
                                      same nodes has others: give each its own pair of nodes";
                        return Err(CannotBuild::new(place, reason));
                    }
                }
            }
        }
        for ((at, to), (next, attributes)) in routes {
            if let (Some(Towards { interface, gateway }), Some(space)) =
                (self.towards.get(&(at, next)), self.spaces.get_mut(&at))
            {
                space.ip.push(format!(
                    "route add {}/32 via {gateway} dev {interface} onlink src {}{attributes}",
                    to.address(),
                    at.address()
                ));
            }
        }
        Ok(())
    }
}

/// A hardware address of a link's side.
fn hardware(index: usize, side: usize) -> String {
    let [high, low] = (index as u16).to_be_bytes();
    format!("02:00:00:{high:02x}:{low:02x}:{:02x}", side + 1)
}

fn redirect(from: &str, to: &str) -> String {
    format!("filter add dev {from} ingress matchall action mirred egress redirect dev {to}")
}

/// netem lets go of the socket that sent a packet. Otherwise the packets in the link's queue would count as the
/// sender's own, and TCP small queues (tcp_small_queue_check) would hold back the rest.
const ORPHAN: &str = "root netem limit 1000000 rate 1000gbit";
/// The MTU of an interface whose discipline has packets of `bytes` in mind: it takes MTU and Ethernet header for that
/// (`psched_mtu`), while what is queued here counts without the header. Larger packets pass all the same: what
/// is redirected into an interface is not held to its MTU.
fn as_mtu(bytes: u16) -> u16 {
    bytes.saturating_sub(queue::ETHERNET as u16).max(SMALLEST)
}

/// An Ethernet interface's least MTU (`ETH_MIN_MTU`).
const SMALLEST: u16 = 68;
/// What the stages let through; hosts send less.
const LARGEST: u16 = 9100;

fn flow(flow: &acklab_lab::blueprint::Conversation<'_>) -> Result<job::Flow, CannotBuild> {
    let [client, server] = [0, 1].map(|side| ends::end(flow, side));
    let task = match &flow.task {
        Task::Bulk(bytes) => job::Task::Bulk(*bytes),
        Task::Writes(writes) => {
            job::Task::Writes(writes.iter().map(|(at, bytes)| (at.as_nanos(), *bytes)).collect())
        }
        Task::Requests(pattern) => job::Task::Requests {
            count: pattern.exchanges,
            request: pattern.header + pattern.body,
            reply: pattern.reply,
            service: pattern.service.as_nanos(),
            think: pattern.think.as_nanos(),
        },
    };
    let stop = flow.stop.as_nanos();
    Ok(job::Flow {
        name: flow.name.to_owned(),
        ends: [client?, server?],
        start: flow.start.as_nanos(),
        stop: (stop < u64::MAX).then_some(stop),
        task,
    })
}

//! A file's network as a world: what is watched, and its flows opened.

use std::collections::BTreeMap;
use std::iter;

use acklab_core::packet::{Addr, NodeId};
use acklab_core::rng::Rng;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::app::{App, Bulk, Reader, ReaderModel, ReplyingServer, RequestClient, Source};
use acklab_sim::arrivals::Arrivals;
use acklab_sim::distribution::{Distribution, Draws};
use acklab_sim::peer::Datagrams;
use acklab_sim::{End, Observer, World, rudp};
use acklab_tcp::Config;

use crate::blueprint::{Blueprint, Conversation, Task};
use crate::monitor::{WatchedFlow, WatchedLink};
use crate::network_file::{Arriving, Ends, Every, Flow, Link, Network, Over, Traffic};
use crate::scenario::CapturePoint;
use crate::scenario::network::{Watched, WatchedSender};

/// The link number `link`, and the senders of the flows with a connection in the order of the file. Of requests
/// the side that answers is the sender.
pub(super) fn watched(file: &Network, link: u32) -> Watched {
    let flows = (0..).zip(&file.flows);
    let senders = flows.filter_map(|(index, (from, to, Flow { name, traffic, .. }))| {
        let (node, ends) = sender(*from, *to, traffic);
        let ends = ends?;
        Some(WatchedSender {
            addr: Addr { node, port: port(index) },
            name: name.clone(),
            wire_factor: wire_factor(ends),
            mss: ends.unit(),
        })
    });
    let Link { rate, changes, .. } = file.links[link as usize];
    Watched {
        bottleneck: link,
        // Of one that changes it is not known when it is busy.
        rate: if changes { BitRate::INFINITE } else { rate },
        senders: senders.collect(),
        period: file.loop_period().unwrap_or(Span::from_millis(1)),
    }
}

/// Where a flow's data comes from, and how its TCP is set up, if it is one over TCP.
const fn sender(from: NodeId, to: NodeId, traffic: &Traffic) -> (NodeId, Option<&Ends>) {
    match traffic {
        Traffic::Bulk(ends, _) | Traffic::Messages(ends, ..) => (from, Some(ends)),
        Traffic::Requests(ends, ..) => (to, Some(ends)),
        Traffic::Datagrams(_) | Traffic::Loop(_) => (from, None),
    }
}

/// Where the data of flow number `index` comes from, and where it goes.
pub(super) fn ends(from: NodeId, to: NodeId, traffic: &Traffic, index: u16) -> [Addr; 2] {
    let (node, _) = sender(from, to, traffic);
    let other = if node == from { to } else { from };
    [node, other].map(|node| Addr { node, port: port(index) })
}

/// Bytes on the wire for each byte of payload.
fn wire_factor(ends: &Ends) -> f64 {
    f64::from(ends.packet) / ends.payload()
}

/// All flows in the order of the file, for a closer look.
pub(super) fn watched_flows(file: &Network) -> Vec<WatchedFlow> {
    let flows = (0..).zip(&file.flows);
    let watched = flows.map(|(index, (from, to, Flow { name, traffic, .. }))| {
        let (node, ends) = sender(*from, *to, traffic);
        let [from, to] = [*from, *to].map(|node| file.topology.name(node));
        let what = match traffic {
            Traffic::Bulk(..) => "bulk",
            Traffic::Messages(..) => "messages",
            Traffic::Requests(..) => "requests",
            Traffic::Datagrams(_) => "datagrams",
            Traffic::Loop(_) => "control loop",
        };
        let control = ends.map(|ends| format!(", {}", ends.control()));
        WatchedFlow {
            name: name.clone(),
            words: [format!("{from} → {to}"), format!("{what}{}", control.unwrap_or_default())],
            sender: Addr { node, port: port(index) },
            over_tcp: ends.map(|ends| (wire_factor(ends), ends.payload())),
        }
    });
    watched.collect()
}

/// The links of these indices, for a closer look.
pub(super) fn watched_links(file: &Network, links: &[u32]) -> Vec<WatchedLink> {
    let watched = links.iter().map(|&index| {
        let link = &file.links[index as usize];
        WatchedLink { index, name: link.name.clone(), rate: link.rate }
    });
    watched.collect()
}

/// Where a capture is made: at the ends of the first flow, or where the watched link begins.
pub(super) fn node_at(file: &Network, link: u32, point: CapturePoint) -> NodeId {
    let (from, to, _) = file.flows[0];
    match point {
        CapturePoint::Sender => from,
        CapturePoint::Middle => file.links[link as usize].from,
        CapturePoint::Receiver => to,
    }
}

/// The same network for another world, where it is one of flows over TCP.
pub(super) fn blueprint(
    file: &Network,
    seed: u64,
    duration: Span,
) -> Result<Blueprint<'_>, String> {
    if file.topology.has_media() {
        return Err("half_duplex is virtual time's alone; leave it out".into());
    }
    if let Some((_, host)) = file.hosts.first() {
        return Err(format!(
            "host {host:?} has a processor, which is virtual time's alone; leave [[host]] out"
        ));
    }
    let starts = starts(file, seed);
    let flows = (0..).zip(&file.flows).map(|(index, (from, to, flow))| {
        let ends = match &flow.traffic {
            Traffic::Bulk(ends, _) | Traffic::Messages(ends, ..) | Traffic::Requests(ends, ..) => {
                ends
            }
            Traffic::Datagrams(_) | Traffic::Loop(_) => {
                return Err(format!(
                    "flow {:?} sends datagrams; give it transport = \"tcp\"",
                    flow.name
                ));
            }
        };
        let Over::Tcp(config) = &ends.over else {
            return Err(format!(
                "flow {:?} goes over reliable UDP; give it transport = \"tcp\"",
                flow.name
            ));
        };
        let task = match &flow.traffic {
            Traffic::Messages(_, arriving, _) => {
                let mut arrivals = arrivals(arriving, flow, seed, index, Time::ZERO + duration);
                let next = || {
                    let at = arrivals.next_time()?;
                    arrivals.take_due(at).map(|bytes| (at, bytes))
                };
                Task::Writes(iter::from_fn(next).collect())
            }
            Traffic::Requests(_, _, varying) if varying.is_random() => {
                return Err(format!("flow {:?} has random replies or times to think", flow.name));
            }
            Traffic::Requests(_, pattern, _) => Task::Requests(*pattern),
            Traffic::Bulk(_, bytes) => Task::Bulk(volume(bytes.as_ref(), seed, index)),
            Traffic::Datagrams(_) | Traffic::Loop(_) => Task::Bulk(None),
        };
        Ok(Conversation {
            name: &flow.name,
            ends: [*from, *to].map(|node| Addr { node, port: port(index) }),
            config,
            packet: ends.packet,
            start: starts[usize::from(index)],
            stop: flow.stop,
            task,
        })
    });
    let flows = flows.collect::<Result<_, _>>()?;
    Ok(Blueprint { topology: &file.topology, flows, duration })
}

/// The nodes between which packets travel.
pub(super) fn tapped(file: &Network) -> impl Iterator<Item = NodeId> {
    file.flows.iter().flat_map(|(from, to, _)| [*from, *to])
}

/// The random numbers of flow `index` for one purpose.
fn stream(seed: u64, index: u16, purpose: &str) -> Rng {
    Rng::named(seed, &format!("flow/{index}/{purpose}"))
}

/// What is drawn for flow `index` for one purpose, if it is random.
fn draws(of: Option<&Distribution>, seed: u64, index: u16, purpose: &str) -> Option<Draws> {
    of.map(|of| Draws::new(of.clone(), seed, &format!("flow/{index}/{purpose}")))
}

/// What arrives for a flow to send, up to `end`.
fn arrivals(arriving: &Arriving, flow: &Flow, seed: u64, index: u16, end: Time) -> Arrivals {
    let Arriving { pattern, sizes, largest } = arriving;
    let stream = stream(seed, index, "arrivals");
    let arrivals = Arrivals::new(pattern.clone(), stream, flow.start, flow.stop.min(end));
    match draws(sizes.as_ref(), seed, index, "sizes") {
        Some(sizes) => arrivals.with_sizes(sizes, *largest),
        None => arrivals,
    }
}

/// How much a transfer has in all; `None`: it has no end.
fn volume(bytes: Option<&Distribution>, seed: u64, index: u16) -> Option<u64> {
    let mut draws = draws(bytes, seed, index, "bytes")?;
    Some((draws.draw() + 0.5).max(1.0) as u64)
}

/// When each flow begins.
fn starts(file: &Network, seed: u64) -> Vec<Time> {
    let mut processes: BTreeMap<&str, (Draws, Time)> = BTreeMap::new();
    let starts = file.flows.iter().map(|(.., flow)| {
        let Some(Every { process, gap }) = &flow.every else { return flow.start };
        let (draws, last) = processes.entry(process).or_insert_with(|| {
            (Draws::new(gap.clone(), seed, &format!("flows/{process}/every")), flow.start)
        });
        *last += Span::from_secs_f64(draws.draw());
        *last
    });
    starts.collect()
}

/// Opens every flow at its time.
pub(super) fn open_flows<O: Observer>(world: &mut World<O>, file: &Network, seed: u64) {
    let flows = file.flows.iter().zip(starts(file, seed));
    for (index, ((from, to, flow), start)) in (0..).zip(flows) {
        let [from, to] = [*from, *to].map(|node| Addr { node, port: port(index) });
        if start < flow.stop {
            open(world, flow, start, from, to, seed, index);
        }
    }
}

fn open<O: Observer>(
    world: &mut World<O>,
    flow: &Flow,
    start: Time,
    from: Addr,
    to: Addr,
    seed: u64,
    index: u16,
) {
    let draws = |distribution: &Option<Distribution>, name: &str| {
        draws(distribution.as_ref(), seed, index, name)
    };
    let arrivals = |arriving: &Arriving| arrivals(arriving, flow, seed, index, Time::MAX);
    let reader = |bytes| -> Box<dyn App> { Box::new(Reader::new(ReaderModel::Promptly, bytes)) };
    let (ends, client, server): (&Ends, Box<dyn App>, Box<dyn App>) = match &flow.traffic {
        Traffic::Bulk(ends, bytes) => {
            let bytes = volume(bytes.as_ref(), seed, index);
            let bulk = bytes.map_or_else(Bulk::unlimited, |bytes| Bulk::new(bytes, u32::MAX));
            let reader = match bytes.map(u32::try_from) {
                Some(Ok(bytes)) => {
                    Box::new(Reader::new(ReaderModel::Promptly, bytes).timed(start, NodeId(index)))
                }
                _ => reader(u32::MAX),
            };
            (ends, Box::new(bulk.until(flow.stop)), reader)
        }
        Traffic::Messages(ends, pattern, bytes) => {
            let source = Box::new(Source::new(arrivals(pattern)));
            (ends, source, reader(bytes.unwrap_or(u32::MAX)))
        }
        Traffic::Requests(ends, pattern, varying) => {
            // Clients may share a node, so that each tells the number of its flow in its place.
            let replies = || draws(&varying.reply, "replies");
            let client = RequestClient::new(*pattern, NodeId(index));
            let client = client.varying(replies(), draws(&varying.think, "thinking"));
            let server = ReplyingServer::new(*pattern).varying(replies());
            (ends, Box::new(client), Box::new(server))
        }
        Traffic::Loop(control) => {
            let (plant, controller) = control.peers(from, to);
            world.attach(from, Box::new(plant));
            world.attach(to, Box::new(controller));
            return;
        }
        Traffic::Datagrams(pattern) => {
            world.attach(to, Box::new(Datagrams::sink(to)));
            world.attach(from, Box::new(Datagrams::new(from, to, arrivals(pattern))));
            return;
        }
    };
    let mut draws = stream(seed, index, "ends");
    match &ends.over {
        Over::Tcp(configs) => {
            let [client_config, server_config] = &**configs;
            let mut end = |addr, config: &Config, app| End {
                addr,
                config: Config { ack_phase: draws.uniform(), ..config.clone() },
                isn: Seq(draws.next_u64() as u32),
                app,
            };
            let client = end(from, client_config, client);
            world.connect_at(start, client, end(to, server_config, server));
        }
        Over::Rudp(config) => {
            let config = acklab_rudp::Config { seed: draws.next_u64(), ..(**config).clone() };
            let end = |addr, app| rudp::End { addr, config: config.clone(), app };
            let (client, server) = rudp::pair(start, seed, end(from, client), end(to, server));
            world.attach(to, Box::new(server));
            world.attach(from, Box::new(client));
        }
    }
}

/// No two flows share a port; it is the same at both ends.
const fn port(index: u16) -> u16 {
    FIRST_PORT + index
}

/// The flow that has `port`.
pub(super) fn flow_at(port: u16) -> Option<usize> {
    port.checked_sub(FIRST_PORT).map(usize::from)
}

/// Above the registered ports; a file has at most 1000 flows.
const FIRST_PORT: u16 = 50_000;

/// What stays for as long as the process lives.
pub(super) fn forever(text: &str) -> &'static str {
    Box::leak(Box::from(text))
}

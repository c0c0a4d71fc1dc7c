//! What queries may name in a network from a file.

use super::recorder::{Shown, What, Whose};
use crate::network_file::Network;
use crate::scenario::control::LOOP_SIGNALS;
use crate::scenario::network_signals::{Source, of_flows, of_network};
use crate::signal::Signal;

/// Every signal with what it is about.
pub(super) fn list(network: &Network) -> Vec<(Signal, Shown)> {
    let of_network = of_network().into_iter();
    let mut list: Vec<_> =
        of_network.map(|(signal, source)| (signal, Shown::Network(source))).collect();
    let own = |name: &str, unit, doc, shown| (Signal { name: name.to_owned(), unit, doc }, shown);
    list.push(own(
        "queue_delay_ms",
        "ms",
        "wait of the packet that left the watched queue last",
        Shown::QueueDelay,
    ));
    list.push(own("queue.served", "packets", "that left the watched queue so far", Shown::Served));
    if network.loop_period().is_some() {
        let of_loop = LOOP_SIGNALS.iter();
        list.extend(of_loop.map(|&(name, unit, doc, code)| {
            own(name, unit, doc, Shown::Network(Source::Loop(code)))
        }));
    }
    let with_connection = network
        .flows
        .iter()
        .enumerate()
        .filter_map(|(index, (.., flow))| flow.traffic.has_connection().then_some(index));
    let flows = of_flows(with_connection).into_iter();
    list.extend(flows.map(|(signal, source)| (signal, Shown::Network(source))));
    for index in 0..network.flows.len() {
        let name = format!("flow[{index}]");
        list.extend(OF_PACKETS.iter().map(|of| signal(&name, *of, Whose::Flow(index))));
    }
    for (index, (name, _)) in network.groups.iter().enumerate() {
        let both = OF_PACKETS.iter().chain(OF_GROUPS);
        list.extend(both.map(|of| signal(name, *of, Whose::Group(index))));
    }
    list
}

fn signal(
    whose: &str,
    (name, unit, doc, what): (&str, &'static str, &'static str, What),
    who: Whose,
) -> (Signal, Shown) {
    (Signal { name: format!("{whose}.{name}"), unit, doc }, Shown::Of(who, what))
}

/// Of flows and groups.
const OF_PACKETS: &[(&str, &str, &str, What)] = &[
    (
        "queue_delay_ms",
        "ms",
        "wait of its packet that left the watched queue last",
        What::QueueDelay,
    ),
    ("served", "packets", "of it that left the watched queue so far", What::Served),
    ("one_way_ms", "ms", "from end to end, of its packet that arrived last", What::OneWay),
    ("arrived", "packets", "of it that arrived so far", What::Arrived),
    ("rtt_ms", "ms", "its last round trip", What::Rtt),
    ("round_trips", "samples", "of its round trip so far", What::Trips),
    ("delivered_bps", "bit/s", "what arrived of it since time 0, over time", What::Delivered),
];
/// Of groups alone.
const OF_GROUPS: &[(&str, &str, &str, What)] = &[
    (
        "throughput",
        "bit/s",
        "of all its flows: acknowledged since time 0, over time",
        What::Throughput,
    ),
    ("jain", "index", "fairness of its flows' throughput so far", What::Jain),
];

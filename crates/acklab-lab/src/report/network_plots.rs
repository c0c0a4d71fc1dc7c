//! The plots of a network's report.

use acklab_stats::Ecdf;

use super::network::{Network, bits_unit, rate_bps};
use super::page::Block;
use super::plot::{Cdf, CdfSeries, LineSeries, Lines};
use super::table::{Unit, measure};
use crate::monitor::{FlowRecord, LinkRecord, MOST_DRAWN, Points};

/// What is drawn of a flow.
type Course = fn(&FlowRecord) -> &Points;

/// The first replication.
pub(super) fn over_time(network: &Network<'_>) -> Vec<Block> {
    let record = network.record;
    let drawn = &record.flows[..record.flows.len().min(MOST_DRAWN)];
    let left_out = match record.flows.len() - drawn.len() {
        0 => String::new(),
        more => format!(" The first {MOST_DRAWN} flows; {more} more are in the table."),
    };
    let most = drawn.iter().flat_map(|flow| &flow.throughput).map(|point| point.1);
    let unit = bits_unit(most.fold(0.0, f64::max));
    let plain = Unit::from("");
    let of_flows = |title: &str, y_title: String, unit: &Unit, of: Course, words: &str| {
        let scaled = |points: &Points| points.iter().map(|(at, y)| (*at, unit.of(*y))).collect();
        let series = drawn.iter().map(|flow| (flow.name.clone(), scaled(of(flow))));
        let caption = format!("{}{left_out}", caption(words, of(&drawn[0])));
        lines(title, y_title, series, caption)
    };
    let throughput = of_flows(
        "Throughput of the flows",
        format!("throughput ({})", unit.name()),
        &unit,
        |flow| &flow.throughput,
        "What was acknowledged or, of datagrams, arrived, headers included",
    );
    let mut blocks: Vec<Block> = throughput.into_iter().collect();
    blocks.extend(of_flows(
        "Congestion windows",
        "window (segments)".into(),
        &plain,
        |flow| &flow.window,
        "In full segments",
    ));
    blocks.extend(of_flows(
        "Round trips of the flows",
        "round trip (ms)".into(),
        &plain,
        |flow| &flow.round_trip,
        "From a segment’s departure to its acknowledgment",
    ));
    blocks.extend(record.links.iter().filter(|link| rate_bps(link).is_some()).flat_map(of_link));
    blocks
}

/// Queue, waiting time, drops and marks of a link.
fn of_link(link: &LinkRecord) -> impl Iterator<Item = Block> {
    let name = &link.name;
    let two = |mean: &Points, peak: &Points| {
        [("longest", peak), ("mean", mean)].map(|(name, points)| (name.to_owned(), points.clone()))
    };
    let queue = lines(
        &format!("Queue before {name}"),
        "queue (packets)".into(),
        two(&link.queue, &link.queue_peak),
        caption("Packets that wait, without the one in transmission", &link.queue),
    );
    let wait = lines(
        &format!("Waiting time before {name}"),
        "waiting time (ms)".into(),
        two(&link.wait, &link.wait_peak),
        caption("How long packets had waited when their transmission began", &link.queue),
    );
    let happened = [("dropped", &link.drop_rate), ("marked", &link.mark_rate)];
    let happened = happened
        .into_iter()
        .filter(|(_, rates)| rates.iter().any(|rate| rate.1 > 0.0))
        .map(|(name, rates)| (name.to_owned(), rates.clone()));
    let lost = lines(
        &format!("Drops and marks before {name}"),
        "packets per second".into(),
        happened,
        caption("What the queue dropped and marked", &link.drop_rate),
    );
    queue.into_iter().chain(wait).chain(lost)
}

/// A figure of the series that have points; none where none has.
fn lines(
    title: &str,
    y_title: String,
    series: impl IntoIterator<Item = (String, Points)>,
    caption: String,
) -> Option<Block> {
    let series = series.into_iter().filter(|(_, points)| !points.is_empty());
    let series: Vec<_> = series.map(|(name, points)| LineSeries { name, points }).collect();
    let drawing = Lines { x_title: "time (s)".into(), y_title, series, ..Lines::default() };
    (!drawing.series.is_empty()).then(|| Block::plot(title, caption, drawing))
}

/// What a figure shows, and how wide its cells are.
fn caption(words: &str, points: &Points) -> String {
    let width = match points.as_slice() {
        [first, second, ..] => second.0 - first.0,
        _ => 0.0,
    };
    let width = if width < 1.0 {
        format!("{} ms", measure(1e3 * width))
    } else {
        format!("{} s", measure(width))
    };
    format!("{words}: the first replication, in steps of {width}.")
}

/// All replications.
pub(super) fn distributions(network: &Network<'_>) -> Vec<Block> {
    let record = network.record;
    let of_flows = record.flows.iter().take(MOST_DRAWN);
    let trips = of_flows.map(|flow| (flow.name.clone(), flow.round_trips.distribution(POINTS)));
    let waiting = record.links.iter().filter(|link| rate_bps(link).is_some());
    let waits = waiting.map(|link| (link.name.clone(), link.waits.distribution(POINTS)));
    let delays = network.delays().take(MOST_DRAWN);
    let delays = delays
        .map(|(flow, what, delays)| (format!("{}: {what}", flow.name), delays.points(POINTS)));
    let replications = record.replications;
    let each =
        format!("Of every acknowledgment that tells a round trip, {replications} replications.");
    let mut blocks: Vec<Block> = over_replications(network).into_iter().collect();
    blocks.extend(cdf("Distribution of the round trips", "round trip (ms)", trips, &each));
    let each = format!("Of every packet, {replications} replications.");
    blocks.extend(cdf("Distribution of the waiting times", "waiting time (ms)", waits, &each));
    let each = format!("Of every message, exchange or datagram, {replications} replications.");
    blocks.extend(cdf("Distribution of the delays", "delay (ms)", delays, &each));
    blocks
}

/// Throughput by flow, one sample per replication.
fn over_replications(network: &Network<'_>) -> Option<Block> {
    if network.record.replications < 2 {
        return None;
    }
    let flows = network.each_flow().take(MOST_DRAWN);
    let samples: Vec<_> = flows
        .map(|(flow, metrics)| (flow.name.clone(), Network::throughputs(flow, metrics)))
        .collect();
    let most = samples.iter().flat_map(|(_, samples)| *samples).copied().fold(0.0, f64::max);
    let unit = bits_unit(most);
    let series = samples.into_iter().map(|(name, samples)| {
        let samples = samples.iter().map(|sample| unit.of(*sample)).collect();
        (name, Ecdf::from_samples(samples).map_or_else(Vec::new, |ecdf| ecdf.points(POINTS)))
    });
    let caption =
        format!("One sample for each of the {} replications.", network.record.replications);
    let x_title = format!("throughput ({})", unit.name());
    cdf("Throughput over the replications", &x_title, series, &caption)
}

fn cdf(
    title: &str,
    x_title: &str,
    series: impl Iterator<Item = (String, Points)>,
    caption: &str,
) -> Option<Block> {
    let series = series.filter(|(_, points)| !points.is_empty());
    let series: Vec<_> =
        series.map(|(name, points)| CdfSeries { name, points, straight: false }).collect();
    let drawing = Cdf { x_title: x_title.into(), series, marks: vec![] };
    (!drawing.series.is_empty()).then(|| Block::plot(title, caption, drawing))
}

/// Points of a distribution.
const POINTS: usize = 300;

//! The plots of a network's report.

use acklab_stats::Ecdf;

use super::tables::{Network, bits_unit, rate_bps};
use crate::monitor::{Course, FlowRecord, LinkRecord, MOST_DRAWN, Points};
use crate::report::page::Block;
use crate::report::plot::{Band, Cdf, CdfSeries, LineSeries, Lines};
use crate::report::table::{Unit, measure};

/// What is drawn of a flow.
type CourseOf = fn(&FlowRecord) -> &Course;

/// The median over the replications, and what lies around it.
pub(super) fn over_time(network: &Network<'_>) -> Vec<Block> {
    let drawn = drawn(network);
    let most = drawn.iter().flat_map(|flow| flow.throughput.greatest());
    let unit = bits_unit(most.map(|point| point.1).fold(0.0, f64::max));
    let plain = Unit::from("");
    let left_out = match network.record.flows.len() - drawn.len() {
        0 => String::new(),
        more => format!(" {more} more flows are in the table."),
    };
    let of_flows = |title: &str, y_title: &str, unit: &Unit, of: CourseOf, words: &str| {
        let with_any = drawn.iter().filter(|flow| !of(flow).is_empty());
        let widest = with_any.max_by_key(|flow| of(flow).median().len())?;
        let scaled = |course: &Course| -> Points {
            course.median().into_iter().map(|(at, y)| (at, unit.of(y))).collect()
        };
        let around = |flow: &FlowRecord| {
            let band = of(flow).band().into_iter();
            let points = band.map(|(at, low, high)| (at, unit.of(low), unit.of(high)));
            Band { series: flow.name.clone(), points: points.collect() }
        };
        // Those over TCP come first and all of them are there, so that a flow keeps its colour.
        let shown = drawn.iter().filter(|flow| flow.over_tcp || !of(flow).is_empty());
        let shown: Vec<_> = shown.collect();
        let named = shown.iter().map(|flow| (flow.name.clone(), scaled(of(flow))));
        let series: Vec<_> = named.collect();
        // Bands of many lines would hide each other.
        let banded = shown.iter().filter(|_| shown.len() <= MOST_BANDS);
        let bands = banded.map(|flow| around(flow)).collect();
        let caption = format!("{}{left_out}", caption(words, of(widest)));
        Some(lines(&whose(title, &series), y_title, 0, series, bands, caption))
    };
    let throughput = of_flows(
        "Throughput",
        &format!("throughput ({})", unit.name()),
        &unit,
        |flow| &flow.throughput,
        "What was acknowledged or, of datagrams, arrived, headers included",
    );
    let window = of_flows(
        "Congestion window",
        "window (segments)",
        &plain,
        |flow| &flow.window,
        "In full segments",
    );
    let round_trip = of_flows(
        "Round trips",
        "round trip (ms)",
        &plain,
        |flow| &flow.round_trip,
        "From a segment’s departure to its acknowledgment",
    );
    let mut blocks: Vec<Block> = [throughput, window, round_trip].into_iter().flatten().collect();
    blocks.extend(queues(network).flat_map(of_link));
    blocks
}

/// The flows that are drawn, those over TCP first.
fn drawn<'n>(network: &'n Network<'_>) -> Vec<&'n FlowRecord> {
    let mut flows: Vec<_> = network.record.flows.iter().take(MOST_DRAWN).collect();
    flows.sort_by_key(|flow| !flow.over_tcp);
    flows
}

/// The links where packets can wait.
fn queues<'n>(network: &'n Network<'_>) -> impl Iterator<Item = &'n LinkRecord> {
    network.record.links.iter().filter(|link| rate_bps(link).is_some())
}

/// Queue, waiting time, drops and marks of a link.
fn of_link(link: &LinkRecord) -> Vec<Block> {
    let name = &link.name;
    let two = |most: &str, peak: &Course, mean: &Course| {
        [(most, peak.greatest()), ("mean", mean.median())]
            .map(|(name, points)| (name.to_owned(), points))
    };
    let band =
        |name: &str, course: &Course| Band { series: name.to_owned(), points: course.band() };
    let mut blocks = vec![
        lines(
            &format!("Queue of {name}"),
            "queue (packets)",
            1,
            two("most", &link.queue_peak, &link.queue),
            vec![band("mean", &link.queue)],
            caption("Packets that wait, without the one in transmission", &link.queue),
        ),
        lines(
            &format!("Waiting time in the queue of {name}"),
            "waiting time (ms)",
            1,
            two("longest", &link.wait_peak, &link.wait),
            vec![band("mean", &link.wait)],
            caption("How long packets had waited when their transmission began", &link.queue),
        ),
    ];
    let happened = [("dropped", "Drops", &link.drop_rate), ("marked", "Marks", &link.mark_rate)];
    let happened: Vec<_> = happened
        .iter()
        .filter(|(.., rates)| rates.greatest().iter().any(|rate| rate.1 > 0.0))
        .collect();
    if let [(_, first, rates), rest @ ..] = happened.as_slice() {
        let title = if rest.is_empty() { *first } else { "Drops and marks" };
        blocks.push(lines(
            &format!("{title} in the queue of {name}"),
            "packets per second",
            0,
            happened.iter().map(|(name, _, rates)| ((*name).to_owned(), rates.median())),
            happened.iter().map(|(name, _, rates)| band(name, rates)).collect(),
            caption("Packets that the queue dropped or marked", rates),
        ));
    }
    blocks
}

/// A title for one series or many; one alone has no legend.
fn whose(title: &str, series: &[(String, Points)]) -> String {
    match series {
        [(name, _)] => format!("{title}: {name}"),
        _ => title.to_owned(),
    }
}

fn lines(
    title: &str,
    y_title: &str,
    areas: usize,
    series: impl IntoIterator<Item = (String, Points)>,
    bands: Vec<Band>,
    caption: String,
) -> Block {
    let series = series.into_iter().map(|(name, points)| LineSeries { name, points });
    let drawing = Lines {
        x_title: "time (s)".into(),
        y_title: y_title.into(),
        series: series.collect(),
        solid: true,
        areas,
        bands: bands.into_iter().filter(|band| !band.points.is_empty()).collect(),
        ..Lines::default()
    };
    Block::plot(title, caption, drawing)
}

/// What a figure shows, and how wide its cells are.
pub(super) fn caption(words: &str, course: &Course) -> String {
    let width = match course.median().as_slice() {
        [first, second, ..] => second.0 - first.0,
        _ => 0.0,
    };
    let width = if width < 1.0 {
        format!("{} ms", measure(1e3 * width))
    } else {
        format!("{} s", measure(width))
    };
    match course.replications() {
        1 => format!("{words}: one replication, in steps of {width}."),
        many => format!(
            "{words}: the median of {many} replications in steps of {width}, around it where 90 % of them lie."
        ),
    }
}

/// All replications.
pub(super) fn distributions(network: &Network<'_>) -> Vec<Block> {
    let of_flows = drawn(network).into_iter().filter(|flow| flow.over_tcp);
    let trips = of_flows.map(|flow| (flow.name.clone(), flow.round_trips.distribution(POINTS)));
    let waits = queues(network).map(|link| (link.name.clone(), link.waits.distribution(POINTS)));
    let delays = network.delays().take(MOST_DRAWN);
    let delays = delays
        .map(|(flow, what, delays)| (format!("{}: {what}", flow.name), delays.points(POINTS)));
    let of_all = match network.record.replications {
        1 => String::new(),
        many => format!(" of {many} replications"),
    };
    let mut blocks: Vec<Block> = over_replications(network).into_iter().collect();
    let each = format!("All acknowledgments{of_all} that tell a round trip.");
    blocks.extend(cdf("Distribution of round trips", "round trip (ms)", trips, &each));
    let each = format!("All packets{of_all}.");
    blocks.extend(cdf("Distribution of waiting times", "waiting time (ms)", waits, &each));
    let each = format!("All messages, exchanges and datagrams{of_all}.");
    blocks.extend(cdf("Distribution of delays", "delay (ms)", delays, &each));
    blocks
}

/// Throughput by flow, one sample per replication.
fn over_replications(network: &Network<'_>) -> Option<Block> {
    if network.record.replications < 2 {
        return None;
    }
    let mut flows: Vec<_> = network.each_flow().take(MOST_DRAWN).collect();
    flows.sort_by_key(|(flow, _)| !flow.over_tcp);
    let samples = flows
        .into_iter()
        .map(|(flow, metrics)| (flow.name.clone(), Network::throughputs(flow, metrics)));
    let samples: Vec<_> = samples.collect();
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
    let series: Vec<_> = series.collect();
    let title = whose(title, &series);
    let line = |(name, points)| CdfSeries { name, points, straight: false };
    let series: Vec<_> = series.into_iter().map(line).collect();
    let any = series.iter().any(|series| !series.points.is_empty());
    let drawing = Cdf { x_title: x_title.into(), series, marks: vec![] };
    any.then(|| Block::plot(title, caption, drawing))
}

/// Lines that have a band each.
const MOST_BANDS: usize = 3;
/// Points of a distribution.
pub(super) const POINTS: usize = 300;

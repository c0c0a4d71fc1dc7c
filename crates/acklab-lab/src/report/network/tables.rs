//! What a closer look at a network measured, as tables and a headline.
//!
//! The tables are data once: the page, JSON and the terminal are made from the same columns.

use acklab_core::units::BitRate;
use acklab_stats::{Ecdf, MeanInterval};

use crate::measured::Metrics;
use crate::monitor::{FlowRecord, LinkRecord, NetworkRecord};
use crate::report::page::Verdict;
use crate::report::table::{Cell, Column, Table, Unit, measure};

/// What a closer look at a network saw, with what else was measured.
#[derive(Clone, Debug)]
pub struct Network<'a> {
    pub record: &'a NetworkRecord,
    /// Metrics over all flows, pooled.
    pub metrics: &'a Metrics,
    /// Metrics of each flow, in the record's order, pooled.
    pub flows: Vec<&'a Metrics>,
}

impl Network<'_> {
    pub(super) fn each_flow(&self) -> impl Iterator<Item = (&FlowRecord, &Metrics)> {
        self.record.flows.iter().zip(self.flows.iter().copied())
    }

    /// The throughput of a flow in each replication, bit/s.
    pub(super) fn throughputs<'m>(flow: &FlowRecord, metrics: &'m Metrics) -> &'m [f64] {
        metrics.samples(if flow.over_tcp { "throughput_bps" } else { "datagram_bps" })
    }

    fn mean_throughput(flow: &FlowRecord, metrics: &Metrics) -> f64 {
        mean(Self::throughputs(flow, metrics))
    }

    /// A count that was summed over the replications, for one of them.
    fn of_one(&self, sum: u64) -> f64 {
        sum as f64 / self.record.replications.max(1) as f64
    }

    /// Every flow: its share, its round trips, what was lost of it.
    pub fn flow_table(&self) -> Table {
        let flows: Vec<_> = self.each_flow().collect();
        let means = || flows.iter().map(|(flow, metrics)| Self::mean_throughput(flow, metrics));
        let all: f64 = means().sum();
        let interval = |(flow, metrics): &(&FlowRecord, &Metrics)| {
            MeanInterval::from_replications(Self::throughputs(flow, metrics), CONFIDENCE)
        };
        let text = |name, key, of: fn(&FlowRecord) -> &str| {
            let column = Column::text(name).key(key).plain(key, 0);
            column.over(&flows, move |(flow, _)| of(flow))
        };
        let trip = |name, key, heading, share: Option<f64>| {
            let column = Column::number(name, "ms").key(key).plain(heading, 1);
            column.over(&flows, move |(flow, _)| match share {
                None => flow.round_trips.min_ms(),
                Some(share) => flow.round_trips.quantile_ms(share),
            })
        };
        let lost = |name, key, of: fn(&FlowRecord) -> u64| {
            let column = Column::number(name, "packets").key(key).plain(key, 1);
            column.over(&flows, move |(flow, _)| self.of_one(of(flow)))
        };
        let unit = bits_unit(means().fold(0.0, f64::max));
        let heading = unit.name().to_owned();
        let columns = vec![
            text("Flow", "flow", |flow| &flow.name),
            text("Way", "way", |flow| &flow.way),
            text("Kind", "kind", |flow| &flow.kind),
            Column::number("Throughput", unit).key("throughput_bps").plain(heading, 2).over(
                &flows,
                |pair| match interval(pair) {
                    Some(interval) => Cell::from(interval),
                    None => Self::mean_throughput(pair.0, pair.1).into(),
                },
            ),
            Column::in_json("throughput_low_bps").over(&flows, |pair| Some(interval(pair)?.low)),
            Column::in_json("throughput_high_bps").over(&flows, |pair| Some(interval(pair)?.high)),
            Column::number("Share", Unit::percent("% of all"))
                .key("share")
                .plain_percent("share", 1)
                .over(means(), |mean| mean / all),
            trip("RTT, least", "rtt_min_ms", "RTT min, ms", None),
            trip("RTT, median", "rtt_p50_ms", "RTT p50", Some(0.5)),
            trip("RTT, p99", "rtt_p99_ms", "RTT p99", Some(0.99)),
            Column::number("Sent again", "segments")
                .key("retransmissions")
                .plain("sent again", 1)
                .over(&flows, |(_, metrics)| metrics.number("retransmissions")),
            lost("Lost", "drops", |flow| flow.drops),
            lost("Marked", "marks", |flow| flow.marks),
        ];
        let each = if self.record.replications > 1 {
            ", counts are those of one replication on average"
        } else {
            ""
        };
        Table::new(format!("The flows{each}. Click a heading to sort."), columns).note(FLOW_NOTE)
    }

    /// Every watched link: what it carried, its queue, how long packets waited.
    pub fn link_table(&self) -> Table {
        let links = &self.record.links;
        let carried = |link: &LinkRecord| self.carried_bps(link);
        let wait = |name, key, heading, share: Option<f64>| {
            let column = Column::number(name, "ms").key(key).plain(heading, 1);
            column.over(links, move |link| match share {
                None => link.waits.mean_ms(),
                Some(share) => link.waits.quantile_ms(share),
            })
        };
        let count = |name, key, of: fn(&LinkRecord) -> u64| {
            let column = Column::number(name, "packets").key(key).plain(key, 1);
            column.over(links, move |link| self.of_one(of(link)))
        };
        let most = links.iter().map(|link| rate_bps(link).unwrap_or_else(|| carried(link)));
        let unit = bits_unit(most.fold(0.0, f64::max));
        let heading = unit.name().to_owned();
        let columns = vec![
            Column::text("Link")
                .key("link")
                .plain("link", 0)
                .over(links, |link| link.name.as_str()),
            Column::number("Rate", unit.clone())
                .key("rate_bps")
                .plain(&heading, 2)
                .over(links, rate_bps),
            Column::number("Carried", unit)
                .key("carried_bps")
                .plain("carried", 2)
                .over(links, carried),
            Column::number("Busy", Unit::percent("% of the time"))
                .key("busy")
                .plain_percent("busy", 1)
                .over(links, |link| Some(carried(link) / rate_bps(link)?)),
            Column::number("Queue, mean", "packets")
                .key("queue_mean_packets")
                .plain("queue", 1)
                .over(links, |link| link.packet_seconds / self.record.seconds()),
            wait("Wait, mean", "wait_mean_ms", "wait, ms", None),
            wait("Wait, median", "wait_p50_ms", "wait p50", Some(0.5)),
            wait("Wait, p95", "wait_p95_ms", "wait p95", Some(0.95)),
            wait("Wait, p99", "wait_p99_ms", "wait p99", Some(0.99)),
            Column::number("Wait, most", "ms")
                .key("wait_max_ms")
                .plain("wait max", 1)
                .over(links, |link| link.waits.max_ms()),
            count("Dropped", "drops", |link| link.drops),
            count("Marked", "marks", |link| link.marks),
        ];
        Table::new("The watched links: what waits before them, and how long.", columns)
    }

    /// Delays of messages, exchanges and datagrams, where flows have them.
    pub(super) fn delay_table(&self) -> Option<Table> {
        let rows: Vec<_> = self.delays().collect();
        let column = |name, of: fn(&Ecdf) -> f64| {
            Column::number(name, "ms").over(&rows, move |(.., delays)| of(delays))
        };
        let columns = vec![
            Column::text("Flow").over(&rows, |(flow, ..)| flow.name.as_str()),
            Column::text("Delay of").over(&rows, |(_, what, _)| *what),
            Column::number("Count", "").over(&rows, |(.., delays)| delays.sorted().len()),
            column("Mean", |delays| mean(delays.sorted())),
            column("Median", |delays| delays.quantile(0.5)),
            column("p95", |delays| delays.quantile(0.95)),
            column("p99", |delays| delays.quantile(0.99)),
            column("Most", |delays| delays.quantile(1.0)),
        ];
        let table = Table::new("Delays of single messages, exchanges and datagrams.", columns);
        (!rows.is_empty()).then_some(table)
    }

    /// Flows whose single messages, exchanges or datagrams have delays, with these.
    pub(super) fn delays(&self) -> impl Iterator<Item = (&FlowRecord, &'static str, Ecdf)> {
        self.each_flow().flat_map(|(flow, metrics)| {
            DELAYS.iter().filter_map(move |(metric, what)| {
                Some((flow, *what, Ecdf::from_samples(metrics.samples(metric).to_vec())?))
            })
        })
    }

    fn carried_bps(&self, link: &LinkRecord) -> f64 {
        8.0 * link.carried_bytes as f64 / self.record.seconds()
    }

    pub(super) fn verdict(&self) -> Verdict {
        let jain = self.jain().map(|jain| format!(", Jain {jain:.3}"));
        let first = self.record.links.first();
        let headline =
            first.map(|link| format!("{}{}.", self.carried(link), jain.unwrap_or_default()));
        let mut explanation = Vec::new();
        let others = self.record.links.iter().skip(1).map(|link| self.carried(link));
        let others: Vec<_> = others.collect();
        if !others.is_empty() {
            explanation.push(format!("Beside it, {}.", others.join("; ")));
        }
        explanation.extend(first.and_then(|link| self.queue_words(link)));
        explanation.extend(self.extremes());
        let record = self.record;
        explanation.push(match record.replications {
            1 => format!("One replication of {} s.", measure(record.duration_s)),
            many => {
                format!("Means of {many} replications of {} s each.", measure(record.duration_s))
            }
        });
        Verdict { headline: headline.unwrap_or_default(), explanation, ..Verdict::default() }
    }

    /// "9.80 Mbit/s of 10 through r1 -> r2".
    fn carried(&self, link: &LinkRecord) -> String {
        let bps = self.carried_bps(link);
        let unit = bits_unit(rate_bps(link).unwrap_or(bps));
        let of = rate_bps(link).map(|rate| format!(" of {}", measure(unit.of(rate))));
        let (carried, of) = (measure(unit.of(bps)), of.unwrap_or_default());
        format!("{carried} {}{of} through {}", unit.name(), link.name)
    }

    /// Jain's index, where there is something to compare.
    fn jain(&self) -> Option<f64> {
        let compared = self.record.flows.iter().filter(|flow| flow.over_tcp).count();
        (compared > 1).then(|| self.metrics.number("jain"))
    }

    fn queue_words(&self, link: &LinkRecord) -> Option<String> {
        let waits = &link.waits;
        let (mean, p95, max) = (waits.mean_ms()?, waits.quantile_ms(0.95)?, waits.max_ms()?);
        if max <= 0.0 {
            return None;
        }
        let lost = match (self.of_one(link.drops), self.of_one(link.marks)) {
            (drops, marks) if drops + marks <= 0.0 => "nothing is dropped or marked".to_owned(),
            (drops, marks) if marks <= 0.0 => format!("{} packets are dropped", measure(drops)),
            (drops, marks) => {
                format!("{} packets are dropped and {} marked", measure(drops), measure(marks))
            }
        };
        Some(format!(
            "In the queue of `{}` packets wait {} ms on average, {} ms at p95, {} ms at most; {lost} there.",
            link.name,
            measure(mean),
            measure(p95),
            measure(max)
        ))
    }

    /// Who has the most and the least of the flows under congestion control.
    fn extremes(&self) -> Option<String> {
        let flows = self.each_flow().filter(|(flow, _)| flow.over_tcp);
        let means = flows.map(|(flow, metrics)| (&flow.name, Self::mean_throughput(flow, metrics)));
        let means: Vec<_> = means.collect();
        let most = means.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let least = means.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let unit = bits_unit(most.1);
        let value = |bps: f64| format!("{} {}", measure(unit.of(bps)), unit.name());
        (means.len() > 1).then(|| {
            format!(
                "Of the flows under congestion control, `{}` has the most, {}, and `{}` the least, {}.",
                most.0,
                value(most.1),
                least.0,
                value(least.1)
            )
        })
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The rate of a link, bit/s; `None` where it has no limit.
pub(super) fn rate_bps(link: &LinkRecord) -> Option<f64> {
    (link.rate != BitRate::INFINITE).then(|| link.rate.as_bps() as f64)
}

/// The unit in which rates up to `most` are read.
pub(super) fn bits_unit(most: f64) -> Unit {
    match most {
        _ if most >= 1e6 => Unit::mega("Mbit/s"),
        _ if most >= 1e3 => Unit::kilo("kbit/s"),
        _ => Unit::from("bit/s"),
    }
}

/// Metrics whose samples are delays of single things, and of what.
const DELAYS: [(&str, &str); 4] = [
    ("message_delay_ms", "messages"),
    ("exchange_ms", "exchanges"),
    ("transfer_ms", "transfers"),
    ("datagram_delay_ms", "datagrams"),
];
/// Of the intervals around means over replications.
const CONFIDENCE: f64 = 0.95;
const FLOW_NOTE: &str = "Throughput counts acknowledged bytes, or datagrams that arrived, with headers; ± is \
                         half of the 95 % confidence interval over replications. Round trips are from a segment’s \
                         departure to its acknowledgment, without those of segments sent again. Lost and \
                         marked: packets of the flow’s data, at any link.";

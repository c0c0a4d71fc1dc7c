//! [`Comparison`]: the same network in several worlds, flow by flow.

use std::collections::BTreeMap;

use acklab_lab::report::text::{lay_out, number};
use acklab_stats::two_sample_ks;
use serde_json::{Map, Value, json};

use crate::seen::{Seen, quantile};
use crate::world::World;

/// What each world showed of each flow, over replications.
#[derive(Clone, Debug)]
pub struct Comparison {
    names: Vec<String>,
    /// From each flow's start to the end, s.
    seconds: Vec<f64>,
    /// By world: by replication, by flow.
    seen: BTreeMap<World, Vec<Vec<Seen>>>,
    is_complete: bool,
}

/// A figure of one replication of one flow.
struct Figure {
    key: &'static str,
    heading: &'static str,
    digits: usize,
    /// What the table divides by.
    unit: f64,
    of: fn(&Seen, f64) -> f64,
}

const FIGURES: [Figure; 7] = [
    Figure {
        key: "goodput_bps",
        heading: "goodput Mbit/s",
        digits: 3,
        unit: 1e6,
        of: |seen, seconds| 8.0 * seen.acknowledged as f64 / seconds,
    },
    Figure {
        key: "segments",
        heading: "segments",
        digits: 1,
        unit: 1.0,
        of: |seen, _| seen.segments as f64,
    },
    Figure {
        key: "retransmissions",
        heading: "sent again",
        digits: 1,
        unit: 1.0,
        of: |seen, _| seen.retransmissions as f64,
    },
    Figure { key: "acks", heading: "ACKs", digits: 1, unit: 1.0, of: |seen, _| seen.acks as f64 },
    Figure {
        key: "segments_per_ack",
        heading: "segments per ACK",
        digits: 3,
        unit: 1.0,
        of: |seen, _| seen.segments as f64 / seen.acks as f64,
    },
    Figure {
        key: "rtt_p50_ms",
        heading: "RTT p50 ms",
        digits: 2,
        unit: 1.0,
        of: |seen, _| quantile(&seen.round_trips_ms, 0.5),
    },
    Figure {
        key: "rtt_p95_ms",
        heading: "RTT p95 ms",
        digits: 2,
        unit: 1.0,
        of: |seen, _| quantile(&seen.round_trips_ms, 0.95),
    },
];

/// Samples of one flow: delays of its messages.
struct Samples {
    key: &'static str,
    heading: &'static str,
    of: fn(&Seen) -> &[f64],
}

const SAMPLES: [Samples; 2] = [
    Samples { key: "delay", heading: "delay", of: |seen| &seen.delays_ms },
    Samples { key: "buffering", heading: "buffering", of: |seen| &seen.buffering_ms },
];

impl Comparison {
    /// No replication yet; `flows` are names, and how long each can send in seconds.
    pub fn new(flows: impl IntoIterator<Item = (String, f64)>) -> Self {
        let (names, seconds) = flows.into_iter().unzip();
        Self { names, seconds, seen: BTreeMap::new(), is_complete: true }
    }

    /// What `world` showed in its next replication.
    pub fn push(&mut self, world: World, seen: Vec<Seen>) {
        self.seen.entry(world).or_default().push(seen);
    }

    /// Whether every replication that was asked for is there.
    pub fn set_complete(&mut self, is_complete: bool) {
        self.is_complete = is_complete;
    }

    /// A figure of flow `flow` in `world`: the mean over replications.
    fn mean(&self, world: World, flow: usize, figure: &Figure) -> f64 {
        let values = self.values(world, flow, figure);
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn values(&self, world: World, flow: usize, figure: &Figure) -> Vec<f64> {
        let runs = self.seen.get(&world).map_or(&[][..], Vec::as_slice);
        runs.iter().map(|run| (figure.of)(&run[flow], self.seconds[flow])).collect()
    }

    /// Samples of all replications.
    fn samples(&self, world: World, flow: usize, of: fn(&Seen) -> &[f64]) -> Vec<f64> {
        let runs = self.seen.get(&world).map_or(&[][..], Vec::as_slice);
        runs.iter().flat_map(|run| of(&run[flow]).iter().copied()).collect()
    }

    fn pairs(&self) -> Vec<[World; 2]> {
        let worlds: Vec<World> = self.seen.keys().copied().collect();
        let pairs = worlds.iter().enumerate();
        pairs.flat_map(|(at, a)| worlds[at + 1..].iter().map(|b| [*a, *b])).collect()
    }

    /// The contract's JSON, `acklab.compare/1`.
    pub fn to_json(&self) -> Value {
        let flows = (0..self.names.len()).map(|flow| self.flow_json(flow));
        let replications: Map<_, _> = self
            .seen
            .iter()
            .map(|(world, runs)| (world.name().into(), json!(runs.len())))
            .collect();
        json!({
            "schema": "acklab.compare/1",
            "complete": self.is_complete,
            "replications": replications,
            "flows": flows.collect::<Vec<_>>(),
        })
    }

    fn flow_json(&self, flow: usize) -> Value {
        let mut metrics = Map::new();
        let mut values = Map::new();
        for figure in &FIGURES {
            let each = |of: &dyn Fn(World) -> Value| -> Map<String, Value> {
                self.seen.keys().map(|world| (world.name().into(), of(*world))).collect()
            };
            metrics.insert(
                figure.key.into(),
                each(&|world| json!(finite(self.mean(world, flow, figure)))).into(),
            );
            let all = |world| {
                let values = self.values(world, flow, figure);
                json!(values.into_iter().map(finite).collect::<Vec<_>>())
            };
            values.insert(figure.key.into(), each(&all).into());
        }
        for samples in &SAMPLES {
            for (name, p) in [("p50", 0.5), ("p95", 0.95)] {
                let each = self.seen.keys().map(|world| {
                    let value = quantile(&self.samples(*world, flow, samples.of), p);
                    (world.name().to_owned(), json!(finite(value)))
                });
                metrics.insert(format!("{}_{name}_ms", samples.key), Value::Object(each.collect()));
            }
        }
        let keys = ["delay_ks", "buffering_ks", "progress_distance", "cwnd_distance"];
        let mut distances = keys.map(|key| (key, Map::new()));
        for pair in self.pairs() {
            let key = pair.map(World::name).join(",");
            let [delay, buffering] = SAMPLES.each_ref().map(|samples| {
                let [a, b] = pair.map(|world| self.samples(world, flow, samples.of));
                two_sample_ks(a, b)
            });
            let [progress, windows] =
                [|seen: &Seen| seen.progress.clone(), |seen: &Seen| seen.windows.clone()]
                    .map(|course| self.course_distance(pair, flow, course));
            for ((_, map), value) in distances.iter_mut().zip([delay, buffering, progress, windows])
            {
                map.insert(key.clone(), json!(value));
            }
        }
        for (key, map) in distances {
            metrics.insert(key.into(), map.into());
        }
        let hashes: Map<_, _> = self
            .seen
            .iter()
            .map(|(world, runs)| {
                let hashes = runs.iter().map(|run| format!("{:016x}", run[flow].hash));
                (world.name().into(), json!(hashes.collect::<Vec<_>>()))
            })
            .collect();
        let errors: Map<_, _> = self
            .seen
            .iter()
            .filter_map(|(world, runs)| {
                let error = runs.iter().find_map(|run| run[flow].error.clone())?;
                Some((world.name().into(), json!(error)))
            })
            .collect();
        json!({ "name": self.names[flow], "metrics": metrics, "values": values, "hashes": hashes, "errors": errors })
    }

    /// How far apart two courses are, of the first replications: the mean difference over time, as a share of the
    /// first one's mean.
    fn course_distance(
        &self,
        pair: [World; 2],
        flow: usize,
        course: fn(&Seen) -> Vec<(f64, f64)>,
    ) -> Option<f64> {
        let [a, b] = pair.map(|world| self.seen.get(&world)?.first().map(|run| course(&run[flow])));
        let (a, b) = (a.filter(|a| !a.is_empty())?, b.filter(|b| !b.is_empty())?);
        let end = a[a.len() - 1].0.max(b[b.len() - 1].0);
        let times = (1..=STEPS).map(|step| end * f64::from(step) / f64::from(STEPS));
        let (mut apart, mut size) = (0.0, 0.0);
        for at in times {
            let [left, right] = [&a, &b].map(|course| value_at(course, at));
            apart += (left - right).abs();
            size += left;
        }
        (size > 0.0).then(|| apart / size)
    }

    /// The table for a terminal.
    pub fn to_text(&self) -> String {
        let table = lay_out(&self.heading(), &self.rows());
        if self.is_complete { table } else { format!("{table}\n{}\n", self.incomplete()) }
    }

    /// The first flow's goodput in each world, in a sentence.
    pub(crate) fn headline(&self) -> String {
        let goodput = &FIGURES[0];
        let each = self.seen.keys().map(|world| {
            format!("{:.2} Mbit/s in {world}", self.mean(*world, 0, goodput) / goodput.unit)
        });
        let each: Vec<_> = each.collect();
        let ending =
            if self.is_complete { String::new() } else { format!("; {}", self.incomplete()) };
        format!("{}: {}{ending}", self.names[0], each.join(", "))
    }

    fn incomplete(&self) -> String {
        let done = self.seen.values().map(Vec::len).max().unwrap_or(0);
        format!("not complete: interrupted after {done} replications")
    }

    /// The heading of [`Comparison::rows`].
    pub(crate) fn heading(&self) -> Vec<&'static str> {
        let mut heading = vec!["flow", "figure"];
        heading.extend(self.seen.keys().map(|world| world.name()));
        if self.seen.len() > 1 {
            heading.push("difference");
        }
        heading
    }

    /// Every figure of every flow in words.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let worlds: Vec<World> = self.seen.keys().copied().collect();
        let mut rows = Vec::new();
        for (flow, name) in self.names.iter().enumerate() {
            for figure in &FIGURES {
                let values: Vec<f64> =
                    worlds.iter().map(|world| self.mean(*world, flow, figure)).collect();
                let mut row = vec![name.clone(), figure.heading.into()];
                row.extend(values.iter().map(|value| number(value / figure.unit, figure.digits)));
                if let [first, .., last] = values[..] {
                    row.push(percent(last / first - 1.0));
                }
                rows.push(row);
            }
            for samples in &SAMPLES {
                rows.extend(self.sample_rows(flow, samples, &worlds));
            }
        }
        rows
    }

    /// The flows' names.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Replications in each world.
    pub(crate) fn replications(&self) -> usize {
        self.seen.values().map(Vec::len).max().unwrap_or(0)
    }

    /// What each world showed of a flow in the first replication.
    pub(crate) fn firsts(&self, flow: usize) -> impl Iterator<Item = (World, &Seen)> {
        self.seen.iter().filter_map(move |(world, runs)| Some((*world, runs.first()?.get(flow)?)))
    }

    /// Quantiles of samples, and how far their distributions are apart.
    fn sample_rows(&self, flow: usize, samples: &Samples, worlds: &[World]) -> Vec<Vec<String>> {
        let each: Vec<_> =
            worlds.iter().map(|world| self.samples(*world, flow, samples.of)).collect();
        if each.iter().all(Vec::is_empty) {
            return Vec::new();
        }
        let name = &self.names[flow];
        let quantiles = [("p50", 0.5), ("p95", 0.95)].map(|(word, p)| {
            let values = each.iter().map(|samples| number(quantile(samples, p), 3));
            let mut row = vec![name.clone(), format!("{} {word} ms", samples.heading)];
            row.extend(values);
            row
        });
        let mut rows = quantiles.to_vec();
        if let [first, .., last] = &each[..] {
            let ks = two_sample_ks(first.clone(), last.clone());
            for row in &mut rows {
                row.push(String::new());
            }
            let mut row = vec![name.clone(), format!("{}, KS distance", samples.heading)];
            row.resize(2 + each.len(), String::new());
            row.push(number(ks.unwrap_or(f64::NAN), 3));
            rows.push(row);
        }
        rows
    }

    /// What went wrong with flows, a line each.
    pub fn errors(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (world, runs) in &self.seen {
            for (name, seen) in runs.iter().flat_map(|run| self.names.iter().zip(run)) {
                if let Some(error) = &seen.error {
                    lines.push(format!("{world}: flow {name:?}: {error}"));
                }
            }
        }
        lines.dedup();
        lines
    }
}

fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:+.1}%", 100.0 * share) } else { "-".into() }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// The last value at or before `at`, 0 before the first.
pub(crate) fn value_at(course: &[(f64, f64)], at: f64) -> f64 {
    let after = course.partition_point(|(time, _)| *time <= at);
    after.checked_sub(1).map_or(0.0, |last| course[last].1)
}

/// Points of time at which courses are compared.
const STEPS: u32 = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_what_the_schema_says() {
        let schema = include_str!("../../../docs/schema/compare.schema.json");
        let schema: Value = serde_json::from_str(schema).unwrap();
        let mut comparison = Comparison::new([("a".to_owned(), 1.0)]);
        comparison.push(World::Sim, vec![Seen::default()]);
        comparison
            .push(World::LinuxVt, vec![Seen { error: Some("refused".into()), ..Seen::default() }]);
        let told = comparison.to_json();
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&told), keys(&schema["properties"]));
        assert_eq!(keys(&told["flows"][0]), keys(&schema["$defs"]["flow"]["properties"]));
        assert_eq!(told["flows"][0]["errors"]["linux-vt"], "refused");
        assert_eq!(told["flows"][0]["metrics"]["rtt_p50_ms"]["sim"], Value::Null);
        assert_eq!(told["flows"][0]["metrics"]["delay_ks"]["sim,linux-vt"], Value::Null);
    }
}

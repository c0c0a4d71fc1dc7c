//! The data for the report's figures.

use crate::diagnosis::{Ladder, Plots, Points, Rung};
use crate::flow::facts::DirectionFacts;
use crate::infer::spread::Sample;
use crate::stall::holds::{Hold, SMALL_HOLD_MS};
use crate::stall::ladder::Scene;
use crate::stall::records::{Line, Log};

/// Points of a distribution function.
const CDF_POINTS: usize = 200;

/// All figures of a direction.
pub(super) fn of(
    log: Option<&Log>,
    facts: &DirectionFacts,
    ladder: Option<Ladder>,
    delays: &Sample,
) -> Plots {
    let origin = facts.first_time;
    let line = |line: &Line| {
        let mut points = Points::default();
        for (time, value) in line.points() {
            points.push(time.signed_since(origin) as f64 / 1e9, *value as f64);
        }
        points
    };
    let mut histogram = Points::default();
    for (bin, count) in facts.ack_delay.iter().flat_map(|d| &d.bins_1ms).enumerate() {
        histogram.push(bin as f64 + 1.0, *count as f64);
    }
    Plots {
        ladder,
        data: log.map(|l| line(&l.data_line)).unwrap_or_default(),
        acks: log.map(|l| line(&l.ack_line)).unwrap_or_default(),
        delay_cdf: cdf(delays),
        ack_delay_histogram: histogram,
    }
}

fn cdf(sample: &Sample) -> Points {
    let mut points = Points::default();
    if sample.is_empty() {
        return points;
    }
    for i in 0..=CDF_POINTS {
        let share = i as f64 / CDF_POINTS as f64;
        points.push(sample.quantile(share), share);
    }
    points
}

/// The ladder of the most typical hold whose packets were kept.
pub(super) fn ladder(log: Option<&Log>, held: &[Hold], facts: &DirectionFacts) -> Option<Ladder> {
    let median = Sample::new(held.iter().map(Hold::length_ms).collect()).median();
    let off = |hold: &Hold| (hold.length_ms() - median).abs();
    let (scene, typical) = log?
        .ladders
        .scenes()
        .iter()
        .filter_map(|s| held.iter().find(|h| h.frame == s.frame).map(|h| (s, h)))
        .filter(|(_, h)| h.upper_ms() >= SMALL_HOLD_MS)
        .min_by(|a, b| off(a.1).total_cmp(&off(b.1)))?;
    Some(draw(scene, typical, facts))
}

fn draw(scene: &Scene, hold: &Hold, facts: &DirectionFacts) -> Ladder {
    let origin = scene.packets.first().map_or(hold.before, |p| p.time);
    let rungs = scene
        .packets
        .iter()
        .map(|p| Rung {
            frame: p.frame,
            t_ms: p.time.since(origin).as_millis_f64(),
            rightward: p.data,
            flags: if p.push { "PSH,ACK".into() } else { "ACK".into() },
            seq: if p.data { p.offset } else { 0 },
            len: p.len,
            ack: (!p.data).then_some(p.offset),
            held_ms: (p.data && p.frame == hold.frame).then(|| hold.length_ms()),
            note: note(p, hold),
        })
        .collect();
    Ladder { left: facts.from.to_string(), right: facts.to.to_string(), rungs }
}

fn note(packet: &crate::stall::ladder::Passing, hold: &Hold) -> Option<String> {
    if packet.data && packet.frame == hold.frame && hold.filled {
        return Some(format!("held {:.1} ms, until it filled a segment", hold.length_ms()));
    }
    if packet.data && packet.frame == hold.frame {
        let gap = hold.release.since(hold.ack).as_millis_f64();
        return Some(format!("held {:.1} ms, leaves {gap:.2} ms after the ACK", hold.length_ms()));
    }
    if packet.data && packet.time == hold.before {
        return Some("unacknowledged: what is written next must wait".into());
    }
    (!packet.data && !hold.filled && packet.time == hold.ack).then(|| match hold.ack_delay_ms {
        Some(delay) if delay >= 1.0 => format!("this ACK came {delay:.1} ms late"),
        _ => "this ACK lets the next segment go".into(),
    })
}

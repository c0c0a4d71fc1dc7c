//! Two stretches of one connection, one after the other, as one.
//!
//! A capture is judged once, when it is over. A connection that is watched for hours is judged in stretches, so that
//! the work stays bounded; here they are put together again. What was counted is added. Delays are those of all
//! messages: both distributions, each weighed with its messages. What is inferred (Nagle's state, the receiver's
//! policy, the writes) is the later stretch's, unless only the earlier one could tell.

use super::direction::{AckFacts, Direction};
use super::flow::Flow;
use super::plots::{CDF_POINTS, Points};
use super::stall::Stall;
use crate::inferred::{AddedDelay, NagleState, PolicyKind, Wait};

impl Flow {
    /// This stretch and the `later` one of the same connection.
    pub(crate) fn followed_by(self, later: Self) -> Self {
        let duration_s = self.duration_s.max(later.duration_s);
        let directions = self.directions.into_iter().zip(later.directions);
        let directions = directions.map(|(a, b)| a.followed_by(b, duration_s)).collect();
        Self { duration_s, directions, ..later }.with_causes()
    }
}

impl Direction {
    fn followed_by(self, later: Self, duration_s: f64) -> Self {
        let earlier = self;
        let (added_delay_ms, delay_cdf) = messages(&earlier, &later);
        let mut plots = later.plots;
        plots.ladder = plots.ladder.or(earlier.plots.ladder);
        plots.delay_cdf = delay_cdf;
        let nagle = later.nagle.state == NagleState::Unknown;
        let policy = later.receiver_policy.kind == PolicyKind::Unknown;
        let writes = later.writes.messages.is_none();
        Self {
            segments: earlier.segments + later.segments,
            acks: AckFacts { pure: earlier.acks.pure + later.acks.pure, ..later.acks },
            retransmissions: earlier.retransmissions + later.retransmissions,
            reordered: earlier.reordered + later.reordered,
            duplicates: earlier.duplicates + later.duplicates,
            missing_segments: earlier.missing_segments + later.missing_segments,
            zero_windows: earlier.zero_windows + later.zero_windows,
            nagle: if nagle { earlier.nagle } else { later.nagle },
            receiver_policy: if policy { earlier.receiver_policy } else { later.receiver_policy },
            writes: if writes { earlier.writes } else { later.writes },
            stalls: stalls(earlier.stalls, later.stalls, duration_s),
            held: Vec::new(),
            stalled_probability: earlier.stalled_probability.max(later.stalled_probability),
            lacks: later.lacks.or(earlier.lacks),
            course: earlier.course.and(later.course),
            sampled: earlier.sampled || later.sampled,
            small_holds: earlier.small_holds + later.small_holds,
            waits: waits(earlier.waits, later.waits),
            added_delay_ms,
            added_delay_estimate_ms: None,
            plots,
            ..later
        }
    }
}

/// Adds up by mechanism; the share is that of the connection's whole time.
fn stalls(earlier: Vec<Stall>, later: Vec<Stall>, duration_s: f64) -> Vec<Stall> {
    let mut joined = later;
    for mut stall in earlier {
        let same = joined.iter().position(|s| s.mechanism == stall.mechanism);
        if let Some(at) = same {
            let after = joined.swap_remove(at);
            let both = [stall.added_delay_ms, after.added_delay_ms];
            stall.added_delay_ms = mixed(&both.map(|added| (added, Points::default()))).0;
            stall.count += after.count;
            stall.seconds += after.seconds;
            stall.seconds_lower += after.seconds_lower;
            stall.seconds_upper += after.seconds_upper;
            if after.added_delay_ms.max > stall.added_delay_ms.max {
                stall.worst_frames = after.worst_frames;
            }
        }
        joined.push(stall);
    }
    joined.sort_by_key(|stall| stall.mechanism);
    for stall in &mut joined {
        stall.share_of_time =
            if duration_s > 0.0 { (stall.seconds / duration_s).min(1.0) } else { 0.0 };
    }
    joined
}

fn waits(earlier: Vec<Wait>, later: Vec<Wait>) -> Vec<Wait> {
    let mut joined = later;
    for wait in earlier {
        match joined.iter_mut().find(|w| w.cause == wait.cause) {
            Some(same) => {
                same.count += wait.count;
                same.seconds += wait.seconds;
            }
            None => joined.push(wait),
        }
    }
    joined.sort_by_key(|wait| wait.cause);
    joined
}

/// The delays of the messages of both.
fn messages(earlier: &Direction, later: &Direction) -> (AddedDelay, Points) {
    let of = |direction: &Direction| {
        let mut added = direction.added_delay_ms;
        if added.source == NOTHING_HELD {
            // Then messages are not counted; each segment is one at least.
            added.messages = direction.segments;
        }
        (added, direction.plots.delay_cdf.clone())
    };
    mixed(&[of(earlier), of(later)])
}

/// Two distributions as one, each weighed with its messages. Without points, a distribution is known by its quantiles.
fn mixed(stretches: &[(AddedDelay, Points); 2]) -> (AddedDelay, Points) {
    let [a, b] = stretches.each_ref().map(|stretch| stretch.0);
    let mut steps: Vec<(f64, f64)> = stretches.iter().flat_map(steps_of).collect();
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = steps.iter().map(|step| step.1).sum();
    let quantile = |share: f64| {
        let mut below = 0.0;
        let reached = steps.iter().find(|step| {
            below += step.1;
            below >= share * total
        });
        reached.or(steps.last()).map_or(0.0, |step| step.0)
    };
    let added = AddedDelay {
        messages: a.messages + b.messages,
        delayed: a.delayed + b.delayed,
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        max: a.max.max(b.max),
        source: if b.source == NOTHING_HELD { a.source } else { b.source },
    };
    let mut cdf = Points::default();
    if added.source != NOTHING_HELD {
        for i in 0..=CDF_POINTS {
            let share = i as f64 / CDF_POINTS as f64;
            cdf.push(quantile(share), share);
        }
    }
    (added, cdf)
}

/// Delays, milliseconds, each with the messages that it stands for.
fn steps_of((added, cdf): &(AddedDelay, Points)) -> Vec<(f64, f64)> {
    let messages = added.messages as f64;
    if cdf.x.is_empty() {
        let known = [(added.p50, 0.5), (added.p95, 0.45), (added.p99, 0.04), (added.max, 0.01)];
        return known.map(|(delay, share)| (delay, share * messages)).to_vec();
    }
    let each = messages / cdf.x.len() as f64;
    cdf.x.iter().map(|delay| (*delay, each)).collect()
}

/// [`AddedDelay::source`] where nothing was held.
const NOTHING_HELD: &str = "none";

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(messages: u64, p50: f64, max: f64, source: &'static str) -> AddedDelay {
        AddedDelay { messages, delayed: messages / 2, p50, p95: max, p99: max, max, source }
    }

    #[test]
    fn a_stretch_without_holds_thins_out_the_delays_of_the_other() {
        let held = (delays(100, 40.0, 44.0, "upper_bound"), Points::default());
        let quiet = (delays(900, 0.0, 0.0, NOTHING_HELD), Points::default());
        let (joined, cdf) = mixed(&[held, quiet]);
        assert_eq!((joined.messages, joined.source), (1_000, "upper_bound"));
        assert!(joined.p50.abs() < 1e-9, "{joined:?}");
        assert!((joined.p95 - 40.0).abs() < 1e-9, "{joined:?}");
        assert!((joined.max - 44.0).abs() < 1e-9, "{joined:?}");
        assert_eq!(cdf.x.len(), CDF_POINTS + 1);
    }

    #[test]
    fn equal_stretches_keep_their_quantiles() {
        let one = || (delays(50, 10.0, 20.0, "period"), Points::default());
        let (joined, _) = mixed(&[one(), one()]);
        assert!((joined.p50 - 10.0).abs() < 1e-9 && (joined.p95 - 20.0).abs() < 1e-9);
        assert_eq!(joined.messages, 100);
    }
}

//! How far the server's clock is ahead of the client's, and how fast it gains.
//!
//! Stamped at both ends, a packet to the server shows `offset + its time on the way`, and one to the client
//! `offset - its time on the way`. No time on the way is negative, so the offset, a straight line over time, lies below all
//! points of the first kind and above all of the second. Only points on the convex hulls bind (S. B. Moon, P. Skelly,
//! D. Towsley, "Estimation and removal of clock skew from network delay measurements", INFOCOM 1999; for both ways
//! L. Zhang, Z. Liu, C. H. Xia, "Clock synchronization algorithms for network measurements", INFOCOM 2002). Where between
//! the two hulls the line lies no capture can say: half of the least round trip, if both ways are alike.

use crate::judged::{Clock, OneWay};

/// A point: client's time, server's less client's, ns, and whether the packet went to the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) at: u64,
    pub(super) ahead: i64,
    pub(super) to_server: bool,
}

/// A straight line between both hulls.
#[derive(Clone, Debug)]
pub(super) struct Line {
    origin: u64,
    /// In the middle of the time, ns.
    middle: f64,
    at_middle: f64,
    slope: f64,
    /// How wrong the offset can be at any time, ns.
    uncertainty: f64,
    matched: u64,
    /// Of offset in the middle, and of slope.
    intervals: [[f64; 2]; 2],
    misfit: f64,
}

impl Line {
    /// `None` unless packets went both ways.
    pub(super) fn of(points: impl Iterator<Item = Point>) -> Option<Self> {
        let points: Vec<Point> = points.collect();
        let origin = points.iter().map(|point| point.at).min()?;
        let end = points.iter().map(|point| point.at).max()?;
        let middle = (end - origin) as f64 / 2.0;
        // Offsets are kept small, so that nothing is lost in floats.
        let level = points.iter().map(|point| point.ahead).min()?;
        let side = |to_server: bool| -> Vec<(f64, f64)> {
            let of = points.iter().filter(|point| point.to_server == to_server);
            let sign = if to_server { 1.0 } else { -1.0 };
            let place =
                |point: &Point| ((point.at - origin) as f64, sign * (point.ahead - level) as f64);
            lower_hull(of.map(place).collect())
        };
        let (above, mut below) = (side(true), side(false));
        for point in &mut below {
            point.1 = -point.1;
        }
        if above.is_empty() || below.is_empty() {
            return None;
        }
        let slopes = slopes(&above, &below);
        let misfit = misfit(&above, &below, slopes);
        let (slope, bounds) = match slopes {
            // Clocks of one host have none.
            [low, high] if low <= high => (0.0_f64.clamp(low, high), [low, high]),
            [low, high] => (0.0, [high.max(-DRIFT_MAX), low.min(DRIFT_MAX)]),
        };
        let [low, high] = room(&above, &below, slope, middle);
        let best = f64::midpoint(low, high);
        let (mut interval, mut uncertainty) = ([low, high], (high - low).abs() / 2.0);
        for step in 0..=STEPS {
            let other = bounds[0] + (bounds[1] - bounds[0]) * f64::from(step) / f64::from(STEPS);
            let [least, greatest] = room(&above, &below, other, middle);
            if least <= greatest {
                interval = [interval[0].min(least), interval[1].max(greatest)];
                // At either end of the time, where lines of different slopes are farthest apart.
                let turned = (other - slope).abs() * middle;
                uncertainty = uncertainty.max((best - least).max(greatest - best) + turned);
            }
        }
        let level = level as f64;
        Some(Self {
            origin,
            middle,
            at_middle: level + best,
            slope,
            uncertainty,
            matched: points.len() as u64,
            intervals: [
                [level + interval[0].min(interval[1]), level + interval[1].max(interval[0])],
                bounds,
            ],
            misfit,
        })
    }

    /// The server's clock less the client's at the client's time, ns.
    pub(super) fn ahead(&self, at: u64) -> f64 {
        self.at_middle + self.slope * ((at as f64 - self.origin as f64) - self.middle)
    }

    /// The client's time when the server's clock showed `at`, ns.
    pub(super) fn at_client(&self, at: u64) -> f64 {
        at as f64 - self.ahead(at.saturating_add_signed(-(self.at_middle as i64)))
    }

    /// Time on the way of a packet that was stamped `sent` and `came`, ms.
    pub(super) fn one_way_ms(&self, sent: u64, came: u64, to_server: bool) -> f64 {
        let ahead = self.ahead(if to_server { sent } else { came });
        let passed = came as i64 - sent as i64;
        (passed as f64 + if to_server { -ahead } else { ahead }) / 1e6
    }

    /// Quantiles of times on the way.
    pub(super) fn spread(&self, delays: &mut [f64]) -> Option<OneWay> {
        delays.sort_by(f64::total_cmp);
        let at =
            |share: f64| delays.get(((delays.len() - 1) as f64 * share).round() as usize).copied();
        let [min, p50, p95, max] =
            [0.0, 0.5, 0.95, 1.0].map(|share| if delays.is_empty() { None } else { at(share) });
        Some(OneWay {
            min: min?,
            p50: p50?,
            p95: p95?,
            max: max?,
            uncertainty: self.uncertainty / 1e6,
        })
    }

    pub(super) fn clock(&self) -> Clock {
        let [offset, drift] = self.intervals;
        Clock {
            offset_ms: self.at_middle / 1e6,
            offset_interval_ms: offset.map(|ns| ns / 1e6),
            drift_ppm: self.slope * 1e6,
            drift_interval_ppm: drift.map(|slope| slope * 1e6),
            matched: self.matched,
            misfit_ms: self.misfit / 1e6,
        }
    }
}

/// The convex hull from below, by rising time (A. M. Andrew's monotone chain).
fn lower_hull(mut points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in points {
        if hull.last().is_some_and(|last| last.0 >= point.0) {
            continue;
        }
        while let [.., a, b] = hull[..]
            && (b.0 - a.0) * (point.1 - a.1) <= (b.1 - a.1) * (point.0 - a.0)
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// Least and greatest slope of a line below all of `above` and above all of `below`, no steeper than clocks drift; the least
/// exceeds the greatest where there is none.
fn slopes(above: &[(f64, f64)], below: &[(f64, f64)]) -> [f64; 2] {
    let mut bounds = [-DRIFT_MAX, DRIFT_MAX];
    for high in above {
        for low in below {
            let (run, rise) = (high.0 - low.0, high.1 - low.1);
            if run > 0.0 {
                bounds[1] = bounds[1].min(rise / run);
            } else if run < 0.0 {
                bounds[0] = bounds[0].max(rise / run);
            }
        }
    }
    bounds
}

/// Least and greatest height at `middle` of a line of this slope between both hulls.
fn room(above: &[(f64, f64)], below: &[(f64, f64)], slope: f64, middle: f64) -> [f64; 2] {
    let height = |point: &(f64, f64)| point.1 + slope * (middle - point.0);
    let low = below.iter().map(height).fold(f64::NEG_INFINITY, f64::max);
    let high = above.iter().map(height).fold(f64::INFINITY, f64::min);
    [low, high]
}

/// By how much the best line misses, ns.
fn misfit(above: &[(f64, f64)], below: &[(f64, f64)], slopes: [f64; 2]) -> f64 {
    if slopes[0] <= slopes[1] {
        return 0.0;
    }
    let best = (0..=STEPS).map(|step| {
        let slope = -DRIFT_MAX + 2.0 * DRIFT_MAX * f64::from(step) / f64::from(STEPS);
        let [low, high] = room(above, below, slope, 0.0);
        low - high
    });
    best.fold(f64::INFINITY, f64::min).max(0.0)
}

/// A clock that is steered moves by 500 ppm at most (adjtimex(2)); two can by twice that.
const DRIFT_MAX: f64 = 1e-3;
/// Slopes that are tried over their interval.
const STEPS: u32 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets each way every 10 ms for `seconds`, at least 4 and 6 ms on the way, with queues; the server's clock so far
    /// ahead and so much faster.
    fn points(seconds: u64, ahead_ns: i64, ppm: f64) -> Vec<Point> {
        let point = |index: u64| {
            let at = 1_700_000_000_000_000_000 + index * 5_000_000;
            let clock = ahead_ns + (index as f64 * 5e6 * ppm / 1e6) as i64;
            let queue = (index * 7919 % 13) as i64 * 300_000;
            let to_server = index.is_multiple_of(2);
            let way = if to_server { 4_000_000 + queue } else { -6_000_000 - queue };
            Point { at, ahead: clock + way, to_server }
        };
        (0..seconds * 200).map(point).collect()
    }

    #[test]
    fn the_offset_lies_within_its_interval_and_is_off_by_half_the_difference_of_both_ways() {
        for ahead in [0, 3_700_000, -86_400_000_000_000] {
            let clock = Line::of(points(20, ahead, 0.0).into_iter()).unwrap().clock();
            let truth = ahead as f64 / 1e6;
            assert!((clock.offset_ms - truth + 1.0).abs() < 0.01, "{ahead}: {clock:?}");
            let [low, high] = clock.offset_interval_ms;
            assert!(low <= truth && truth <= high && high - low < 12.0, "{ahead}: {clock:?}");
            assert!(clock.misfit_ms == 0.0, "{clock:?}");
        }
    }

    #[test]
    fn drift_is_found_where_it_shows() {
        let clock = Line::of(points(600, 5_000_000, 80.0).into_iter()).unwrap().clock();
        let [low, high] = clock.drift_interval_ppm;
        assert!(low <= 80.0 && 80.0 <= high && high - low < 40.0, "{clock:?}");
    }

    #[test]
    fn a_clock_that_was_set_is_told() {
        let mut points = points(20, 0, 0.0);
        let half = points.len() / 2;
        points[half..].iter_mut().for_each(|point| point.ahead += 200_000_000);
        let clock = Line::of(points.into_iter()).unwrap().clock();
        assert!(clock.misfit_ms > 50.0, "{clock:?}");
    }

    #[test]
    fn one_way_alone_aligns_nothing() {
        let one_way = points(5, 0, 0.0).into_iter().filter(|point| point.to_server);
        assert!(Line::of(one_way).is_none());
    }
}

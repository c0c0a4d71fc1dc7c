//! An application's beat that is not held: its segments only seem to wait for ACKs.
//!
//! Where the period of the writes happens to be that of data, ACK and round trip together, every
//! segment follows an ACK, held or not. Three things tell. Waits that vary: a beat makes up for them, so
//! that intervals are more alike than gaps; after a release gaps are. Where waits do not vary: a beat
//! that falls on the round trip to the sender by chance is rare, and one elsewhere is not. A beat goes on
//! where no ACK comes. And held segments gather: in a chain of them some carry two messages, sooner or
//! later.

use acklab_core::math;

use super::release::Release;
use crate::inferred::replay::{Departure, Replay};
use crate::inferred::writes::{UNIT_MIN, gcd};
use crate::inferred::{RoundTrips, Sample};

/// Logarithm of how much likelier it is that the segments that follow their ACKs were held than that
/// they kept a beat; `apart` are the intervals of the others.
pub(super) fn against(
    clustered: &[&Departure],
    apart: &[f64],
    replay: &Replay,
    release: &Release,
    trips: &RoundTrips,
) -> f64 {
    let gap = |d: &&Departure| d.gap_ms().unwrap_or(0.0);
    let gaps = Sample::new(clustered.iter().map(gap).collect());
    let intervals = Sample::new(clustered.iter().map(|d| d.interval_ms()).collect());
    let waits = Sample::new(clustered.iter().map(|d| d.interval_ms() - gap(d)).collect());
    let count = clustered.len() as f64;
    let grain = GRAIN_MS + trips.grain_ms;
    let alike = math::ln((intervals.iqr() + grain) / (gaps.iqr() + grain)).clamp(-1.0, 1.0);
    let varied = VARIED_MS + trips.grain_ms;
    // Where they are nearly as spread, how few they are decides that, and a path's jitter.
    let nearly = alike.abs() * count.sqrt() <= NEARLY && waits.iqr() >= varied;
    let each = if nearly {
        follows_its_wait(clustered.iter().map(|d| (gap(d), d.interval_ms())))
    } else {
        alike
    };
    let told = if waits.iqr() >= varied || intervals.iqr() >= varied {
        count.min(MOST_TOLD) * each
    } else {
        0.0
    };
    let chained = clustered.windows(2).filter(|w| w[1].before == w[0].time).count();
    let (len, same) = common_len(clustered);
    let form = if gathers(clustered, len, replay) {
        GATHERED
    } else if chained * 2 < clustered.len() {
        UNCHAINED
    } else if same * 10 >= clustered.len() * 8
        && (clustered.len() >= LONG_CHAIN || !is_sharp(&gaps, trips))
    {
        -NEVER_GATHERED
    } else {
        0.0
    };
    let middle = intervals.median();
    let reach = SAME_MS.max(SAME_SHARE * middle).max(1.5 * intervals.iqr());
    let same = |interval: &&f64| (**interval - middle).abs() <= reach.min(0.1 * middle);
    let alike_apart = apart.iter().filter(same).count();
    // So many were let go by ACKs that the capture lacks.
    let unseen = replay.damage.missing * count;
    let more = alike_apart as f64 > unseen + 2.0 * unseen.sqrt();
    let kept = more && alike_apart >= APART_MIN && alike_apart * 3 >= apart.len();
    let elsewhere = if kept { ELSEWHERE } else { 0.0 };
    told + placed(middle, release, trips) + form - RARER - elsewhere
}

/// What waits and intervals say of each other, for each cycle: after a release the interval is the wait and a gap that knows
/// nothing of it; on a beat the gap makes up for the wait, and the interval knows nothing of it. By ranks, so that
/// neither a path's jitter nor an outlier decides.
fn follows_its_wait(cycles: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (gaps, intervals): (Vec<f64>, Vec<f64>) = cycles.take(CYCLES).unzip();
    let waits: Vec<f64> = intervals.iter().zip(&gaps).map(|(i, gap)| i - gap).collect();
    let waits = ranks(&waits);
    let unrelated = |other: &[f64]| {
        let r = correlation(&waits, &ranks(other));
        (1.0 - r * r).max(LEAST_UNRELATED)
    };
    (0.5 * math::ln(unrelated(&gaps) / unrelated(&intervals))).clamp(-1.0, 1.0)
}

/// Place of each value in their order, equals at the middle of theirs, from the middle of all.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for run in order.chunk_by(|a, b| values[*a].total_cmp(&values[*b]).is_eq()) {
        let place = first as f64 + 0.5 * (run.len() - 1) as f64;
        for i in run {
            ranks[*i] = place - 0.5 * (values.len() - 1) as f64;
        }
        first += run.len();
    }
    ranks
}

/// Of values around 0.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0, |sum, (x, y)| sum + x * y);
    let both = (product(a, a) * product(b, b)).sqrt();
    if both > 0.0 { product(a, b) / both } else { 0.0 }
}

/// Whether `near`, which left shortly after an ACK, may be on one beat with `held`, which left with it: their
/// intervals are alike. Free writes on a beat are near ACKs, too, and held ones then fall out of it.
pub(super) fn share(held: &[&Departure], near: &[&Departure]) -> bool {
    let near = Sample::new(near.iter().map(|d| d.interval_ms()).collect());
    let reach = SAME_MS.max(1.5 * near.iqr());
    let on_it = |d: &&&Departure| (d.interval_ms() - near.median()).abs() <= reach;
    near.len() < APART_MIN || held.iter().filter(on_it).count() * 2 >= held.len()
}

/// What the place of the gaps says: at the round trip to the sender, or at none because the capture was
/// made there, a beat falls only by chance; elsewhere it may be anywhere.
fn placed(interval_ms: f64, release: &Release, trips: &RoundTrips) -> f64 {
    let chance = math::ln((interval_ms / (PLACE_MS + release.spread_ms)).max(1.0));
    let off = match trips.far_ms {
        Some(_) if trips.handshake => release.misplaced(trips),
        _ => ((release.at_ms - 0.5 * trips.grain_ms) / (PLACE_MS + trips.grain_ms)).abs(),
    };
    chance + RARER - off.min(2.0 * chance + RARER)
}

/// The length that most segments have, and how many do.
fn common_len(clustered: &[&Departure]) -> (u64, usize) {
    let mut lengths: Vec<u64> = clustered.iter().map(|d| u64::from(d.len)).collect();
    lengths.sort_unstable();
    let runs = lengths.chunk_by(|a, b| a == b).map(|run| (run[0], run.len()));
    runs.max_by_key(|run| run.1).unwrap_or_default()
}

/// Whether the gaps are those of a kernel that waited: equal, and never before the ACK was there.
fn is_sharp(gaps: &Sample, trips: &RoundTrips) -> bool {
    let far = trips.far_ms.filter(|_| trips.handshake).unwrap_or(0.0);
    gaps.iqr() < SHARP_MS && (far..=far + REACTION_MS).contains(&gaps.median())
}

/// Whether segments carry several messages: some share a divisor with the others that is smaller
/// than either, or all are multiples of the first segment, which nothing held back; or their lines, of various numbers,
/// are told, and the first segment has one at most.
fn gathers(clustered: &[&Departure], len: u64, replay: &Replay) -> bool {
    let arrivals = &replay.arrivals;
    if replay.by_lines {
        let place = |d: &&Departure| arrivals.binary_search_by_key(&d.end, |a| a.end).ok();
        let many = |at: usize| at > 0 && arrivals[at].frames >= arrivals[at - 1].frames + 2;
        let several = clustered.iter().filter_map(place).filter(|at| many(*at)).count();
        return several >= DOUBLES_MIN && several * 10 >= clustered.len() * 3;
    }
    let lengths = clustered.iter().map(|d| u64::from(d.len));
    let first = arrivals.first().map_or(0, |a| a.end);
    let several = |unit: u64| unit >= UNIT_MIN && len >= 2 * unit && len.is_multiple_of(unit);
    let others: Vec<u64> = lengths.filter(|l| *l != len).collect();
    let related = others.iter().filter(|l| l.is_multiple_of(len) || several(gcd(len, **l))).count();
    several(first) || (related >= DOUBLES_MIN && related * 10 >= others.len() * 8)
}

/// Clocks of captures jitter by some tens of microseconds; less variation says nothing.
const GRAIN_MS: f64 = 0.05;
/// Two standard errors of the logarithm of a ratio of two interquartile ranges, for one cycle.
const NEARLY: f64 = 2.4;
/// So many cycles show how waits and intervals go together; no share is less than this.
const CYCLES: usize = 256;
const LEAST_UNRELATED: f64 = 0.01;
/// Waits and intervals that vary by less tell nothing of each other.
const VARIED_MS: f64 = 0.2;
/// Cycles that count; what follows is more of the same.
const MOST_TOLD: f64 = 25.0;
/// A release follows the round trip this closely.
const PLACE_MS: f64 = 0.5;
/// Segments of several messages that are more than a hiccup of the application.
const DOUBLES_MIN: usize = 2;
/// What they say.
const GATHERED: f64 = 8.0;
/// What it says that in a chain of equal ones none ever does.
const NEVER_GATHERED: f64 = 8.0;
/// Of so many one does, sooner or later, unless a write comes for each ACK: held or not, that is a beat.
const LONG_CHAIN: usize = 20;
/// A release by the kernel is this sharp, a timer of an application is not; and it comes this soon.
const SHARP_MS: f64 = 0.05;
const REACTION_MS: f64 = 0.3;
/// What it says that segments which follow ACKs do not follow each other.
const UNCHAINED: f64 = 3.0;
/// Intervals of the others that are the same: so close, and so many; what that says.
const SAME_MS: f64 = 0.5;
const SAME_SHARE: f64 = 0.05;
const APART_MIN: usize = 3;
const ELSEWHERE: f64 = 12.0;
/// Beats are commoner than holds.
const RARER: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits and gaps, ms, of a header and a body kept for a delayed ACK over jitter of 3 ms, as a run of the truth lab had them
    /// at the receiver: by chance the intervals are more alike than the gaps.
    #[test]
    fn intervals_that_follow_their_waits_are_no_beat_however_alike() {
        let seen: [(f64, f64); 40] = [
            (0.01, 3.8),
            (41.7, 4.38),
            (42.4, 5.37),
            (40.81, 5.16),
            (43.22, 3.51),
            (42.87, 5.08),
            (43.3, 5.74),
            (43.03, 3.91),
            (41.78, 2.82),
            (42.31, 5.15),
            (42.76, 5.95),
            (41.78, 4.43),
            (43.7, 1.98),
            (40.8, 3.87),
            (40.53, 6.09),
            (42.76, 1.67),
            (41.09, 5.65),
            (41.56, 5.65),
            (43.23, 2.45),
            (43.79, 2.79),
            (42.16, 4.52),
            (44.97, 3.16),
            (43.22, 3.03),
            (45.77, 4.5),
            (46.24, 4.91),
            (40.53, 5.28),
            (44.03, 3.55),
            (41.26, 6.27),
            (40.91, 3.95),
            (41.0, 2.24),
            (43.97, 4.17),
            (40.61, 2.5),
            (41.33, 5.89),
            (43.17, 2.74),
            (42.86, 5.72),
            (42.69, 4.57),
            (43.53, 3.55),
            (40.55, 5.46),
            (43.51, 5.04),
            (42.03, 5.5),
        ];
        let of = |of: fn(&(f64, f64)) -> f64| Sample::new(seen.iter().map(of).collect());
        assert!(of(|one| one.0 + one.1).iqr() < of(|one| one.1).iqr());
        let each = follows_its_wait(seen.iter().map(|(wait, gap)| (*gap, wait + gap)));
        assert!(each > 0.1, "{each}");
        // A beat whose gaps make up for the same waits.
        let beat = seen.iter().map(|(wait, gap)| (60.0 - wait + 0.1 * gap, 60.0 + 0.1 * gap));
        let each = follows_its_wait(beat);
        assert!(each < -0.5, "{each}");
    }
}

//! Message boundaries, sizes, and how many messages a segment carries.
//!
//! Boundaries come from framing where a protocol fits; else from sizes, where most small segments
//! are multiples of one size that occurs by itself; else each segment counts as one message.

use crate::inferred::replay::Arrival;
use crate::noted::framing::Framing;

/// How messages were told apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    /// By the framing of a protocol.
    Framing(Framing),
    /// By a size of which segments are multiples.
    Size(u32),
    /// Not at all: a segment is a message.
    Segment,
}

impl Unit {
    /// The unit of a direction.
    pub(crate) fn of(arrivals: &[Arrival], framing: Option<Framing>) -> Self {
        let framed = arrivals.last().is_some_and(|a| a.frames > 0);
        match framing {
            Some(found) if framed => Self::Framing(found),
            _ => size_unit(arrivals).map_or(Self::Segment, Self::Size),
        }
    }

    /// Bytes of one message, where they are known.
    pub(crate) fn bytes(self) -> Option<u32> {
        match self {
            Self::Framing(framing) => framing.size,
            Self::Size(bytes) => Some(bytes),
            Self::Segment => None,
        }
    }

    /// Name of the source in the result.
    pub(crate) fn source(self) -> &'static str {
        match self {
            Self::Framing(_) => "framing",
            Self::Size(_) => "sizes",
            Self::Segment => "segments",
        }
    }
}

/// The size of equal writes that gathered, where no segment carries a single one: what divides all
/// lengths that occur more than once, two multiples of it at least. Only a beat that fits proves it
/// (see [`super::beat::Beat::fills_its_segments`]).
pub(crate) fn gathered_unit(arrivals: &[Arrival]) -> Option<u32> {
    let mut sizes: Vec<u64> = lengths(arrivals).filter(|l| *l > 0).collect();
    if sizes.len() < SEGMENTS_MIN {
        return None;
    }
    sizes.sort_unstable();
    let mut unit = 0;
    let mut kinds = 0;
    for run in sizes.chunk_by(|a, b| a == b).filter(|run| run.len() >= 2) {
        unit = gcd(unit, run[0]);
        kinds += 1;
    }
    let fit = sizes.iter().filter(|s| unit > 0 && s.is_multiple_of(unit)).count();
    (kinds >= 2 && unit >= UNIT_MIN && fit * 20 >= sizes.len() * 19).then_some(unit as u32)
}

/// Lengths of consecutive segments.
fn lengths(arrivals: &[Arrival]) -> impl Iterator<Item = u64> + '_ {
    arrivals.iter().skip(1).map(|a| u64::from(a.len))
}

fn size_unit(arrivals: &[Arrival]) -> Option<u32> {
    let mut sizes: Vec<u64> = lengths(arrivals).filter(|l| *l > 0).collect();
    if sizes.len() < SEGMENTS_MIN {
        return None;
    }
    sizes.sort_unstable();
    let total = sizes.len() as f64;
    let mut best = None;
    let mut from = 0;
    while from < sizes.len() {
        let size = sizes[from];
        let to = sizes.partition_point(|s| *s <= size);
        let alone = (to - from) as f64 / total;
        if alone >= ALONE_SHARE {
            let fit = sizes.iter().filter(|s| s.is_multiple_of(size)).count() as f64 / total;
            if fit >= FIT_SHARE && best.is_none() && gathers(&sizes, size) {
                best = Some(size as u32);
            }
        }
        from = to;
    }
    best
}

/// Whether segments hold whole numbers of messages of this size as they gather: all one, or two and
/// three among them, or many numbers. Two sizes far apart are two kinds of message.
fn gathers(sizes: &[u64], unit: u64) -> bool {
    let mut numbers: Vec<u64> =
        sizes.iter().filter(|s| s.is_multiple_of(unit)).map(|s| s / unit).collect();
    numbers.dedup();
    numbers.iter().all(|n| *n <= 3) || numbers.len() > 2
}

/// The message size that the ends of small segments show: a small segment empties the sender's
/// buffer, so it ends where a message ends, and equal messages leave a common divisor.
pub(crate) fn boundary_unit(arrivals: &[Arrival], mss: u32) -> Option<u32> {
    let mss = u64::from(mss);
    let mut ends = Vec::new();
    for w in arrivals.windows(2) {
        let len = u64::from(w[1].len);
        if len > 0 && !len.is_multiple_of(mss) {
            ends.push(w[1].end);
        }
    }
    let steps: Vec<u64> = ends.windows(2).map(|w| w[1] - w[0]).collect();
    if steps.len() < SEGMENTS_MIN / 2 {
        return None;
    }
    let guesses = steps.windows(2).take(GUESSES).map(|w| gcd(w[0], w[1]));
    guesses
        .filter(|g| *g >= UNIT_MIN)
        .filter(|g| steps.iter().filter(|s| s.is_multiple_of(*g)).count() * 10 >= steps.len() * 9)
        .max()
        .map(|g| g as u32)
}

/// The length of one message: that of the first segment, which nothing held, or of the smallest, if nearly all others
/// are multiples of it, of various kinds. A power of two below [`UNIT_MIN`] may be the padding of a protocol.
pub(super) fn alone(lengths: &[u32]) -> Option<u32> {
    let (first, others) = lengths.split_first()?;
    let divides = |one: &u32| {
        let padding = u64::from(*one) < UNIT_MIN && (one.is_power_of_two() || *one < ODD_MIN);
        let odd = others.iter().filter(|len| !len.is_multiple_of(*one));
        !padding && odd.count() * 20 <= others.len() && are_various(others, *one)
    };
    let smallest = others.iter().min();
    [Some(first), smallest].into_iter().flatten().copied().find(|one| *one > 0 && divides(one))
}

/// Whether segments carry various numbers of messages of this length.
fn are_various(lengths: &[u32], one: u32) -> bool {
    let mut numbers: Vec<u32> = lengths.iter().map(|len| len / one).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len() >= VARIOUS
}

/// Greatest common divisor.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Messages complete at the end of each segment.
pub(crate) fn messages_per_segment(arrivals: &[Arrival], unit: Unit) -> Vec<u32> {
    let mut counts = Vec::with_capacity(arrivals.len());
    let mut before: Option<&Arrival> = None;
    for arrival in arrivals {
        let len = u64::from(arrival.len);
        counts.push(match unit {
            Unit::Framing(_) => {
                arrival.frames.saturating_sub(before.map_or(0, |b| b.frames)) as u32
            }
            Unit::Size(bytes) if len.is_multiple_of(u64::from(bytes)) => {
                (len / u64::from(bytes)).max(1) as u32
            }
            Unit::Size(_) | Unit::Segment => 1,
        });
        before = Some(arrival);
    }
    counts
}

/// So many numbers of messages in a segment are no program's choice.
const VARIOUS: usize = 4;
/// Messages of fewer bytes divide too many lengths by chance.
const ODD_MIN: u32 = 5;
/// Shares of segments that must fit for a size to be a unit, and occur alone for it to be known.
const FIT_SHARE: f64 = 0.8;
/// See `FIT_SHARE`.
const ALONE_SHARE: f64 = 0.05;
/// Fewer segments show no size.
const SEGMENTS_MIN: usize = 8;

/// Common divisors below this come from the padding of a protocol (16-byte cipher blocks).
pub(crate) const UNIT_MIN: u64 = 20;
/// Pairs of steps tried for a divisor.
const GUESSES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use acklab_core::time::Time;

    fn arrivals(lengths: &[u64]) -> Vec<Arrival> {
        let mut end = 0;
        lengths
            .iter()
            .map(|l| {
                end += l;
                Arrival { time: Time::from_nanos(end), end, len: *l as u32, frames: 0 }
            })
            .collect()
    }

    #[test]
    fn coalesced_messages_show_the_size_of_one() {
        let a = arrivals(&[374, 48, 48, 96, 96, 96, 144, 96, 48, 96, 96, 96]);
        let unit = Unit::of(&a, None);
        assert_eq!(unit, Unit::Size(48));
        assert_eq!(messages_per_segment(&a, unit), [1, 1, 1, 2, 2, 2, 3, 2, 1, 2, 2, 2]);
    }

    #[test]
    fn mixed_sizes_show_none() {
        let a = arrivals(&[10, 129, 10, 129, 15, 106, 10, 129, 10, 129, 31]);
        assert_eq!(Unit::of(&a, None), Unit::Segment);
    }
}

//! The departures that can be told: where nothing but Nagle's algorithm or the application can have
//! kept the segment.

use crate::inferred::replay::Departure;
use crate::inferred::{RoundTrips, Sample};

/// Of each departure whether an ACK that carried nothing else may have let it go, and nothing but
/// Nagle's algorithm or the application can have kept it.
pub(super) fn testable(departures: &[Departure], mss: u32, trips: &RoundTrips) -> Vec<bool> {
    let common = common_flights(departures);
    let fit = |d: &Departure| {
        let marks = d.marks;
        let repaired = marks.recovery && d.flight_before >= mss;
        let kept = marks.window || repaired || marks.gap;
        let room = marks.broke || has_room(d, mss) || common.contains(&d.flight_before);
        d.ack.is_some() && marks.pure && !kept && room
    };
    let mut told: Vec<bool> = departures.iter().map(fit).collect();
    let maybe: Vec<usize> =
        (0..told.len()).filter(|i| told[*i] && may_answer(&departures[*i], trips)).collect();
    if !sharper_than_answers(maybe.iter().map(|i| &departures[*i]).collect(), trips) {
        for i in maybe {
            told[i] = false;
        }
    }
    told
}

/// Whether the congestion window cannot have been full before the ACK.
fn has_room(d: &Departure, mss: u32) -> bool {
    d.flight_before <= INITIAL_WINDOW_SEGMENTS * mss
        || u64::from(d.flight_before) * 10 < u64::from(d.flight_max) * 9
}

/// Flights that came to an end again and again without growing: writes of one size, each with a tail
/// that waits. A congestion window grows with every round.
fn common_flights(departures: &[Departure]) -> Vec<u32> {
    let mut flights: Vec<u32> = departures.iter().map(|d| d.flight_before).collect();
    flights.sort_unstable();
    flights
        .chunk_by(|a, b| a == b)
        .filter(|run| run.len() >= SAME_FLIGHTS)
        .map(|run| run[0])
        .collect()
}

/// Whether segments that could be answers to data of the peer follow the ACK far more sharply than
/// that data.
fn sharper_than_answers(maybe: Vec<&Departure>, trips: &RoundTrips) -> bool {
    let far = trips.far_ms.unwrap_or(0.0);
    let gap = |d: &Departure| d.gap_ms().unwrap_or(f64::INFINITY);
    let count = maybe.len();
    let at_ack: Vec<&Departure> =
        maybe.into_iter().filter(|d| gap(d) <= far * (1.0 + JITTER_SHARE) + REACTION_MS).collect();
    if at_ack.len() < ANSWERS_MIN || at_ack.len() * 2 < count {
        return false;
    }
    let after_peer = |d: &&Departure| d.peer_after.map(|t| d.time.since(t).as_millis_f64());
    let peer = Sample::new(at_ack.iter().filter_map(after_peer).collect());
    let ack = Sample::new(at_ack.iter().map(|d| gap(d)).collect());
    ack.iqr() * SHARPER < peer.iqr()
}

/// Whether data of the peer, sent after the ACK, reached the sender before the segment left.
pub(in crate::inferred) fn may_answer(d: &Departure, trips: &RoundTrips) -> bool {
    if d.hears_unseen {
        return true;
    }
    let Some(peer) = d.peer_after else { return false };
    let far = trips.far_ms.unwrap_or(0.0);
    d.time.since(peer).as_millis_f64() >= far * EARLY_SHARE - (far * JITTER_SHARE).min(0.2)
}

/// A host reacts to an ACK within its own scheduling grain: 1 ms is the tick of the slowest stacks
/// that answer from a timer loop.
const REACTION_MS: f64 = 1.0;
/// Share of the way to the sender that jitter may add.
const JITTER_SHARE: f64 = 0.1;
/// No segment crosses the path in less than this share of the least round trip seen.
const EARLY_SHARE: f64 = 0.96;
/// Fewer possible answers say nothing.
const ANSWERS_MIN: usize = 8;
/// A flight that ended so often without growing is no congestion window.
const SAME_FLIGHTS: usize = 4;
/// Releases follow the ACK this much more sharply than data that came after it.
const SHARPER: f64 = 3.0;
/// Initial window of RFC 6928 section 2: with no more in flight, no congestion
/// window has closed.
const INITIAL_WINDOW_SEGMENTS: u32 = 10;

//! The candidates that can be told: where nothing but Nagle's algorithm or the application can have
//! kept the segment.

use acklab_core::time::Time;

use super::limits::{EARLY_SHARE, JITTER_SHARE, REACTION_MS, SLOPE_POINTS};
use crate::inferred::{RoundTrips, Sample};
use crate::noted::Notes;
use crate::noted::values::Candidate;

/// Those before `end`, in order.
pub(super) fn testable<'a>(
    notes: &'a Notes<'_>,
    trips: &RoundTrips,
    end: Time,
) -> Vec<&'a Candidate> {
    let common = common_flights(&notes.candidates);
    let fit = |c: &&Candidate| {
        c.time < end
            && is_testable(c)
            && (has_room(c, notes.mss()) || common.contains(&c.flight_before))
    };
    let fit: Vec<&Candidate> = notes.candidates.iter().filter(fit).collect();
    let (maybe, mut tested): (Vec<&Candidate>, Vec<&Candidate>) =
        fit.into_iter().partition(|c| may_answer(c, trips));
    if sharper_than_answers(&maybe, trips) {
        tested.extend(maybe);
        tested.sort_by_key(|c| (c.time, c.frame));
    }
    tested
}

/// Whether nothing but Nagle, the congestion window or the application can have kept the segment.
fn is_testable(c: &Candidate) -> bool {
    c.marks.pure && !c.marks.window && !c.marks.recovery
}

/// Whether the congestion window cannot have been full before the ACK.
fn has_room(c: &Candidate, mss: u32) -> bool {
    c.flight_before <= INITIAL_WINDOW_SEGMENTS * mss
        || u64::from(c.flight_before) * 10 < u64::from(c.flight_max) * 9
}

/// Flights that came to an end again and again without growing: writes of one size, each with a tail
/// that waits. A congestion window grows with every round.
fn common_flights(candidates: &[Candidate]) -> Vec<u32> {
    let mut flights: Vec<u32> = candidates.iter().map(|c| c.flight_before).collect();
    flights.sort_unstable();
    flights
        .chunk_by(|a, b| a == b)
        .filter(|run| run.len() >= SAME_FLIGHTS)
        .map(|run| run[0])
        .collect()
}

/// Whether segments that could be answers to data of the peer follow the ACK far more sharply than
/// that data.
fn sharper_than_answers(maybe: &[&Candidate], trips: &RoundTrips) -> bool {
    let far = trips.far_ms.unwrap_or(0.0);
    let at_ack: Vec<&&Candidate> =
        maybe.iter().filter(|c| c.gap_ms() <= far * (1.0 + JITTER_SHARE) + REACTION_MS).collect();
    if at_ack.len() < SLOPE_POINTS || at_ack.len() * 2 < maybe.len() {
        return false;
    }
    let after_peer = |c: &&&Candidate| c.peer_after.map(|t| c.time.since(t).as_millis_f64());
    let peer = Sample::new(at_ack.iter().filter_map(after_peer).collect());
    let ack = Sample::new(at_ack.iter().map(|c| c.gap_ms()).collect());
    ack.iqr() * SHARPER < peer.iqr()
}

/// Whether data of the peer, sent after the ACK, reached the sender before the segment left.
pub(in crate::inferred) fn may_answer(c: &Candidate, trips: &RoundTrips) -> bool {
    let Some(peer) = c.peer_after else { return false };
    let far = trips.far_ms.unwrap_or(0.0);
    c.time.since(peer).as_millis_f64() >= far * EARLY_SHARE - (far * JITTER_SHARE).min(0.2)
}

/// A flight that ended so often without growing is no congestion window.
const SAME_FLIGHTS: usize = 4;
/// Releases follow the ACK this much more sharply than data that came after it.
const SHARPER: f64 = 3.0;
/// Initial window of RFC 5681 section 3.1 for an MSS of 1460: with no more in flight, no congestion
/// window has closed.
const INITIAL_WINDOW_SEGMENTS: u32 = 3;

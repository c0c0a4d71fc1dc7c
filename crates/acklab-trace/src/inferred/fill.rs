//! Segments that left because the queue had grown to one MSS.
//!
//! With Nagle on and data unacknowledged, small writes pile up until a full segment is ready; then
//! it leaves without any ACK. On the wire: single full segments at the pace of the application, no
//! ACK just before them, data in flight all the while. A paced or bottlenecked bulk transfer looks
//! the same, as does an application that writes whole segments, so the small writes themselves must
//! show: by framing (many messages per segment), by PSH on the full segments (Linux sets it on every
//! segment that a write ended in), by the common divisor of where small segments end, or by small
//! segments that nothing held back.

use super::hold::MAYBE;
use super::holds::Decision;
use super::replay::{Departure, Fill, Replay};
use super::{Hold, Messages, RoundTrips, Sample};
use crate::noted::Notes;

/// The segments that filled up, unless the small ones show that Nagle's algorithm was off; `by_ack` are the holds that
/// ACKs released.
pub(super) fn find(
    notes: &Notes<'_>,
    replay: &Replay,
    messages: &Messages,
    trips: &RoundTrips,
    decision: &Decision,
    by_ack: &[Hold],
) -> Vec<Hold> {
    let strays = STRAY_SHARE * notes.counts.small().max(1) as f64;
    if decision.breaks as f64 > strays && decision.mostly_on() < 0.5 {
        return Vec::new();
    }
    let alone = away_from_acks(&replay.fills, trips);
    // Bulk comes in bursts or at ACKs; what is left over by chance is not worth a claim.
    let bulk = notes.counts.burst + (replay.fills.len() - alone.len()) as u64;
    if alone.len() < FILLS_MIN || (alone.len() as u64) < bulk || are_uneven(&replay.fills) {
        return Vec::new();
    }
    let message_bytes = messages.bytes(notes.mss());
    let small = message_bytes.map_or_else(|| are_pushed(&alone), |bytes| bytes * 2 <= notes.mss());
    if !small
        && !are_free_writes_small(replay, notes.mss(), by_ack)
        && !is_steady(replay, by_ack, &alone)
    {
        return Vec::new();
    }
    let pauses = Sample::new(alone.iter().map(|f| pause_ms(f)).collect());
    // The application filled one segment after another at its own pace; a pause far longer than
    // that is the application's.
    let longest = pauses.median() * 4.0;
    alone.iter().filter(|f| pause_ms(f) <= longest).map(|f| Hold::filled(f)).collect()
}

/// Where nothing shows that the writes were small: the lone full segments that may have filled up all the same, as Nagle's
/// algorithm held others back and something small was unacknowledged. They are for the bounds alone.
pub(super) fn open(
    replay: &Replay,
    trips: &RoundTrips,
    decision: &Decision,
    by_ack: &[Hold],
) -> Vec<Hold> {
    if decision.mostly_on() < 0.5 || by_ack.len() < FILLS_MIN {
        return Vec::new();
    }
    let alone = away_from_acks(&replay.fills, trips);
    let open = alone.into_iter().filter(|fill| fill.small_outstanding);
    open.map(|fill| Hold { probability: MAYBE, ..Hold::filled(fill) }).collect()
}

/// The lone full segments that no ACK let go.
fn away_from_acks<'a>(fills: &'a [Fill], trips: &RoundTrips) -> Vec<&'a Fill> {
    let far = trips.far_ms.unwrap_or(0.0);
    let at_ack = |f: &Fill, early: f64, late: f64| {
        let since = f.since_ack as f64 / 1e6;
        f.since_ack != u64::MAX && (far - early..=far + late).contains(&since)
    };
    // After a handshake far is a least round trip, so that no release comes sooner.
    let early = far * if trips.handshake { 0.005 } else { 0.2 } + ACK_EARLY_MS;
    let wide = |f: &Fill| at_ack(f, early, far * 0.1 + ACK_BEFORE_MS);
    let narrow = |f: &Fill| at_ack(f, ACK_EARLY_MS, ACK_BEFORE_MS);
    // Where many clearly came at no ACK, those near one came there by chance, unless it is exact.
    let apart = fills.iter().filter(|f| !f.burst && !wide(f)).count();
    let chance = apart * APART_SHARE >= fills.len();
    let by_an_ack = |f: &Fill| if chance { narrow(f) } else { wide(f) };
    fills.iter().filter(|f| !f.burst && !by_an_ack(f)).collect()
}

/// Whether full segments left at paces too different for one program's small writes: those of one large write, which
/// leave one behind the other as the window, a pacing timer or the slowest link lets them.
fn are_uneven(fills: &[Fill]) -> bool {
    let pauses = Sample::new(fills.iter().filter(|f| !f.burst).map(pause_ms).collect());
    pauses.quantile(0.8) > UNEVEN_RATIO * pauses.quantile(0.2)
}

/// Whether PSH on most of them shows that a write ended in each.
fn are_pushed(alone: &[&Fill]) -> bool {
    let pushed = alone.iter().filter(|f| f.push && f.small_outstanding).count();
    pushed * 10 >= alone.len() * 8
}

/// Whether the segments that nothing held back show what the application writes, and that is small.
fn are_free_writes_small(replay: &Replay, mss: u32, by_ack: &[Hold]) -> bool {
    if by_ack.len() < FILLS_MIN {
        return false;
    }
    let free = cleared(replay).filter(|d| !is_among(d, by_ack));
    let sizes = Sample::new(free.map(|d| f64::from(d.len)).collect());
    sizes.len() >= FILLS_MIN && sizes.quantile(0.9) * 4.0 <= f64::from(mss)
}

/// Whether what left is in proportion to how long it gathered: a stream of small writes at a steady
/// rate. Large writes leave tails whose size knows nothing of the wait.
fn is_steady(replay: &Replay, by_ack: &[Hold], alone: &[&Fill]) -> bool {
    if by_ack.len() < STEADY_MIN {
        return false;
    }
    let held = cleared(replay).filter(|d| is_among(d, by_ack));
    let mut rates: Vec<f64> = Vec::new();
    let mut lengths: Vec<f64> = Vec::new();
    for c in held.take(STEADY_MAX) {
        rates.push(f64::from(c.len) / c.time.since(c.before).as_millis_f64().max(0.001));
        lengths.push(f64::from(c.len));
    }
    let (rates, lengths) = (Sample::new(rates), Sample::new(lengths));
    let of_fills = Sample::new(alone.iter().map(|f| f64::from(f.len) / pause_ms(f)).collect());
    let steady = rates.quantile(0.75) <= STEADY_RATIO * rates.quantile(0.25);
    let alike = of_fills.median() <= STEADY_RATIO * rates.median()
        && rates.median() <= STEADY_RATIO * of_fills.median();
    let varied = lengths.quantile(0.9) >= 2.0 * lengths.quantile(0.1);
    steady && alike && varied
}

/// The small segments that left after an ACK.
fn cleared(replay: &Replay) -> impl Iterator<Item = &Departure> {
    replay.departures.iter().filter(|d| !d.marks.broke)
}

fn is_among(d: &Departure, holds: &[Hold]) -> bool {
    holds.binary_search_by_key(&d.end, |h| h.end).is_ok()
}

fn pause_ms(f: &Fill) -> f64 {
    f.time.since(f.before).as_millis_f64()
}

/// Fewer lone full segments say nothing.
const FILLS_MIN: usize = 3;
/// Small segments that break Nagle's rule, as a share of the small ones.
const STRAY_SHARE: f64 = 0.02;
/// An ACK shortly before, or more in flight than this, and the congestion window let it go.
const ACK_BEFORE_MS: f64 = 0.5;
/// An ACK that cannot have been there by more than the jitter of a quiet path.
const ACK_EARLY_MS: f64 = 0.2;
/// Four writes or more, at any times, fill segments at paces less different.
const UNEVEN_RATIO: f64 = 4.0;
/// One in so many full segments away from any ACK shows that ACKs do not release them.
const APART_SHARE: usize = 3;

/// So many holds show a rate; more need not be looked at.
const STEADY_MIN: usize = 8;
/// See `STEADY_MIN`.
const STEADY_MAX: usize = 1_000;
/// Rates of a steady stream differ by less than this factor.
const STEADY_RATIO: f64 = 2.5;

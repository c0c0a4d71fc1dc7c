//! Segments that left because the queue had grown to one MSS.
//!
//! With Nagle on and data unacknowledged, small writes pile up until a full segment is ready; then
//! it leaves without any ACK. On the wire: single full segments at the pace of the application, no
//! ACK just before them, data in flight all the while. A paced or bottlenecked bulk transfer looks
//! the same, as does an application that writes whole segments, so the small writes themselves must
//! show: by framing (many messages per segment), by PSH on the full segments (Linux sets it on every
//! segment that a write ended in), by the common divisor of where small segments end, or by small
//! segments that nothing held back.

use super::Recorder;
use super::holds::Hold;
use super::records::{Counts, Fill, Log};
use crate::infer::path::Path;
use crate::infer::spread::Sample;
use crate::infer::writes::boundary_unit;

/// Fewer lone full segments say nothing.
const FILLS_MIN: usize = 3;
/// Small segments that break Nagle's rule, as a share of the small ones.
const STRAY_SHARE: f64 = 0.02;
/// An ACK shortly before, or more in flight than this, and the congestion window let it go.
const ACK_BEFORE_MS: f64 = 0.5;
/// An ACK that cannot have been there by more than the jitter of a quiet path.
const ACK_EARLY_MS: f64 = 0.2;
/// One in so many full segments away from any ACK shows that ACKs do not release them.
const APART_SHARE: usize = 3;

/// So many holds show a rate; more need not be looked at.
const STEADY_MIN: usize = 8;
/// See `STEADY_MIN`.
const STEADY_MAX: usize = 1_000;
/// Rates of a steady stream differ by less than this factor.
const STEADY_RATIO: f64 = 2.5;

/// What shows that the writes were small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmallWrites {
    /// Framing: this many bytes a message on average.
    Framing(u32),
    /// Where nothing was unacknowledged, small segments left by themselves.
    Free,
    /// The bytes that left grow with the time since the segment before.
    Steady,
    /// PSH on most full segments that left alone.
    Push,
}

/// The segments that filled up, and what shows it; `violations` broke Nagle's rule, `by_ack` are the
/// holds that ACKs released.
pub fn filled(
    recorder: &Recorder,
    message_bytes: Option<u32>,
    mss: u32,
    path: &Path,
    violations: u64,
    by_ack: &[Hold],
) -> Option<(Vec<Hold>, SmallWrites)> {
    let log = recorder.log.as_deref()?;
    let message_bytes = message_bytes.or_else(|| boundary_unit(&log.arrivals, mss));
    let counts = &recorder.counts;
    if breaks_the_rule(counts, violations) {
        return None;
    }
    let far = path.far_ms.unwrap_or(0.0);
    let at_ack = |f: &Fill, early: f64, late: f64| {
        let since = f.since_ack as f64 / 1e6;
        f.since_ack != u64::MAX && (far - early..=far + late).contains(&since)
    };
    // After a handshake far is a least round trip, so that no release comes sooner.
    let early = far * if path.handshake { 0.005 } else { 0.2 } + ACK_EARLY_MS;
    let wide = |f: &Fill| at_ack(f, early, far * 0.1 + ACK_BEFORE_MS);
    let narrow = |f: &Fill| at_ack(f, ACK_EARLY_MS, ACK_BEFORE_MS);
    // Where many clearly came at no ACK, those near one came there by chance, unless it is exact.
    let apart = log.fills.iter().filter(|f| !f.burst && !wide(f)).count();
    let chance = apart * APART_SHARE >= log.fills.len();
    let by_an_ack = |f: &Fill| if chance { narrow(f) } else { wide(f) };
    let alone: Vec<&Fill> = log.fills.iter().filter(|f| !f.burst && !by_an_ack(f)).collect();
    // Bulk comes in bursts or at ACKs; what is left over by chance is not worth a claim.
    let bulk = counts.burst + (log.fills.len() - alone.len()) as u64;
    if alone.len() < FILLS_MIN || (alone.len() as u64) < bulk {
        return None;
    }
    let shown = small_writes(&alone, message_bytes, mss)
        .or_else(|| free_writes(log, by_ack, mss).then_some(SmallWrites::Free))
        .or_else(|| is_steady(log, by_ack, &alone).then_some(SmallWrites::Steady))?;
    let pauses = Sample::new(alone.iter().map(|f| pause_ms(f)).collect());
    // The application filled one segment after another at its own pace; a pause far longer than
    // that is the application's.
    let longest = pauses.median() * 4.0;
    let holds = alone.iter().filter(|f| pause_ms(f) <= longest).map(|f| hold_of(f)).collect();
    Some((holds, shown))
}

/// Whether the segments that nothing held back show what the application writes, and that is small.
fn free_writes(log: &Log, by_ack: &[Hold], mss: u32) -> bool {
    if by_ack.len() < FILLS_MIN {
        return false;
    }
    let free = log
        .candidates
        .iter()
        .filter(|c| by_ack.binary_search_by_key(&c.frame, |h| h.frame).is_err());
    let sizes = Sample::new(free.map(|c| f64::from(c.len)).collect());
    sizes.len() >= FILLS_MIN && sizes.quantile(0.9) * 4.0 <= f64::from(mss)
}

/// Whether what left is in proportion to how long it gathered: a stream of small writes at a steady
/// rate. Large writes leave tails whose size knows nothing of the wait.
fn is_steady(log: &Log, by_ack: &[Hold], alone: &[&Fill]) -> bool {
    if by_ack.len() < STEADY_MIN {
        return false;
    }
    let held = log
        .candidates
        .iter()
        .filter(|c| by_ack.binary_search_by_key(&c.frame, |h| h.frame).is_ok());
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

fn breaks_the_rule(counts: &Counts, violations: u64) -> bool {
    let small = counts.segments - counts.full;
    violations as f64 > STRAY_SHARE * small.max(1) as f64
}

fn pause_ms(f: &Fill) -> f64 {
    f.time.since(f.before).as_millis_f64()
}

fn small_writes(alone: &[&Fill], message_bytes: Option<u32>, mss: u32) -> Option<SmallWrites> {
    if let Some(bytes) = message_bytes {
        return (bytes * 2 <= mss).then_some(SmallWrites::Framing(bytes));
    }
    let pushed = alone.iter().filter(|f| f.push && f.small_outstanding).count();
    (pushed * 10 >= alone.len() * 8).then_some(SmallWrites::Push)
}

fn hold_of(f: &Fill) -> Hold {
    Hold {
        frame: f.frame,
        before: f.before,
        release: f.time,
        ack: f.time,
        ack_delay_ms: None,
        pure: false,
        filled: true,
        end: f.end,
        written: f.before,
    }
}

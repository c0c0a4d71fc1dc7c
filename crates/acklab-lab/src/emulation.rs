//! Emulation of links for real traffic (Linux, root): the contract's JSON of what was measured.
//!
//! The emulator itself is acklab-net's. Here is what a result means: a run is valid if the 99th
//! percentile of its lateness is within a bound and the emulator lost no frame of its own accord.

use acklab_core::time::Span;
use serde_json::{Value, json};

pub use acklab_core::link::Outage;
pub use acklab_net::emulate::vocabulary::{self, VocabularyError};
pub use acklab_net::emulate::{
    EmulateError, Emulated, Emulation, MAX_PATHS, Path, Quantiles, Tally, init, run,
};

/// The JSON's schema name.
pub const SCHEMA: &str = "acklab.emulate/1";

/// Why a run cannot be trusted, in words; empty: it can.
pub fn doubts(emulated: &Emulated, max_lateness: Span) -> Vec<String> {
    let mut doubts = Vec::new();
    let p99 = emulated.lateness.quantile(0.99);
    if p99 > max_lateness {
        doubts.push(format!(
            "1 % of the packets left more than {:.0} us late, and {:.0} us are allowed: run it on a \
             quieter machine{}, or raise --max-lateness",
            micros(p99),
            micros(max_lateness),
            if emulated.fifo { "" } else { " or where SCHED_FIFO is permitted" },
        ));
    }
    if emulated.mishaps > 0 {
        let mishaps = emulated.mishaps;
        doubts.push(format!("the emulator itself lost {mishaps} packets; lower the rate"));
    }
    doubts
}

/// The result as one JSON object.
pub fn to_json(emulation: &Emulation, emulated: &Emulated, max_lateness: Span) -> Value {
    let path = |[forward, reverse]: &[Tally; 2]| json!({ "forward": direction(forward), "reverse": direction(reverse) });
    let doubts = doubts(emulated, max_lateness);
    let lateness = &emulated.lateness;
    json!({
        "schema": SCHEMA,
        "seed": emulation.seed,
        "paths": emulated.paths.iter().map(path).collect::<Vec<_>>(),
        "lateness_us": {
            "packets": lateness.count(),
            "p50": micros(lateness.quantile(0.5)),
            "p99": micros(lateness.quantile(0.99)),
            "max": micros(lateness.max()),
        },
        "mishaps": emulated.mishaps,
        "valid": doubts.is_empty(),
        "doubts": doubts,
        "command": {
            "status": emulated.status,
            "seconds": emulated.seconds,
            "interrupted": emulated.interrupted,
        },
        "server": { "status": emulated.server_status },
        "timing": {
            "scheduler": if emulated.fifo { "SCHED_FIFO" } else { "SCHED_OTHER" },
            "max_lateness_us": micros(max_lateness),
        },
    })
}

fn direction(tally: &Tally) -> Value {
    json!({
        "packets": tally.packets,
        "bytes": tally.bytes,
        "delivered": tally.delivered,
        "delivered_bytes": tally.delivered_bytes,
        "dropped": tally.dropped,
        "lost": tally.lost,
        "marked": tally.marked,
        "corrupted": tally.corrupted,
        "duplicated": tally.duplicated,
        "queue_ms": {
            "mean": tally.queue.mean().as_millis_f64(),
            "p95": tally.queue.quantile(0.95).as_millis_f64(),
            "max": tally.queue.max().as_millis_f64(),
        },
    })
}

/// Microseconds.
pub fn micros(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}

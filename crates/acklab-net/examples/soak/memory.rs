//! What the process holds, both ends and the road: allocated bytes, counted, and resident memory, sampled.
//!
//! A receiver that does not read is owed up to its window of 24 MiB, and its sender as much; so growth is judged where
//! nothing is owed: some time after all has arrived, with the connection still open, and when both ends are gone.

use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Resident memory is looked at so often.
const SAMPLE: Duration = Duration::from_secs(5);
/// The most that may be allocated when all has arrived and the connection is open, bytes.
const OPEN_MOST: usize = 12_000_000;
/// By what that which stays of a connection when both ends are gone may exceed what stayed of the first, bytes.
const STAYS: usize = 100_000;
/// The most resident memory at any time, bytes: what is owed at both ends, buffers of sockets, the road's queues, the program.
const RESIDENT_MOST: u64 = 90_000_000;

/// One connection's, bytes allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// All had arrived, and the connection was open.
    pub(crate) open: usize,
    /// Both ends were gone.
    pub(crate) after: usize,
}

/// Bytes allocated now.
pub(crate) fn allocated() -> usize {
    HEAP.current_usage()
}

/// Bytes of resident memory, sample by sample, until the other end of the channel is dropped.
pub(crate) fn watch(stopped: &Receiver<()>) -> Vec<u64> {
    let mut samples = Vec::new();
    while stopped.recv_timeout(SAMPLE) == Err(RecvTimeoutError::Timeout) {
        let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let resident = pages.split(' ').nth(1).and_then(|word| word.parse::<u64>().ok());
        samples.push(resident.unwrap_or(0) * 4096);
    }
    samples
}

/// What is wrong with it, if anything.
pub(crate) fn judge(held: &[Held], resident: &[u64]) -> Result<(), String> {
    let most = resident.iter().max().copied().unwrap_or(0);
    println!("resident at most {:.1} MB", most as f64 / 1e6);
    if let Some(round) = held.iter().position(|held| held.open > OPEN_MOST) {
        let open = held[round].open;
        return Err(format!("round {}: {open} bytes allocated when all had arrived", round + 1));
    }
    let first = held.first().map_or(0, |held| held.after);
    if let Some(round) = held.iter().position(|held| held.after > first + STAYS) {
        let after = held[round].after;
        return Err(format!(
            "memory grows: {after} bytes stay after round {}, after the first {first}",
            round + 1
        ));
    }
    if most > RESIDENT_MOST {
        return Err(format!("{most} bytes of resident memory, at most {RESIDENT_MOST} wanted"));
    }
    Ok(())
}

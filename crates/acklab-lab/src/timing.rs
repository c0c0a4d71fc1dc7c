//! What a run cost: the only place that reads clocks, and no result depends on it.
//!
//! CPU time and peak memory are the kernel's account of this process (`getrusage`), so they cover
//! all threads; where there is no such account they are zero. Linux counts in the peak what the
//! parent held before `exec`, so there it is read from `/proc` instead.

use std::time::Instant;

use serde_json::{Value, json};

/// Cost of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// CPU time of all threads, seconds.
    pub cpu_s: f64,
    /// Elapsed time, seconds.
    pub wall_s: f64,
    /// Events processed in virtual time.
    pub events: u64,
    /// Greatest resident memory of the process so far, MB (10^6 bytes).
    pub peak_rss_mb: f64,
}

impl Timing {
    /// The contract's JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "cpu_s": self.cpu_s,
            "wall_s": self.wall_s,
            "events": self.events,
            "peak_rss_mb": self.peak_rss_mb,
        })
    }
}

/// Runs from its start until it is read.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    wall: Instant,
    cpu_s: f64,
}

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a run took is reported beside its result and decides nothing in it"
    )]
    pub fn start() -> Self {
        Self { wall: Instant::now(), cpu_s: process_account().0 }
    }

    /// What the time since the start cost, with `events` processed in it.
    pub fn read(&self, events: u64) -> Timing {
        let (cpu_s, peak_rss_mb) = process_account();
        Timing {
            cpu_s: cpu_s - self.cpu_s,
            wall_s: self.wall.elapsed().as_secs_f64(),
            events,
            peak_rss_mb,
        }
    }
}

/// CPU seconds and peak resident MB of this process.
#[cfg(unix)]
fn process_account() -> (f64, f64) {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;

    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return (0.0, 0.0) };
    let cpu_us = (usage.user_time() + usage.system_time()).num_microseconds();
    // Linux and the BSDs count kilobytes of 1024 bytes, macOS counts bytes.
    let unit = if cfg!(target_os = "macos") { 1.0 } else { 1024.0 };
    let peak_rss = high_water_mark().unwrap_or(usage.max_rss() as f64 * unit);
    (cpu_us as f64 / 1e6, peak_rss / 1e6)
}

/// Peak resident bytes of this program, as Linux tells them in `/proc/self/status`.
#[cfg(unix)]
fn high_water_mark() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
}

#[cfg(not(unix))]
fn process_account() -> (f64, f64) {
    (0.0, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_time_and_memory() {
        let watch = Stopwatch::start();
        let mut sum = 0_u64;
        for i in 0..40_000_000_u64 {
            sum = std::hint::black_box(sum.wrapping_add(i * i));
        }
        let timing = watch.read(3);
        assert_eq!(timing.events, 3);
        assert!(timing.wall_s > 0.0, "{timing:?}");
        if cfg!(unix) {
            assert!(timing.cpu_s > 0.0 && timing.peak_rss_mb > 1.0, "{timing:?}");
        }
    }
}

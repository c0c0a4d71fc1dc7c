//! [`Clock`]: time since the job's time zero.

#![expect(
    clippy::disallowed_methods,
    reason = "the guest is in virtual time, and its applications wait for theirs"
)]

use std::thread;
use std::time::{Duration, SystemTime};

/// Counts from a time zero, in ns. Captures stamp frames with the same clock, the guest's time of day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    zero: SystemTime,
}

impl Clock {
    /// Whose time zero is `lead` ns from now.
    pub(super) fn starting_in(lead: u64) -> Self {
        Self { zero: SystemTime::now() + Duration::from_nanos(lead) }
    }

    /// Time zero, ns since the epoch.
    pub(super) fn zero(self) -> u64 {
        let since = self.zero.duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(0, |since| since.as_nanos() as u64)
    }

    /// The present, 0 before time zero.
    pub(super) fn now(self) -> u64 {
        SystemTime::now().duration_since(self.zero).map_or(0, |since| since.as_nanos() as u64)
    }

    /// Returns at `at`, at once if it is past.
    pub(super) fn sleep_until(self, at: u64) {
        let left = (self.zero + Duration::from_nanos(at)).duration_since(SystemTime::now());
        if let Ok(left) = left {
            thread::sleep(left);
        }
    }
}

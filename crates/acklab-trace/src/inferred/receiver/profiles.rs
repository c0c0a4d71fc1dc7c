//! The delayed-ACK timers of known systems: those that start when data arrives, and clocks that run on
//! their own.

/// A system's fixed delayed-ACK timer.
pub(super) struct Profile {
    pub(super) name: &'static str,
    pub(super) timer_ms: f64,
    /// Delays lie from `timer_ms - early` to `timer_ms + late`.
    early: f64,
    late: f64,
}

impl Profile {
    /// Whether its timer gives such a delay, milliseconds.
    pub(super) fn fits(&self, delay_ms: f64) -> bool {
        (self.timer_ms - self.early..=self.timer_ms + self.late).contains(&delay_ms)
    }
}

/// The timers of known systems. Linux: TCP_DELACK_MIN = HZ/25 (include/net/tcp.h), on a jiffy grid
/// of 1 to 10 ms; FreeBSD: net.inet.tcp.delacktime, 100 ms to 12.1, 40 ms since r360010; Windows 10
/// and Server 2019: DelayedAckTimeout 40 ms, 2012 to 2016: 50 ms, before: 200 ms (KB 328890); QNX
/// and NetBSD: TCP_DELACK_TICKS = hz/5; xnu: TCP_RETRANSHZ/10.
pub(super) const PROFILES: [Profile; 8] = [
    Profile { name: "linux", timer_ms: 40.0, early: 6.0, late: 10.0 },
    Profile { name: "freebsd-12.2", timer_ms: 40.0, early: 1.0, late: 2.0 },
    Profile { name: "windows-10", timer_ms: 40.0, early: 1.0, late: 2.0 },
    Profile { name: "windows-2012", timer_ms: 50.0, early: 1.0, late: 4.0 },
    Profile { name: "freebsd-12.1", timer_ms: 100.0, early: 1.5, late: 10.5 },
    Profile { name: "macos", timer_ms: 100.0, early: 1.5, late: 10.5 },
    Profile { name: "windows-7", timer_ms: 200.0, early: 3.0, late: 16.0 },
    Profile { name: "qnx-7.0", timer_ms: 200.0, early: 3.0, late: 11.0 },
];

/// Ticks of clocks that run on their own, longest first, and who has them.
pub(super) const TICKS: [(f64, &str); 6] = [
    (500.0, "bsd-slow-timer"),
    (250.0, "lwip"),
    (200.0, "bsd-4.4"),
    (100.0, "windows-7"),
    (50.0, "fixed-tick"),
    (20.0, "fixed-tick"),
];

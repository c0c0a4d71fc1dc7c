//! Where an emulation ran, as far as it decides what was measured.

use std::fs;

/// The machine, and both hosts' settings of TCP.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Release of the kernel; empty, as every other field, where the kernel does not say.
    pub kernel: String,
    /// Its clock source.
    pub clock: String,
    /// The load when it ended: over 1, 5 and 15 minutes, and what runs (proc_loadavg(5)).
    pub load: String,
    /// Processors that it may use.
    pub cpus: usize,
    /// What [`Sysctls`] the client's and the server's network had when their commands ended.
    pub sysctls: [Sysctls; 2],
}

/// Names under `net.ipv4` and their values (linux ip-sysctl.rst).
pub type Sysctls = Vec<(&'static str, String)>;

impl Environment {
    /// That of this machine, of hosts with these settings.
    pub(super) fn read(sysctls: [Sysctls; 2]) -> Self {
        Self {
            kernel: word("/proc/sys/kernel/osrelease"),
            clock: word("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            load: word("/proc/loadavg"),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            sysctls,
        }
    }
}

/// The settings of the network that the calling thread is in.
pub(super) fn sysctls() -> Sysctls {
    SYSCTLS.iter().map(|&name| (name, word(&format!("/proc/sys/net/ipv4/{name}")))).collect()
}

fn word(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Those that change when a segment or an ACK leaves.
const SYSCTLS: &[&str] = &[
    "tcp_congestion_control",
    "tcp_rmem",
    "tcp_wmem",
    "tcp_sack",
    "tcp_timestamps",
    "tcp_window_scaling",
    "tcp_ecn",
    "tcp_slow_start_after_idle",
    "tcp_autocorking",
    "tcp_no_metrics_save",
    "tcp_early_retrans",
    "tcp_recovery",
    "tcp_moderate_rcvbuf",
];

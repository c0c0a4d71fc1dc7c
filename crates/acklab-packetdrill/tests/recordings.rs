//! Goal: the simulated host does what the running kernel did.
//! Method: each recording (`make recordings`) has the calls of a program over Linux 6.18 and the segments that came to
//! it; the host gets both at the times at which the kernel did (with its milliseconds beginning where the kernel's
//! did, as the peer's echoes tell), and what leaves it is compared with what left the
//! kernel: segment by segment in order, where nothing but arrivals and calls decides, by counts and data in
//! flight where timers and the machine's load do.

mod recorded;

use std::fs;
use std::path::{Path, PathBuf};

use recorded::{Passed, Recording, same, sum};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings")
}

fn play(name: &str) -> Recording {
    let path = folder().join(format!("{name}.pkt"));
    let recording = recorded::play(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(recording.kernel.len() > 20, "{name} is a recording");
    recording
}

/// Where every segment that left is the kernel's, in order, with its window.
const EXACT: [&str; 17] = [
    "application-limited-receiver",
    "application-limited-sender",
    "bulk-lossy-receiver",
    "bulk-lossy-reno-receiver",
    "bulk-lossy-reno-sender",
    "bulk-lossy-sender",
    "ecn-receiver",
    "ecn-sender",
    "idle-restart-receiver",
    "idle-restart-sender",
    "ping-pong-receiver",
    "ping-pong-sender",
    "reordering-receiver",
    "small-messages-lossy-receiver",
    "small-messages-lossy-sender",
    "small-messages-receiver",
    "small-messages-sender",
];

/// Where the host parts from the kernel, behind how many segments that are the same, and in what (docs/packetdrill.md).
const PARTS: [(&str, usize, &str); 1] =
    [("reordering-sender", 91, "where a write waited for room")];

#[test]
fn what_the_kernel_sent_is_what_the_host_sends() {
    for name in EXACT {
        let Recording { kernel, host } = play(name);
        for (kernel, host) in kernel.iter().zip(&host) {
            assert_eq!((&kernel.what, kernel.window), (&host.what, host.window), "{name}");
            // Timers of kernels are late by an eighth of their time and two jiffies; what arrivals and calls cause is not.
            assert!(
                (kernel.at - host.at).abs() < 0.035,
                "{name}: {kernel:?}, the host at {}",
                host.at
            );
        }
        assert_eq!(kernel.len(), host.len(), "{name}");
    }
}

#[test]
fn where_the_host_parts_from_the_kernel_counts_are_near() {
    for (name, least, why) in PARTS {
        let recording = play(name);
        let (kernel, host) = (&recording.kernel, &recording.host);
        assert!(same(&recording) >= least, "{name} ({why}): parts at {}", same(&recording));
        // In other order the same, retransmissions included.
        assert_eq!(kernel.len(), host.len(), "{name} ({why})");
        assert_eq!(sum(kernel), sum(host), "{name} ({why})");
        let last = |side: &[Passed]| side.iter().map(|s| (s.seq + s.len, s.ack)).max();
        assert_eq!(last(kernel), last(host), "{name} ({why}): where it ends");
    }
}

#[test]
fn every_recording_is_compared() {
    let known: Vec<&str> = EXACT.into_iter().chain(PARTS.map(|(name, _, _)| name)).collect();
    for entry in fs::read_dir(folder()).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(known.contains(&name.as_str()), "{name} is compared with nothing");
    }
}

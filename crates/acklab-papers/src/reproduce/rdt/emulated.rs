//! What the experiments came to on real packets.

use acklab_stats::MeanInterval;
use serde::Serialize;

use super::paper::Row;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transfer {
    /// As the protocol measures it, seconds.
    pub seconds: f64,
    /// Bytes that left the sender, IP headers included.
    pub wire_bytes: u64,
    /// Packets that left it.
    pub packets: u64,
    /// The first packets as they left the source, path and sequence number; of the course protocol.
    #[serde(skip)]
    pub log: Vec<(usize, u16)>,
    /// 99th percentile of the emulator's lateness, us.
    #[serde(rename = "lateness_p99_us")]
    pub lateness_us: f64,
    /// 99th percentile of how late the course's sender woke, us: time that its processor was not there.
    #[serde(rename = "sender_woke_late_p99_us")]
    pub wake_us: Option<f64>,
    /// Why it cannot be trusted; empty if it can.
    pub doubts: Vec<String>,
}

/// Repetitions of one experiment with both protocols.
#[derive(Clone, Debug)]
pub struct Real {
    pub paper: Row,
    /// The course protocol.
    pub course: Vec<Transfer>,
    pub today: Vec<Transfer>,
}

impl Real {
    /// Of both protocols.
    pub fn transfers(&self) -> impl Iterator<Item = &Transfer> {
        self.course.iter().chain(&self.today)
    }

    /// Transfers that cannot be trusted.
    pub fn doubtful(&self) -> usize {
        self.transfers().filter(|transfer| !transfer.doubts.is_empty()).count()
    }

    /// The emulator's greatest lateness, us.
    pub fn lateness_us(&self) -> f64 {
        self.transfers().map(|transfer| transfer.lateness_us).fold(0.0, f64::max)
    }
}

/// The mean time with its 95 % interval; `None` below two transfers.
pub fn interval(transfers: &[Transfer]) -> Option<MeanInterval> {
    let seconds: Vec<f64> = transfers.iter().map(|transfer| transfer.seconds).collect();
    MeanInterval::from_replications(&seconds, 0.95)
}

/// Mean bytes on the wire for each byte of a file of `size`.
pub fn wire_share(transfers: &[Transfer], size: usize) -> f64 {
    let bytes: u64 = transfers.iter().map(|transfer| transfer.wire_bytes).sum();
    bytes as f64 / (transfers.len() as f64 * size as f64)
}

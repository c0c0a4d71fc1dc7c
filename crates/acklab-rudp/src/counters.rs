//! What a path has done, for reports.

/// Sums since the path began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Packets and bytes of UDP payload sent.
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Bytes of UDP payload received, of authentic packets.
    pub(super) bytes_received: u64,
    /// Bytes declared lost and not acknowledged since.
    pub(super) lost: u64,
    /// Bytes of content sent, copies included, and acknowledged for the first time.
    pub(super) content: u64,
    pub(super) delivered: u64,
    /// Recoveries begun, and probe time-outs that expired.
    pub(super) recoveries: u64,
    pub(super) timeouts: u64,
}

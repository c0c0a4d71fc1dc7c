//! [`Limit`]: how much may wait in a queue.

/// How much may wait, *not* counting the packet in service. Both limits hold.
///
/// "A buffer of 17 packets" means two things. Seventeen may wait behind the one that is being
/// transmitted: [`Limit::packets`]`(17)`, as in ns-2 and ns-3. Or the one being transmitted still holds
/// its place, as in a router whose buffer the transmitter reads from: `packets(16)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Packets.
    pub packets: u32,
    /// Bytes, as the IP layer counts them.
    pub bytes: u64,
}

impl Limit {
    /// No limit.
    pub const NONE: Self = Self { packets: u32::MAX, bytes: u64::MAX };

    /// At most `packets` packets wait.
    pub const fn packets(packets: u32) -> Self {
        Self { packets, bytes: u64::MAX }
    }

    /// At most `bytes` bytes wait.
    pub const fn bytes(bytes: u64) -> Self {
        Self { packets: u32::MAX, bytes }
    }

    /// Whether a packet of `size` bytes fits where `packets` and `bytes` wait.
    pub const fn admits(&self, packets: u32, bytes: u64, size: u32) -> bool {
        packets < self.packets && bytes.saturating_add(size as u64) <= self.bytes
    }
}

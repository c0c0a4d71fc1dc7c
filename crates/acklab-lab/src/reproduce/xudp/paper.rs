//! What the thesis prints: its tables 8.1 to 8.7, and what each of them measured.

use serde::Serialize;

/// A table of section 8; KB are 1000 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Printed {
    /// Which.
    pub table: &'static str,
    /// Total data acknowledged, KB.
    pub kilobytes: f64,
    /// Total transmission time, s.
    pub seconds: f64,
    /// Network bandwidth utilization, KB/s.
    pub rate_kbps: f64,
    /// Average round trip time, ms.
    pub rtt_ms: f64,
    /// Average window size, packets.
    pub window: f64,
    /// Total parcels received, and of how many, where the receiver counted.
    pub parcels: Option<(u64, u64)>,
}

/// Test C of 26 February 1997: the stream, with the 100 ms timer.
pub const TABLE_8_1: Printed = Printed {
    table: "8.1",
    kilobytes: 516.1,
    seconds: 54.215,
    rate_kbps: 9.52,
    rtt_ms: 103.6,
    window: 3.9,
    parcels: None,
};

/// Test C of 27 February 1997: without the timer, and after "tweaking all of the congestion avoidance
/// algorithms".
pub const TABLE_8_2: Printed = Printed {
    table: "8.2",
    kilobytes: 1068.766,
    seconds: 5.175,
    rate_kbps: 206.525,
    rtt_ms: 16.9,
    window: 10.7,
    parcels: None,
};

/// 17 March 1997: ten frames of 14,400 bytes a second.
pub const TABLE_8_5: Printed = Printed {
    table: "8.5",
    kilobytes: 4391.134,
    seconds: 29.779,
    rate_kbps: 147.457,
    rtt_ms: 13.8,
    window: 10.2,
    parcels: Some((291, 291)),
};

/// 16 March 1997: twenty of them.
pub const TABLE_8_7: Printed = Printed {
    table: "8.7",
    kilobytes: 6962.4,
    seconds: 32.65,
    rate_kbps: 213.243,
    rtt_ms: 19.5,
    window: 11.0,
    parcels: Some((448, 581)),
};

/// The factor between tables 8.1 and 8.2.
pub const FACTOR: f64 = TABLE_8_2.rate_kbps / TABLE_8_1.rate_kbps;

/// Bytes of a frame: 160 x 120 pixels of 6 bits (section 8.5).
pub const FRAME_BYTES: u32 = 14_400;
/// Time to obsolescence, seconds (section 8.5).
pub const FRAME_LIFE_S: u64 = 2;

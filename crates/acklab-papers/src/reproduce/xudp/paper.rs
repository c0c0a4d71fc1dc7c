//! What the thesis prints: its tables 8.1 to 8.11, and what each of them measured.

use serde::Serialize;

/// A table of section 8; KB are 1000 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Printed {
    /// Its number.
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

/// A table with its columns as they are printed: KB, s, KB/s, ms, packets.
const fn printed(table: &'static str, columns: [f64; 5], parcels: Option<(u64, u64)>) -> Printed {
    let [kilobytes, seconds, rate_kbps, rtt_ms, window] = columns;
    Printed { table, kilobytes, seconds, rate_kbps, rtt_ms, window, parcels }
}

/// Test C of 26 February 1997: the stream, with the 100 ms timer.
pub const TABLE_8_1: Printed = printed("8.1", [516.1, 54.215, 9.52, 103.6, 3.9], None);

/// Test C of 27 February 1997: without the timer, and after "tweaking all of the congestion avoidance
/// algorithms".
pub const TABLE_8_2: Printed = printed("8.2", [1068.766, 5.175, 206.525, 16.9, 10.7], None);

/// 17 March 1997: ten frames of 14,400 bytes a second.
pub const TABLE_8_5: Printed =
    printed("8.5", [4391.134, 29.779, 147.457, 13.8, 10.2], Some((291, 291)));

/// 16 March 1997: twenty of them.
pub const TABLE_8_7: Printed =
    printed("8.7", [6962.4, 32.65, 213.243, 19.5, 11.0], Some((448, 581)));

/// 17 March 1997: the same beside a program that loads the network.
pub const TABLE_8_9: Printed =
    printed("8.9", [3009.96, 39.299, 76.591, 46.1, 9.8], Some((198, 581)));

/// 17 March 1997: the same, the load taken away near the end.
pub const TABLE_8_11: Printed =
    printed("8.11", [4033.607, 33.206, 121.472, 50.1, 16.3], Some((265, 581)));

/// The tables with the bytes of their parcels.
pub const TABLES: [(Printed, u32); 6] = [
    (TABLE_8_1, PARCEL_BYTES),
    (TABLE_8_2, PARCEL_BYTES),
    (TABLE_8_5, FRAME_BYTES),
    (TABLE_8_7, FRAME_BYTES),
    (TABLE_8_9, FRAME_BYTES),
    (TABLE_8_11, FRAME_BYTES),
];

impl Printed {
    /// KB/s if one parcel of `bytes` at a time is sent in rounds of the mean window, and one round trip
    /// passes between parcels: what the mean window and round trip say about the rate.
    pub fn one_at_a_time_kbps(&self, bytes: u32) -> f64 {
        let packets = f64::from(bytes.div_ceil(PACKET_BYTES));
        f64::from(bytes) / (self.rtt_ms * (packets / self.window + 1.0))
    }

    /// KB/s if the window were always full.
    pub fn window_full_kbps(&self) -> f64 {
        self.window * f64::from(PACKET_BYTES) / self.rtt_ms
    }
}

/// The factor between tables 8.1 and 8.2.
pub const FACTOR: f64 = TABLE_8_2.rate_kbps / TABLE_8_1.rate_kbps;

/// Bytes of a frame: 160 x 120 pixels of 6 bits (section 8.5).
pub const FRAME_BYTES: u32 = 14_400;
/// Time to obsolescence, seconds (section 8.5).
pub const FRAME_LIFE_S: u64 = 2;
/// Bytes of a parcel of the stream (section 8.1).
pub const PARCEL_BYTES: u32 = 10_240;
/// Bytes of a packet (section 5).
pub const PACKET_BYTES: u32 = 512;

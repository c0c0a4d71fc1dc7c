//! Time stamps that a protocol carries in its messages: when the sender made them.
//!
//! C37.118 data frames hold SOC (seconds) and FRACSEC (fraction over TIME_BASE, section 6.2.2 of
//! C37.118.2). TIME_BASE stands in the configuration frame; where that was not captured it is the
//! smaller of the two values in use, 10^6 and 2^24 - 1, that no fraction exceeds. The stamps are
//! evidence for added delay beside the general method, which does not need them.

use acklab_core::time::Time;

use super::protocols::C37118;

/// Most stamps kept of one direction.
const STAMPS_MAX: usize = 65_536;
/// Bits 23 to 0 of FRACSEC and TIME_BASE; the rest are quality flags.
const FRACTION: u32 = 0x00FF_FFFF;

/// The stamp of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    /// When the segment with its header passed.
    arrival: Time,
    /// Seconds of the stamp.
    seconds: u32,
    /// Fraction, in units of the time base.
    fraction: u32,
}

/// The stamps of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct InBand {
    stamps: Vec<Stamp>,
    time_base: Option<u32>,
}

impl InBand {
    pub(super) fn on_header(&mut self, protocol: &str, arrival: Time, header: &[u8]) {
        if protocol != C37118 || header.len() < 14 {
            return;
        }
        let word = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        match header[1] >> 4 {
            0 if self.stamps.len() < STAMPS_MAX => {
                self.stamps.push(Stamp {
                    arrival,
                    seconds: word(6),
                    fraction: word(10) & FRACTION,
                });
            }
            2 | 3 | 5 if header.len() >= 18 => self.time_base = Some(word(14) & FRACTION),
            _ => {}
        }
    }

    /// Delay of each message above the least of all, milliseconds; empty without stamps.
    pub(super) fn delays_ms(&self) -> Vec<f64> {
        let largest = self.stamps.iter().map(|s| s.fraction).max().unwrap_or(0);
        let inferred = if largest <= 1_000_000 { 1_000_000 } else { FRACTION };
        let base = match self.time_base {
            Some(base) if base > largest => base,
            _ => inferred,
        };
        let raw: Vec<f64> = self
            .stamps
            .iter()
            .map(|s| {
                let stamp = u64::from(s.seconds) * 1_000_000_000
                    + u64::from(s.fraction) * 1_000_000_000 / u64::from(base);
                s.arrival.as_nanos().wrapping_sub(stamp) as i64 as f64 / 1e6
            })
            .collect();
        let least = raw.iter().copied().fold(f64::INFINITY, f64::min);
        raw.iter().map(|d| d - least).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data_frame(seconds: u32, fraction: u32) -> Vec<u8> {
        let mut header = vec![0xAA, 0x01, 0, 54, 0, 1];
        header.extend(seconds.to_be_bytes());
        header.extend(fraction.to_be_bytes());
        header
    }

    #[test]
    fn delays_are_above_the_least_and_the_base_is_inferred_from_the_fractions() {
        let mut stamps = InBand::default();
        for i in 0..3u64 {
            let arrival = Time::from_nanos((100_000 + 20 * i + 5 * i) * 1_000_000);
            stamps.on_header(C37118, arrival, &data_frame(100, 20_000 * i as u32));
        }
        let delays = stamps.delays_ms();
        assert!(
            delays.iter().zip([0.0, 5.0, 10.0]).all(|(a, b)| (a - b).abs() < 1e-6),
            "{delays:?}"
        );
        let mut wide = InBand::default();
        wide.on_header(C37118, Time::from_nanos(1_500_000_000), &data_frame(1, 8_388_607));
        wide.on_header(C37118, Time::from_nanos(2_510_000_000), &data_frame(2, 8_388_607));
        assert!((wide.delays_ms()[1] - 10.0).abs() < 1e-3);
    }
}

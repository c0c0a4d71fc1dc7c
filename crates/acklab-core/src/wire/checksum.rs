//! The Internet checksum: the ones' complement of the ones' complement sum (RFC 1071).

/// A sum under way. Every part but the last must be of even length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum(u32);

impl Checksum {
    /// Adds bytes, as big-endian words; an odd last byte counts as the high one.
    #[must_use]
    pub fn sum(self, bytes: &[u8]) -> Self {
        // Four bytes at a time: RFC 1071 section 2 (C). No packet is long enough to overflow 64 bits.
        let (words, rest) = bytes.as_chunks::<4>();
        let mut sum: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
        for (index, &byte) in rest.iter().enumerate() {
            sum += u64::from(byte) << [24, 16, 8][index];
        }
        sum = (sum & 0xffff_ffff) + (sum >> 32);
        sum = (sum & 0xffff) + (sum >> 16);
        sum += u64::from(self.0);
        sum = (sum & 0xffff) + (sum >> 16);
        Self(((sum & 0xffff) + (sum >> 16)) as u32)
    }

    /// The checksum; zero over bytes that contain a right one.
    pub const fn finish(self) -> u16 {
        !((self.0 & 0xffff) + (self.0 >> 16)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_sums_up() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Checksum::default().sum(&bytes).finish(), !0xddf2);
        assert_eq!(Checksum::default().sum(&[0xab]).finish(), !0xab00);
    }

    #[test]
    fn every_length_has_the_sum_of_its_words_one_by_one() {
        let bytes: Vec<u8> = (0..=255).chain([255; 90]).collect();
        for length in 0..bytes.len() {
            let (words, last) = bytes[..length].as_chunks::<2>();
            let mut plain: u32 =
                words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
            plain += last.first().map_or(0, |&last| u32::from(last) << 8);
            while plain > 0xffff {
                plain = (plain & 0xffff) + (plain >> 16);
            }
            assert_eq!(
                Checksum::default().sum(&bytes[..length]).finish(),
                !(plain as u16),
                "{length}"
            );
        }
    }
}

//! The Internet checksum: the ones' complement of the ones' complement sum (RFC 1071).

/// A sum under way. Every part but the last must be of even length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum(u32);

impl Checksum {
    /// Adds bytes, as big-endian words; an odd last byte counts as the high one.
    #[must_use]
    pub fn sum(self, bytes: &[u8]) -> Self {
        let mut sum = self.0;
        let (words, last) = bytes.as_chunks::<2>();
        for word in words {
            sum += u32::from(u16::from_be_bytes(*word));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        if let Some(&last) = last.first() {
            sum += u32::from(last) << 8;
        }
        Self((sum & 0xffff) + (sum >> 16))
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
}

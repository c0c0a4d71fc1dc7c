//! Varints: the two highest bits of the first byte give the length, the rest is the value, big-endian
//! (RFC 9000 section 16).

/// The largest value: 2^62 - 1.
pub const MAX: u64 = (1 << 62) - 1;

/// Bytes that `value` takes in its shortest form: 1, 2, 4 or 8.
pub const fn len(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Reads one varint of any form: the value and what follows it; `None` where it is cut off.
pub fn read(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let first = *bytes.first()?;
    match first >> 6 {
        0 => Some((u64::from(first), &bytes[1..])),
        1 => {
            let (field, rest) = bytes.split_first_chunk::<2>()?;
            Some((u64::from(u16::from_be_bytes(*field) & 0x3fff), rest))
        }
        2 => {
            let (field, rest) = bytes.split_first_chunk::<4>()?;
            Some((u64::from(u32::from_be_bytes(*field) & 0x3fff_ffff), rest))
        }
        _ => {
            let (field, rest) = bytes.split_first_chunk::<8>()?;
            Some((u64::from_be_bytes(*field) & MAX, rest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Writer;

    /// The examples of RFC 9000 appendix A.1.
    #[test]
    fn the_examples_of_the_rfc_are_read() {
        let table: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in table {
            assert_eq!(read(bytes), Some((value, &[][..])));
            assert_eq!(read(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn the_shortest_form_is_written() {
        for value in [0, 0x3f, 0x40, 0x3fff, 0x4000, 0x3fff_ffff, 0x4000_0000, MAX] {
            let mut bytes = [0; 8];
            let mut writer = Writer::new(&mut bytes);
            writer.put_varint(value);
            let written = writer.position();
            assert_eq!(written, len(value));
            assert_eq!(read(&bytes[..written]), Some((value, &[][..])));
        }
    }
}

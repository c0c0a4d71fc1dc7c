//! Cookies of fast open as Linux makes them: SipHash-2-4 (Aumasson and Bernstein, 2012) of the peer's address and the
//! host's under `tcp_fastopen_key`, so that scripts which know a key's cookie find it.

/// The key that scripts' runners set; a host's own is random.
pub(crate) const USUAL_KEY: [u32; 4] = [0xa1a1_a1a1, 0xb2b2_b2b2, 0xc3c3_c3c3, 0xd4d4_d4d4];

/// The addresses that scripts have unless they say otherwise: the peer's, then the host's.
const V4: [u8; 8] = [192, 0, 2, 1, 192, 168, 0, 1];
const V6: [u8; 32] = [
    0xfd, 0x3d, 0xfa, 0x7b, 0xd1, 0x7d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, // the peer
    0xfd, 0x3d, 0x0a, 0x0b, 0x17, 0xd6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
];

/// The cookie under a key.
pub(crate) fn cookie(key: [u32; 4], v6: bool) -> Vec<u8> {
    let half = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let addresses: &[u8] = if v6 { &V6 } else { &V4 };
    let hash = siphash(half(key[0], key[1]), half(key[2], key[3]), addresses);
    hash.to_le_bytes().to_vec()
}

/// The same as hexadecimal digits.
pub(crate) fn digits(key: [u32; 4], v6: bool) -> String {
    use std::fmt::Write as _;
    cookie(key, v6).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn siphash(k0: u64, k1: u64, data: &[u8]) -> u64 {
    let mut v = [
        0x736f_6d65_7073_6575 ^ k0,
        0x646f_7261_6e64_6f6d ^ k1,
        0x6c79_6765_6e65_7261 ^ k0,
        0x7465_6462_7974_6573 ^ k1,
    ];
    let mut words = data.chunks_exact(8);
    for word in &mut words {
        let word = word.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
        v[3] ^= word;
        (0..2).for_each(|_| round(&mut v));
        v[0] ^= word;
    }
    let rest = words.remainder().iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
    let last = rest | (data.len() as u64) << 56;
    v[3] ^= last;
    (0..2).for_each(|_| round(&mut v));
    v[0] ^= last;
    v[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

const fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_its_paper() {
        // Appendix A of the paper.
        let data: Vec<u8> = (0..15).collect();
        let hash = siphash(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908, &data);
        assert_eq!(hash, 0xa129_ca61_49be_45e5);
    }
}

//! Random bytes of the operating system.

use acklab_rudp::protect::Entropy;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::{Zeroize, Zeroizing};

/// The operating system's generator, asked for many bytes at a time: a connection wants a few for
/// every packet number that it may skip.
pub struct OsEntropy {
    system: SystemRandom,
    /// The last `left` bytes have not been given out.
    buffer: Zeroizing<[u8; BUFFER]>,
    left: usize,
}

impl Default for OsEntropy {
    fn default() -> Self {
        Self { system: SystemRandom::new(), buffer: Zeroizing::new([0; BUFFER]), left: 0 }
    }
}

impl Entropy for OsEntropy {
    /// # Panics
    ///
    /// Where the operating system has no random bytes: nothing could be kept secret then.
    fn fill(&mut self, bytes: &mut [u8]) {
        if bytes.len() > BUFFER {
            return self.system.fill(bytes).expect(NO_RANDOMNESS);
        }
        if bytes.len() > self.left {
            self.system.fill(&mut self.buffer[..]).expect(NO_RANDOMNESS);
            self.left = BUFFER;
        }
        let start = BUFFER - self.left;
        let taken = &mut self.buffer[start..start + bytes.len()];
        bytes.copy_from_slice(taken);
        taken.zeroize();
        self.left -= bytes.len();
    }
}

/// So many bytes of the operating system's generator.
///
/// # Panics
///
/// As [`OsEntropy`].
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect(NO_RANDOMNESS);
    bytes
}

const BUFFER: usize = 1024;
const NO_RANDOMNESS: &str = "the operating system gives random bytes";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_are_given_twice_whatever_the_sizes_asked_for() {
        let mut entropy = OsEntropy::default();
        let mut words = Vec::new();
        for size in [8, 16, 1000, 24, 1024, 8, 1032, 2048, 504, 520, 8] {
            let mut bytes = vec![0; size];
            entropy.fill(&mut bytes);
            words.extend(bytes.as_chunks::<8>().0.iter().copied());
        }
        let asked = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), asked);
        assert!(!words.contains(&[0; 8]));
    }
}

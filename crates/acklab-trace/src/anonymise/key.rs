//! The key of all mappings.

/// What decides all mappings: with the same one, two captures stay comparable.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// A key of random bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// 64 hexadecimal digits, around which there may be blanks; `None` where it is something else.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits: Vec<u8> =
            text.trim().chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
        let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        (digits.len() == 64).then(|| bytes.try_into().ok().map(Self))?
    }

    /// A number that cannot be told from a random one without the key.
    pub(super) fn word(&self, what: &str, of: &[u8]) -> u64 {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(what.as_bytes()).update(&[0]).update(of);
        let hash = hasher.finalize();
        u64::from_le_bytes(hash.as_bytes()[..8].first_chunk().copied().unwrap_or_default())
    }
}

/// Nothing of it is shown.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

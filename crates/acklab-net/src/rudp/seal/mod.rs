//! Short packets sealed and opened with the keys of a finished handshake (docs/rudp.md section 3,
//! "Traffic secrets", "Cipher" and "Key update").
//!
//! AES-128-GCM or ChaCha20-Poly1305 through ring; one prepared key per direction and phase, in place,
//! no allocation. The nonce is the IV xor (path id, packet number), as in draft-ietf-quic-multipath,
//! so one key serves all paths. Keys, IVs and the secrets of later phases come from a traffic secret
//! by BLAKE3's key derivation.
//!
//! When to update, and how many forged packets are too many, the connection decides.

use acklab_rudp::protect::{Phase, Protection, TAG};
use ring::aead::{self, AES_128_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

/// Length of a traffic secret, bytes.
pub const SECRET: usize = 32;

/// A traffic secret: wiped when it is dropped.
pub type Secret = Zeroizing<[u8; SECRET]>;

/// How packets are encrypted; the discriminant is the number of its bit in INITIAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES-128-GCM: the faster one where the processor has instructions for it.
    Aes128Gcm = 0,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305 = 1,
}

impl Cipher {
    /// The cipher of that number in ANSWER.
    pub const fn from_wire(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Aes128Gcm),
            1 => Some(Self::ChaCha20Poly1305),
            _ => None,
        }
    }

    /// The number of its bit.
    pub const fn to_wire(self) -> u8 {
        self as u8
    }

    /// Its bit in INITIAL.
    pub const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// What this machine offers: AES only where it has instructions for it.
    pub fn offered() -> u8 {
        Self::ChaCha20Poly1305.bit() | if aes_is_fast() { Self::Aes128Gcm.bit() } else { 0 }
    }

    /// What a server chooses from an offer, bits it does not know aside: AES where both ends have the
    /// instructions; else ChaCha20-Poly1305; else AES, which every end can.
    pub fn choose(offer: u8) -> Option<Self> {
        let common = offer & Self::offered();
        [Self::Aes128Gcm, Self::ChaCha20Poly1305]
            .into_iter()
            .find(|cipher| common & cipher.bit() != 0)
            .or((offer & Self::Aes128Gcm.bit() != 0).then_some(Self::Aes128Gcm))
    }

    fn algorithm(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes128Gcm => &AES_128_GCM,
            Self::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        }
    }
}

fn aes_is_fast() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    false
}

/// The keys of one end of a connection.
pub struct Keys {
    cipher: Cipher,
    sending: PacketKey,
    sending_secret: Secret,
    previous: Option<PacketKey>,
    current: PacketKey,
    next: PacketKey,
    /// Of `next`.
    receiving_secret: Secret,
}

impl Keys {
    /// `sending` and `receiving` are what Noise's Split gave for the two directions.
    pub fn new(cipher: Cipher, sending: Secret, receiving: &Secret) -> Self {
        let after = updated(receiving);
        Self {
            cipher,
            sending: PacketKey::derive(cipher, &sending),
            sending_secret: sending,
            previous: None,
            current: PacketKey::derive(cipher, receiving),
            next: PacketKey::derive(cipher, &after),
            receiving_secret: after,
        }
    }
}

impl Protection for Keys {
    fn seal(&mut self, path: u8, number: u64, header: &[u8], body: &mut [u8]) {
        let (content, tag) = body.split_at_mut(body.len() - TAG);
        let nonce = self.sending.nonce(path, number);
        let sealed = self.sending.key.seal_in_place_separate_tag(nonce, Aad::from(header), content);
        tag.copy_from_slice(sealed.expect("a datagram is shorter than 64 GB").as_ref());
    }

    fn open(
        &mut self,
        phase: Phase,
        path: u8,
        number: u64,
        header: &[u8],
        body: &mut [u8],
    ) -> bool {
        let key = match phase {
            Phase::Previous => self.previous.as_ref(),
            Phase::Current => Some(&self.current),
            Phase::Next => Some(&self.next),
        };
        key.is_some_and(|key| {
            key.key.open_in_place(key.nonce(path, number), Aad::from(header), body).is_ok()
        })
    }

    fn update_sending(&mut self) {
        self.sending_secret = updated(&self.sending_secret);
        self.sending = PacketKey::derive(self.cipher, &self.sending_secret);
    }

    fn update_receiving(&mut self) {
        self.receiving_secret = updated(&self.receiving_secret);
        let next = PacketKey::derive(self.cipher, &self.receiving_secret);
        let current = std::mem::replace(&mut self.next, next);
        self.previous = Some(std::mem::replace(&mut self.current, current));
    }

    fn forget_previous(&mut self) {
        self.previous = None;
    }
}

/// One direction in one phase.
struct PacketKey {
    key: LessSafeKey,
    iv: [u8; aead::NONCE_LEN],
}

impl PacketKey {
    fn derive(cipher: Cipher, secret: &Secret) -> Self {
        let algorithm = cipher.algorithm();
        let material = derive(CONTEXT_KEY, &secret[..]);
        let key = UnboundKey::new(algorithm, &material[..algorithm.key_len()]);
        let mut iv = [0; aead::NONCE_LEN];
        iv.copy_from_slice(&derive(CONTEXT_IV, &secret[..])[..aead::NONCE_LEN]);
        Self { key: LessSafeKey::new(key.expect("the length is the cipher's own")), iv }
    }

    fn nonce(&self, path: u8, number: u64) -> Nonce {
        let mut nonce = self.iv;
        // The path id has 4 bytes, of which the last can be other than zero.
        nonce[3] ^= path;
        for (byte, of_number) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= of_number;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

fn updated(secret: &Secret) -> Secret {
    derive(CONTEXT_UPDATE, &secret[..])
}

/// BLAKE3 in its key derivation mode.
pub(super) fn derive(context: &str, material: &[u8]) -> Secret {
    Zeroizing::new(blake3::derive_key(context, material))
}

const CONTEXT_KEY: &str = "acklab rudp 1 key";
const CONTEXT_IV: &str = "acklab rudp 1 iv";
const CONTEXT_UPDATE: &str = "acklab rudp 1 update";

#[cfg(test)]
mod tests;

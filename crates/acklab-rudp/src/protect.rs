//! What keeps packets secret and unaltered, seen from the protocol: traits whose implementations
//! stand outside of the core, because ciphers and key exchanges need libraries.
//!
//! [`Protection`] seals and opens short packets with the keys of a finished handshake;
//! [`ClientGreeter`] and [`ServerGreeter`] are the two ends of that handshake, one message each way.
//! [`Unprotected`] and [`PlainGreeter`] stand in for them in virtual time and in experiments that
//! ask for no protection: the tag is then a checksum that finds corruption and no attacker.

use super::Code;

/// Length of a tag, bytes.
pub const TAG: usize = 16;

/// Which receiving key opens a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The one before the present one.
    Previous,
    /// The present one.
    Current,
    /// The one that an update would bring.
    Next,
}

/// Seals what one end sends and opens what it receives.
pub trait Protection: Send {
    /// Encrypts `body` without its last [`TAG`] bytes in place and writes the tag there; `header` is
    /// authenticated too. No pair of path and number is ever given twice under one key.
    fn seal(&mut self, path: u8, number: u64, header: &[u8], body: &mut [u8]);

    /// Decrypts `body` in place, whose last [`TAG`] bytes are the tag; false, and a body that is of
    /// no use, where the tag does not fit or the key of that phase does not exist.
    fn open(&mut self, phase: Phase, path: u8, number: u64, header: &[u8], body: &mut [u8])
    -> bool;

    /// The next sending key.
    fn update_sending(&mut self);

    /// The next receiving key becomes the present one, and that one the previous.
    fn update_receiving(&mut self);

    /// The previous receiving key is no longer needed.
    fn forget_previous(&mut self);
}

/// What a finished handshake leaves behind.
pub struct Agreed {
    /// The payload of the peer's message: its transport parameters (in an ANSWER after 21 bytes that
    /// repeat the header).
    pub payload: Vec<u8>,
    /// The keys.
    pub protection: Box<dyn Protection>,
    /// The peer's public key, where it has shown one.
    pub peer: Option<[u8; 32]>,
}

/// The client's end of the handshake.
pub trait ClientGreeter: Send {
    /// The mode byte of INITIAL.
    fn mode(&self) -> u8;

    /// The ciphers that INITIAL offers, a bit each.
    fn ciphers(&self) -> u8;

    /// The message of INITIAL. `prologue` is what of the header must not be altered on the way.
    fn initial(&mut self, prologue: &[u8], parameters: &[u8]) -> Vec<u8>;

    /// Reads the message of ANSWER. A message that cannot be read changes nothing, so that the next
    /// may be tried.
    fn answer(&mut self, cipher: u8, message: &[u8]) -> Result<Agreed, Code>;
}

/// An INITIAL as the server's greeter sees it.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// Mode byte.
    pub mode: u8,
    /// Ciphers offered, a bit each.
    pub ciphers: u8,
    /// What of the header must not have been altered on the way.
    pub prologue: &'a [u8],
    /// The message.
    pub message: &'a [u8],
}

/// What the server answers.
pub struct Answer {
    /// Cipher chosen: the number of its bit.
    pub cipher: u8,
    /// The message of ANSWER.
    pub message: Vec<u8>,
    /// The server's side of the agreement; its keys are used once the client's first short packet
    /// has shown that it has them too.
    pub agreed: Agreed,
}

/// The server's end of the handshake; one serves all clients.
pub trait ServerGreeter: Send {
    /// Refuses what can be refused for the price of a hash: another mode, no common cipher, what is not
    /// addressed to this server. [`Code::Protocol`] deserves no answer.
    fn inspect(&mut self, offer: &Offer<'_>) -> Result<(), Code>;

    /// Answers an INITIAL that passed [`Self::inspect`]; `payload` makes the payload of the answer from the cipher chosen.
    fn greet(
        &mut self,
        offer: &Offer<'_>,
        payload: &mut dyn FnMut(u8) -> Vec<u8>,
    ) -> Result<Answer, Code>;

    /// A keyed digest under a secret that this server alone knows, for its tokens.
    fn digest(&self, data: &[u8]) -> [u8; 32];

    /// Whether that secret is the same after a restart, and no digest under it says anything of it.
    fn is_lasting(&self) -> bool {
        false
    }
}

/// A source of random bytes that no attacker can guess; [`acklab_core::rng::Rng`] in virtual time.
pub trait Entropy: Send {
    /// Fills `bytes`.
    fn fill(&mut self, bytes: &mut [u8]);

    /// From now on it draws what it would under `seed`; what is drawn from the real world ignores it.
    fn reseed(&mut self, _seed: u64) {}
}

impl Entropy for acklab_core::rng::Rng {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_be_bytes()[..chunk.len()]);
        }
    }

    fn reseed(&mut self, seed: u64) {
        Self::reseed(self, seed);
    }
}

/// The mode byte of [`PlainGreeter`].
pub const MODE_INSECURE: u8 = 255;

/// No keys: packets are readable, and the tag is a checksum. Keys are numbers here, so that their
/// updates work as with a cipher.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unprotected {
    sending: u64,
    receiving: u64,
    previous: bool,
}

impl Protection for Unprotected {
    fn seal(&mut self, path: u8, number: u64, header: &[u8], body: &mut [u8]) {
        let (content, tag) = body.split_at_mut(body.len() - TAG);
        tag.copy_from_slice(&checksum((self.sending, path), number, header, content));
    }

    fn open(
        &mut self,
        phase: Phase,
        path: u8,
        number: u64,
        header: &[u8],
        body: &mut [u8],
    ) -> bool {
        let Some((content, tag)) = body.split_last_chunk_mut::<TAG>() else { return false };
        let key = match phase {
            Phase::Previous if !self.previous => return false,
            Phase::Previous => self.receiving - 1,
            Phase::Current => self.receiving,
            Phase::Next => self.receiving + 1,
        };
        let opened = *tag == checksum((key, path), number, header, content);
        if !opened {
            // As a cipher does, so that no caller relies on it.
            content.fill(0);
        }
        opened
    }

    fn update_sending(&mut self) {
        self.sending += 1;
    }

    fn update_receiving(&mut self) {
        self.receiving += 1;
        self.previous = true;
    }

    fn forget_previous(&mut self) {
        self.previous = false;
    }
}

/// 128 bits in two lanes of multiply and rotate over 8-byte words: finds corruption, no attack.
fn checksum((key, path): (u64, u8), number: u64, header: &[u8], content: &[u8]) -> [u8; TAG] {
    let key = key.rotate_left(8) ^ u64::from(path);
    let mut lanes =
        [number ^ 0x9e37_79b9_7f4a_7c15, number.rotate_left(32) ^ key ^ 0xc2b2_ae3d_27d4_eb4f];
    for part in [header, content] {
        let mut mix = |word: u64| {
            lanes[0] = (lanes[0] ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(29);
            lanes[1] = (lanes[1].rotate_left(23) ^ word).wrapping_mul(0x94d0_49bb_1331_11eb);
        };
        let (words, rest) = part.as_chunks::<8>();
        for word in words {
            mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        mix(u64::from_le_bytes(last));
        mix(part.len() as u64);
    }
    let mut tag = [0; TAG];
    tag[..8].copy_from_slice(&(lanes[0] ^ (lanes[1] >> 31)).to_be_bytes());
    tag[8..].copy_from_slice(&(lanes[1] ^ (lanes[0] >> 27)).to_be_bytes());
    tag
}

/// Greets without keys, at either end.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainGreeter;

impl PlainGreeter {
    fn agreed(message: &[u8]) -> Agreed {
        Agreed {
            payload: message.to_vec(),
            protection: Box::new(Unprotected::default()),
            peer: None,
        }
    }
}

impl ClientGreeter for PlainGreeter {
    fn mode(&self) -> u8 {
        MODE_INSECURE
    }

    fn ciphers(&self) -> u8 {
        0
    }

    fn initial(&mut self, _prologue: &[u8], parameters: &[u8]) -> Vec<u8> {
        parameters.to_vec()
    }

    fn answer(&mut self, _cipher: u8, message: &[u8]) -> Result<Agreed, Code> {
        Ok(Self::agreed(message))
    }
}

impl ServerGreeter for PlainGreeter {
    fn inspect(&mut self, offer: &Offer<'_>) -> Result<(), Code> {
        if offer.mode == MODE_INSECURE { Ok(()) } else { Err(Code::Mode) }
    }

    fn greet(
        &mut self,
        offer: &Offer<'_>,
        payload: &mut dyn FnMut(u8) -> Vec<u8>,
    ) -> Result<Answer, Code> {
        Ok(Answer { cipher: 0, message: payload(0), agreed: Self::agreed(offer.message) })
    }

    fn digest(&self, data: &[u8]) -> [u8; 32] {
        let half = checksum((0, 0), 0, &[], data);
        let mut digest = [0; 32];
        digest[..TAG].copy_from_slice(&half);
        digest[TAG..].copy_from_slice(&checksum((0, 0), 1, &half, data));
        digest
    }
}

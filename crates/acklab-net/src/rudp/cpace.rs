//! CPace: two ends that know the same passphrase agree on a key, and no eavesdropper can try
//! passphrases against what was said.
//!
//! Suite CPACE-RISTR255-SHA512 of draft-irtf-cfrg-cpace-21, initiator-responder mode (sections 7.2,
//! 8.1 and 8.3), with the test vectors of its appendix B.3 below. One share each way; whoever takes
//! part without the passphrase learns whether one guess was right.
//!
//! Left out: the symmetric mode, the optional session id as an output, and party names (who has the
//! passphrase is a party). Key confirmation is the Noise handshake's that takes the key.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use ring::digest::{self, SHA512};
use zeroize::{Zeroize, Zeroizing};

/// Length of a share, bytes.
pub(super) const SHARE: usize = 32;

/// The intermediate session key: to be put through a key derivation before it is used.
pub(super) type SessionKey = Zeroizing<[u8; 64]>;

/// What the generator is made from; both ends must have the same.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a> {
    /// PRS: the passphrase.
    pub(super) passphrase: &'a [u8],
    /// CI: what the key is for.
    pub(super) channel: &'a [u8],
    /// sid: known to both ends before, and never the same twice.
    pub(super) session: &'a [u8],
}

/// One end between its share and the peer's.
pub(super) struct Exchange {
    scalar: Scalar,
    share: [u8; SHARE],
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.scalar.zeroize();
    }
}

impl Exchange {
    /// The scalar is `random` with the bits from 252 upwards cleared (section 8.3).
    pub(super) fn new(inputs: Inputs<'_>, mut random: [u8; 32]) -> Self {
        random[31] &= 0x0f;
        let scalar = Scalar::from_bytes_mod_order(random);
        random.zeroize();
        let share = (generator(inputs) * scalar).compress().to_bytes();
        Self { scalar, share }
    }

    /// What this end sends.
    pub(super) fn share(&self) -> &[u8; SHARE] {
        &self.share
    }

    /// The initiator's key, from the responder's share; `None` where that is no element of the group
    /// or the neutral one, upon which the draft wants the exchange to end.
    pub(super) fn finish_as_initiator(
        &self,
        session: &[u8],
        peer: &[u8; SHARE],
    ) -> Option<SessionKey> {
        self.finish(session, peer, &[(&self.share, b""), (peer, b"")])
    }

    /// The responder's key, from the initiator's share; `None` as for the initiator.
    pub(super) fn finish_as_responder(
        &self,
        session: &[u8],
        peer: &[u8; SHARE],
    ) -> Option<SessionKey> {
        self.finish(session, peer, &[(peer, b""), (&self.share, b"")])
    }

    /// `transcript`: (share, associated data) of the initiator, then of the responder.
    fn finish(
        &self,
        session: &[u8],
        peer: &[u8; SHARE],
        transcript: &[(&[u8; SHARE], &[u8]); 2],
    ) -> Option<SessionKey> {
        let shared = CompressedRistretto(*peer).decompress()? * self.scalar;
        if shared.is_identity() {
            return None;
        }
        let shared = Zeroizing::new(shared.compress().to_bytes());
        let mut text = Zeroizing::new(Vec::with_capacity(256));
        for part in [DSI_ISK, session, &shared[..]] {
            push_with_length(&mut text, part);
        }
        for (share, associated) in transcript {
            push_with_length(&mut text, *share);
            push_with_length(&mut text, associated);
        }
        Some(sha512(&text))
    }
}

fn generator(inputs: Inputs<'_>) -> RistrettoPoint {
    RistrettoPoint::from_uniform_bytes(&sha512(&generator_string(inputs)))
}

/// Section 8.1: padded so that passphrase and suite fill the hash's first block.
fn generator_string(inputs: Inputs<'_>) -> Zeroizing<Vec<u8>> {
    let mut text = Zeroizing::new(Vec::with_capacity(512));
    push_with_length(&mut text, DSI);
    push_with_length(&mut text, inputs.passphrase);
    let padding = SHA512_BLOCK.saturating_sub(text.len() + 1);
    push_with_length(&mut text, &[0; SHA512_BLOCK][..padding]);
    push_with_length(&mut text, inputs.channel);
    push_with_length(&mut text, inputs.session);
    text
}

/// `prepend_len` of the draft: the length as LEB128, then the bytes.
fn push_with_length(text: &mut Vec<u8>, part: &[u8]) {
    let mut length = part.len();
    while length >= 0x80 {
        text.push(length as u8 | 0x80);
        length >>= 7;
    }
    text.push(length as u8);
    text.extend_from_slice(part);
}

fn sha512(text: &[u8]) -> Zeroizing<[u8; 64]> {
    let mut hash = Zeroizing::new([0; 64]);
    hash.copy_from_slice(digest::digest(&SHA512, text).as_ref());
    hash
}

/// Section 8.3.
const DSI: &[u8] = b"CPaceRistretto255";
/// Section 7.2: G.DSI, then `_ISK`.
const DSI_ISK: &[u8] = b"CPaceRistretto255_ISK";
/// SHA-512's `s_in_bytes`.
const SHA512_BLOCK: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::HEXLOWER;

    // Appendix B.3 of draft-irtf-cfrg-cpace-21.
    const SESSION: &str = "7e4b4791d6a8ef019b936c79fb7f2c57";
    const CHANNEL: &str = "0b415f696e69746961746f720b425f726573706f6e646572";
    const Y_A: &str = "da3d23700a9e5699258aef94dc060dfda5ebb61f02a5ea77fad53f4ff0976d08";
    const SHARE_A: &str = "d6bac480f2c386c394efc7c47adb9925dcd2630b64f240c50f8d0eec482b9157";
    const Y_B: &str = "d2316b454718c35362d83d69df6320f38578ed5984651435e2949762d900b80d";
    const SHARE_B: &str = "3ea7e0b19560d7c0b0f5734f63b955286dfa8232b5ebe63324e2d9e7433f7258";
    const KEY: &str = "b69effbf61b51d56401c0f65601abe428de8206feaaf0e32198896dcae7b35cd\
                       2b38950a39dfd5d4a79164614c2984f7daa460b588c1e80c3fa2068af7900447";

    fn bytes(text: &str) -> Vec<u8> {
        HEXLOWER.decode(text.as_bytes()).unwrap()
    }

    fn array(text: &str) -> [u8; 32] {
        bytes(text).try_into().unwrap()
    }

    fn end(scalar: &str) -> Exchange {
        let (channel, session) = (bytes(CHANNEL), bytes(SESSION));
        let inputs = Inputs { passphrase: b"Password", channel: &channel, session: &session };
        Exchange::new(inputs, array(scalar))
    }

    #[test]
    fn the_generator_is_that_of_the_draft() {
        let (channel, session) = (bytes(CHANNEL), bytes(SESSION));
        let inputs = Inputs { passphrase: b"Password", channel: &channel, session: &session };
        let text = generator_string(inputs);
        assert_eq!(text.len(), 170);
        assert!(
            HEXLOWER
                .encode(&text)
                .starts_with("11435061636552697374726574746f3235350850617373776f72646400")
        );
        assert_eq!(
            HEXLOWER.encode(&sha512(&text)[..]),
            "da6d3ddc8802fca9058755ffd3ebde08a9c2c74945901a258482a288b6663af0\
             6bf645c93cd1c51512307199c80e84908916d983b34af77205f90851a657ee27"
        );
        assert_eq!(
            HEXLOWER.encode(generator(inputs).compress().as_bytes()),
            "222b6b195fe84b1652badb6f6a3ae3d24341e7306967f0b8115b40d5698c7e56"
        );
    }

    #[test]
    fn shares_and_key_are_those_of_the_draft() {
        let (a, b) = (end(Y_A), end(Y_B));
        assert_eq!(HEXLOWER.encode(a.share()), SHARE_A);
        assert_eq!(HEXLOWER.encode(b.share()), SHARE_B);
        // The draft's vectors carry associated data, which our handshake leaves empty.
        let session = bytes(SESSION);
        let transcript: [(&[u8; 32], &[u8]); 2] = [(a.share(), b"ADa"), (b.share(), b"ADb")];
        let of_a = a.finish(&session, b.share(), &transcript);
        let of_b = b.finish(&session, a.share(), &transcript);
        assert_eq!(of_a.map(|key| HEXLOWER.encode(&key[..])).as_deref(), Some(KEY));
        assert_eq!(of_b.map(|key| HEXLOWER.encode(&key[..])).as_deref(), Some(KEY));
    }

    #[test]
    fn the_two_roles_agree_and_one_role_twice_does_not() {
        let (a, b) = (end(Y_A), end(Y_B));
        let initiator = a.finish_as_initiator(b"s", b.share()).unwrap();
        assert_eq!(*initiator, *b.finish_as_responder(b"s", a.share()).unwrap());
        assert_ne!(*initiator, *b.finish_as_initiator(b"s", a.share()).unwrap());
        assert_ne!(*initiator, *b.finish_as_responder(b"t", a.share()).unwrap());
    }

    #[test]
    fn the_neutral_element_and_what_is_no_element_end_the_exchange() {
        let end = end(Y_A);
        for share in [
            // Appendix B.3.11: no element, and the neutral one.
            array("2b3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c"),
            [0; 32],
            // Encodings that are not canonical: all ones, and the field's prime.
            [0xff; 32],
            array("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
        ] {
            assert!(end.finish_as_initiator(b"s", &share).is_none(), "{share:?}");
            assert!(end.finish_as_responder(b"s", &share).is_none(), "{share:?}");
        }
    }

    #[test]
    fn lengths_are_written_as_leb128() {
        // 0, 127 and 128 bytes are the cases of the draft's appendix A.1.2.
        for (length, prefix) in [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02")] {
            let mut text = Vec::new();
            push_with_length(&mut text, &vec![7; length]);
            assert_eq!(HEXLOWER.encode(&text[..text.len() - length]), prefix);
        }
    }
}

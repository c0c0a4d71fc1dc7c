//! The handshake of reliable UDP, one message each way (docs/rudp.md section 3).
//!
//! Mode 1, a passphrase: CPace and `Noise_NNpsk2` side by side. The client's message is session id,
//! CPace share, Noise 1; the server's is CPace share, Noise 2, whose psk is what CPace agreed upon.
//! Mode 2, keys: `Noise_IK`; the client knows the server's key before, the server looks the client's
//! up among the known peers. Behind the client's message stands a MAC under a key made of the server's
//! public one, as WireGuard's mac1 (its paper, section 5.3): who does not know whom it talks to gets no
//! answer and costs no computation on a curve.
//!
//! The traffic secrets are Noise's raw Split. What the prologue binds comes from the connection, and
//! the payloads pass through unread: transport parameters, and in an ANSWER the 21 header bytes that
//! the connection writes and checks. Retransmission, tokens and the limit on guesses are the
//! connection's and the listener's too. snow wipes none of its state when it is dropped.

use acklab_rudp::Code;
use acklab_rudp::protect::{Agreed, Answer, ClientGreeter, Offer, Protection, ServerGreeter};
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::cpace::{Exchange, Inputs, SHARE, SessionKey};
use super::entropy::random;
use super::keys::{Identity, PublicKey};
use super::passphrase::Passphrase;
use super::peers::KnownPeers;
use super::seal::{Cipher, Keys, Secret, derive};

/// The mode byte of a passphrase's INITIAL.
pub const MODE_PASSPHRASE: u8 = 1;
/// The mode byte of an INITIAL with keys.
pub const MODE_KEYS: u8 = 2;

/// The client's end where both know a passphrase; for one connection.
pub struct PassphraseClient {
    passphrase: Passphrase,
    begun: Option<PassphraseBegun>,
}

struct PassphraseBegun {
    session: [u8; SESSION],
    exchange: Exchange,
    noise: HandshakeState,
    /// Digests of the answers that could not be read.
    unreadable: Vec<blake3::Hash>,
    agreement: Option<Agreement>,
}

impl PassphraseClient {
    /// A client that knows `passphrase`.
    pub fn new(passphrase: Passphrase) -> Self {
        Self { passphrase, begun: None }
    }
}

impl ClientGreeter for PassphraseClient {
    fn mode(&self) -> u8 {
        MODE_PASSPHRASE
    }

    fn ciphers(&self) -> u8 {
        Cipher::offered()
    }

    fn initial(&mut self, prologue: &[u8], parameters: &[u8]) -> Vec<u8> {
        let session = random();
        let exchange = Exchange::new(cpace_inputs(&self.passphrase, &session), random());
        let mut message = session.to_vec();
        message.extend_from_slice(exchange.share());
        let prologue = [prologue, &message].concat();
        let mut noise = builder(NN_PSK2, &prologue).build_initiator().expect(OUR_OWN);
        message.extend_from_slice(&write(&mut noise, parameters));
        self.begun = Some(PassphraseBegun {
            session,
            exchange,
            noise,
            unreadable: Vec::new(),
            agreement: None,
        });
        message
    }

    fn answer(&mut self, cipher: u8, message: &[u8]) -> Result<Agreed, Code> {
        let begun = self.begun.as_mut().ok_or(Code::Internal)?;
        let cipher = Cipher::from_wire(cipher).ok_or(Code::Protocol)?;
        if let Some(agreement) = &begun.agreement {
            return agreement.again(cipher, message, None);
        }
        let digest = blake3::hash(message);
        // Each other answer that is looked at lets whoever sent it try one passphrase.
        if begun.unreadable.len() >= TRIES || begun.unreadable.contains(&digest) {
            return Err(Code::WrongSecret);
        }
        let payload = begun.read(message).inspect_err(|_| begun.unreadable.push(digest))?;
        let agreement = begun.agreement.insert(Agreement::new(&mut begun.noise, digest, payload));
        agreement.again(cipher, message, None)
    }
}

impl PassphraseBegun {
    fn read(&mut self, message: &[u8]) -> Result<Vec<u8>, Code> {
        let (share, message) = message.split_first_chunk::<SHARE>().ok_or(Code::Protocol)?;
        let key = self.exchange.finish_as_initiator(&self.session, share).ok_or(Code::Protocol)?;
        self.noise.set_psk(PSK_PLACE, &psk(&key)[..]).expect(OUR_OWN);
        read(&mut self.noise, message).ok_or(Code::WrongSecret)
    }
}

/// What a client has read in an answer; kept, because the same message may have to be read again: the
/// first time it may have come under a header that an attacker had altered.
struct Agreement {
    answer: blake3::Hash,
    payload: Vec<u8>,
    up: Secret,
    down: Secret,
}

impl Agreement {
    fn new(noise: &mut HandshakeState, answer: blake3::Hash, payload: Vec<u8>) -> Self {
        let (up, down) = noise.dangerously_get_raw_split();
        Self { answer, payload, up: Zeroizing::new(up), down: Zeroizing::new(down) }
    }

    fn again(
        &self,
        cipher: Cipher,
        message: &[u8],
        peer: Option<[u8; 32]>,
    ) -> Result<Agreed, Code> {
        if blake3::hash(message) != self.answer {
            return Err(Code::WrongSecret);
        }
        let protection = Box::new(Keys::new(cipher, self.up.clone(), &self.down));
        Ok(Agreed { payload: self.payload.clone(), protection, peer })
    }
}

/// The server's end where both know a passphrase.
pub struct PassphraseServer {
    passphrase: Passphrase,
    /// Of this run only: a digest under a key made from the passphrase would let whoever sees it try
    /// passphrases at leisure.
    digests: Secret,
}

impl PassphraseServer {
    /// A server that knows `passphrase`.
    pub fn new(passphrase: Passphrase) -> Self {
        Self { passphrase, digests: Zeroizing::new(random()) }
    }
}

impl ServerGreeter for PassphraseServer {
    fn inspect(&mut self, offer: &Offer<'_>) -> Result<(), Code> {
        usable(offer, MODE_PASSPHRASE).map(|_| ())
    }

    /// [`Code::Protocol`] is garbage that deserves no answer. A wrong passphrase does not show here:
    /// the client finds it out, and after it the server, to which no packet authenticates.
    fn greet(
        &mut self,
        offer: &Offer<'_>,
        payload: &mut dyn FnMut(u8) -> Vec<u8>,
    ) -> Result<Answer, Code> {
        let cipher = usable(offer, MODE_PASSPHRASE)?;
        let (session, rest) = offer.message.split_first_chunk::<SESSION>().ok_or(Code::Protocol)?;
        let (share, message) = rest.split_first_chunk::<SHARE>().ok_or(Code::Protocol)?;
        let prologue = [offer.prologue, session, share].concat();
        let mut noise = builder(NN_PSK2, &prologue).build_responder().expect(OUR_OWN);
        // Before any curve is touched: the tag under a key that everybody knows finds damage.
        let parameters = read(&mut noise, message).ok_or(Code::Protocol)?;
        let exchange = Exchange::new(cpace_inputs(&self.passphrase, session), random());
        let key = exchange.finish_as_responder(session, share).ok_or(Code::Protocol)?;
        noise.set_psk(PSK_PLACE, &psk(&key)[..]).expect(OUR_OWN);
        let mut message = exchange.share().to_vec();
        message.extend_from_slice(&write(&mut noise, &payload(cipher.to_wire())));
        let protection = protection(cipher, &mut noise);
        let agreed = Agreed { payload: parameters, protection, peer: None };
        Ok(Answer { cipher: cipher.to_wire(), message, agreed })
    }

    fn digest(&self, data: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.digests, data).as_bytes()
    }
}

/// The client's end where each knows the other's key; for one connection.
pub struct KeysClient {
    identity: Identity,
    server: PublicKey,
    begun: Option<HandshakeState>,
    agreement: Option<Agreement>,
}

impl KeysClient {
    /// A client that is `identity` and talks to `server` alone.
    pub fn new(identity: Identity, server: PublicKey) -> Self {
        Self { identity, server, begun: None, agreement: None }
    }
}

impl ClientGreeter for KeysClient {
    fn mode(&self) -> u8 {
        MODE_KEYS
    }

    fn ciphers(&self) -> u8 {
        Cipher::offered()
    }

    fn initial(&mut self, prologue: &[u8], parameters: &[u8]) -> Vec<u8> {
        let noise = builder(IK, prologue)
            .local_private_key(self.identity.private())
            .and_then(|builder| builder.remote_public_key(&self.server.0))
            .and_then(Builder::build_initiator);
        self.agreement = None;
        let mut message = write(self.begun.insert(noise.expect(OUR_OWN)), parameters);
        let mac = first_mac(&mac_key(&self.server), prologue, &message);
        message.extend_from_slice(&mac);
        message
    }

    fn answer(&mut self, cipher: u8, message: &[u8]) -> Result<Agreed, Code> {
        let noise = self.begun.as_mut().ok_or(Code::Internal)?;
        let cipher = Cipher::from_wire(cipher).ok_or(Code::Protocol)?;
        let peer = Some(self.server.0);
        if let Some(agreement) = &self.agreement {
            return agreement.again(cipher, message, peer);
        }
        let payload = read(noise, message).ok_or(Code::WrongSecret)?;
        let agreement = Agreement::new(noise, blake3::hash(message), payload);
        self.agreement.insert(agreement).again(cipher, message, peer)
    }
}

/// The server's end where each knows the other's key.
pub struct KeysServer {
    identity: Identity,
    peers: KnownPeers,
    digests: Secret,
    mac_key: [u8; 32],
}

impl KeysServer {
    /// A server that is `identity` and takes connections from `peers` alone.
    pub fn new(identity: Identity, peers: KnownPeers) -> Self {
        let digests = derive(CONTEXT_DIGEST, identity.private());
        let mac_key = mac_key(&identity.public());
        Self { identity, peers, digests, mac_key }
    }
}

impl ServerGreeter for KeysServer {
    /// [`Code::Protocol`]: the message is for another key than this server's, or damaged.
    fn inspect(&mut self, offer: &Offer<'_>) -> Result<(), Code> {
        usable(offer, MODE_KEYS)?;
        let (message, mac) = offer.message.split_last_chunk::<MAC>().ok_or(Code::Protocol)?;
        let right = first_mac(&self.mac_key, offer.prologue, message);
        // In a time that does not tell where they differ.
        let differ = right.iter().zip(mac).fold(0, |differ, (a, b)| differ | (a ^ b));
        if differ == 0 { Ok(()) } else { Err(Code::Protocol) }
    }

    fn greet(
        &mut self,
        offer: &Offer<'_>,
        payload: &mut dyn FnMut(u8) -> Vec<u8>,
    ) -> Result<Answer, Code> {
        let cipher = usable(offer, MODE_KEYS)?;
        let (message, _) = offer.message.split_last_chunk::<MAC>().ok_or(Code::Protocol)?;
        let noise = builder(IK, offer.prologue).local_private_key(self.identity.private());
        let mut noise = noise.and_then(Builder::build_responder).expect(OUR_OWN);
        let parameters = read(&mut noise, message).ok_or(Code::Protocol)?;
        let peer = noise.get_remote_static().and_then(|key| key.try_into().ok()).map(PublicKey);
        let peer = peer.ok_or(Code::Internal)?;
        if self.peers.name(&peer).is_none() {
            return Err(Code::UnknownPeer);
        }
        let message = write(&mut noise, &payload(cipher.to_wire()));
        let protection = protection(cipher, &mut noise);
        let agreed = Agreed { payload: parameters, protection, peer: Some(peer.0) };
        Ok(Answer { cipher: cipher.to_wire(), message, agreed })
    }

    /// The same after a restart, because the key comes from the identity.
    fn digest(&self, data: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.digests, data).as_bytes()
    }

    fn is_lasting(&self) -> bool {
        true
    }
}

/// The cipher for an INITIAL of the server's mode.
fn usable(offer: &Offer<'_>, mode: u8) -> Result<Cipher, Code> {
    if offer.mode != mode {
        return Err(Code::Mode);
    }
    Cipher::choose(offer.ciphers).ok_or(Code::Version)
}

fn mac_key(server: &PublicKey) -> [u8; 32] {
    blake3::derive_key(CONTEXT_MAC, &server.0)
}

fn first_mac(key: &[u8; 32], prologue: &[u8], message: &[u8]) -> [u8; MAC] {
    let hash = blake3::Hasher::new_keyed(key).update(prologue).update(message).finalize();
    let mut mac = [0; MAC];
    mac.copy_from_slice(&hash.as_bytes()[..MAC]);
    mac
}

fn cpace_inputs<'a>(passphrase: &'a Passphrase, session: &'a [u8; SESSION]) -> Inputs<'a> {
    Inputs { passphrase: passphrase.as_str().as_bytes(), channel: CHANNEL, session }
}

fn psk(key: &SessionKey) -> Secret {
    derive(CONTEXT_PSK, &key[..])
}

fn builder<'a>(pattern: &str, prologue: &'a [u8]) -> Builder<'a> {
    let parameters = pattern.parse().expect(OUR_OWN);
    Builder::new(parameters).prologue(prologue).expect(OUR_OWN)
}

fn write(noise: &mut HandshakeState, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![0; payload.len() + MOST_AROUND_PAYLOAD];
    let length = noise.write_message(payload, &mut message).expect(OUR_OWN);
    message.truncate(length);
    message
}

/// A message that cannot be read leaves the handshake as it was.
fn read(noise: &mut HandshakeState, message: &[u8]) -> Option<Vec<u8>> {
    let mut payload = vec![0; message.len()];
    let length = noise.read_message(message, &mut payload).ok()?;
    payload.truncate(length);
    Some(payload)
}

/// The server's.
fn protection(cipher: Cipher, noise: &mut HandshakeState) -> Box<dyn Protection> {
    let (up, down) = noise.dangerously_get_raw_split();
    Box::new(Keys::new(cipher, Zeroizing::new(down), &Zeroizing::new(up)))
}

const NN_PSK2: &str = "Noise_NNpsk2_25519_ChaChaPoly_BLAKE2s";
const IK: &str = "Noise_IK_25519_ChaChaPoly_BLAKE2s";
/// The `2` of psk2.
const PSK_PLACE: usize = 2;
/// Length of a session id, bytes.
const SESSION: usize = 16;
/// CPace's CI.
const CHANNEL: &[u8] = b"acklab rudp 1";
const CONTEXT_PSK: &str = "acklab rudp 1 psk";
const CONTEXT_DIGEST: &str = "acklab rudp 1 digest";
const CONTEXT_MAC: &str = "acklab rudp 2 mac";
/// Length of the MAC behind a message of mode 2, bytes.
const MAC: usize = 16;
/// Answers that a client of mode 1 reads for one INITIAL. One would do among honest ends; the others
/// keep an attacker's from ending the connection, and few of them from guessing.
const TRIES: usize = 4;
/// The longest of what Noise puts around a payload, IK's first: key, encrypted key and its tag, the payload's tag.
const MOST_AROUND_PAYLOAD: usize = 32 + 48 + 16;
const OUR_OWN: &str = "pattern, keys and lengths are our own";

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

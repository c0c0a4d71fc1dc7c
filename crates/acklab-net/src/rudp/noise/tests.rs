//! Goal: who has the secret gets in and no other host; what was altered on the way is noticed; garbage
//! costs nothing and leaves nothing behind.

use std::path::Path;

use acklab_rudp::protect::{Phase, TAG};

use super::*;

/// As the connection would make it: INITIAL bytes 0 to 22.
const PROLOGUE: &[u8] = b"\x80AKL\x02\0\0\0\0\0\0\0\0\0client_id\x01\x03";
const PARAMETERS: &[u8] = b"what the client can take";
const PAYLOAD: &[u8] = b"21 bytes of the headerwhat the server can take";

struct Pair {
    client: Box<dyn ClientGreeter>,
    server: Box<dyn ServerGreeter>,
}

fn passphrases(client: &str, server: &str) -> Pair {
    Pair {
        client: Box::new(PassphraseClient::new(client.parse().unwrap())),
        server: Box::new(PassphraseServer::new(server.parse().unwrap())),
    }
}

fn identity(seed: u8) -> Identity {
    Identity::from_private(Zeroizing::new([seed; 32]))
}

fn knowing(known: &Identity) -> KnownPeers {
    KnownPeers::parse(&format!("alice {}", known.public()), Path::new("peers")).unwrap()
}

fn keys() -> Pair {
    let (client, server) = (identity(1), identity(2));
    let known = knowing(&client);
    Pair {
        client: Box::new(KeysClient::new(client, server.public())),
        server: Box::new(KeysServer::new(server, known)),
    }
}

fn both_modes() -> [Pair; 2] {
    [passphrases("bada-kilo-nuta-sida", " bada-kilo-nuta-sida\n"), keys()]
}

/// As a listener asks.
fn greet(
    server: &mut dyn ServerGreeter,
    offer: &Offer<'_>,
    payload: &[u8],
) -> Result<Answer, Code> {
    server.inspect(offer)?;
    server.greet(offer, &mut |_| payload.to_vec())
}

impl Pair {
    fn greet(&mut self, mode: u8, prologue: &[u8], message: &[u8]) -> Result<Answer, Code> {
        let offer = Offer { mode, ciphers: self.client.ciphers(), prologue, message };
        greet(&mut *self.server, &offer, PAYLOAD)
    }

    fn initial(&mut self) -> Vec<u8> {
        self.client.initial(PROLOGUE, PARAMETERS)
    }

    fn answer(&mut self, message: &[u8]) -> Answer {
        self.greet(self.client.mode(), PROLOGUE, message).unwrap_or_else(|code| panic!("{code}"))
    }
}

fn refusal<T>(result: Result<T, Code>) -> Option<Code> {
    result.err()
}

/// Whether each opens what the other seals.
fn agree(client: &mut Agreed, server: &mut Agreed) -> bool {
    let carries = |from: &mut Agreed, to: &mut Agreed| {
        let mut body = b"frames and room for the tag.....".to_vec();
        from.protection.seal(0, 3, b"header", &mut body);
        to.protection.open(Phase::Current, 0, 3, b"header", &mut body)
            && body[..body.len() - TAG] == b"frames and room for the tag....."[..body.len() - TAG]
    };
    carries(client, server) && carries(server, client)
}

#[test]
fn in_both_modes_the_ends_agree_after_one_message_each_way() {
    for mut pair in both_modes() {
        let initial = pair.initial();
        let mut answer = pair.answer(&initial);
        assert_eq!(answer.agreed.payload, PARAMETERS);
        assert_eq!(Cipher::choose(pair.client.ciphers()), Cipher::from_wire(answer.cipher));
        let mut agreed = pair.client.answer(answer.cipher, &answer.message).ok().unwrap();
        assert_eq!(agreed.payload, PAYLOAD);
        assert!(agree(&mut agreed, &mut answer.agreed));
    }
}

#[test]
fn messages_leave_room_in_an_initial_and_answers_are_below_400_bytes_with_usual_parameters() {
    for mut pair in both_modes() {
        // 512 is the most that parameters may take; an INITIAL's body begins at 21 and has 46 B more
        // before the message when it carries a token.
        let initial = pair.client.initial(PROLOGUE, &[0; 512]);
        assert!(21 + 46 + initial.len() <= 1200, "{}", initial.len());
        let answer = pair.answer(&initial);
        assert!(21 + 4 + answer.message.len() < 400, "{}", answer.message.len());
    }
}

#[test]
fn with_keys_each_end_is_told_who_the_other_is() {
    let mut pair = keys();
    let initial = pair.initial();
    let answer = pair.answer(&initial);
    assert_eq!(answer.agreed.peer, Some(identity(1).public().0));
    let agreed = pair.client.answer(answer.cipher, &answer.message).ok().unwrap();
    assert_eq!(agreed.peer, Some(identity(2).public().0));
}

#[test]
fn the_cipher_that_the_server_names_is_the_one_that_is_used() {
    for mut pair in both_modes() {
        let initial = pair.initial();
        let offer = Offer {
            mode: pair.client.mode(),
            ciphers: Cipher::ChaCha20Poly1305.bit(),
            prologue: PROLOGUE,
            message: &initial,
        };
        let mut named = None;
        let answer = pair.server.greet(&offer, &mut |cipher| {
            named = Some(cipher);
            PAYLOAD.to_vec()
        });
        let mut answer = answer.ok().unwrap();
        assert_eq!((answer.cipher, named), (1, Some(1)));
        let mut agreed = pair.client.answer(1, &answer.message).ok().unwrap();
        assert!(agree(&mut agreed, &mut answer.agreed));
    }
}

#[test]
fn a_cipher_that_was_exchanged_on_the_way_gives_no_common_keys_and_spoils_nothing() {
    for mut pair in both_modes() {
        let initial = pair.initial();
        let mut answer = pair.answer(&initial);
        assert_eq!(refusal(pair.client.answer(7, &answer.message)), Some(Code::Protocol));
        let mut agreed = pair.client.answer(1 - answer.cipher, &answer.message).ok().unwrap();
        assert!(!agree(&mut agreed, &mut answer.agreed), "and the payload names the true one");
        // The connection has found that out, and the true answer comes.
        let mut agreed = pair.client.answer(answer.cipher, &answer.message).ok().unwrap();
        assert_eq!(agreed.payload, PAYLOAD);
        assert!(agree(&mut agreed, &mut answer.agreed));
    }
}

#[test]
fn an_offer_without_a_known_cipher_is_another_version() {
    for mut pair in both_modes() {
        let message = pair.initial();
        let offer = Offer {
            mode: pair.client.mode(),
            ciphers: 0xfc,
            prologue: PROLOGUE,
            message: &message,
        };
        assert_eq!(refusal(greet(&mut *pair.server, &offer, PAYLOAD)), Some(Code::Version));
    }
}

#[test]
fn a_wrong_passphrase_shows_at_the_client_and_never_opens_a_packet() {
    let mut pair = passphrases("bada-kilo-nuta-sida", "bada-kilo-nuta-sidi");
    let initial = pair.initial();
    let answer = pair.answer(&initial);
    assert_eq!(
        refusal(pair.client.answer(answer.cipher, &answer.message)),
        Some(Code::WrongSecret)
    );
}

#[test]
fn another_servers_key_gets_no_answer_and_an_unknown_client_is_refused() {
    let (alice, bob, mallory) = (identity(1), identity(2), identity(3));
    let mut pair = Pair {
        client: Box::new(KeysClient::new(alice.clone(), mallory.public())),
        server: Box::new(KeysServer::new(bob.clone(), knowing(&alice))),
    };
    let initial = pair.initial();
    assert_eq!(refusal(pair.greet(MODE_KEYS, PROLOGUE, &initial)), Some(Code::Protocol));

    pair.client = Box::new(KeysClient::new(mallory, bob.public()));
    let initial = pair.initial();
    assert_eq!(refusal(pair.greet(MODE_KEYS, PROLOGUE, &initial)), Some(Code::UnknownPeer));
}

#[test]
fn a_server_that_has_not_the_key_it_shows_cannot_answer() {
    let (alice, bob, mallory) = (identity(1), identity(2), identity(3));
    let mut client = KeysClient::new(alice.clone(), bob.public());
    client.initial(PROLOGUE, PARAMETERS);
    // The best that Mallory can do: an answer to an INITIAL of his own making, under Alice's name.
    let mut lure = KeysClient::new(alice.clone(), mallory.public());
    let message = lure.initial(PROLOGUE, PARAMETERS);
    let mut server = KeysServer::new(mallory, knowing(&alice));
    let offer = Offer { mode: MODE_KEYS, ciphers: 3, prologue: PROLOGUE, message: &message };
    let answer = server.greet(&offer, &mut |_| PAYLOAD.to_vec()).ok().unwrap();
    assert_eq!(refusal(client.answer(answer.cipher, &answer.message)), Some(Code::WrongSecret));
}

#[test]
fn ends_that_were_started_with_different_kinds_of_secret_are_told_so() {
    for (mut pair, mode) in both_modes().into_iter().zip([MODE_KEYS, MODE_PASSPHRASE]) {
        let initial = pair.initial();
        for mode in [mode, 0, 3, 255] {
            assert_eq!(refusal(pair.greet(mode, PROLOGUE, &initial)), Some(Code::Mode));
        }
    }
}

#[test]
fn an_altered_prologue_is_noticed() {
    for mut pair in both_modes() {
        let initial = pair.initial();
        for bit in 0..PROLOGUE.len() * 8 {
            let mut altered = PROLOGUE.to_vec();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(pair.greet(pair.client.mode(), &altered, &initial).is_err(), "bit {bit}");
        }
    }
}

#[test]
fn a_message_altered_in_any_byte_is_noticed_at_one_end_or_the_other() {
    for mut pair in both_modes() {
        let initial = pair.initial();
        for at in 0..initial.len() {
            let mut altered = initial.clone();
            altered[at] ^= 0x40;
            assert!(pair.greet(pair.client.mode(), PROLOGUE, &altered).is_err(), "byte {at}");
        }
        let length = pair.answer(&initial).message.len();
        for at in 0..length {
            let initial = pair.initial();
            let mut answer = pair.answer(&initial);
            answer.message[at] ^= 0x40;
            assert!(pair.client.answer(answer.cipher, &answer.message).is_err(), "byte {at}");
        }
    }
}

/// An answer altered in its last bytes; another one for each `which`.
fn forged(answer: &Answer, which: usize) -> Vec<u8> {
    let mut message = answer.message.clone();
    *message.last_mut().unwrap() ^= which as u8 + 1;
    message
}

#[test]
fn a_true_answer_is_read_after_false_ones_however_often_they_come() {
    for mut pair in both_modes() {
        let initial = pair.initial();
        let mut answer = pair.answer(&initial);
        for which in 1..TRIES {
            for _ in 0..10 {
                let read = pair.client.answer(answer.cipher, &forged(&answer, which));
                assert_eq!(refusal(read), Some(Code::WrongSecret));
            }
        }
        let mut agreed = pair.client.answer(answer.cipher, &answer.message).ok().unwrap();
        assert!(agree(&mut agreed, &mut answer.agreed));
    }
}

#[test]
fn only_few_false_answers_are_looked_at_where_each_is_a_guess() {
    let [mut passphrase, mut keys] = both_modes();
    let initial = passphrase.initial();
    let answer = passphrase.answer(&initial);
    for which in 0..TRIES {
        assert!(passphrase.client.answer(answer.cipher, &forged(&answer, which)).is_err());
    }
    let read = passphrase.client.answer(answer.cipher, &answer.message);
    assert_eq!(refusal(read), Some(Code::WrongSecret), "though it is the true one");

    let initial = keys.initial();
    let answer = keys.answer(&initial);
    for which in 0..100 {
        assert!(keys.client.answer(answer.cipher, &forged(&answer, which)).is_err());
    }
    assert!(keys.client.answer(answer.cipher, &answer.message).is_ok());
}

#[test]
fn a_replayed_initial_brings_other_keys_and_an_answer_that_its_sender_cannot_read() {
    for mut pair in both_modes() {
        let initial = pair.initial();
        let mut answer = pair.answer(&initial);
        let mut agreed = pair.client.answer(answer.cipher, &answer.message).ok().unwrap();
        let mut replayed = pair.answer(&initial);
        assert_ne!(replayed.message, answer.message);
        assert!(!agree(&mut agreed, &mut replayed.agreed), "old packets open nothing there");
        assert!(!agree(&mut answer.agreed, &mut replayed.agreed));
        assert!(pair.client.answer(replayed.cipher, &replayed.message).is_err(), "it has answered");
    }
}

#[test]
fn a_client_that_has_not_greeted_reads_no_answer() {
    for mut pair in both_modes() {
        assert_eq!(refusal(pair.client.answer(0, &[0; 100])), Some(Code::Internal));
    }
}

#[test]
fn garbage_of_every_length_gets_no_answer_and_leaves_the_ends_as_they_were() {
    let mut garbage = acklab_core::rng::Rng::named(1, "garbage");
    for mut pair in both_modes() {
        let initial = pair.initial();
        let mode = pair.client.mode();
        for length in 0..1300 {
            let noise: Vec<u8> = (0..length).map(|_| garbage.next_u64() as u8).collect();
            assert!(pair.greet(mode, PROLOGUE, &noise).is_err());
            assert!(pair.greet(mode, PROLOGUE, &vec![0; length]).is_err());
            // Its own message, cut off or with something behind.
            let mut cut = initial.clone();
            cut.resize(length, 0);
            assert_eq!(pair.greet(mode, PROLOGUE, &cut).is_ok(), length == initial.len());
        }
        let answer = pair.answer(&initial);
        assert!(pair.client.answer(answer.cipher, &answer.message).is_ok());
        for length in 0..1300 {
            pair.initial();
            let noise: Vec<u8> = (0..length).map(|_| garbage.next_u64() as u8).collect();
            assert!(pair.client.answer(0, &noise).is_err());
        }
    }
}

#[test]
fn shares_that_are_no_elements_of_the_group_end_the_greeting() {
    let mut pair = passphrases("a", "a");
    for share in [[0; SHARE], [0xff; SHARE]] {
        let initial = pair.initial();
        let mut answer = pair.answer(&initial);
        answer.message[..SHARE].copy_from_slice(&share);
        assert_eq!(refusal(pair.client.answer(0, &answer.message)), Some(Code::Protocol));
        // The prologue is the sender's own affair, so that a share can be anything there too.
        let message = [&[7; SESSION][..], &share].concat();
        let prologue = [PROLOGUE, &message].concat();
        let mut noise = builder(NN_PSK2, &prologue).build_initiator().unwrap();
        let message = [message, write(&mut noise, PARAMETERS)].concat();
        assert_eq!(refusal(pair.greet(MODE_PASSPHRASE, PROLOGUE, &message)), Some(Code::Protocol));
    }
}

#[test]
fn digests_need_the_servers_secret_and_with_an_identity_survive_a_restart() {
    let digest = |server: &dyn ServerGreeter| server.digest(b"address and time");
    let server = || KeysServer::new(identity(2), KnownPeers::default());
    assert_eq!(digest(&server()), digest(&server()));
    assert_ne!(digest(&server()), digest(&KeysServer::new(identity(3), KnownPeers::default())));
    assert_ne!(digest(&server()), server().digest(b"another address"));
    let server = || PassphraseServer::new("a".parse().unwrap());
    assert_ne!(digest(&server()), digest(&server()), "nothing of the passphrase is in it");
}

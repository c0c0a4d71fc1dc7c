//! A hostile peer at both ends of reliable UDP's handshake: garbage, true messages with arbitrary
//! edits, and true messages whose payload is arbitrary. Nothing panics; what was altered is refused;
//! after every refusal the true message still does its work, so no refusal left anything behind.
#![no_main]

use std::path::Path;

use acklab_rudp::Code;
use acklab_rudp::protect::{Answer, ClientGreeter, Offer, Phase, ServerGreeter, TAG};
use acklab_net::rudp::keys::Identity;
use acklab_net::rudp::noise::{KeysClient, KeysServer, PassphraseClient, PassphraseServer};
use acklab_net::rudp::peers::KnownPeers;
use libfuzzer_sys::fuzz_target;

const PROLOGUE: &[u8] = b"\x80AKL\x02\0\0\0\0\0\0\0\0\0client_id\x01\x03";

fuzz_target!(|bytes: &[u8]| {
    let Some((&[choice, ciphers, mode], input)) = bytes.split_first_chunk() else { return };
    // No datagram of a handshake is longer.
    let input = &input[..input.len().min(1200)];
    let (mut client, mut server) = ends(choice & 1 == 0);
    let right_mode = client.mode();
    let (edits, payload) = input.split_at(input.len().min(usize::from(choice >> 3)));
    let initial = client.initial(PROLOGUE, payload);

    let offer = |mode, ciphers, prologue, message| Offer { mode, ciphers, prologue, message };
    // Garbage, then the message under a wrong mode, and with arbitrary edits of it and of the header.
    assert!(greet(&mut *server, &offer(right_mode, 3, PROLOGUE, input), payload).is_err());
    if mode != right_mode {
        let refused = greet(&mut *server, &offer(mode, ciphers, PROLOGUE, &initial), payload);
        assert_eq!(refused.err(), Some(Code::Mode));
    }
    let (message, prologue) = (edited(&initial, edits), edited(PROLOGUE, edits));
    let altered = greet(&mut *server, &offer(right_mode, 3, PROLOGUE, &message), payload);
    assert_eq!(altered.is_ok(), message == initial);
    let altered = greet(&mut *server, &offer(right_mode, 3, &prologue, &initial), payload);
    assert_eq!(altered.is_ok(), prologue == PROLOGUE);

    let answer = greet(&mut *server, &offer(right_mode, ciphers, PROLOGUE, &initial), payload);
    assert_eq!(answer.is_ok(), ciphers & 3 != 0);
    let Ok(mut answer) = answer else { return };
    assert_eq!(answer.agreed.payload, payload);

    // Twice less than a client of mode 1 looks at.
    assert!(client.answer(answer.cipher, input).is_err());
    let forged = edited(&answer.message, edits);
    if forged != answer.message {
        assert!(client.answer(answer.cipher, &forged).is_err());
    }
    let mut agreed =
        client.answer(answer.cipher, &answer.message).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(agreed.payload, payload);
    // Under an altered header it may have come before.
    assert!(client.answer(answer.cipher, &answer.message).is_ok());
    assert!(client.answer(answer.cipher, input).is_err());

    // And what is sealed opens, if it was not altered.
    let header = &edits[..edits.len().min(14)];
    let mut body = payload.to_vec();
    body.resize(payload.len() + TAG, 0);
    agreed.protection.seal(choice, u64::from(mode), header, &mut body);
    let mut touched = edited(&body, edits);
    let same = touched == body;
    let phase = [Phase::Previous, Phase::Current, Phase::Next][usize::from(choice >> 1) % 3];
    let opened =
        answer.agreed.protection.open(phase, choice, u64::from(mode), header, &mut touched);
    assert_eq!(opened, same && phase == Phase::Current);
});

fn ends(keys: bool) -> (Box<dyn ClientGreeter>, Box<dyn ServerGreeter>) {
    if keys {
        let (client, server) = (Identity::generate(), Identity::generate());
        let line = format!("client {}", client.public());
        let peers = KnownPeers::parse(&line, Path::new("peers")).expect("one good line");
        (
            Box::new(KeysClient::new(client, server.public())),
            Box::new(KeysServer::new(server, peers)),
        )
    } else {
        let passphrase = || "bada-kilo-nuta-sida".parse().expect("a passphrase");
        (
            Box::new(PassphraseClient::new(passphrase())),
            Box::new(PassphraseServer::new(passphrase())),
        )
    }
}

fn greet(
    server: &mut dyn ServerGreeter,
    offer: &Offer<'_>,
    payload: &[u8],
) -> Result<Answer, Code> {
    server.inspect(offer)?;
    server.greet(offer, &mut |_| payload.to_vec())
}

/// Each three bytes of `edits` change, cut off, double or append something.
fn edited(message: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    for edit in edits.as_chunks::<3>().0 {
        let at = usize::from(edit[1]) % (message.len() + 1);
        match edit[0] % 4 {
            0 => message.truncate(at),
            1 => message.extend_from_slice(&edit[1..]),
            2 => message.extend_from_within(at..),
            _ => {
                if let Some(byte) = message.get_mut(at) {
                    *byte ^= edit[2];
                }
            }
        }
    }
    message
}

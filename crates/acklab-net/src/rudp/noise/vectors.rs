//! Goal: both handshakes are, byte for byte, those that docs/rudp.md section 3 describes.
//! Method: messages and sealed packets that a second program made (tests/oracle/rudp_handshake.py),
//! written from that text alone with its own ristretto255, Noise and BLAKE3, which gives the vectors of
//! CPace's draft too.

use acklab_rudp::protect::{Phase, TAG};
use data_encoding::HEXLOWER;

use super::*;

const PROLOGUE: &[u8] = b"\x80AKL\x02\0\0\0\0\0\0\0\0\0client_id\x01\x03";
const PARAMETERS: &[u8] = b"what the client can take";
const PAYLOAD: &[u8] = b"21 bytes of the headerwhat the server can take";

// The secrets behind the vectors.
const SESSION_ID: [u8; SESSION] = [5; SESSION];
const SCALAR: [u8; 32] = [0x61; 32];
const EPHEMERAL: [u8; 32] = [0x31; 32];

fn passphrase() -> Passphrase {
    "bada-kilo-nuta-sida".parse().unwrap()
}

fn identity(seed: u8) -> Identity {
    Identity::from_private(Zeroizing::new([seed; 32]))
}

/// The client that sent the vector's INITIAL.
fn passphrase_client() -> PassphraseClient {
    let exchange = Exchange::new(cpace_inputs(&passphrase(), &SESSION_ID), SCALAR);
    let prologue = [PROLOGUE, &SESSION_ID, exchange.share()].concat();
    let noise = builder(NN_PSK2, &prologue).fixed_ephemeral_key_for_testing_only(&EPHEMERAL);
    let mut noise = noise.build_initiator().unwrap();
    let message = [&SESSION_ID[..], exchange.share(), &write(&mut noise, PARAMETERS)].concat();
    assert_eq!(HEXLOWER.encode(&message), PASS_INITIAL);
    let begun = PassphraseBegun {
        session: SESSION_ID,
        exchange,
        noise,
        unreadable: Vec::new(),
        agreement: None,
    };
    PassphraseClient { passphrase: passphrase(), begun: Some(begun) }
}

/// The client that sent the vector's INITIAL.
fn keys_client() -> KeysClient {
    let (client, server) = (identity(1), identity(2).public());
    let noise = builder(IK, PROLOGUE).fixed_ephemeral_key_for_testing_only(&EPHEMERAL);
    let noise = noise.local_private_key(client.private()).unwrap();
    let mut noise = noise.remote_public_key(&server.0).unwrap().build_initiator().unwrap();
    let message = write(&mut noise, PARAMETERS);
    let mac = first_mac(&mac_key(&server), PROLOGUE, &message);
    assert_eq!(HEXLOWER.encode(&[&message[..], &mac].concat()), KEYS_INITIAL);
    KeysClient { identity: client, server, begun: Some(noise), agreement: None }
}

fn check(client: &mut dyn ClientGreeter, server: &mut dyn ServerGreeter, vector: [&str; 4]) {
    let [initial, answer, up, down] = vector;
    let message = HEXLOWER.decode(initial.as_bytes()).unwrap();
    let offer = Offer { mode: client.mode(), ciphers: 3, prologue: PROLOGUE, message: &message };
    assert_eq!(server.inspect(&offer), Ok(()));
    let greeted = server.greet(&offer, &mut |_| PAYLOAD.to_vec()).ok().unwrap();
    assert_eq!(greeted.agreed.payload, PARAMETERS);

    let mut agreed = client.answer(1, &HEXLOWER.decode(answer.as_bytes()).unwrap()).ok().unwrap();
    assert_eq!(agreed.payload, PAYLOAD);
    let mut packet = b"up".to_vec();
    packet.resize(2 + TAG, 0);
    agreed.protection.seal(0, 0, b"header", &mut packet);
    assert_eq!(HEXLOWER.encode(&packet), up);
    let mut packet = HEXLOWER.decode(down.as_bytes()).unwrap();
    assert!(agreed.protection.open(Phase::Current, 0, 0, b"header", &mut packet));
    assert_eq!(packet[..4], *b"down");
}

#[test]
fn the_handshake_with_a_passphrase_is_that_of_version_2() {
    let mut server = PassphraseServer::new(passphrase());
    let vector = [PASS_INITIAL, PASS_ANSWER, PASS_UP, PASS_DOWN];
    check(&mut passphrase_client(), &mut server, vector);
}

#[test]
fn the_handshake_with_keys_is_that_of_version_2() {
    let mut peers = KnownPeers::default();
    peers.insert(identity(1).public(), "client");
    let mut server = KeysServer::new(identity(2), peers);
    check(&mut keys_client(), &mut server, [KEYS_INITIAL, KEYS_ANSWER, KEYS_UP, KEYS_DOWN]);
}

const PASS_INITIAL: &str = "0505050505050505050505050505050520b8ea57001fd29f4e5d258bab75c31e7156cd996dd83ebc\
    d612635277be694e04f5f29162c31a8defa18e6e742224ee806fc1718a278be859ba5620402b8f3a\
    2116a80822afb3cf654d0a6052c3370ee3d1b705bca738b9a2ac98a4ac26e1d09ccc4beed2fa0c29";
const PASS_ANSWER: &str = "16e9d23a728b52237a89e4649c292c547cd5929e48fda66ad5f153af4c65572359d9225473451eff\
    fe6b36dbcaefdbf7b1895de62084509a7f5b58bf01d064184136147e34adebe873e495f857fb3813\
    93d5fc2d7374a0ea658ff7644b1810b48176dd0369fbc8b2812344efa98621cbfbab826e2c8434a8\
    650778811061";
const PASS_UP: &str = "86ad6d3628c00bba3dae8b745ebb45859425";
const PASS_DOWN: &str = "e2cb2401f49bb50200a5dde789465fdcdf156c52";
const KEYS_INITIAL: &str = "04f5f29162c31a8defa18e6e742224ee806fc1718a278be859ba5620402b8f3a43f4b2a6aaf1f46b\
    a5cc3dc383105ffc7ffca068cc93adb9bc665b6fd0b48d1bdfee72d15969300b1d6718852e780a2b\
    a092cbc02ac61674c5d287297ec0472eec6fa1bc53ad6851685c4a5fe797bd4f3e5058311790e12b\
    36b9675e6638a8e3e3c96700d4b417f7";
const KEYS_ANSWER: &str = "59d9225473451efffe6b36dbcaefdbf7b1895de62084509a7f5b58bf01d06418e0dbfa5c341b321f\
    d07bb88295f8f3ccc30ae8f34a062202df3ca7686679c6b3afaa38238b4c53bfcf4ad2b2058fffb1\
    37d802a51665783291980c5dc92a";
const KEYS_UP: &str = "6016108afb41a241cac8015f535253da660c";
const KEYS_DOWN: &str = "0dc2050e434d0dd1d13ff27111f90b4a49c1dd88";

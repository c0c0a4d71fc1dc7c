//! Goal: the two ends understand each other across every update, no other host does, and the bytes on
//! the wire cannot change unseen.

use data_encoding::HEXLOWER;

use super::*;

const HEADER: &[u8] = b"\0connect0\x02\0\0\0\x07";

fn pair(cipher: Cipher) -> (Keys, Keys) {
    let (up, down) = (Zeroizing::new([1; SECRET]), Zeroizing::new([2; SECRET]));
    (Keys::new(cipher, up.clone(), &down), Keys::new(cipher, down, &up))
}

fn sealed(keys: &mut Keys, path: u8, number: u64, content: &[u8]) -> Vec<u8> {
    let mut body = content.to_vec();
    body.extend_from_slice(&[0; TAG]);
    keys.seal(path, number, HEADER, &mut body);
    body
}

fn opened(keys: &mut Keys, phase: Phase, path: u8, number: u64, sealed: &[u8]) -> Option<Vec<u8>> {
    let mut body = sealed.to_vec();
    let fits = keys.open(phase, path, number, HEADER, &mut body);
    body.truncate(sealed.len() - TAG);
    fits.then_some(body)
}

#[test]
fn what_one_end_seals_the_other_opens_in_both_directions() {
    for cipher in [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305] {
        let (mut client, mut server) = pair(cipher);
        for (path, number) in [(0, 0), (0, 1), (254, 0), (7, (1 << 62) - 1)] {
            let packet = sealed(&mut client, path, number, b"upwards");
            assert_eq!(
                opened(&mut server, Phase::Current, path, number, &packet).as_deref(),
                Some(&b"upwards"[..])
            );
            assert_eq!(opened(&mut client, Phase::Current, path, number, &packet), None);
            let packet = sealed(&mut server, path, number, b"");
            assert_eq!(packet.len(), TAG);
            assert_eq!(
                opened(&mut client, Phase::Current, path, number, &packet).as_deref(),
                Some(&b""[..])
            );
        }
    }
}

#[test]
fn a_packet_that_was_altered_anywhere_does_not_open() {
    for cipher in [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305] {
        let (mut client, mut server) = pair(cipher);
        let packet = sealed(&mut client, 2, 7, b"frames");
        for bit in 0..packet.len() * 8 {
            let mut altered = packet.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opened(&mut server, Phase::Current, 2, 7, &altered), None);
        }
        for bit in 0..HEADER.len() * 8 {
            let mut header = HEADER.to_vec();
            header[bit / 8] ^= 1 << (bit % 8);
            assert!(!server.open(Phase::Current, 2, 7, &header, &mut packet.clone()));
        }
        assert_eq!(opened(&mut server, Phase::Current, 3, 7, &packet), None);
        assert_eq!(opened(&mut server, Phase::Current, 2, 8, &packet), None);
        // Neither is the number of a path the higher half of a packet number.
        assert_eq!(opened(&mut server, Phase::Current, 0, 7 | 2 << 32, &packet), None);
        assert!(opened(&mut server, Phase::Current, 2, 7, &packet).is_some());
    }
}

#[test]
fn what_is_shorter_than_a_tag_does_not_open() {
    let (_, mut server) = pair(Cipher::Aes128Gcm);
    for length in 0..=TAG {
        for phase in [Phase::Previous, Phase::Current, Phase::Next] {
            assert!(!server.open(phase, 0, 0, HEADER, &mut vec![0; length]));
        }
    }
}

#[test]
fn packets_that_overtake_an_update_open_with_the_next_key_and_late_ones_with_the_previous() {
    let (mut client, mut server) = pair(Cipher::Aes128Gcm);
    let late = sealed(&mut client, 0, 1, b"late");
    client.update_sending();
    let early = sealed(&mut client, 0, 2, b"early");
    assert_eq!(opened(&mut server, Phase::Previous, 0, 1, &late), None, "there is none yet");
    assert_eq!(opened(&mut server, Phase::Current, 0, 2, &early), None);
    assert!(opened(&mut server, Phase::Next, 0, 2, &early).is_some());
    assert!(opened(&mut server, Phase::Current, 0, 1, &late).is_some(), "nothing has moved");

    server.update_receiving();
    assert!(opened(&mut server, Phase::Current, 0, 2, &early).is_some());
    assert!(opened(&mut server, Phase::Previous, 0, 1, &late).is_some());
    server.forget_previous();
    assert_eq!(opened(&mut server, Phase::Previous, 0, 1, &late), None);
}

#[test]
fn the_ends_stay_in_step_over_many_updates_that_they_make_apart() {
    for cipher in [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305] {
        let (mut client, mut server) = pair(cipher);
        let mut seen = Vec::new();
        for number in 0..20 {
            let packet = sealed(&mut client, 0, 0, b"the same text under the same number");
            assert!(opened(&mut server, Phase::Current, 0, 0, &packet).is_some());
            assert!(!seen.contains(&packet), "a key was used twice");
            seen.push(packet);
            client.update_sending();
            server.update_receiving();
            if number % 3 == 0 {
                server.update_sending();
                client.update_receiving();
            }
            let back = sealed(&mut server, 0, number, b"down");
            assert!(opened(&mut client, Phase::Current, 0, number, &back).is_some());
        }
    }
}

#[test]
fn the_server_takes_aes_only_where_both_ends_are_fast_at_it() {
    let (aes, chacha) = (Cipher::Aes128Gcm.bit(), Cipher::ChaCha20Poly1305.bit());
    assert_eq!(Cipher::choose(chacha), Some(Cipher::ChaCha20Poly1305));
    assert_eq!(Cipher::choose(chacha | 0xfc), Some(Cipher::ChaCha20Poly1305));
    assert_eq!(Cipher::choose(aes), Some(Cipher::Aes128Gcm));
    assert_eq!(Cipher::choose(0), None);
    assert_eq!(Cipher::choose(0xfc), None);
    let fast = Cipher::offered() & aes != 0;
    let chosen = if fast { Cipher::Aes128Gcm } else { Cipher::ChaCha20Poly1305 };
    assert_eq!(Cipher::choose(aes | chacha), Some(chosen));
    for cipher in [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305] {
        assert_eq!(Cipher::from_wire(cipher.to_wire()), Some(cipher));
    }
}

#[test]
fn the_key_schedule_and_the_sealed_bytes_are_those_of_version_1() {
    let secret = Zeroizing::new([1; SECRET]);
    assert_eq!(
        HEXLOWER.encode(&derive(CONTEXT_KEY, &secret[..])[..]),
        "ceed833db5bd24dcbf37205ef7342814810987581c1f2eebe973f7ad37118719"
    );
    assert_eq!(HEXLOWER.encode(&derive(CONTEXT_IV, &secret[..])[..12]), "74b53cae87fbfe716a8039e0");
    assert_eq!(
        HEXLOWER.encode(&updated(&secret)[..]),
        "9e237e1b540978b6ed08929b3ff95f030d0ab3d35c3a91f68803c9fde5abd264"
    );
    for (cipher, first, second) in [
        (
            Cipher::Aes128Gcm,
            "df4439fb48f254d738fdafc5fc3b4cd36d137d3900e8",
            "65e3982ab14e57ccbdf7f9cf53d3c6b5ce3b9ae46e57",
        ),
        (
            Cipher::ChaCha20Poly1305,
            "ca2ce3a61c404f009552d3763b6de108a49e1efad278",
            "a3022976bb6333f9d0ec78ddb6a6073196ec4913ed9c",
        ),
    ] {
        let (mut client, _) = pair(cipher);
        assert_eq!(HEXLOWER.encode(&sealed(&mut client, 2, 0x1_0000_0007, b"frames")), first);
        client.update_sending();
        assert_eq!(HEXLOWER.encode(&sealed(&mut client, 2, 0x1_0000_0007, b"frames")), second);
    }
}

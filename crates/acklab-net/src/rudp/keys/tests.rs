//! Goal: a key survives the way to text and file and back, and every mistake is found and told.

use super::*;

fn identity(seed: u8) -> Identity {
    Identity::from_private(Zeroizing::new([seed; KEY]))
}

#[test]
fn the_public_key_of_a_private_one_is_that_of_rfc_7748() {
    // Section 6.1, Alice.
    let private = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
    let public = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
    let private = HEXLOWER.decode(private.as_bytes()).unwrap().try_into().unwrap();
    let identity = Identity::from_private(Zeroizing::new(private));
    assert_eq!(HEXLOWER.encode(&identity.public().0), public);
}

#[test]
fn a_key_written_and_read_is_the_same_in_either_case() {
    for seed in 0..50 {
        let key = identity(seed).public();
        let text = key.to_string();
        assert_eq!(text.len(), 63);
        assert_eq!(text.parse(), Ok(key));
        let loud = format!("acklab1{}", text["acklab1".len()..].to_uppercase());
        assert_eq!(loud.parse(), Ok(key));
        assert_eq!(key.fingerprint().len(), 16);
    }
    assert_ne!(identity(1).public().fingerprint(), identity(2).public().fingerprint());
}

#[test]
fn the_text_of_a_key_is_that_of_version_1() {
    let key = PublicKey([9; KEY]);
    assert_eq!(key.to_string(), "acklab1beeqscijbeeqscijbeeqscijbeeqscijbeeqscijbeeqscijbeexvbq3");
    assert_eq!(key.fingerprint(), "7a861bad5937df08");
}

#[test]
fn every_slip_of_the_pen_is_found() {
    let text = identity(1).public().to_string();
    for at in "acklab1".len()..text.len() {
        for letter in *b"abcdefghijklmnopqrstuvwxyz234567" {
            let mut slip = text.clone().into_bytes();
            if slip[at] == letter {
                continue;
            }
            slip[at] = letter;
            let slip = String::from_utf8(slip).unwrap();
            assert_eq!(slip.parse::<PublicKey>(), Err(KeyError::Check), "{slip}");
        }
    }
}

#[test]
fn what_is_no_key_is_told_apart() {
    let text = identity(1).public().to_string();
    let parse = |text: &str| text.parse::<PublicKey>().unwrap_err();
    assert_eq!(parse(""), KeyError::Prefix);
    assert_eq!(parse(&text[1..]), KeyError::Prefix);
    assert_eq!(parse("acklab1"), KeyError::Length(0));
    assert_eq!(parse(&text[..62]), KeyError::Length(55));
    assert_eq!(parse(&format!("{text}a")), KeyError::Length(57));
    assert_eq!(parse(&format!("{text}{text}")), KeyError::Character { character: '1', column: 70 });
    assert_eq!(
        parse(&text.replacen("acklab1", "acklab1\u{e4}", 1)),
        KeyError::Character { character: '\u{e4}', column: 8 }
    );
    for weak in [[0; KEY], std::array::from_fn(|at| u8::from(at == 0))] {
        assert_eq!(parse(&PublicKey(weak).to_string()), KeyError::Weak);
    }
}

#[test]
fn the_private_key_is_not_shown_by_debug() {
    assert_eq!(format!("{:?}", identity(1)), format!("Identity({})", identity(1).public()));
}

#[cfg(unix)]
#[test]
fn an_identity_is_made_once_for_its_owner_alone_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identity");
    let made = Identity::load_or_make(&path).unwrap();
    assert_eq!(permissions(&fs::metadata(&path).unwrap()), 0o600);
    let found = Identity::load_or_make(&path).unwrap();
    assert_eq!(found.public(), made.public());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn of_many_that_make_it_at_once_all_get_the_same_identity() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identity");
    let keys: Vec<PublicKey> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| Identity::load_or_make(&path).unwrap().public()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(keys, [keys[0]; 8]);
}

#[cfg(unix)]
#[test]
fn an_identity_that_others_can_read_is_refused_with_the_way_out() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identity");
    Identity::load_or_make(&path).unwrap();
    for mode in [0o640, 0o604, 0o620, 0o666] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let said = Identity::load_or_make(&path).unwrap_err().to_string();
        assert!(said.contains(&format!("mode {mode:03o}")), "{said}");
        assert!(said.contains(&format!("chmod 600 {}", path.display())), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_holds_something_else_is_told_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identity");
    let good = format!("{PRIVATE}{}", *encode(&[7; KEY]));
    for (content, reason) in [
        (String::new(), "it does not begin with"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----".to_owned(), "it does not begin with"),
        (good[..50].to_owned(), "not as long as keys are"),
        (good.replace(&good[16..18], "!!"), "characters that are in no key"),
        (format!("{}{}", &good[..71], if good.ends_with('a') { 'b' } else { 'a' }), "damaged"),
    ] {
        let mut file = for_the_owner().open(&path).unwrap();
        file.write_all(content.as_bytes()).unwrap();
        let said = Identity::load_or_make(&path).unwrap_err().to_string();
        assert!(said.contains(reason), "{content:?}: {said}");
        assert!(!said.contains(&good[20..]), "the key is not in what is said");
        assert_eq!(fs::read(&path).unwrap(), content.as_bytes());
        fs::remove_file(&path).unwrap();
    }
    let mut file = for_the_owner().open(&path).unwrap();
    writeln!(file, " {good} ").unwrap();
    let identity = Identity::load_or_make(&path).unwrap();
    assert_eq!(identity.public(), Identity::from_private(Zeroizing::new([7; KEY])).public());
}

#[test]
fn a_folder_that_is_not_there_is_told_by_the_files_name() {
    let said = Identity::load_or_make(Path::new("no/such/identity")).unwrap_err().to_string();
    assert!(said.starts_with("no/such/identity: the identity cannot be made: "), "{said}");
}

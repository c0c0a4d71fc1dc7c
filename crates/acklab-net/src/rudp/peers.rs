//! The known peers: who may send here, one `name key` per line.
//!
//! Everything after `#` is a remark. A key or a name that stands there twice is a mistake, because
//! one of the two lines would then do nothing. The file may be read by everybody (public keys are no
//! secret) and changed by its owner alone.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::keys::{KeyError, PublicKey, permissions};

/// Names by key.
#[derive(Clone, Debug, Default)]
pub struct KnownPeers(BTreeMap<PublicKey, String>);

/// Why the known peers could not be had.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    #[error("{}: the known peers cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{0}: others than its owner may change this list (mode {mode:03o}): `chmod go-w {0}`", path.display())]
    Exposed { path: PathBuf, mode: u32 },
    #[error("{}:{line}:{column}: {reason}", path.display())]
    Line {
        path: PathBuf,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong, and how to mend it.
        reason: LineError,
    },
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    #[error("a key is missing after the name `{0}`: the line is `name key`")]
    NoKey(String),
    #[error("`{0}` is too much: the line is `name key`; remarks begin with `#`")]
    TooMuch(String),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("this is the key of `{0}` too: keep one of the two lines")]
    SameKey(String),
    #[error("`{0}` has a key already: keep one of the two lines, or name them apart")]
    SameName(String),
}

impl KnownPeers {
    pub fn read(path: &Path) -> Result<Self, PeersError> {
        let fault = |source| PeersError::Read { path: path.into(), source };
        let mode = permissions(&fs::metadata(path).map_err(fault)?);
        if mode & 0o022 != 0 {
            return Err(PeersError::Exposed { path: path.into(), mode });
        }
        Self::parse(&fs::read_to_string(path).map_err(fault)?, path)
    }

    /// The peers in a text; `path` is for what is said about mistakes.
    pub fn parse(text: &str, path: &Path) -> Result<Self, PeersError> {
        let mut peers = Self::default();
        for (at, line) in text.lines().enumerate() {
            peers.push_line(line).map_err(|(column, reason)| PeersError::Line {
                path: path.into(),
                line: at + 1,
                column,
                reason,
            })?;
        }
        Ok(peers)
    }

    /// Adds a peer; a key that is there already gets the new name.
    pub fn insert(&mut self, key: PublicKey, name: &str) {
        self.0.insert(key, name.to_owned());
    }

    /// What that key's owner is called here; `None`: it is not known.
    pub fn name(&self, key: &PublicKey) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no peer is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn push_line(&mut self, line: &str) -> Result<(), (usize, LineError)> {
        let content = line.split('#').next().unwrap_or_default();
        let mut words = words(content);
        let Some((name_at, name)) = words.next() else { return Ok(()) };
        let Some((key_at, key)) = words.next() else {
            return Err((name_at + name.chars().count(), LineError::NoKey(name.to_owned())));
        };
        if let Some((at, word)) = words.next() {
            return Err((at, LineError::TooMuch(word.to_owned())));
        }
        let key: PublicKey = key.parse().map_err(|e| match e {
            KeyError::Character { column, .. } => (key_at + column - 1, e.into()),
            _ => (key_at, LineError::from(e)),
        })?;
        if let Some(other) = self.name(&key) {
            return Err((key_at, LineError::SameKey(other.to_owned())));
        }
        if self.0.values().any(|other| other == name) {
            return Err((name_at, LineError::SameName(name.to_owned())));
        }
        self.insert(key, name);
        Ok(())
    }
}

/// The words of a line, each with the column in which it begins, in characters from 1.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = line.as_ptr() as usize;
    line.split_whitespace().map(move |word| {
        let before = word.as_ptr() as usize - start;
        (line[..before].chars().count() + 1, word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> String {
        let private = zeroize::Zeroizing::new([seed; 32]);
        super::super::keys::Identity::from_private(private).public().to_string()
    }

    fn complaint(text: &str) -> String {
        KnownPeers::parse(text, Path::new("known-peers")).unwrap_err().to_string()
    }

    #[test]
    fn a_line_is_a_name_and_a_key_and_remarks_do_not_count() {
        let text =
            format!("# who may send\n\nalice {}\n\tb\u{f6}b   {} # his laptop\n", key(1), key(2));
        let peers = KnownPeers::parse(&text, Path::new("p")).unwrap();
        assert_eq!(peers.len(), 2);
        assert_eq!(peers.name(&key(1).parse().unwrap()), Some("alice"));
        assert_eq!(peers.name(&key(2).parse().unwrap()), Some("b\u{f6}b"));
        assert_eq!(peers.name(&key(3).parse().unwrap()), None);
        assert!(KnownPeers::parse("", Path::new("p")).unwrap().is_empty());
    }

    #[test]
    fn mistakes_are_told_with_line_column_and_the_way_out() {
        let (one, two) = (key(1), key(2));
        let mistyped = format!("{}{}", &one[..62], if one.ends_with('a') { 'b' } else { 'a' });
        for (text, expected) in [
            ("alice".to_owned(), "known-peers:1:6: a key is missing after the name `alice`"),
            (format!("# a\n a {one} {two}"), "known-peers:2:68: `acklab1"),
            ("a key".to_owned(), "known-peers:1:3: a public key begins with `acklab1`"),
            (
                format!("\u{f6}\u{f6} {}", &one[..30]),
                "known-peers:1:4: a public key has 56 characters",
            ),
            (format!("a {}!", &one[..20]), "known-peers:1:23: `!` in column 21 is in no key"),
            (format!("a {mistyped}"), "known-peers:1:3: the key's last characters do not fit"),
            (format!("a {one}\nb {one}"), "known-peers:2:3: this is the key of `a` too"),
            (format!("a {one}\na {two}"), "known-peers:2:1: `a` has a key already"),
        ] {
            let said = complaint(&text);
            assert!(said.starts_with(expected), "{text:?}: {said}");
        }
    }

    #[test]
    fn a_missing_file_is_told_by_its_name() {
        let said = KnownPeers::read(Path::new("no/such/known-peers")).unwrap_err().to_string();
        assert!(
            said.starts_with("no/such/known-peers: the known peers cannot be read: "),
            "{said}"
        );
    }

    #[test]
    fn no_text_makes_the_reader_panic() {
        let pieces =
            ["acklab1", "#", " ", "\n", "\r\n", "\t", "a", "7", "=", "\u{f6}", "\u{2003}", "\0"];
        let line = format!("name {}", key(1));
        let mut rng = acklab_core::rng::Rng::named(1, "peers");
        for _ in 0..2000 {
            let mut text = line.clone();
            for _ in 0..rng.next_u64() % 8 {
                let mut at = rng.next_u64() as usize % (text.len() + 1);
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                text.insert_str(at, pieces[rng.next_u64() as usize % pieces.len()]);
            }
            if let Err(e) = KnownPeers::parse(&text, Path::new("p")) {
                assert!(e.to_string().starts_with("p:"), "{e}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_list_that_others_may_change_is_refused_with_the_way_out() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known-peers");
        fs::write(&path, format!("alice {}\n", key(1))).unwrap();
        let read = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            KnownPeers::read(&path)
        };
        let (open, shared) = (read(0o666), read(0o644));
        let said = open.unwrap_err().to_string();
        assert!(said.contains("mode 666") && said.contains("chmod go-w"), "{said}");
        assert_eq!(shared.unwrap().len(), 1, "everybody may read it");
    }
}

//! Identities: the X25519 key pair by which one end knows the other.
//!
//! A public key is written `acklab1` and 56 letters and digits: base32 (RFC 4648 section 6, in lower
//! case) of the 32 bytes and 3 bytes of their BLAKE3, so that a slip of the pen is found where it is
//! read and not by a peer that does not answer. For reading aloud, the fingerprint: the first 16 hex
//! digits of the key's BLAKE3.
//!
//! The identity's file holds the private key in the same form, one line; it is made at the first use,
//! for its owner alone, and refused if others may read it.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use curve25519_dalek::montgomery::MontgomeryPoint;
use data_encoding::{BASE32_NOPAD_NOCASE, HEXLOWER};
use zeroize::Zeroizing;

use super::entropy::random;

/// Length of a key, bytes.
pub const KEY: usize = 32;

/// What a peer may know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; KEY]);

/// Why a text is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("a public key begins with `acklab1`: copy the whole line that the other end shows")]
    Prefix,
    #[error(
        "a public key has {TEXT} characters after `acklab1` and this has {0}: copy the whole of it"
    )]
    Length(usize),
    #[error(
        "`{character}` in column {column} is in no key: they have the letters a to z and 2 to 7"
    )]
    Character {
        character: char,
        /// Where, in characters from 1.
        column: usize,
    },
    #[error("the key's last characters do not fit the others: it was mistyped; copy it again")]
    Check,
    #[error("this is no key that anybody can have: ask the peer for its own")]
    Weak,
}

impl PublicKey {
    /// For reading aloud: 16 hex digits.
    pub fn fingerprint(&self) -> String {
        HEXLOWER.encode(&blake3::hash(&self.0).as_bytes()[..8])
    }

    /// Of so small an order that any exchange with it gives zero.
    fn is_weak(&self) -> bool {
        MontgomeryPoint(self.0).mul_clamped([0; KEY]).0 == [0; KEY]
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC}{}", *encode(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let key = Self(*decode(PUBLIC, text)?);
        if key.is_weak() { Err(KeyError::Weak) } else { Ok(key) }
    }
}

/// A key pair. The private half is wiped when it is dropped, and never shown by `Debug`.
#[derive(Clone)]
pub struct Identity {
    private: Zeroizing<[u8; KEY]>,
    public: PublicKey,
}

/// Why there is no identity to be had from a file.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("{}: the identity cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: the identity cannot be made: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "{0}: others than its owner may use this identity (mode {mode:03o}): `chmod 600 {0}`, and make \
         a new one if another user may have read it", path.display()
    )]
    Exposed { path: PathBuf, mode: u32 },
    #[error(
        "{}:1: this is no identity of acklab's: {reason}; name another file, or move this one away and \
         a new identity is made", path.display()
    )]
    Content { path: PathBuf, reason: &'static str },
}

impl Identity {
    /// A new key pair.
    pub fn generate() -> Self {
        Self::from_private(Zeroizing::new(random()))
    }

    /// The pair of that private key.
    pub fn from_private(private: Zeroizing<[u8; KEY]>) -> Self {
        let public = PublicKey(MontgomeryPoint::mul_base_clamped(*private).0);
        Self { private, public }
    }

    /// What peers are to be given.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(super) fn private(&self) -> &[u8; KEY] {
        &self.private
    }

    /// The identity in that file, which is made where there is none.
    pub fn load_or_make(path: &Path) -> Result<Self, IdentityError> {
        match File::open(path) {
            Ok(file) => Self::load(path, &file),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Self::make(path)
                    .map_err(|source| IdentityError::Write { path: path.into(), source })?;
                // Read back what stands there: another process may have been first.
                let read = |source| IdentityError::Read { path: path.into(), source };
                Self::load(path, &File::open(path).map_err(read)?)
            }
            Err(source) => Err(IdentityError::Read { path: path.into(), source }),
        }
    }

    fn load(path: &Path, mut file: &File) -> Result<Self, IdentityError> {
        let read = |source| IdentityError::Read { path: path.into(), source };
        let mode = permissions(&file.metadata().map_err(read)?);
        if mode & 0o077 != 0 {
            return Err(IdentityError::Exposed { path: path.into(), mode });
        }
        let mut content = Zeroizing::new(Vec::with_capacity(LONGEST_FILE));
        io::Read::read_to_end(&mut io::Read::take(&mut file, LONGEST_FILE as u64), &mut content)
            .map_err(read)?;
        let wrong = |reason| IdentityError::Content { path: path.into(), reason };
        let text = str::from_utf8(&content).map_err(|_| wrong("it is not text"))?;
        let private = decode(PRIVATE, text.trim()).map_err(|e| {
            wrong(match e {
                KeyError::Prefix => "it does not begin with `acklab-private-1`",
                KeyError::Length(_) => "its key is not as long as keys are",
                KeyError::Character { .. } => "it has characters that are in no key",
                KeyError::Check | KeyError::Weak => "its key is damaged",
            })
        })?;
        Ok(Self::from_private(private))
    }

    /// Writes beside and links into place, so that no reader ever sees half of it and none is replaced.
    fn make(path: &Path) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", HEXLOWER.encode(&random::<8>())));
        let beside = path.with_file_name(name);
        let line = Zeroizing::new(format!("{PRIVATE}{}\n", *encode(Self::generate().private())));
        let written = for_the_owner()
            .open(&beside)
            .and_then(|mut file| {
                file.write_all(line.as_bytes())?;
                file.sync_all()
            })
            .and_then(|()| fs::hard_link(&beside, path));
        // What could not be removed was not made either.
        let _ = fs::remove_file(&beside);
        match written {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.public)
    }
}

fn for_the_owner() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// The permission bits; none where files have no such thing.
pub(super) fn permissions(metadata: &fs::Metadata) -> u32 {
    #[cfg(unix)]
    return std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
    #[cfg(not(unix))]
    {
        let _ = metadata;
        0
    }
}

/// The key and its check, as letters and digits.
fn encode(key: &[u8; KEY]) -> Zeroizing<String> {
    let mut bytes = Zeroizing::new([0; KEY + CHECK]);
    bytes[..KEY].copy_from_slice(key);
    bytes[KEY..].copy_from_slice(&check(key));
    let mut text = Zeroizing::new([0; TEXT]);
    BASE32_NOPAD_NOCASE.encode_mut(&bytes[..], &mut text[..]);
    text.make_ascii_lowercase();
    Zeroizing::new(text.iter().copied().map(char::from).collect())
}

fn decode(prefix: &str, text: &str) -> Result<Zeroizing<[u8; KEY]>, KeyError> {
    let rest = text.strip_prefix(prefix).ok_or(KeyError::Prefix)?;
    let foreign = |character: &char| !matches!(character, 'a'..='z' | 'A'..='Z' | '2'..='7');
    if let Some((at, character)) = rest.chars().enumerate().find(|(_, it)| foreign(it)) {
        return Err(KeyError::Character { character, column: prefix.len() + at + 1 });
    }
    let mut bytes = Zeroizing::new([0; KEY + CHECK]);
    if rest.len() != TEXT
        || BASE32_NOPAD_NOCASE.decode_mut(rest.as_bytes(), &mut bytes[..]).is_err()
    {
        return Err(KeyError::Length(rest.len()));
    }
    let mut key = Zeroizing::new([0; KEY]);
    key.copy_from_slice(&bytes[..KEY]);
    if check(&key) == bytes[KEY..] { Ok(key) } else { Err(KeyError::Check) }
}

fn check(key: &[u8; KEY]) -> [u8; CHECK] {
    let hash = blake3::hash(key);
    std::array::from_fn(|at| hash.as_bytes()[at])
}

const PUBLIC: &str = "acklab1";
const PRIVATE: &str = "acklab-private-1";
/// So many that key and check fill base32 without bits over; one slip in 2^24 passes.
const CHECK: usize = 3;
/// Characters of a key and its check.
const TEXT: usize = (KEY + CHECK) / 5 * 8;
/// Bytes of an identity's file that are looked at.
const LONGEST_FILE: usize = 256;

#[cfg(test)]
mod tests;

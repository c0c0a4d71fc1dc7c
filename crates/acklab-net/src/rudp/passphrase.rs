//! The passphrase that two ends share, and how one is made that can be read out over the telephone.
//!
//! A made passphrase is four words of four letters, consonant and vowel twice: 16 * 4 * 8 * 4 = 2048
//! words, so 44 bits. CPace allows an attacker one guess per connection, and the server limits those,
//! so 44 bits are plenty; no word list has to be carried or agreed upon.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

use super::entropy::random;

/// What both ends know. Wiped when it is dropped; never shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase(Zeroizing<String>);

/// Why something is no passphrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PassphraseError {
    #[error("the passphrase is empty: give one, or let the receiver make one by giving none there")]
    Empty,
    #[error("the passphrase has {0} bytes and at most {MOST} are taken: use a shorter one")]
    TooLong(usize),
}

impl Passphrase {
    /// Four words at random.
    pub fn generate() -> Self {
        let random = Zeroizing::new(random::<8>());
        let mut bits = u64::from_le_bytes(*random);
        let mut text = Zeroizing::new(String::with_capacity(WORDS * 5));
        for place in 0..WORDS {
            if place > 0 {
                text.push('-');
            }
            push_word(&mut text, (bits % 2048) as usize);
            bits /= 2048;
        }
        Self(text)
    }

    /// Whether so few guesses find it that a server should let few be made.
    pub fn is_weak(&self) -> bool {
        bits(&self.0) < WEAK_BITS
    }

    /// As it is to be typed at the other end.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Passphrase {
    type Err = PassphraseError;

    /// White space around it does not count; between, it does.
    fn from_str(text: &str) -> Result<Self, PassphraseError> {
        match text.trim() {
            "" => Err(PassphraseError::Empty),
            text if text.len() > MOST => Err(PassphraseError::TooLong(text.len())),
            text => Ok(Self(Zeroizing::new(text.to_owned()))),
        }
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

/// Word `index` of 2048.
fn push_word(text: &mut String, index: usize) {
    let syllables: [(&[u8], usize); 4] =
        [(FIRST, index >> 7), (VOWELS, index >> 5), (SECOND, index >> 2), (VOWELS, index)];
    for (letters, place) in syllables {
        text.push(char::from(letters[place % letters.len()]));
    }
}

/// Roughly how many guesses a passphrase takes, as a power of two, if it is made as people make them: a word counts
/// for one of 2048, more where it is long, a digit for one of 10, and what repeats the character before for little.
fn bits(text: &str) -> f64 {
    let mut bits = 0.0;
    let (mut run, mut before) = (0, None);
    for character in text.chars() {
        run = if character.is_alphabetic() { run + 1 } else { 0 };
        bits += match character {
            _ if before == Some(character) => 0.5,
            letter if letter.is_alphabetic() => [4.0, 4.0, 3.0, 2.0][(run - 1).min(3)],
            digit if digit.is_numeric() => 3.3,
            _ => 2.0,
        };
        before = Some(character);
    }
    bits
}

/// 20 guesses a second find half of what has less within eight centuries; a made one has 44.
const WEAK_BITS: f64 = 40.0;
const WORDS: usize = 4;
/// Bytes; longer than anything typed, short enough to hash at every greeting.
const MOST: usize = 1024;
const FIRST: &[u8] = b"bdfghjklmnprstvz";
const SECOND: &[u8] = b"dklmnrst";
/// `e` is left out: in too many languages it is spoken like `i`.
const VOWELS: &[u8] = b"aiou";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_2048_words_and_each_reads_as_two_syllables() {
        let words: BTreeSet<String> = (0..2048)
            .map(|index| {
                let mut word = String::new();
                push_word(&mut word, index);
                word
            })
            .collect();
        assert_eq!(words.len(), 2048);
        assert_eq!(words.first().map(String::as_str), Some("bada"));
        assert_eq!(words.last().map(String::as_str), Some("zutu"));
        for word in words {
            let [a, b, c, d] = word.as_bytes() else { panic!("{word} has four letters") };
            assert!(
                FIRST.contains(a) && VOWELS.contains(b) && SECOND.contains(c) && VOWELS.contains(d)
            );
        }
    }

    #[test]
    fn a_made_passphrase_has_four_words_is_never_the_same_and_is_taken_as_it_is_read() {
        let made: BTreeSet<String> =
            (0..100).map(|_| Passphrase::generate().as_str().to_owned()).collect();
        assert_eq!(made.len(), 100);
        for text in made {
            assert_eq!(text.split('-').map(str::len).collect::<Vec<_>>(), [4; 4], "{text}");
            assert_eq!(format!(" {text}\n").parse::<Passphrase>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn what_is_easily_guessed_is_known_as_such_and_what_is_made_here_never_is() {
        for text in
            ["a", "sunshine", "password123", "aaaaaaaaaaaaaaaaaaaa", "12345678", "Summer2026!"]
        {
            assert!(text.parse::<Passphrase>().unwrap().is_weak(), "{text}");
        }
        for text in ["correct horse battery staple", "xK9#mQ2$vL7!pR4z", "able-baker-cat-dog"] {
            assert!(!text.parse::<Passphrase>().unwrap().is_weak(), "{text}");
        }
        assert!((0..1000).all(|_| !Passphrase::generate().is_weak()));
    }

    #[test]
    fn an_empty_or_endless_passphrase_is_refused_and_none_is_shown_by_debug() {
        assert_eq!(" \t\n".parse::<Passphrase>(), Err(PassphraseError::Empty));
        assert_eq!("x".repeat(1025).parse::<Passphrase>(), Err(PassphraseError::TooLong(1025)));
        let secret: Passphrase = "over the hills".parse().unwrap();
        assert!(!format!("{secret:?}").contains("hills"));
    }
}

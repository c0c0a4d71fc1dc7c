//! Bytes as hexadecimal digits.

use std::fmt::Write as _;

/// Two lower-case digits per byte.
pub(super) fn text(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    })
}

#[cfg(test)]
pub(super) fn bytes(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hexadecimal digits"))
        .collect()
}

#[cfg(test)]
pub(super) fn array<const N: usize>(text: &str) -> [u8; N] {
    bytes(text).try_into().expect("the length is right")
}

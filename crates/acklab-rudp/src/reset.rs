//! Connections that a server has forgotten (docs/rudp.md section 3, "Close, idle, reset"; RFC 9000 section 10.3).
//!
//! A server whose secret outlives its process marks the ids that it gives and tells each client a token. Restarted, it
//! knows its ids by their marks and says the token; to ids without a mark, as a scan would have, it says nothing.

use super::protect::ServerGreeter;
use crate::wire::RESET_TOKEN;

/// A RESET, bytes; what it answers is longer, so that no two ends can keep each other busy.
pub(super) const LEN: usize = 21 + RESET_TOKEN;

/// An id made of `random`, marked where the server's secret outlives its process.
pub(super) fn id(greeter: &dyn ServerGreeter, random: u64) -> u64 {
    if !greeter.is_lasting() {
        return random;
    }
    let half = random >> 32;
    half << 32 | u64::from(mark(greeter, half))
}

/// Whether this server has given that id, perhaps before it was restarted.
pub(super) fn is_ours(greeter: &dyn ServerGreeter, id: u64) -> bool {
    greeter.is_lasting() && id as u32 == mark(greeter, id >> 32)
}

/// What the client of that connection is told at its start and believes at its end.
pub(super) fn token(greeter: &dyn ServerGreeter, id: u64) -> Option<[u8; RESET_TOKEN]> {
    let digest = greeter.digest(&[b"reset", &id.to_be_bytes()[..]].concat());
    greeter.is_lasting().then(|| std::array::from_fn(|at| digest[at]))
}

/// Whether two tokens are the same, in a time that does not tell where they differ.
pub(super) fn is_same(one: &[u8; RESET_TOKEN], other: &[u8; RESET_TOKEN]) -> bool {
    one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

fn mark(greeter: &dyn ServerGreeter, half: u64) -> u32 {
    let digest = greeter.digest(&[b"id", &half.to_be_bytes()[..]].concat());
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
}

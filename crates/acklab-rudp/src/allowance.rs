//! What strangers may cost (docs/rudp.md section 3, "Addresses, floods, bounds"): token buckets per
//! address and for all of them, and the tokens of RETRY.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use super::protect::ServerGreeter;
use crate::wire::TOKEN;
use acklab_core::time::{Span, Time};

/// So many events at once, then `per_second`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    level: f64,
    most: f64,
    per_second: f64,
    at: Time,
}

impl Bucket {
    pub(super) const fn new(now: Time, most: f64, per_second: f64) -> Self {
        Self { level: most, most, per_second, at: now }
    }

    fn refill(&mut self, now: Time) {
        let gained = now.since(self.at).as_secs_f64() * self.per_second;
        self.level = (self.level + gained).min(self.most);
        self.at = now;
    }

    /// Takes one; false where none is left.
    pub(super) fn take(&mut self, now: Time) -> bool {
        self.refill(now);
        if self.level < 1.0 {
            return false;
        }
        self.level -= 1.0;
        true
    }

    /// Gives one back.
    pub(super) const fn give(&mut self) {
        self.level = (self.level + 1.0).min(self.most);
    }

    fn is_full(&mut self, now: Time) -> bool {
        self.refill(now);
        self.level >= self.most
    }
}

/// Guesses of a passphrase: 10 for an address, then one per second; 100 for all, then 20 per second.
const ADDRESS_GUESSES: (f64, f64) = (10.0, 1.0);
const ALL_GUESSES: (f64, f64) = (100.0, 20.0);
/// Handshakes computed per second.
const COMPUTED: f64 = 500.0;
/// Addresses remembered at most.
const ADDRESSES: usize = 1024;

/// The part of an address that one party may be thought to hold: an IPv4 address or an IPv6 /64.
fn holder(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits() & !u128::from(u64::MAX),
    }
}

/// What a server lets strangers do.
#[derive(Debug)]
pub(super) struct Allowance {
    computed: Bucket,
    all_guesses: Bucket,
    guesses: BTreeMap<u128, Bucket>,
    /// Handshakes pending, by address.
    pending: BTreeMap<u128, u32>,
}

impl Allowance {
    pub(super) const fn new(now: Time) -> Self {
        Self {
            computed: Bucket::new(now, COMPUTED, COMPUTED),
            all_guesses: Bucket::new(now, ALL_GUESSES.0, ALL_GUESSES.1),
            guesses: BTreeMap::new(),
            pending: BTreeMap::new(),
        }
    }

    /// Whether a handshake from there may be computed now; `guess`: it offers a passphrase.
    pub(super) fn take(&mut self, now: Time, from: SocketAddr, guess: bool) -> bool {
        if !self.computed.take(now) {
            return false;
        }
        if !guess {
            return true;
        }
        if self.guesses.len() >= ADDRESSES {
            self.guesses.retain(|_, bucket| !bucket.is_full(now));
        }
        let key = holder(from.ip());
        if self.guesses.len() >= ADDRESSES && !self.guesses.contains_key(&key) {
            return false;
        }
        let (most, rate) = ADDRESS_GUESSES;
        let bucket = self.guesses.entry(key).or_insert(Bucket::new(now, most, rate));
        bucket.take(now) && self.all_guesses.take(now)
    }

    /// The guess was right.
    pub(super) fn give_back(&mut self, from: SocketAddr) {
        self.all_guesses.give();
        if let Some(bucket) = self.guesses.get_mut(&holder(from.ip())) {
            bucket.give();
        }
    }

    pub(super) fn pending(&self, from: SocketAddr) -> u32 {
        self.pending.get(&holder(from.ip())).copied().unwrap_or(0)
    }

    pub(super) fn on_pending(&mut self, from: SocketAddr) {
        *self.pending.entry(holder(from.ip())).or_insert(0) += 1;
    }

    /// The handshake came to an end.
    pub(super) fn on_settled(&mut self, from: SocketAddr) {
        let key = holder(from.ip());
        if let Some(count) = self.pending.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.pending.remove(&key);
            }
        }
    }
}

/// A RETRY token is good for so long.
const TOKEN_LIFE: Span = Span::from_secs(10);

/// The token that shows that its bearer receives what is sent to `from`.
pub(super) fn token(
    greeter: &dyn ServerGreeter,
    at: Time,
    from: SocketAddr,
    connection: u64,
) -> [u8; TOKEN] {
    let mut data = [0; 8 + 16 + 2 + 8];
    data[..8].copy_from_slice(&at.as_nanos().to_be_bytes());
    let address = match from.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    data[8..24].copy_from_slice(&address.octets());
    data[24..26].copy_from_slice(&from.port().to_be_bytes());
    data[26..].copy_from_slice(&connection.to_be_bytes());
    let mut token = [0; TOKEN];
    token[..8].copy_from_slice(&data[..8]);
    token[8..].copy_from_slice(&greeter.digest(&data));
    token
}

/// Whether the token is one of ours, for that address and connection, and not too old.
pub(super) fn is_good(
    greeter: &dyn ServerGreeter,
    now: Time,
    from: SocketAddr,
    connection: u64,
    shown: &[u8; TOKEN],
) -> bool {
    let mut at = [0; 8];
    at.copy_from_slice(&shown[..8]);
    let at = Time::from_nanos(u64::from_be_bytes(at));
    let expected = token(greeter, at, from, connection);
    // In a time that does not tell where they differ.
    let differ = expected.iter().zip(shown).fold(0, |differ, (a, b)| differ | (a ^ b));
    at <= now && now.since(at) <= TOKEN_LIFE && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protect::PlainGreeter;

    #[test]
    fn an_address_has_ten_guesses_and_one_per_second_and_right_ones_are_free() {
        let now = Time::ZERO;
        let mut allowance = Allowance::new(now);
        let from: SocketAddr = "192.0.2.1:5".parse().expect("an address");
        let taken = (0..20).filter(|_| allowance.take(now, from, true)).count();
        assert_eq!(taken, 10);
        allowance.give_back(from);
        assert!(allowance.take(now, from, true) && !allowance.take(now, from, true));
        assert!(allowance.take(now + Span::from_secs(1), from, true));
        assert!(allowance.take(now, "192.0.2.2:5".parse().expect("an address"), true));
    }

    #[test]
    fn a_flood_of_addresses_is_remembered_within_bounds() {
        let mut allowance = Allowance::new(Time::ZERO);
        for n in 0..20_000_u32 {
            let from = SocketAddr::new(IpAddr::V4(n.into()), 1);
            allowance.take(Time::ZERO + Span::from_millis(n.into()), from, true);
            assert!(allowance.guesses.len() <= ADDRESSES);
        }
    }

    #[test]
    fn a_token_is_good_for_its_address_and_connection_and_ten_seconds() {
        let from: SocketAddr = "192.0.2.1:5".parse().expect("an address");
        let other: SocketAddr = "192.0.2.1:6".parse().expect("an address");
        let at = Time::ZERO + Span::from_secs(5);
        let token = token(&PlainGreeter, at, from, 7);
        let good = |now, from, id| is_good(&PlainGreeter, now, from, id, &token);
        assert!(good(at, from, 7) && good(at + TOKEN_LIFE, from, 7));
        assert!(!good(at, other, 7) && !good(at, from, 8));
        assert!(
            !good(at + TOKEN_LIFE + Span::from_millis(1), from, 7) && !good(Time::ZERO, from, 7)
        );
    }
}

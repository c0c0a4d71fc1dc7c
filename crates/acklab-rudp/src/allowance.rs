//! What unauthenticated hosts may cost (docs/rudp.md section 3, "Addresses, floods, bounds"): token buckets per
//! address and for all of them, and the tokens of RETRY.
//!
//! Half of every bucket is kept for clients that have shown, by a token, that they receive what is sent to
//! their address. Whoever forges addresses cannot show that, so a flood of its greetings costs the others
//! one round trip and never their turn.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use super::protect::ServerGreeter;
use crate::wire::TOKEN;
use acklab_core::time::{Span, Time};

/// So many events at once, then `per_second`; 0: so many and no more.
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

    /// Whether one may be taken: `proven` clients may take the last one, the others leave half, and all of what does not
    /// come again.
    fn allows(&mut self, now: Time, proven: bool) -> bool {
        self.refill(now);
        self.level >= 1.0 && (proven || self.per_second > 0.0 && self.level >= self.most / 2.0)
    }

    /// Takes one; false where none is left.
    pub(super) fn take(&mut self, now: Time) -> bool {
        let left = self.allows(now, true);
        if left {
            self.level -= 1.0;
        }
        left
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

/// Guesses of a passphrase: 10 for an address, then one per second; for all: `Limits::guesses`.
const ADDRESS_GUESSES: (f64, f64) = (10.0, 1.0);
/// Handshakes computed: for an address, and for all.
const ADDRESS_COMPUTED: (f64, f64) = (20.0, 10.0);
const ALL_COMPUTED: (f64, f64) = (500.0, 500.0);
/// Addresses remembered at most.
const ADDRESSES: usize = 1024;

/// The part of an address that one party may be thought to hold: an IPv4 address or an IPv6 /64.
fn holder(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits() & !u128::from(u64::MAX),
    }
}

/// What may be computed, and guessed of a passphrase.
#[derive(Clone, Copy, Debug)]
struct Purse {
    computed: Bucket,
    guesses: Bucket,
}

impl Purse {
    const fn new(now: Time, computed: (f64, f64), guesses: (f64, f64)) -> Self {
        Self {
            computed: Bucket::new(now, computed.0, computed.1),
            guesses: Bucket::new(now, guesses.0, guesses.1),
        }
    }

    fn allows(&mut self, now: Time, guess: bool, proven: bool) -> bool {
        self.computed.allows(now, proven) && (!guess || self.guesses.allows(now, proven))
    }
}

/// What a server lets unauthenticated hosts do.
#[derive(Debug)]
pub(super) struct Allowance {
    all: Purse,
    holders: BTreeMap<u128, Purse>,
    /// Handshakes pending, by address.
    pending: BTreeMap<u128, u32>,
}

impl Allowance {
    /// `guesses` of all hosts: so many at once, then per second.
    pub(super) const fn new(now: Time, guesses: (f64, f64)) -> Self {
        Self {
            all: Purse::new(now, ALL_COMPUTED, guesses),
            holders: BTreeMap::new(),
            pending: BTreeMap::new(),
        }
    }

    /// Whether a handshake from there may be computed now; `guess`: it offers a passphrase. Nothing is taken.
    pub(super) fn allows(
        &mut self,
        now: Time,
        from: SocketAddr,
        guess: bool,
        proven: bool,
    ) -> bool {
        if !self.all.allows(now, guess, proven) {
            return false;
        }
        let full = |purse: &mut Purse| purse.computed.is_full(now) && purse.guesses.is_full(now);
        if self.holders.len() >= ADDRESSES {
            self.holders.retain(|_, purse| !full(purse));
        }
        match self.holders.get_mut(&holder(from.ip())) {
            Some(purse) => purse.allows(now, guess, proven),
            None => self.holders.len() < ADDRESSES,
        }
    }

    fn of(&mut self, now: Time, from: SocketAddr) -> &mut Purse {
        let new = Purse::new(now, ADDRESS_COMPUTED, ADDRESS_GUESSES);
        self.holders.entry(holder(from.ip())).or_insert(new)
    }

    /// A handshake from there is computed.
    pub(super) fn on_computed(&mut self, now: Time, from: SocketAddr) {
        self.all.computed.take(now);
        self.of(now, from).computed.take(now);
    }

    /// It was answered, which lets the client try a passphrase.
    pub(super) fn on_guess(&mut self, now: Time, from: SocketAddr) {
        self.all.guesses.take(now);
        self.of(now, from).guesses.take(now);
    }

    /// The guess was right.
    pub(super) fn give_back(&mut self, from: SocketAddr) {
        self.all.guesses.give();
        if let Some(purse) = self.holders.get_mut(&holder(from.ip())) {
            purse.guesses.give();
        }
    }

    /// Whether a limited number of guesses was made, right ones aside.
    pub(super) fn is_spent(&self) -> bool {
        self.all.guesses.per_second == 0.0 && self.all.guesses.level < 1.0
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

    const ALL: (f64, f64) = (100.0, 20.0);

    #[test]
    fn a_listener_may_let_all_hosts_together_guess_as_seldom_as_it_likes() {
        let mut allowance = Allowance::new(Time::ZERO, (10.0, 0.1));
        let guesses = (0..60_000_u32).filter(|&n| {
            let now = Time::ZERO + Span::from_millis(n.into());
            let from = SocketAddr::from(([10, 0, (n % 200) as u8, 1], 9));
            let allowed = allowance.allows(now, from, true, true);
            if allowed {
                allowance.on_computed(now, from);
                allowance.on_guess(now, from);
            }
            allowed
        });
        assert_eq!(guesses.count(), 10 + 5, "within a minute");
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    /// How many guesses from there are answered at once, of 200.
    fn guesses(allowance: &mut Allowance, now: Time, from: SocketAddr, proven: bool) -> usize {
        let mut guess = || {
            let allowed = allowance.allows(now, from, true, proven);
            if allowed {
                allowance.on_computed(now, from);
                allowance.on_guess(now, from);
            }
            allowed
        };
        (0..200).filter(|_| guess()).count()
    }

    #[test]
    fn an_address_has_ten_guesses_and_one_per_second_and_right_ones_are_free() {
        let now = Time::ZERO;
        let mut allowance = Allowance::new(now, ALL);
        let from = address("192.0.2.1:5");
        assert_eq!(guesses(&mut allowance, now, from, true), 10);
        allowance.give_back(from);
        assert_eq!(guesses(&mut allowance, now, from, true), 1);
        assert_eq!(guesses(&mut allowance, now + Span::from_secs(1), from, true), 1);
        assert_eq!(guesses(&mut allowance, now, address("192.0.2.2:5"), true), 10);
    }

    #[test]
    fn a_few_guesses_are_for_those_that_showed_their_address_and_do_not_come_again() {
        let mut allowance = Allowance::new(Time::ZERO, (3.0, 0.0));
        let from = |n: u32| SocketAddr::new(IpAddr::V4((0x0a00_0000 + n).into()), 1);
        let guessed = |allowance: &mut Allowance, seconds: u64, proven| {
            let now = Time::ZERO + Span::from_secs(seconds);
            (0..1000).map(|n| guesses(allowance, now, from(n), proven)).sum::<usize>()
        };
        assert_eq!(guessed(&mut allowance, 0, false), 0);
        assert_eq!(guessed(&mut allowance, 0, true), 3);
        assert!(allowance.is_spent());
        allowance.give_back(from(0));
        assert!(!allowance.is_spent(), "one was right");
        assert_eq!(guessed(&mut allowance, 100_000, true), 1);
        assert_eq!(guessed(&mut allowance, 200_000, true), 0);
        assert!(!Allowance::new(Time::ZERO, ALL).is_spent());
    }

    #[test]
    fn half_of_everything_is_kept_for_those_that_showed_their_address() {
        let now = Time::ZERO;
        let mut allowance = Allowance::new(now, ALL);
        let from = address("192.0.2.1:5");
        assert_eq!(guesses(&mut allowance, now, from, false), 6);
        // In the name of others, as many as there are.
        let forged = |n: u32| SocketAddr::new(IpAddr::V4((0x0a00_0000 + n).into()), 1);
        let all = (0..1000).map(|n| guesses(&mut allowance, now, forged(n), false)).sum::<usize>();
        assert_eq!(all, 51 - 6);
        assert_eq!(guesses(&mut allowance, now, from, true), 4);
        for millis in 0..10_000 {
            let now = now + Span::from_millis(millis);
            guesses(&mut allowance, now, forged(millis as u32 + 1000), false);
        }
        let later = now + Span::from_secs(10);
        assert_eq!(guesses(&mut allowance, later, address("192.0.2.2:5"), true), 10);
    }

    #[test]
    fn no_address_has_all_that_may_be_computed() {
        let now = Time::ZERO;
        let mut allowance = Allowance::new(now, ALL);
        let (from, other) = (address("192.0.2.1:5"), address("192.0.2.2:5"));
        let mut computed = 0;
        while allowance.allows(now, from, false, true) {
            allowance.on_computed(now, from);
            computed += 1;
        }
        assert_eq!(computed, 20);
        assert!(allowance.allows(now, other, false, false));
    }

    #[test]
    fn a_flood_of_addresses_is_remembered_within_bounds() {
        for proven in [false, true] {
            let mut allowance = Allowance::new(Time::ZERO, ALL);
            for n in 0..20_000_u32 {
                let from = SocketAddr::new(IpAddr::V4(n.into()), 1);
                let now = Time::ZERO + Span::from_micros(u64::from(n) * 100);
                guesses(&mut allowance, now, from, proven);
                if allowance.allows(now, from, false, proven) {
                    allowance.on_computed(now, from);
                }
                assert!(allowance.holders.len() <= ADDRESSES);
            }
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

//! Addresses from which a path's packets come too (docs/rudp.md section 6, "NAT rebinding"; RFC 9000 section 9.3).
//!
//! The newest packet may come from elsewhere because the peer is there now, or because an attacker copied it and
//! was faster. So all goes on leaving to the address that was validated last, and a challenge leaves to the other
//! one; the path moves when that is answered.

use super::datagram_size::BASE;
use super::life::AMPLIFICATION;
use super::protect::{Entropy, TAG};
use super::report::PathAddrs;
use crate::wire::SHORT_HEADER;
use acklab_core::time::{Span, Time};

/// Addresses that are asked at once: a peer that moves is found though an attacker copies its packets from others.
const MOST: usize = 4;
/// A challenge is repeated after so long, then after twice that, and so on; and given up.
const STEP: Span = Span::from_millis(25);
const LIMIT: Span = Span::from_secs(3);
/// A challenge and nothing else, bytes of the datagram.
const SMALL: u64 = (SHORT_HEADER + 9 + TAG) as u64;

/// The addresses that a path may have moved to.
#[derive(Debug, Default)]
pub(super) struct Rebinding(Vec<Candidate>);

#[derive(Debug)]
struct Candidate {
    addrs: PathAddrs,
    since: Time,
    /// Bytes that came from there, and that went there.
    came: u64,
    went: u64,
    challenge: Option<[u8; 8]>,
    challenge_at: Time,
    step: Span,
}

/// A challenge that is to leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    pub(super) addrs: PathAddrs,
    pub(super) challenge: [u8; 8],
    /// Bytes that the datagram may have.
    pub(super) most: usize,
}

impl Rebinding {
    /// The newest packet came from there.
    pub(super) fn on_newest(&mut self, now: Time, addrs: PathAddrs, bytes: u64) {
        if let Some(candidate) = self.0.iter_mut().find(|candidate| candidate.addrs == addrs) {
            candidate.came += bytes;
            return;
        }
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        let (came, went, challenge) = (bytes, 0, None);
        self.0.push(Candidate {
            addrs,
            since: now,
            came,
            went,
            challenge,
            challenge_at: now,
            step: STEP,
        });
    }

    /// When a challenge is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.0.iter().map(|candidate| candidate.challenge_at).min()
    }

    /// The next challenge that is due. Addresses that do not answer are forgotten.
    pub(super) fn poll(&mut self, now: Time, entropy: &mut dyn Entropy) -> Option<Question> {
        self.0.retain(|candidate| now.since(candidate.since) < LIMIT);
        for candidate in self.0.iter_mut().filter(|candidate| candidate.challenge_at <= now) {
            candidate.challenge_at = now + candidate.step;
            candidate.step += candidate.step;
            let room = (AMPLIFICATION * candidate.came).saturating_sub(candidate.went);
            if room < SMALL {
                continue;
            }
            let challenge = *candidate.challenge.get_or_insert_with(|| {
                let mut bytes = [0; 8];
                entropy.fill(&mut bytes);
                bytes
            });
            let most = if room < BASE as u64 { SMALL as usize } else { BASE };
            candidate.went += most as u64;
            return Some(Question { addrs: candidate.addrs, challenge, most });
        }
        None
    }

    /// A response: the address that it proves, if it is one that was asked.
    pub(super) fn on_response(&mut self, response: [u8; 8]) -> Option<PathAddrs> {
        let proved = self.0.iter().find(|candidate| candidate.challenge == Some(response))?.addrs;
        self.0.clear();
        Some(proved)
    }
}

#[cfg(test)]
mod tests {
    use acklab_core::rng::Rng;

    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn from(port: u16) -> PathAddrs {
        let remote = ([10, 0, 0, 2], port).into();
        PathAddrs { local: ([10, 0, 0, 1], 9).into(), remote }
    }

    #[test]
    fn an_address_is_asked_for_at_most_three_times_what_came_from_it_until_it_answers_or_3_s_are_over()
     {
        let (mut rebinding, mut rng) = (Rebinding::default(), Rng::named(1, "test"));
        rebinding.on_newest(at(0), from(1), 60);
        let (mut sent, mut asked) = (0, Vec::new());
        while let Some(due) = rebinding.deadline() {
            while let Some(question) = rebinding.poll(due, &mut rng) {
                sent += question.most;
                asked.push(question.challenge);
            }
        }
        assert!(sent <= 180 && asked.len() >= 2, "{sent} B");
        assert!(asked.iter().all(|challenge| *challenge == asked[0]), "one secret per address");
        assert_eq!(rebinding.on_response(asked[0]), None, "too late");
    }

    #[test]
    fn the_address_that_answers_is_the_new_one_whatever_others_packets_are_copied_from() {
        let (mut rebinding, mut rng) = (Rebinding::default(), Rng::named(1, "test"));
        for port in 1..=3 {
            rebinding.on_newest(at(0), from(port), 1200);
        }
        let asked: Vec<Question> = std::iter::from_fn(|| rebinding.poll(at(0), &mut rng)).collect();
        assert_eq!(asked.len(), 3);
        assert!(asked.iter().all(|question| question.most == BASE));
        assert_eq!(rebinding.on_response([0; 8]), None);
        assert_eq!(rebinding.on_response(asked[1].challenge), Some(from(2)));
        assert_eq!((rebinding.deadline(), rebinding.on_response(asked[0].challenge)), (None, None));
    }
}

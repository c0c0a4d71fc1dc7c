//! Whether a path lives (docs/rudp.md section 6): validation of its addresses, silence, death, return.

use super::datagram_size::BASE;
use super::protect::{Entropy, TAG};
use crate::wire::{Frame, SHORT_HEADER, Writer};
use acklab_core::time::{Span, Time};

/// The state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Opened; the other address has not answered a challenge yet.
    Validating,
    /// In use.
    Active,
    /// Silent for one probe time-out while data is outstanding.
    Suspect,
    /// Silent for so long that everything went elsewhere; probed slowly.
    Dead,
    /// Removed.
    Gone,
}

impl std::fmt::Display for PathState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Validating => "validating",
            Self::Active => "active",
            Self::Suspect => "suspect",
            Self::Dead => "dead",
            Self::Gone => "gone",
        })
    }
}

/// A path is dead after this silence or two probe time-outs, whichever is longer.
const DEAD_AFTER: Span = Span::from_millis(150);
/// Challenges of a new path leave at these times after its opening, then each last step.
const CHALLENGE_STEPS: [u64; 6] = [25, 25, 50, 100, 200, 400];
/// A path whose challenge is not answered is given up.
const VALIDATION_LIMIT: Span = Span::from_secs(3);
/// Probes of a dead path, in the first minute and after it.
const PROBE_STEPS: (Span, Span) = (Span::from_millis(400), Span::from_millis(800));
const FIRST_MINUTE: Span = Span::from_secs(60);
/// Datagrams that announce or probe a path are so long (docs/rudp.md section 2).
const PADDED: usize = BASE;
/// A packet with a challenge and nothing else, bytes.
const SMALL: u64 = 64;
/// RFC 9000 section 8.1.
pub(super) const AMPLIFICATION: u64 = 3;

/// What time made of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Suspect,
    Dead,
    Gone,
}

/// The life of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    state: PathState,
    since: Time,
    /// Data may leave before the address is validated, as far as the window lets it.
    trusted: bool,
    /// Bytes that came from an address not yet validated, and that went to it.
    credit: Option<(u64, u64)>,
    challenge: Option<[u8; 8]>,
    challenge_at: Option<Time>,
    challenges: usize,
}

impl Life {
    /// A path whose address the handshake has validated.
    pub(super) const fn active(now: Time) -> Self {
        Self {
            state: PathState::Active,
            since: now,
            trusted: true,
            credit: None,
            challenge: None,
            challenge_at: None,
            challenges: 0,
        }
    }

    /// A path that this end opens to an address that its user named.
    pub(super) const fn opened(now: Time) -> Self {
        Self { state: PathState::Validating, challenge_at: Some(now), ..Self::active(now) }
    }

    /// A path on which an authentic packet came from an address not heard of before.
    pub(super) const fn heard(now: Time) -> Self {
        Self { trusted: false, credit: Some((0, 0)), ..Self::opened(now) }
    }

    pub(super) const fn state(&self) -> PathState {
        self.state
    }

    /// Content may leave on it.
    pub(super) fn is_usable(&self) -> bool {
        match self.state {
            PathState::Active => true,
            PathState::Validating => self.trusted,
            PathState::Suspect | PathState::Dead | PathState::Gone => false,
        }
    }

    /// Second copies of redundant content may leave on it: a silent path is where they help.
    pub(super) fn takes_copies(&self) -> bool {
        self.is_usable() || self.state == PathState::Suspect
    }

    /// ACKs and control frames may leave on it.
    pub(super) fn is_heard(&self) -> bool {
        matches!(self.state, PathState::Active | PathState::Validating)
    }

    /// Whether the peer has shown that it can be reached at its address.
    pub(super) const fn is_validated(&self) -> bool {
        self.credit.is_none()
    }

    /// Whether `bytes` may go to the address.
    pub(super) fn may_send(&self, bytes: u64) -> bool {
        self.credit.is_none_or(|(came, went)| went + bytes <= AMPLIFICATION * came)
    }

    pub(super) fn on_sent(&mut self, bytes: u64) {
        if let Some((_, went)) = &mut self.credit {
            *went += bytes;
        }
    }

    pub(super) fn on_received(&mut self, bytes: u64) {
        if let Some((came, _)) = &mut self.credit {
            *came += bytes;
        }
    }

    /// The other end may have another address than was thought before any was validated.
    pub(super) fn on_rebound(&mut self, now: Time) {
        self.credit = Some((0, 0));
        self.challenge = None;
        self.challenges = 0;
        self.challenge_at = Some(now);
    }

    /// Whether anything may leave here: a datagram that announces or probes a path, or a challenge.
    pub(super) fn may_speak(&self, now: Time) -> bool {
        self.may_send(PADDED as u64) || self.challenge_is_due(now)
    }

    /// The challenge, if one is due; whether it was written. That of a new path is as long as a datagram
    /// that every path must carry, unless content fills it.
    pub(super) fn write_challenge(
        &mut self,
        now: Time,
        content_fills: impl FnOnce() -> bool,
        entropy: &mut dyn Entropy,
        writer: &mut Writer<'_>,
    ) -> bool {
        let random = || {
            let mut bytes = [0; 8];
            entropy.fill(&mut bytes);
            bytes
        };
        let Some(data) = self.poll_challenge(now, random) else { return false };
        if writer.remaining() < 9 || !self.may_send(SMALL) {
            return false;
        }
        Frame::PathChallenge(data).emit(writer);
        if self.state != PathState::Dead && self.may_send(PADDED as u64) && !content_fills() {
            let padding = (PADDED - SHORT_HEADER - TAG).saturating_sub(writer.position());
            Frame::Padding(padding.min(writer.remaining())).emit(writer);
        }
        true
    }

    /// The challenge to send now, made of `random` if there was none.
    fn poll_challenge(&mut self, now: Time, random: impl FnOnce() -> [u8; 8]) -> Option<[u8; 8]> {
        self.challenge_at.filter(|&at| at <= now)?;
        let step = if self.state == PathState::Dead {
            let young = now.since(self.since) < FIRST_MINUTE;
            if young { PROBE_STEPS.0 } else { PROBE_STEPS.1 }
        } else {
            let index = self.challenges.min(CHALLENGE_STEPS.len() - 1);
            Span::from_millis(CHALLENGE_STEPS[index])
        };
        self.challenges += 1;
        self.challenge_at = Some(now + step);
        Some(*self.challenge.get_or_insert_with(random))
    }

    /// Whether a challenge is due at `now`.
    pub(super) fn challenge_is_due(&self, now: Time) -> bool {
        self.challenge_at.is_some_and(|at| at <= now)
    }

    /// A response; true if it fits. Whether the path was dead is told by the state before.
    pub(super) fn on_response(&mut self, now: Time, response: [u8; 8]) -> bool {
        if self.challenge != Some(response) {
            return false;
        }
        self.challenge = None;
        self.challenge_at = None;
        self.challenges = 0;
        self.credit = None;
        self.trusted = true;
        if self.state != PathState::Gone {
            self.enter(now, PathState::Active);
        }
        true
    }

    /// Something of it was acknowledged.
    pub(super) fn on_news(&mut self, now: Time) {
        if self.state == PathState::Suspect {
            self.enter(now, PathState::Active);
        }
    }

    fn enter(&mut self, now: Time, state: PathState) {
        if self.state != state {
            self.state = state;
            self.since = now;
        }
    }

    /// When the silence that began at `silent_since` must be judged again; `None` where nothing is
    /// outstanding or no other path could take the load.
    pub(super) fn deadline(&self, silent_since: Option<Time>, pto: Span) -> Option<Time> {
        let silence = silent_since.and_then(|since| match self.state {
            PathState::Active => Some(since + pto),
            PathState::Validating | PathState::Suspect => Some(since + dead_after(pto)),
            _ => None,
        });
        let limit = match self.state {
            PathState::Validating => Some(self.since + VALIDATION_LIMIT),
            _ => None,
        };
        [silence, limit, self.challenge_at].into_iter().flatten().min()
    }

    /// Judges the path, `silent_since` as in [`Self::deadline`].
    pub(super) fn judge(
        &mut self,
        now: Time,
        silent_since: Option<Time>,
        pto: Span,
    ) -> Option<Verdict> {
        match self.state {
            PathState::Validating if now >= self.since + VALIDATION_LIMIT => {
                self.on_removed(now);
                return Some(Verdict::Gone);
            }
            PathState::Dead | PathState::Gone => return None,
            _ => {}
        }
        let silence = now.since(silent_since?);
        if silence >= dead_after(pto) {
            self.enter(now, PathState::Dead);
            self.challenge_at = Some(now);
            return Some(Verdict::Dead);
        }
        if silence >= pto && self.state == PathState::Active {
            self.enter(now, PathState::Suspect);
            return Some(Verdict::Suspect);
        }
        None
    }

    /// The path is over.
    pub(super) fn on_removed(&mut self, now: Time) {
        self.enter(now, PathState::Gone);
        self.challenge_at = None;
        self.challenge = None;
    }
}

fn dead_after(pto: Span) -> Span {
    Span::from_nanos(2 * pto.as_nanos()).max(DEAD_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Span = Span::from_millis(60);

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn silence_makes_a_path_suspect_and_then_dead_and_an_answer_brings_it_back() {
        let mut life = Life::active(at(0));
        let silent = Some(at(0));
        assert_eq!(life.deadline(silent, PTO), Some(at(60)));
        assert_eq!(life.judge(at(59), silent, PTO), None);
        assert_eq!(life.judge(at(60), silent, PTO), Some(Verdict::Suspect));
        assert_eq!(life.deadline(silent, PTO), Some(at(150)));
        assert_eq!(life.judge(at(150), silent, PTO), Some(Verdict::Dead));
        let challenge = life.poll_challenge(at(150), || [1; 8]);
        assert_eq!(challenge, Some([1; 8]));
        assert_eq!(life.poll_challenge(at(300), || [2; 8]), None, "each 400 ms");
        assert_eq!(life.poll_challenge(at(550), || [2; 8]), Some([1; 8]));
        assert!(!life.on_response(at(560), [2; 8]) && life.on_response(at(560), [1; 8]));
        assert_eq!(life.state(), PathState::Active);
    }

    #[test]
    fn a_path_that_nobody_answers_on_is_gone_after_three_seconds() {
        let mut life = Life::opened(at(0));
        assert_eq!(life.deadline(None, PTO), Some(at(0)), "the challenge");
        assert!(life.poll_challenge(at(0), || [1; 8]).is_some());
        assert_eq!(life.judge(at(2999), None, PTO), None);
        assert_eq!(life.judge(at(3000), None, PTO), Some(Verdict::Gone));
    }

    #[test]
    fn an_address_that_was_only_heard_gets_three_times_what_came_from_it() {
        let mut life = Life::heard(at(0));
        assert!(!life.may_send(1));
        life.on_received(100);
        assert!(life.may_send(300) && !life.may_send(301));
        life.on_sent(300);
        assert!(!life.may_send(1));
        assert!(life.poll_challenge(at(0), || [3; 8]).is_some() && life.on_response(at(1), [3; 8]));
        assert!(life.may_send(1 << 20));
    }
}

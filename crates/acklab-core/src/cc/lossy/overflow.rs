//! Losses without a queue to see: does the path lose by itself, or is there no buffer that could show, as in a policer? Send
//! less for three rounds: if as much arrives as before, it was overflow, and still less is tried. Where a smaller part is
//! lost of less, the part that comes through tells what the path takes: that is kept for a while.

use super::tally::Packets;

/// Asks the path, round after round; rates in bytes per second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overflow {
    test: Option<Test>,
    /// Up to here more has brought more.
    granted: f64,
    /// Until this round the path is known to have overflowed lately.
    wary_until: u64,
    /// Until this round nothing more is tried.
    holds_until: u64,
}

/// A test under way.
#[derive(Clone, Copy, Debug)]
struct Test {
    /// The round in which it began.
    since: u64,
    share: f64,
    /// Two rounds at the share, and two below it.
    before: Rounds,
    after: Rounds,
}

/// Sums of two rounds.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    /// Delivery rates.
    delivered: f64,
    packets: Packets,
}

impl Rounds {
    fn add(&mut self, delivered: f64, packets: Packets) {
        self.delivered += delivered;
        self.packets = self.packets.plus(packets);
    }

    /// The part that came through.
    fn through(&self) -> f64 {
        1.0 - self.packets.lost / self.packets.sent.max(1.0)
    }
}

/// What a round is to be followed by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Answer {
    /// Whatever the delay says.
    Free,
    /// Send this much.
    Send(f64),
    /// Send this much: more only overflowed.
    Overflow(f64),
}

impl Overflow {
    /// Whether a test is under way.
    pub(super) const fn is_testing(&self) -> bool {
        self.test.is_some()
    }

    /// Whether round `number` is one of a test, or one of those in which what was found is kept.
    pub(super) const fn is_busy(&self, number: u64) -> bool {
        self.test.is_some() || number < self.holds_until
    }

    /// A round ends in which we sent `share` and saw losses but no queue that we could follow, or which is one of ours;
    /// `bare`: no queue at all, as a policer has none. A short one that others fill tells less.
    pub(super) fn on_round(
        &mut self,
        number: u64,
        delivered: f64,
        packets: Packets,
        share: f64,
        bare: bool,
    ) -> Answer {
        let Some(test) = &mut self.test else {
            if number < self.holds_until {
                return Answer::Send(self.granted);
            }
            if share <= self.granted {
                return Answer::Free;
            }
            self.begin(number, share);
            return Answer::Send(share);
        };
        // A round passes until what leaves now is what ACKs tell of.
        match number - test.since {
            0 | 1 => return Answer::Send(test.share),
            2 => test.before = Rounds { delivered, packets },
            3 => test.before.add(delivered, packets),
            4 => {}
            5 => test.after = Rounds { delivered, packets },
            _ => {
                test.after.add(delivered, packets);
                let test = *test;
                return self.conclude(number, &test, bare);
            }
        }
        let less = number > test.since + 2;
        Answer::Send(if less { LESS * test.share } else { test.share })
    }

    fn begin(&mut self, since: u64, share: f64) {
        self.test =
            Some(Test { since, share, before: Rounds::default(), after: Rounds::default() });
    }

    fn conclude(&mut self, number: u64, test: &Test, bare: bool) -> Answer {
        let &Test { share, before, after, .. } = test;
        self.test = None;
        if after.delivered > AS_MUCH * before.delivered {
            self.wary_until = number + WARY;
            self.granted = (LESS * share).min(AT_MOST * after.delivered / 2.0);
            if !bare {
                return Answer::Overflow(self.granted);
            }
            self.begin(number, self.granted);
            if self.granted >= LESS * share {
                // Two rounds at that are over.
                let next = Test { since: number - 3, share: self.granted, before: after, ..*test };
                self.test = Some(next);
                return Answer::Overflow(LESS * self.granted);
            }
            return Answer::Overflow(self.granted);
        }
        if bare && is_worse(before.packets, after.packets) {
            let part = (before.through() / after.through()).clamp(LESS, 1.0);
            self.wary_until = number + WARY;
            self.granted = part * share;
            self.holds_until = number + HOLD;
            return Answer::Overflow(self.granted);
        }
        let wary = number < self.wary_until;
        self.granted = share * if wary { MORE_WARY } else { MORE };
        if bare && wary {
            (self.granted, self.holds_until) = (share, number + HOLD);
        }
        Answer::Send(share)
    }

    /// There is a queue to see, or nothing is lost.
    pub(super) fn forget(&mut self) {
        self.test = None;
    }
}

/// Whether more of the first is lost than of the others, by more than chance makes of it.
fn is_worse(first: Packets, others: Packets) -> bool {
    let (n, m) = (first.sent.max(1.0), others.sent.max(1.0));
    let lost = (first.lost + others.lost) / (n + m);
    let variance = lost * (1.0 - lost) * (1.0 / n + 1.0 / m);
    first.lost / n - others.lost / m > (DEVIATIONS * variance.sqrt()).max(WORSE)
}

// All ours, measured in docs/lossy.md.
const LESS: f64 = 0.8;
/// Of what arrived before: half of the way between all and what LESS leaves.
const AS_MUCH: f64 = 0.9;
/// Of what arrives: as if the path lost three tenths by itself.
const AT_MOST: f64 = 1.4;
/// How much further it may go before it asks again.
const MORE: f64 = 1.5;
const MORE_WARY: f64 = 1.1;
/// Rounds.
const WARY: u64 = 200;
/// Rounds. BBR v1 keeps the rate of a policer for 48 (Linux's bbr_lt_bw_max_rtts); ours looks after half as many.
const HOLD: u64 = 24;
const DEVIATIONS: f64 = 2.0;
/// Less of a difference is none.
const WORSE: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds over a path of rate 1 without any buffer, which loses `loss` besides; the rates sent.
    fn shares(begin: f64, loss: f64, rounds: u64) -> Vec<f64> {
        let (mut overflow, mut sent) = (Overflow::default(), vec![begin, begin]);
        for number in 0..rounds {
            let left = sent[number as usize];
            let arrived = left.min(1.0) * (1.0 - loss);
            let packets = Packets { sent: 100.0 * left, lost: 100.0 * (left - arrived) };
            let now = *sent.last().expect("never empty");
            sent.push(match overflow.on_round(number, arrived, packets, now, true) {
                Answer::Free => 1.1 * now,
                Answer::Send(next) | Answer::Overflow(next) => next,
            });
        }
        sent
    }

    #[test]
    fn a_rate_above_the_paths_comes_down_to_it() {
        for loss in [0.0, 0.28] {
            let sent = shares(8.0, loss, 160);
            assert!(sent[60..].iter().all(|&rate| rate < 1.4), "{sent:?}");
            let mean = sent[60..].iter().sum::<f64>() / (sent.len() - 60) as f64;
            assert!((0.85..1.15).contains(&mean), "{mean}");
        }
    }

    #[test]
    fn a_path_that_loses_by_itself_slows_little_down() {
        let sent = shares(0.1, 0.28, 60);
        assert!(sent[50..].iter().all(|&rate| rate > 0.5), "{sent:?}");
    }
}

//! Losses without a queue to see: does the path lose by itself, or is its buffer too short to show in the
//! round trip? Send less for three rounds: if as much arrives as before, it was overflow.

/// Asks the path, round after round; rates in bytes per second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overflow {
    test: Option<Test>,
    /// Up to here more has brought more.
    granted: f64,
    /// Until this round the path is known to have overflowed lately.
    wary_until: u64,
}

/// A test under way.
#[derive(Clone, Copy, Debug)]
struct Test {
    /// The round in which it began.
    since: u64,
    share: f64,
    /// Sums of two rounds' delivery rates, at the share and below it.
    before: f64,
    after: f64,
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

    /// A round ends in which we sent `share` and saw losses but no queue.
    pub(super) fn on_round(&mut self, number: u64, delivered: f64, share: f64) -> Answer {
        let Some(test) = &mut self.test else {
            if share <= self.granted {
                return Answer::Free;
            }
            self.test = Some(Test { since: number, share, before: 0.0, after: 0.0 });
            return Answer::Send(share);
        };
        // A round passes until what leaves now is what ACKs tell of.
        let share = test.share;
        match number - test.since {
            0 | 1 => return Answer::Send(share),
            2 => test.before = delivered,
            3 => test.before += delivered,
            4 => {}
            5 => test.after = delivered,
            _ => {
                let (before, after) = (test.before, test.after + delivered);
                self.test = None;
                if after > AS_MUCH * before {
                    self.wary_until = number + WARY;
                    self.granted = (LESS * share).min(AT_MOST * after / 2.0);
                    return Answer::Overflow(self.granted);
                }
                self.granted = share * if number < self.wary_until { MORE_WARY } else { MORE };
                return Answer::Send(share);
            }
        }
        Answer::Send(if test.after > 0.0 || number > test.since + 2 { LESS * share } else { share })
    }

    /// There is a queue to see, or nothing is lost.
    pub(super) fn forget(&mut self) {
        self.test = None;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds over a path of rate 1 without any buffer, which loses `loss` besides; the rates sent.
    fn shares(begin: f64, loss: f64, rounds: u64) -> Vec<f64> {
        let (mut overflow, mut sent) = (Overflow::default(), vec![begin, begin]);
        for number in 0..rounds {
            let arrived = sent[number as usize].min(1.0) * (1.0 - loss);
            let now = *sent.last().expect("never empty");
            sent.push(match overflow.on_round(number, arrived, now) {
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

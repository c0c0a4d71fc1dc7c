//! HyStart as Ha and Rhee describe it (Computer Networks 55(9), 2011) and Linux has it (`hystart_update`): slow start is
//! left at once, where HyStart++ goes on at a quarter of the pace for five rounds.
//!
//! Two signs, each in a round of its own: ACKs that come close together for as long as half of the least round trip
//! (the train fills the path), and a round trip that begins an eighth above the least one.

use super::AckSample;
use super::round::Rounds;
use crate::time::{Span, Time};

/// One slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hystart {
    rounds: Rounds,
    /// Since when ACKs come close together, from the round's begin on, and the last of them.
    train: Option<(Time, Time)>,
    round_min: Option<Span>,
    samples: u32,
    least: Option<Span>,
}

impl Hystart {
    /// Takes an ACK while the window has `segments`; whether slow start ends.
    pub(super) fn on_ack(&mut self, now: Time, sample: &AckSample, segments: u64) -> bool {
        let begins = self.rounds.on_ack(sample) || self.train.is_none();
        if begins {
            self.train = Some((now, now));
            (self.round_min, self.samples) = (None, 0);
        }
        let Some(rtt) = sample.rtt else { return false };
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        if segments < LOW_WINDOW {
            return false;
        }
        self.is_long(now, least) || self.is_late(rtt, least)
    }

    fn is_long(&mut self, now: Time, least: Span) -> bool {
        let Some((begin, last)) = &mut self.train else { return false };
        if now.since(*last) > TRAIN_GAP {
            return false;
        }
        *last = now;
        now.since(*begin) > least / 2
    }

    fn is_late(&mut self, rtt: Span, least: Span) -> bool {
        let min = self.round_min.map_or(rtt, |min| min.min(rtt));
        self.round_min = Some(min);
        self.samples += 1;
        self.samples > SAMPLES && min > least + (least / 8).clamp(LATE_MIN, LATE_MAX)
    }
}

/// `hystart_low_window`, segments.
const LOW_WINDOW: u64 = 16;
/// `hystart_ack_delta_us`.
const TRAIN_GAP: Span = Span::from_millis(2);
/// `HYSTART_MIN_SAMPLES`.
const SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`.
const LATE_MIN: Span = Span::from_millis(4);
const LATE_MAX: Span = Span::from_millis(16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::ack_of;

    /// Rounds of `count` ACKs `gap_us` apart, each of a segment with its round trip in ms: the first round in which
    /// slow start ends.
    fn ends_in(count: u64, gap_us: u64, rtts_ms: &[u64], segments: u64) -> Option<usize> {
        let mut hystart = Hystart::default();
        let mut now = Time::ZERO;
        rtts_ms.iter().position(|&rtt| {
            now += Span::from_millis(rtt);
            let rtt = Some(Span::from_millis(rtt));
            let ack = AckSample { in_flight: count * 1000, rtt, ..ack_of(1000) };
            (0..count).any(|_| {
                now += Span::from_micros(gap_us);
                hystart.on_ack(now, &ack, segments)
            })
        })
    }

    #[test]
    fn a_train_of_half_the_least_round_trip_ends_it() {
        // 10 ACKs a millisecond apart take less than 20 ms, 30 take more.
        assert_eq!(ends_in(10, 1000, &[40; 4], 20), None);
        assert_eq!(ends_in(30, 1000, &[40; 4], 20), Some(0));
        // Further apart than 2 ms they are none.
        assert_eq!(ends_in(30, 2100, &[40; 4], 20), None);
    }

    #[test]
    fn a_round_trip_of_an_eighth_more_ends_it() {
        assert_eq!(ends_in(12, 3000, &[40, 40, 45, 45], 20), None);
        assert_eq!(ends_in(12, 3000, &[40, 40, 46, 46], 20), Some(2));
        // 4 ms at least, 16 at most.
        assert_eq!(ends_in(12, 3000, &[8, 8, 12], 20), None);
        assert_eq!(ends_in(12, 3000, &[8, 8, 13], 20), Some(2));
        assert_eq!(ends_in(12, 3000, &[400, 400, 417], 20), Some(2));
    }

    #[test]
    fn a_window_below_sixteen_segments_grows_on() {
        assert_eq!(ends_in(30, 1000, &[40, 60], 15), None);
    }
}

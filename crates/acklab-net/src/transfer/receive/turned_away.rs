//! Senders that did not come in: counted, and told at most every 10 s, because any host can make as many of
//! them as it likes.

use std::net::SocketAddr;

use acklab_core::time::{Span, Time};
use acklab_rudp::Code;

/// They are told of so often.
const TELL_EVERY: Span = Span::from_secs(10);

#[derive(Default)]
pub(super) struct TurnedAway {
    last: Option<(SocketAddr, Code)>,
    count: u64,
    next: Time,
}

impl TurnedAway {
    pub(super) fn note(&mut self, from: SocketAddr, code: Code) {
        self.last = Some((from, code));
        self.count += 1;
    }

    /// What is to be told now: the last of them, and how many there were since this was told last.
    pub(super) fn poll(&mut self, now: Time) -> Option<(SocketAddr, Code, u64)> {
        if now < self.next {
            return None;
        }
        let (from, code) = self.last.take()?;
        self.next = now + TELL_EVERY;
        Some((from, code, std::mem::take(&mut self.count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_at_once_and_the_others_as_a_number_every_ten_seconds() {
        let from: SocketAddr = "192.0.2.1:5".parse().unwrap();
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let mut turned_away = TurnedAway::default();
        assert_eq!(turned_away.poll(at(0)), None);
        for second in 0..25 {
            turned_away.note(from, Code::Mode);
            let told = turned_away.poll(at(second)).map(|(_, _, count)| count);
            assert_eq!(
                told,
                [(0, 1), (10, 10), (20, 10)].into_iter().find(|it| it.0 == second).map(|it| it.1)
            );
        }
        assert_eq!(turned_away.poll(at(30)), Some((from, Code::Mode, 4)));
        assert_eq!(turned_away.poll(at(40)), None);
    }
}

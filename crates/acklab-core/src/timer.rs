//! [`TimerTable`]: the deadlines of one component, indexed by its own enum.
//!
//! With it `poll_timeout` is `timers.next()`, and no component derives its next deadline twice.

use std::marker::PhantomData;

use crate::time::Time;

/// The enum of a component's timers.
pub trait TimerKind: Copy + Into<usize> {
    /// Number of variants; `into()` gives values below it.
    const COUNT: usize;
}

/// At most `N` deadlines, one for each variant of `K`.
#[derive(Clone, Debug)]
pub struct TimerTable<K, const N: usize> {
    deadlines: [Time; N],
    kind: PhantomData<K>,
}

impl<K: TimerKind, const N: usize> Default for TimerTable<K, N> {
    fn default() -> Self {
        const { assert!(N == K::COUNT) };
        Self { deadlines: [Time::MAX; N], kind: PhantomData }
    }
}

impl<K: TimerKind, const N: usize> TimerTable<K, N> {
    /// The deadlines as they follow from a component's state, each kind once.
    pub fn of(deadlines: [(K, Option<Time>); N]) -> Self {
        let mut table = Self::default();
        for (kind, at) in deadlines {
            table.deadlines[kind.into()] = at.unwrap_or(Time::MAX);
        }
        table
    }

    /// Arms `kind` for `at`, replacing an earlier deadline.
    pub fn set(&mut self, kind: K, at: Time) {
        self.deadlines[kind.into()] = at;
    }

    /// Disarms `kind`.
    pub fn stop(&mut self, kind: K) {
        self.deadlines[kind.into()] = Time::MAX;
    }

    /// The deadline of `kind`, if armed.
    pub fn deadline(&self, kind: K) -> Option<Time> {
        Some(self.deadlines[kind.into()]).filter(|&at| at != Time::MAX)
    }

    /// The earliest deadline of all.
    pub fn next(&self) -> Option<Time> {
        self.deadlines.iter().copied().min().filter(|&at| at != Time::MAX)
    }

    /// Disarms `kind` and returns true if its deadline has come.
    pub fn take_expired(&mut self, kind: K, now: Time) -> bool {
        let expired =
            self.deadlines[kind.into()] <= now && self.deadlines[kind.into()] != Time::MAX;
        if expired {
            self.stop(kind);
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    enum Kind {
        Retransmit,
        DelayedAck,
    }

    impl From<Kind> for usize {
        fn from(kind: Kind) -> Self {
            kind as Self
        }
    }

    impl TimerKind for Kind {
        const COUNT: usize = 2;
    }

    #[test]
    fn the_earliest_deadline_is_next_and_expires_once() {
        let mut timers = TimerTable::<Kind, 2>::default();
        assert_eq!(timers.next(), None);
        timers.set(Kind::Retransmit, Time::from_nanos(200));
        timers.set(Kind::DelayedAck, Time::from_nanos(40));
        assert_eq!(timers.next(), Some(Time::from_nanos(40)));
        assert!(!timers.take_expired(Kind::DelayedAck, Time::from_nanos(39)));
        assert!(timers.take_expired(Kind::DelayedAck, Time::from_nanos(40)));
        assert!(!timers.take_expired(Kind::DelayedAck, Time::from_nanos(41)));
        assert_eq!(timers.next(), timers.deadline(Kind::Retransmit));
    }

    #[test]
    fn deadlines_that_follow_from_a_state_are_those_of_its_kinds() {
        let at = Time::from_nanos(7);
        let timers = TimerTable::of([(Kind::DelayedAck, Some(at)), (Kind::Retransmit, None)]);
        assert_eq!(timers.next(), Some(at));
        assert_eq!(
            (timers.deadline(Kind::DelayedAck), timers.deadline(Kind::Retransmit)),
            (Some(at), None)
        );
    }
}

//! [`Alarm`]: a component's lazy timer in the event queue.
//!
//! A deadline that moves later costs nothing: the pending entry surfaces at the old time, finds
//! nothing due, and the component is armed anew. One that moves earlier adds an entry. Nothing is
//! searched for or removed, and no two entries of a component wait for the same instant.

use acklab_core::time::Time;

/// The pending entries of one component, the earliest last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alarm {
    pending: Vec<Time>,
}

impl Alarm {
    /// The component wants to be woken at `deadline`: returns it if an entry must be pushed.
    #[inline]
    pub(crate) fn arm(&mut self, deadline: Option<Time>) -> Option<Time> {
        let at = deadline?;
        if self.pending.last().is_some_and(|&next| next <= at) {
            return None;
        }
        self.pending.push(at);
        Some(at)
    }

    /// An entry surfaced; entries surface in order of time, so it is the earliest.
    #[inline]
    pub(crate) fn ring(&mut self) {
        self.pending.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_earlier_deadline_needs_an_entry() {
        let at = |nanos| Some(Time::from_nanos(nanos));
        let mut alarm = Alarm::default();
        assert_eq!(alarm.arm(None), None);
        assert_eq!(alarm.arm(at(200)), at(200));
        assert_eq!(alarm.arm(at(300)), None);
        assert_eq!(alarm.arm(at(40)), at(40));
        alarm.ring();
        assert_eq!(alarm.arm(at(200)), None, "the entry for 200 is still pending");
        alarm.ring();
        assert_eq!(alarm.arm(at(300)), at(300));
    }
}

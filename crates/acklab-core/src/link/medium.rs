//! A medium on which one transmitter is heard at a time: both directions of a half-duplex radio or bus.
//!
//! A transmission begins when the medium is free and the link has something to send; where others wait as well, they
//! take turns, which is what the fair contention of IEEE 802.11's DCF comes to on average. Each transmission costs
//! `overhead` beside its bits: gaps, preamble, the frame's own acknowledgment. Left out: collisions, aggregation,
//! rates that adapt.

use std::sync::{Arc, Mutex, PoisonError};

use crate::time::{Span, Time};

/// A medium, shared by the links that hold it.
#[derive(Clone, Debug)]
pub struct Medium {
    overhead: Span,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Nobody is heard from then on.
    free: Time,
    /// The link that was heard last.
    last: Option<u32>,
    /// Links that have something to send.
    waiting: Vec<u32>,
}

impl Medium {
    /// A free one, whose transmissions cost `overhead` beside their bits.
    pub fn new(overhead: Span) -> Self {
        Self { overhead, state: Arc::default() }
    }

    /// What a transmission costs beside its bits.
    pub(super) const fn overhead(&self) -> Span {
        self.overhead
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// When it is free.
    pub(super) fn free(&self) -> Time {
        self.with(|state| state.free)
    }

    /// Link `link` has something to send, or not.
    pub(super) fn want(&self, link: u32, wants: bool) {
        self.with(|state| {
            let known = state.waiting.iter().position(|other| *other == link);
            match known {
                Some(place) if !wants => drop(state.waiting.swap_remove(place)),
                None if wants => state.waiting.push(link),
                _ => {}
            }
        });
    }

    /// Whether `link` may begin on the free medium: it was not heard last, or no other waits.
    pub(super) fn is_turn_of(&self, link: u32) -> bool {
        self.with(|state| {
            state.last != Some(link) || state.waiting.iter().all(|other| *other == link)
        })
    }

    /// Link `link` is heard until `until`.
    pub(super) fn take(&self, link: u32, until: Time) {
        self.with(|state| (state.last, state.free) = (Some(link), until));
    }
}

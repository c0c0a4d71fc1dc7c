//! Whose turn it is: eight classes, 0 first, and within a class round robin by packets over the
//! streams and the oldest parcel that has something new to send (docs/rudp.md section 7,
//! "Priorities"). Parcels follow each other: sharing the path, they would all be as late as the last.

use std::collections::VecDeque;

/// The class of what names none.
pub const DEFAULT_PRIORITY: u8 = 4;

/// How many classes there are.
pub(super) const CLASSES: usize = 8;

/// A stream or parcel that has something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Stream id.
    Stream(u64),
    /// Parcel id.
    Parcel(u64),
}

/// The turns of those that wait.
#[derive(Debug, Default)]
pub(super) struct Turns {
    classes: [VecDeque<Source>; CLASSES],
    /// A bit for each class in which an entry waits.
    waiting: u8,
}

impl Turns {
    /// `source` waits behind its class; it does not wait yet.
    pub(super) fn push(&mut self, priority: u8, source: Source) {
        self.class_mut(priority).push_back(source);
        self.waiting |= 1 << priority.min(CLASSES as u8 - 1);
    }

    fn class_mut(&mut self, priority: u8) -> &mut VecDeque<Source> {
        &mut self.classes[usize::from(priority).min(CLASSES - 1)]
    }

    /// The first class in which an entry waits, and which has the turn in it.
    pub(super) fn first(&self) -> Option<(u8, Source)> {
        let class = self.waiting.trailing_zeros() as u8;
        Some((class, *self.classes.get(usize::from(class))?.front()?))
    }

    /// Those of `class` in the order of their turns.
    pub(super) fn class(&self, priority: u8) -> impl Iterator<Item = Source> + '_ {
        self.classes[usize::from(priority).min(CLASSES - 1)].iter().copied()
    }

    /// Everybody, in the order of their turns.
    pub(super) fn iter(&self) -> impl Iterator<Item = Source> + '_ {
        self.classes.iter().flatten().copied()
    }

    /// `source` has the next turn of its class.
    pub(super) fn prefer(&mut self, priority: u8, source: Source) {
        let class = self.class_mut(priority);
        if let Some(at) = class.iter().position(|&waiting| waiting == source) {
            class.remove(at);
            class.push_front(source);
        }
    }

    /// Whoever has the turn in `class` has used it and waits for the next; a parcel lets one stream go
    /// before it.
    pub(super) fn rotate(&mut self, priority: u8) {
        let class = self.class_mut(priority);
        match class.front() {
            Some(Source::Parcel(_)) => {
                let stream = class.iter().position(|source| matches!(source, Source::Stream(_)));
                if let Some(stream) = stream.and_then(|at| class.remove(at)) {
                    class.push_front(stream);
                }
            }
            Some(Source::Stream(_)) => class.rotate_left(1),
            None => {}
        }
    }

    /// Whoever has the turn in `class` waits no longer.
    pub(super) fn pop(&mut self, priority: u8) -> Option<Source> {
        let class = self.class_mut(priority);
        let source = class.pop_front();
        if class.is_empty() {
            self.waiting &= !(1 << priority.min(CLASSES as u8 - 1));
        }
        source
    }
}

//! What waits to be told: the peer in control frames, the application in events.

use std::collections::VecDeque;

use crate::piece::{ContentEvent, ControlFrame};

/// Both, oldest first.
#[derive(Debug, Default)]
pub(super) struct Notes {
    control: VecDeque<ControlFrame>,
    events: VecDeque<ContentEvent>,
}

impl Notes {
    /// The peer is to be told, unless that waits already.
    pub(super) fn want(&mut self, control: ControlFrame) {
        if !self.control.contains(&control) {
            self.control.push_back(control);
        }
    }

    /// The control frame that waits longest.
    pub(super) fn first_control(&self) -> Option<ControlFrame> {
        self.control.front().copied()
    }

    /// It left, or has nothing to say any more.
    pub(super) fn drop_control(&mut self) {
        self.control.pop_front();
    }

    /// Control frames that wait.
    #[cfg(test)]
    pub(super) fn controls(&self) -> usize {
        self.control.len()
    }

    /// The application is to be told.
    pub(super) fn tell(&mut self, event: ContentEvent) {
        self.events.push_back(event);
    }

    pub(super) fn next_event(&mut self) -> Option<ContentEvent> {
        self.events.pop_front()
    }
}

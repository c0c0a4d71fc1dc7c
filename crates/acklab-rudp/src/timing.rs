//! Deadlines: everything a connection does because time has passed.

use super::code::Code;
use super::connection::{Connection, Event, Stage};
use super::life::{PathState, Verdict};
use super::sent::Item;
use acklab_core::time::{Span, Time};

impl Connection {
    /// When [`Self::on_timeout`] must be called next, if nothing else happens before.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        match &self.stage {
            Stage::Greeting(greeting) => Some(greeting.deadline()),
            Stage::Answering(answering) => Some(answering.deadline()),
            Stage::Ending(ending) => Some(ending.deadline()),
            Stage::Closed => None,
            Stage::Open => {
                let paths = (0..self.paths.len()).filter_map(|index| self.path_deadline(index));
                let own = [Some(self.idle_at()), self.keep_alive_at(), self.content.poll_timeout()];
                paths.chain(own.into_iter().flatten()).min()
            }
        }
    }

    fn path_deadline(&self, index: usize) -> Option<Time> {
        let path = &self.paths[index];
        let life = path.life.deadline(self.silent_since(index), path.pto());
        [path.sent.loss_at(), path.pto_at(), path.received.deadline(), path.pace_at(), life]
            .into_iter()
            .flatten()
            .min()
    }

    /// Since when the path has been silent with something outstanding, where another could take over.
    fn silent_since(&self, index: usize) -> Option<Time> {
        let others = self
            .paths
            .iter()
            .enumerate()
            .any(|(other, path)| other != index && path.life.state() == PathState::Active);
        if others { self.paths[index].silent_since() } else { None }
    }

    fn idle_at(&self) -> Time {
        let ours = self.config.parameters.idle_ms;
        let ms = self.peer.as_ref().map_or(ours, |peer| peer.idle_ms.min(ours));
        self.last_heard + Span::from_millis(ms)
    }

    /// An application that wants the connection kept open is heard of after a third of the idle time.
    fn keep_alive_at(&self) -> Option<Time> {
        let idle = self.idle_at().since(self.last_heard);
        let third = Span::from_nanos(idle.as_nanos() / 3);
        let last = self.last_heard.max(self.last_sent);
        (self.config.keep_alive && !self.ping).then(|| last + third)
    }

    /// Acts on every deadline that is due at `now`; does nothing where none is.
    pub(super) fn on_timeout(&mut self, now: Time) {
        match &self.stage {
            Stage::Greeting(greeting) => {
                if let Some((code, text)) = greeting.failed(now) {
                    let by_peer = code != Code::Idle;
                    self.on_ended(code, text, by_peer);
                }
            }
            Stage::Answering(answering) => {
                if now >= answering.deadline() {
                    self.on_unproven();
                }
            }
            Stage::Ending(ending) => {
                if now >= ending.deadline() {
                    self.stage = Stage::Closed;
                }
            }
            Stage::Closed => {}
            Stage::Open => self.handle_open_timeout(now),
        }
    }

    fn handle_open_timeout(&mut self, now: Time) {
        if now >= self.idle_at() {
            self.on_ended(Code::Idle, String::new(), false);
            return;
        }
        if self.keep_alive_at().is_some_and(|at| now >= at) {
            self.ping = true;
        }
        self.content.handle_timeout(now);
        let mut index = 0;
        while index < self.paths.len() {
            let id = self.paths[index].id;
            self.handle_path_timeout(now, index);
            // The path may have been removed.
            if self.paths.get(index).is_some_and(|path| path.id == id) {
                index += 1;
            }
        }
    }

    fn handle_path_timeout(&mut self, now: Time, index: usize) {
        let silent = self.silent_since(index);
        let path = &mut self.paths[index];
        let pto = path.pto();
        path.received.handle_timeout(now, pto);
        if path.sent.loss_at().is_some_and(|at| now >= at) {
            self.news.clear();
            path.detect_losses(now, &mut self.news);
            self.settle();
        }
        let path = &mut self.paths[index];
        if path.pto_at().is_some_and(|at| now >= at) {
            path.on_pto(now);
        }
        let before = path.life.state();
        match path.life.judge(now, silent, pto) {
            None => {}
            Some(Verdict::Suspect) => self.copy_elsewhere(index),
            Some(Verdict::Dead) => {
                let id = path.id;
                path.ecn.on_silence();
                self.lose_path(now, index);
                self.notices.push_back(Item::PathStatus(id));
            }
            Some(Verdict::Gone) => {
                let id = path.id;
                self.drop_path(now, id);
                return;
            }
        }
        let (id, state) = (self.paths[index].id, self.paths[index].life.state());
        if state != before {
            self.events.push_back(Event::Path { id, state });
        }
    }

    /// What is outstanding on a silent path leaves on the others too.
    fn copy_elsewhere(&mut self, index: usize) {
        for sent in self.paths[index].sent.outstanding_mut() {
            for item in sent.items.as_slice() {
                if let Item::Piece(piece) = item {
                    self.content.on_lost(piece);
                }
            }
        }
    }
}

//! Time: the host acts by itself, calls that wait are tried again, packets that left are noted.

use acklab_host::segment::flag;
use acklab_host::settings::{SECOND, Us};

use super::{Runner, START, Seen, Stop, TIMELINE, fail, unsupported};
use crate::call::{Progress, Trouble};
use crate::flow::Flow;

impl Runner<'_> {
    pub(super) fn show(at: Us) -> String {
        format!("{:.6} s", (at as f64 - START as f64) / SECOND as f64)
    }

    pub(super) fn note(&mut self, line: usize, what: impl std::fmt::Display) {
        if self.timeline.len() == TIMELINE {
            self.timeline.pop_front();
        }
        let place = if line > 0 { format!("line {line}") } else { String::new() };
        self.timeline.push_back(format!("{:>13}  {place:<9} {what}", Self::show(self.now)));
    }

    /// What the host sent is sorted to the script's connection; a SYN of its own begins one.
    pub(super) fn drain(&mut self) {
        if std::mem::take(&mut self.caller.anew) {
            self.flow = None;
        }
        while let Some((at, segment)) = self.caller.world.sent() {
            let known = self.flow.as_ref().is_some_and(|flow| flow.has(&segment));
            if !known && segment.has(flag::SYN) && !segment.has(flag::ACK) {
                self.flow = Some(Flow::new(segment.src, segment.dst, self.observes));
            }
            let Some(flow) = self.flow.as_mut().filter(|flow| flow.has(&segment)) else { continue };
            flow.push(at, segment.clone());
            let text = flow.show(&segment);
            let each = flow.show_each(&segment).into_iter();
            self.seen.extend(each.map(|what| Seen { at: at.saturating_sub(START), what }));
            let Some(flow) = self.flow.as_mut() else { continue };
            if self.observes {
                flow.queue.clear();
            }
            self.note(0, format!("host > {text}"));
        }
    }

    /// One step to the next instant before `limit` at which something happens; returns whether there was one.
    pub(super) fn step(&mut self, line: usize, limit: Us) -> Result<bool, Stop> {
        let wake = self.pending.as_ref().and_then(|(_, pending, _)| pending.wake);
        let wake = wake.filter(|&wake| wake > self.now && wake < limit);
        let next = match self.caller.world.wait(self.now, wake.map_or(limit, |wake| wake + 1)) {
            Ok(next) => next.or(wake),
            Err(what) => return fail(line, format!("{what} at {}", Self::show(self.now))),
        };
        let Some(next) = next else { return Ok(false) };
        self.now = self.now.max(next);
        self.drain();
        self.retry()?;
        Ok(true)
    }

    /// Lets time pass up to `until`; what is due then has not happened yet.
    pub(super) fn advance(&mut self, line: usize, until: Us) -> Result<(), Stop> {
        while self.step(line, until)? {}
        self.now = self.now.max(until);
        Ok(())
    }

    /// Keeps what the host did.
    pub(super) fn saw(&mut self, what: String) {
        self.seen.push(Seen { at: self.now.saturating_sub(START), what });
    }

    /// What is not as the script says: the end, unless the run only observes.
    pub(super) fn wrong(&mut self, line: usize, message: String) -> Result<(), Stop> {
        if self.observes {
            self.saw(message);
            return Ok(());
        }
        fail(line, message)
    }

    pub(super) fn trouble(&mut self, line: usize, trouble: Trouble) -> Result<(), Stop> {
        match trouble {
            Trouble::Wrong(message) => self.wrong(line, message),
            Trouble::Unsupported(message) => unsupported(line, message),
        }
    }

    /// Tries again what waits.
    pub(super) fn retry(&mut self) -> Result<(), Stop> {
        let Some((line, mut pending, until)) = self.pending.take() else { return Ok(()) };
        match self.caller.attempt(self.now, &mut pending) {
            Ok(Progress::Waits(wake)) => {
                pending.wake = wake;
                self.pending = Some((line, pending, until));
                Ok(())
            }
            Ok(Progress::Done) => {
                self.drain();
                self.note(line, format!("{} returns", pending.call.name));
                self.saw(format!("{} returns", pending.call.name));
                self.check_end(line, &pending.call.name, until)
            }
            Err(trouble) => self.trouble(line, trouble),
        }
    }

    pub(super) fn check_end(
        &mut self,
        line: usize,
        name: &str,
        until: Option<Us>,
    ) -> Result<(), Stop> {
        let Some(until) = until else { return Ok(()) };
        if self.now.abs_diff(until) > self.tolerance {
            return self.wrong(
                line,
                format!("{name} ended at {}, expected {}", Self::show(self.now), Self::show(until)),
            );
        }
        Ok(())
    }
}

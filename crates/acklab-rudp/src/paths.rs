//! The paths of a connection: which there are, which of them says what, and which carries the next
//! packet of content (docs/rudp.md section 6).

use super::config::Config;
use super::life::{Life, PathState};
use super::path::Path;
use super::report::PathAddrs;
use super::scheduler::{Candidate, Scheduler};
use super::sent::Items;
use acklab_core::cc::CoupledSample;
use acklab_core::time::{Span, Time};

/// At most so many paths at once (docs/rudp.md section 6).
pub(super) const PATHS: usize = 8;
/// Path ids end below 255 (docs/rudp.md section 2).
const LAST_PATH_ID: u8 = 252;
/// The slowest probe time-out where there is no path.
const NO_PTO: Span = Span::from_secs(1);

/// The paths, in the order in which they were opened.
#[derive(Debug, Default)]
pub(super) struct Paths {
    list: Vec<Path>,
    next_id: u8,
    scheduler: Scheduler,
    /// The peer takes no longer datagrams than this.
    datagram_max: Option<usize>,
}

impl std::ops::Index<usize> for Paths {
    type Output = Path;

    fn index(&self, index: usize) -> &Path {
        &self.list[index]
    }
}

impl std::ops::IndexMut<usize> for Paths {
    fn index_mut(&mut self, index: usize) -> &mut Path {
        &mut self.list[index]
    }
}

impl Paths {
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.list.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.list.iter_mut()
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Path> {
        self.list.get_mut(index)
    }

    /// Where the path with that id stands.
    pub(super) fn index_of(&self, id: u8) -> Option<usize> {
        self.list.iter().position(|path| path.id() == id)
    }

    pub(super) fn by_id(&mut self, id: u8) -> Option<&mut Path> {
        self.list.iter_mut().find(|path| path.id() == id)
    }

    /// The id that this end gives next, if there is one left.
    pub(super) fn next_id(&self) -> Option<u8> {
        (self.next_id <= LAST_PATH_ID).then_some(self.next_id)
    }

    /// Opens a path under the next id.
    pub(super) fn open(
        &mut self,
        now: Time,
        addrs: PathAddrs,
        config: &Config,
        life: Life,
    ) -> &Path {
        self.push(now, self.next_id, addrs, config, life)
    }

    /// Opens a path under `id`; this end's ids go on after it.
    pub(super) fn push(
        &mut self,
        now: Time,
        id: u8,
        addrs: PathAddrs,
        config: &Config,
        life: Life,
    ) -> &Path {
        self.next_id = id + 2;
        let mut path = Path::new(now, id, addrs, config, life);
        if let Some(most) = self.datagram_max {
            path.size_mut().limit(most);
        }
        self.list.push(path);
        &self.list[self.list.len() - 1]
    }

    /// The connection's seed is that of `config` from now on.
    pub(super) fn reseed(&mut self, config: &Config) {
        self.list.iter_mut().for_each(|path| path.reseed(config));
    }

    pub(super) fn remove(&mut self, index: usize) {
        self.list.remove(index);
    }

    /// The peer takes no longer datagrams than this.
    pub(super) fn limit_datagrams(&mut self, most: usize) {
        self.datagram_max = Some(most);
        self.list.iter_mut().for_each(|path| path.size_mut().limit(most));
    }

    /// Whether a packet of a client with that unknown path id may open a path at its server.
    pub(super) fn may_open(&self, id: u8) -> bool {
        self.list.len() < PATHS
            && id <= LAST_PATH_ID
            && id.is_multiple_of(2)
            && id > self.list.iter().map(Path::id).max().unwrap_or(0)
            && id >= self.next_id
    }

    /// The probe time-out of the slowest path.
    pub(super) fn slowest_pto(&self) -> Span {
        self.list.iter().map(Path::pto).max().unwrap_or(NO_PTO)
    }

    /// The round trip of the fastest path.
    pub(super) fn best_rtt(&self) -> Span {
        self.list.iter().map(|path| path.loss().rtt().smoothed()).min().unwrap_or_default()
    }

    /// Since when the path has been silent with something outstanding, where another could take over.
    pub(super) fn silent_since(&self, index: usize) -> Option<Time> {
        let active = |path: &Path| path.life().state() == PathState::Active;
        let others = self.list.iter().enumerate();
        let others = others.filter(|&(other, _)| other != index).any(|(_, path)| active(path));
        if others { self.list[index].silent_since() } else { None }
    }

    /// When the next deadline of any path comes.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let deadline = |index: usize| self.list[index].poll_timeout(self.silent_since(index));
        (0..self.list.len()).filter_map(deadline).min()
    }

    /// Whether ACKs of what arrives on that path leave on another.
    pub(super) fn acks_elsewhere(&self, index: usize) -> bool {
        let heard = |path: &Path| path.life().is_heard() && !path.is_silent_there();
        !heard(&self.list[index]) && self.list.iter().any(heard)
    }

    /// Whether an ACK is due that leaves on another path than it is about.
    pub(super) fn ack_is_due_elsewhere(&self) -> bool {
        let due = |index: usize| self.list[index].received().is_due();
        (0..self.list.len()).any(|index| self.acks_elsewhere(index) && due(index))
    }

    /// Whether frames that belong to no path leave on this one.
    pub(super) fn is_best(&self, index: usize) -> bool {
        let rank = |path: &Path| {
            let good = path.life().state() == PathState::Active && !path.is_silent_there();
            (!good, !path.life().is_heard(), path.loss().rtt().smoothed(), path.id())
        };
        let best = self.list.iter().enumerate().min_by_key(|(_, path)| rank(path));
        best.is_some_and(|(best, _)| best == index)
    }

    /// The path for content while `waiting` bytes of it wait, if any may take it now.
    pub(super) fn choose(&mut self, now: Time, waiting: u64) -> Option<usize> {
        let spare = self.list.iter().any(|path| path.life().is_usable() && !path.is_spare());
        let mut candidates = [NO_PATH; PATHS];
        let mut count = 0;
        for (index, path) in self.list.iter_mut().enumerate() {
            let usable =
                path.life().is_usable() && !path.is_silent_there() && !(spare && path.is_spare());
            if !usable {
                continue;
            }
            let open = path.may_reach() && path.may_send(now);
            let (srtt, variation) = (path.loss().rtt().smoothed(), path.loss().rtt().variation());
            candidates[count] = Candidate { index, srtt, variation, window: path.window(), open };
            count += 1;
        }
        self.scheduler.choose(&candidates[..count], waiting)
    }

    /// Tells a path what part of the connection it is, so that paths that meet in one bottleneck take what one flow
    /// takes there (RFC 6356): by the rate of all that carry something.
    pub(super) fn couple(&mut self, index: usize) {
        if self.list.len() == 1 {
            return;
        }
        let (mut count, mut all, mut steepest) = (0, 0.0, 0.0_f64);
        for (rate, rtt) in self.list.iter().filter_map(Path::load) {
            (count, all) = (count + 1, all + rate);
            steepest = steepest.max(rate / rtt);
        }
        let path = &mut self.list[index];
        let sample = match path.load() {
            Some((rate, rtt)) if count > 1 => {
                let part = (rate / all).max(LEAST_PART / f64::from(count));
                CoupledSample { part, growth: (part * rtt * steepest / all).min(1.0) }
            }
            _ => CoupledSample { part: 1.0, growth: 1.0 },
        };
        path.on_coupled(&sample);
    }

    /// Whether a path loses often enough that what it carries is worth copies.
    pub(super) fn is_lossy(&self) -> bool {
        self.list.iter().any(|path| path.loss().is_lossy() && path.loss().sent().in_flight() > 0)
    }

    /// Whether a second path could take copies.
    pub(super) fn takes_copies(&self) -> bool {
        self.list.iter().filter(|path| path.life().takes_copies()).count() >= 2
    }

    /// The path for second copies of what left first on path `first`, which may never be full.
    pub(super) fn for_copies(&mut self, now: Time, first: u8) -> Option<usize> {
        let takers = self.list.iter_mut().enumerate().filter(|(_, path)| {
            path.id() != first && path.life().takes_copies() && path.may_reach()
        });
        let open = takers.filter_map(|(index, path)| {
            path.may_send(now).then(|| (path.loss().rtt().smoothed(), index))
        });
        open.min().map(|(_, index)| index)
    }

    /// Whether any outstanding packet whose items `fit` may be copied now.
    pub(super) fn is_ripe(&self, now: Time, fit: impl Fn(&Items) -> bool) -> bool {
        self.list.iter().any(|path| path.loss().ripest(now, false, &fit).is_some())
    }

    /// The items of the outstanding packet that left longest ago and whose items `fit`, counted as copied
    /// now; `urgent`: however lately it left.
    pub(super) fn copy_oldest(
        &mut self,
        now: Time,
        urgent: bool,
        fit: impl Fn(&Items) -> bool,
    ) -> Option<Items> {
        let ripest = |path: &Path| path.loss().ripest(now, urgent, &fit);
        let each = self.list.iter().enumerate();
        let of_paths = each.filter_map(|(index, path)| Some((ripest(path)?, index)));
        let ((_, number), index) = of_paths.min_by_key(|&((left, _), index)| (left, index))?;
        Some(self.list[index].loss_mut().sent_mut().copy(now, number))
    }
}

/// Of an equal part: so much a path counts at least, so that one that had little comes back.
const LEAST_PART: f64 = 0.5;
/// Fills the places of paths that are not in use.
const NO_PATH: Candidate =
    Candidate { index: usize::MAX, srtt: Span::MAX, variation: Span::ZERO, window: 0, open: false };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peers_path_ids_rise_and_end_where_ours_do() {
        let addrs = PathAddrs {
            local: "10.0.0.1:7".parse().expect("an address"),
            remote: "10.0.0.2:7".parse().expect("an address"),
        };
        let mut paths = Paths::default();
        let open = |paths: &mut Paths, id| {
            paths.push(Time::ZERO, id, addrs, &Config::default(), Life::active(Time::ZERO));
        };
        open(&mut paths, 0);
        assert!(paths.may_open(2) && !paths.may_open(3), "even ones are the client's");
        open(&mut paths, 6);
        assert!(!paths.may_open(4) && paths.may_open(8));
        // The id after 254 would be none.
        assert!(paths.may_open(252) && !paths.may_open(254));
        open(&mut paths, 252);
        assert_eq!(paths.next_id(), None);
    }
}

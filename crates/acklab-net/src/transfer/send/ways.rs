//! The ways to the receiver: a socket for each path, those that could not be had yet, and why no answer may
//! come.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use acklab_rudp::PathAddrs;
use nix::errno::Errno;

use super::errand::{Errand, ErrandError};
use super::status::News;
use crate::rudp::driver::Sockets;
use crate::rudp::socket::has_route;

/// A path: from an address, or from where the routes say, to one of the receiver's.
type Wanted = (Option<IpAddr>, SocketAddr);

/// As many as a connection can have (docs/rudp.md section 6).
const PATHS: usize = 8;

pub(super) struct Ways {
    /// Paths that could not be opened yet.
    missing: Vec<Wanted>,
    /// How many addresses of the receiver's are greeted.
    greeted: usize,
    /// Those of which something was said, and what was told of that.
    hinted: (BTreeSet<SocketAddr>, BTreeSet<i32>),
}

impl Ways {
    /// A socket for each path; of those that cannot be had the user is told. At the start (`first`) one is needed.
    pub(super) fn open(
        errand: &Errand,
        sockets: &mut Sockets,
        first: bool,
        tell: &mut dyn FnMut(News<'_>),
    ) -> Result<(Self, Vec<PathAddrs>), ErrandError> {
        let wanted = wanted(errand);
        if wanted.len() > PATHS {
            return Err(ErrandError::TooManyPaths(wanted.len()));
        }
        let (mut paths, mut missing, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for (local, remote) in wanted {
            match sockets.add(local, remote) {
                Ok(path) => paths.push(path),
                Err(error) if error.may_pass() => {
                    errors.push(error);
                    missing.push((local, remote));
                }
                Err(error) => return Err(error.into()),
            }
        }
        if first && paths.is_empty() && !errors.is_empty() {
            return Err(errors.swap_remove(0).into());
        }
        for error in errors {
            tell(News::Problem(format!("{error}; trying again")));
        }
        let greeted = if errand.paths.is_empty() { errand.to.len().min(PATHS) } else { 1 };
        Ok((Self { missing, greeted, hinted: Default::default() }, paths))
    }

    /// The receiver's other addresses, where the user named no paths: it is sought there too.
    pub(super) fn alternatives(
        &self,
        errand: &Errand,
        paths: &[PathAddrs],
        sockets: &mut Sockets,
    ) -> Vec<PathAddrs> {
        let Some(first) = paths.first().filter(|_| self.greeted > 1) else { return Vec::new() };
        let others = errand.to.iter().filter(|&&to| to != first.remote).take(PATHS - 1);
        others.filter_map(|&to| sockets.add(None, to).ok()).collect()
    }

    /// Tries again what could not be opened: paths that could now.
    pub(super) fn retry(&mut self, sockets: &mut Sockets) -> Vec<PathAddrs> {
        let mut opened = Vec::new();
        self.missing.retain(|&(local, remote)| match sockets.add(local, remote) {
            Ok(path) => {
                opened.push(path);
                false
            }
            Err(_) => true,
        });
        opened
    }

    /// The kernel or ICMP says why no answer may come: what to tell the user, once each, where it is said of every
    /// address.
    pub(super) fn on_hint(&mut self, remote: SocketAddr, errno: Errno) -> Option<String> {
        let (remotes, told) = &mut self.hinted;
        remotes.insert(remote);
        if remotes.len() < self.greeted || !told.insert(errno as i32) {
            return None;
        }
        let what = match errno {
            Errno::ECONNREFUSED => "no program listens there, as it seems".to_owned(),
            Errno::EMSGSIZE => format!(
                "packets of {} bytes, which are needed, are too large for the interface; give it an MTU \
                 of 1280 or more",
                if remote.is_ipv4() { 1228 } else { 1248 }
            ),
            errno => errno.desc().to_owned(),
        };
        Some(format!("{remote}: {what}; still trying"))
    }
}

/// The paths that the user wants; the first one greets.
fn wanted(errand: &Errand) -> Vec<Wanted> {
    let named = errand.paths.iter().map(|&(local, remote)| (Some(local), remote));
    let is_named = |to: &SocketAddr| named.clone().any(|(_, remote)| remote == *to);
    let first = if errand.to.iter().any(is_named) { None } else { reachable(&errand.to) };
    first.map(|to| (None, to)).into_iter().chain(named).collect()
}

/// The first of the receiver's addresses to which the routes lead, or else the first.
fn reachable(to: &[SocketAddr]) -> Option<SocketAddr> {
    to.iter().copied().find(|&to| has_route(to)).or(to.first().copied())
}

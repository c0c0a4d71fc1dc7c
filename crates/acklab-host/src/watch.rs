//! poll and epoll.

use crate::calls::Stop;
use crate::errno;
use crate::host::Host;
use crate::settings::Us;
use crate::socket::{File, Watch};
use crate::tcp::{State, poll};

/// EPOLLET.
pub const EDGE: u32 = 1 << 31;
/// EPOLLONESHOT.
pub const ONCE: u32 = 1 << 30;

impl Host {
    /// What poll says of a descriptor.
    pub fn poll_mask(&mut self, now: Us, fd: i32) -> u32 {
        let Some(descriptor) = self.files.get(&fd) else { return poll::NVAL };
        let index = match &descriptor.file {
            File::Socket(index) => *index,
            File::Pipe(pipe, false) => {
                return if self.pipes[*pipe] > 0 { poll::IN | poll::RDNORM } else { 0 };
            }
            File::Pipe(_, true) => return poll::OUT | poll::WRNORM,
            File::Plain(_) => return poll::IN | poll::OUT | poll::RDNORM | poll::WRNORM,
            File::Datagrams(index) => return self.poll_datagrams(*index),
            File::Epoll(_) => return 0,
        };
        let env = crate::settings::Env { now, sysctls: &self.sysctls, route: &self.route };
        let socket = &mut self.sockets[index];
        if socket.tcp.state == State::Listen {
            return if socket.ready.is_empty() { 0 } else { poll::IN | poll::RDNORM };
        }
        if socket.fast.deferred.is_some() {
            return poll::OUT | poll::WRNORM;
        }
        let tcp = &mut socket.tcp;
        let mut mask = 0;
        if (tcp.fate.shut_read && tcp.fate.shut_write) || tcp.state == State::Close {
            mask |= poll::HUP;
        }
        if tcp.fate.shut_read {
            mask |= poll::IN | poll::RDNORM | poll::RDHUP;
        }
        if !matches!(tcp.state, State::SynSent | State::SynRecv) || tcp.open.early {
            if tcp.readable() >= tcp.opt.rcvlowat.max(1) {
                mask |= poll::IN | poll::RDNORM;
            }
            if tcp.fate.shut_write || tcp.has_write_space(&env) {
                mask |= poll::OUT | poll::WRNORM;
            } else {
                tcp.snd.no_space = true;
            }
            if tcp.has_urgent_byte() {
                mask |= poll::PRI;
            }
        }
        if tcp.fate.error != 0 || !tcp.errors.is_empty() {
            mask |= poll::ERR;
        }
        mask
    }

    fn watches(&mut self, epoll: i32) -> Result<&mut Vec<Watch>, Stop> {
        match self.files.get_mut(&epoll).map(|d| &mut d.file) {
            Some(File::Epoll(watches)) => Ok(watches),
            Some(_) => Err(Stop::Errno(errno::EINVAL)),
            None => Err(Stop::Errno(errno::EBADF)),
        }
    }

    /// epoll_ctl(2): 1 adds, 2 deletes, 3 modifies.
    pub fn epoll_ctl(
        &mut self,
        now: Us,
        epoll: i32,
        operation: i32,
        fd: i32,
        events: u32,
        data: u64,
    ) -> Result<i64, Stop> {
        if !self.files.contains_key(&fd) {
            return Err(Stop::Errno(errno::EBADF));
        }
        let ready = self.poll_mask(now, fd) & (events | poll::ERR | poll::HUP) != 0;
        let watches = self.watches(epoll)?;
        let known = watches.iter().position(|w| w.fd == fd);
        let watch = Watch { fd, events, data, ready };
        match (operation, known) {
            (1, None) => watches.push(watch),
            (1, Some(_)) => return Err(Stop::Errno(errno::EEXIST)),
            (2, Some(at)) => {
                watches.remove(at);
            }
            (3, Some(at)) => watches[at] = watch,
            (2 | 3, None) => return Err(Stop::Errno(errno::ENOENT)),
            _ => return Err(Stop::Errno(errno::EINVAL)),
        }
        Ok(0)
    }

    /// epoll_wait(2), once: events and data of what is ready.
    pub fn epoll_wait(&mut self, now: Us, epoll: i32, max: usize) -> Result<Vec<(u32, u64)>, Stop> {
        let watched: Vec<Watch> = self.watches(epoll)?.clone();
        let mut found = Vec::new();
        for (at, watch) in watched.iter().enumerate() {
            if !watch.ready || found.len() >= max {
                continue;
            }
            let asked = watch.events & !(EDGE | ONCE) | poll::ERR | poll::HUP;
            let mask = self.poll_mask(now, watch.fd) & asked;
            let asleep = watch.events & !(EDGE | ONCE) == 0 && watch.events & ONCE != 0;
            let known = &mut self.watches(epoll)?[at];
            if mask == 0 || asleep {
                known.ready = false;
                continue;
            }
            found.push((mask, watch.data));
            if watch.events & ONCE != 0 {
                known.events &= EDGE | ONCE;
                known.ready = false;
            } else if watch.events & EDGE != 0 {
                known.ready = false;
            }
        }
        Ok(found)
    }

    /// A descriptor is closed: nothing watches it any more.
    pub fn forget_watches(&mut self, fd: i32) {
        for descriptor in self.files.values_mut() {
            if let File::Epoll(watches) = &mut descriptor.file {
                watches.retain(|w| w.fd != fd);
            }
        }
    }
}

//! A host behind descriptors of the process, its virtual clock, and threads that sleep in calls.
//!
//! The clock moves in three places alone: in `usleep`, by a microsecond in each `gettimeofday`, and to the host's
//! next timer where a program waits for a packet. It stands still while a thread that slept in a call has not
//! read it: a thread that something happened to tries its call again, and what it returned is late by nothing.
//! The thread that made the door is the one that moves the clock; a call that it sleeps in moves it, too.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::IntoRawFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use acklab_host::calls::Stop;
use acklab_host::errno;
use acklab_host::segment::{Place, Segment};
use acklab_host::settings::{SECOND, Us};
use acklab_host::socket::Family;
use acklab_packetdrill::wire::{self, Content, Ends};
use acklab_packetdrill::world::{Virtual, World as _};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::setup::Setup;

/// What the clock shows first: that of time stamps is not at 0 then.
const START: Us = 1000 * SECOND;
/// How long the clock stands still, in real time, for a thread that never reads it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of the largest IP packet, without the largest headers of TCP and IPv6.
const LARGEST: u32 = 65_535 - 60 - 40;

/// A result of a call: a number or `errno`.
pub(crate) type Outcome = Result<i64, i32>;

/// What stands behind a descriptor of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    /// The host's descriptor.
    pub(crate) fd: i32,
    pub(crate) family: Family,
    /// SO_RCVTIMEO and SO_SNDTIMEO.
    pub(crate) patience: [Option<Us>; 2],
}

/// A thread that sleeps in a call.
#[derive(Debug)]
struct Sleeper {
    thread: ThreadId,
    until: Option<Us>,
    /// Something happened: it has to try again.
    roused: bool,
}

/// What one thread at a time works on.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) world: Virtual,
    pub(crate) now: Us,
    pub(crate) setup: Setup,
    /// By descriptors of the process.
    pub(crate) files: BTreeMap<i32, Open>,
    /// Addresses; the host calls the one at an index by the next number.
    addresses: Vec<IpAddr>,
    sleepers: Vec<Sleeper>,
    /// Threads whose call slept and which have not read the clock since.
    behind: Vec<ThreadId>,
    /// The rest of a burst that was larger than the reader's room.
    rest: Option<(Us, Segment)>,
}

/// The door.
#[derive(Debug)]
pub(crate) struct Door {
    state: Mutex<State>,
    changed: Condvar,
    owner: ThreadId,
}

type Held<'a> = MutexGuard<'a, State>;

impl Door {
    pub(crate) fn new(setup: Setup) -> Result<Self, String> {
        let mut world = if setup.is_late { Virtual::late() } else { Virtual::new() };
        setup.apply(&mut world)?;
        world.begin(START)?;
        let state = State {
            world,
            now: START,
            setup,
            files: BTreeMap::new(),
            addresses: Vec::new(),
            sleepers: Vec::new(),
            behind: Vec::new(),
            rest: None,
        };
        let owner = thread::current().id();
        Ok(Self { state: Mutex::new(state), changed: Condvar::new(), owner })
    }

    fn hold(&self) -> Held<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every thread that something happened to has tried again and read the clock.
    fn settle<'a>(&'a self, mut state: Held<'a>) -> Held<'a> {
        let me = thread::current().id();
        while state.is_unsettled(me) {
            let (next, waited) =
                self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            state = next;
            if waited.timed_out() {
                state.behind.clear();
            }
        }
        state
    }

    /// The state, for a call that does not sleep.
    pub(crate) fn at_once<T>(&self, call: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.hold();
        let me = thread::current().id();
        state.behind.retain(|&thread| thread != me);
        state = self.settle(state);
        let result = call(&mut state);
        self.rouse(&mut state);
        result
    }

    /// Something happened: who sleeps tries again.
    fn rouse(&self, state: &mut State) {
        for sleeper in &mut state.sleepers {
            sleeper.roused = true;
        }
        self.changed.notify_all();
    }

    /// Makes a call that sleeps where it has to wait, for at most `patience`; then it gives `late`.
    pub(crate) fn call<T>(
        &self,
        patience: impl FnOnce(&State) -> Option<Us>,
        late: Result<T, i32>,
        mut attempt: impl FnMut(&mut State) -> Result<T, Stop>,
    ) -> Result<T, i32> {
        let me = thread::current().id();
        let mut state = self.hold();
        state.behind.retain(|&thread| thread != me);
        state = self.settle(state);
        let until = patience(&state).map(|us| state.now.saturating_add(us));
        loop {
            match attempt(&mut state) {
                Ok(value) => return self.leave(state, me, Ok(value)),
                Err(Stop::Errno(error)) => return self.leave(state, me, Err(error)),
                Err(Stop::Block) => {}
            }
            if until.is_some_and(|until| state.now >= until) {
                return self.leave(state, me, late);
            }
            if me == self.owner {
                let (next, moved) = self.pass(state, until);
                state = next;
                if !moved {
                    return self.leave(state, me, Err(DEADLOCK));
                }
            } else {
                state = self.sleep(state, me, until);
            }
        }
    }

    /// A call is over; others may go on because of what it did.
    fn leave<T>(&self, mut state: Held<'_>, me: ThreadId, result: T) -> T {
        let slept = state.sleepers.len();
        state.sleepers.retain(|sleeper| sleeper.thread != me);
        if state.sleepers.len() < slept {
            state.behind.push(me);
        }
        self.rouse(&mut state);
        result
    }

    fn sleep<'a>(&'a self, mut state: Held<'a>, me: ThreadId, until: Option<Us>) -> Held<'a> {
        match state.sleepers.iter_mut().find(|sleeper| sleeper.thread == me) {
            Some(sleeper) => sleeper.roused = false,
            None => state.sleepers.push(Sleeper { thread: me, until, roused: false }),
        }
        self.changed.notify_all();
        let sleeps = |state: &mut State| state.sleepers.iter().any(|s| s.thread == me && !s.roused);
        self.changed.wait_while(state, sleeps).unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass to the next thing that happens, at most to `until`; `false`: nothing ever will.
    fn pass<'a>(&'a self, mut state: Held<'a>, until: Option<Us>) -> (Held<'a>, bool) {
        let moved = state.step(until.unwrap_or(Us::MAX));
        if !moved && let Some(until) = until {
            state.now = until;
        }
        self.rouse(&mut state);
        (self.settle(state), moved || until.is_some())
    }

    /// Moves the clock to `target`, past everything that happens before.
    fn advance<'a>(&'a self, mut state: Held<'a>, target: Us) -> Held<'a> {
        while state.step(target) {
            self.rouse(&mut state);
            state = self.settle(state);
        }
        state.now = state.now.max(target);
        state
    }

    /// Whether a descriptor of the process is one of these.
    pub(crate) fn knows(&self, fd: i32) -> bool {
        self.hold().files.contains_key(&fd)
    }

    /// usleep(3).
    pub(crate) fn usleep(&self, us: Us) {
        let state = self.settle(self.hold());
        let target = state.now + us;
        drop(self.advance(state, target));
    }

    /// gettimeofday(2): microseconds; a thread whose call slept gets the time at which it ended.
    pub(crate) fn time(&self) -> Us {
        let me = thread::current().id();
        let mut state = self.hold();
        if state.behind.contains(&me) {
            state.behind.retain(|&thread| thread != me);
            self.changed.notify_all();
            return state.now;
        }
        state = self.settle(state);
        let target = state.now + 1;
        self.advance(state, target).now
    }

    /// The next packet that leaves, of at most `room` bytes, and when it left. `None`: none ever will.
    pub(crate) fn sniff(&self, room: usize) -> Option<(Us, Vec<u8>)> {
        let mut state = self.settle(self.hold());
        loop {
            if let Some(packet) = state.sent(room) {
                return Some(packet);
            }
            let (next, moved) = self.pass(state, None);
            state = next;
            if !moved {
                return None;
            }
        }
    }

    /// A packet for the host; what is neither TCP nor ICMP about it changes nothing.
    pub(crate) fn inject(&self, packet: &[u8]) -> Outcome {
        self.at_once(|state| state.inject(packet)).map_err(|text| {
            eprintln!("acklab-door: {text}");
            errno::EIO
        })
    }
}

/// `EDEADLK`: a call sleeps for ever.
const DEADLOCK: i32 = 35;

impl State {
    fn is_unsettled(&self, me: ThreadId) -> bool {
        self.behind.iter().any(|&thread| thread != me)
            || self.sleepers.iter().any(|s| s.roused && s.thread != me)
    }

    /// Moves the clock to what happens next before `limit`: a timer of the host, or a call that gives up.
    fn step(&mut self, limit: Us) -> bool {
        let tired = self.sleepers.iter().filter_map(|s| s.until).filter(|&u| u > self.now).min();
        let next = tired.map_or(limit, |tired| tired.min(limit));
        match self.world.wait(self.now, next) {
            Ok(Some(at)) => self.now = self.now.max(at),
            Ok(None) if next < limit => self.now = next,
            Ok(None) => return false,
            Err(text) => {
                eprintln!("acklab-door: {text}");
                return false;
            }
        }
        true
    }

    pub(crate) const fn now(&self) -> Us {
        self.now
    }

    pub(crate) const fn world(&mut self) -> &mut Virtual {
        &mut self.world
    }

    /// SO_RCVTIMEO (0) or SO_SNDTIMEO (1) of a descriptor.
    pub(crate) fn be_patient(&mut self, real: i32, which: usize, patience: Option<Us>) {
        if let Some(known) = self.files.get_mut(&real) {
            known.patience[which] = patience;
        }
    }

    /// The host's number of an address; any address is 0.
    pub(crate) fn number(&mut self, address: IpAddr) -> u32 {
        if address.is_unspecified() {
            return 0;
        }
        let known = self.addresses.iter().position(|&known| known == address);
        let index = known.unwrap_or_else(|| {
            self.addresses.push(address);
            self.addresses.len() - 1
        });
        index as u32 + 1
    }

    /// The address of a number.
    pub(crate) fn address(&self, number: u32) -> Option<IpAddr> {
        self.addresses.get((number as usize).checked_sub(1)?).copied()
    }

    /// Where connections to `remote` come from.
    pub(crate) fn local_for(&mut self, remote: Place) -> Place {
        let v6 = self.address(remote.host).is_some_and(|address| address.is_ipv6());
        let local = self.setup.local(v6);
        Place { host: self.number(local), port: 0 }
    }

    /// Headers are of the version of `address` from now on.
    pub(crate) fn speak(&mut self, address: IpAddr) {
        if !address.is_unspecified() {
            self.world.settings().1.ip_header = if address.is_ipv6() { 40 } else { 20 };
        }
    }

    /// A descriptor of the process for one of the host's.
    pub(crate) fn publish(&mut self, fd: i32, family: Family) -> Outcome {
        let real = EventFd::from_flags(EfdFlags::EFD_CLOEXEC).map_err(|errno| errno as i32)?;
        let real = std::os::fd::OwnedFd::from(real).into_raw_fd();
        self.files.insert(real, Open { fd, family, patience: [None; 2] });
        Ok(i64::from(real))
    }

    pub(crate) fn open(&self, real: i32) -> Result<Open, Stop> {
        self.files.get(&real).copied().ok_or(Stop::Errno(errno::EBADF))
    }

    fn inject(&mut self, packet: &[u8]) -> Result<i64, String> {
        let Some(wire::Packet { ends, content }) = wire::read(packet, 0) else { return Ok(0) };
        self.speak(ends.to);
        let (from, to) = (self.number(ends.from), self.number(ends.to));
        let now = self.now;
        match content {
            Content::Segment(mut segment) => {
                (segment.src.host, segment.dst.host) = (from, to);
                self.world.receive(now, &segment)?;
            }
            // The door has sockets of TCP alone.
            Content::Datagram(_) => {}
            Content::Icmp(mut about) => {
                (about.local.host, about.remote.host) = (from, to);
                self.world.receive_icmp(now, &about)?;
            }
        }
        Ok(0)
    }

    /// The next packet that left, at most `room` bytes long where it is a burst.
    fn sent(&mut self, room: usize) -> Option<(Us, Vec<u8>)> {
        let (at, mut segment) = self.rest.take().or_else(|| self.world.sent())?;
        let any = |v6| {
            if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
        };
        let v6 = self.world.settings().1.ip_header == 40;
        let ends = Ends {
            from: self.address(segment.src.host).unwrap_or_else(|| self.setup.local(v6)),
            to: self.address(segment.dst.host).unwrap_or_else(|| any(v6)),
        };
        let headers = segment.header() + if v6 { 40 } else { 20 };
        let most = (room.min(65_535) as u32).saturating_sub(headers).min(LARGEST);
        let most = if self.setup.is_cut { segment.gso } else { most };
        if segment.gso > 0 && segment.len > most {
            let keep = (most / segment.gso).max(1) * segment.gso;
            if keep < segment.len {
                let rest = segment.split(keep);
                self.rest = Some((at, rest));
            }
        }
        Some((at, wire::packet(&segment, ends)))
    }
}

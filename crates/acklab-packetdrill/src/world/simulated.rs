//! The simulated host as a world, in virtual time: its timers exact, or late as a kernel's.

use super::{Change, IcmpAbout, IcmpMessage, Lingering, Quoted, Read, World};
use crate::cookie::{USUAL_KEY, cookie};
use acklab_host::calls::{Called, ReadFlags, Stop};
use acklab_host::datagram::{Datagram, PathError};
use acklab_host::errno;
use acklab_host::errqueue::Entry;
use acklab_host::host::Host;
use acklab_host::info::socket_info;
use acklab_host::mib::Mib;
use acklab_host::segment::{Place, Segment};
use acklab_host::settings::{MS, Route, SECOND, Sysctls, Us};
use acklab_host::socket::{Family, File};
use acklab_host::write::WriteFlags;

/// POLLERR, POLLHUP and POLLNVAL are told without being asked for.
const ALWAYS: u32 = 0x8 | 0x10 | 0x20;

/// The simulated host, in virtual time.
#[derive(Debug)]
pub struct Virtual {
    host: Host,
    /// The socket that the script made or accepted last.
    last: Option<usize>,
    /// The script was told its cookie of fast open.
    told_cookie: bool,
    /// Timers are late as a kernel's: the next one, and when it fires instead.
    late: Option<(Us, Us)>,
    lateness: Lateness,
}

/// How late timers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lateness {
    None,
    /// As late as a kernel's may be: by an eighth of their time and two jiffies of 4 ms.
    Most,
    /// As a kernel's timer wheel has them whose jiffies of 4 ms begin so long before the script's times do.
    Wheel(Us),
}

impl Lateness {
    /// When a timer fires that is set now for `exact`.
    fn fires(self, now: Us, exact: Us) -> Us {
        const JIFFY: Us = 4 * MS;
        let wait = exact.saturating_sub(now);
        match self {
            Self::None => exact,
            Self::Most => exact + wait / 8 + 2 * JIFFY,
            Self::Wheel(phase) => {
                let jiffies = wait.div_ceil(JIFFY);
                // Slots of one jiffy for the next 63, of eight for the next 511, and so on; the slot after is taken.
                let level = (0..8).find(|level| jiffies < 63 << (3 * level)).unwrap_or(8);
                let due = (now + phase) / JIFFY + jiffies;
                let slot = (due + (1 << (3 * level))) >> (3 * level);
                ((slot << (3 * level)) * JIFFY).saturating_sub(phase)
            }
        }
    }
}

impl Virtual {
    /// A host without sockets.
    pub fn new() -> Self {
        Self {
            host: Host::new(0x1234_5678),
            last: None,
            told_cookie: false,
            late: None,
            lateness: Lateness::None,
        }
    }

    /// The same with timers as late as a kernel's may be: by an eighth of their time and two jiffies of 4 ms.
    pub fn late() -> Self {
        Self { lateness: Lateness::Most, ..Self::new() }
    }

    /// The same with timers that fire at jiffies of 4 ms, as a kernel's wheel has them; its jiffies begin `phase`
    /// microseconds before the script's times.
    pub fn ticking(phase: Us) -> Self {
        Self { lateness: Lateness::Wheel(phase), ..Self::new() }
    }

    /// When the host acts next by itself.
    fn next(&mut self, now: Us) -> Option<Us> {
        let exact = self.host.deadline()?;
        // Shorter waits are of timers that are exact.
        let is_short = exact <= now + MS + MS / 5;
        if self.lateness == Lateness::None
            || is_short && self.late.is_none_or(|(known, _)| known != exact)
        {
            return Some(exact);
        }
        match self.late {
            Some((known, late)) if known == exact => Some(late),
            _ => {
                let late = self.lateness.fires(now, exact);
                self.late = Some((exact, late));
                Some(late)
            }
        }
    }

    /// The cookie of fast open that the host's key makes.
    fn make_cookie(&mut self) {
        if !self.told_cookie {
            let key = self.host.sysctls.fastopen_key().unwrap_or(USUAL_KEY);
            self.host.fastopen_cookie = cookie(key, self.host.route.ip_header == 40);
        }
    }

    /// The other end of a descriptor's connection.
    pub fn peer(&self, fd: i32) -> Option<Place> {
        self.host.index(fd).ok().map(|index| self.host.sockets[index].tcp.remote)
    }

    /// TCP_INFO and SO_MEMINFO of a descriptor: names and values.
    pub fn info_of(&self, now: Us, fd: i32) -> Result<Vec<(&'static str, u64)>, Stop> {
        let index = self.host.index(fd)?;
        Ok(socket_info(&self.host.sockets[index], &self.host.env(now)))
    }

    fn follow(&mut self, done: Called) -> Called {
        if let Ok(fd) = done
            && let Ok(index) = self.host.index(fd as i32)
        {
            self.last = Some(index);
        }
        done
    }
}

impl Default for Virtual {
    fn default() -> Self {
        Self::new()
    }
}

impl World for Virtual {
    fn settings(&mut self) -> (&mut Sysctls, &mut Route) {
        (&mut self.host.sysctls, &mut self.host.route)
    }

    fn begin(&mut self, _start: Us) -> Result<(), String> {
        self.make_cookie();
        Ok(())
    }

    fn change(&mut self, changes: &[Change]) -> Result<(), String> {
        self.make_cookie();
        if changes.contains(&Change::Forget) {
            self.host.fastopen_known.clear();
        }
        Ok(())
    }

    fn set_cookie(&mut self, cookie: Vec<u8>) {
        self.told_cookie = true;
        self.host.fastopen_cookie = cookie;
    }

    fn wait(&mut self, now: Us, limit: Us) -> Result<Option<Us>, String> {
        let Some(next) = self.next(now).filter(|&next| next < limit) else {
            return Ok(None);
        };
        let next = next.max(now);
        // What is due at an instant may make more due at once, but not for ever.
        for _ in 0..64 {
            self.host.advance(next);
            if self.host.deadline().is_none_or(|due| due > next) {
                return Ok(Some(next));
            }
        }
        Err("the host's timers do not come to rest".to_owned())
    }

    fn due(&self) -> Option<Us> {
        self.host.deadline()
    }

    fn sent(&mut self) -> Option<(Us, Segment)> {
        self.host.wire.pop_front()
    }

    fn receive(&mut self, now: Us, segment: &Segment) -> Result<(), String> {
        self.host.receive(now, segment);
        Ok(())
    }

    fn sent_datagram(&mut self) -> Option<(Us, Datagram)> {
        self.host.datagrams_out.pop_front()
    }

    fn receive_datagram(&mut self, _now: Us, datagram: &Datagram) -> Result<(), String> {
        if self.host.receive_datagram(*datagram) {
            return Ok(());
        }
        Err("no socket takes this datagram: the host would answer by ICMP".to_owned())
    }

    fn receive_icmp(&mut self, now: Us, about: &IcmpAbout) -> Result<(), String> {
        let IcmpAbout { local, remote, quoted, message } = *about;
        match (quoted, message) {
            (Quoted::Segment(seq), IcmpMessage::TooBig(mtu)) => {
                self.host.fragmentation_needed(now, local, remote, seq, mtu);
            }
            (Quoted::Segment(seq), IcmpMessage::Unreachable { errno, hard, kind, code }) => {
                let error = PathError { errno, hard, kind, code, mtu: 0 };
                self.host.unreachable(now, (local, remote), seq, error);
            }
            (Quoted::Datagram, IcmpMessage::TooBig(mtu)) => {
                let (kind, code) = if self.host.route.ip_header == 40 { (2, 0) } else { (3, 4) };
                let error = PathError { errno: errno::EMSGSIZE, hard: true, kind, code, mtu };
                self.host.datagram_failed(local, remote, error);
            }
            (Quoted::Datagram, IcmpMessage::Unreachable { errno, hard, kind, code }) => {
                let error = PathError { errno, hard, kind, code, mtu: 0 };
                self.host.datagram_failed(local, remote, error);
            }
            (_, IcmpMessage::Ignored(..)) => {}
        }
        Ok(())
    }

    fn counters(&mut self) -> Vec<(&'static str, u64)> {
        Mib::ALL.map(|mib| (mib.name(), self.host.mibs.of(mib))).to_vec()
    }

    fn info(&mut self, now: Us, ends: Option<(Place, Place)>) -> Vec<(&'static str, u64)> {
        let sockets = &self.host.sockets;
        let over = |(local, remote): (Place, Place)| {
            sockets.iter().rposition(|s| s.tcp.remote == remote && s.tcp.local.port == local.port)
        };
        let index = ends
            .and_then(|(local, remote)| self.host.connection(local, remote))
            .or_else(|| ends.and_then(over))
            // What nobody accepted has no descriptor.
            .filter(|&index| sockets[index].parent.is_none())
            .or(self.last);
        let env = self.host.env(now);
        index.map_or_else(Vec::new, |index| socket_info(&sockets[index], &env))
    }

    fn socket(&mut self, now: Us, family: Family, nonblocking: bool) -> Called {
        let made = self.host.socket(now, family, nonblocking);
        self.follow(made)
    }

    fn datagram_socket(&mut self, _family: Family, nonblocking: bool) -> Called {
        self.host.datagram_socket(nonblocking)
    }

    fn send_to(&mut self, now: Us, fd: i32, ends: (Place, Option<Place>), bytes: u32) -> Called {
        self.host.send_to(now, fd, ends, bytes)
    }

    fn bind(&mut self, fd: i32, place: Place) -> Called {
        self.host.bind(fd, place)
    }

    fn listen(&mut self, fd: i32, backlog: i32) -> Called {
        self.host.listen(fd, backlog)
    }

    fn accept(&mut self, fd: i32, flags: i32) -> Called {
        let made = self.host.accept(fd, flags);
        self.follow(made)
    }

    fn connect(&mut self, now: Us, fd: i32, local: Place, remote: Place) -> Called {
        self.host.connect(now, fd, local, remote)
    }

    fn disconnect(&mut self, now: Us, fd: i32) -> Called {
        self.host.disconnect(now, fd)
    }

    fn shutdown(&mut self, now: Us, fd: i32, how: i32) -> Called {
        self.host.shutdown(now, fd, how)
    }

    fn close(&mut self, now: Us, fd: i32) -> Result<Option<Lingering>, Stop> {
        let lingers = self.host.index(fd).ok().and_then(|index| {
            let linger = self.host.sockets[index].tcp.opt.linger.filter(|&linger| linger > 0)?;
            let lingers = self.host.is_blocking(fd) && self.host.sockets[index].descriptors == 1;
            lingers.then_some(Lingering { ticket: index, until: now + linger })
        });
        self.host.close(now, fd)?;
        Ok(lingers)
    }

    fn is_closed(&mut self, ticket: usize) -> bool {
        self.host.is_closed(ticket)
    }

    fn dup(&mut self, fd: i32) -> Called {
        self.host.dup(fd)
    }

    fn pipe(&mut self) -> Result<(i32, i32), Stop> {
        self.host.pipe()
    }

    fn open(&mut self) -> Called {
        self.host.open(1 << 40)
    }

    fn is_socket(&self, fd: i32) -> bool {
        let file = self.host.files.get(&fd).map(|descriptor| &descriptor.file);
        matches!(file, Some(File::Socket(_) | File::Datagrams(_)))
    }

    fn is_blocking(&self, fd: i32) -> bool {
        self.host.is_blocking(fd)
    }

    fn flags(&self, fd: i32) -> Option<i32> {
        self.host.files.get(&fd).map(|descriptor| descriptor.flags)
    }

    fn set_flags(&mut self, fd: i32, flags: i32) {
        if let Some(descriptor) = self.host.files.get_mut(&fd) {
            descriptor.flags = flags;
        }
    }

    fn read(&mut self, now: Us, fd: i32, max: u32, flags: ReadFlags) -> Result<Read, Stop> {
        let bytes = self.host.read(now, fd, max, flags)?;
        let inq = self.host.index(fd).ok().and_then(|index| {
            let socket = &self.host.sockets[index];
            let unread = i64::from(socket.tcp.unread());
            // The FIN counts as something to read.
            let unread = if unread == 0 && socket.tcp.rcv.fin { 1 } else { unread };
            socket.inq.then_some(unread)
        });
        Ok(Read { bytes, inq })
    }

    fn read_error(&mut self, fd: i32) -> Result<Entry, Stop> {
        self.host.read_error(fd)
    }

    fn write(
        &mut self,
        now: Us,
        fd: i32,
        bytes: u32,
        flags: WriteFlags<'_>,
        dont_wait: bool,
    ) -> Called {
        let copyless = self.host.index(fd).is_ok_and(|i| self.host.sockets[i].zero_copy);
        let flags = WriteFlags { zero_copy: flags.zero_copy && copyless, ..flags };
        self.host.write(now, fd, bytes, flags, dont_wait)
    }

    fn write_opening(
        &mut self,
        now: Us,
        fd: i32,
        ends: (Place, Place),
        bytes: u32,
        flags: WriteFlags<'_>,
    ) -> Called {
        self.host.write_opening(now, fd, ends, bytes, flags)
    }

    fn set_option(&mut self, now: Us, fd: i32, level: i32, name: i32, value: i64) -> Called {
        self.host.set_option(now, fd, level, name, value)
    }

    fn set_linger(&mut self, fd: i32, on: bool, seconds: i64) -> Called {
        self.host.set_linger(fd, on, seconds)
    }

    fn set_congestion(&mut self, now: Us, fd: i32, name: &str) -> Called {
        self.host.set_congestion(now, fd, name)
    }

    fn option(&mut self, now: Us, fd: i32, level: i32, name: i32) -> Called {
        self.host.option(now, fd, level, name)
    }

    fn congestion(&mut self, fd: i32) -> Result<String, Stop> {
        let index = self.host.index(fd)?;
        Ok(self.host.sockets[index].tcp.cc.name().to_owned())
    }

    fn linger(&mut self, fd: i32) -> Result<(i64, i64), Stop> {
        let index = self.host.index(fd)?;
        let linger = self.host.sockets[index].tcp.opt.linger;
        Ok((i64::from(linger.is_some()), linger.map_or(0, |us| (us / SECOND) as i64)))
    }

    fn queued(&mut self, fd: i32) -> Result<[i64; 3], Stop> {
        self.host.queued(fd)
    }

    fn poll(&mut self, now: Us, fd: i32, asked: u32) -> u32 {
        self.host.poll_mask(now, fd) & (asked | ALWAYS)
    }

    fn epoll_create(&mut self) -> Called {
        self.host.epoll_create()
    }

    fn epoll_ctl(
        &mut self,
        now: Us,
        epoll: i32,
        operation: i32,
        fd: i32,
        events: u32,
        data: u64,
    ) -> Called {
        self.host.epoll_ctl(now, epoll, operation, fd, events, data)
    }

    fn epoll_wait(&mut self, now: Us, epoll: i32, max: usize) -> Result<Vec<(u32, u64)>, Stop> {
        self.host.epoll_wait(now, epoll, max)
    }
}

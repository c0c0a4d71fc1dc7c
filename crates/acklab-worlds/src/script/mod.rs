//! Scripts in the packetdrill language on the running kernel: the interpreter of [`acklab_packetdrill`], real socket
//! calls, and packets through a TUN device in a network namespace of its own, in real time.
//!
//! Each script has a thread, a namespace and a device, which end with it. Sockets never block: a call that would
//! wait is tried again when a packet left or a short time passed, as the interpreter does in virtual time. Commands
//! of scripts are not given to a shell: system controls are written below `/proc/sys/net`, and `ip`, `tc` and
//! `ethtool` run with the arguments that were understood. The congestion control is set socket by socket.

mod calls;
mod compare;
mod ends;
mod info;
mod lab;

pub use compare::{Beside, compare};

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use acklab_host::calls::{Called, ReadFlags, Stop};
use acklab_host::datagram::Datagram;
use acklab_host::errqueue::Entry;
use acklab_host::segment::{Place, Segment};
use acklab_host::settings::{Route, SECOND, Sysctls, Us};
use acklab_host::socket::{Family, O_NONBLOCK};
use acklab_host::write::WriteFlags;
use acklab_net::schedule_first_in_first_out;
use acklab_packetdrill::run::{Outcome, Settings, Verdict, run_in};
use acklab_packetdrill::wire::{self, Content};
use acklab_packetdrill::world::{Change, IcmpAbout, Lingering, Read, World};
use lab::{DEVICE, Lab, clocks, program, write_control};
use nix::errno::Errno;
use nix::libc;

/// How long a call that waits is left alone, nanoseconds.
const RETRY: u64 = 200_000;
/// Of real-time threads; the emulator's are above.
const PRIORITY: i32 = 10;
/// Largest burst and its virtio header.
const LARGEST: usize = 10 + 65_536;

/// Runs a script's text on the running kernel; needs root.
pub fn run(text: &str, folder: &Path, settings: &Settings) -> Outcome {
    thread::scope(|scope| {
        let one = scope.spawn(|| {
            // Beside other work, events would be late; where it is not permitted, they are.
            let _ = schedule_first_in_first_out(PRIORITY);
            run_in(&mut Kernel::new(), text, folder, settings)
        });
        one.join().unwrap_or_else(|_| Outcome {
            verdict: Verdict::Fail,
            line: 0,
            message: "acklab itself failed on this script: please report it".to_owned(),
            timeline: Vec::new(),
            seen: Vec::new(),
            counters: Vec::new(),
        })
    })
}

/// A descriptor of the script's.
struct Open {
    fd: OwnedFd,
    /// F_GETFL as the script set it; the descriptor itself never blocks.
    flags: i32,
    is_socket: bool,
}

/// The running kernel in a namespace of the calling thread's own.
struct Kernel {
    sysctls: Sysctls,
    route: Route,
    lab: Option<Lab>,
    files: BTreeMap<i32, Open>,
    /// The last socket that was made or accepted.
    last: i32,
    queue: VecDeque<(Us, Segment)>,
    datagrams: VecDeque<(Us, Datagram)>,
    closing: Vec<Option<JoinHandle<()>>>,
    /// A call waits.
    waits: bool,
    buffer: Vec<u8>,
}

fn stop(errno: Errno) -> Stop {
    Stop::Errno(errno as i32)
}

impl Kernel {
    fn new() -> Self {
        Self {
            sysctls: Sysctls::default(),
            route: Route::default(),
            lab: None,
            files: BTreeMap::new(),
            last: -1,
            queue: VecDeque::new(),
            datagrams: VecDeque::new(),
            closing: Vec::new(),
            waits: false,
            buffer: vec![0; LARGEST],
        }
    }

    const fn v6(&self) -> bool {
        self.route.ip_header == 40
    }

    fn now(&self) -> Us {
        let Some(lab) = &self.lab else { return 0 };
        lab.start + clocks().0.duration_since(lab.began).as_micros() as Us
    }

    fn file(&self, fd: i32) -> Result<&Open, Stop> {
        self.files.get(&fd).ok_or_else(|| stop(Errno::EBADF))
    }

    fn keep(&mut self, fd: OwnedFd, flags: i32, is_socket: bool) -> i64 {
        let number = fd.as_raw_fd();
        self.files.insert(number, Open { fd, flags, is_socket });
        if is_socket {
            self.last = number;
        }
        i64::from(number)
    }

    /// A call that fails for now waits where its descriptor blocks.
    fn may_wait<T>(&mut self, fd: i32, dont_wait: bool, done: Result<T, Errno>) -> Result<T, Stop> {
        match done {
            Ok(value) => Ok(value),
            Err(Errno::EAGAIN | Errno::EALREADY | Errno::EINPROGRESS)
                if self.is_blocking(fd) && !dont_wait =>
            {
                self.waits = true;
                Err(Stop::Block)
            }
            Err(errno) => Err(stop(errno)),
        }
    }

    /// Takes what left the kernel.
    fn drain(&mut self) -> Result<(), String> {
        loop {
            let now = self.now();
            let Some(lab) = &mut self.lab else { return Ok(()) };
            let length = match lab.device.read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(format!("read from {DEVICE}: {error}")),
            };
            if length <= 10 {
                continue;
            }
            let burst = self.buffer[1] != 0;
            let gso = u16::from_ne_bytes([self.buffer[4], self.buffer[5]]);
            let gso = if burst { u32::from(gso) } else { 0 };
            match ends::outward(&self.buffer[10..length], gso) {
                Some(Content::Segment(segment)) => self.queue.push_back((now, segment)),
                Some(Content::Datagram(datagram)) => self.datagrams.push_back((now, datagram)),
                _ => {}
            }
        }
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), String> {
        let Some(lab) = &mut self.lab else { return Err("the world did not begin".to_owned()) };
        let mut framed = vec![0; 10];
        framed.extend(packet);
        lab.device.write_all(&framed).map_err(|error| format!("write to {DEVICE}: {error}"))
    }

    fn number(&self, fd: i32, level: i32, name: i32) -> Called {
        let value = calls::option(&self.file(fd)?.fd, level, name, 8).map_err(stop)?;
        let mut bytes = [0; 8];
        bytes[..value.len()].copy_from_slice(&value);
        Ok(match value.len() {
            1 => i64::from(value[0]),
            4 => i64::from(i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
            _ => i64::from_ne_bytes(bytes),
        })
    }

    /// The descriptor of a connection to `remote`, or else the last socket.
    fn subject(&self, remote: Option<Place>) -> Option<&Open> {
        let connected = self.files.values().find(|open| {
            open.is_socket && remote.is_some_and(|r| calls::peer_port(&open.fd) == Some(r.port))
        });
        connected.or_else(|| self.files.get(&self.last))
    }

    /// A time stamp of the kernel's clock on the script's.
    fn stamp(&self, content: &[u8]) -> Option<Us> {
        let part = |at: usize| content.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
        let (seconds, nanos) = (part(0)?, part(8)?);
        let lab = self.lab.as_ref()?;
        let since_1970 = std::time::Duration::new(seconds, nanos as u32);
        let since = (SystemTime::UNIX_EPOCH + since_1970).duration_since(lab.began_at).ok()?;
        Some(lab.start + since.as_micros() as Us)
    }
}

impl World for Kernel {
    fn settings(&mut self) -> (&mut Sysctls, &mut Route) {
        (&mut self.sysctls, &mut self.route)
    }

    fn begin(&mut self, start: Us) -> Result<(), String> {
        self.lab = Some(Lab::open(&self.route, &self.sysctls, start)?);
        Ok(())
    }

    fn change(&mut self, changes: &[Change]) -> Result<(), String> {
        for change in changes {
            match change {
                Change::Sysctl(name, value) => write_control(name, value)?,
                Change::Forget => program(&["ip", "tcp_metrics", "flush", "all"])?,
                Change::Program(words) => {
                    let words: Vec<&str> = words.iter().map(String::as_str).collect();
                    program(&words)?;
                }
            }
        }
        Ok(())
    }

    fn set_cookie(&mut self, _cookie: Vec<u8>) {}

    fn wait(&mut self, now: Us, limit: Us) -> Result<Option<Us>, String> {
        let waits = std::mem::take(&mut self.waits);
        loop {
            self.drain()?;
            if !self.queue.is_empty() || !self.datagrams.is_empty() {
                return Ok(Some(self.now()));
            }
            let real = self.now();
            if real >= limit {
                return Ok(None);
            }
            let left = (limit - real) * 1000;
            let Some(lab) = &self.lab else { return Ok(None) };
            let device = lab.device.as_raw_fd();
            let nanos = if waits { left.min(RETRY) } else { left };
            calls::poll(&[(device, libc::POLLIN)], nanos).map_err(|errno| errno.to_string())?;
            if waits {
                self.drain()?;
                let real = self.now().max(now);
                return Ok((real < limit).then_some(real));
            }
        }
    }

    /// The timer wheel keeps its timers to an eighth of their time (kernel/time/timer.c), and to a jiffy.
    fn slack(&self, waited: Us) -> Us {
        waited / 8 + 8_000
    }

    fn patience(&self) -> Us {
        20 * SECOND
    }

    fn due(&self) -> Option<Us> {
        None
    }

    fn sent(&mut self) -> Option<(Us, Segment)> {
        if self.queue.is_empty() {
            // A device that fails shows at the next wait.
            let _ = self.drain();
        }
        self.queue.pop_front()
    }

    fn receive(&mut self, _now: Us, segment: &Segment) -> Result<(), String> {
        self.inject(&wire::packet(segment, ends::inwards(self.v6())))
    }

    fn sent_datagram(&mut self) -> Option<(Us, Datagram)> {
        self.datagrams.pop_front()
    }

    fn receive_datagram(&mut self, _now: Us, datagram: &Datagram) -> Result<(), String> {
        self.inject(&wire::datagram(datagram, ends::inwards(self.v6())))
    }

    fn receive_icmp(&mut self, _now: Us, about: &IcmpAbout) -> Result<(), String> {
        self.inject(&wire::icmp(about, ends::inwards(self.v6())))
    }

    fn counters(&mut self) -> Vec<(&'static str, u64)> {
        if self.lab.is_some() { info::counters() } else { Vec::new() }
    }

    fn info(&mut self, _now: Us, ends: Option<(Place, Place)>) -> Vec<(&'static str, u64)> {
        let Some(open) = self.subject(ends.map(|(_, remote)| remote)) else { return Vec::new() };
        info::of(&open.fd)
    }

    fn socket(&mut self, _now: Us, family: Family, nonblocking: bool) -> Called {
        let domain = if family == Family::V6 { libc::AF_INET6 } else { libc::AF_INET };
        let fd = calls::socket(domain, libc::SOCK_STREAM).map_err(stop)?;
        let control = self.sysctls.congestion_control();
        calls::set_option(&fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, control.as_bytes())
            .map_err(stop)?;
        Ok(self.keep(fd, 2 | if nonblocking { O_NONBLOCK } else { 0 }, true))
    }

    fn datagram_socket(&mut self, family: Family, nonblocking: bool) -> Called {
        let domain = if family == Family::V6 { libc::AF_INET6 } else { libc::AF_INET };
        let fd = calls::socket(domain, libc::SOCK_DGRAM).map_err(stop)?;
        Ok(self.keep(fd, 2 | if nonblocking { O_NONBLOCK } else { 0 }, true))
    }

    fn send_to(&mut self, _now: Us, fd: i32, ends: (Place, Option<Place>), bytes: u32) -> Called {
        let data = vec![b'x'; bytes as usize];
        let fd = &self.file(fd)?.fd;
        let sent = match ends.1 {
            Some(to) => calls::send_to(fd, &data, &ends::address(to, self.v6()), 0),
            None => calls::send(fd, &[data], libc::MSG_NOSIGNAL, 0),
        };
        sent.map(|taken| taken as i64).map_err(stop)
    }

    fn bind(&mut self, fd: i32, place: Place) -> Called {
        let address = ends::address(place, self.v6());
        calls::bind(&self.file(fd)?.fd, &address).map_err(stop).map(|()| 0)
    }

    fn listen(&mut self, fd: i32, backlog: i32) -> Called {
        calls::listen(&self.file(fd)?.fd, backlog).map_err(stop).map(|()| 0)
    }

    fn accept(&mut self, fd: i32, flags: i32) -> Called {
        let done = calls::accept(&self.file(fd)?.fd);
        let made = self.may_wait(fd, false, done)?;
        Ok(self.keep(made, 2 | flags & O_NONBLOCK, true))
    }

    fn connect(&mut self, _now: Us, fd: i32, _local: Place, remote: Place) -> Called {
        let address = ends::address(remote, self.v6());
        let done = calls::connect(&self.file(fd)?.fd, &address);
        self.may_wait(fd, false, done).map(|()| 0)
    }

    fn disconnect(&mut self, _now: Us, fd: i32) -> Called {
        // AF_UNSPEC is 0.
        calls::connect(&self.file(fd)?.fd, &[0; 16]).map_err(stop).map(|()| 0)
    }

    fn shutdown(&mut self, _now: Us, fd: i32, how: i32) -> Called {
        calls::shutdown(&self.file(fd)?.fd, how).map_err(stop).map(|()| 0)
    }

    fn close(&mut self, now: Us, fd: i32) -> Result<Option<Lingering>, Stop> {
        let linger = if self.is_socket(fd) { self.linger(fd)? } else { (0, 0) };
        let open = self.files.remove(&fd).ok_or_else(|| stop(Errno::EBADF))?;
        if linger.0 == 0 || linger.1 == 0 {
            return Ok(None);
        }
        // close(2) waits whatever the flags of the descriptor are.
        self.closing.push(Some(thread::spawn(move || drop(open))));
        let until = now + linger.1 as Us * SECOND;
        Ok(Some(Lingering { ticket: self.closing.len() - 1, until }))
    }

    fn is_closed(&mut self, ticket: usize) -> bool {
        self.waits = true;
        let over = self.closing[ticket].as_ref().is_none_or(JoinHandle::is_finished);
        if over && let Some(thread) = self.closing[ticket].take() {
            // It only closed a file.
            let _ = thread.join();
        }
        over
    }

    fn dup(&mut self, fd: i32) -> Called {
        let open = self.file(fd)?;
        let (flags, is_socket) = (open.flags, open.is_socket);
        let copy = open.fd.try_clone().map_err(|_| stop(Errno::EMFILE))?;
        Ok(self.keep(copy, flags, is_socket))
    }

    fn pipe(&mut self) -> Result<(i32, i32), Stop> {
        let (reader, writer) = std::io::pipe().map_err(|_| stop(Errno::EMFILE))?;
        let reader = self.keep(reader.into(), 0, false);
        let writer = self.keep(writer.into(), 1, false);
        Ok((reader as i32, writer as i32))
    }

    fn open(&mut self) -> Called {
        let file = File::open("/dev/zero").map_err(|_| stop(Errno::ENOENT))?;
        Ok(self.keep(file.into(), 2, false))
    }

    fn is_socket(&self, fd: i32) -> bool {
        self.files.get(&fd).is_some_and(|open| open.is_socket)
    }

    fn is_blocking(&self, fd: i32) -> bool {
        self.files.get(&fd).is_some_and(|open| open.flags & O_NONBLOCK == 0)
    }

    fn flags(&self, fd: i32) -> Option<i32> {
        self.files.get(&fd).map(|open| open.flags)
    }

    fn set_flags(&mut self, fd: i32, flags: i32) {
        if let Some(open) = self.files.get_mut(&fd) {
            open.flags = flags;
        }
    }

    fn read(&mut self, _now: Us, fd: i32, max: u32, flags: ReadFlags) -> Result<Read, Stop> {
        let mut bits = 0;
        for (set, bit) in [
            (flags.urgent, libc::MSG_OOB),
            (flags.peek, libc::MSG_PEEK),
            (flags.truncate, libc::MSG_TRUNC),
            (flags.wait_all, libc::MSG_WAITALL),
        ] {
            bits |= if set { bit } else { 0 };
        }
        let mut buffer = vec![0; max as usize];
        let open = self.file(fd)?;
        if !open.is_socket {
            let done = nix::unistd::read(&open.fd, &mut buffer);
            let bytes = self.may_wait(fd, flags.dont_wait, done)? as i64;
            return Ok(Read { bytes, inq: None });
        }
        let done = calls::receive(&open.fd, &mut buffer, bits);
        let received = self.may_wait(fd, flags.dont_wait, done)?;
        let inq = received.controls.iter().find_map(|(level, kind, content)| {
            let number = <[u8; 4]>::try_from(content.as_slice()).ok()?;
            ((*level, *kind) == (6, 36)).then(|| i64::from(i32::from_ne_bytes(number)))
        });
        Ok(Read { bytes: received.bytes as i64, inq })
    }

    fn read_error(&mut self, fd: i32) -> Result<Entry, Stop> {
        let open = self.file(fd)?;
        let mut buffer = vec![0; 65_536];
        let received = calls::receive(&open.fd, &mut buffer, libc::MSG_ERRQUEUE).map_err(stop)?;
        Ok(info::entry(&received.controls, |content| self.stamp(content)))
    }

    fn write(
        &mut self,
        _now: Us,
        fd: i32,
        bytes: u32,
        flags: WriteFlags<'_>,
        dont_wait: bool,
    ) -> Called {
        use acklab_host::errqueue::stamp;
        let mut bits = libc::MSG_NOSIGNAL;
        for (set, bit) in [
            (flags.more, libc::MSG_MORE),
            (flags.eor, libc::MSG_EOR),
            (flags.urgent, libc::MSG_OOB),
            (flags.zero_copy, libc::MSG_ZEROCOPY),
        ] {
            bits |= if set { bit } else { 0 };
        }
        let mut stamps = 0;
        for (wish, bit) in [(stamp::SENT, 2), (stamp::SCHEDULED, 256), (stamp::ACKED, 512)] {
            stamps |= if flags.stamps & wish != 0 { bit } else { 0 };
        }
        let filled = |len: u32| vec![b'x'; len as usize];
        let open = self.file(fd)?;
        let done = if !open.is_socket {
            nix::unistd::write(&open.fd, &filled(bytes))
        } else if flags.buffers.is_empty() {
            calls::send(&open.fd, &[filled(bytes)], bits, stamps)
        } else {
            let buffers: Vec<_> = flags.buffers.iter().map(|len| filled(*len)).collect();
            calls::send(&open.fd, &buffers, bits, stamps)
        };
        self.may_wait(fd, dont_wait, done).map(|taken| taken as i64)
    }

    fn write_opening(
        &mut self,
        _now: Us,
        fd: i32,
        (_, remote): (Place, Place),
        bytes: u32,
        flags: WriteFlags<'_>,
    ) -> Called {
        let address = ends::address(remote, self.v6());
        let data = vec![b'x'; bytes as usize];
        let more = if flags.zero_copy { libc::MSG_ZEROCOPY } else { 0 };
        let flags = libc::MSG_FASTOPEN | more;
        let done = calls::send_to(&self.file(fd)?.fd, &data, &address, flags);
        done.map(|taken| taken as i64).map_err(stop)
    }

    fn set_option(&mut self, _now: Us, fd: i32, level: i32, name: i32, value: i64) -> Called {
        // SO_MAX_PACING_RATE takes 64 bits, the others are ints.
        let bytes = if (level, name) == (1, 47) {
            value.to_ne_bytes().to_vec()
        } else {
            (value as i32).to_ne_bytes().to_vec()
        };
        calls::set_option(&self.file(fd)?.fd, level, name, &bytes).map_err(stop).map(|()| 0)
    }

    fn set_linger(&mut self, fd: i32, on: bool, seconds: i64) -> Called {
        let mut bytes = i32::from(on).to_ne_bytes().to_vec();
        bytes.extend((seconds as i32).to_ne_bytes());
        calls::set_option(&self.file(fd)?.fd, 1, libc::SO_LINGER, &bytes).map_err(stop).map(|()| 0)
    }

    fn set_congestion(&mut self, _now: Us, fd: i32, name: &str) -> Called {
        let fd = &self.file(fd)?.fd;
        calls::set_option(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())
            .map_err(stop)
            .map(|()| 0)
    }

    fn option(&mut self, _now: Us, fd: i32, level: i32, name: i32) -> Called {
        self.number(fd, level, name)
    }

    fn congestion(&mut self, fd: i32) -> Result<String, Stop> {
        let fd = &self.file(fd)?.fd;
        let name = calls::option(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, 16).map_err(stop)?;
        let name: Vec<u8> = name.into_iter().take_while(|&b| b != 0).collect();
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    fn linger(&mut self, fd: i32) -> Result<(i64, i64), Stop> {
        let value = calls::option(&self.file(fd)?.fd, 1, libc::SO_LINGER, 8).map_err(stop)?;
        let part = |at: usize| {
            let bytes = value.get(at..at + 4).and_then(|b| b.try_into().ok());
            i64::from(bytes.map_or(0, i32::from_ne_bytes))
        };
        Ok((part(0), part(4)))
    }

    fn queued(&mut self, fd: i32) -> Result<[i64; 3], Stop> {
        let fd = &self.file(fd)?.fd;
        let ask = |command| calls::ioctl(fd, command).map(i64::from).map_err(stop);
        // UDP has no SIOCOUTQNSD.
        Ok([ask(0x541b)?, ask(0x5411)?, ask(0x894b).unwrap_or(0)])
    }

    fn poll(&mut self, _now: Us, fd: i32, asked: u32) -> u32 {
        self.waits = true;
        let Ok(open) = self.file(fd) else { return 0x20 };
        let found = calls::poll(&[(open.fd.as_raw_fd(), asked as i16)], 0);
        found.map_or(0x20, |found| u32::from(found[0] as u16))
    }

    fn epoll_create(&mut self) -> Called {
        let fd = calls::epoll_create().map_err(stop)?;
        Ok(self.keep(fd, 2, false))
    }

    fn epoll_ctl(
        &mut self,
        _now: Us,
        epoll: i32,
        operation: i32,
        fd: i32,
        events: u32,
        data: u64,
    ) -> Called {
        let (epoll, fd) = (&self.file(epoll)?.fd, &self.file(fd)?.fd);
        calls::epoll_ctl(epoll, operation, fd, events, data).map_err(stop).map(|()| 0)
    }

    fn epoll_wait(&mut self, _now: Us, epoll: i32, max: usize) -> Result<Vec<(u32, u64)>, Stop> {
        self.waits = true;
        calls::epoll_wait(&self.file(epoll)?.fd, max).map_err(stop)
    }
}

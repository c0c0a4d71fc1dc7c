//! Socket calls. Each tries once and says whether it has to wait; who waits tries again when something happened.

use crate::errno;
use crate::errqueue::Entry;
use crate::host::{Host, with};
use crate::segment::{Place, before};
use crate::settings::Us;
pub use crate::socket::ReadFlags;
use crate::socket::{Descriptor, Family, File, O_NONBLOCK, Socket};
use crate::tcp::{State, Tcp, UrgentByte};
use crate::write::WriteFlags;

/// Why a call has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It fails.
    Errno(i32),
    /// It waits.
    Block,
}

/// A call's result.
pub type Called = Result<i64, Stop>;

const fn fail<T>(error: i32) -> Result<T, Stop> {
    Err(Stop::Errno(error))
}

/// Descriptors that a process has at most (RLIMIT_NOFILE as it usually stands).
const FILES: i32 = 1024;

/// Making and ending.
impl Host {
    fn lowest_fd(&self) -> Result<i32, Stop> {
        (3..FILES).find(|fd| !self.files.contains_key(fd)).ok_or(Stop::Errno(errno::EMFILE))
    }

    pub(crate) fn open_file(&mut self, file: File, flags: i32) -> Result<i32, Stop> {
        let fd = self.lowest_fd()?;
        self.files.insert(fd, Descriptor { file, flags });
        Ok(fd)
    }

    /// socket(2) of TCP.
    pub fn socket(&mut self, now: Us, family: Family, nonblocking: bool) -> Called {
        self.lowest_fd()?;
        let tcp = Tcp::fresh(&self.env(now));
        let socket = Socket { tcp, family, descriptors: 1, ..Socket::default() };
        self.sockets.push(socket);
        let index = self.sockets.len() - 1;
        let flags = 2 | if nonblocking { O_NONBLOCK } else { 0 };
        self.open_file(File::Socket(index), flags).map(i64::from)
    }

    /// pipe(2): the reading end, then the writing end.
    pub fn pipe(&mut self) -> Result<(i32, i32), Stop> {
        let index = self.pipes.len();
        let reader = self.open_file(File::Pipe(index, false), 0)?;
        let writer = self.open_file(File::Pipe(index, true), 1).inspect_err(|_| {
            self.files.remove(&reader);
        })?;
        self.pipes.push(0);
        Ok((reader, writer))
    }

    /// open(2) of a file of `len` bytes.
    pub fn open(&mut self, len: u64) -> Called {
        self.open_file(File::Plain(len), 2).map(i64::from)
    }

    /// epoll_create(2).
    pub fn epoll_create(&mut self) -> Called {
        self.open_file(File::Epoll(Vec::new()), 2).map(i64::from)
    }

    /// dup(2).
    pub fn dup(&mut self, fd: i32) -> Called {
        let Some(descriptor) = self.files.get(&fd).cloned() else { return fail(errno::EBADF) };
        let copy = self.lowest_fd()?;
        match descriptor.file {
            File::Socket(index) => self.sockets[index].descriptors += 1,
            File::Datagrams(index) => self.copy_datagrams(index),
            _ => {}
        }
        self.files.insert(copy, descriptor);
        Ok(i64::from(copy))
    }

    /// The socket behind a descriptor.
    pub fn index(&self, fd: i32) -> Result<usize, Stop> {
        match self.files.get(&fd) {
            None => fail(errno::EBADF),
            Some(Descriptor { file: File::Socket(index), .. }) => Ok(*index),
            Some(_) => fail(errno::ENOTSOCK),
        }
    }

    /// Whether calls on a descriptor wait.
    pub fn is_blocking(&self, fd: i32) -> bool {
        self.files.get(&fd).is_some_and(|d| d.flags & O_NONBLOCK == 0)
    }

    pub(crate) fn would_wait(&self, fd: i32, dont_wait: bool) -> Stop {
        if dont_wait || !self.is_blocking(fd) { Stop::Errno(errno::EAGAIN) } else { Stop::Block }
    }

    /// bind(2).
    pub fn bind(&mut self, fd: i32, place: Place) -> Called {
        if self.udp(fd).is_some() {
            return self.bind_datagrams(fd, place);
        }
        let index = self.index(fd)?;
        let socket = &self.sockets[index];
        if socket.bound.is_some() || socket.tcp.state != State::Close {
            return fail(errno::EINVAL);
        }
        let taken = self.sockets.iter().enumerate().any(|(other, s)| {
            other != index
                && s.descriptors > 0
                && s.parent.is_none()
                && s.bound.is_some_and(|b| b.port == place.port && place.port != 0)
                && s.tcp.state == State::Listen
        });
        if taken {
            return fail(errno::EADDRINUSE);
        }
        self.sockets[index].bound = Some(place);
        Ok(0)
    }

    /// listen(2).
    pub fn listen(&mut self, fd: i32, backlog: i32) -> Called {
        if self.udp(fd).is_some() {
            return fail(errno::EOPNOTSUPP);
        }
        let index = self.index(fd)?;
        let most = self.sysctls.of("somaxconn") as u32;
        let socket = &mut self.sockets[index];
        match socket.tcp.state {
            State::Close | State::Listen => {}
            _ => return fail(errno::EINVAL),
        }
        let backlog = if backlog < 0 { most } else { (backlog as u32).min(most) };
        socket.backlog = Some(backlog);
        if self.sysctls.of("tcp_fastopen") & 0x400 != 0 && socket.tcp.opt.fastopen == 0 {
            // Fast open needs no option.
            socket.tcp.opt.fastopen = backlog;
        }
        socket.tcp.state = State::Listen;
        if let Some(place) = socket.bound {
            socket.tcp.local = place;
        }
        Ok(0)
    }

    /// accept4(2): a new descriptor.
    pub fn accept(&mut self, fd: i32, flags: i32) -> Called {
        if self.udp(fd).is_some() {
            return fail(errno::EOPNOTSUPP);
        }
        let index = self.index(fd)?;
        if self.sockets[index].tcp.state != State::Listen {
            return fail(errno::EINVAL);
        }
        // The descriptor first: a connection that finds none stays in the queue (accept(2), EMFILE).
        let file = self.lowest_fd()?;
        let Some(child) = self.sockets[index].ready.pop_front() else {
            return Err(self.would_wait(fd, false));
        };
        self.sockets[child].descriptors = 1;
        self.sockets[child].parent = None;
        self.files
            .insert(file, Descriptor { file: File::Socket(child), flags: 2 | flags & O_NONBLOCK });
        Ok(i64::from(file))
    }

    /// connect(2) towards `remote`; `local` is where it comes from if it is not bound.
    pub fn connect(&mut self, now: Us, fd: i32, local: Place, remote: Place) -> Called {
        if self.udp(fd).is_some() {
            return self.connect_datagrams(fd, local, Some(remote));
        }
        let index = self.index(fd)?;
        let socket = &self.sockets[index];
        let state = socket.tcp.state;
        if socket.connecting {
            return self.finish_connect(fd, index);
        }
        match state {
            State::Close if !socket.was_connected => {}
            // Also one that is over: only connect(2) with AF_UNSPEC makes it new.
            _ => return fail(errno::EISCONN),
        }
        let mut local = self.sockets[index].bound.unwrap_or(local);
        if local.port == 0 {
            local.port = self.own_port();
        }
        if self.sockets[index].fast.deferred.is_some() {
            return fail(errno::EISCONN);
        }
        if self.defer_connect(index, local, remote) {
            return Ok(0);
        }
        let isn = self.isn();
        with!(self, now, index, |socket, env| {
            socket.bound = Some(local);
            socket.connecting = true;
            socket.tcp.connect(&env, local, remote, isn);
        });
        if self.is_blocking(fd) { Err(Stop::Block) } else { fail(errno::EINPROGRESS) }
    }

    fn finish_connect(&mut self, fd: i32, index: usize) -> Called {
        let socket = &mut self.sockets[index];
        match socket.tcp.state {
            State::SynSent | State::SynRecv => {
                if self.is_blocking(fd) {
                    Err(Stop::Block)
                } else {
                    fail(errno::EALREADY)
                }
            }
            State::Close => {
                socket.connecting = false;
                let error = std::mem::take(&mut socket.tcp.fate.error);
                fail(if error == 0 { errno::ECONNABORTED } else { error })
            }
            _ => {
                socket.connecting = false;
                socket.was_connected = true;
                Ok(0)
            }
        }
    }

    /// connect(2) with AF_UNSPEC: the socket is as before it connected.
    pub fn disconnect(&mut self, now: Us, fd: i32) -> Called {
        if self.udp(fd).is_some() {
            return self.connect_datagrams(fd, Place::default(), None);
        }
        let index = self.index(fd)?;
        if self.sockets[index].tcp.state == State::Listen {
            self.close_listener(now, index);
            return Ok(0);
        }
        let state = self.sockets[index].tcp.state;
        with!(self, now, index, |socket, env| {
            socket.tcp.abort(&env);
            socket.connecting = false;
            socket.was_connected = false;
            socket.fast.deferred = None;
        });
        let env = self.env(now);
        let fresh = Tcp::fresh(&env);
        let socket = &mut self.sockets[index];
        let old = std::mem::replace(&mut socket.tcp, fresh);
        socket.tcp.opt = old.opt;
        socket.tcp.cc = old.cc.again();
        socket.tcp.rcv.buffer = old.rcv.buffer;
        if state != State::Close {
            socket.tcp.fate.error = errno::ECONNRESET;
        }
        Ok(0)
    }

    /// shutdown(2): how is 0 (reading), 1 (writing) or 2.
    pub fn shutdown(&mut self, now: Us, fd: i32, how: i32) -> Called {
        if self.udp(fd).is_some() {
            return self.shut_datagrams(fd, how);
        }
        let index = self.index(fd)?;
        if !(0..=2).contains(&how) {
            return fail(errno::EINVAL);
        }
        if self.sockets[index].tcp.state == State::Listen {
            if how != 1 {
                self.close_listener(now, index);
            }
            return Ok(0);
        }
        if self.sockets[index].tcp.state == State::SynSent {
            with!(self, now, index, |socket, _env| socket.tcp.fail(0));
            return Ok(0);
        }
        let done =
            with!(self, now, index, |socket, env| socket.tcp.shutdown(&env, how != 1, how != 0));
        done.map_or_else(fail, |()| Ok(0))
    }

    fn close_listener(&mut self, now: Us, index: usize) {
        let children: Vec<usize> = self.sockets[index].ready.drain(..).collect();
        self.sockets[index].requests.clear();
        self.sockets[index].tcp.state = State::Close;
        self.sockets[index].backlog = None;
        for child in children {
            with!(self, now, child, |socket, env| {
                socket.tcp.fate.orphan = true;
                socket.tcp.abort(&env);
            });
        }
        self.settle(now, index);
    }

    /// close(2).
    pub fn close(&mut self, now: Us, fd: i32) -> Called {
        let Some(descriptor) = self.files.remove(&fd) else { return fail(errno::EBADF) };
        self.forget_watches(fd);
        let index = match descriptor.file {
            File::Socket(index) => index,
            File::Datagrams(index) => {
                self.close_datagrams(index);
                return Ok(0);
            }
            _ => return Ok(0),
        };
        let socket = &mut self.sockets[index];
        socket.descriptors -= 1;
        if socket.descriptors > 0 {
            return Ok(0);
        }
        if socket.tcp.state == State::Listen {
            self.close_listener(now, index);
            return Ok(0);
        }
        with!(self, now, index, |socket, env| socket.tcp.close(&env));
        Ok(0)
    }

    /// Whether a close with SO_LINGER is over.
    pub fn is_closed(&self, index: usize) -> bool {
        let state = self.sockets[index].tcp.state;
        matches!(state, State::Close | State::TimeWait | State::FinWait2)
    }
}

/// Data.
impl Host {
    /// write(2), send(2) and their kin: up to `bytes`; `more`: bytes of this call that were taken before.
    pub fn write(
        &mut self,
        now: Us,
        fd: i32,
        bytes: u32,
        flags: WriteFlags<'_>,
        dont_wait: bool,
    ) -> Called {
        if let Some(Descriptor { file: File::Pipe(index, true), .. }) = self.files.get(&fd) {
            self.pipes[*index] += u64::from(bytes);
            return Ok(i64::from(bytes));
        }
        if self.udp(fd).is_some() {
            return self.send_to(now, fd, (Place::default(), None), bytes);
        }
        let index = self.index(fd)?;
        if let Some(ends) = self.sockets[index].fast.deferred {
            return self.write_opening(now, fd, ends, bytes, flags);
        }
        let tcp = &mut self.sockets[index].tcp;
        if tcp.state == State::Listen {
            return self.broken_pipe();
        }
        let opening = matches!(tcp.state, State::SynSent | State::SynRecv) && !tcp.open.early;
        if opening && tcp.fate.error == 0 {
            return Err(self.would_wait(fd, dont_wait));
        }
        if tcp.fate.shut_write || tcp.state == State::Close {
            let error = std::mem::take(&mut tcp.fate.error);
            return if error != 0 { fail(error) } else { self.broken_pipe() };
        }
        if tcp.fate.error != 0 {
            return fail(std::mem::take(&mut tcp.fate.error));
        }
        if bytes == 0 {
            return Ok(0);
        }
        let flags = self.with_stamps(index, flags, bytes);
        let taken = with!(self, now, index, |socket, env| socket.tcp.write(&env, bytes, flags));
        if taken == 0 { Err(self.would_wait(fd, dont_wait)) } else { Ok(i64::from(taken)) }
    }

    fn broken_pipe(&mut self) -> Called {
        self.broken_pipes += 1;
        fail(errno::EPIPE)
    }

    /// Stamps that the socket's option asks of each write.
    fn with_stamps<'a>(
        &mut self,
        index: usize,
        flags: WriteFlags<'a>,
        bytes: u32,
    ) -> WriteFlags<'a> {
        const TX_SOFTWARE: u32 = 1 << 1;
        const OPT_ID: u32 = 1 << 7;
        const TX_SCHED: u32 = 1 << 8;
        const TX_ACK: u32 = 1 << 9;
        const OPT_TSONLY: u32 = 1 << 11;
        let socket = &self.sockets[index];
        let wanted = socket.timestamping;
        let mut stamps = flags.stamps;
        if wanted & TX_SOFTWARE != 0 {
            stamps |= crate::errqueue::stamp::SENT;
        }
        if wanted & TX_SCHED != 0 {
            stamps |= crate::errqueue::stamp::SCHEDULED;
        }
        if wanted & TX_ACK != 0 {
            stamps |= crate::errqueue::stamp::ACKED;
        }
        if stamps != 0 && wanted & OPT_TSONLY != 0 {
            stamps |= crate::errqueue::stamp::ALONE;
        }
        let key = if wanted & OPT_ID != 0 {
            socket
                .tcp
                .snd
                .write_seq
                .wrapping_add(bytes)
                .wrapping_sub(1)
                .wrapping_sub(socket.stamp_base)
        } else {
            0
        };
        WriteFlags { stamps, key, ..flags }
    }

    /// read(2), recv(2) and their kin.
    pub fn read(&mut self, now: Us, fd: i32, max: u32, flags: ReadFlags) -> Called {
        match self.files.get(&fd).map(|d| &d.file) {
            Some(File::Pipe(index, false)) => {
                let index = *index;
                let taken = self.pipes[index].min(u64::from(max));
                self.pipes[index] -= taken;
                return if taken == 0 && max > 0 {
                    Err(self.would_wait(fd, flags.dont_wait))
                } else {
                    Ok(taken as i64)
                };
            }
            Some(File::Plain(len)) => return Ok((*len).min(u64::from(max)) as i64),
            Some(File::Datagrams(_)) => return self.read_datagram(fd, max, flags),
            _ => {}
        }
        let index = self.index(fd)?;
        let tcp = &mut self.sockets[index].tcp;
        if tcp.state == State::Listen {
            return fail(errno::ENOTCONN);
        }
        if flags.urgent {
            let Some(urgent) = &mut tcp.rcv.urgent else { return fail(errno::EINVAL) };
            match urgent.byte {
                UrgentByte::Read => return fail(errno::EINVAL),
                UrgentByte::Announced => return fail(errno::EAGAIN),
                UrgentByte::Here if !flags.peek => urgent.byte = UrgentByte::Read,
                UrgentByte::Here => {}
            }
            return Ok(1);
        }
        let target = if flags.wait_all { max } else { tcp.opt.rcvlowat.clamp(1, max.max(1)) };
        let mut unread = tcp.readable();
        let mut max = max;
        if let Some(seen) = u32::try_from(tcp.opt.peek_off).ok().filter(|_| flags.peek) {
            // What was looked at before is passed over.
            unread = unread.saturating_sub(seen);
            max = max.min(unread);
        }
        let over =
            tcp.fate.error != 0 || tcp.rcv.fin || tcp.fate.shut_read || tcp.state == State::Close;
        if unread == 0 || (unread < target && !over && self.is_blocking(fd) && !flags.dont_wait) {
            return self.nothing_to_read(fd, index, unread, flags);
        }
        let copied = with!(self, now, index, |socket, env| socket.tcp.read(&env, max, flags.peek));
        let copied = i64::from(copied);
        let off = &mut self.sockets[index].tcp.opt.peek_off;
        if *off >= 0 {
            *off = if flags.peek { *off + copied } else { (*off - copied).max(0) };
        }
        Ok(copied)
    }

    fn nothing_to_read(&mut self, fd: i32, index: usize, unread: u32, flags: ReadFlags) -> Called {
        let was_connected = self.sockets[index].was_connected;
        let tcp = &mut self.sockets[index].tcp;
        if unread > 0 {
            return Err(Stop::Block);
        }
        if tcp.rcv.fin {
            if !flags.peek {
                tcp.read_fin();
            }
            return Ok(0);
        }
        if tcp.fate.error != 0 {
            return fail(std::mem::take(&mut tcp.fate.error));
        }
        if tcp.fate.shut_read {
            return Ok(0);
        }
        if tcp.state == State::Close && self.sockets[index].fast.deferred.is_none() {
            return if was_connected { Ok(0) } else { fail(errno::ENOTCONN) };
        }
        Err(self.would_wait(fd, flags.dont_wait))
    }

    /// The oldest entry of the error queue (MSG_ERRQUEUE).
    pub fn read_error(&mut self, fd: i32) -> Result<Entry, Stop> {
        if self.udp(fd).is_some() {
            return self.read_datagram_error(fd);
        }
        let index = self.index(fd)?;
        self.sockets[index].tcp.errors.pop().ok_or(Stop::Errno(errno::EAGAIN))
    }

    /// Bytes to read (SIOCINQ), out and not acknowledged (SIOCOUTQ), not sent (SIOCOUTQNSD).
    pub fn queued(&mut self, fd: i32) -> Result<[i64; 3], Stop> {
        if self.udp(fd).is_some() {
            return self.queued_datagrams(fd);
        }
        let index = self.index(fd)?;
        let tcp = &self.sockets[index].tcp;
        if tcp.state == State::Listen {
            return fail(errno::EINVAL);
        }
        // Up to the urgent byte where that came, be it passed over.
        let (from, mark) = (tcp.rcv.copied, tcp.rcv.urgent.map(|urgent| urgent.at));
        let inq = match mark.filter(|&at| !before(at, from) && before(at, tcp.rcv.nxt)) {
            Some(at) => at.wrapping_sub(from),
            None => tcp.unread(),
        };
        let (outq, unsent) = match tcp.state {
            State::SynSent | State::SynRecv => (0, 0),
            _ => (
                tcp.snd.write_seq.wrapping_sub(tcp.snd.una),
                tcp.snd.write_seq.wrapping_sub(tcp.snd.nxt),
            ),
        };
        Ok([i64::from(inq), i64::from(outq), i64::from(unsent)])
    }
}

//! Calls on UDP sockets, and datagrams and errors that arrive for them.

use crate::calls::{Called, ReadFlags, Stop};
use crate::datagram::{Datagram, PathError, Udp};
use crate::errno;
use crate::errqueue::Entry;
use crate::host::Host;
use crate::segment::Place;
use crate::settings::{Env, Us};
use crate::socket::{File, O_NONBLOCK};
use crate::tcp::poll;

const NO_SOCKET: Stop = Stop::Errno(errno::ENOTSOCK);

/// Calls on UDP sockets; those of TCP come here where a descriptor is one.
impl Host {
    /// socket(2) of UDP.
    pub fn datagram_socket(&mut self, nonblocking: bool) -> Called {
        let flags = 2 | if nonblocking { O_NONBLOCK } else { 0 };
        let index = self.datagrams.len();
        let fd = self.open_file(File::Datagrams(index), flags)?;
        self.datagrams.push(Udp::open());
        Ok(i64::from(fd))
    }

    /// The UDP socket behind a descriptor.
    pub(crate) fn udp(&mut self, fd: i32) -> Option<&mut Udp> {
        match self.files.get(&fd)?.file {
            File::Datagrams(index) => self.datagrams.get_mut(index),
            _ => None,
        }
    }

    /// The port that a socket gets now if it has none.
    fn port_of(&mut self, fd: i32) -> Result<u16, Stop> {
        let is_bound = self.udp(fd).ok_or(NO_SOCKET)?.is_bound();
        Ok(if is_bound { 0 } else { self.own_port() })
    }

    pub(crate) fn bind_datagrams(&mut self, fd: i32, place: Place) -> Called {
        let port = if place.port == 0 { self.own_port() } else { place.port };
        let taken = self.datagrams.iter().any(|udp| udp.occupies(port));
        let udp = self.udp(fd).ok_or(NO_SOCKET)?;
        if taken && !udp.is_bound() {
            return Err(Stop::Errno(errno::EADDRINUSE));
        }
        udp.bind(Place { port, ..place }).map_err(Stop::Errno)
    }

    /// connect(2); `None`: anywhere again.
    pub(crate) fn connect_datagrams(
        &mut self,
        fd: i32,
        local: Place,
        remote: Option<Place>,
    ) -> Called {
        let port = self.port_of(fd)?;
        self.udp(fd).ok_or(NO_SOCKET)?.connect(Place { port, ..local }, remote);
        Ok(0)
    }

    /// sendto(2): one datagram, from and to the ends that the socket leaves open.
    pub fn send_to(
        &mut self,
        now: Us,
        fd: i32,
        (local, to): (Place, Option<Place>),
        bytes: u32,
    ) -> Called {
        let (route, port) = (self.route, self.port_of(fd)?);
        let udp = self.udp(fd).ok_or(NO_SOCKET)?;
        match udp.send(&route, Place { port, ..local }, to, bytes) {
            Ok(datagram) => {
                self.datagrams_out.push_back((now, datagram));
                Ok(i64::from(bytes))
            }
            Err(error) => {
                self.broken_pipes += u32::from(error == errno::EPIPE);
                Err(Stop::Errno(error))
            }
        }
    }

    pub(crate) fn read_datagram(&mut self, fd: i32, max: u32, flags: ReadFlags) -> Called {
        let waits = self.would_wait(fd, flags.dont_wait);
        let udp = self.udp(fd).ok_or(NO_SOCKET)?;
        match udp.read(max, flags).map_err(Stop::Errno)? {
            Some(bytes) => Ok(i64::from(bytes)),
            // Only a call that would wait learns of the end.
            None if udp.is_shut() && waits == Stop::Block => Ok(0),
            None => Err(waits),
        }
    }

    pub(crate) fn read_datagram_error(&mut self, fd: i32) -> Result<Entry, Stop> {
        self.udp(fd).ok_or(NO_SOCKET)?.pop_error().ok_or(Stop::Errno(errno::EAGAIN))
    }

    pub(crate) fn shut_datagrams(&mut self, fd: i32, how: i32) -> Called {
        self.udp(fd).ok_or(NO_SOCKET)?.shutdown(how).map_err(Stop::Errno)
    }

    /// A descriptor was closed.
    pub(crate) fn close_datagrams(&mut self, index: usize) {
        self.datagrams[index].release();
    }

    pub(crate) fn copy_datagrams(&mut self, index: usize) {
        self.datagrams[index].share();
    }

    pub(crate) fn set_datagram_option(&mut self, fd: i32, which: (i32, i32), value: i64) -> Called {
        let File::Datagrams(index) = self.file(fd)? else { return Err(NO_SOCKET) };
        let done = self.datagrams[index].set_option(&self.sysctls, which, value);
        done.map_err(Stop::Errno)
    }

    pub(crate) fn datagram_option(&mut self, now: Us, fd: i32, which: (i32, i32)) -> Called {
        let File::Datagrams(index) = self.file(fd)? else { return Err(NO_SOCKET) };
        let env = Env { now, sysctls: &self.sysctls, route: &self.route };
        self.datagrams[index].option(&env, which).map_err(Stop::Errno)
    }

    fn file(&self, fd: i32) -> Result<File, Stop> {
        self.files.get(&fd).map(|known| known.file.clone()).ok_or(Stop::Errno(errno::EBADF))
    }

    /// SIOCINQ: bytes of the next datagram; nothing is out longer than an instant.
    pub(crate) fn queued_datagrams(&mut self, fd: i32) -> Result<[i64; 3], Stop> {
        Ok([i64::from(self.udp(fd).ok_or(NO_SOCKET)?.next_len()), 0, 0])
    }

    pub(crate) fn poll_datagrams(&self, index: usize) -> u32 {
        self.datagrams[index].mask()
    }
}

/// The wire's side.
impl Host {
    /// The socket that takes what comes from `remote` to `local`: a connected one before others.
    fn datagram_socket_of(&self, local: Place, remote: Place) -> Option<usize> {
        let of = |wanted| self.datagrams.iter().position(|udp| udp.takes(local, wanted));
        of(Some(remote)).or_else(|| of(None))
    }

    /// A datagram arrives; returns whether a socket takes it.
    pub fn receive_datagram(&mut self, datagram: Datagram) -> bool {
        let Some(index) = self.datagram_socket_of(datagram.dst, datagram.src) else { return false };
        self.datagrams[index].push(datagram);
        self.tell_watches(&File::Datagrams(index), poll::IN | poll::RDNORM);
        true
    }

    /// ICMP about a datagram that left `local` for `remote`.
    pub fn datagram_failed(&mut self, local: Place, remote: Place, error: PathError) {
        if error.mtu > 0 && !self.route.mtu_locked {
            let v6 = self.route.ip_header == 40;
            let floor = if v6 { 1280 } else { self.sysctls.of("min_pmtu") as u32 };
            self.route.path_mtu = error.mtu.max(floor);
        }
        let Some(index) = self.datagram_socket_of(local, remote) else { return };
        if self.datagrams[index].fail(&self.route, error) {
            self.tell_watches(&File::Datagrams(index), poll::ERR);
        }
    }
}

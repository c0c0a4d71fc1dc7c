//! Calls on UDP sockets, and datagrams and errors that arrive for them.

use crate::calls::{Called, ReadFlags, Stop};
use crate::datagram::{Datagram, HEADER, PathError, Udp};
use crate::errno;
use crate::errqueue::Entry;
use crate::host::Host;
use crate::segment::Place;
use crate::settings::{Env, Us};
use crate::socket::{File, IP, IPV6, O_NONBLOCK, SOCKET};
use crate::tcp::poll;

/// Largest IP packet.
const LARGEST: u32 = 65_535;

const fn fail<T>(error: i32) -> Result<T, Stop> {
    Err(Stop::Errno(error))
}

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

    fn own_port(&mut self) -> u16 {
        self.next_port += 1;
        self.next_port
    }

    pub(crate) fn bind_datagrams(&mut self, fd: i32, place: Place) -> Called {
        let port = if place.port == 0 { self.own_port() } else { place.port };
        let taken = self.datagrams.iter().any(|udp| {
            udp.descriptors > 0
                && udp.of(SOCKET, 2).is_none_or(|reuse| reuse == 0)
                && udp.local.is_some_and(|local| local.port == port)
        });
        let Some(udp) = self.udp(fd) else { return fail(errno::ENOTSOCK) };
        match udp.local {
            Some(_) => fail(errno::EINVAL),
            None if taken => fail(errno::EADDRINUSE),
            None => {
                udp.local = Some(Place { port, ..place });
                Ok(0)
            }
        }
    }

    /// connect(2): where datagrams go, and where alone they are taken from; `None`: anywhere again.
    pub(crate) fn connect_datagrams(
        &mut self,
        fd: i32,
        local: Place,
        remote: Option<Place>,
    ) -> Called {
        let port = self.own_port();
        let Some(udp) = self.udp(fd) else { return fail(errno::ENOTSOCK) };
        udp.remote = remote;
        if remote.is_some() {
            udp.local.get_or_insert(Place { port, ..local });
        }
        Ok(0)
    }

    /// sendto(2): one datagram; `to`: where the socket is not connected to.
    pub fn send_to(
        &mut self,
        now: Us,
        fd: i32,
        ends: (Place, Option<Place>),
        bytes: u32,
    ) -> Called {
        let route = self.route;
        let port = self.own_port();
        let Some(udp) = self.udp(fd) else { return fail(errno::ENOTSOCK) };
        let src = *udp.local.get_or_insert(Place { port, ..ends.0 });
        let Some(dst) = ends.1.or(udp.remote) else { return fail(errno::EDESTADDRREQ) };
        let headers = route.ip_header + HEADER;
        // DO and PROBE: nothing is cut.
        let whole = matches!(udp.discovery(&route), 2 | 3);
        let most = if udp.discovery(&route) == 3 { route.device_mtu } else { route.mtu() };
        if bytes > LARGEST - headers || whole && bytes + headers > most {
            if udp.hears_errors() {
                let mtu = if bytes > LARGEST - headers { LARGEST } else { most };
                udp.errors.push(Entry {
                    errno: errno::EMSGSIZE,
                    origin: 1,
                    kind: 0,
                    code: 0,
                    info: mtu,
                    data: 0,
                    at: None,
                });
            }
            return fail(errno::EMSGSIZE);
        }
        if udp.error != 0 {
            return fail(std::mem::take(&mut udp.error));
        }
        if udp.shut_write {
            self.broken_pipes += 1;
            return fail(errno::EPIPE);
        }
        let byte = |value: Option<i64>| value.unwrap_or(0) as u8;
        let datagram = Datagram {
            src,
            dst,
            len: bytes,
            tos: byte(udp.of(IP, 1).or_else(|| udp.of(IPV6, 67))),
            ttl: byte(udp.of(IP, 2).or_else(|| udp.of(IPV6, 16)).filter(|&ttl| ttl > 0)),
        };
        self.datagrams_out.push_back((now, datagram));
        Ok(i64::from(bytes))
    }

    pub(crate) fn read_datagram(&mut self, fd: i32, max: u32, flags: ReadFlags) -> Called {
        let waits = self.would_wait(fd, flags.dont_wait);
        let Some(udp) = self.udp(fd) else { return fail(errno::ENOTSOCK) };
        if udp.error != 0 {
            return fail(std::mem::take(&mut udp.error));
        }
        let Some(first) = udp.queue.front().copied() else {
            // Only a call that would wait learns of the end.
            return if udp.shut_read && waits == Stop::Block { Ok(0) } else { Err(waits) };
        };
        if !flags.peek {
            udp.queue.pop_front();
        }
        Ok(i64::from(if flags.truncate { first.len } else { first.len.min(max) }))
    }

    pub(crate) fn read_datagram_error(&mut self, fd: i32) -> Result<Entry, Stop> {
        let Some(udp) = self.udp(fd) else { return fail(errno::ENOTSOCK) };
        udp.errors.pop().ok_or(Stop::Errno(errno::EAGAIN))
    }

    pub(crate) fn shut_datagrams(&mut self, fd: i32, how: i32) -> Called {
        let Some(udp) = self.udp(fd) else { return fail(errno::ENOTSOCK) };
        if udp.remote.is_none() {
            return fail(errno::ENOTCONN);
        }
        udp.shut_read |= how != 1;
        udp.shut_write |= how != 0;
        Ok(0)
    }

    /// A descriptor was closed.
    pub(crate) fn close_datagrams(&mut self, index: usize) {
        let udp = &mut self.datagrams[index];
        udp.descriptors -= 1;
        if udp.descriptors == 0 {
            *udp = Udp::default();
        }
    }

    pub(crate) fn copy_datagrams(&mut self, index: usize) {
        self.datagrams[index].descriptors += 1;
    }

    pub(crate) fn set_datagram_option(&mut self, fd: i32, which: (i32, i32), value: i64) -> Called {
        let File::Datagrams(index) = self.file(fd)? else { return fail(errno::ENOTSOCK) };
        let done = self.datagrams[index].set_option(&self.sysctls, which, value);
        done.map_err(Stop::Errno)
    }

    pub(crate) fn datagram_option(&mut self, now: Us, fd: i32, which: (i32, i32)) -> Called {
        let File::Datagrams(index) = self.file(fd)? else { return fail(errno::ENOTSOCK) };
        let env = Env { now, sysctls: &self.sysctls, route: &self.route };
        self.datagrams[index].option(&env, which).map_err(Stop::Errno)
    }

    fn file(&self, fd: i32) -> Result<File, Stop> {
        self.files.get(&fd).map(|known| known.file.clone()).ok_or(Stop::Errno(errno::EBADF))
    }

    /// SIOCINQ: bytes of the next datagram; nothing is out longer than an instant.
    pub(crate) fn queued_datagrams(&mut self, fd: i32) -> Result<[i64; 3], Stop> {
        let Some(udp) = self.udp(fd) else { return fail(errno::ENOTSOCK) };
        Ok([udp.queue.front().map_or(0, |first| i64::from(first.len)), 0, 0])
    }

    pub(crate) fn poll_datagrams(&self, index: usize) -> u32 {
        self.datagrams[index].mask()
    }
}

/// The wire's side.
impl Host {
    /// The socket that takes what comes from `remote` to `local`: a connected one before others.
    fn datagram_socket_of(&self, local: Place, remote: Place) -> Option<usize> {
        let of = |wanted: Option<Place>| {
            self.datagrams.iter().position(|udp| {
                udp.local.is_some_and(|own| own.port == local.port) && udp.remote == wanted
            })
        };
        of(Some(remote)).or_else(|| of(None))
    }

    /// A datagram arrives; returns whether a socket takes it.
    pub fn receive_datagram(&mut self, datagram: Datagram) -> bool {
        let Some(index) = self.datagram_socket_of(datagram.dst, datagram.src) else { return false };
        self.datagrams[index].queue.push_back(datagram);
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
        let route = self.route;
        let Some(index) = self.datagram_socket_of(local, remote) else { return };
        let udp = &mut self.datagrams[index];
        let discovers = udp.discovery(&route) != 0;
        if error.mtu > 0 && !discovers {
            return;
        }
        if udp.hears_errors() {
            udp.errors.push(error.entry(&route));
        } else if !error.hard || udp.remote.is_none() {
            return;
        }
        udp.error = error.errno;
        self.tell_watches(&File::Datagrams(index), poll::ERR);
    }
}

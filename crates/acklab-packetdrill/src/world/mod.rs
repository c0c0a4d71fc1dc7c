//! Where a script runs: what a host, simulated or real, has to offer to the interpreter.
//!
//! Calls try once and say whether they have to wait; the interpreter tries again when something happened. Time is
//! microseconds from an origin that the world chooses. [`acklab_host`] in virtual time is one world; a kernel behind
//! a TUN device is another.

mod simulated;

use acklab_host::calls::{Called, ReadFlags, Stop};
use acklab_host::datagram::Datagram;
use acklab_host::errqueue::Entry;
use acklab_host::segment::{Place, Segment};
use acklab_host::settings::{Route, SECOND, Sysctls, Us};
use acklab_host::socket::Family;
use acklab_host::write::WriteFlags;

pub use simulated::Virtual;

/// What an ICMP message quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoted {
    /// A segment, by its sequence number.
    Segment(u32),
    /// A datagram.
    Datagram,
}

/// An ICMP message about a packet that the host sent.
#[derive(Clone, Copy, Debug)]
pub struct IcmpAbout {
    /// Where the packet came from and where it went.
    pub local: Place,
    /// See above.
    pub remote: Place,
    /// What it quotes.
    pub quoted: Quoted,
    /// The message.
    pub message: IcmpMessage,
}

/// What an ICMP message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpMessage {
    /// The packet is too big for a link of this MTU.
    TooBig(u32),
    /// The destination is not reachable: the error of socket calls, whether it ends the connection, and type and
    /// code on the wire.
    Unreachable {
        /// `errno`.
        errno: i32,
        /// It ends a connection that is being opened.
        hard: bool,
        /// ICMP's type.
        kind: u8,
        /// ICMP's code.
        code: u8,
    },
    /// One that changes nothing: type and code.
    Ignored(u8, u8),
}

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Bytes.
    pub bytes: i64,
    /// The control message of `TCP_INQ`.
    pub inq: Option<i64>,
}

/// A `close` that waits for what was written to be acknowledged (`SO_LINGER`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lingering {
    /// The world's name for it.
    pub ticket: usize,
    /// When it gives up.
    pub until: Us,
}

/// A setting that a command made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A system control and its text.
    Sysctl(String, String),
    /// A program of iproute2 or ethtool, with its arguments.
    Program(Vec<String>),
    /// What was learned of peers is forgotten (`ip tcp_metrics flush`).
    Forget,
}

/// A host, its wire and its time.
#[expect(
    missing_docs,
    reason = "socket calls have the names and meanings of section 2 of the manual"
)]
pub trait World {
    /// The settings as the script made them.
    fn settings(&mut self) -> (&mut Sysctls, &mut Route);
    /// The head of the script is read: the world begins at `start`.
    fn begin(&mut self, start: Us) -> Result<(), String>;
    /// Makes settings that were understood and stand in [`Self::settings`] already.
    fn change(&mut self, changes: &[Change]) -> Result<(), String>;
    /// The cookie of fast open that the script knows.
    fn set_cookie(&mut self, cookie: Vec<u8>);

    /// Lets time pass until something happens, but less than to `limit`; returns when, or `None`: nothing did.
    fn wait(&mut self, now: Us, limit: Us) -> Result<Option<Us>, String>;
    /// How much later than after `waited` a timer may fire: kernels round them up.
    fn slack(&self, waited: Us) -> Us {
        let _ = waited;
        0
    }
    /// Nothing is waited for longer.
    fn patience(&self) -> Us {
        3 * 3600 * SECOND
    }
    /// When something will happen, as far as the world knows.
    fn due(&self) -> Option<Us>;
    /// The next segment that the host sent.
    fn sent(&mut self) -> Option<(Us, Segment)>;
    /// Gives the host a segment.
    fn receive(&mut self, now: Us, segment: &Segment) -> Result<(), String>;
    /// The next datagram that the host sent.
    fn sent_datagram(&mut self) -> Option<(Us, Datagram)>;
    /// Gives the host a datagram.
    fn receive_datagram(&mut self, now: Us, datagram: &Datagram) -> Result<(), String>;
    /// Gives the host an ICMP message.
    fn receive_icmp(&mut self, now: Us, about: &IcmpAbout) -> Result<(), String>;
    /// The host's counters, in the order of [`Mib::ALL`](acklab_host::mib::Mib::ALL): names and values.
    fn counters(&mut self) -> Vec<(&'static str, u64)>;
    /// TCP_INFO of the connection between two places, or else of the last one made: names and values.
    fn info(&mut self, now: Us, ends: Option<(Place, Place)>) -> Vec<(&'static str, u64)>;

    fn socket(&mut self, now: Us, family: Family, nonblocking: bool) -> Called;
    /// socket(2) of UDP.
    fn datagram_socket(&mut self, family: Family, nonblocking: bool) -> Called;
    /// sendto(2) of UDP; the ends are those that the script's addresses and the socket leave open.
    fn send_to(&mut self, now: Us, fd: i32, ends: (Place, Option<Place>), bytes: u32) -> Called;
    fn bind(&mut self, fd: i32, place: Place) -> Called;
    fn listen(&mut self, fd: i32, backlog: i32) -> Called;
    fn accept(&mut self, fd: i32, flags: i32) -> Called;
    fn connect(&mut self, now: Us, fd: i32, local: Place, remote: Place) -> Called;
    /// connect(2) with AF_UNSPEC.
    fn disconnect(&mut self, now: Us, fd: i32) -> Called;
    fn shutdown(&mut self, now: Us, fd: i32, how: i32) -> Called;
    /// Closes; a close that lingers is not over before [`Self::is_closed`].
    fn close(&mut self, now: Us, fd: i32) -> Result<Option<Lingering>, Stop>;
    fn is_closed(&mut self, ticket: usize) -> bool;
    fn dup(&mut self, fd: i32) -> Called;
    /// The reading end and the writing end.
    fn pipe(&mut self) -> Result<(i32, i32), Stop>;
    /// A file that never ends.
    fn open(&mut self) -> Called;
    fn is_socket(&self, fd: i32) -> bool;
    fn is_blocking(&self, fd: i32) -> bool;
    /// Flags as F_GETFL gives them.
    fn flags(&self, fd: i32) -> Option<i32>;
    fn set_flags(&mut self, fd: i32, flags: i32);
    fn read(&mut self, now: Us, fd: i32, max: u32, flags: ReadFlags) -> Result<Read, Stop>;
    fn read_error(&mut self, fd: i32) -> Result<Entry, Stop>;
    fn write(
        &mut self,
        now: Us,
        fd: i32,
        bytes: u32,
        flags: WriteFlags<'_>,
        dont_wait: bool,
    ) -> Called;
    /// MSG_FASTOPEN: opens towards `ends.1` with data; what left with the SYN, or `EINPROGRESS`.
    fn write_opening(
        &mut self,
        now: Us,
        fd: i32,
        ends: (Place, Place),
        bytes: u32,
        flags: WriteFlags<'_>,
    ) -> Called;
    fn set_option(&mut self, now: Us, fd: i32, level: i32, name: i32, value: i64) -> Called;
    fn set_linger(&mut self, fd: i32, on: bool, seconds: i64) -> Called;
    fn set_congestion(&mut self, now: Us, fd: i32, name: &str) -> Called;
    fn option(&mut self, now: Us, fd: i32, level: i32, name: i32) -> Called;
    fn congestion(&mut self, fd: i32) -> Result<String, Stop>;
    /// SO_LINGER: whether, and seconds.
    fn linger(&mut self, fd: i32) -> Result<(i64, i64), Stop>;
    /// SIOCINQ, SIOCOUTQ, SIOCOUTQNSD.
    fn queued(&mut self, fd: i32) -> Result<[i64; 3], Stop>;
    /// What poll says without waiting, of `asked` and what it always says.
    fn poll(&mut self, now: Us, fd: i32, asked: u32) -> u32;
    fn epoll_create(&mut self) -> Called;
    fn epoll_ctl(
        &mut self,
        now: Us,
        epoll: i32,
        operation: i32,
        fd: i32,
        events: u32,
        data: u64,
    ) -> Called;
    /// Events and words of what is ready, without waiting.
    fn epoll_wait(&mut self, now: Us, epoll: i32, max: usize) -> Result<Vec<(u32, u64)>, Stop>;
}

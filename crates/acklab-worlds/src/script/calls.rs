//! System calls on descriptors as bytes: what scripts ask of sockets has no wrapper that is at once safe and complete
//! (options of any length, control messages of any kind, the error queue).

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;
use nix::libc;

/// `TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN`: bursts reach the device whole.
const OFFLOADS: libc::c_ulong = 0x01 | 0x02 | 0x04 | 0x08;

nix::ioctl_write_int_bad!(
    /// Says which packets need not be cut.
    tun_set_offload,
    nix::request_code_write!(b'T', 208, size_of::<libc::c_int>())
);

/// Makes the TUN device `name` in the calling thread's namespace; it ends with the file. Never blocks.
pub(super) fn open_tun(name: &str) -> io::Result<File> {
    let (device, _) = acklab_net::open_tun(name, acklab_net::TUN_WITH_BURSTS)?;
    // SAFETY: the descriptor is open; the argument is a number.
    unsafe { tun_set_offload(device.as_raw_fd(), OFFLOADS as libc::c_int) }?;
    Ok(device)
}

/// A descriptor that a call made.
fn owned(fd: libc::c_int) -> Result<OwnedFd, Errno> {
    let fd = Errno::result(fd)?;
    // SAFETY: the call succeeded, so `fd` is open and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// socket(2) of TCP (SOCK_STREAM) or UDP (SOCK_DGRAM), which never blocks.
pub(super) fn socket(domain: libc::c_int, kind: libc::c_int) -> Result<OwnedFd, Errno> {
    let kind = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    owned(unsafe { libc::socket(domain, kind, 0) })
}

/// bind(2) to the bytes of an address.
pub(super) fn bind(fd: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    let length = address.len() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes, which `address` has.
    let done = unsafe { libc::bind(fd.as_raw_fd(), address.as_ptr().cast(), length) };
    Errno::result(done).map(drop)
}

/// connect(2) to the bytes of an address.
pub(super) fn connect(fd: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    let length = address.len() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes, which `address` has.
    let done = unsafe { libc::connect(fd.as_raw_fd(), address.as_ptr().cast(), length) };
    Errno::result(done).map(drop)
}

/// listen(2).
pub(super) fn listen(fd: &OwnedFd, backlog: i32) -> Result<(), Errno> {
    // SAFETY: no memory is passed.
    Errno::result(unsafe { libc::listen(fd.as_raw_fd(), backlog) }).map(drop)
}

/// accept4(2); the new descriptor never blocks.
pub(super) fn accept(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: null pointers say that the peer's address is not wanted.
    owned(unsafe { libc::accept4(fd.as_raw_fd(), ptr::null_mut(), ptr::null_mut(), flags) })
}

/// sendto(2) to the bytes of an address.
pub(super) fn send_to(
    fd: &OwnedFd,
    data: &[u8],
    address: &[u8],
    flags: i32,
) -> Result<usize, Errno> {
    let flags = libc::MSG_NOSIGNAL | flags;
    // SAFETY: the kernel reads `data` and `address`, with their lengths.
    let sent = unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            data.as_ptr().cast(),
            data.len(),
            flags,
            address.as_ptr().cast(),
            address.len() as libc::socklen_t,
        )
    };
    Errno::result(sent).map(|sent| sent as usize)
}

/// shutdown(2).
pub(super) fn shutdown(fd: &OwnedFd, how: i32) -> Result<(), Errno> {
    // SAFETY: no memory is passed.
    Errno::result(unsafe { libc::shutdown(fd.as_raw_fd(), how) }).map(drop)
}

/// The port of the peer; `None`: not connected.
pub(super) fn peer_port(fd: &OwnedFd) -> Option<u16> {
    let mut address = [0_u8; 28];
    let mut length = address.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `address`, which has them.
    let done =
        unsafe { libc::getpeername(fd.as_raw_fd(), address.as_mut_ptr().cast(), &raw mut length) };
    (done == 0).then(|| u16::from_be_bytes([address[2], address[3]]))
}

/// setsockopt(2).
pub(super) fn set_option(fd: &OwnedFd, level: i32, name: i32, value: &[u8]) -> Result<(), Errno> {
    let length = value.len() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes, which `value` has.
    let done =
        unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), length) };
    Errno::result(done).map(drop)
}

/// getsockopt(2): what was written of `room` bytes.
pub(super) fn option(fd: &OwnedFd, level: i32, name: i32, room: usize) -> Result<Vec<u8>, Errno> {
    let mut value = vec![0_u8; room];
    let mut length = room as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `value`, which has them.
    let done = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length)
    };
    Errno::result(done)?;
    value.truncate(length as usize);
    Ok(value)
}

/// ioctl(2) that writes a number.
pub(super) fn ioctl(fd: &OwnedFd, command: libc::c_ulong) -> Result<i32, Errno> {
    let mut value: libc::c_int = 0;
    // SAFETY: the commands used here (SIOCINQ and its kin) write one int, which `value` is.
    Errno::result(unsafe { libc::ioctl(fd.as_raw_fd(), command, &raw mut value) })?;
    Ok(value)
}

/// What recvmsg(2) brought.
pub(super) struct Received {
    /// Bytes of data.
    pub(super) bytes: usize,
    /// Control messages: level, type, content.
    pub(super) controls: Vec<(i32, i32, Vec<u8>)>,
}

/// recvmsg(2) into `buffer`.
pub(super) fn receive(fd: &OwnedFd, buffer: &mut [u8], flags: i32) -> Result<Received, Errno> {
    let mut control = [0_u64; 64];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: every bit pattern, zeros included, is a value of `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    // SAFETY: the message points to `part`, which describes `buffer`, and to `control`, aligned for its headers; all
    // live until the call returns.
    let bytes = Errno::result(unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, flags) })?;
    let mut controls = Vec::new();
    // SAFETY: the kernel filled `control` with headers that the macros walk within `msg_controllen`; each content
    // is copied by the length that its header says.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while let Some(at) = header.as_ref() {
            let length = at.cmsg_len - libc::CMSG_LEN(0) as usize;
            let content = std::slice::from_raw_parts(libc::CMSG_DATA(header), length).to_vec();
            controls.push((at.cmsg_level, at.cmsg_type, content));
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    Ok(Received { bytes: bytes as usize, controls })
}

/// sendmsg(2) of `data`, with SO_TIMESTAMPING as a control message where `stamps` are asked for.
pub(super) fn send(
    fd: &OwnedFd,
    buffers: &[Vec<u8>],
    flags: i32,
    stamps: u32,
) -> Result<usize, Errno> {
    let mut control = [0_u64; 8];
    let part = |data: &Vec<u8>| libc::iovec {
        iov_base: data.as_ptr().cast_mut().cast(),
        iov_len: data.len(),
    };
    let mut parts: Vec<libc::iovec> = buffers.iter().map(part).collect();
    // SAFETY: every bit pattern, zeros included, is a value of `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len();
    if stamps != 0 {
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: `control` has room for one header with four bytes.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(4) as usize;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SO_TIMESTAMPING;
            (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
            ptr::copy_nonoverlapping(stamps.to_ne_bytes().as_ptr(), libc::CMSG_DATA(header), 4);
        }
    }
    // SAFETY: the kernel reads `buffers`, `parts` and `control`, which live until the call returns.
    let sent = Errno::result(unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, flags) })?;
    Ok(sent as usize)
}

/// poll(2) of descriptors for at most `nanos`; what is ready of each.
pub(super) fn poll(fds: &[(libc::c_int, i16)], nanos: u64) -> Result<Vec<i16>, Errno> {
    let mut polled: Vec<libc::pollfd> =
        fds.iter().map(|&(fd, events)| libc::pollfd { fd, events, revents: 0 }).collect();
    let time = libc::timespec {
        tv_sec: (nanos / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `polled` has as many entries as are said, and `time` lives until the call returns.
    let done = unsafe {
        libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, &raw const time, ptr::null())
    };
    match Errno::result(done) {
        Ok(_) => Ok(polled.iter().map(|p| p.revents).collect()),
        Err(Errno::EINTR) => Ok(vec![0; fds.len()]),
        Err(errno) => Err(errno),
    }
}

/// epoll_create1(2).
pub(super) fn epoll_create() -> Result<OwnedFd, Errno> {
    // SAFETY: no memory is passed.
    owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
}

/// epoll_ctl(2).
pub(super) fn epoll_ctl(
    epoll: &OwnedFd,
    operation: i32,
    fd: &OwnedFd,
    events: u32,
    word: u64,
) -> Result<(), Errno> {
    let mut event = libc::epoll_event { events, u64: word };
    // SAFETY: the kernel reads `event`, which lives until the call returns.
    let done =
        unsafe { libc::epoll_ctl(epoll.as_raw_fd(), operation, fd.as_raw_fd(), &raw mut event) };
    Errno::result(done).map(drop)
}

/// epoll_wait(2) without waiting.
pub(super) fn epoll_wait(epoll: &OwnedFd, most: usize) -> Result<Vec<(u32, u64)>, Errno> {
    let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; most];
    // SAFETY: the kernel writes at most `most` entries to `events`, which has them.
    let found = unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), most as i32, 0) };
    let found = Errno::result(found)? as usize;
    Ok(events[..found].iter().map(|e| (e.events, e.u64)).collect())
}

//! The door as C sees it: `packetdrill_interface_init` fills a table of functions, each of which has the meaning of
//! the call of its name and the door as its first argument. Order and types are those of packetdrill's table, which
//! `include/acklab_door.h` declares in this project's words. With this library preloaded `getsockopt` of the C
//! library answers for these descriptors, too, for packetdrill asks it for TCP_INFO.
//!
//! `unsafe` is here alone, for what C hands over: each pointer is valid for as many bytes as the call of its name
//! says, or null where that call allows it.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nix::errno::Errno;
use nix::libc;
use nix::libc::{
    c_char, c_int, c_long, c_longlong, c_uint, c_ulong, c_void, epoll_event, iovec, msghdr, pollfd,
    size_t, sockaddr, socklen_t, ssize_t, suseconds_t, time_t, timeval,
};

use crate::calls::Wish;
use crate::door::{Door, Outcome};
use crate::setup::Setup;

type User = *mut c_void;

/// Declares the table and fills one.
macro_rules! table {
    ($($name:ident = $function:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The table.
        #[repr(C)]
        #[derive(Debug)]
        pub(crate) struct PacketdrillInterface {
            userdata: User,
            $($name: unsafe extern "C" fn(User $(, $argument)*) $(-> $result)?,)*
        }

        const fn table(userdata: User) -> PacketdrillInterface {
            PacketdrillInterface { userdata, $($name: $function,)* }
        }
    };
}

// fcntl and ioctl end in `...`; what they are given there are one int or pointer, which Linux's calling conventions
// (x86-64, AArch64) pass as a named argument.
table! {
    free = free();
    socket = socket(c_int, c_int, c_int) -> c_int;
    bind = bind(c_int, *const sockaddr, socklen_t) -> c_int;
    listen = listen(c_int, c_int) -> c_int;
    accept = accept(c_int, *mut sockaddr, *mut socklen_t) -> c_int;
    connect = connect(c_int, *const sockaddr, socklen_t) -> c_int;
    read = read(c_int, *mut c_void, size_t) -> ssize_t;
    readv = readv(c_int, *const iovec, c_int) -> ssize_t;
    recv = recv(c_int, *mut c_void, size_t, c_int) -> ssize_t;
    recvfrom = recvfrom(c_int, *mut c_void, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t;
    recvmsg = recvmsg(c_int, *mut msghdr, c_int) -> ssize_t;
    write = write(c_int, *const c_void, size_t) -> ssize_t;
    writev = writev(c_int, *const iovec, c_int) -> ssize_t;
    send = send(c_int, *const c_void, size_t, c_int) -> ssize_t;
    sendto = sendto(c_int, *const c_void, size_t, c_int, *const sockaddr, socklen_t) -> ssize_t;
    sendmsg = sendmsg(c_int, *const msghdr, c_int) -> ssize_t;
    fcntl = fcntl(c_int, c_int, c_long) -> c_int;
    ioctl = ioctl(c_int, c_ulong, *mut c_int) -> c_int;
    close = close(c_int) -> c_int;
    shutdown = shutdown(c_int, c_int) -> c_int;
    getsockopt = option(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int;
    setsockopt = set_option(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int;
    poll = poll(*mut pollfd, libc::nfds_t, c_int) -> c_int;
    netdev_send = netdev_send(*const c_void, size_t) -> c_int;
    netdev_receive = netdev_receive(*mut c_void, *mut size_t, *mut c_longlong) -> c_int;
    usleep = usleep(c_uint) -> c_int;
    gettimeofday = gettimeofday(*mut timeval, *mut c_void) -> c_int;
    epoll_create = epoll_create(c_int) -> c_int;
    epoll_ctl = epoll_ctl(c_int, c_int, c_int, *mut epoll_event) -> c_int;
    epoll_wait = epoll_wait(c_int, *mut epoll_event, c_int, c_int) -> c_int;
    pipe = pipe(*mut c_int) -> c_int;
    splice = splice(c_int, *mut i64, c_int, *mut i64, size_t, c_uint) -> c_int;
}

/// Doors that were not freed.
static DOORS: Mutex<Vec<Weak<Door>>> = Mutex::new(Vec::new());

/// Makes a door as the words of `flags` say and fills the table; with words that mean nothing it ends the process.
///
/// # Safety
/// `flags` is null or a string; `interface` has room for the table.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn packetdrill_interface_init(
    flags: *const c_char,
    interface: *mut PacketdrillInterface,
) {
    let words = if flags.is_null() {
        String::new()
    } else {
        // SAFETY: not null, so a string.
        unsafe { CStr::from_ptr(flags) }.to_string_lossy().into_owned()
    };
    let door = Setup::read(&words).and_then(Door::new).unwrap_or_else(|text| {
        eprintln!("acklab-door: {text}");
        std::process::exit(2)
    });
    let door = Arc::new(door);
    let mut doors = DOORS.lock().unwrap_or_else(PoisonError::into_inner);
    doors.retain(|door| door.strong_count() > 0);
    doors.push(Arc::downgrade(&door));
    // SAFETY: the caller has the room.
    unsafe { interface.write(table(Arc::into_raw(door).cast_mut().cast())) };
}

/// getsockopt(2) of the C library where this library is preloaded.
///
/// # Safety
/// As that of the C library.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    let doors = DOORS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = doors.iter().filter_map(Weak::upgrade).find(|door| door.knows(fd));
    drop(doors);
    match known {
        // SAFETY: the door lives until the call is over; the rest is the caller's.
        Some(door) => unsafe {
            option(Arc::as_ptr(&door).cast_mut().cast(), fd, level, name, value, length)
        },
        // SAFETY: the kernel checks what it is given.
        None => unsafe {
            libc::syscall(libc::SYS_getsockopt, fd, level, name, value, length) as c_int
        },
    }
}

unsafe extern "C" fn free(user: User) {
    // SAFETY: `user` is of `packetdrill_interface_init` and is given back once.
    let door = unsafe { Arc::from_raw(user.cast_const().cast::<Door>()) };
    door.close_all();
}

/// The door behind the first argument.
unsafe fn door<'a>(user: User) -> &'a Door {
    // SAFETY: `user` is of `packetdrill_interface_init` and was not freed.
    unsafe { &*user.cast_const().cast::<Door>() }
}

/// The result of a call, its error in `errno`.
fn give(done: Outcome) -> i64 {
    done.unwrap_or_else(|errno| {
        Errno::set_raw(errno);
        -1
    })
}

fn give_int(done: Outcome) -> c_int {
    give(done) as c_int
}

unsafe fn bytes<'a>(at: *const c_void, length: usize) -> &'a [u8] {
    if at.is_null() {
        return &[];
    }
    // SAFETY: not null, so `length` bytes are there.
    unsafe { slice::from_raw_parts(at.cast(), length) }
}

unsafe fn address<'a>(at: *const sockaddr, length: socklen_t) -> &'a [u8] {
    // SAFETY: as `bytes`.
    unsafe { bytes(at.cast(), length as usize) }
}

/// Copies as much as there is room for, and says how long the whole is.
unsafe fn copy_out(from: &[u8], to: *mut c_void, length: *mut socklen_t) {
    if to.is_null() || length.is_null() {
        return;
    }
    // SAFETY: `length` is valid, and `to` for as many bytes as it says.
    unsafe {
        let room = (*length as usize).min(from.len());
        ptr::copy_nonoverlapping(from.as_ptr(), to.cast(), room);
        *length = from.len() as socklen_t;
    }
}

unsafe fn parts<'a>(at: *const iovec, count: usize) -> &'a [iovec] {
    if at.is_null() {
        return &[];
    }
    // SAFETY: not null, so `count` parts are there.
    unsafe { slice::from_raw_parts(at, count) }
}

fn room(parts: &[iovec]) -> usize {
    parts.iter().map(|part| part.iov_len).sum()
}

/// Writes `count` bytes of payload, as every byte of it is.
unsafe fn fill(parts: &[iovec], mut count: usize) {
    for part in parts {
        let here = count.min(part.iov_len);
        if here > 0 && !part.iov_base.is_null() {
            // SAFETY: the part has `iov_len` bytes.
            unsafe { ptr::write_bytes(part.iov_base.cast::<u8>(), b'x', here) };
        }
        count -= here;
    }
}

unsafe extern "C" fn socket(user: User, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: see the head of this file; the same holds below.
    give_int(unsafe { door(user) }.socket(domain, kind, protocol))
}

unsafe extern "C" fn bind(user: User, fd: c_int, at: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: as above.
    give_int(unsafe { door(user).bind(fd, address(at, length)) })
}

unsafe extern "C" fn listen(user: User, fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: as above.
    give_int(unsafe { door(user) }.listen(fd, backlog))
}

unsafe extern "C" fn accept(
    user: User,
    fd: c_int,
    at: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: as above.
    let done = unsafe { door(user) }.accept(fd).map(|(made, peer)| {
        // SAFETY: as above.
        unsafe { copy_out(&peer, at.cast(), length) };
        made
    });
    give_int(done)
}

unsafe extern "C" fn connect(
    user: User,
    fd: c_int,
    at: *const sockaddr,
    length: socklen_t,
) -> c_int {
    // SAFETY: as above.
    give_int(unsafe { door(user).connect(fd, address(at, length)) })
}

unsafe fn receive(user: User, fd: c_int, parts: &[iovec], flags: c_int) -> ssize_t {
    // SAFETY: as above.
    let done = unsafe { door(user) }.receive(fd, room(parts), flags).map(|message| {
        // With MSG_TRUNC bytes are dropped and not copied (tcp(7)).
        if flags & libc::MSG_TRUNC == 0 {
            // SAFETY: as above.
            unsafe { fill(parts, message.bytes as usize) };
        }
        message.bytes
    });
    give(done) as ssize_t
}

unsafe extern "C" fn read(user: User, fd: c_int, at: *mut c_void, count: size_t) -> ssize_t {
    // SAFETY: as above.
    unsafe { receive(user, fd, &[iovec { iov_base: at, iov_len: count }], 0) }
}

unsafe extern "C" fn readv(user: User, fd: c_int, at: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: as above.
    unsafe { receive(user, fd, parts(at, count.max(0) as usize), 0) }
}

unsafe extern "C" fn recv(
    user: User,
    fd: c_int,
    at: *mut c_void,
    count: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above.
    unsafe { receive(user, fd, &[iovec { iov_base: at, iov_len: count }], flags) }
}

unsafe extern "C" fn recvfrom(
    user: User,
    fd: c_int,
    at: *mut c_void,
    count: size_t,
    flags: c_int,
    _from: *mut sockaddr,
    length: *mut socklen_t,
) -> ssize_t {
    if !length.is_null() {
        // A connected socket names no sender.
        // SAFETY: as above.
        unsafe { *length = 0 };
    }
    // SAFETY: as above.
    unsafe { recv(user, fd, at, count, flags) }
}

unsafe extern "C" fn recvmsg(user: User, fd: c_int, at: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: as above.
    let header = unsafe { &mut *at };
    // SAFETY: as above.
    let parts = unsafe { parts(header.msg_iov, header.msg_iovlen) };
    // SAFETY: as above.
    let done = unsafe { door(user) }.receive(fd, room(parts), flags).map(|message| {
        let space = if header.msg_control.is_null() { 0 } else { header.msg_controllen };
        let cut = message.controls.len() > space;
        // A message that does not fit is left out as a whole.
        let controls = if cut { &[][..] } else { &message.controls[..] };
        header.msg_flags = message.flags | if cut { libc::MSG_CTRUNC } else { 0 };
        header.msg_controllen = controls.len();
        header.msg_namelen = 0;
        // SAFETY: `msg_control` has `space` bytes; parts as above.
        unsafe {
            ptr::copy_nonoverlapping(controls.as_ptr(), header.msg_control.cast(), controls.len());
            fill(parts, message.bytes as usize);
        }
        message.bytes
    });
    give(done) as ssize_t
}

fn send_wish(door: &Door, fd: c_int, wish: &Wish<'_>) -> ssize_t {
    give(door.send(fd, wish)) as ssize_t
}

const fn plain<'a>(bytes: usize, flags: c_int) -> Wish<'a> {
    Wish { bytes, buffers: &[], flags, controls: &[], address: &[] }
}

unsafe extern "C" fn write(user: User, fd: c_int, _at: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: as above.
    send_wish(unsafe { door(user) }, fd, &plain(count, 0))
}

unsafe extern "C" fn writev(user: User, fd: c_int, at: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: as above.
    let (door, parts) = unsafe { (door(user), parts(at, count.max(0) as usize)) };
    send_wish(door, fd, &plain(room(parts), 0))
}

unsafe extern "C" fn send(
    user: User,
    fd: c_int,
    _at: *const c_void,
    count: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as above.
    send_wish(unsafe { door(user) }, fd, &plain(count, flags))
}

unsafe extern "C" fn sendto(
    user: User,
    fd: c_int,
    _at: *const c_void,
    count: size_t,
    flags: c_int,
    to: *const sockaddr,
    length: socklen_t,
) -> ssize_t {
    // SAFETY: as above.
    let (door, address) = unsafe { (door(user), address(to, length)) };
    send_wish(door, fd, &Wish { address, ..plain(count, flags) })
}

unsafe extern "C" fn sendmsg(user: User, fd: c_int, at: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: as above.
    let (door, header) = unsafe { (door(user), &*at) };
    // SAFETY: as above.
    let (parts, controls, address) = unsafe {
        (
            parts(header.msg_iov, header.msg_iovlen),
            bytes(header.msg_control, header.msg_controllen),
            bytes(header.msg_name, header.msg_namelen as usize),
        )
    };
    let buffers: Vec<u32> = parts.iter().map(|part| part.iov_len as u32).collect();
    send_wish(door, fd, &Wish { buffers: &buffers, controls, address, ..plain(room(parts), flags) })
}

unsafe extern "C" fn fcntl(user: User, fd: c_int, command: c_int, argument: c_long) -> c_int {
    // SAFETY: as above.
    give_int(unsafe { door(user) }.fcntl(fd, command, argument))
}

unsafe extern "C" fn ioctl(user: User, fd: c_int, request: c_ulong, at: *mut c_int) -> c_int {
    // SAFETY: the requests that are known here take a pointer to an int.
    let argument = if at.is_null() { 0 } else { unsafe { *at } };
    // SAFETY: as above.
    let done = unsafe { door(user) }.ioctl(fd, request, argument).map(|told| {
        if let Some(told) = told
            && !at.is_null()
        {
            // SAFETY: as above.
            unsafe { *at = told };
        }
        0
    });
    give_int(done)
}

unsafe extern "C" fn close(user: User, fd: c_int) -> c_int {
    // SAFETY: as above.
    give_int(unsafe { door(user) }.close(fd))
}

unsafe extern "C" fn shutdown(user: User, fd: c_int, how: c_int) -> c_int {
    // SAFETY: as above.
    give_int(unsafe { door(user) }.shutdown(fd, how))
}

unsafe extern "C" fn option(
    user: User,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: as above.
    let done = unsafe { door(user) }.option(fd, level, name).map(|mut got| {
        if !length.is_null() {
            // SAFETY: as above.
            got.truncate(unsafe { *length } as usize);
        }
        // SAFETY: as above.
        unsafe { copy_out(&got, value, length) };
        0
    });
    give_int(done)
}

unsafe extern "C" fn set_option(
    user: User,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    // SAFETY: as above.
    give_int(unsafe { door(user).set_option(fd, level, name, bytes(value, length as usize)) })
}

unsafe extern "C" fn poll(
    user: User,
    at: *mut pollfd,
    count: libc::nfds_t,
    timeout: c_int,
) -> c_int {
    let fds = if at.is_null() {
        &mut []
    } else {
        // SAFETY: not null, so `count` entries are there.
        unsafe { slice::from_raw_parts_mut(at, count as usize) }
    };
    let asked: Vec<_> = fds.iter().map(|one| (one.fd, u32::from(one.events as u16))).collect();
    // SAFETY: as above.
    let done = unsafe { door(user) }.poll(&asked, timeout).map(|found| {
        for (one, mask) in fds.iter_mut().zip(&found) {
            one.revents = *mask as i16;
        }
        found.iter().filter(|&&mask| mask != 0).count() as i64
    });
    give_int(done)
}

unsafe extern "C" fn netdev_send(user: User, at: *const c_void, count: size_t) -> c_int {
    // SAFETY: as above.
    give_int(unsafe { door(user).inject(bytes(at, count)) })
}

/// Without a packet that will ever come it gives none, and packetdrill tells so.
unsafe extern "C" fn netdev_receive(
    user: User,
    at: *mut c_void,
    count: *mut size_t,
    us: *mut c_longlong,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let room = *count;
        *count = 0;
        if let Some((time, packet)) = door(user).sniff(room) {
            *count = packet.len().min(room);
            *us = time as c_longlong;
            ptr::copy_nonoverlapping(packet.as_ptr(), at.cast(), *count);
        }
    }
    0
}

unsafe extern "C" fn usleep(user: User, us: c_uint) -> c_int {
    // SAFETY: as above.
    unsafe { door(user) }.usleep(u64::from(us));
    0
}

unsafe extern "C" fn gettimeofday(user: User, at: *mut timeval, _zone: *mut c_void) -> c_int {
    // SAFETY: as above.
    let now = unsafe { door(user) }.time();
    if !at.is_null() {
        let time = timeval {
            tv_sec: (now / 1_000_000) as time_t,
            tv_usec: (now % 1_000_000) as suseconds_t,
        };
        // SAFETY: as above.
        unsafe { at.write(time) };
    }
    0
}

unsafe extern "C" fn epoll_create(user: User, size: c_int) -> c_int {
    let done = if size > 0 {
        // SAFETY: as above.
        unsafe { door(user) }.epoll_create()
    } else {
        Err(libc::EINVAL)
    };
    give_int(done)
}

unsafe extern "C" fn epoll_ctl(
    user: User,
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    at: *mut epoll_event,
) -> c_int {
    // SAFETY: as above; deleting needs no event.
    let event = if at.is_null() { (0, 0) } else { unsafe { ((*at).events, (*at).u64) } };
    // SAFETY: as above.
    give_int(unsafe { door(user) }.epoll_ctl(epoll, operation, fd, event))
}

unsafe extern "C" fn epoll_wait(
    user: User,
    epoll: c_int,
    at: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    if most <= 0 {
        return give_int(Err(libc::EINVAL));
    }
    // SAFETY: as above.
    let done = unsafe { door(user) }.epoll_wait(epoll, most as usize, timeout).map(|found| {
        for (index, (events, u64)) in found.iter().copied().enumerate() {
            // SAFETY: `at` has `most` entries, and not more were found.
            unsafe { at.add(index).write_unaligned(epoll_event { events, u64 }) };
        }
        found.len() as i64
    });
    give_int(done)
}

unsafe extern "C" fn pipe(user: User, at: *mut c_int) -> c_int {
    // SAFETY: as above.
    let done = unsafe { door(user) }.pipe().map(|ends| {
        // SAFETY: `at` has two entries.
        unsafe { at.cast::<[c_int; 2]>().write(ends) };
        0
    });
    give_int(done)
}

unsafe extern "C" fn splice(
    user: User,
    from: c_int,
    _from_offset: *mut i64,
    to: c_int,
    _to_offset: *mut i64,
    most: size_t,
    _flags: c_uint,
) -> c_int {
    // SAFETY: as above.
    give_int(unsafe { door(user) }.splice(from, to, most))
}

//! The system calls of this crate that no crate of ours wraps without `unsafe`, and all its `unsafe` code: a packet
//! socket with its ring in shared memory (packet(7)), `bpf(2)`, `pidfd_getfd(2)`, and socket options by number.
//!
//! Every function checks what the kernel says and hands out values that own what they stand for.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use nix::libc;

/// Turns -1 into the error that the system call left.
fn checked(result: impl TryInto<i64>) -> io::Result<i64> {
    match result.try_into() {
        Ok(value) if value >= 0 => Ok(value),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The descriptor that a system call gave us.
fn owned(result: impl TryInto<i64>) -> io::Result<OwnedFd> {
    let raw = checked(result)?;
    // SAFETY: the kernel has just made this descriptor for us, and no other value holds it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw as RawFd) })
}

/// Sets an option whose value is `bytes` as the kernel's structure has them.
pub(crate) fn set_option(socket: impl AsFd, level: i32, name: i32, bytes: &[u8]) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open and the kernel reads `bytes`, which live until the call returns.
    let result = unsafe {
        libc::setsockopt(fd, level, name, bytes.as_ptr().cast(), bytes.len() as libc::socklen_t)
    };
    checked(result).map(drop)
}

/// Reads an option into as many bytes as `N`; those that the kernel does not fill are 0.
pub(crate) fn option<const N: usize>(
    socket: impl AsFd,
    level: i32,
    name: i32,
) -> io::Result<[u8; N]> {
    let (fd, mut bytes) = (socket.as_fd().as_raw_fd(), [0; N]);
    let mut length = N as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes, which `bytes` has.
    let result =
        unsafe { libc::getsockopt(fd, level, name, bytes.as_mut_ptr().cast(), &raw mut length) };
    checked(result).map(|_| bytes)
}

/// A whole number as an option's value.
pub(crate) fn set_number(socket: impl AsFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_option(socket, level, name, &value.to_ne_bytes())
}

/// An option whose value is a whole number.
pub(crate) fn number(socket: impl AsFd, level: i32, name: i32) -> io::Result<i32> {
    option(socket, level, name).map(i32::from_ne_bytes)
}

/// One instruction of classic BPF, `struct sock_filter`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilterStep {
    pub(crate) code: u16,
    pub(crate) if_true: u8,
    pub(crate) if_false: u8,
    pub(crate) k: u32,
}

/// Has the kernel drop, or cut to a length, what the filter says (`SO_ATTACH_FILTER`).
pub(crate) fn attach_filter(socket: impl AsFd, filter: &[FilterStep]) -> io::Result<()> {
    let program =
        libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut().cast() };
    let (fd, length) = (socket.as_fd().as_raw_fd(), size_of::<libc::sock_fprog>());
    // SAFETY: `sock_fprog` points at `len` instructions of the kernel's layout, which the kernel copies and does
    // not write; both live until the call returns.
    let result = unsafe {
        libc::setsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            length as libc::socklen_t,
        )
    };
    checked(result).map(drop)
}

/// Has the packet socket hear every protocol on every interface from now on.
pub(crate) fn bind_to_all(socket: impl AsFd) -> io::Result<()> {
    // SAFETY: all zeros are a value of this structure of numbers.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    let (fd, length) = (socket.as_fd().as_raw_fd(), size_of::<libc::sockaddr_ll>());
    // SAFETY: the kernel reads `length` bytes of `address`, which has them.
    let result = unsafe { libc::bind(fd, (&raw const address).cast(), length as libc::socklen_t) };
    checked(result).map(drop)
}

/// Memory shared with the kernel: whole blocks, each of which belongs to one of the two at a time.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<c_void>,
    length: usize,
}

// SAFETY: the memory is not tied to a thread, and all access goes through `&self` to atomics or to what the kernel
// has handed over.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the ring of a packet socket that has one of `length` bytes.
    pub(crate) fn of_ring(socket: impl AsFd, length: usize) -> io::Result<Self> {
        let fd = socket.as_fd().as_raw_fd();
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice; nothing else is there.
        let base = unsafe { libc::mmap(ptr::null_mut(), length, access, kind, fd, 0) };
        match NonNull::new(base) {
            Some(base) if base.as_ptr() != libc::MAP_FAILED => Ok(Self { base, length }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The word at `offset`, which both sides read and write; a multiple of 4 within the mapping.
    pub(crate) fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.length);
        // SAFETY: within the mapping and aligned, as just checked (the base is aligned to a page); the mapping lives
        // as long as `self`, and atomics may be written by others.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().cast::<u8>().add(offset).cast()) }
    }

    /// The bytes of a block. The caller has seen that the block is ours (its status word, read with acquire order) and
    /// drops the slice before it gives the block back.
    pub(crate) fn block(&self, offset: usize, length: usize) -> &[u8] {
        assert!(offset.checked_add(length).is_some_and(|end| end <= self.length));
        // SAFETY: within the mapping; the kernel does not write to a block that is ours.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast::<u8>().add(offset), length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by `mmap` with this length, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr(), self.length) };
    }
}

/// A descriptor that stands for the process.
pub(crate) fn open_process(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

/// A copy of the descriptor `fd` of another process; needs the right to trace it (ptrace(2)).
pub(crate) fn copy_descriptor(process: impl AsFd, fd: RawFd) -> io::Result<OwnedFd> {
    let process = process.as_fd().as_raw_fd();
    // SAFETY: the call takes three numbers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process, fd, 0) })
}

/// `bpf(2)` with an attribute of the kernel's layout.
///
/// # Safety
/// Addresses within `attribute` must be of memory that is as long as the command takes it to be, is ours to be written
/// where the command writes, and lives until the call returns.
unsafe fn bpf(command: i32, attribute: &mut [u8]) -> io::Result<i64> {
    let (address, length) = (attribute.as_mut_ptr(), attribute.len());
    // SAFETY: the kernel reads and writes `attribute`, which is `length` bytes; the rest is the caller's promise.
    checked(unsafe { libc::syscall(libc::SYS_bpf, command, address, length) })
}

/// `union bpf_attr` as far as the commands here use it.
const ATTRIBUTE: usize = 128;
const BPF_PROG_LOAD: i32 = 5;
const BPF_PROG_ATTACH: i32 = 8;
const BPF_PROG_DETACH: i32 = 9;
const BPF_PROG_GET_FD_BY_ID: i32 = 13;
const BPF_OBJ_GET_INFO_BY_FD: i32 = 15;
const BPF_PROG_QUERY: i32 = 16;
const BPF_PROG_TYPE_SOCK_OPS: u32 = 13;
const BPF_CGROUP_SOCK_OPS: u32 = 3;
/// Other programs on the same cgroup keep running.
const BPF_F_ALLOW_MULTI: u32 = 2;

fn put(attribute: &mut [u8], offset: usize, bytes: &[u8]) {
    attribute[offset..offset + bytes.len()].copy_from_slice(bytes);
}

fn word_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_ne_bytes([0, 1, 2, 3].map(|i| bytes[offset + i]))
}

/// Loads a `sock_ops` program; what the verifier has against it is in the error. `name` has at most 15 bytes.
pub(crate) fn load_sock_ops(
    instructions: &[u64],
    name: &str,
    licence: &std::ffi::CStr,
) -> io::Result<OwnedFd> {
    let mut log = vec![0u8; 1 << 16];
    let mut attribute = [0; ATTRIBUTE];
    put(&mut attribute, 0, &BPF_PROG_TYPE_SOCK_OPS.to_ne_bytes());
    put(&mut attribute, 4, &(instructions.len() as u32).to_ne_bytes());
    put(&mut attribute, 8, &(instructions.as_ptr() as u64).to_ne_bytes());
    put(&mut attribute, 16, &(licence.as_ptr() as u64).to_ne_bytes());
    put(&mut attribute, 24, &1u32.to_ne_bytes());
    put(&mut attribute, 28, &(log.len() as u32).to_ne_bytes());
    put(&mut attribute, 32, &(log.as_mut_ptr() as u64).to_ne_bytes());
    put(&mut attribute, 48, &name.as_bytes()[..name.len().min(15)]);
    put(&mut attribute, 68, &BPF_CGROUP_SOCK_OPS.to_ne_bytes());
    // SAFETY: instructions, licence (ended by a zero) and log are as long as the attribute says; the kernel writes the
    // log alone.
    let loaded = unsafe { bpf(BPF_PROG_LOAD, &mut attribute) };
    loaded.and_then(owned).map_err(|error| {
        let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
        let said = String::from_utf8_lossy(&log[..end]);
        if said.is_empty() {
            error
        } else {
            io::Error::new(error.kind(), format!("{error}: {said}"))
        }
    })
}

/// Attaches a `sock_ops` program to a cgroup beside those that are there; it stays until it is detached or the
/// cgroup is gone, whatever becomes of this process.
pub(crate) fn attach_to_cgroup(cgroup: impl AsFd, program: impl AsFd) -> io::Result<()> {
    change_cgroup(BPF_PROG_ATTACH, cgroup, program, BPF_F_ALLOW_MULTI)
}

/// Takes it away again.
pub(crate) fn detach_from_cgroup(cgroup: impl AsFd, program: impl AsFd) -> io::Result<()> {
    change_cgroup(BPF_PROG_DETACH, cgroup, program, 0)
}

fn change_cgroup(
    command: i32,
    cgroup: impl AsFd,
    program: impl AsFd,
    flags: u32,
) -> io::Result<()> {
    let mut attribute = [0; ATTRIBUTE];
    put(&mut attribute, 0, &cgroup.as_fd().as_raw_fd().to_ne_bytes());
    put(&mut attribute, 4, &program.as_fd().as_raw_fd().to_ne_bytes());
    put(&mut attribute, 8, &BPF_CGROUP_SOCK_OPS.to_ne_bytes());
    put(&mut attribute, 12, &flags.to_ne_bytes());
    // SAFETY: the command takes numbers alone.
    unsafe { bpf(command, &mut attribute) }.map(drop)
}

/// The numbers of the `sock_ops` programs that are attached to the cgroup itself.
pub(crate) fn programs_of_cgroup(cgroup: impl AsFd) -> io::Result<Vec<u32>> {
    let mut numbers = [0u32; 64];
    let mut attribute = [0; ATTRIBUTE];
    put(&mut attribute, 0, &cgroup.as_fd().as_raw_fd().to_ne_bytes());
    put(&mut attribute, 4, &BPF_CGROUP_SOCK_OPS.to_ne_bytes());
    put(&mut attribute, 16, &(numbers.as_mut_ptr() as u64).to_ne_bytes());
    put(&mut attribute, 24, &(numbers.len() as u32).to_ne_bytes());
    // SAFETY: the kernel writes at most as many numbers as the attribute says, which `numbers` has.
    unsafe { bpf(BPF_PROG_QUERY, &mut attribute) }?;
    let count = word_at(&attribute, 24) as usize;
    Ok(numbers[..count.min(numbers.len())].to_vec())
}

/// The loaded program with that number, and its name.
pub(crate) fn program(number: u32) -> io::Result<(OwnedFd, String)> {
    let mut attribute = [0; ATTRIBUTE];
    put(&mut attribute, 0, &number.to_ne_bytes());
    // SAFETY: the command takes a number alone.
    let program = owned(unsafe { bpf(BPF_PROG_GET_FD_BY_ID, &mut attribute) }?)?;
    // `struct bpf_prog_info`: the name is at 64, 16 bytes; older kernels fill in less than this.
    let mut info = [0u8; 80];
    let mut attribute = [0; ATTRIBUTE];
    put(&mut attribute, 0, &program.as_raw_fd().to_ne_bytes());
    put(&mut attribute, 4, &(info.len() as u32).to_ne_bytes());
    put(&mut attribute, 8, &(info.as_mut_ptr() as u64).to_ne_bytes());
    // SAFETY: the kernel writes at most as many bytes as the attribute says, which `info` has.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attribute) }?;
    let name = &info[64..80];
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    Ok((program, String::from_utf8_lossy(&name[..end]).into_owned()))
}

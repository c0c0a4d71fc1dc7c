//! The two system calls that no crate of ours wraps without `unsafe`, and the only `unsafe` code here:
//! `TUNSETIFF`, which gives a TUN device its name, and `sched_setscheduler(2)`.
//!
//! Kernel documentation networking/tuntap; sched(7). Everything else about the device (address, up,
//! length of its queue) goes over rtnetlink in [`crate::namespace`].

#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::libc;

/// `IFF_TUN | IFF_NO_PI`, linux/if_tun.h: IP packets, nothing in front of them.
pub(crate) const TUN: libc::c_short = 0x0001 | 0x1000;
/// The same with `IFF_VNET_HDR`: behind a virtio header that tells of bursts.
pub const TUN_WITH_BURSTS: libc::c_short = TUN | 0x4000;

/// `struct ifreq` as far as `TUNSETIFF` reads it: 40 bytes on every 64-bit Linux.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    unread: [u8; 22],
}

nix::ioctl_write_ptr_bad!(
    /// Makes or attaches to the named device.
    tun_set_interface,
    nix::request_code_write!(b'T', 202, size_of::<libc::c_int>()),
    InterfaceRequest
);

/// Makes the TUN device `name` in the calling thread's namespace and returns it with the name that it has,
/// where a `%d` in `name` became the first free number; it is gone when the file is closed, however the
/// process ends. Reads and writes never block. `flags` are those of linux/if_tun.h. Needs `CAP_NET_ADMIN`.
pub fn open_tun(name: &str, flags: libc::c_short) -> io::Result<(File, String)> {
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")?;
    let mut request = InterfaceRequest { name: [0; libc::IFNAMSIZ], flags, unread: [0; 22] };
    // One byte less than the field: the name ends with a zero.
    let length = name.len().min(libc::IFNAMSIZ - 1);
    request.name[..length].copy_from_slice(&name.as_bytes()[..length]);
    // SAFETY: the descriptor is open, and the kernel reads and writes `struct ifreq`, 40 bytes, which is
    // what `request` has, is ours to be written, and lives until the call returns.
    unsafe { tun_set_interface(device.as_raw_fd(), (&raw mut request).cast_const()) }?;
    let end = request.name.iter().position(|&byte| byte == 0).unwrap_or(libc::IFNAMSIZ);
    Ok((device, String::from_utf8_lossy(&request.name[..end]).into_owned()))
}

/// Puts the calling thread under SCHED_FIFO at `priority`, and what it might start under the usual
/// scheduler. Needs `CAP_SYS_NICE`.
pub fn schedule_first_in_first_out(priority: i32) -> Result<(), Errno> {
    let parameters = libc::sched_param { sched_priority: priority };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: thread 0 is the calling one, and the kernel only reads `parameters`, which lives until
    // the call returns.
    Errno::result(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_has_the_size_of_the_kernels_struct() {
        assert_eq!(size_of::<InterfaceRequest>(), size_of::<libc::ifreq>());
    }
}

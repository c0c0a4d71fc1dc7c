//! `TCP_INFO` of a socket (tcp(7)): the one call here that no crate of ours wraps without `unsafe`.

#![allow(unsafe_code)]

use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;
use nix::libc;

/// What the kernel tells of a connection.
pub(crate) fn read(socket: impl AsFd) -> Result<libc::tcp_info, Errno> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = mem::size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the descriptor is borrowed for the call; the kernel writes at most `length` bytes to `info`,
    // which has them. Every bit pattern, zeros included, is a value of `tcp_info`.
    unsafe {
        Errno::result(libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        ))?;
        Ok(info.assume_init())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_has_a_congestion_window_and_a_pipe_has_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(read(&client).unwrap().tcpi_snd_cwnd >= 1);
        let (end, _other) = std::io::pipe().unwrap();
        assert_eq!(read(&end).map(|info| info.tcpi_state), Err(Errno::ENOTSOCK));
    }
}

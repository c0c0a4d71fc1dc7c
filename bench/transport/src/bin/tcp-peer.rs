//! The kernel's TCP as a peer: sends bytes from memory and waits until the other end says that it has
//! them all. Neither encrypted nor authenticated.
//!
//!     tcp-peer recv ADDR:PORT                  one transfer
//!     tcp-peer send ADDR:PORT BYTES bbr|cubic

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

use acklab_bench_transport::{CHUNK, say};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt,
};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["recv", address] => receive(address.parse()?),
        ["send", address, bytes, control] => send(address.parse()?, bytes.parse()?, control),
        _ => Err("usage: tcp-peer recv ADDR | send ADDR BYTES bbr|cubic".into()),
    }
}

fn receive(address: SocketAddr) -> Outcome {
    let (mut stream, _) = TcpListener::bind(address)?.accept()?;
    let mut buffer = vec![0; CHUNK];
    let mut total = 0u64;
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            length => total += length as u64,
        }
    }
    stream.write_all(&total.to_be_bytes())?;
    Ok(())
}

fn send(address: SocketAddr, bytes: u64, control: &str) -> Outcome {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket: OwnedFd = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::TcpCongestion, &OsString::from(control))?;
    let block = vec![0x5a; CHUNK];

    let start = Instant::now();
    connect(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
    let mut stream = TcpStream::from(socket);
    let mut left = bytes;
    while left > 0 {
        let now = block.len().min(usize::try_from(left)?);
        stream.write_all(&block[..now])?;
        left -= now as u64;
    }
    stream.shutdown(Shutdown::Write)?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer)?;
    say(u64::from_be_bytes(answer), bytes, start.elapsed())
}

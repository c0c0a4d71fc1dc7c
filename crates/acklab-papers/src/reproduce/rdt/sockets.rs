//! The course protocol on UDP sockets: the same machines, with bytes and a clock (Linux).
//!
//! One thread waits in `ppoll(2)` for a packet or the machine's next deadline. Both ends know the file,
//! whose contents follow from the offset ([`super::today::byte`]), so that the receiver can say whether every
//! byte is right.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use acklab_core::time::{Span, Time};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use serde_json::{Value, json};

use super::protocol::{
    Arrival, Header, PAYLOAD, PORT, Receiver, Sender, Settings, Stage, chunks, packet,
};
use super::today::byte;
use acklab_net::emulate::Quantiles;

/// Sends the file to the first of `remotes`, or over the paths to both, and says what happened.
///
/// After [`END`] an end packet without an answer is not waited for any more: that is not part of the time.
#[expect(clippy::disallowed_methods, reason = "the clock of the real world is read here alone")]
pub fn send(settings: Settings, size: usize, remotes: &[Ipv4Addr]) -> io::Result<Value> {
    let socket = socket()?;
    let began = Instant::now();
    let now = || Time::from_nanos(began.elapsed().as_nanos() as u64);
    let mut sender = Sender::new(now(), settings);
    let (mut sent, mut acks, mut log) = (0_u64, 0_u64, Vec::new());
    let mut buffer = [0; 2048];
    let mut late = Quantiles::default();
    loop {
        // Deadlines that passed while it slept; after a packet there may be none.
        if let Some(due) = sender.poll_timeout().filter(|due| *due <= now()) {
            late.record(now().since(due));
        }
        sender.handle_timeout(now());
        while let Some((header, path)) = sender.poll_transmit(now()) {
            sent += u64::from(header != Header::END);
            if log.len() < LOG {
                log.push((path, header.seq));
            }
            transmit(&socket, &packet::encode(header, &payload(header, size)), remotes[path])?;
        }
        match sender.stage() {
            Stage::Over { .. } => break,
            Stage::Ending(delivered) if now().since(delivered) > END => break,
            Stage::Sending | Stage::Ending(_) => {}
        }
        wait(&socket, sender.poll_timeout().map(|at| at.since(now())))?;
        while let Some((length, _)) = receive(&socket, &mut buffer)? {
            if let Some((header, ..)) = packet::decode(&buffer[..length]) {
                acks += u64::from(header != Header::END);
                sender.handle_packet(now(), header);
            }
        }
    }
    let (delivered, answered) = match sender.stage() {
        Stage::Over { delivered, answered, .. } => (delivered, answered),
        Stage::Ending(delivered) => (delivered, false),
        Stage::Sending => return Err(io::Error::other("the file was not delivered")),
    };
    Ok(json!({
        "seconds": delivered.as_secs_f64(),
        "end_answered": answered,
        "sent": sent,
        "acks": acks,
        "log": log,
        "woke_late_p99_us": late.quantile(0.99).as_micros_f64(),
    }))
}

/// Receives the file and says whether it is whole.
pub fn take(size: usize) -> io::Result<Value> {
    let chunks = chunks(size).ok_or_else(|| io::Error::other("a file of too many packets"))?;
    let socket = socket()?;
    let mut receiver = Receiver::new(chunks);
    let mut right = true;
    let mut buffer = [0; 2048];
    while !receiver.is_over() {
        wait(&socket, None)?;
        while let Some((length, from)) = receive(&socket, &mut buffer)? {
            let Some((header, bytes, intact)) = packet::decode(&buffer[..length]) else { continue };
            let (arrival, answer) = receiver.handle_packet(header, intact);
            if let Arrival::New(_) = arrival {
                right &= bytes == payload(header, size);
            }
            if let (Some(answer), SocketAddr::V4(from)) = (answer, from) {
                transmit(&socket, &packet::encode(answer, &[]), *from.ip())?;
            }
        }
    }
    Ok(json!({ "whole": right && receiver.is_complete() }))
}

fn socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The data of a packet: none in the end packet.
fn payload(header: Header, size: usize) -> Vec<u8> {
    let Some(index) = header.seq.checked_sub(1) else { return Vec::new() };
    let from = usize::from(index) * PAYLOAD;
    (from..(from + PAYLOAD).min(size)).map(byte).collect()
}

/// Whatever the network does not take is lost, as elsewhere on the way.
fn transmit(socket: &UdpSocket, bytes: &[u8], to: Ipv4Addr) -> io::Result<()> {
    match socket.send_to(bytes, (to, PORT)) {
        Err(error) if !is_passing(&error) => Err(error),
        _ => Ok(()),
    }
}

fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
    match socket.recv_from(buffer) {
        Ok(received) => Ok(Some(received)),
        Err(error) if is_passing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Nothing there, no room, or a peer that has gone: the protocol does not look at any of them.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionRefused)
        || error.raw_os_error() == Some(nix::libc::ENOBUFS)
}

/// Until a packet is there, at most so long.
fn wait(socket: &UdpSocket, at_most: Option<Span>) -> io::Result<()> {
    let limit = at_most.map(|span| TimeSpec::from(Duration::from_nanos(span.as_nanos())));
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    match ppoll(&mut polled, limit, None) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// An end packet is sent again for so long.
const END: Span = Span::from_secs(1);
/// So many packets are written down.
const LOG: usize = 64;

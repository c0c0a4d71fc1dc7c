//! Frames from the kernel without a system call per frame: an `AF_PACKET` socket with a ring of blocks in shared memory
//! (`TPACKET_V3`, packet(7) and Documentation/networking/packet_mmap.rst).
//!
//! The kernel copies the first bytes of each frame into a block and hands the block over when it is full or
//! [`BLOCK_MILLIS`] old. It never waits for the reader: when all blocks are full, frames are dropped here and counted,
//! and the traffic itself goes on. Frames begin with the IP header, whatever the link (`SOCK_DGRAM`), and carry the
//! time at which the kernel put them into the ring. Left out: who sent them on which interface.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use acklab_core::time::Time;
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::filter;
use crate::kernel::{self, Mapping};

/// A frame in the ring.
pub(crate) struct RingFrame<'a> {
    /// Since the epoch.
    pub(crate) time: Time,
    /// From the IP header on, bytes.
    pub(crate) original_len: u32,
    /// The first of them.
    pub(crate) bytes: &'a [u8],
}

/// The listening socket and its ring.
#[derive(Debug)]
pub(crate) struct Ring {
    // Dropped first: the ring belongs to the socket.
    memory: Mapping,
    socket: OwnedFd,
    /// The block that the kernel hands over next.
    next: usize,
    dropped: u64,
}

impl Ring {
    /// Hears the TCP of the calling thread's namespace, or of one port of it; needs `CAP_NET_RAW`.
    pub(crate) fn open(port: Option<u16>) -> io::Result<Self> {
        let socket = nix::sys::socket::socket(
            nix::sys::socket::AddressFamily::Packet,
            nix::sys::socket::SockType::Datagram,
            nix::sys::socket::SockFlag::SOCK_CLOEXEC,
            None,
        )?;
        // Filter and ring are there before the first frame is.
        kernel::attach_filter(&socket, &filter::program(port, KEPT_BYTES))?;
        kernel::set_number(&socket, libc::SOL_PACKET, PACKET_VERSION, TPACKET_V3)?;
        let frames = BLOCK_BYTES / FRAME_BYTES * BLOCKS;
        let request = [BLOCK_BYTES, BLOCKS, FRAME_BYTES, frames, BLOCK_MILLIS, 0, 0];
        let request: Vec<u8> = request.iter().flat_map(|n| (*n as u32).to_ne_bytes()).collect();
        kernel::set_option(&socket, libc::SOL_PACKET, PACKET_RX_RING, &request)?;
        let memory = Mapping::of_ring(&socket, BLOCK_BYTES * BLOCKS)?;
        kernel::bind_to_all(&socket)?;
        Ok(Self { memory, socket, next: 0, dropped: 0 })
    }

    /// Waits until a block is ready, but no longer than `millis` or until a signal comes.
    pub(crate) fn wait(&self, millis: u16) -> io::Result<()> {
        if self.is_ready() {
            return Ok(());
        }
        let mut sockets = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut sockets, PollTimeout::from(millis)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Calls `on_frame` for each frame of the next block, in order of time; false if no block is ready.
    pub(crate) fn take_block(&mut self, mut on_frame: impl FnMut(&RingFrame<'_>)) -> bool {
        if !self.is_ready() {
            return false;
        }
        let block = self.memory.block(self.next * BLOCK_BYTES, BLOCK_BYTES);
        // Two processors may put their frames in the other order than they stamped them.
        let mut frames = frames_of(block);
        frames.sort_by_key(|frame| frame.time);
        frames.iter().for_each(&mut on_frame);
        drop(frames);
        self.status().store(TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
        true
    }

    /// Frames dropped so far because the ring was full.
    pub(crate) fn dropped(&mut self) -> u64 {
        // `struct tpacket_stats_v3`: packets, drops, freezes; reading them sets them to 0.
        let counts: io::Result<[u8; 12]> =
            kernel::option(&self.socket, libc::SOL_PACKET, PACKET_STATISTICS);
        self.dropped += counts.map_or(0, |counts| u64::from(word(&counts, 4).unwrap_or(0)));
        self.dropped
    }

    fn status(&self) -> &std::sync::atomic::AtomicU32 {
        self.memory.word(self.next * BLOCK_BYTES + BLOCK_STATUS)
    }

    fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & TP_STATUS_USER != 0
    }
}

/// The frames of a block. Offsets that point elsewhere end it: what is shared is not trusted.
fn frames_of(block: &[u8]) -> Vec<RingFrame<'_>> {
    let count = word(block, 12).unwrap_or(0) as usize;
    let mut at = word(block, 16).unwrap_or(0) as usize;
    let mut frames = Vec::with_capacity(count.min(BLOCK_BYTES / FRAME_LEAST));
    for _ in 0..count {
        let Some((frame, step)) = frame_at(block, at) else { break };
        frames.push(frame);
        if step == 0 {
            break;
        }
        at += step;
    }
    frames
}

/// The frame whose `struct tpacket3_hdr` is there, and how far away the next is.
fn frame_at(block: &[u8], at: usize) -> Option<(RingFrame<'_>, usize)> {
    let header = block.get(at..at.checked_add(FRAME_LEAST)?)?;
    let field = |offset| word(header, offset);
    let (seconds, nanos) = (u64::from(field(4)?), u64::from(field(8)?));
    let begin = usize::from(u16::from_ne_bytes([header[26], header[27]]));
    let end = begin + field(12)? as usize;
    let bytes = block.get(at..)?.get(begin..end)?;
    let time = Time::from_nanos(seconds * 1_000_000_000 + nanos);
    Some((RingFrame { time, original_len: field(16)?, bytes }, field(0)? as usize))
}

fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..offset + 4)?;
    Some(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// linux/if_packet.h.
const PACKET_RX_RING: i32 = 5;
const PACKET_STATISTICS: i32 = 6;
const PACKET_VERSION: i32 = 10;
const TPACKET_V3: i32 = 2;
const TP_STATUS_KERNEL: u32 = 0;
const TP_STATUS_USER: u32 = 1;
/// Of `block_status` in `struct tpacket_block_desc`.
const BLOCK_STATUS: usize = 8;
/// `sizeof(struct tpacket3_hdr)`.
const FRAME_LEAST: usize = 48;
/// Both headers with all options, and some payload for the framing of protocols.
const KEPT_BYTES: u32 = 192;
/// 16 MiB: some 50,000 frames, half a second at 100,000 a second.
const BLOCK_BYTES: usize = 1 << 18;
const BLOCKS: usize = 64;
/// The least that a frame may need; blocks are filled densely, so only the ring's arithmetic uses it.
const FRAME_BYTES: usize = 512;
/// A block is handed over when it is this old: ten times a second at most where little happens.
const BLOCK_MILLIS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    /// A block with frames of that many bytes each, stamped 3, 2, 1 ... ns.
    fn block(lengths: &[usize]) -> Vec<u8> {
        let mut block = vec![0u8; 48];
        block[12..16].copy_from_slice(&(lengths.len() as u32).to_ne_bytes());
        block[16..20].copy_from_slice(&48u32.to_ne_bytes());
        for (index, length) in lengths.iter().enumerate() {
            let mut frame = vec![0u8; 64 + length];
            let next = if index + 1 == lengths.len() { 0 } else { frame.len() as u32 };
            frame[0..4].copy_from_slice(&next.to_ne_bytes());
            frame[8..12].copy_from_slice(&((lengths.len() - index) as u32).to_ne_bytes());
            frame[12..16].copy_from_slice(&(*length as u32).to_ne_bytes());
            frame[16..20].copy_from_slice(&1500u32.to_ne_bytes());
            frame[26..28].copy_from_slice(&64u16.to_ne_bytes());
            block.extend(frame);
        }
        block
    }

    #[test]
    fn frames_are_found_one_behind_the_other() {
        let block = block(&[40, 0, 192]);
        let frames = frames_of(&block);
        let seen: Vec<_> =
            frames.iter().map(|f| (f.time.as_nanos(), f.bytes.len(), f.original_len)).collect();
        assert_eq!(seen, [(3, 40, 1500), (2, 0, 1500), (1, 192, 1500)]);
    }

    #[test]
    fn a_block_that_points_out_of_itself_ends_there() {
        let whole = block(&[40, 40]);
        for at in (0..whole.len()).step_by(2) {
            for value in [0u8, 0xff] {
                let mut damaged = whole.clone();
                damaged[at..(at + 2).min(whole.len())].fill(value);
                assert!(frames_of(&damaged).len() <= whole.len());
                assert!(frames_of(&damaged[..at]).len() <= 2);
            }
        }
    }
}

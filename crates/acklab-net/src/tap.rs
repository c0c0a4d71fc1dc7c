//! An `AF_PACKET` socket that hears every frame of its namespace, with kernel time stamps.
//!
//! packet(7) and socket(7). Each loopback frame passes the tap twice, leaving and arriving; only
//! the arriving copy is kept where [`Frames::Arriving`] are asked for, as libpcap does. `SO_TIMESTAMPNS` gives the time the kernel saw the
//! frame, so that a late reader does not bend the measurement; `SO_RXQ_OVFL` tells of frames that
//! the socket's buffer had no room for.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};

use acklab_core::time::Time;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType,
    recvmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeVal};

/// Larger than the largest frame that loopback carries (64 KiB and the Ethernet header).
const LARGEST_FRAME: usize = 1 << 17;
/// Kernel memory for frames not yet read, bytes.
const BUFFER_BYTES: usize = 8 << 20;
/// How long one [`Tap::poll_frame`] waits, microseconds.
const POLL_MICROS: i64 = 100_000;
/// `PACKET_OUTGOING`, linux/if_packet.h.
const PACKET_OUTGOING: u8 = 4;

/// Which frames are heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// Those that arrive: on loopback every frame once.
    Arriving,
    /// Those that leave, too.
    Both,
}

/// The listening socket and its frame buffer.
#[derive(Debug)]
pub struct Tap {
    frames: Frames,
    socket: OwnedFd,
    buffer: Vec<u8>,
    lost: u32,
}

impl Tap {
    /// Opens the tap in the calling thread's namespace; needs `CAP_NET_RAW`.
    pub fn open(frames: Frames) -> Result<Self, Errno> {
        let socket = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::EthAll,
        )?;
        setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(0, POLL_MICROS))?;
        Ok(Self { frames, socket, buffer: vec![0; LARGEST_FRAME], lost: 0 })
    }

    /// The next frame and its time since the epoch; `None` when a tenth of a second
    /// brought nothing.
    pub fn poll_frame(&mut self) -> Result<Option<(Time, &[u8])>, Errno> {
        loop {
            match self.receive() {
                Ok(Some((time, length))) => return Ok(Some((time, &self.buffer[..length]))),
                Ok(None) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Frames that passed while the buffer was full.
    pub const fn lost_frames(&self) -> u32 {
        self.lost
    }

    /// One frame into the buffer; `None` for a leaving one that is not wanted.
    fn receive(&mut self) -> Result<Option<(Time, usize)>, Errno> {
        let mut control = cmsg_space!(TimeSpec, u32);
        let mut parts = [IoSliceMut::new(&mut self.buffer)];
        let message = recvmsg::<LinkAddr>(
            self.socket.as_raw_fd(),
            &mut parts,
            Some(&mut control),
            MsgFlags::empty(),
        )?;
        let mut time = None;
        for item in message.cmsgs()? {
            match item {
                ControlMessageOwned::ScmTimestampns(stamp) => time = Some(since_epoch(stamp)),
                ControlMessageOwned::RxqOvfl(lost) => self.lost = lost,
                _ => {}
            }
        }
        let unwanted = self.frames == Frames::Arriving
            && message.address.is_some_and(|from| from.pkttype() == PACKET_OUTGOING);
        Ok(time.filter(|_| !unwanted).map(|time| (time, message.bytes)))
    }
}

fn since_epoch(stamp: TimeSpec) -> Time {
    Time::from_nanos(stamp.tv_sec() as u64 * 1_000_000_000 + stamp.tv_nsec() as u64)
}

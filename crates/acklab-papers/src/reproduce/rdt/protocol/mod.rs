//! The course protocol as it was: CENG 435, term project part II, and the code that its authors published.
//!
//! The two ends are machines without sockets: [`Sender`] and [`Receiver`] say what goes out, are told
//! what came in, and know the time from their arguments. The same machines run in virtual time
//! ([`super::simulated`]) and on UDP ([`super::sockets`]). [`packet`] makes the bytes.
//!
//! Nothing is improved. What is odd in it (time-outs without Karn's rule, minimum or back-off, one
//! window for both paths, an end that may be waited for in vain) is what the experiments measured.
//! Left out: the byte order of the file on disk, threads; a thread that sleeps is a deadline here.

pub mod packet;
mod receiver;
mod sender;

pub use packet::Header;
pub use receiver::{Arrival, Receiver};
pub use sender::{Sender, Settings, Stage};

/// Data bytes of a full packet (paper, section II).
pub const PAYLOAD: usize = 512;
/// The UDP port of both ends (the authors' code).
pub const PORT: u16 = 8080;

/// Packets that carry a file of `size` bytes: as the authors' code counts them, so that a multiple of
/// 512 has an empty last one. `None` where a 16-bit sequence number cannot count them.
pub fn chunks(size: usize) -> Option<u16> {
    // Number 0 is the end packet.
    u16::try_from(size / PAYLOAD + 1).ok().filter(|&chunks| chunks < u16::MAX)
}

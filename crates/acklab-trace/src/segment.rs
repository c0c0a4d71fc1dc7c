//! One TCP segment as the capture shows it: parsed value, borrowed payload.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use acklab_core::time::Time;

pub use acklab_core::segment::{Flags, Timestamp};

/// An address and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// IPv4 or IPv6 address.
    pub addr: IpAddr,
    /// TCP port.
    pub port: u16,
}

/// `192.0.2.1:502`, `[2001:db8::1]:502`.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::new(self.addr, self.port).fmt(f)
    }
}

/// A TCP segment read from one frame.
#[derive(Clone, Debug)]
pub struct Segment<'a> {
    /// Frame number in the file, from 1, as Wireshark counts.
    pub frame: u64,
    /// Capture time, nanoseconds since the epoch.
    pub time: Time,
    /// Sender.
    pub src: Endpoint,
    /// Receiver.
    pub dst: Endpoint,
    /// First sequence number.
    pub seq: u32,
    /// Acknowledgment number; meaningless without [`Flags::ACK`].
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// The window field as it stands, unscaled.
    pub window: u16,
    /// Options that bear on timing.
    pub options: SeenOptions,
    /// Payload bytes on the wire by the IP header (a GSO super-frame counts whole), of which
    /// `payload` holds those that were captured.
    pub payload_len: u32,
    /// The captured part of the payload.
    pub payload: &'a [u8],
    /// Time to live or hop limit of the IP header: tells which side captured.
    pub ttl: u8,
    /// IPv4 identification, which tells a frame captured twice from one sent again; 0 for IPv6.
    pub ip_id: u16,
}

/// The TCP options that bear on timing; absent ones are `None` or zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenOptions {
    /// Maximum segment size (kind 2).
    pub mss: Option<u16>,
    /// Window scale (kind 3).
    pub window_scale: Option<u8>,
    /// SACK permitted (kind 4).
    pub sack_permitted: bool,
    /// Number of SACK blocks carried (kind 5).
    pub sack_blocks: u8,
    /// Timestamp value and echo reply (kind 8).
    pub timestamp: Option<Timestamp>,
    /// The capture's snap length cut the options: those absent here may have been on the wire.
    pub cut: bool,
}

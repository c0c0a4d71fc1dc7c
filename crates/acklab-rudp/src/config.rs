//! What the user of a connection may choose.

use crate::ack_requests;
use crate::wire::Parameters;
use acklab_core::ack::Profile;
use acklab_core::cc::Algorithm;
use acklab_core::time::Span;

/// Options of a connection; both ends may differ.
#[derive(Clone, Debug)]
pub struct Config {
    /// Congestion control of each path.
    pub algorithm: Algorithm,
    /// When this end acknowledges; `None`: as the sender asks (docs/rudp.md section 5).
    pub ack: Option<Profile>,
    /// How rare the ACKs are that this end asks for (docs/rudp.md section 5).
    pub asks: ack_requests::Options,
    /// Packets bear ECN marks on paths that pass them (docs/rudp.md section 6).
    pub ecn: bool,
    /// Initial window of each path, packets (docs/rudp.md section 8).
    pub initial_window: u32,
    /// The largest datagram that is tried, bytes of UDP payload.
    pub largest_datagram: usize,
    /// Datagrams that leave together, at most; fewer where the buffer of 64 KiB is full.
    pub batch: usize,
    /// What this end says of itself in the handshake.
    pub parameters: Parameters,
    /// Every packet number is used; with `false` one in about 1024 is left out at random to find a
    /// peer that acknowledges what it has not got.
    pub every_number: bool,
    /// Sending keys change after so many packets (docs/rudp.md section 3, "Key update").
    pub key_packets: u64,
    /// An application that is open wants the connection kept alive while nothing is sent.
    pub keep_alive: bool,
    /// Seed of what is random and no secret: congestion control, skipped numbers in virtual time.
    pub seed: u64,
}

/// Datagrams of 1500 bytes of IPv4 (docs/rudp.md section 2, "Size of datagrams").
pub(super) const ETHERNET_DATAGRAM: usize = 1472;
/// Initial window, packets.
const INITIAL_WINDOW: u32 = 32;
/// What one call of Linux takes (`UDP_MAX_SEGMENTS`).
const BATCH: usize = 64;
/// Half of RFC 9001 section 6.6's limit for AES-GCM.
const KEY_PACKETS: u64 = 1 << 22;

impl Default for Config {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Lossy,
            ack: None,
            asks: ack_requests::Options::default(),
            ecn: true,
            initial_window: INITIAL_WINDOW,
            largest_datagram: ETHERNET_DATAGRAM,
            batch: BATCH,
            parameters: Parameters::default(),
            every_number: false,
            key_packets: KEY_PACKETS,
            keep_alive: false,
            seed: 0,
        }
    }
}

/// Stands for a round trip that was not measured yet (RFC 9002 section 6.2.2 has 333 ms; the handshake's
/// own copies make a guess of that length useless here).
pub(super) const INITIAL_RTT: Span = Span::from_millis(100);

//! Plant and controller as datagram peers: endpoints of the core for any world's hosts.
//!
//! Both are the ANCE article's automata (algorithms 2 and 3): in *Sampling* they wait for the next
//! tick of their clock, at the tick they compute, in *Sending* they hold the packet for the time
//! `sending` and then let it go. The article's Tpsm and Tcsc, 38.4 µs for 48 bytes at 10 Mbit/s, are
//! the time to put the packet on the access link. A world's link serialises by itself, so `sending`
//! is zero here unless the access link is infinitely fast; setting both would count it twice.
//!
//! A sample carries (output, its instant), a command (value, instant of the sample it is based on);
//! either is 20 bytes of UDP payload, 48 bytes at the IP layer. Whoever receives keeps the newest
//! by the sample's instant, so that a packet that was overtaken changes nothing.

mod controller;
mod outbox;
mod plant;

use acklab_core::packet::{Addr, Body, Ecn, Packet};
use acklab_core::time::Time;

pub use controller::{ControllerPeer, ControllerSetup, Driven};
pub use plant::{Actuation, PlantPeer, PlantSetup};

/// UDP payload of a sample or command, bytes: 48 on the wire as in the article's table 2, less 20
/// of IPv4 and 8 of UDP.
pub const PAYLOAD: u32 = 48 - Packet::IPV4_HEADER - Packet::UDP_HEADER;

/// Largest value that is taken from a packet: no plant's, and far enough from infinity that no sum of
/// such values gets there.
const LARGEST: f64 = 1e100;

acklab_core::words! {
    /// What stands in for a sample or command that did not come since the last tick.
    #[derive(Default)]
    pub enum Missing {
        /// The last one that came.
        #[default]
        Hold = "hold",
        /// Zero.
        Zero = "zero",
    }
}

/// Which of the article's two locations a peer is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// SamplingP or SamplingCS: waiting for the next tick.
    Sampling,
    /// SendingP or SendingCS: a packet is about to leave.
    Sending,
}

/// A value and the instant of the sample behind it; `None` where there was no sample yet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stamped {
    value: f64,
    sampled: Option<Time>,
}

impl Stamped {
    /// Stamp of a command that no sample stands behind.
    const NO_SAMPLE: u64 = u64::MAX;

    fn into_packet(self, src: Addr, dst: Addr, ecn: Ecn) -> Packet {
        let stamp = self.sampled.map_or(Self::NO_SAMPLE, Time::as_nanos);
        let body = Body::Datagram { len: PAYLOAD, words: [self.value.to_bits(), stamp] };
        Packet { src, dst, ecn, returned: false, body }
    }

    /// What a packet that arrives at `now` says; `None` where it is not a peer's, or says what no peer
    /// can say: no number, one beyond [`LARGEST`], or a sample of the future, which would outlive all
    /// others.
    fn from_packet(now: Time, packet: &Packet) -> Option<Self> {
        let Body::Datagram { words: [value, stamp], .. } = packet.body else { return None };
        let said = Self {
            value: f64::from_bits(value),
            sampled: (stamp != Self::NO_SAMPLE).then(|| Time::from_nanos(stamp)),
        };
        let sane = said.value.abs() <= LARGEST && said.sampled.is_none_or(|sampled| sampled <= now);
        (sane && !packet.returned).then_some(said)
    }
}

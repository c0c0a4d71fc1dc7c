//! What two XUDP servers send each other: packets of at most one fragment and any number of commands.
//!
//! In virtual time a datagram has a length and two words. What it says lies in the [`Wire`] that both
//! servers share, and the first word names the place.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acklab_core::time::Span;

/// How long a parcel is worth sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Until it is acknowledged.
    Reliable,
    /// Once.
    OneShot,
    /// For so long after the application handed it over.
    Expiring(Span),
}

/// An application's message.
#[derive(Clone, Copy, Debug)]
pub struct Parcel {
    /// Count from 0.
    pub id: u64,
    pub bytes: u32,
    /// How long it is worth sending.
    pub kind: Kind,
}

/// One packet's share of a parcel.
#[derive(Clone, Copy, Debug)]
pub struct Fragment {
    /// The packet's number; a packet that is sent again keeps it.
    pub number: u64,
    pub parcel: u64,
    /// Its place in the parcel.
    pub index: u32,
    /// Fragments of the parcel.
    pub count: u32,
    /// Bytes of the parcel in it.
    pub bytes: u32,
}

/// What one server tells the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The packet of this number has arrived.
    Packet(u64),
    /// The parcel of this number is complete (step 1), or the answer to that (further steps).
    Parcel {
        /// The parcel.
        id: u64,
        /// Odd from the receiver, even from the sender.
        step: u32,
    },
}

#[derive(Clone, Debug, Default)]
pub struct Packet {
    /// Data.
    pub fragment: Option<Fragment>,
    pub commands: Vec<Command>,
}

impl Packet {
    /// Bytes of UDP payload, and of the Ethernet frame around the IP packet, which the simulated link
    /// does not add by itself.
    pub fn size(&self) -> u32 {
        let data = self.fragment.map_or(0, |fragment| fragment.bytes);
        FRAMING + HEADER + COMMAND * self.commands.len() as u32 + data
    }
}

/// What is between the two servers.
#[derive(Clone, Debug, Default)]
pub struct Wire(Arc<Mutex<Store>>);

#[derive(Debug, Default)]
struct Store {
    packets: BTreeMap<u64, Packet>,
    next: u64,
}

impl Wire {
    /// Keeps what a datagram says; the word by which it is found again.
    pub fn put(&self, packet: Packet) -> u64 {
        let mut store = self.store();
        let word = store.next;
        store.next += 1;
        store.packets.insert(word, packet);
        word
    }

    /// Takes out what a datagram says.
    pub fn take(&self, word: u64) -> Option<Packet> {
        self.store().packets.remove(&word)
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of header: the thesis has a figure of it, which was not to be had. Ours: number, parcel, index,
/// count and length of the fragment in 4 bytes each, kind and number of commands in 2 each.
const HEADER: u32 = 24;
/// Bytes of a command: a kind, a step and a number; not to be had either.
const COMMAND: u32 = 8;
/// Ethernet: preamble 8, addresses and type 14, check sequence 4, gap 12 (IEEE 802.3 clauses 3 and 4).
const FRAMING: u32 = 38;

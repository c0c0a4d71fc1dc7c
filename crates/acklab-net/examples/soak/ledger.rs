//! What was sent and what arrived: every byte follows from where it stands, so the receiver needs no
//! copy of what was sent to check it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use acklab_core::rng::Rng;

/// Counts of both ends, and the first thing that was wrong.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) streams_sent: AtomicU64,
    pub(crate) streams_whole: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) parcels_sent: AtomicU64,
    pub(crate) reliable_sent: AtomicU64,
    pub(crate) reliable_arrived: AtomicU64,
    pub(crate) other_arrived: AtomicU64,
    pub(crate) pauses: AtomicU64,
    wrong: Mutex<Option<String>>,
}

impl Ledger {
    /// Notes a fault; the first one stays.
    pub(crate) fn fault(&self, text: String) {
        let mut wrong = self.wrong.lock().expect("no thread panics with it");
        wrong.get_or_insert(text);
    }

    /// The first fault, if any.
    pub(crate) fn wrong(&self) -> Option<String> {
        self.wrong.lock().expect("no thread panics with it").clone()
    }

    /// Everything that must arrive has.
    pub(crate) fn is_even(&self) -> bool {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        read(&self.streams_sent) == read(&self.streams_whole)
            && read(&self.reliable_sent) == read(&self.reliable_arrived)
    }
}

/// Adds to a count.
pub(crate) fn add(count: &AtomicU64, amount: u64) {
    count.fetch_add(amount, Ordering::Relaxed);
}

/// The bytes of a stream from `offset` on.
pub(crate) fn stream_bytes(stream: u64, offset: u64, out: &mut [u8]) {
    for (place, byte) in (offset..).zip(out) {
        *byte = (scrambled((stream << 44) ^ (place / 8)) >> (place % 8 * 8)) as u8;
    }
}

/// The place of the first byte that is not the stream's.
pub(crate) fn first_wrong(stream: u64, offset: u64, bytes: &[u8]) -> Option<u64> {
    (offset..)
        .zip(bytes)
        .find(|(place, byte)| {
            **byte != (scrambled((stream << 44) ^ (place / 8)) >> (place % 8 * 8)) as u8
        })
        .map(|(place, _)| place)
}

/// A parcel: its serial number, its length, then bytes that follow from both.
pub(crate) fn parcel(serial: u64, length: usize) -> Vec<u8> {
    let length = length.max(16);
    let mut bytes = vec![0; length];
    bytes[..8].copy_from_slice(&serial.to_be_bytes());
    bytes[8..16].copy_from_slice(&(length as u64).to_be_bytes());
    stream_bytes(serial ^ 0x5eed, 0, &mut bytes[16..]);
    bytes
}

/// The serial number of an intact parcel.
pub(crate) fn read_parcel(bytes: &[u8]) -> Option<u64> {
    let serial = u64::from_be_bytes(*bytes.first_chunk()?);
    let length = u64::from_be_bytes(*bytes.get(8..)?.first_chunk()?);
    let intact = length == bytes.len() as u64;
    (intact && first_wrong(serial ^ 0x5eed, 0, &bytes[16..]).is_none()).then_some(serial)
}

/// Between 1 and `most`, all orders of magnitude alike.
pub(crate) fn any_size(rng: &mut Rng, most: u64) -> u64 {
    let bits = u64::from(most.ilog2()) + 1;
    let magnitude = 1 << (1 + rng.below(bits));
    1 + rng.below(most.min(magnitude))
}

/// SplitMix64 (Steele, Lea, Flood, 2014) of a counter.
fn scrambled(n: u64) -> u64 {
    let z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

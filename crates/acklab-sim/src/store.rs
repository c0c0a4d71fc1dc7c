//! [`Store`]: the bytes of simulated datagrams, beside the links that carry their numbers.
//!
//! A datagram's bytes stay until every packet with its number has arrived or was dropped: a link that
//! makes a second packet of one tells so, as it tells of one that it drops. So nothing is kept longer
//! than it is on its way, and nothing is forgotten that still is.

use acklab_core::event::{DropReason, EventKind};
use acklab_core::packet::{Body, Packet};

/// Bytes by number.
#[derive(Debug, Default)]
pub struct Store {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Buffers whose datagrams are gone.
    spare: Vec<Vec<u8>>,
    used: bool,
}

#[derive(Debug, Default)]
struct Slot {
    /// How often the slot was used before: the upper half of the number.
    turn: u32,
    /// Packets on their way with this number.
    packets: u32,
    bytes: Vec<u8>,
}

impl Store {
    /// Keeps `bytes` for one packet, whose body this is.
    pub fn put(&mut self, bytes: &[u8]) -> Body {
        self.used = true;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.turn = slot.turn.wrapping_add(1);
        slot.packets = 1;
        slot.bytes = self.spare.pop().unwrap_or_default();
        slot.bytes.clear();
        slot.bytes.extend_from_slice(bytes);
        Body::Stored {
            len: bytes.len() as u32,
            number: u64::from(slot.turn) << 32 | u64::from(index),
        }
    }

    /// The bytes of a packet that has arrived; `None` for one that has none here. They can be given back
    /// ([`Self::recycle`]).
    pub fn take(&mut self, packet: &Packet) -> Option<Vec<u8>> {
        let index = self.index(packet)?;
        let slot = &mut self.slots[index as usize];
        slot.packets -= 1;
        if slot.packets > 0 {
            let mut bytes = self.spare.pop().unwrap_or_default();
            bytes.clone_from(&slot.bytes);
            return Some(bytes);
        }
        self.free.push(index);
        Some(std::mem::take(&mut slot.bytes))
    }

    /// The bytes of a packet that is on its way, to be looked at or altered: its copies keep theirs.
    pub(crate) fn bytes_mut(&mut self, packet: &mut Packet) -> Option<&mut Vec<u8>> {
        let mut index = self.index(packet)?;
        let slot = &mut self.slots[index as usize];
        if slot.packets > 1 {
            slot.packets -= 1;
            let bytes = slot.bytes.clone();
            packet.body = self.put(&bytes);
            index = self.index(packet)?;
        }
        Some(&mut self.slots[index as usize].bytes)
    }

    /// The buffer of a datagram that was taken is used again.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.spare.push(bytes);
    }

    /// Datagrams whose bytes are kept.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether no datagram's bytes are kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there ever was anything in it.
    pub(crate) const fn is_used(&self) -> bool {
        self.used
    }

    /// A packet was copied or dropped. One that goes back to its sender is still on its way.
    pub(crate) fn on_event(&mut self, event: &EventKind) {
        match event {
            EventKind::Copied { packet, .. } => {
                if let Some(index) = self.index(packet) {
                    self.slots[index as usize].packets += 1;
                }
            }
            EventKind::Dropped { packet, reason, .. } if *reason != DropReason::Returned => {
                if let Some(bytes) = self.take(packet) {
                    self.recycle(bytes);
                }
            }
            _ => {}
        }
    }

    fn index(&self, packet: &Packet) -> Option<u32> {
        let Body::Stored { number, .. } = packet.body else { return None };
        let (turn, index) = ((number >> 32) as u32, number as u32);
        let slot = self.slots.get(index as usize)?;
        (slot.turn == turn && slot.packets > 0).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acklab_core::packet::{Addr, Ecn};

    fn packet(body: Body) -> Packet {
        let addr = Addr::default();
        Packet { src: addr, dst: addr, ecn: Ecn::NotEct, returned: false, body }
    }

    #[test]
    fn bytes_are_kept_for_every_copy_and_no_longer() {
        let mut store = Store::default();
        let (one, two) = (packet(store.put(b"one")), packet(store.put(b"two")));
        store.on_event(&EventKind::Copied { link: 0, packet: one });
        assert_eq!(store.take(&one).as_deref(), Some(&b"one"[..]));
        assert_eq!(store.take(&one).as_deref(), Some(&b"one"[..]));
        assert_eq!((store.take(&one), store.len()), (None, 1));
        let dropped = |reason| EventKind::Dropped { link: 0, reason, packet: two };
        store.on_event(&dropped(DropReason::Returned));
        assert_eq!(store.len(), 1, "on its way back");
        store.on_event(&dropped(DropReason::Loss));
        assert!(store.is_empty());
        let again = packet(store.put(b"three"));
        assert_ne!(again.body, two.body, "no number means two datagrams");
        assert_eq!(store.take(&two), None);
    }
}

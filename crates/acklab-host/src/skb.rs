//! The send queue: what was written, cut as it was written, and packets that are out with their marks.

use crate::settings::Us;

/// What is known of a packet that is out (RFC 6675's scoreboard, per packet).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, one flag each")]
pub struct Marks {
    /// The peer holds it.
    pub sacked: bool,
    /// Taken for lost.
    pub lost: bool,
    /// A retransmission of it is out.
    pub retrans: bool,
    /// It left more than once.
    pub ever_retrans: bool,
    /// RACK has judged this departure: taken for lost or held by the peer. An undo does not bring it back, as in Linux,
    /// only the next departure does.
    pub judged: bool,
}

/// Delivery-rate stamps (the draft of delivery rate estimation).
#[derive(Clone, Copy, Debug, Default)]
pub struct RateStamp {
    /// Delivered packets when it left.
    pub delivered: u32,
    /// When these were delivered.
    pub delivered_at: Us,
    /// When the first packet of this flight left.
    pub first_sent: Us,
    /// The application limited the sending.
    pub app_limited: bool,
    /// On the way with it, packets.
    pub in_flight: u32,
    /// Taken for lost by then, packets.
    pub lost: u32,
}

/// What a program asked to be told about the bytes of a write.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    /// Kinds of stamps, as [`crate::errqueue`] counts them.
    pub stamps: u8,
    /// The byte whose passage is told: its key.
    pub key: u32,
    /// Sequence number of that byte.
    pub seq: u32,
}

impl Wishes {
    /// Bytes of a packet of `len` that a stamp comes with.
    pub const fn bytes(&self, len: u32) -> u32 {
        if self.stamps & crate::errqueue::stamp::ALONE == 0 { len } else { 0 }
    }
}

/// A packet that a switch sent back and that is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Return {
    /// After its last number, by which it is known.
    pub end: u32,
    /// How often it came back.
    pub times: u32,
    /// When it goes again, if it waits.
    pub due: Option<Us>,
}

/// A stretch of the stream, cut as the kernel cuts its buffers; once it is out it is one packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Skb {
    /// First sequence number.
    pub seq: u32,
    /// After the last, FIN and SYN counted.
    pub end: u32,
    /// PSH, FIN, SYN, URG.
    pub flags: u16,
    /// Nothing is added behind (MSG_EOR).
    pub eor: bool,
    /// What is known of it.
    pub marks: Marks,
    /// When it left last.
    pub sent: Us,
    /// How often it was retransmitted.
    pub retries: u32,
    /// Rate stamps.
    pub rate: RateStamp,
    /// Stamps that were asked for.
    pub wishes: Option<Wishes>,
    /// Memory beside its bytes.
    pub overhead: u32,
    /// It continues the piece that the packet before it was cut from: both may leave again as one burst.
    pub joined: bool,
    /// Parts of a program's pages in it (MSG_ZEROCOPY).
    pub fragments: u8,
}

impl Skb {
    /// Bytes of payload.
    pub const fn len(&self) -> u32 {
        let control = (self.flags & 1) as u32 + ((self.flags >> 1) & 1) as u32;
        let len = self.end.wrapping_sub(self.seq).wrapping_sub(control);
        debug_assert!(len as i32 >= 0, "a piece ends before it begins");
        len
    }

    /// Whether it has no payload.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Packets that it makes with `mss` bytes in each.
    pub fn packets(&self, mss: u32) -> u32 {
        self.len().div_ceil(mss.max(1)).max(1)
    }

    /// Cuts after `len` bytes of payload; returns the rest. PSH, FIN and the mark that nothing follows stay with
    /// the rest, as stamps do whose byte lies there.
    #[must_use]
    pub fn split(&mut self, len: u32) -> Self {
        let at = self.seq.wrapping_add(len);
        let mut rest = *self;
        rest.seq = at;
        self.end = at;
        self.flags &= !0x09;
        rest.flags &= !0x02;
        rest.overhead = 0;
        rest.joined = false;
        self.eor = false;
        if self.wishes.is_some_and(|wishes| !crate::segment::before(wishes.seq, at)) {
            self.wishes = None;
        } else {
            rest.wishes = None;
        }
        rest
    }
}

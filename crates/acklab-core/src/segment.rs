//! The TCP segment: RFC 9293 section 3.1, options of RFC 7323 (window scale, timestamps) and
//! RFC 2018 (SACK).

use crate::seq::Seq;

/// Control bits (RFC 9293 section 3.1, RFC 3168 section 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push function.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// Whether all of `bits` are set.
    pub const fn has(self, bits: Self) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// Both sets together.
    #[must_use]
    pub const fn with(self, bits: Self) -> Self {
        Self(self.0 | bits.0)
    }
}

/// A block of received bytes, [left, right) (RFC 2018 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte of the block.
    pub left: Seq,
    /// The byte after its last.
    pub right: Seq,
}

/// Up to four SACK blocks, the most recent first; three where a timestamp stands beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    len: u8,
}

impl SackBlocks {
    /// Appends a block; returns false and leaves it out when four are there already.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.len)) else { return false };
        *slot = block;
        self.len += 1;
        true
    }

    /// The blocks, in order.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The timestamp option (RFC 7323 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp {
    /// TSval: the sender's clock, in ticks that it chooses (here 1 ms).
    pub value: u32,
    /// TSecr: the peer's TSval echoed.
    pub echo: u32,
}

/// What a sender says of the ACKs that it wants (draft-ietf-tcpm-ack-rate-request, RFC 5690).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRequest {
    /// TARR, on SYNs: its requests are understood.
    TarrCapable,
    /// TARR: an ACK each so many full segments, 127 at most; 0: one at once, and none else.
    Tarr(u8),
    /// ACK congestion control, on SYNs: permitted.
    AckCcPermitted,
    /// ACK congestion control: the ACK Ratio, segments.
    AckCc(u8),
}

impl AckRequest {
    /// Bytes on the wire, padded to a multiple of four.
    pub const fn wire_len(self) -> u32 {
        match self {
            Self::TarrCapable | Self::AckCcPermitted => 4,
            Self::Tarr(_) | Self::AckCc(_) => 8,
        }
    }

    /// The experimental option that says it: its kind, its identifier (RFC 6994) and a byte, or none on SYNs.
    pub const fn option(self) -> (u8, [u8; 2], Option<u8>) {
        let ((kind, id), value) = match self {
            Self::TarrCapable => (TARR, None),
            Self::Tarr(segments) => (TARR, Some(segments & MOST_TARR)),
            Self::AckCcPermitted => (ACK_CC, None),
            Self::AckCc(ratio) => (ACK_CC, Some(ratio)),
        };
        (kind, id, value)
    }

    /// What an experimental option says, its identifier included; `None` where it is another's.
    pub fn of_option(kind: u8, content: &[u8]) -> Option<Self> {
        let (id, value) = content.split_first_chunk::<2>()?;
        match ((kind, *id), value) {
            (TARR, []) => Some(Self::TarrCapable),
            // The eighth bit is V, which is sent as 0 and not looked at.
            (TARR, &[segments]) => Some(Self::Tarr(segments & MOST_TARR)),
            (ACK_CC, []) => Some(Self::AckCcPermitted),
            (ACK_CC, &[ratio]) => Some(Self::AckCc(ratio)),
            _ => None,
        }
    }
}

/// Kinds of options for experiments (RFC 4727).
pub(crate) const EXPERIMENT_1: u8 = 253;
/// The other one.
pub(crate) const EXPERIMENT_2: u8 = 254;
/// draft-ietf-tcpm-ack-rate-request.
const TARR: (u8, [u8; 2]) = (EXPERIMENT_2, [0x00, 0xac]);
/// R has seven bits.
const MOST_TARR: u8 = 0x7f;
/// RFC 5690 has no numbers of its own for its two options; this identifier is ours, and in no registry.
const ACK_CC: (u8, [u8; 2]) = (EXPERIMENT_1, [0x56, 0x90]);

/// Options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Maximum segment size, on SYNs (RFC 9293 section 3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift, on SYNs (RFC 7323 section 2).
    pub window_scale: Option<u8>,
    /// SACK permitted, on SYNs (RFC 2018 section 2).
    pub sack_permitted: bool,
    /// Selective acknowledgments.
    pub sack: SackBlocks,
    /// Timestamps.
    pub timestamp: Option<Timestamp>,
    /// How often the peer is to acknowledge.
    pub ack_request: Option<AckRequest>,
}

impl TcpOptions {
    /// Bytes on the wire, padded to a multiple of four. Timestamps and SACK are laid out after two
    /// NOPs each, as RFC 7323 appendix A and every common stack do.
    pub const fn wire_len(&self) -> u32 {
        let mut len = 0;
        if self.mss.is_some() {
            len += 4;
        }
        if self.window_scale.is_some() {
            len += 4;
        }
        if self.sack_permitted {
            // Shares the timestamp's padding where there is one.
            len += if self.timestamp.is_some() { 0 } else { 4 };
        }
        if self.timestamp.is_some() {
            len += 12;
        }
        if !self.sack.is_empty() {
            len += 4 + 8 * self.sack.len as u32;
        }
        if let Some(request) = self.ack_request {
            len += request.wire_len();
        }
        len
    }
}

/// A parsed TCP segment; its payload is a length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpRepr {
    /// Sequence number of the first byte (of the SYN where set).
    pub seq: Seq,
    /// Next byte expected, with [`Flags::ACK`].
    pub ack: Seq,
    /// Control bits.
    pub flags: Flags,
    /// Window field as on the wire: scaled, except on SYNs.
    pub window: u16,
    /// Options.
    pub options: TcpOptions,
    /// Payload bytes.
    pub payload_len: u32,
}

impl TcpRepr {
    /// Header without options, bytes.
    pub const HEADER: u32 = 20;

    /// Header with options, bytes.
    pub const fn header_len(&self) -> u32 {
        Self::HEADER + self.options.wire_len()
    }

    /// Length in sequence space: payload, SYN and FIN (RFC 9293 section 3.4).
    pub const fn seq_len(&self) -> u32 {
        self.payload_len + self.flags.has(Flags::SYN) as u32 + self.flags.has(Flags::FIN) as u32
    }
}

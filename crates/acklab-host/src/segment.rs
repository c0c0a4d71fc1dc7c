//! A TCP segment as a value, with everything of its headers that a peer can see.
//!
//! Richer than the core's `TcpRepr`: options stand in wire order, a segment may be a burst of several packets
//! (`gso`), and bits that only tests of a stack look at (URG, AE, the whole traffic class) are kept.

use acklab_core::segment::AckRequest;

/// Flags of the TCP header, AE of RFC 9768 included.
pub mod flag {
    /// No more data.
    pub const FIN: u16 = 0x01;
    /// Synchronise.
    pub const SYN: u16 = 0x02;
    /// Reset.
    pub const RST: u16 = 0x04;
    /// Push.
    pub const PSH: u16 = 0x08;
    /// The acknowledgment field counts.
    pub const ACK: u16 = 0x10;
    /// The urgent pointer counts.
    pub const URG: u16 = 0x20;
    /// ECN echo (RFC 3168).
    pub const ECE: u16 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u16 = 0x80;
    /// Accurate ECN (RFC 9768).
    pub const AE: u16 = 0x100;
}

/// ECN field of the IP header.
pub mod ecn {
    /// Not ECN-capable.
    pub const NOT_ECT: u8 = 0;
    /// ECT(1).
    pub const ECT1: u8 = 1;
    /// ECT(0).
    pub const ECT0: u8 = 2;
    /// Congestion experienced.
    pub const CE: u8 = 3;
}

/// Counters of AccECN's option (RFC 9768 section 3.2.3): bytes that arrived marked ECT(0), CE and ECT(1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccEcn {
    /// Option kind 172 (order 0: EE0B, ECEB, EE1B) or 174 (order 1: EE1B, ECEB, EE0B).
    pub order: u8,
    /// Bytes marked ECT(0).
    pub e0b: Option<u32>,
    /// Bytes marked CE.
    pub ceb: Option<u32>,
    /// Bytes marked ECT(1).
    pub e1b: Option<u32>,
}

/// A TCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// End of the list.
    End,
    /// Padding.
    Nop,
    /// Maximum segment size.
    Mss(u16),
    /// Window scale.
    Scale(u8),
    /// SACK permitted.
    SackOk,
    /// SACK blocks, left and right edges.
    Sack(Vec<(u32, u32)>),
    /// Timestamps: value and echo.
    Stamp(u32, u32),
    /// Fast open: its cookie, and whether in the experimental option 254.
    FastOpen(Vec<u8>, bool),
    /// AccECN.
    AccEcn(AccEcn),
    /// Any other: kind and content.
    Other(u8, Vec<u8>),
}

impl TcpOption {
    /// Bytes on the wire.
    pub fn len(&self) -> usize {
        match self {
            Self::End | Self::Nop => 1,
            Self::Mss(_) => 4,
            Self::Scale(_) => 3,
            Self::SackOk => 2,
            Self::Sack(blocks) => 2 + 8 * blocks.len(),
            Self::Stamp(..) => 10,
            Self::FastOpen(cookie, experimental) => {
                cookie.len() + if *experimental { 4 } else { 2 }
            }
            Self::AccEcn(counters) => counters.len(),
            Self::Other(_, content) => 2 + content.len(),
        }
    }

    /// An option is never empty.
    pub const fn is_empty(&self) -> bool {
        false
    }
}

impl AccEcn {
    /// The counters in wire order; the first that is absent ends them.
    pub fn fields(&self) -> Vec<u32> {
        let order = if self.order == 0 {
            [self.e0b, self.ceb, self.e1b]
        } else {
            [self.e1b, self.ceb, self.e0b]
        };
        order.into_iter().map_while(|field| field).collect()
    }

    fn len(&self) -> usize {
        2 + 3 * self.fields().len()
    }
}

/// An address and a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The host; 0 is any.
    pub host: u32,
    /// The port.
    pub port: u16,
}

/// A segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Where it comes from.
    pub src: Place,
    /// Where it goes.
    pub dst: Place,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// [`flag`]s.
    pub flags: u16,
    /// The window field as it stands in the header.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options in wire order.
    pub options: Vec<TcpOption>,
    /// Bytes of payload.
    pub len: u32,
    /// Traffic class without the ECN field.
    pub dscp: u8,
    /// [`ecn`] field.
    pub ecn: u8,
    /// Bytes of payload of each packet where this is a burst of several; 0: it is one.
    pub gso: u32,
    /// Flow label of IPv6.
    pub flow_label: u32,
    /// Time to live, or hop limit; 0: the usual one, 64.
    pub ttl: u8,
    /// AE, CWR and ECE are a number (RFC 9768), which every packet of a burst has.
    pub accurate: bool,
}

impl Segment {
    /// Whether all of `flags` are set.
    pub const fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }

    /// Sequence number after the last, counting SYN and FIN.
    pub const fn end(&self) -> u32 {
        let control = self.has(flag::SYN) as u32 + self.has(flag::FIN) as u32;
        self.seq.wrapping_add(self.len).wrapping_add(control)
    }

    /// Keeps the first `len` bytes and returns the rest; PSH and FIN go with the rest, CWR stays.
    #[must_use]
    pub fn split(&mut self, len: u32) -> Self {
        let mut rest = self.clone();
        rest.seq = self.seq.wrapping_add(len);
        rest.len = self.len - len;
        if !self.accurate {
            rest.flags &= !flag::CWR;
        }
        self.len = len;
        self.flags &= !(flag::PSH | flag::FIN);
        rest
    }

    /// Bytes of the TCP header.
    pub fn header(&self) -> u32 {
        let options: usize = self.options.iter().map(TcpOption::len).sum();
        20 + options.div_ceil(4) as u32 * 4
    }

    /// The timestamps option.
    pub fn stamp(&self) -> Option<(u32, u32)> {
        self.options.iter().find_map(|option| match option {
            TcpOption::Stamp(value, echo) => Some((*value, *echo)),
            _ => None,
        })
    }

    /// SACK blocks.
    pub fn sack(&self) -> &[(u32, u32)] {
        self.options
            .iter()
            .find_map(|option| match option {
                TcpOption::Sack(blocks) => Some(blocks.as_slice()),
                _ => None,
            })
            .unwrap_or(&[])
    }

    /// The MSS option.
    pub fn mss(&self) -> Option<u16> {
        self.options.iter().find_map(|option| match option {
            TcpOption::Mss(mss) => Some(*mss),
            _ => None,
        })
    }

    /// The window scale option.
    pub fn scale(&self) -> Option<u8> {
        self.options.iter().find_map(|option| match option {
            TcpOption::Scale(shift) => Some((*shift).min(14)),
            _ => None,
        })
    }

    /// What it says of the ACKs that its sender wants.
    pub fn ack_request(&self) -> Option<AckRequest> {
        self.options.iter().find_map(|option| match option {
            TcpOption::Other(kind, content) => AckRequest::of_option(*kind, content),
            _ => None,
        })
    }

    /// Whether SACK is permitted.
    pub fn sack_ok(&self) -> bool {
        self.options.contains(&TcpOption::SackOk)
    }

    /// AccECN's counters.
    pub fn acc_ecn(&self) -> Option<AccEcn> {
        self.options.iter().find_map(|option| match option {
            TcpOption::AccEcn(counters) => Some(*counters),
            _ => None,
        })
    }
}

/// Whether sequence number `a` comes before `b`.
pub const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Whether sequence number `a` comes after `b`.
pub const fn after(a: u32, b: u32) -> bool {
    before(b, a)
}

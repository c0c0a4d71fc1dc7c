//! Link-layer header types, by the numbers that pcap and pcapng share.
//!
//! Source: the registry of draft-ietf-opsawg-pcaplinktype (tcpdump.org/linktypes.html). Listed
//! here are the ones that are dissected and the names of others that people meet.

use std::fmt;

/// A LINKTYPE_ number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: a 4-byte address family in the byte order of the capturing host.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without HDLC framing.
    pub const PPP: Self = Self(9);
    /// Raw IP as BSD's DLT_RAW leaked it into files.
    pub const RAW_BSD: Self = Self(12);
    /// Raw IP as OpenBSD's DLT_RAW leaked it into files.
    pub const RAW_OPENBSD: Self = Self(14);
    /// Raw IP, version by the first nibble.
    pub const RAW: Self = Self(101);
    /// OpenBSD loopback: a 4-byte address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux cooked capture v1 (`tcpdump -i any` until 2020).
    pub const LINUX_SLL: Self = Self(113);
    /// Raw IPv4.
    pub const IPV4: Self = Self(228);
    /// Raw IPv6.
    pub const IPV6: Self = Self(229);
    /// Linux cooked capture v2 (`tcpdump -i any` since).
    pub const LINUX_SLL2: Self = Self(276);
    /// PPP with HDLC framing.
    pub const PPP_HDLC: Self = Self(50);
    /// Cisco HDLC.
    pub const C_HDLC: Self = Self(104);
    /// IEEE 802.11.
    pub const IEEE_802_11: Self = Self(105);
    /// OpenBSD's packet filter log.
    pub const PFLOG: Self = Self(117);
    /// IEEE 802.11 behind a radiotap header.
    pub const RADIOTAP: Self = Self(127);
    /// PPP as pppd logs it: one byte for the direction first.
    pub const PPP_PPPD: Self = Self(166);
    /// Per-packet information, which names the link type behind it.
    pub const PPI: Self = Self(192);
    /// Linux's packet filter log.
    pub const NFLOG: Self = Self(239);

    /// The registry's name, where it is one that people meet.
    const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "BSD loopback",
            1 => "Ethernet",
            6 => "Token Ring",
            8 => "SLIP",
            9 => "PPP",
            10 => "FDDI",
            50 => "PPP with HDLC framing",
            104 => "Cisco HDLC",
            105 => "IEEE 802.11",
            12 | 14 | 101 => "raw IP",
            108 => "OpenBSD loopback",
            113 => "Linux cooked v1",
            117 => "OpenBSD pflog",
            119 => "IEEE 802.11 with Prism header",
            127 => "IEEE 802.11 with radiotap",
            147..=162 => "a private (user) type",
            166 => "PPP as pppd logs it",
            187 | 201 => "Bluetooth HCI",
            189 | 220 => "USB",
            192 => "PPI",
            195 | 230 => "IEEE 802.15.4",
            197 => "Endace ERF",
            227 => "CAN (SocketCAN)",
            228 => "raw IPv4",
            229 => "raw IPv6",
            239 => "Linux nflog",
            253 => "Linux netlink",
            276 => "Linux cooked v2",
            _ => return None,
        })
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{} ({name})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

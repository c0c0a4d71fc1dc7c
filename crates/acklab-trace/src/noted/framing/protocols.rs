//! The headers of the protocols whose messages can be told apart by a length prefix.
//!
//! Each reader sees the bytes of a header as they come and says: more bytes, a frame of so many
//! bytes in all, or not this protocol. Fields with few lawful values are checked, so that a wrong
//! protocol drops out within a frame or two. Nothing beyond the header is read.

/// Longest header any reader asks for.
pub(super) const HEADER_MAX: usize = 40;

/// A protocol with length-prefixed messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protocol {
    /// The name used in results.
    pub(crate) name: &'static str,
    /// Whether other bytes hardly ever look like a row of its headers.
    pub(super) telling: bool,
    /// Bytes of its headers, behind which a program that writes them apart cuts.
    pub(super) heads: &'static [u32],
    pub(super) header: fn(&[u8]) -> Header,
}

/// Every protocol, the most telling headers first.
pub(super) static PROTOCOLS: [Protocol; 12] = [
    Protocol { name: C37118, heads: &[14], telling: true, header: c37118 },
    Protocol { name: "dnp3", heads: &[10], telling: true, header: dnp3 },
    Protocol { name: "mongodb", heads: &[16], telling: true, header: mongodb },
    Protocol { name: "opc_ua", heads: &[8, 12, 24], telling: true, header: opc_ua },
    Protocol { name: "ads_ams", heads: &[6, 38], telling: true, header: ams },
    Protocol { name: "modbus_tcp", heads: &[6, 7], telling: true, header: modbus },
    Protocol { name: "iec_60870_5_104", heads: &[2, 6], telling: true, header: iec104 },
    Protocol { name: "tpkt", heads: &[4, 7], telling: true, header: tpkt },
    Protocol { name: "ethernet_ip", heads: &[24], telling: true, header: ethernet_ip },
    Protocol { name: "openflow", heads: &[8], telling: false, header: openflow },
    Protocol { name: "tls", heads: &[5], telling: true, header: tls },
    Protocol { name: "mqtt", heads: &[1, 2, 3], telling: false, header: mqtt },
];

/// IEEE C37.118, the one whose messages carry time stamps.
pub(super) const C37118: &str = "c37.118";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// Not yet complete.
    More,
    /// A frame of this many bytes, header included.
    Frame(u32),
    /// Not a header of this protocol.
    Invalid,
}

fn be16(bytes: &[u8], at: usize) -> u32 {
    u32::from(bytes[at]) << 8 | u32::from(bytes[at + 1])
}

fn le16(bytes: &[u8], at: usize) -> u32 {
    u32::from(bytes[at + 1]) << 8 | u32::from(bytes[at])
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    le16(bytes, at + 2) << 16 | le16(bytes, at)
}

/// Asks for bytes up to `need`, refuses where `lawful` already fails.
fn complete(bytes: &[u8], need: usize, lawful: bool) -> Option<Header> {
    if !lawful {
        return Some(Header::Invalid);
    }
    (bytes.len() < need).then_some(Header::More)
}

/// Synchrophasors, C37.118.2 section 6.2: SYNC, FRAMESIZE, IDCODE, SOC, FRACSEC; a configuration
/// frame is read as far as its TIME_BASE.
fn c37118(b: &[u8]) -> Header {
    let sync = b[0] == 0xAA;
    let kind = b.get(1).map_or(0, |v| v >> 4);
    let version = b.get(1).map_or(1, |v| v & 0x0F);
    let config = matches!(kind, 2 | 3 | 5);
    let need = if config { 18 } else { 14 };
    if let Some(answer) = complete(b, need, sync && kind <= 5 && (1..=3).contains(&version)) {
        return answer;
    }
    match be16(b, 2) {
        size @ 16.. => Header::Frame(size),
        _ => Header::Invalid,
    }
}

/// Modbus Messaging on TCP/IP section 3.1.3: protocol 0, length, unit, function code.
fn modbus(b: &[u8]) -> Header {
    let zero = b.iter().skip(2).take(2).all(|v| *v == 0);
    if let Some(answer) = complete(b, 8, zero) {
        return answer;
    }
    match (be16(b, 4), b[7] & 0x7F) {
        (len @ 2..=254, 1..=0x7F) => Header::Frame(6 + len),
        _ => Header::Invalid,
    }
}

/// APDUs of IEC 60870-5-104 section 5: start 68h, length, control field of I, S or U format.
fn iec104(b: &[u8]) -> Header {
    if let Some(answer) =
        complete(b, 6, b[0] == 0x68 && b.get(1).is_none_or(|l| (4..=253).contains(l)))
    {
        return answer;
    }
    let (len, control) = (u32::from(b[1]), b[2]);
    let s_format = control == 1 && b[3] == 0 && len == 4;
    let u_format = control & 3 == 3 && len == 4 && b[3] == 0 && b[4] == 0 && b[5] == 0;
    let i_format = control & 1 == 0 && b[4] & 1 == 0 && len > 4;
    if s_format || u_format || i_format { Header::Frame(2 + len) } else { Header::Invalid }
}

/// DNP3 link frames, IEEE 1815 section 9.2: 0564h, length, control, addresses, CRC; a CRC after every
/// 16 bytes.
fn dnp3(b: &[u8]) -> Header {
    let start =
        b[0] == 0x05 && b.get(1).is_none_or(|v| *v == 0x64) && b.get(2).is_none_or(|l| *l >= 5);
    if let Some(answer) = complete(b, 10, start) {
        return answer;
    }
    if le16(b, 8) != u32::from(dnp3_crc(&b[..8])) {
        return Header::Invalid;
    }
    let user = u32::from(b[2]) - 5;
    Header::Frame(10 + user + 2 * user.div_ceil(16))
}

/// The CRC of IEEE 1815 section 9.2.4.2.1: polynomial 3D65h, reflected, inverted.
pub(super) fn dnp3_crc(bytes: &[u8]) -> u16 {
    let mut crc = 0u16;
    for byte in bytes {
        crc ^= u16::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xA6BC } else { crc >> 1 };
        }
    }
    !crc
}

/// ISO transport over TCP, as under S7comm, RFC 1006 section 6: version 3, reserved 0, length.
fn tpkt(b: &[u8]) -> Header {
    if let Some(answer) = complete(b, 6, b[0] == 3 && b.get(1).is_none_or(|v| *v == 0)) {
        return answer;
    }
    // The COTP PDU within: its length and one of the TPDU codes of ISO 8073.
    let code = matches!(b[5] & 0xF0, 0x10 | 0x50 | 0x60 | 0x70 | 0x80 | 0xC0 | 0xD0 | 0xE0 | 0xF0);
    match be16(b, 2) {
        len @ 7.. if code && u32::from(b[4]) + 5 <= len => Header::Frame(len),
        _ => Header::Invalid,
    }
}

/// EtherNet/IP encapsulation, CIP volume 2 section 2-3: command, length, session, status.
fn ethernet_ip(b: &[u8]) -> Header {
    let known = b.len() < 2
        || matches!(le16(b, 0), 0 | 0x04 | 0x63 | 0x64 | 0x65 | 0x66 | 0x6F | 0x70 | 0x72 | 0x73);
    if let Some(answer) = complete(b, 24, known) {
        return answer;
    }
    let lawful = le32(b, 8) <= 0x69 && le32(b, 20) == 0 && le16(b, 2) <= 65_511;
    // An all-zero header (NOP without a session) says nothing; padding looks the same.
    let telling = b.iter().take(8).any(|v| *v != 0);
    if lawful && telling { Header::Frame(24 + le16(b, 2)) } else { Header::Invalid }
}

/// OPC UA part 6 section 7.1.2.2: message type, chunk type, size.
fn opc_ua(b: &[u8]) -> Header {
    const KINDS: [&[u8; 3]; 7] = [b"HEL", b"ACK", b"ERR", b"RHE", b"OPN", b"CLO", b"MSG"];
    let prefix = &b[..b.len().min(3)];
    let known = KINDS.iter().any(|k| k.starts_with(prefix));
    let chunk = b.get(3).is_none_or(|c| matches!(c, b'F' | b'C' | b'A'));
    if let Some(answer) = complete(b, 8, known && chunk) {
        return answer;
    }
    match le32(b, 4) {
        size @ 8..=0x0100_0000 => Header::Frame(size),
        _ => Header::Invalid,
    }
}

/// MongoDB wire protocol, standard message header: length, request, response to, operation.
fn mongodb(b: &[u8]) -> Header {
    if let Some(answer) = complete(b, 16, true) {
        return answer;
    }
    match (le32(b, 0), le32(b, 12)) {
        (len @ 16..=48_000_000, 1 | 2004 | 2012 | 2013) => Header::Frame(len),
        _ => Header::Invalid,
    }
}

/// Beckhoff AMS/TCP: reserved 0, length; AMS header: command, state, length of the data.
fn ams(b: &[u8]) -> Header {
    if let Some(answer) = complete(b, 38, b[0] == 0 && b.get(1).is_none_or(|v| *v == 0)) {
        return answer;
    }
    let (total, command, data) = (le32(b, 2), le16(b, 22), le32(b, 26));
    if command <= 9 && total == data.saturating_add(32) && total <= 0x0100_0000 {
        Header::Frame(6 + total)
    } else {
        Header::Invalid
    }
}

/// Nobody echoes more: a time stamp or nothing.
const ECHO_MAX: u32 = 72;

/// OpenFlow section 7.1: version, type, length, transaction. Greetings are short, and errors begin with one of few
/// kinds: Diameter, TDS and FPM have a version, a type and a length in the same places.
fn openflow(b: &[u8]) -> Header {
    let kind = b.get(1).copied().unwrap_or_default();
    let need = if kind == 1 { 12 } else { 8 };
    if let Some(answer) = complete(b, need, (1..=6).contains(&b[0]) && kind <= 35) {
        return answer;
    }
    let lawful = |len: u32| match kind {
        0 => (8..=32).contains(&len) && len.is_multiple_of(8),
        2 | 3 => (8..=ECHO_MAX).contains(&len),
        1 => len >= 12 && matches!(be16(b, 8), 0..=17 | 0xFFFF),
        _ => len >= 8,
    };
    match be16(b, 2) {
        len if lawful(len) => Header::Frame(len),
        _ => Header::Invalid,
    }
}

/// TLS records, RFC 8446 section 5.1 and RFC 5246 section 6.2: type, version, length.
fn tls(b: &[u8]) -> Header {
    let lawful = (20..=24).contains(&b[0])
        && b.get(1).is_none_or(|v| *v == 3)
        && b.get(2).is_none_or(|v| *v <= 4);
    if let Some(answer) = complete(b, 5, lawful) {
        return answer;
    }
    match be16(b, 3) {
        len @ 1..=18_432 => Header::Frame(5 + len),
        _ => Header::Invalid,
    }
}

/// MQTT 5.0 section 2.1: type and flags, remaining length as a variable byte integer.
fn mqtt(b: &[u8]) -> Header {
    let (kind, flags) = (b[0] >> 4, b[0] & 0x0F);
    let lawful = match kind {
        3 => flags & 6 != 6,
        6 | 8 | 10 => flags == 2,
        1..=15 => flags == 0,
        _ => false,
    };
    if !lawful {
        return Header::Invalid;
    }
    let Some(last) = b[1..].iter().take(4).position(|v| v & 0x80 == 0) else {
        return if b.len() >= 5 { Header::Invalid } else { Header::More };
    };
    let head = last + 2;
    let remaining = b[1..head].iter().rev().fold(0u32, |n, v| n << 7 | u32::from(v & 0x7F));
    // Section 3.3.2.1: what is published begins with the length of its topic's name. LDAP's messages begin alike.
    if kind == 3 && b.len() < head + 2 {
        return if remaining >= 2 { Header::More } else { Header::Invalid };
    }
    let plausible = match kind {
        3 => remaining >= 3 && be16(b, head) + 2 <= remaining,
        12 | 13 => remaining == 0,
        4..=7 | 11 => (2..=256).contains(&remaining),
        1 | 8..=10 => remaining >= 3,
        2 => (2..=1024).contains(&remaining),
        _ => true,
    };
    if plausible { Header::Frame(head as u32 + remaining) } else { Header::Invalid }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: fn(&[u8]) -> Header, bytes: &[u8], expect: Header) {
        let answer = (1..=bytes.len())
            .map(|n| header(&bytes[..n]))
            .find(|h| *h != Header::More)
            .unwrap_or(Header::More);
        assert_eq!(answer, expect, "{bytes:02x?}");
    }

    #[test]
    fn headers_give_the_length_of_their_frame() {
        let link_frame = [0x05, 0x64, 0x05, 0xC0, 0x01, 0x00, 0x00, 0x04, 0xE9, 0x21];
        check(dnp3, &link_frame, Header::Frame(10));
        let mut c37 = vec![0xAA, 0x01, 0x00, 0x36];
        c37.resize(14, 1);
        check(c37118, &c37, Header::Frame(54));
        check(modbus, &[0, 1, 0, 0, 0, 6, 1, 3], Header::Frame(12));
        check(iec104, &[0x68, 4, 1, 0, 8, 0], Header::Frame(6));
        check(iec104, &[0x68, 14, 2, 0, 8, 0], Header::Frame(16));
        check(tls, &[23, 3, 3, 1, 0], Header::Frame(261));
        check(opc_ua, b"MSGF\x40\0\0\0", Header::Frame(64));
        check(mqtt, &[0x30, 0x82, 0x01, 0, 9], Header::Frame(133));
        check(mqtt, &[0xC0, 0], Header::Frame(2));
        check(tpkt, &[3, 0, 0, 31, 2, 0xF0], Header::Frame(31));
        check(openflow, &[1, 0, 0, 8, 0, 0, 0, 1], Header::Frame(8));
        check(mongodb, &[21, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0xDD, 7, 0, 0], Header::Frame(21));
        let mut read = vec![0, 0, 44, 0, 0, 0];
        read.resize(38, 0);
        (read[22], read[26]) = (2, 12);
        check(ams, &read, Header::Frame(50));
        let mut enip = vec![0x6F, 0, 4, 0, 1];
        enip.resize(24, 0);
        check(ethernet_ip, &enip, Header::Frame(28));
    }

    #[test]
    fn bytes_that_break_a_rule_are_refused() {
        check(dnp3, &[0x05, 0x64, 0x05, 0xC0, 0x01, 0, 0, 4, 0, 0], Header::Invalid);
        check(c37118, &[0xAB], Header::Invalid);
        check(modbus, &[0, 1, 0, 1], Header::Invalid);
        check(iec104, &[0x68, 3], Header::Invalid);
        check(tls, b"HTTP/", Header::Invalid);
        check(opc_ua, b"MSX", Header::Invalid);
        check(mqtt, &[0x30, 0xFF, 0xFF, 0xFF, 0xFF], Header::Invalid);
        check(openflow, &[1, 0, 0, 7, 0, 0, 0, 1], Header::Invalid);
        // A capabilities exchange of Diameter (RFC 6733 section 3), a response of TDS ([MS-TDS] section 2.2.3.1), a
        // route of FPM (a netlink message behind version, type and length), and a bind of LDAP (RFC 4511 section 4.2).
        check(openflow, &[1, 0, 0, 0xB0, 0x80, 0, 1, 1], Header::Invalid);
        check(openflow, &[4, 1, 1, 0x5E, 0, 0x33, 1, 0, 0xE3, 0x1B, 0, 1], Header::Invalid);
        check(openflow, &[1, 1, 0, 0x38, 0x34, 0, 0, 0, 0x18, 0, 1, 5], Header::Invalid);
        // NetPerfMeter's data, with a type, flags and a length.
        check(openflow, &[5, 3, 4, 0, 0, 0, 0, 0], Header::Invalid);
        check(mqtt, &[0x30, 12, 2, 1, 1, 0x60, 7, 2, 1, 3, 4, 0], Header::Invalid);
    }
}

//! What of a payload framing reads, and nothing else: so that a capture without its payload is still framed.
//!
//! Of each header the type and the lengths are kept; identifiers, addresses, sequence numbers of the application and
//! everything behind the header become zeros. A segment that is not in order keeps nothing: framing does not read it.

use super::protocols::{self, HEADER_MAX, Header, PROTOCOLS, Protocol};

/// One direction's way through its headers.
#[derive(Clone, Debug)]
pub(crate) struct BareHeaders {
    protocol: &'static Protocol,
    /// Sequence number of the next byte in order, once a segment was seen.
    next: Option<u32>,
    /// Bytes up to the next header, from `next`.
    ahead: u32,
    /// What has come of it, as it was and as it is kept.
    header: [u8; HEADER_MAX],
    bare: [u8; HEADER_MAX],
    have: usize,
}

impl BareHeaders {
    /// Of the protocol that was found; `None` where its name is not known.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let protocol = PROTOCOLS.iter().find(|protocol| protocol.name == name)?;
        let empty = [0; HEADER_MAX];
        Some(Self { protocol, next: None, ahead: 0, header: empty, bare: empty, have: 0 })
    }

    /// The part of a segment's captured payload that may be kept: headers, and zeros before and between them.
    pub(crate) fn strip(&mut self, seq: u32, len: u32, payload: &[u8]) -> Vec<u8> {
        let gap = self.next.map_or(0, |next| seq.wrapping_sub(next) as i32);
        if gap < 0 {
            return Vec::new();
        }
        if gap > 0 || self.next.is_none() {
            (self.ahead, self.have) = (0, 0);
        }
        self.next = Some(seq.wrapping_add(len));
        let mut kept = vec![0; payload.len()];
        let mut end = 0;
        let mut at = self.ahead;
        while at < len {
            let Some(&byte) = payload.get(at as usize).filter(|_| self.have < HEADER_MAX) else {
                // Whether this was a header is not known any more: the next segment begins anew.
                (self.next, self.have) = (None, 0);
                break;
            };
            self.header[self.have] = byte;
            self.bare[self.have] = self.bare_byte(self.have, byte);
            self.have += 1;
            match (self.protocol.header)(&self.header[..self.have]) {
                Header::Invalid => {
                    (self.next, self.have) = (None, 0);
                    break;
                }
                header => {
                    kept[at as usize] = self.bare[self.have - 1];
                    end = at as usize + 1;
                    at += 1;
                    if let Header::Frame(total) = header {
                        at = at.saturating_add(total - self.have as u32);
                        self.have = 0;
                    }
                }
            }
        }
        self.ahead = at.saturating_sub(len);
        kept.truncate(end);
        kept
    }

    /// Byte `at` of a header, of which those before are in `bare`.
    fn bare_byte(&self, at: usize, byte: u8) -> u8 {
        let name = self.protocol.name;
        if is_type_or_length(name, at) {
            return byte;
        }
        match (name, at) {
            // A function code that is lawful.
            ("modbus_tcp", 7) => 3,
            // The length goes on while the highest bit is set.
            ("mqtt", _) if self.bare[1..at.max(1)].iter().all(|v| v & 0x80 != 0) => byte,
            // Unnumbered and supervisory frames; the numbers of the others go.
            ("iec_60870_5_104", 2) if byte & 1 == 1 => byte,
            ("tpkt", 5) => byte & 0xf0,
            ("dnp3", 8) => protocols::dnp3_crc(&self.bare[..8]) as u8,
            ("dnp3", 9) => (protocols::dnp3_crc(&self.bare[..8]) >> 8) as u8,
            // A session, for a header of zeros says nothing.
            ("ethernet_ip", 4) => 1,
            _ => 0,
        }
    }
}

/// Whether this byte of the protocol's header is kept as it is; of C37.118 its times are, too.
fn is_type_or_length(protocol: &str, at: usize) -> bool {
    match protocol {
        "modbus_tcp" => (2..=5).contains(&at),
        "c37.118" => at <= 3 || (6..=17).contains(&at),
        "iec_60870_5_104" => at <= 1,
        "opc_ua" => at <= 7,
        "mongodb" => at <= 3 || at >= 12,
        "ads_ams" => [2..=5, 22..=23, 26..=29].iter().any(|bytes| bytes.contains(&at)),
        "tls" | "tpkt" => at <= 4,
        "dnp3" | "ethernet_ip" | "openflow" => at <= 3,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_modbus_the_length_is_left_also_where_the_header_comes_apart() {
        let mut bare = BareHeaders::new("modbus_tcp").expect("known");
        let request = [0x12, 0x34, 0, 0, 0, 6, 0x11, 4, 0xca, 0xfe, 0xba, 0xbe];
        assert_eq!(bare.strip(100, 12, &request), [0, 0, 0, 0, 0, 6, 0, 3]);
        // The next one in two segments; its second half again, and what follows.
        assert_eq!(bare.strip(112, 7, &request[..7]), [0, 0, 0, 0, 0, 6, 0]);
        assert_eq!(bare.strip(119, 5, &request[7..]), [3]);
        assert_eq!(bare.strip(119, 5, &request[7..]), [0; 0]);
        assert_eq!(bare.strip(124, 12, &request), [0, 0, 0, 0, 0, 6, 0, 3]);
        // After a gap, what is no header is not kept, and one that is, is.
        assert_eq!(bare.strip(200, 5, &[1, 2, 3, 4, 5]), [0, 0]);
        assert_eq!(bare.strip(205, 12, &request), [0, 0, 0, 0, 0, 6, 0, 3]);
    }

    #[test]
    fn a_bare_header_is_a_header_of_the_same_length() {
        let link_frame = [0x05, 0x64, 0x05, 0xC0, 0x01, 0x00, 0x00, 0x04, 0xE9, 0x21];
        let mut c37 = vec![0xAA, 0x01, 0x00, 0x0e];
        c37.resize(14, 7);
        let frames: [(&str, &[u8]); 7] = [
            ("mongodb", &[18, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 0xDD, 7, 0, 0, 9, 9]),
            ("dnp3", &link_frame),
            ("c37.118", &[&c37[..3], &[16], &c37[4..], &[9, 9]].concat()),
            ("iec_60870_5_104", &[0x68, 6, 2, 9, 8, 7, 5, 5]),
            ("tls", &[23, 3, 3, 0, 2, 9, 9]),
            ("mqtt", &[0x30, 4, 0, 2, 9, 9]),
            ("openflow", &[1, 10, 0, 9, 5, 6, 7, 8, 9]),
        ];
        for (name, frame) in frames {
            let mut bare = BareHeaders::new(name).expect("known");
            let kept = bare.strip(0, frame.len() as u32, frame);
            let header = bare.protocol.header;
            let read = |bytes: &[u8]| {
                (1..=bytes.len()).map(|n| header(&bytes[..n])).find(|h| *h != Header::More)
            };
            assert_eq!(read(&kept), Some(Header::Frame(frame.len() as u32)), "{name}: {kept:?}");
            assert!(!kept.contains(&9) || name == "openflow", "{name}: {kept:?}");
        }
    }
}

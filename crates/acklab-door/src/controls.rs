//! Control messages as bytes: `struct cmsghdr` of 64-bit Linux, a length of 8 bytes, level and type of 4, content
//! up to the next multiple of 8.

use acklab_host::errqueue::{Entry, stamp};
use acklab_host::settings::SECOND;
use acklab_host::socket::Family;

/// `SO_EE_ORIGIN_TIMESTAMPING`.
pub(crate) const STAMPING: u8 = 4;
const SOL_SOCKET: i32 = 1;
const SO_TIMESTAMPING: i32 = 37;
const SOL_TCP: i32 = 6;
const TCP_CM_INQ: i32 = 36;
/// Level and type of IP_RECVERR and IPV6_RECVERR.
const RECVERR: [(i32, i32); 2] = [(0, 11), (41, 25)];
const HEADER: usize = 16;

fn append(all: &mut Vec<u8>, level: i32, kind: i32, content: &[u8]) {
    all.extend((HEADER + content.len()).to_ne_bytes());
    all.extend(level.to_ne_bytes());
    all.extend(kind.to_ne_bytes());
    all.extend(content);
    all.resize(all.len().next_multiple_of(8), 0);
}

/// How many bytes wait behind those that were read.
pub(crate) fn of_inq(unread: i32) -> Vec<u8> {
    let mut all = Vec::new();
    append(&mut all, SOL_TCP, TCP_CM_INQ, &unread.to_ne_bytes());
    all
}

/// An entry of the error queue: `struct scm_timestamping` where it has a time, `struct sock_extended_err` and an
/// address without content.
pub(crate) fn of_error(entry: &Entry, family: Family) -> Vec<u8> {
    let mut all = Vec::new();
    if let Some(at) = entry.at {
        let mut content = Vec::new();
        content.extend((at / SECOND).to_ne_bytes());
        content.extend((at % SECOND * 1000).to_ne_bytes());
        content.resize(48, 0);
        append(&mut all, SOL_SOCKET, SO_TIMESTAMPING, &content);
    }
    let mut content = Vec::new();
    content.extend(entry.errno.to_ne_bytes());
    content.extend([entry.origin, entry.kind, entry.code, 0]);
    content.extend(entry.info.to_ne_bytes());
    content.extend(entry.data.to_ne_bytes());
    let v6 = family == Family::V6;
    content.resize(16 + if v6 { 28 } else { 16 }, 0);
    let (level, kind) = RECVERR[usize::from(v6)];
    append(&mut all, level, kind, &content);
    all
}

/// Stamps that a write asks for by SO_TIMESTAMPING.
pub(crate) fn stamps(mut controls: &[u8]) -> u8 {
    let word = |bytes: &[u8], at: usize| {
        let word = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
        word.map_or(0, u32::from_ne_bytes)
    };
    let mut stamps = 0;
    while let Some(length) = controls.get(..8).and_then(|b| b.try_into().ok()) {
        let length = usize::from_ne_bytes(length);
        let Some(message) = controls.get(..length).filter(|m| m.len() >= HEADER) else { break };
        if (word(message, 8) as i32, word(message, 12) as i32) == (SOL_SOCKET, SO_TIMESTAMPING) {
            let wanted = word(message, HEADER);
            for (bit, wish) in [(2, stamp::SENT), (256, stamp::SCHEDULED), (512, stamp::ACKED)] {
                stamps |= if wanted & bit == 0 { 0 } else { wish };
            }
        }
        controls = controls.get(length.next_multiple_of(8)..).unwrap_or(&[]);
    }
    stamps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_read_of_any_message_and_damaged_ones_end_the_list() {
        let mut all = Vec::new();
        append(&mut all, 0, 1, &[1]);
        append(&mut all, SOL_SOCKET, SO_TIMESTAMPING, &(2_u32 | 512).to_ne_bytes());
        assert_eq!(stamps(&all), stamp::SENT | stamp::ACKED);
        for length in 0..all.len() {
            stamps(&all[..length]);
        }
        assert_eq!(stamps(&[0; 64]), 0);
        assert_eq!(stamps(&[0xff; 64]), 0);
    }
}

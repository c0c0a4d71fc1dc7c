//! One packet without what tells of its hosts: IP header, TCP header, and of the payload what framing reads.
//!
//! Built anew from the fields that are known; whatever is not known does not pass. Kept: ports, lengths, flags, window,
//! TTL and ECN, which the diagnosis reads. Mapped: addresses. Shifted by an offset of the host or of the direction, so that
//! differences stay: timestamps (which tell how long a host has been up), IP identifications, sequence numbers. Emptied: IP
//! options, extension headers, flow labels, DSCP, TCP options that are not known, the urgent pointer, and the TCP checksum,
//! which would confirm a guess of the payload.

use std::net::IpAddr;

use super::addresses::Addresses;
use super::key::Key;
use crate::frame::Headers;
use crate::segment::{Endpoint, Flags};

/// Both ends of a packet, sender first, as they were.
pub(super) type Ends = [Endpoint; 2];

/// The packet, of whose payload `payload` is kept.
pub(super) fn written(
    key: &Key,
    addresses: &mut Addresses,
    headers: &Headers<'_>,
    ends: Ends,
    payload: &[u8],
) -> Vec<u8> {
    let mapped = ends.map(|end| addresses.of(end.addr));
    let mut packet = match mapped {
        [IpAddr::V4(src), IpAddr::V4(dst)] => {
            let id = shifted_id(key, ends[0].addr, headers.ip);
            ipv4(headers.ip, id, [src.octets(), dst.octets()].as_flattened())
        }
        [src, dst] => ipv6(headers.ip, [src, dst]),
    };
    packet.extend(tcp(key, headers.tcp, ends));
    packet.extend(payload);
    packet
}

fn ipv4(header: &[u8], id: u16, addresses: &[u8]) -> Vec<u8> {
    let mut new = vec![NOP; header.len()];
    new[..10].copy_from_slice(&header[..10]);
    new[1] &= ECN;
    new[4..6].copy_from_slice(&id.to_be_bytes());
    new[10..12].fill(0);
    new[12..20].copy_from_slice(addresses);
    let sum = checksum(&new);
    new[10..12].copy_from_slice(&sum.to_be_bytes());
    new
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Header and extension headers, of which types and lengths are left.
fn ipv6(header: &[u8], addresses: [IpAddr; 2]) -> Vec<u8> {
    let mut new = vec![0; header.len()];
    new[0] = 0x60;
    new[1] = header[1] & (ECN << 4);
    new[4..8].copy_from_slice(&header[4..8]);
    for (place, address) in [(8, addresses[0]), (24, addresses[1])] {
        if let IpAddr::V6(address) = address {
            new[place..place + 16].copy_from_slice(&address.octets());
        }
    }
    let (mut at, mut kind) = (40, header[6]);
    while let Some(&[next, len]) = header.get(at..at + 2) {
        new[at] = next;
        let whole = match kind {
            FRAGMENT => {
                // Where the fragment lies, and whether there are more.
                new[at + 2..at + 4].copy_from_slice(&header[at + 2..at + 4]);
                8
            }
            AUTHENTICATION => 8 + 4 * usize::from(len),
            _ => 8 + 8 * usize::from(len),
        };
        if kind != FRAGMENT {
            new[at + 1] = len;
        }
        (at, kind) = (at + whole, next);
    }
    new
}

/// The header as far as it was captured.
fn tcp(key: &Key, header: &[u8], [from, to]: Ends) -> Vec<u8> {
    let mut new = vec![0; header.len()];
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    new[..4].copy_from_slice(&header[..4]);
    let (own, peers) = (sequence_offset(key, [from, to]), sequence_offset(key, [to, from]));
    new[4..8].copy_from_slice(&word(4).wrapping_add(own).to_be_bytes());
    if Flags(header[13]).has(Flags::ACK) {
        new[8..12].copy_from_slice(&word(8).wrapping_add(peers).to_be_bytes());
    }
    // The length, and of the reserved bits the one that accurate ECN uses.
    new[12] = header[12] & 0xf1;
    new[13..16].copy_from_slice(&header[13..16]);
    let clocks = [from, to].map(|end| host_offset(key, "clock", end.addr) as u32);
    options(&header[20..], &mut new[20..], peers, clocks);
    new
}

/// Writes the options that are known, others as padding; what contradicts itself ends the list, as it does for a receiver.
fn options(mut old: &[u8], mut new: &mut [u8], peers: u32, clocks: [u32; 2]) {
    while let [kind, rest @ ..] = old {
        let len = match (*kind, rest) {
            (END, _) => return,
            (NOP, _) => 1,
            (_, [len, ..]) if *len >= 2 && usize::from(*len) <= old.len() => usize::from(*len),
            _ => return,
        };
        let (option, after) = old.split_at(len);
        let (place, behind) = std::mem::take(&mut new).split_at_mut(len);
        let words = |value: &[u8], shift: &dyn Fn(usize, u32) -> u32| -> Vec<u8> {
            let words = value.chunks_exact(4).enumerate();
            words
                .flat_map(|(index, word)| {
                    let word = u32::from_be_bytes([word[0], word[1], word[2], word[3]]);
                    shift(index, word).to_be_bytes()
                })
                .collect()
        };
        match (*kind, len) {
            (MSS, 4) | (WINDOW_SCALE, 3) | (SACK_PERMITTED, 2) => place.copy_from_slice(option),
            (SACK, _) if len > 2 && (len - 2).is_multiple_of(8) => {
                place[..2].copy_from_slice(&option[..2]);
                let edges = words(&option[2..], &|_, edge| edge.wrapping_add(peers));
                place[2..].copy_from_slice(&edges);
            }
            (TIMESTAMPS, 10) => {
                place[..2].copy_from_slice(&option[..2]);
                // An echo of 0 says that there is none.
                let stamps = words(&option[2..], &|index, stamp| match (index, stamp) {
                    (1, 0) => 0,
                    _ => stamp.wrapping_add(clocks[index]),
                });
                place[2..].copy_from_slice(&stamps);
            }
            _ => place.fill(NOP),
        }
        (old, new) = (after, behind);
    }
}

/// How far the numbers of a direction are shifted.
fn sequence_offset(key: &Key, [from, to]: Ends) -> u32 {
    key.word("sequence", format!("{from} {to}").as_bytes()) as u32
}

fn host_offset(key: &Key, what: &str, address: IpAddr) -> u64 {
    key.word(what, address.to_string().as_bytes())
}

/// The identification, shifted; 0, which many systems send, stays, and nothing else becomes it.
fn shifted_id(key: &Key, from: IpAddr, header: &[u8]) -> u16 {
    let offset = host_offset(key, "identification", from) as u16;
    match u16::from_be_bytes([header[4], header[5]]) {
        0 => 0,
        id if id.wrapping_add(offset) == 0 => offset,
        id => id.wrapping_add(offset),
    }
}

/// Of the byte that DSCP and ECN share.
const ECN: u8 = 3;
/// Extension headers that have another layout than the rest.
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
/// Kinds of TCP options; the padding is IP's, too.
const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

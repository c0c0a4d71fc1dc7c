//! What the kernel tells of a socket: TCP_INFO by the names of its fields, SO_MEMINFO, entries of the error queue.

use std::os::fd::OwnedFd;

use acklab_host::errqueue::Entry;
use acklab_host::info::{LAYOUT, MEMORY};
use acklab_host::mib::Mib;
use acklab_host::settings::Us;
use nix::libc;

use super::calls;

/// The fields of `struct tcp_info` (linux/tcp.h), by name; those that a kernel does not have yet are left out.
fn info_fields(bytes: &[u8]) -> Vec<(&'static str, u64)> {
    let mut all = Vec::new();
    let part = |at: usize, size: usize| {
        let field = bytes.get(at..at + size)?;
        Some(field.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    };
    let mut at = 0;
    for (size, names) in LAYOUT {
        for name in names.split_whitespace() {
            if let Some(value) = part(at, *size) {
                match name {
                    "scales" => {
                        all.push(("tcpi_snd_wscale", value & 15));
                        all.push(("tcpi_rcv_wscale", value >> 4));
                    }
                    "flags" => {
                        all.push(("tcpi_delivery_rate_app_limited", value & 1));
                        all.push(("tcpi_fastopen_client_fail", value >> 1 & 3));
                    }
                    _ => all.push((name, value)),
                }
            }
            at += size;
        }
    }
    all
}

/// The counters of this thread's network namespace, by nstat's names: those that the simulated host has.
pub(super) fn counters() -> Vec<(&'static str, u64)> {
    let read = |name: &str| {
        std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default()
    };
    let mut values = std::collections::BTreeMap::new();
    for text in [read("snmp"), read("netstat")] {
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks_exact(2) {
            let (mut names, mut numbers) = (pair[0].split_whitespace(), pair[1].split_whitespace());
            let Some(head) = names.next().and_then(|head| head.strip_suffix(':')) else { continue };
            let _ = numbers.next();
            values.extend(names.zip(numbers).map(|(name, n)| (format!("{head}{name}"), n.parse())));
        }
    }
    let value = |mib: Mib| values.get(mib.name()).and_then(|n: &Result<u64, _>| n.clone().ok());
    Mib::ALL.into_iter().map(|mib| (mib.name(), value(mib).unwrap_or(0))).collect()
}

/// TCP_INFO and SO_MEMINFO of a socket: names and values.
pub(super) fn of(fd: &OwnedFd) -> Vec<(&'static str, u64)> {
    let read = calls::option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, 512);
    let mut fields = read.map_or_else(|_| Vec::new(), |bytes| info_fields(&bytes));
    // SO_MEMINFO
    let memory = calls::option(fd, libc::SOL_SOCKET, 55, 36).unwrap_or_default();
    for (name, word) in MEMORY.into_iter().zip(memory.chunks_exact(4)) {
        let value = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        fields.push((name, u64::from(value)));
    }
    fields
}

/// An entry of the error queue from its control messages: level, type, content.
pub(super) fn entry(
    controls: &[(i32, i32, Vec<u8>)],
    stamp: impl Fn(&[u8]) -> Option<Us>,
) -> Entry {
    let mut entry = Entry { errno: 0, origin: 0, kind: 0, code: 0, info: 0, data: 0, at: None };
    for (level, kind, content) in controls {
        let word = |at: usize| {
            let bytes = content.get(at..at + 4).and_then(|b| b.try_into().ok());
            bytes.map_or(0, u32::from_ne_bytes)
        };
        match (level, kind) {
            (0, 11) | (41, 25) if content.len() >= 16 => {
                entry.errno = word(0) as i32;
                (entry.origin, entry.kind, entry.code) = (content[4], content[5], content[6]);
                (entry.info, entry.data) = (word(8), word(12));
            }
            (1, 37 | 65) => entry.at = stamp(content),
            _ => {}
        }
    }
    entry
}

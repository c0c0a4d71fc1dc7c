//! What the kernel tells of a socket: TCP_INFO by the names of its fields, SO_MEMINFO, entries of the error queue.

use std::os::fd::OwnedFd;

use acklab_host::errqueue::Entry;
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
    for (size, names) in FIELDS {
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

/// Sizes and names of `struct tcp_info`, in order.
const FIELDS: &[(usize, &str)] = &[
    (
        1,
        "tcpi_state tcpi_ca_state tcpi_retransmits tcpi_probes tcpi_backoff tcpi_options scales flags",
    ),
    (
        4,
        "tcpi_rto tcpi_ato tcpi_snd_mss tcpi_rcv_mss tcpi_unacked tcpi_sacked tcpi_lost tcpi_retrans \
         tcpi_fackets tcpi_last_data_sent tcpi_last_ack_sent tcpi_last_data_recv tcpi_last_ack_recv \
         tcpi_pmtu tcpi_rcv_ssthresh tcpi_rtt tcpi_rttvar tcpi_snd_ssthresh tcpi_snd_cwnd tcpi_advmss \
         tcpi_reordering tcpi_rcv_rtt tcpi_rcv_space tcpi_total_retrans",
    ),
    (8, "tcpi_pacing_rate tcpi_max_pacing_rate tcpi_bytes_acked tcpi_bytes_received"),
    (
        4,
        "tcpi_segs_out tcpi_segs_in tcpi_notsent_bytes tcpi_min_rtt tcpi_data_segs_in \
         tcpi_data_segs_out",
    ),
    (8, "tcpi_delivery_rate tcpi_busy_time tcpi_rwnd_limited tcpi_sndbuf_limited"),
    (4, "tcpi_delivered tcpi_delivered_ce"),
    (8, "tcpi_bytes_sent tcpi_bytes_retrans"),
    (4, "tcpi_dsack_dups tcpi_reord_seen tcpi_rcv_ooopack tcpi_snd_wnd tcpi_rcv_wnd tcpi_rehash"),
    (2, "tcpi_total_rto tcpi_total_rto_recoveries"),
    (4, "tcpi_total_rto_time tcpi_received_ce tcpi_delivered_e1_bytes tcpi_delivered_e0_bytes"),
    (
        4,
        "tcpi_delivered_ce_bytes tcpi_received_e1_bytes tcpi_received_e0_bytes \
         tcpi_received_ce_bytes",
    ),
    (2, "tcpi_accecn_fail_mode tcpi_accecn_opt_seen"),
];

/// SO_MEMINFO's words.
const MEMORY: [&str; 9] = [
    "SK_MEMINFO_RMEM_ALLOC",
    "SK_MEMINFO_RCVBUF",
    "SK_MEMINFO_WMEM_ALLOC",
    "SK_MEMINFO_SNDBUF",
    "SK_MEMINFO_FWD_ALLOC",
    "SK_MEMINFO_WMEM_QUEUED",
    "SK_MEMINFO_OPTMEM",
    "SK_MEMINFO_BACKLOG",
    "SK_MEMINFO_DROPS",
];

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

//! TCP_INFO by the names of its fields.

/// The fields of `struct tcp_info` (linux/tcp.h), by name; those that a kernel does not have yet are left out.
pub(super) fn info_fields(bytes: &[u8]) -> Vec<(&'static str, u64)> {
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
pub(super) const MEMORY: [&str; 9] = [
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

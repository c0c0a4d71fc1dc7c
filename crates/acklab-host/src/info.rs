//! TCP_INFO: the fields by the names of `struct tcp_info`.

use crate::settings::INFINITE_SSTHRESH;
use crate::settings::{Env, MS, Us};
use crate::socket::Socket;
use crate::tcp::{EcnMode, State, Tcp};

/// The fields of `struct tcp_info`, with their values.
pub fn tcp_info(tcp: &Tcp, env: &Env<'_>) -> Vec<(&'static str, u64)> {
    let since =
        |at: Us| if at == 0 { env.now / MS } else { (env.now / MS).saturating_sub(at / MS) };
    // What the peer agreed to.
    let agreed = tcp.state != State::SynSent;
    let options = u64::from(tcp.terms.stamps && agreed)
        | u64::from(tcp.terms.sack && agreed) << 1
        | u64::from(tcp.terms.scaling && agreed) << 2
        | u64::from(tcp.ecn.mode != EcnMode::Off) << 3
        | u64::from(tcp.ecn.seen) << 4
        | u64::from(tcp.open.data_acked) << 5
        | u64::from(tcp.open.fast_child) << 7;
    let (packets, interval) = tcp.count.rate;
    let bytes = u64::from(packets) * u64::from(tcp.snd.mss) * 1_000_000;
    let rate = bytes.checked_div(interval).unwrap_or(0);
    let mut chrono = tcp.count.chrono;
    if let Some((kind, at)) = tcp.count.chrono_runs {
        chrono[kind] += env.now.saturating_sub(at);
    }
    let scaled = tcp.terms.scaling && agreed;
    let ssthresh = tcp.window.ssthresh;
    let v = u64::from;
    let mut fields = vec![
        ("tcpi_state", tcp.state as u64),
        ("tcpi_ca_state", tcp.rec.ca as u64),
        ("tcpi_retransmits", v(tcp.rec.retransmits)),
        ("tcpi_probes", v(tcp.rec.probes_out)),
        ("tcpi_backoff", v(tcp.rtt.backoff)),
        ("tcpi_options", options),
        ("tcpi_snd_wscale", if scaled { u64::from(tcp.terms.send_scale) } else { 0 }),
        ("tcpi_rcv_wscale", if scaled { u64::from(tcp.terms.receive_scale) } else { 0 }),
        ("tcpi_delivery_rate_app_limited", u64::from(tcp.count.rate_app_limited)),
        ("tcpi_fastopen_client_fail", u64::from(tcp.open.client_fail)),
        ("tcpi_rto", tcp.rtt.rto),
        ("tcpi_ato", tcp.ack.ato),
        ("tcpi_snd_mss", v(tcp.snd.mss)),
        ("tcpi_rcv_mss", v(tcp.ack.rcv_mss)),
        ("tcpi_sacked", v(tcp.rec.sacked)),
        ("tcpi_unacked", v(tcp.packets_out())),
        ("tcpi_lost", v(tcp.rec.lost)),
        ("tcpi_retrans", v(tcp.rec.retrans)),
        ("tcpi_fackets", 0),
        ("tcpi_last_data_sent", since(tcp.snd.last_sent)),
        ("tcpi_last_ack_sent", 0),
        ("tcpi_last_data_recv", since(tcp.rcv.last_data)),
        ("tcpi_last_ack_recv", since(tcp.rcv.heard)),
        ("tcpi_pmtu", v(tcp.snd.pmtu)),
        ("tcpi_rcv_ssthresh", v(tcp.rcv.ssthresh)),
        ("tcpi_rtt", tcp.rtt.srtt()),
        ("tcpi_rttvar", tcp.rtt.mdev >> 2),
        ("tcpi_snd_ssthresh", v(ssthresh.min(INFINITE_SSTHRESH))),
        ("tcpi_snd_cwnd", v(tcp.window.cwnd)),
        ("tcpi_advmss", v(tcp.terms.advmss)),
        ("tcpi_reordering", v(tcp.rec.reordering)),
        ("tcpi_rcv_rtt", tcp.rcv.rtt8 >> 3),
        ("tcpi_rcv_space", v(tcp.rcv.space)),
        ("tcpi_total_retrans", v(tcp.rec.total_retrans)),
        ("tcpi_pacing_rate", tcp.count.pacing_rate),
        ("tcpi_max_pacing_rate", if tcp.opt.pacing > 0 { tcp.opt.pacing } else { u64::MAX }),
        ("tcpi_bytes_acked", tcp.count.bytes_acked),
        ("tcpi_bytes_received", tcp.count.bytes_received),
        ("tcpi_segs_out", v(tcp.count.segs_out)),
        ("tcpi_segs_in", v(tcp.count.segs_in)),
        ("tcpi_notsent_bytes", v(tcp.snd.write_seq.wrapping_sub(tcp.snd.nxt))),
        ("tcpi_min_rtt", if tcp.rtt.least() == 0 { 0xffff_ffff } else { tcp.rtt.least() }),
        ("tcpi_data_segs_in", v(tcp.count.data_segs_in)),
        ("tcpi_data_segs_out", v(tcp.count.data_segs_out)),
        ("tcpi_delivery_rate", rate),
        ("tcpi_busy_time", chrono.iter().sum()),
        ("tcpi_rwnd_limited", chrono[1]),
        ("tcpi_sndbuf_limited", chrono[2]),
        ("tcpi_delivered", v(tcp.rec.delivered)),
        ("tcpi_delivered_ce", v(tcp.rec.delivered_ce)),
        ("tcpi_bytes_sent", tcp.count.bytes_sent),
        ("tcpi_bytes_retrans", tcp.count.bytes_retrans),
        ("tcpi_dsack_dups", v(tcp.rec.dsack_dups)),
        ("tcpi_reord_seen", v(tcp.rec.reord_seen)),
        ("tcpi_rcv_ooopack", v(tcp.count.rcv_ooopack)),
        ("tcpi_snd_wnd", v(tcp.snd.wnd)),
        ("tcpi_rcv_wnd", v(tcp.rcv.wnd)),
        ("tcpi_rehash", v(tcp.rec.rehash)),
        ("tcpi_total_rto", v(tcp.rec.total_rto)),
        ("tcpi_total_rto_recoveries", u64::from(tcp.rec.rto_recoveries)),
        ("tcpi_total_rto_time", 0),
    ];
    // SO_MEMINFO, as far as memory is accounted here.
    fields.extend([
        ("SK_MEMINFO_RMEM_ALLOC", v(tcp.allocated())),
        ("SK_MEMINFO_RCVBUF", v(tcp.rcv.buffer)),
        ("SK_MEMINFO_SNDBUF", v(tcp.opt.sndbuf)),
        ("SK_MEMINFO_WMEM_QUEUED", v(tcp.snd.memory)),
        ("SK_MEMINFO_DROPS", 0),
    ]);
    fields.extend(tcp.ecn.accurate.info());
    fields
}

/// The same of a socket: of a listener what it has (`tcp_get_info`), whose children wait in `tcpi_unacked`.
pub fn socket_info(socket: &Socket, env: &Env<'_>) -> Vec<(&'static str, u64)> {
    let mut fields = tcp_info(&socket.tcp, env);
    if socket.tcp.state != State::Listen {
        return fields;
    }
    for (name, value) in &mut fields {
        *value = match *name {
            "tcpi_unacked" => socket.ready.len() as u64,
            "tcpi_sacked" => u64::from(socket.backlog.unwrap_or(0)),
            "tcpi_state" | "tcpi_max_pacing_rate" | "tcpi_reordering" | "tcpi_snd_cwnd" => *value,
            name if name.starts_with("tcpi_") => 0,
            _ => *value,
        };
    }
    fields
}

/// The bytes of `struct tcp_info` as Linux 6.18 has it.
pub fn tcp_info_bytes(fields: &[(&'static str, u64)]) -> Vec<u8> {
    let of = |name: &str| fields.iter().find(|(known, _)| *known == name).map_or(0, |&(_, v)| v);
    let mut bytes = Vec::new();
    for (size, names) in LAYOUT {
        for name in names.split_whitespace() {
            let value = match name {
                "scales" => of("tcpi_snd_wscale") & 15 | of("tcpi_rcv_wscale") << 4,
                "flags" => {
                    of("tcpi_delivery_rate_app_limited") & 1
                        | (of("tcpi_fastopen_client_fail") & 3) << 1
                }
                name => of(name),
            };
            bytes.extend(&value.to_le_bytes()[..*size]);
        }
    }
    bytes
}

/// Sizes and names of `struct tcp_info`, in order: `scales` holds both shifts in four bits each, `flags` two fields in
/// one and two bits.
pub const LAYOUT: &[(usize, &str)] = &[
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
pub const MEMORY: [&str; 9] = [
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

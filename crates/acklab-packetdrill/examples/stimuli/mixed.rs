//! Everything at once: a connection on which a program and a peer do random things, weighed by a theme.

use std::collections::BTreeSet;

use super::script::{Dice, Script};

/// What may happen.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Several packets are written.
    Write,
    /// A few bytes are, with flags.
    Send,
    /// The peer acknowledges some of what is out.
    Ack,
    /// A packet arrived behind others that did not.
    Sack,
    /// A hole is filled, or reported again (DSACK).
    Fill,
    /// Data in order.
    Data,
    /// Data behind a gap, which the next data fills.
    Gap,
    /// Data that came before, in whole or in part.
    Again,
    /// The program reads, in every way.
    Read,
    /// An error from the path.
    Icmp,
    /// A narrower link on the path.
    TooBig,
    /// The program closes or shuts down.
    End,
    /// The peer ends.
    Fin,
    /// The peer resets.
    Reset,
    /// A socket option.
    Option,
    /// The peer's window.
    Window,
    /// A marked packet, or an echo of one.
    Mark,
    /// The peer's urgent data.
    Urgent,
    /// Our urgent data.
    Oob,
    /// What poll and epoll say.
    Poll,
    /// A write with stamps asked for, or without a copy.
    Told,
    /// What the error queue holds.
    Queue,
    /// A long wait.
    Idle,
}

/// What happens in a theme, each as likely as the others, and what is set before.
pub(super) struct Theme {
    pub(super) name: &'static str,
    acts: &'static [Act],
    /// Settings that are drawn of [`MIXED`].
    settings: u64,
    /// Settings that all have.
    before: &'static [(&'static str, &'static str)],
    /// Calls on the listener, `{}` drawn of the numbers.
    listener: &'static [(&'static str, &'static [u64])],
    /// The same on the connection.
    accepted: &'static [(&'static str, &'static [u64])],
}

/// One without settings.
const PLAIN: Theme =
    Theme { name: "", acts: &[], settings: 0, before: &[], listener: &[], accepted: &[] };

use Act::{
    Ack, Again, Data, End, Fill, Fin, Gap, Icmp, Idle, Mark, Oob, Option as Set, Poll, Queue, Read,
    Reset, Sack, Send, Told, TooBig, Urgent, Window, Write,
};

pub(super) const THEMES: &[Theme] = &[
    Theme {
        name: "settings",
        acts: &[Write, Write, Send, Ack, Ack, Sack, Sack, Fill, Data, Data, Gap, Again, Read],
        settings: 4,
        ..PLAIN
    },
    Theme {
        name: "buffers",
        acts: &[Write, Write, Send, Ack, Ack, Data, Data, Data, Data, Gap, Again, Read, Poll],
        settings: 1,
        listener: &[("SOL_SOCKET, SO_RCVBUF", &[2000, 5000, 10_000, 30_000])],
        accepted: &[("SOL_SOCKET, SO_SNDBUF", &[2000, 5000, 10_000, 30_000])],
        ..PLAIN
    },
    Theme {
        name: "icmp",
        acts: &[Write, Send, Ack, Sack, Fill, Data, Read, Icmp, TooBig, TooBig, Queue],
        settings: 1,
        accepted: &[("SOL_IP, IP_RECVERR", &[0, 1])],
        ..PLAIN
    },
    Theme {
        name: "middle",
        acts: &[Write, Send, Ack, Ack, Sack, Fill, Data, Data, Gap, Read, End, Fin, Reset, Idle],
        settings: 1,
        ..PLAIN
    },
    Theme {
        name: "urgent",
        acts: &[Write, Send, Ack, Ack, Data, Gap, Read, Urgent, Urgent, Oob, Oob, Poll],
        ..PLAIN
    },
    Theme {
        name: "marked",
        acts: &[Write, Write, Ack, Ack, Sack, Fill, Data, Gap, Mark, Mark, Mark],
        settings: 1,
        before: &[("tcp_ecn", "1")],
        ..PLAIN
    },
    Theme {
        name: "options",
        acts: &[Write, Send, Send, Ack, Ack, Data, Gap, Read, Set, Set, Set, Idle],
        ..PLAIN
    },
    Theme {
        name: "sacks",
        acts: &[Write, Write, Ack, Sack, Sack, Sack, Sack, Fill, Fill, Fill],
        ..PLAIN
    },
    Theme {
        name: "zero",
        acts: &[Write, Send, Ack, Ack, Window, Window, Window, Data, Read, Idle, Idle],
        ..PLAIN
    },
    Theme {
        name: "alive",
        acts: &[Send, Ack, Data, Read, Idle, Idle, Idle],
        accepted: &[
            ("SOL_TCP, TCP_KEEPIDLE", &[1, 2]),
            ("SOL_TCP, TCP_KEEPINTVL", &[1]),
            ("SOL_TCP, TCP_KEEPCNT", &[2, 3]),
            ("SOL_SOCKET, SO_KEEPALIVE", &[1]),
        ],
        ..PLAIN
    },
    Theme {
        name: "impatient",
        acts: &[Write, Send, Ack, Window, Data, Read, Idle, Idle, Idle, Poll],
        accepted: &[("SOL_TCP, TCP_USER_TIMEOUT", &[500, 1500, 3000])],
        ..PLAIN
    },
    Theme {
        name: "polled",
        acts: &[Write, Send, Ack, Ack, Data, Gap, Read, Poll, Poll, Poll, Fin, Set],
        accepted: &[("SOL_SOCKET, SO_SNDBUF", &[10_000, 50_000])],
        ..PLAIN
    },
    Theme {
        name: "told",
        acts: &[Told, Told, Send, Ack, Ack, Sack, Fill, Queue, Queue, Queue],
        accepted: &[
            ("SOL_SOCKET, SO_TIMESTAMPING", &[0x292, 0xa92, 0x392, 0x1a90]),
            ("SOL_SOCKET, SO_ZEROCOPY", &[1]),
        ],
        ..PLAIN
    },
];

/// Settings of which some are drawn.
const MIXED: &[(&str, &[&str])] = &[
    ("tcp_sack", &["0"]),
    ("tcp_dsack", &["0"]),
    ("tcp_timestamps", &["0"]),
    ("tcp_window_scaling", &["0"]),
    ("tcp_recovery", &["0", "2", "4"]),
    ("tcp_early_retrans", &["0"]),
    ("tcp_frto", &["0"]),
    ("tcp_slow_start_after_idle", &["0"]),
    ("tcp_reordering", &["1", "2", "5", "10"]),
    ("tcp_max_reordering", &["5"]),
    ("tcp_moderate_rcvbuf", &["0"]),
    ("tcp_min_tso_segs", &["1", "4"]),
    ("tcp_tso_win_divisor", &["0", "1", "8"]),
    ("tcp_comp_sack_nr", &["0", "1", "5"]),
    ("tcp_pingpong_thresh", &["2", "3"]),
    ("tcp_notsent_lowat", &["2000"]),
    ("tcp_retries1", &["1"]),
    ("tcp_retries2", &["2", "4"]),
    ("tcp_thin_linear_timeouts", &["1"]),
    ("tcp_retrans_collapse", &["0"]),
    ("tcp_rto_min_us", &["50000", "500000"]),
    ("tcp_rto_max_ms", &["1000"]),
    ("tcp_workaround_signed_windows", &["1"]),
    ("tcp_shrink_window", &["1"]),
    ("tcp_min_rtt_wlen", &["1"]),
    ("tcp_invalid_ratelimit", &["0", "2000"]),
    ("tcp_rfc1337", &["1"]),
    ("tcp_fin_timeout", &["1"]),
    ("tcp_orphan_retries", &["1", "2"]),
    ("tcp_mtu_probing", &["1", "2"]),
    ("tcp_ecn", &["0", "1"]),
    ("tcp_autocorking", &["0"]),
    ("tcp_no_metrics_save", &["1"]),
    ("tcp_rmem", &["\"4096 20000 60000\"", "\"4096 131072 200000\""]),
    ("tcp_wmem", &["\"4096 8192 20000\"", "\"4096 30000 100000\""]),
    ("tcp_app_win", &["3"]),
    ("tcp_challenge_ack_limit", &["2"]),
    ("tcp_limit_output_bytes", &["4096"]),
    ("tcp_pacing_ss_ratio", &["100"]),
    ("tcp_pacing_ca_ratio", &["200"]),
];

/// Everything that does not depend on a clock's microseconds.
const INFO: &str = "%{ print(tcpi_state, tcpi_ca_state, tcpi_retransmits, tcpi_probes, tcpi_backoff, \
     tcpi_options, tcpi_snd_mss, tcpi_rcv_mss, tcpi_unacked, tcpi_sacked, tcpi_lost, tcpi_retrans, tcpi_pmtu) }%";
const MORE_INFO: &str = "%{ print(tcpi_rcv_ssthresh, tcpi_snd_ssthresh, tcpi_snd_cwnd, tcpi_advmss, \
     tcpi_reordering, tcpi_total_retrans, tcpi_bytes_acked, tcpi_bytes_received, tcpi_segs_out, tcpi_segs_in, \
     tcpi_notsent_bytes, tcpi_data_segs_in, tcpi_data_segs_out) }%";
const REST_OF_INFO: &str = "%{ print(tcpi_delivered, tcpi_delivered_ce, tcpi_bytes_sent, tcpi_bytes_retrans, \
     tcpi_dsack_dups, tcpi_reord_seen, tcpi_rcv_ooopack, tcpi_snd_wnd, tcpi_rcv_wnd, SK_MEMINFO_RMEM_ALLOC, \
     SK_MEMINFO_RCVBUF, SK_MEMINFO_SNDBUF, \
     tcpi_total_rto, tcpi_total_rto_recoveries, tcpi_rehash, tcpi_snd_wscale, tcpi_rcv_wscale) }%";

/// Writes a script of a theme.
pub(super) fn script(theme: &Theme, seed: u64) -> Script {
    let mut script = Script::empty(seed);
    let control = script.dice.of(&["reno", "cubic"]);
    script.setting("tcp_tso_rtt_log", "0");
    for (name, value) in theme.before {
        script.setting(name, value);
    }
    for _ in 0..theme.settings {
        let (name, values) = script.dice.of(MIXED);
        let value = script.dice.of(values);
        script.setting(name, value);
    }
    script.event("socket(..., SOCK_STREAM, IPPROTO_TCP) = 3");
    script.event(&format!("setsockopt(3, SOL_TCP, TCP_CONGESTION, \"{control}\", 5) = 0"));
    script.set(3, theme.listener);
    script.event("bind(3, ..., ...) = 0");
    script.event("listen(3, 1) = 0");
    script.now = 100;
    let flags = if theme.name == "marked" { "SEW" } else { "S" };
    script.syn(flags);
    script.now = 200;
    let window = script.window;
    script.packet(&format!(". 1:1(0) ack 1 win {window}"), "");
    script.event("accept(3, ..., ...) = 4");
    script.event("fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0");
    script.set(4, theme.accepted);
    if theme.acts.iter().any(|act| matches!(act, Poll)) {
        script.event("epoll_create(1) = 5");
        let edge = script.dice.of(&["", "|EPOLLET", "|EPOLLET|EPOLLONESHOT"]);
        script.event(&format!(
            "epoll_ctl(5, EPOLL_CTL_ADD, 4, {{events=EPOLLIN|EPOLLOUT|EPOLLRDHUP|EPOLLPRI{edge}, fd=4}}) = 0"
        ));
    }
    script.now = 210;
    let mut play = Play {
        script,
        next: 1,
        gap: 0,
        written: 0,
        acked: 0,
        got: BTreeSet::new(),
        wrote: 0,
        closed: false,
    };
    for _ in 0..10 + play.script.dice.roll(16) {
        let act = play.script.dice.of(theme.acts);
        play.act(act);
        play.script.now += play.script.dice.of(&[0, 1, 5, 12, 23, 60, 110, 290]);
        if !play.closed {
            for print in [INFO, MORE_INFO, REST_OF_INFO] {
                play.script.event(print);
            }
        }
    }
    play.script
}

struct Play {
    script: Script,
    /// The peer's next byte.
    next: u64,
    /// Bytes that are missing before it.
    gap: u64,
    /// Packets that were written.
    written: u64,
    /// Packets that the peer acknowledged.
    acked: u64,
    /// Packets that arrived behind them.
    got: BTreeSet<u64>,
    /// When something was written last.
    wrote: u64,
    /// The connection has no descriptor any more.
    closed: bool,
}

impl Play {
    fn dice(&mut self) -> &mut Dice {
        &mut self.script.dice
    }

    fn act(&mut self, act: Act) {
        match act {
            Write | Send | Oob | Told => self.write(act),
            Ack | Sack | Fill | Window => self.acknowledge(act),
            Data | Gap | Again | Urgent | Fin | Reset | Mark => self.arrive(act),
            Read => self.read(),
            Icmp | TooBig => self.icmp(act),
            End => self.end(),
            Set => self.option(),
            Poll => self.poll(),
            Queue => self.queue(),
            Idle => {
                let time = self.dice().of(&[300, 700, 1300, 2300]);
                self.script.now += time;
            }
        }
    }

    fn call(&mut self, what: &str) {
        if !self.closed {
            self.script.event(what);
        }
    }

    fn write(&mut self, act: Act) {
        self.wrote = self.script.now;
        let unit = self.script.unit();
        match act {
            Write => {
                let packets = self.dice().of(&[1, 2, 4, 10, 20]);
                self.written += packets;
                let bytes = packets * unit;
                self.call(&format!("write(4, ..., {bytes}) = {bytes}"));
            }
            Send => {
                let bytes: u64 = self.dice().of(&[1, 10, 100, 300, 999, 1000, 1500, 2500]);
                let flags = self.dice().of(&["0", "0", "MSG_MORE", "MSG_EOR", "MSG_DONTWAIT"]);
                self.written += bytes.div_ceil(unit);
                self.call(&format!("send(4, ..., {bytes}, {flags}) = {bytes}"));
            }
            Told => {
                let bytes: u64 = self.dice().of(&[10, 1000, 3000, 12_000]);
                let flags = self.dice().of(&["0", "MSG_ZEROCOPY", "MSG_MORE", "MSG_EOR"]);
                self.written += bytes.div_ceil(unit);
                self.call(&format!("send(4, ..., {bytes}, {flags}) = {bytes}"));
            }
            _ => {
                let bytes: u64 = self.dice().of(&[1, 10, 1500]);
                self.written += bytes.div_ceil(unit);
                self.call(&format!("send(4, ..., {bytes}, MSG_OOB) = {bytes}"));
            }
        }
    }

    fn acknowledge(&mut self, act: Act) {
        // What takes no time at all depends on microseconds.
        self.script.now = self.script.now.max(self.wrote + 10);
        let out = self.written.min(self.acked + 10).max(self.acked);
        let behind = out - self.acked;
        match act {
            Ack => {
                let more = self.dice().roll(behind + 1);
                self.got.extend(0..self.acked + more);
            }
            Sack if behind > 1 => {
                let at = self.acked + 1 + self.dice().roll(behind - 1);
                self.got.insert(at);
            }
            Fill => {
                let hole = (0..out).find(|packet| !self.got.contains(packet));
                self.got.extend(hole);
            }
            Window => self.script.window = self.dice().of(&[0, 0, 1, 3, 8, 30, 257]),
            _ => {}
        }
        let most = self.got.len() as u64;
        self.acked = (0..=most).find(|packet| !self.got.contains(packet)).unwrap_or(0);
        let next = self.next;
        self.script.acknowledge_from(next, &self.got);
    }

    fn arrive(&mut self, act: Act) {
        let len = self.dice().of(&[1, 100, 500, 1000, 1000, 1000, 1460]);
        let ack = self.acked * self.script.unit() + 1;
        let window = self.script.window;
        let next = self.next;
        let data = |script: &mut Script, flags: &str, from: u64, len: u64, rest: &str| {
            script.packet(
                &format!("{flags} {from}:{}({len}) ack {ack} win {window}{rest}", from + len),
                "",
            );
        };
        match act {
            Data => {
                let flags = self.script.dice.of(&[".", "P."]);
                data(&mut self.script, flags, next, len, "");
                self.next += len + self.gap;
                self.gap = 0;
            }
            Gap => {
                let missing = self.script.dice.of(&[1, 500, 1000, 3000]);
                data(&mut self.script, ".", next + missing, len, "");
                if self.gap == 0 && missing == 1000 {
                    self.gap = len;
                }
            }
            Again => {
                let from = next.saturating_sub(self.script.dice.of(&[1, 500, 1000, 2500])).max(1);
                data(&mut self.script, "P.", from, len, "");
                self.next = next.max(from + len);
            }
            Urgent => {
                let pointer = self.script.dice.of(&[1, len, len + 1, len + 700]);
                data(&mut self.script, "PU.", next, len, &format!(" urg {pointer}"));
                self.next += len;
            }
            Fin => {
                let beyond = self.script.dice.of(&[0, 0, 0, 1000]);
                let len = self.script.dice.of(&[0, 0, 100]);
                data(&mut self.script, "F.", next + beyond, len, "");
                self.next += if beyond == 0 { len + 1 } else { 0 };
            }
            Reset => {
                let from = self.script.dice.of(&[next, next, next + 1, next + 100_000]);
                self.script.packet(&format!("R. {from}:{from}(0) ack {ack} win {window}"), "");
            }
            _ => {
                let mark = self.script.dice.of(&["[ect0] ", "[ce] ", "[ce] ", "[noecn] "]);
                let flags = self.script.dice.of(&["P.", ".", "W.", "E.", "EW."]);
                let len = self.script.dice.of(&[0, 1000]);
                data(&mut self.script, &format!("{mark}{flags}"), next, len, "");
                self.next += len;
            }
        }
    }

    fn read(&mut self) {
        let max = self.dice().of(&[1, 100, 1000, 5000, 100_000]);
        let flags = self.dice().of(&[
            "0",
            "0",
            "0",
            "0",
            "MSG_PEEK",
            "MSG_TRUNC",
            "MSG_OOB",
            "MSG_PEEK|MSG_TRUNC",
            "MSG_WAITALL",
            "MSG_PEEK|MSG_OOB",
        ]);
        self.call(&format!("recv(4, ..., {max}, {flags}) = {max}"));
        self.call("ioctl(4, SIOCINQ, [0]) = 0");
        self.call("ioctl(4, SIOCOUTQ, [0]) = 0");
        self.call("ioctl(4, SIOCOUTQNSD, [0]) = 0");
    }

    fn icmp(&mut self, act: Act) {
        let unit = self.script.unit();
        let seq = self.acked * unit + self.dice().of(&[1, 1, 1, 1001, 100_001]);
        let what = match act {
            TooBig => {
                let mtu = self.dice().of(&[40, 500, 552, 600, 800, 900, 1000, 1040, 1200, 1500]);
                format!("frag_needed mtu {mtu}")
            }
            _ => self
                .dice()
                .of(&[
                    "host_unreachable",
                    "net_unreachable",
                    "port_unreachable",
                    "protocol_unreachable",
                ])
                .to_owned(),
        };
        self.script.event(&format!("< icmp unreachable {what} [{seq}:{}({unit})]", seq + unit));
    }

    fn end(&mut self) {
        if self.dice().roll(3) == 0 {
            self.call("close(4) = 0");
            self.closed = true;
            return;
        }
        let how = self.dice().of(&["SHUT_RD", "SHUT_WR", "SHUT_RDWR"]);
        self.call(&format!("shutdown(4, {how}) = 0"));
    }

    fn option(&mut self) {
        let options: &[(&str, &[u64])] = &[
            ("SOL_TCP, TCP_NODELAY", &[0, 1]),
            ("SOL_TCP, TCP_CORK", &[0, 1]),
            ("SOL_TCP, TCP_QUICKACK", &[0, 1]),
            ("SOL_TCP, TCP_NOTSENT_LOWAT", &[0, 1000, 20_000]),
            ("SOL_TCP, TCP_USER_TIMEOUT", &[0, 2000]),
            ("SOL_TCP, TCP_WINDOW_CLAMP", &[0, 2000, 20_000]),
            ("SOL_TCP, TCP_LINGER2", &[1, 5]),
            ("SOL_TCP, TCP_MAXSEG", &[500, 800]),
            ("SOL_TCP, TCP_DELACK_MAX_US", &[1000, 20_000]),
            ("SOL_TCP, TCP_RTO_MIN_US", &[5000, 100_000]),
            ("SOL_TCP, TCP_RTO_MAX_MS", &[1000, 5000]),
            ("SOL_SOCKET, SO_RCVLOWAT", &[1, 1500, 5000, 50_000]),
            ("SOL_SOCKET, SO_RCVBUF", &[1000, 10_000, 100_000]),
            ("SOL_SOCKET, SO_SNDBUF", &[1000, 10_000, 100_000]),
            ("SOL_SOCKET, SO_KEEPALIVE", &[0, 1]),
            ("SOL_SOCKET, SO_PRIORITY", &[1, 6]),
            ("SOL_IP, IP_TOS", &[0, 8, 0x10, 3]),
            ("SOL_IP, IP_TTL", &[5, 64]),
            ("SOL_IP, IP_MTU_DISCOVER", &[0, 1, 2, 3]),
        ];
        let (name, values) = self.dice().of(options);
        let value = self.dice().of(values);
        self.call(&format!("setsockopt(4, {name}, [{value}], 4) = 0"));
        self.call(&format!("getsockopt(4, {name}, [77], [4]) = 0"));
    }

    fn poll(&mut self) {
        let all = "POLLIN|POLLOUT|POLLPRI|POLLRDHUP";
        self.call(&format!("poll([{{fd=4, events={all}, revents=0x8000}}], 1, 0) = 1"));
        self.call("epoll_wait(5, {events=0x8000, fd=4}, 1, 0) = 1");
    }

    fn queue(&mut self) {
        let field = self.dice().of(&["ee_errno", "ee_origin", "ee_code", "ee_info", "ee_data"]);
        self.call("poll([{fd=4, events=POLLIN, revents=0x8000}], 1, 0) = 1");
        self.call(&format!(
            "recvmsg(4, {{msg_name(...)=..., msg_iov(1)=[{{..., 0}}], msg_flags=MSG_ERRQUEUE|MSG_TRUNC, \
             msg_control=[{{cmsg_level=SOL_SOCKET, cmsg_type=SCM_TIMESTAMPING, cmsg_data={{scm_sec=..., scm_nsec=...}}}}, \
             {{cmsg_level=SOL_IP, cmsg_type=IP_RECVERR, cmsg_data={{{field}=77}}}}]}}, MSG_ERRQUEUE) = 0"
        ));
    }
}

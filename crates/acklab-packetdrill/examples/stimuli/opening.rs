//! How connections begin and begin again: listeners, active opens, fast open, TIME-WAIT.

use super::script::Script;

/// A SYN's options, of every kind.
const SYN_OPTIONS: &[&str] = &[
    "",
    " <mss 1000>",
    " <mss 1460,nop,wscale 0>",
    " <mss 1000,sackOK,nop,nop,nop,wscale 14>",
    " <mss 1000,sackOK,nop,nop,nop,wscale 15>",
    " <mss 30,nop,wscale 7>",
    " <mss 0>",
    " <mss 1000,sackOK,TS val 1000 ecr 0,nop,wscale 7>",
    " <mss 1000,nop,nop,TS val 0 ecr 0>",
    " <mss 65535,sackOK,nop,nop>",
    " <nop,nop,sackOK,mss 536,eol>",
];
const INFO: &str = "%{ print(tcpi_state, tcpi_options, tcpi_snd_mss, tcpi_advmss, tcpi_rcv_mss, tcpi_unacked, \
     tcpi_snd_cwnd, tcpi_rcv_ssthresh, tcpi_bytes_received, tcpi_bytes_acked, tcpi_snd_wnd, tcpi_rcv_wnd, \
     tcpi_total_retrans, tcpi_delivered, SK_MEMINFO_RMEM_ALLOC, SK_MEMINFO_RCVBUF) }%";

impl Script {
    fn open(seed: u64, settings: &[(&str, &[&str])]) -> Self {
        let mut script = Self::empty(seed);
        for (name, values) in settings {
            let value = script.dice.of(values);
            if !value.is_empty() {
                script.setting(name, value);
            }
        }
        script
    }

    /// What a peer says to a listener before, while and after it connects.
    pub(super) fn handshakes(seed: u64) -> Self {
        let mut script = Self::open(
            seed,
            &[
                ("tcp_syncookies", &["", "", "0", "2"]),
                ("tcp_synack_retries", &["", "1", "2"]),
                ("tcp_abort_on_overflow", &["", "", "1"]),
                ("tcp_timestamps", &["", "", "0"]),
                ("tcp_ecn", &["", "", "0", "1"]),
            ],
        );
        script.event("socket(..., SOCK_STREAM, IPPROTO_TCP) = 3");
        if script.dice.roll(4) == 0 {
            script.event("setsockopt(3, SOL_TCP, TCP_DEFER_ACCEPT, [3], 4) = 0");
        }
        if script.dice.roll(4) == 0 {
            let mss = script.dice.of(&[500, 1200]);
            script.event(&format!("setsockopt(3, SOL_TCP, TCP_MAXSEG, [{mss}], 4) = 0"));
        }
        script.event("bind(3, ..., ...) = 0");
        script.event("listen(3, 1) = 0");
        script.event("fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0");
        script.now = 100;
        let options = script.dice.of(SYN_OPTIONS);
        let flags = script.dice.of(&["S", "S", "S", "SEW", "SP", "SU", "S"]);
        let data = script.dice.of(&[0, 0, 0, 100]);
        let syn = format!("{flags} 0:{data}({data}) win 32792{options}");
        script.event(&format!("< {syn}"));
        let (mut next, mut accepted) = (1, false);
        for _ in 0..3 + script.dice.roll(7) {
            script.now += script.dice.of(&[1, 30, 200, 600, 1300, 2100]);
            match script.dice.roll(12) {
                0 => script.event(&format!("< {syn}")),
                1 => script.event(&format!("< S 1000:1000(0) win 32792{options}")),
                2 => script.event(&format!("< R {next}:{next}(0) win 0")),
                3 => {
                    let ack = script.dice.of(&[0, 2, 100_000]);
                    script.event(&format!("< . {next}:{next}(0) ack {ack} win 257"));
                }
                4 => {
                    script.event(&format!("< F. {next}:{next}(0) ack 1 win 257"));
                    next += 1;
                }
                5 | 6 => {
                    script.event(&format!("< P. {next}:{}(100) ack 1 win 257", next + 100));
                    next += 100;
                }
                7 => script.event("< . 70000:70000(0) ack 1 win 257"),
                8 | 9 if !accepted => {
                    script.event("accept(3, ..., ...) = 4");
                    accepted = true;
                    script.event("fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0");
                }
                10 => script.event("poll([{fd=3, events=POLLIN, revents=0x8000}], 1, 0) = 1"),
                _ => script.event(&format!("< . {next}:{next}(0) ack 1 win 257")),
            }
        }
        script.now += 20;
        if !accepted {
            script.event("accept(3, ..., ...) = 4");
            script.event("fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0");
        }
        script.event("read(4, ..., 1000) = 1000");
        script.event("write(4, ..., 3000) = 3000");
        script
    }

    /// An active open and what it may hear.
    pub(super) fn connects(seed: u64) -> Self {
        let mut script = Self::open(
            seed,
            &[
                ("tcp_syn_retries", &["", "1", "2"]),
                ("tcp_syn_linear_timeouts", &["", "0"]),
                ("tcp_timestamps", &["", "0"]),
                ("tcp_sack", &["", "", "0"]),
                ("tcp_window_scaling", &["", "", "0"]),
                ("tcp_ecn", &["", "0", "1"]),
                ("tcp_ecn_fallback", &["", "0"]),
            ],
        );
        let stamps = !script.text.contains("tcp_timestamps=0");
        script.event("socket(..., SOCK_STREAM, IPPROTO_TCP) = 3");
        if script.dice.roll(3) == 0 {
            let set = script.dice.of(&[
                "TCP_MAXSEG, [700]",
                "TCP_SYNCNT, [1]",
                "TCP_USER_TIMEOUT, [1500]",
            ]);
            script.event(&format!("setsockopt(3, SOL_TCP, {set}, 4) = 0"));
        }
        script.event("fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0");
        script.event("connect(3, ..., ...) = -1 EINPROGRESS");
        let echo = |stamps: bool| if stamps { ",sackOK,TS val 1000 ecr 1" } else { "" };
        let mut next = 0;
        for _ in 0..3 + script.dice.roll(6) {
            script.now += script.dice.of(&[30, 100, 600, 1400, 2500]);
            let about = script.dice.of(&["net", "host", "port", "protocol"]);
            let (edge, mss) = (next, script.dice.of(&[500, 1000, 1460]));
            let scale = script.dice.of(&["", ",nop,wscale 2", ",nop,wscale 14"]);
            match script.dice.roll(12) {
                0..4 => {
                    let flags = script.dice.of(&["S.", "S.", "SE.", "SW."]);
                    let options = echo(stamps);
                    script.event(&format!(
                        "< {flags} 0:0(0) ack 1 win 5000 <mss {mss}{options}{scale}>"
                    ));
                    next = 1;
                }
                4 => script.event(&format!("< S 0:0(0) win 5000 <mss {mss}>")),
                5 => script.event("< S. 0:0(0) ack 2 win 5000 <mss 1000>"),
                6 => script.event(&format!("< R. {edge}:{edge}(0) ack 1 win 0")),
                7 => script.event(&format!("< icmp unreachable {about}_unreachable [0:0(0)]")),
                8 => script.event(&format!("< . {edge}:{edge}(0) ack 1 win 5000")),
                9 => {
                    script.event(&format!("< P. {next}:{}(100) ack 1 win 5000", next + 100));
                    next += if next > 0 { 100 } else { 0 };
                }
                10 => script.event("write(3, ..., 3000) = 3000"),
                _ => script.event("getsockopt(3, SOL_SOCKET, SO_ERROR, [77], [4]) = 0"),
            }
            script.event("poll([{fd=3, events=POLLIN|POLLOUT, revents=0x8000}], 1, 0) = 1");
            script.event(INFO);
        }
        script
    }

    /// Fast open at a server, with and without its cookie.
    pub(super) fn fast_opens(seed: u64) -> Self {
        let mut script = Self::open(
            seed,
            &[("tcp_fastopen", &["3", "3", "1", "0x203", "0x603"]), ("tcp_ecn", &["", "1"])],
        );
        script.event("socket(..., SOCK_STREAM, IPPROTO_TCP) = 3");
        script.event("bind(3, ..., ...) = 0");
        script.event("listen(3, 1) = 0");
        script.event("fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0");
        let queue = script.dice.of(&[0, 1, 10]);
        script.event(&format!("setsockopt(3, SOL_TCP, TCP_FASTOPEN, [{queue}], 4) = 0"));
        script.now = 100;
        let options = script.dice.of(&[
            "",
            ",FO",
            ",FO TFO_COOKIE",
            ",FO TFO_COOKIE",
            ",FO TFO_COOKIE",
            ",FOEXP",
            ",FO 0123456789abcdef",
            ",FO abcd",
        ]);
        let data = script.dice.of(&[0, 10, 1000, 1460]);
        let syn = format!("S 0:{data}({data}) win 32792 <mss 1460,nop,nop,sackOK{options}>");
        script.event(&format!("< {syn}"));
        let (mut next, mut accepted) = (data + 1, false);
        for _ in 0..4 + script.dice.roll(8) {
            script.now += script.dice.of(&[1, 30, 200, 600, 1300]);
            match script.dice.roll(11) {
                0 => script.event(&format!("< {syn}")),
                1 if accepted => script.event("write(4, ..., 20000) = 20000"),
                2 | 3 => {
                    script.event(&format!("< P. {next}:{}(100) ack 1 win 257", next + 100));
                    next += 100;
                }
                4 => script.event(&format!("< R. {next}:{next}(0) ack 1 win 0")),
                5 => {
                    script.event(&format!("< F. {next}:{next}(0) ack 1 win 257"));
                    next += 1;
                }
                6 if accepted => script.event("read(4, ..., 2000) = 2000"),
                7 | 8 if !accepted => {
                    script.event("accept(3, ..., ...) = 4");
                    script.event("fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0");
                    accepted = true;
                }
                9 if accepted => script.event("shutdown(4, SHUT_WR) = 0"),
                _ => {
                    let ack = script.dice.of(&[1, 1, 1461, 5000]);
                    script.event(&format!("< . {next}:{next}(0) ack {ack} win 257"));
                }
            }
            if accepted {
                script.event(INFO);
            }
        }
        script
    }

    /// An end in TIME-WAIT, FIN-WAIT-2 or LAST-ACK, and what the peer then says, a new SYN included.
    pub(super) fn again(seed: u64) -> Self {
        let mut script = Self::open(
            seed,
            &[
                ("tcp_fin_timeout", &["", "1"]),
                ("tcp_rfc1337", &["", "1"]),
                ("tcp_orphan_retries", &["", "1"]),
                ("tcp_timestamps", &["", "0"]),
            ],
        );
        script.stamps = !script.text.contains("tcp_timestamps=0") && script.dice.roll(2) == 0;
        script.event("socket(..., SOCK_STREAM, IPPROTO_TCP) = 3");
        script.event("bind(3, ..., ...) = 0");
        script.event("listen(3, 5) = 0");
        script.now = 100;
        script.syn("S");
        script.now = 200;
        script.packet(". 1:1(0) ack 1 win 257", "");
        script.event("accept(3, ..., ...) = 4");
        script.event("fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0");
        let (mut next, mut ack) = (1, 1);
        let first = script.dice.roll(3);
        if first == 0 {
            script.packet("F. 1:1(0) ack 1 win 257", "");
            next = 2;
        }
        script.now += 50;
        if script.dice.roll(4) == 0 {
            script.event("write(4, ..., 500) = 500");
            ack = 501;
        }
        if script.dice.roll(4) == 0 {
            script.event("setsockopt(4, SOL_TCP, TCP_LINGER2, [1], 4) = 0");
        }
        let end = script.dice.of(&["close(4) = 0", "close(4) = 0", "shutdown(4, SHUT_WR) = 0"]);
        script.event(end);
        script.now += 50;
        ack += 1;
        for _ in 0..4 + script.dice.roll(6) {
            match script.dice.roll(11) {
                0..3 => script.packet(&format!(". {next}:{next}(0) ack {ack} win 257"), ""),
                3 | 4 => {
                    script.packet(&format!("F. {next}:{next}(0) ack {ack} win 257"), "");
                    next = next.max(2);
                }
                5 => script.packet(&format!("P. {next}:{}(100) ack {ack} win 257", next + 100), ""),
                6 => script.packet(&format!("R. {next}:{next}(0) ack {ack} win 257"), ""),
                7 => script.packet(&format!("S {0}:{0}(0) win 257", next + 100_000), "mss 1000"),
                8 => script.packet("S 0:0(0) win 257", "mss 1000"),
                9 => script.packet(&format!(". {0}:{0}(0) ack {ack} win 257", next + 5), ""),
                _ => script.packet(&format!(". {next}:{next}(0) ack {} win 257", ack - 1), ""),
            }
            script.now += script.dice.of(&[1, 40, 250, 700, 1300, 2600]);
        }
        script
    }
}

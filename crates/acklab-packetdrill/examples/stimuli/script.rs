//! A script as it is written: chance, time, packets of the peer.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// xorshift: the same scripts for the same seeds.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below.max(1)
    }

    pub(super) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len() as u64) as usize]
    }
}

/// A script that is being written, and what was agreed in its handshake.
pub(super) struct Script {
    pub(super) text: String,
    pub(super) dice: Dice,
    /// Milliseconds since the script began.
    pub(super) now: u64,
    pub(super) window: u32,
    pub(super) sack: bool,
    pub(super) stamps: bool,
}

pub(super) const SENDER: &str = "%{ print(tcpi_snd_cwnd, tcpi_snd_ssthresh, tcpi_ca_state, tcpi_unacked, tcpi_sacked, \
     tcpi_lost, tcpi_retrans, tcpi_delivered, tcpi_notsent_bytes) }%";
pub(super) const RECEIVER: &str = "%{ print(tcpi_rcv_ssthresh, tcpi_rcv_ooopack, tcpi_bytes_received, tcpi_rcv_mss, \
     SK_MEMINFO_RMEM_ALLOC) }%";
/// Settings as runners of tests have them.
const SETTINGS: &str = "`sysctl -q net.ipv4.tcp_rmem=\"4096 540000 15728640\" \
     net.ipv4.tcp_wmem=\"4096 262144 4194304\" net.ipv4.tcp_slow_start_after_idle=0 net.ipv4.tcp_ecn=0`\n";

impl Script {
    /// Nothing is written yet.
    pub(super) fn empty(seed: u64) -> Self {
        let mut script = Self::agreed(seed);
        script.stamps = script.dice.roll(3) == 0;
        script
    }

    fn agreed(seed: u64) -> Self {
        let dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut script =
            Self { text: String::new(), dice, now: 0, window: 257, sack: true, stamps: false };
        script.sack = script.dice.roll(4) > 0;
        script.window = script.dice.of(&[257, 1000, 257, 30]);
        script
    }

    /// The peer's SYN.
    pub(super) fn syn(&mut self, flags: &str) {
        let options = match (self.sack, self.stamps) {
            (true, true) => "sackOK,TS val 1000 ecr 0,nop,wscale 7",
            (false, true) => "nop,nop,TS val 1000 ecr 0,nop,wscale 7",
            (true, false) => "sackOK,nop,nop,nop,wscale 7",
            (false, false) => "nop,wscale 7",
        };
        self.event(&format!("< {flags} 0:0(0) win 32792 <mss 1000,{options}>"));
    }

    /// Options of a socket, with values drawn.
    pub(super) fn set(&mut self, fd: u64, options: &[(&str, &[u64])]) {
        for (name, values) in options {
            let value = self.dice.of(values);
            self.event(&format!("setsockopt({fd}, {name}, [{value}], 4) = 0"));
        }
    }

    /// The beginning of a plain script: an accepted connection.
    pub(super) fn new(seed: u64, marks: bool) -> Self {
        let mut script = Self::agreed(seed);
        let control = script.dice.of(&["reno", "cubic"]);
        if seed.is_multiple_of(2) {
            script.text.push_str(SETTINGS);
            script.stamps = script.dice.roll(3) == 0;
        }
        // Bursts whose size does not depend on the round trip to the microsecond.
        script.text.push_str("`sysctl -q net.ipv4.tcp_tso_rtt_log=0`\n");
        if marks {
            script.text.push_str("`sysctl -q net.ipv4.tcp_ecn=1`\n");
        }
        script.event("socket(..., SOCK_STREAM, IPPROTO_TCP) = 3");
        script.event(&format!("setsockopt(3, SOL_TCP, TCP_CONGESTION, \"{control}\", 5) = 0"));
        script.event("bind(3, ..., ...) = 0");
        script.event("listen(3, 1) = 0");
        script.now = 100;
        let syn = if marks { "SEW" } else { "S" };
        script.syn(syn);
        script.now = 200;
        let window = script.window;
        script.packet(&format!(". 1:1(0) ack 1 win {window}"), "");
        script.event("accept(3, ..., ...) = 4");
        script.event("fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0");
        script.now = 210;
        script
    }

    /// A packet of the peer's with its options; its timestamps echo what left 10 ms before.
    pub(super) fn packet(&mut self, what: &str, options: &str) {
        let now = self.now;
        let stamp =
            format!("nop,nop,TS val {} ecr {}", 1000 + now, if now <= 200 { 1 } else { now - 109 });
        let all: Vec<&str> = [if self.stamps { stamp.as_str() } else { "" }, options]
            .into_iter()
            .filter(|o| !o.is_empty())
            .collect();
        if all.is_empty() {
            self.event(&format!("< {what}"));
        } else {
            self.event(&format!("< {what} <{}>", all.join(",")));
        }
    }

    /// A system control of IPv4's.
    pub(super) fn setting(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.text, "`sysctl -q net.ipv4.{name}={value}`");
    }

    pub(super) fn event(&mut self, what: &str) {
        let _ = writeln!(self.text, "{}.{:03} {what}", self.now / 1000, self.now % 1000);
    }

    /// Bytes of a full packet.
    pub(super) const fn unit(&self) -> u64 {
        if self.stamps { 988 } else { 1000 }
    }

    /// An ACK with SACK blocks for the packets that arrived.
    pub(super) fn acknowledge(&mut self, got: &BTreeSet<u64>) {
        self.acknowledge_from(1, got);
    }

    /// The same of a peer that sent up to `seq`.
    pub(super) fn acknowledge_from(&mut self, seq: u64, got: &BTreeSet<u64>) {
        let unit = self.unit();
        let una = (0..=got.len() as u64).find(|packet| !got.contains(packet)).unwrap_or(0);
        let mut blocks: Vec<(u64, u64)> = Vec::new();
        for &packet in got.iter().filter(|&&packet| packet > una) {
            match blocks.last_mut() {
                Some((_, end)) if *end == packet => *end += 1,
                _ => blocks.push((packet, packet + 1)),
            }
        }
        let shown: Vec<String> = blocks
            .iter()
            .rev()
            .take(3)
            .map(|(l, r)| format!("{}:{}", l * unit + 1, r * unit + 1))
            .collect();
        let options = if self.sack && !shown.is_empty() {
            format!("nop,nop,sack {}", shown.join(" "))
        } else {
            String::new()
        };
        let window = self.window;
        self.packet(&format!(". {seq}:{seq}(0) ack {} win {window}", una * unit + 1), &options);
    }
}

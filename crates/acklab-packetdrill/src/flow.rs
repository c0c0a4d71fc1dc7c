//! The connection that a script's packets belong to: the script's numbers and the host's.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use acklab_host::segment::{Place, Segment, TcpOption, ecn, flag};
use acklab_host::settings::{MS, Us};

use crate::script::{Options, Packet};

/// How a script has packets compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// Length of a tick of the host's timestamps, whose values are checked then; 0: they are not.
    pub(crate) tick: Us,
    /// By how much such a value may be off.
    pub(crate) tolerance: Us,
    /// An echo that the script has of no packet stands for as many ticks behind the first one.
    pub(crate) scaled: bool,
    /// A packet is what one packet brings.
    pub(crate) strict: bool,
}

/// A connection as the script sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    /// The host's end.
    local: Place,
    /// The script's end.
    remote: Place,
    /// The host's initial sequence number and the script's name for it.
    isn: Option<(u32, u32)>,
    /// The script's timestamps and the host's.
    stamps: BTreeMap<u32, u32>,
    /// The first value of the host's timestamps.
    clock: Option<u32>,
    /// Packets are of IPv6.
    v6: bool,
    /// The script's flow label and the host's.
    label: Option<(u32, u32)>,
    /// The first timestamp of the script and of the host.
    first_stamp: Option<(u32, u32)>,
    rules: Rules,
    /// Nothing is compared.
    observes: bool,
    /// What left the host and no event was compared with.
    queue: VecDeque<(Us, Segment)>,
}

impl Flow {
    /// A connection between two places.
    pub(crate) fn new(ends: (Place, Place), rules: Rules, observes: bool, v6: bool) -> Self {
        let (local, remote) = ends;
        Self { local, remote, v6, rules, observes, ..Self::default() }
    }

    /// The host's end and the script's.
    pub(crate) const fn ends(&self) -> (Place, Place) {
        (self.local, self.remote)
    }

    /// Whether nothing left that no event was compared with.
    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty()
    }

    /// The oldest packet that no event was compared with, and when it left.
    pub(crate) fn first_left(&self) -> Option<&(Us, Segment)> {
        self.queue.front()
    }

    /// Nothing will be compared with what left so far.
    pub(crate) fn forget(&mut self) {
        self.queue.clear();
    }

    /// Whether a segment of the host's belongs to it.
    pub(crate) fn has(&self, segment: &Segment) -> bool {
        segment.src.port == self.local.port && segment.dst == self.remote
    }

    /// The host's number of one that the script gives to what the host sends.
    pub(crate) fn to_host(&self, number: u32) -> u32 {
        match self.isn {
            Some((host, script)) => number.wrapping_sub(script).wrapping_add(host),
            None => number,
        }
    }

    /// The first number of a segment as the script counts; a reset that answers a segment without an ACK has 0 (RFC 9293
    /// section 3.10.7.1).
    fn seq_of(&self, segment: &Segment) -> u32 {
        let answers = segment.seq == 0 && segment.has(flag::RST) && segment.has(flag::ACK);
        if answers { 0 } else { self.to_script(segment.seq) }
    }

    fn to_script(&self, number: u32) -> u32 {
        match self.isn {
            Some((host, script)) => number.wrapping_sub(host).wrapping_add(script),
            None => number,
        }
    }

    /// A packet of the script's, as the host gets it.
    pub(crate) fn inbound(&self, packet: &Packet) -> Segment {
        let mut options = match &packet.options {
            Options::List(list) => list.clone(),
            _ => Vec::new(),
        };
        for option in &mut options {
            match option {
                TcpOption::Sack(blocks) => {
                    for (left, right) in blocks {
                        (*left, *right) = (self.to_host(*left), self.to_host(*right));
                    }
                }
                TcpOption::Stamp(_, echo) => {
                    *echo = match (self.stamps.get(echo), self.first_stamp) {
                        (Some(&host), _) => host,
                        (None, Some((script, host))) if self.rules.scaled => {
                            echo.wrapping_sub(script).wrapping_add(host)
                        }
                        _ => *echo,
                    };
                    if self.observes && *echo != 0 {
                        // Without expectations the script counts the host's clock from its first packet, as 1.
                        *echo = self.clock.unwrap_or(0).wrapping_add(*echo - 1);
                    }
                }
                _ => {}
            }
        }
        let tos = packet.tos.unwrap_or(0);
        let ecn = packet.ecn.as_ref().and_then(|v| v.first().copied()).unwrap_or(tos & 3);
        Segment {
            src: self.remote,
            dst: self.local,
            seq: packet.range.0,
            ack: packet.ack.map_or(0, |ack| self.to_host(ack)),
            flags: packet.flags,
            window: packet.window.unwrap_or(0),
            urgent: packet.urgent.unwrap_or(0),
            options,
            len: packet.range.2,
            dscp: tos >> 2,
            ecn,
            ttl: packet.ttl.unwrap_or(0),
            ..Segment::default()
        }
    }

    /// A segment left the host; a SYN tells its initial sequence number, which the script calls 0 until it says
    /// otherwise.
    pub(crate) fn push(&mut self, at: Us, segment: Segment) {
        if segment.has(flag::SYN) && self.isn.is_none_or(|(host, _)| host != segment.seq) {
            self.isn = Some((segment.seq, 0));
        }
        if let Some((value, _)) = segment.stamp() {
            self.clock.get_or_insert(value);
        }
        self.queue.push_back((at, segment));
    }

    /// What left the host, as the script writes it.
    pub(crate) fn show(&self, segment: &Segment) -> String {
        let (seq, len) = (self.seq_of(segment), segment.len);
        let mut text = match segment.ecn {
            ecn::NOT_ECT => String::new(),
            other => format!("[{}] ", codepoint(other)),
        };
        let _ = write!(text, "{} {}:{}({len})", flags(segment.flags), seq, seq.wrapping_add(len));
        if segment.has(flag::ACK) {
            let _ = write!(text, " ack {}", segment.ack);
        }
        let _ = write!(text, " win {}", segment.window);
        if segment.has(flag::URG) {
            let _ = write!(text, " urg {}", segment.urgent);
        }
        if !segment.options.is_empty() {
            let list: Vec<String> = segment.options.iter().map(show_option).collect();
            let _ = write!(text, " <{}>", list.join(","));
        }
        text
    }

    /// The same packet by packet, with 0 for the value of the host's timestamps.
    pub(crate) fn show_each(&self, segment: &Segment) -> Vec<String> {
        let mut still = segment.clone();
        for option in &mut still.options {
            if let TcpOption::Stamp(value, _) = option {
                *value = 0;
            }
        }
        let mut all = Vec::new();
        while still.gso > 0 && still.len > still.gso {
            let len = still.gso;
            let rest = still.split(len);
            all.push(format!("> {}", self.show(&still)));
            still = rest;
        }
        all.push(format!("> {}", self.show(&still)));
        all
    }

    /// Takes what an expected packet is to be compared with: a burst is cut, or several are joined, where the
    /// script has other sizes. `None`: nothing left.
    pub(crate) fn take(&mut self, packet: &Packet) -> Option<(Us, Segment)> {
        let (at, mut segment) = self.queue.pop_front()?;
        let wanted = packet.range.2;
        if wanted < segment.len
            && segment.gso > 0
            && wanted > 0
            && wanted.is_multiple_of(segment.gso)
        {
            let rest = segment.split(wanted);
            self.queue.push_front((at, rest));
        }
        while segment.len > 0 && segment.len < wanted && !self.rules.strict {
            let joins = self.queue.front().is_some_and(|(when, next)| {
                next.seq == segment.seq.wrapping_add(segment.len)
                    && next.len > 0
                    && when.abs_diff(at) <= MS
                    && next.ack == segment.ack
            });
            if !joins {
                break;
            }
            let Some((when, mut next)) = self.queue.pop_front() else { break };
            let missing = wanted - segment.len;
            if missing < next.len && next.gso > 0 && missing.is_multiple_of(next.gso) {
                let rest = next.split(missing);
                self.queue.push_front((when, rest));
            }
            segment.len += next.len;
            segment.flags |= next.flags & (flag::PSH | flag::FIN);
        }
        Some((at, segment))
    }

    /// What differs between a packet that left and the one expected; notes the numbers that they share.
    pub(crate) fn compare(&mut self, packet: &Packet, segment: &Segment) -> Result<(), String> {
        if segment.has(flag::SYN) || self.isn.is_none() {
            self.isn = Some((segment.seq, packet.range.0));
        }
        let differs = |what: &str, got: String, expected: String| {
            Err(format!("{what} is {got}, expected {expected}"))
        };
        if segment.flags != packet.flags {
            return differs("flags", flags(segment.flags), flags(packet.flags));
        }
        let seq = self.seq_of(segment);
        let range = (seq, segment.len);
        if range != (packet.range.0, packet.range.2) {
            let show = |(seq, len): (u32, u32)| format!("{seq}:{}({len})", seq.wrapping_add(len));
            return differs("sequence", show(range), show((packet.range.0, packet.range.2)));
        }
        if let Some(ack) = packet.ack
            && segment.ack != ack
        {
            return differs("ack", segment.ack.to_string(), ack.to_string());
        }
        if let Some(window) = packet.window
            && segment.window != window
        {
            return differs("win", segment.window.to_string(), window.to_string());
        }
        let urgent = packet.urgent.unwrap_or(0);
        if segment.urgent != urgent {
            return differs("urg", segment.urgent.to_string(), urgent.to_string());
        }
        if let Some(allowed) = &packet.ecn
            && !allowed.contains(&segment.ecn)
        {
            return differs("ECN", codepoint(segment.ecn), codepoint(allowed[0]));
        }
        if let Some(tos) = packet.tos {
            let got = segment.dscp << 2 | segment.ecn;
            if got != tos {
                return differs("tos", format!("{got:#x}"), format!("{tos:#x}"));
            }
        }
        if let Some(ttl) = packet.ttl {
            let got = if segment.ttl == 0 { 64 } else { segment.ttl };
            if got != ttl {
                return differs("ttl", got.to_string(), ttl.to_string());
            }
        }
        self.compare_label(packet, segment)?;
        self.compare_options(packet, segment)
    }

    /// Flow labels of a script are names: the same one for the same, another for another. 0 is none to look at, and
    /// IPv4 has none.
    fn compare_label(&mut self, packet: &Packet, segment: &Segment) -> Result<(), String> {
        let wanted = packet.flow_label.filter(|&label| label > 0 && self.v6);
        let Some(wanted) = wanted else { return Ok(()) };
        let got = segment.flow_label;
        match self.label {
            _ if got == 0 => return Err("the packet has no flow label".to_owned()),
            Some((name, known)) if (name == wanted) != (known == got) => {
                let same = if known == got { "the same" } else { "another" };
                return Err(format!("the flow label is {same} as before, expected {wanted:#x}"));
            }
            _ => self.label = Some((wanted, got)),
        }
        Ok(())
    }

    fn compare_options(&mut self, packet: &Packet, segment: &Segment) -> Result<(), String> {
        let none = Vec::new();
        let expected = match &packet.options {
            Options::Any => return Ok(()),
            Options::List(list) => list,
            Options::None => &none,
        };
        let text = |list: &[TcpOption]| {
            let all: Vec<String> = list.iter().map(show_option).collect();
            format!("<{}>", all.join(","))
        };
        let same = expected.len() == segment.options.len()
            && expected.iter().zip(&segment.options).all(|(a, b)| match (a, b) {
                // The value is the host's clock; its echo is the script's.
                (TcpOption::Stamp(_, a), TcpOption::Stamp(_, b)) => a == b,
                (a, b) => a == b,
            });
        if !same {
            return Err(format!(
                "options are {}, expected {}",
                text(&segment.options),
                text(expected)
            ));
        }
        for (a, b) in expected.iter().zip(&segment.options) {
            if let (&TcpOption::Stamp(script, _), &TcpOption::Stamp(host, _)) = (a, b) {
                self.stamps.insert(script, host);
                let first = *self.first_stamp.get_or_insert((script, host));
                let own = host.wrapping_sub(first.1).wrapping_add(first.0);
                let off = own.wrapping_sub(script).cast_signed().unsigned_abs();
                if Us::from(off) * self.rules.tick > self.rules.tolerance {
                    return Err(format!(
                        "TS val is {own}, counted from the script's first, expected {script}"
                    ));
                }
            }
        }
        Ok(())
    }
}

fn codepoint(value: u8) -> String {
    let name = match value {
        ecn::ECT0 => "ect0",
        ecn::ECT1 => "ect1",
        ecn::CE => "ce",
        _ => "noecn",
    };
    name.to_owned()
}

/// Flags as scripts write them.
pub fn flags(value: u16) -> String {
    let letters = [
        (flag::FIN, 'F'),
        (flag::SYN, 'S'),
        (flag::RST, 'R'),
        (flag::PSH, 'P'),
        (flag::ACK, '.'),
        (flag::URG, 'U'),
        (flag::ECE, 'E'),
        (flag::CWR, 'W'),
        (flag::AE, 'A'),
    ];
    let text: String = letters.iter().filter(|(f, _)| value & f != 0).map(|(_, c)| c).collect();
    if text.is_empty() { "-".to_owned() } else { text }
}

fn show_option(option: &TcpOption) -> String {
    match option {
        TcpOption::End => "eol".to_owned(),
        TcpOption::Nop => "nop".to_owned(),
        TcpOption::Mss(mss) => format!("mss {mss}"),
        TcpOption::Scale(shift) => format!("wscale {shift}"),
        TcpOption::SackOk => "sackOK".to_owned(),
        TcpOption::Sack(blocks) => {
            let all: Vec<String> = blocks.iter().map(|(l, r)| format!("{l}:{r}")).collect();
            format!("sack {}", all.join(" "))
        }
        TcpOption::Stamp(value, echo) => format!("TS val {value} ecr {echo}"),
        TcpOption::FastOpen(cookie, experimental) => {
            let mut hex = String::new();
            for byte in cookie {
                let _ = write!(hex, "{byte:02x}");
            }
            format!("{} {hex}", if *experimental { "FOEXP" } else { "FO" })
        }
        TcpOption::AccEcn(counters) => {
            let mut fields = [("e0b", counters.e0b), ("ceb", counters.ceb), ("e1b", counters.e1b)];
            if counters.order == 1 {
                fields.reverse();
            }
            let all: Vec<String> =
                fields.iter().filter_map(|(n, v)| v.map(|v| format!("{n} {v}"))).collect();
            format!("ECN {}", all.join(" "))
        }
        TcpOption::Other(kind, content) => format!("option {kind} of {} bytes", content.len()),
    }
}

//! Explicit congestion notification: RFC 3168 with Linux's answers to marks, and accurate ECN (RFC 9768).

use crate::segment::{AccEcn, Segment, TcpOption, before, ecn as mark, flag};
use crate::settings::Env;
use crate::tcp::{EcnMode, Tcp};

/// ACE's three flags.
pub const ACE: u16 = flag::AE | flag::CWR | flag::ECE;

/// Where AccECN's packet counters start (RFC 9768 section 3.2.1).
pub const FIRST_CE: u32 = 5;

/// The ACE field as a number.
pub const fn ace(flags: u16) -> u8 {
    (((flags & flag::AE != 0) as u8) << 2)
        | (((flags & flag::CWR != 0) as u8) << 1)
        | ((flags & flag::ECE != 0) as u8)
}

/// A number as ACE's flags.
pub const fn ace_flags(value: u8) -> u16 {
    let mut flags = 0;
    if value & 4 != 0 {
        flags |= flag::AE;
    }
    if value & 2 != 0 {
        flags |= flag::CWR;
    }
    if value & 1 != 0 {
        flags |= flag::ECE;
    }
    flags
}

/// How the handshake tells the ECN field of a SYN or SYN-ACK (RFC 9768 section 3.1.1, table 2).
pub const fn reflect(ecn: u8) -> u16 {
    match ecn {
        mark::ECT1 => ace_flags(0b011),
        mark::ECT0 => ace_flags(0b100),
        mark::CE => ace_flags(0b110),
        _ => ace_flags(0b010),
    }
}

/// Bytes that AccECN's option takes of a data segment where it is sent with each.
pub const fn option_bytes(_tcp: &Tcp) -> u32 {
    0
}

/// The option to send with the next segment.
pub fn option_to_send(tcp: &mut Tcp, env: &Env<'_>) -> Option<AccEcn> {
    if tcp.ecn.mode != EcnMode::Accurate || tcp.ecn.no_option || !tcp.ecn.saw_option {
        return None;
    }
    let level = env.sysctls.of("tcp_ecn_option");
    if level < 2 {
        return None;
    }
    let beacon = env.sysctls.of("tcp_ecn_option_beacon").max(1) as u64;
    let due = tcp.ecn.option_demand > 0
        || (tcp.rtt.srtt8 > 0
            && env.now.saturating_sub(tcp.ecn.option_sent) >= (tcp.rtt.srtt8 >> 3) / beacon);
    if level < 3 && !due {
        return None;
    }
    tcp.ecn.option_demand = tcp.ecn.option_demand.saturating_sub(1);
    tcp.ecn.option_sent = env.now;
    Some(counters(tcp))
}

/// The counters of bytes received, as the option tells them.
pub fn counters(tcp: &Tcp) -> AccEcn {
    let [e0b, ceb, e1b] = tcp.ecn.received_bytes;
    let wrap = |bytes: u32| bytes & 0x00ff_ffff;
    AccEcn {
        order: 1,
        e0b: Some(wrap(e0b.wrapping_add(1))),
        ceb: Some(wrap(ceb)),
        e1b: Some(wrap(e1b.wrapping_add(1))),
    }
}

/// Puts the option behind others, where room is left.
pub fn add_option(options: &mut Vec<TcpOption>, counters: AccEcn) {
    let used: usize = options.iter().map(TcpOption::len).sum();
    for fields in [3_usize, 2, 1] {
        let mut cut = counters;
        if fields < 3 {
            cut.e0b = None;
        }
        if fields < 2 {
            cut.ceb = None;
        }
        if used + 2 + 3 * fields <= 40 {
            options.push(TcpOption::AccEcn(cut));
            return;
        }
    }
}

/// Sets the ECN field and the flags of a segment that leaves; `is_new`: data sent for the first time.
pub fn mark_outgoing(tcp: &mut Tcp, segment: &mut Segment, is_new: bool) {
    if segment.has(flag::SYN) || segment.has(flag::RST) {
        return;
    }
    match tcp.ecn.mode {
        EcnMode::Off => {}
        EcnMode::Classic => {
            if tcp.cc.is_dctcp() || is_new {
                segment.ecn = mark::ECT0;
            }
            if is_new && std::mem::take(&mut tcp.ecn.queue_cwr) {
                segment.flags |= flag::CWR;
            }
            if tcp.ecn.demand_cwr {
                segment.flags |= flag::ECE;
            }
        }
        EcnMode::Accurate => {
            if !tcp.ecn.no_ect {
                segment.ecn = mark::ECT0;
            }
            tcp.ecn.told_ce = tcp.ecn.received_ce;
            segment.flags &= !ACE;
            segment.flags |= ace_flags(((tcp.ecn.received_ce + FIRST_CE) & 7) as u8);
        }
    }
}

/// A data segment arrived with its ECN field.
pub fn on_mark(tcp: &mut Tcp, env: &Env<'_>, segment: &Segment) {
    if tcp.ecn.mode != EcnMode::Classic {
        return;
    }
    match segment.ecn {
        mark::CE => {
            if tcp.cc.is_dctcp() && !tcp.ecn.ce_state {
                if tcp.ack.scheduled && tcp.rcv.nxt != tcp.rcv.wup {
                    tcp.ack.now = true;
                }
                tcp.ecn.ce_state = true;
            }
            if !tcp.ecn.demand_cwr {
                tcp.enter_quick(2);
                tcp.ecn.demand_cwr = true;
            }
            tcp.ecn.seen = true;
        }
        mark::NOT_ECT => {
            // A retransmission in doubt: the sender wants every ACK (RFC 3168 section 6.1.5).
            if tcp.ecn.seen {
                tcp.enter_quick(2);
            }
        }
        _ => {
            if tcp.cc.is_dctcp() && tcp.ecn.ce_state {
                tcp.ecn.ce_state = false;
                tcp.ecn.demand_cwr = false;
            }
            tcp.ecn.seen = true;
        }
    }
    let _ = env;
}

/// The peer says that it reduced its window.
pub fn on_cwr(tcp: &mut Tcp, segment: &Segment) {
    if tcp.ecn.mode == EcnMode::Classic && segment.has(flag::CWR) {
        if !tcp.cc.is_dctcp() {
            tcp.ecn.demand_cwr = false;
        }
        // Its window may be one packet: the ACK must not be late.
        if segment.len > 0 || segment.has(flag::FIN) {
            tcp.ack.now = true;
        }
    }
}

/// Counts what arrived, for AccECN's feedback.
pub fn on_arrival(tcp: &mut Tcp, segment: &Segment) {
    if tcp.ecn.mode != EcnMode::Accurate {
        return;
    }
    let packets = if segment.gso > 0 { segment.len.div_ceil(segment.gso) } else { 1 };
    let index = match segment.ecn {
        mark::ECT0 => 0,
        mark::CE => 1,
        mark::ECT1 => 2,
        _ => return,
    };
    if index == 1 {
        tcp.ecn.received_ce += packets;
    }
    let first = tcp.ecn.received_bytes[index] == 0;
    tcp.ecn.received_bytes[index] += segment.len;
    if first && segment.len > 0 || index == 1 {
        tcp.ecn.option_demand = tcp.ecn.option_demand.max(1);
    }
    if tcp.ecn.received_ce.wrapping_sub(tcp.ecn.told_ce) >= 3 {
        tcp.ack.now = true;
    }
}

/// Whether an ACK echoes a mark. AccECN: how many packets were marked since the last.
pub fn on_ack(tcp: &mut Tcp, env: &Env<'_>, segment: &Segment, delivered: u32) -> bool {
    let _ = (env, delivered);
    match tcp.ecn.mode {
        EcnMode::Off => false,
        EcnMode::Classic => segment.has(flag::ECE) && !segment.has(flag::SYN),
        EcnMode::Accurate => {
            if segment.has(flag::SYN) {
                return false;
            }
            if segment.acc_ecn().is_some() {
                tcp.ecn.saw_option = true;
            }
            let known = ((tcp.rec.delivered_ce + FIRST_CE) & 7) as u8;
            let news = u32::from(ace(segment.flags).wrapping_sub(known) & 7);
            tcp.rec.delivered_ce += news;
            news > 0
        }
    }
}

/// After an ACK was taken: marks are counted.
pub fn after_ack(tcp: &mut Tcp, delivered: u32) {
    let newly = tcp.rec.delivered.wrapping_sub(delivered);
    let _ = before;
    if tcp.ecn.mode == EcnMode::Classic && newly > 0 {
        // Each ACK with ECE says that what it covers was marked (RFC 8257).
        let marked = if tcp.ecn.ce_state { newly } else { 0 };
        tcp.cc.on_marks(tcp.snd.una, tcp.snd.nxt, newly, marked);
    }
}

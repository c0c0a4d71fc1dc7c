//! Explicit congestion notification: RFC 3168 with Linux's answers to marks, and DCTCP's (RFC 8257). For accurate ECN
//! (RFC 9768) see [`crate::accecn`].

use crate::mib::Mib;
use crate::segment::{Segment, after, ecn as mark, flag};
use crate::settings::Env;
use crate::tcp::{EcnMode, Tcp};

/// Sets the ECN field and the flags of a segment that leaves; `is_new`: data sent for the first time.
pub fn mark_outgoing(tcp: &mut Tcp, segment: &mut Segment, is_new: bool) {
    if tcp.is_accurate() && !segment.has(flag::SYN) {
        return tcp.mark_accurately(segment);
    }
    if segment.has(flag::SYN) || segment.has(flag::RST) {
        return;
    }
    match tcp.ecn.mode {
        EcnMode::Off | EcnMode::Asked | EcnMode::Accurate => {}
        EcnMode::Classic => {
            if tcp.cc.is_dctcp() || is_new {
                segment.ecn = tcp.cc.codepoint();
            }
            if is_new && std::mem::take(&mut tcp.ecn.queue_cwr) {
                segment.flags |= flag::CWR;
            }
            if tcp.ecn.demand_cwr {
                segment.flags |= flag::ECE;
            }
        }
    }
}

/// Marks begin or end where each is echoed (RFC 8257 section 3.2, `dctcp_ece_ack_update`): what is owed for the
/// packets before leaves with their echo, and an ACK with the new one at once.
fn turn(tcp: &mut Tcp, env: &Env<'_>, marked: bool) {
    let before = tcp.ecn.turned_at.replace(tcp.rcv.nxt);
    if tcp.ecn.ce_state == marked {
        return;
    }
    if let Some(owed) = before.filter(|&nxt| after(nxt, tcp.rcv.wup)) {
        tcp.ecn.demand_cwr = !marked;
        let seq = tcp.acceptable_seq();
        let mut earlier = tcp.make(env, seq, flag::ACK, 0);
        earlier.ack = owed;
        tcp.count.segs_out += 1;
        tcp.tally(Mib::OutSegs);
        tcp.wire.push(earlier);
    }
    tcp.ack.now = true;
    tcp.ecn.ce_state = marked;
    tcp.ecn.demand_cwr = marked;
}

/// A data segment arrived with its ECN field.
pub fn on_mark(tcp: &mut Tcp, env: &Env<'_>, segment: &Segment) {
    if tcp.is_accurate() {
        // What counts is counted; a packet without a mark behind others with one is sent again.
        if segment.ecn == mark::NOT_ECT && tcp.ecn.seen {
            tcp.enter_quick(2);
        }
        return;
    }
    if tcp.ecn.mode != EcnMode::Classic {
        return;
    }
    let each = tcp.cc.hears_each_mark();
    match segment.ecn {
        mark::CE => {
            if each {
                turn(tcp, env, true);
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
            if each {
                turn(tcp, env, false);
            }
            tcp.ecn.seen = true;
        }
    }
}

/// The peer says that it reduced its window.
pub fn on_cwr(tcp: &mut Tcp, segment: &Segment) {
    if tcp.ecn.mode == EcnMode::Classic && segment.has(flag::CWR) {
        if !tcp.cc.hears_each_mark() {
            tcp.ecn.demand_cwr = false;
        }
        // Its window may be one packet: the ACK must not be late.
        if segment.len > 0 || segment.has(flag::FIN) {
            tcp.ack.now = true;
        }
    }
}

/// Whether an ACK echoes a mark.
pub fn is_echo(tcp: &Tcp, segment: &Segment) -> bool {
    tcp.ecn.mode == EcnMode::Classic && segment.has(flag::ECE) && !segment.has(flag::SYN)
}

/// After an ACK was taken: marks are counted.
pub fn after_ack(tcp: &mut Tcp, delivered: u32, echo: bool) {
    let newly = tcp.rec.delivered.wrapping_sub(delivered);
    if echo && tcp.ecn.mode == EcnMode::Classic {
        tcp.rec.delivered_ce = tcp.rec.delivered_ce.wrapping_add(newly);
    }
    if tcp.ecn.mode == EcnMode::Classic && newly > 0 {
        // Each ACK with ECE says that what it covers was marked (RFC 8257).
        let marked = if echo { newly } else { 0 };
        tcp.cc.on_marks(tcp.snd.una, tcp.snd.nxt, newly, marked);
    }
}

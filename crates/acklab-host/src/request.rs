//! A SYN that was answered: what later segments mean for it.

use crate::open::Request;
use crate::segment::{Segment, after, before, flag};
use crate::settings::Env;

/// What a segment means for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgment {
    Ignore,
    AnswerAgain,
    Acknowledge,
    Drop,
    Reset,
    DropAndReset,
    Open,
}

impl Request {
    pub(crate) fn judge(&mut self, env: &Env<'_>, segment: &Segment) -> Judgment {
        let tcp = &mut self.tcp;
        let stale = match (segment.stamp().filter(|_| tcp.terms.stamps), tcp.rcv.recent) {
            (Some((value, _)), Some((recent, _))) => before(value, recent),
            _ => false,
        };
        let plain_syn = segment.flags & (flag::SYN | flag::ACK | flag::RST) == flag::SYN;
        if self.cookie {
            return if segment.has(flag::ACK)
                && segment.ack == tcp.snd.nxt
                && !segment.has(flag::RST)
            {
                Judgment::Open
            } else if plain_syn {
                Judgment::AnswerAgain
            } else if segment.has(flag::RST) {
                Judgment::Ignore
            } else {
                Judgment::Reset
            };
        }
        if segment.seq == tcp.rcv.isn && plain_syn && !stale {
            if tcp.is_answered_lately(env, segment) {
                return Judgment::Ignore;
            }
            self.tcp.rec.total_retrans += 1;
            return Judgment::AnswerAgain;
        }
        if segment.has(flag::ACK) && segment.ack != tcp.snd.nxt {
            return if segment.has(flag::RST) { Judgment::Ignore } else { Judgment::Reset };
        }
        let edge = tcp.rcv.nxt.wrapping_add(tcp.rcv.wnd);
        let inside = segment.seq == tcp.rcv.nxt
            || (after(segment.end(), tcp.rcv.nxt) && before(segment.seq, edge))
            || (segment.seq == edge && segment.end() == edge);
        // An echo of what was never sent (Linux 6.14 and later).
        let foreign = segment.stamp().zip(self.stamps).is_some_and(|((_, echo), (first, last))| {
            tcp.terms.stamps && echo != 0 && (before(echo, first) || after(echo, last))
        });
        if stale || foreign || !inside {
            if segment.has(flag::RST) || tcp.is_answered_lately(env, segment) {
                return Judgment::Ignore;
            }
            return Judgment::Acknowledge;
        }
        if let Some((value, _)) = segment.stamp().filter(|_| tcp.terms.stamps)
            && !after(segment.seq, tcp.rcv.nxt)
        {
            tcp.rcv.recent = Some((value, env.now));
        }
        if segment.has(flag::RST) {
            return Judgment::Drop;
        }
        if segment.has(flag::SYN) {
            return Judgment::DropAndReset;
        }
        if !segment.has(flag::ACK) {
            return Judgment::Ignore;
        }
        let bare = segment.end() == tcp.rcv.nxt && segment.len == 0;
        if tcp.opt.defer_accept > self.timeouts && bare {
            self.tcp.open.acked = true;
            return Judgment::Ignore;
        }
        Judgment::Open
    }

    /// What a cookie can carry: no scale and no SACK without timestamps, and one of four sizes.
    pub(crate) fn limit_to_cookie(&mut self) {
        let tcp = &mut self.tcp;
        if !tcp.terms.stamps {
            tcp.terms.sack = false;
            tcp.terms.scaling = false;
            tcp.terms.send_scale = 0;
            tcp.terms.receive_scale = 0;
            tcp.ecn.mode = crate::tcp::EcnMode::Off;
        }
        let sizes = [536, 1300, 1440, 1460];
        let peer = tcp.terms.mss_clamp;
        let kept = sizes.into_iter().rev().find(|&size| size <= peer).unwrap_or(sizes[0]);
        tcp.terms.mss_clamp = kept;
    }
}

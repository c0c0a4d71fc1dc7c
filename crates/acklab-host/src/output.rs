//! What leaves: options, the announced window, new data in bursts, retransmissions, control segments.

use crate::accecn;
use crate::ecn;
use crate::mib::Mib;
use crate::segment::{Segment, TcpOption, after, before, flag};
use crate::settings::{Env, MS, SECOND};
use crate::tcp::{State, Tcp};

/// Why small data may or may not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// As Nagle's algorithm and CORK say.
    Normal,
    /// More is announced to follow: small data waits.
    Cork,
    /// Small data leaves, too.
    Off,
}

/// How many packets a pass may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// What the windows admit.
    All,
    /// One burst.
    One,
    /// One packet, whatever the congestion window.
    Probe,
}

/// Memory of a buffer beside its payload.
pub(crate) const SKB_OVERHEAD: u32 = 832;

/// Segments.
impl Tcp {
    /// Bytes of the options that vary: SACK blocks.
    pub(crate) fn sack_bytes(&self) -> u32 {
        let blocks = self.rcv.sacks.len() as u32 + u32::from(self.rcv.dsack.is_some());
        if !self.terms.sack || blocks == 0 {
            return 0;
        }
        let room = 60 - self.terms.header;
        4 + 8 * blocks.min((room - 4) / 8)
    }

    /// Payload of a full packet with the options of now.
    pub fn current_mss(&self) -> u32 {
        let counters =
            self.accurate_option().map_or(0, |fit| fit.bytes as i32 - 8 * fit.given as i32);
        let options = self.sack_bytes().saturating_add_signed(counters);
        self.snd.mss.saturating_sub(options).max(1)
    }

    pub(crate) fn options(&mut self, env: &Env<'_>) -> Vec<TcpOption> {
        let mut options = Vec::new();
        if self.terms.stamps {
            let echo = self.rcv.recent.map_or(0, |(value, _)| value);
            options.extend([TcpOption::Nop, TcpOption::Nop, TcpOption::Stamp(env.tick(), echo)]);
        }
        let used: u32 = if self.terms.stamps { 12 } else { 0 };
        self.judge_option(env);
        let counters = self.accurate_option();
        let mut blocks: Vec<(u32, u32)> = Vec::new();
        let mut twice = None;
        if self.terms.sack {
            twice = self.rcv.dsack.take();
            blocks.extend(twice);
            blocks.extend(&self.rcv.sacks);
            let given = counters.map_or(0, |fit| fit.given);
            blocks.truncate(((40 - used - 4) / 8) as usize - given);
        }
        self.note_option(env, counters.is_some(), twice);
        let sack = (!blocks.is_empty()).then_some(TcpOption::Sack(blocks));
        if let Some(fit) = counters {
            let counters = self.ecn.accurate.counters(fit);
            accecn::add_option(&mut options, counters, sack);
        } else if let Some(sack) = sack {
            options.extend([TcpOption::Nop, TcpOption::Nop, sack]);
        }
        options
    }

    /// The window that leaves with a segment, scaled (RFC 9293 section 3.8.6; it never shrinks).
    pub(crate) fn announce(&mut self, env: &Env<'_>) -> u16 {
        if self.ack.no_memory {
            // What came was dropped: the window closes, be it by moving its edge (Linux 6.10 and later).
            self.rcv.wnd = 0;
            self.rcv.wup = self.rcv.nxt;
            return 0;
        }
        let (before, current) = (self.rcv.wnd, self.receive_window());
        let mut window = self.select_window(env);
        let scale = self.terms.receive_scale;
        if window < current && !self.may_shrink(env) {
            if window == 0 {
                self.tally(Mib::TCPWantZeroWindowAdv);
            }
            window = current.next_multiple_of(1 << scale);
        }
        self.rcv.wnd = window;
        self.rcv.wup = self.rcv.nxt;
        let ceiling = if scale == 0 && env.sysctls.is_on("tcp_workaround_signed_windows") {
            32_767
        } else {
            65_535 << scale
        };
        let announced = (window.min(ceiling) >> scale) as u16;
        if announced == 0 && before > 0 {
            self.tally(Mib::TCPToZeroWindowAdv);
        } else if announced > 0 && before == 0 {
            self.tally(Mib::TCPFromZeroWindowAdv);
        }
        announced
    }

    /// RFC 6437: one label for a flow, until it takes another path.
    pub(crate) fn flow_label(&self, env: &Env<'_>) -> u32 {
        if env.route.ip_header != 40 || !env.sysctls.is_on("auto_flowlabels") {
            return 0;
        }
        let hash = self.snd.isn.wrapping_add(self.snd.paths.wrapping_mul(0x9e37_79b9));
        (hash.wrapping_mul(0x85eb_ca6b) >> 12).max(1)
    }

    /// A segment with what every one has; `seq` and flags are the caller's.
    pub(crate) fn make(&mut self, env: &Env<'_>, seq: u32, flags: u16, len: u32) -> Segment {
        let options = self.options(env);
        let window = self.announce(env);
        let mut segment = Segment {
            src: self.local,
            dst: self.remote,
            seq,
            ack: self.rcv.nxt,
            flags,
            window,
            options,
            len,
            dscp: self.opt.tos >> 2,
            flow_label: self.flow_label(env),
            ttl: self.opt.ttl,
            ..Segment::default()
        };
        if self.snd.urgent != self.snd.una && before(seq, self.snd.urgent) {
            let distance = self.snd.urgent.wrapping_sub(seq);
            if distance < 0x1_0000 {
                segment.urgent = distance as u16;
                segment.flags |= flag::URG;
            }
        }
        let is_new = len > 0 && !before(seq, self.snd.nxt);
        ecn::mark_outgoing(self, &mut segment, is_new);
        segment
    }

    pub(crate) fn post(&mut self, env: &Env<'_>, segment: Segment) {
        let packets = if segment.gso > 0 { segment.len.div_ceil(segment.gso) } else { 1 };
        self.count.segs_out += packets;
        let end = segment.end();
        if end == segment.seq || after(end, self.snd.nxt) {
            self.tally_all(Mib::OutSegs, packets);
        }
        let before = self.snd.last_wire;
        self.snd.last_wire = before.max(env.now);
        let data = segment.len + u32::from(segment.has(flag::FIN));
        if self.is_pacing() && data > 0 && self.count.data_segs_out + packets >= 10 {
            // Half of the time at least, whatever was saved before.
            let takes = u64::from(segment.len) * SECOND / self.count.pacing_rate;
            let saved = self.snd.last_wire - before;
            self.snd.last_wire += takes - saved.min(takes / 2);
        }
        if segment.len > 0 {
            self.count.data_segs_out += packets;
            self.count.bytes_sent += u64::from(segment.len);
            let again = crate::segment::before(segment.seq, self.snd.nxt);
            self.on_data_sent(env, segment.len, again);
        }
        if segment.has(flag::ACK) {
            self.on_ack_sent(env);
            self.on_ruled_ack_sent(env, segment.len > 0);
        }
        self.wire.push(segment);
    }

    /// An acknowledgment left: what was owed is paid.
    pub(crate) fn on_ack_sent(&mut self, _env: &Env<'_>) {
        let compressed = std::mem::take(&mut self.ack.compressed);
        self.tally_all(Mib::TCPAckCompressed, compressed);
        self.timers.compressed = None;
        if self.ack.scheduled {
            if self.ack.quick == 1 {
                self.ack.ato = 40 * MS;
            }
            self.ack.quick = self.ack.quick.saturating_sub(1);
        }
        self.ack.scheduled = false;
        self.ack.now = false;
        self.ack.no_memory = false;
        self.ack.pushed = false;
        self.ack.pushed_twice = false;
        self.timers.delack = None;
    }

    pub(crate) fn on_data_sent(&mut self, env: &Env<'_>, bytes: u32, again: bool) {
        let packets = if again { 0 } else { bytes.div_ceil(self.snd.mss.max(1)) };
        let flight = self.packets_out() + packets;
        if let Some(model) = self.cc.model() {
            model.on_sent(env.now, bytes, flight, again);
        }
        if self.in_flight() == 0 {
            let idle = env.now.saturating_sub(self.snd.last_sent);
            self.cc.on_restart(env.now, idle);
        }
        self.snd.last_sent = env.now;
        // A reply within the delay of what it answers: acknowledgments may wait for the next one.
        if env.now.saturating_sub(self.rcv.last_data) < self.ack.ato {
            self.ack.pingpong = (self.ack.pingpong + 1).min(255);
        }
    }

    /// Sends an acknowledgment without data.
    pub fn send_ack(&mut self, env: &Env<'_>) {
        if self.state == State::Close {
            return;
        }
        let seq = self.acceptable_seq();
        let segment = self.make(env, seq, flag::ACK, 0);
        self.post(env, segment);
    }

    /// The same, telling how the peer's SYN or SYN-ACK was marked (RFC 9768 section 3.1.5).
    pub(crate) fn send_reflecting_ack(&mut self, env: &Env<'_>) {
        self.ecn.accurate.reflects = self.is_accurate();
        self.send_ack(env);
    }

    /// A sequence number that the peer accepts of a segment without data.
    pub(crate) fn acceptable_seq(&self) -> u32 {
        let end = self.window_end();
        let beyond = self.snd.nxt.wrapping_sub(end);
        if !before(end, self.snd.nxt)
            || (self.terms.scaling && beyond < 1 << self.terms.receive_scale)
        {
            self.snd.nxt
        } else {
            end
        }
    }

    /// Resets the connection actively.
    pub fn send_reset(&mut self, env: &Env<'_>) {
        let seq = self.acceptable_seq();
        let segment = self.make(env, seq, flag::ACK | flag::RST, 0);
        self.count.segs_out += 1;
        self.tally(Mib::OutSegs);
        self.tally(Mib::OutRsts);
        self.wire.push(segment);
    }

    /// A window or keep-alive probe: one number before what is expected (`urgent`: at it).
    pub(crate) fn send_probe(&mut self, env: &Env<'_>, urgent: bool) {
        let seq = self.snd.una.wrapping_sub(u32::from(!urgent));
        let segment = self.make(env, seq, flag::ACK, 0);
        self.post(env, segment);
    }
}

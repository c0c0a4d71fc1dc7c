//! What an acknowledgment tells: the peer's window, what arrived, round trips, and what follows of it.

use crate::cc::AckTiming;
use crate::ecn;
use crate::errqueue::stamp;
use crate::loss::{Again, Heard};
use crate::mib::Mib;
use crate::segment::{Segment, after, before, flag};
use crate::settings::{Env, MS, SECOND, Us};
use crate::skb::{RateStamp, Skb};
use crate::tcp::{CaState, Tcp, Wait, poll};

/// What became of a segment's ACK field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Taken.
    Good,
    /// Older than what is known; nothing counts but SACK.
    Old,
    /// Older than any window: answered by a challenge.
    TooOld,
    /// Of data never sent.
    Unsent,
}

/// Times of what an ACK delivered first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ages {
    /// Oldest and newest packet acknowledged cumulatively, sent once.
    acked: Option<(Us, Us)>,
    /// Oldest and newest packet SACKed, sent once.
    sacked: Option<(Us, Us)>,
    /// Lowest sequence number delivered late.
    reorder: Option<u32>,
    /// Most recent rate stamp delivered.
    rate: Option<(RateStamp, Us)>,
}

impl Ages {
    pub(crate) fn note_reorder(&mut self, seq: u32) {
        if self.reorder.is_none_or(|known| before(seq, known)) {
            self.reorder = Some(seq);
        }
    }

    /// A packet that left at `sent` was SACKed.
    pub(crate) fn note_sacked(&mut self, sent: Us) {
        Self::note(&mut self.sacked, sent);
    }

    /// The lowest sequence number that was delivered late.
    pub(crate) const fn late(&self) -> Option<u32> {
        self.reorder
    }

    fn note(slot: &mut Option<(Us, Us)>, sent: Us) {
        *slot = Some((slot.map_or(sent, |(first, _)| first), sent));
    }

    /// The stamp of the packet sent last counts.
    pub(crate) fn note_rate(&mut self, skb: &Skb) {
        let later = self.rate.is_none_or(|(stamp, sent)| {
            skb.rate.delivered > stamp.delivered
                || (skb.rate.delivered == stamp.delivered && skb.sent > sent)
        });
        if later && !skb.marks.sacked {
            self.rate = Some((skb.rate, skb.sent));
        }
    }
}

impl Tcp {
    /// Takes the ACK field of `segment` and all that comes with it.
    pub fn take_ack(&mut self, env: &Env<'_>, segment: &Segment) -> Verdict {
        let ack = segment.ack;
        let (prior_una, prior_state) = (self.snd.una, self.rec.ca);
        let mut heard = Heard::default();
        let mut ages = Ages::default();
        let (delivered, lost) = (self.rec.delivered, self.rec.lost_total);
        let waits = if self.is_accurate() { self.undelivered() } else { 0 };
        let recent = self.rcv.recent;
        if before(ack, prior_una) {
            let floor =
                self.snd.max_window.min(self.count.bytes_acked.min(u64::from(u32::MAX)) as u32);
            if before(ack, prior_una.wrapping_sub(floor)) {
                return Verdict::TooOld;
            }
            heard.flight = self.packets_out();
            if !segment.sack().is_empty() && self.terms.sack {
                self.take_sack(env, segment, prior_una, &mut heard, &mut ages);
                heard.count_duplicate();
                let again = self.on_loss_news(env, prior_una, &mut heard);
                self.note_delivered(env, delivered, lost, &ages, &heard);
                self.send_again(env, again);
            }
            return Verdict::Old;
        }
        if after(ack, self.snd.nxt) {
            return Verdict::Unsent;
        }
        if after(ack, prior_una) {
            heard.advanced = true;
            heard.bytes = ack.wrapping_sub(prior_una);
            self.rec.retransmits = 0;
        }
        let prior_packets = self.packets_out();
        heard.flight = prior_packets;
        // Before this ACK counts: the end of what was SACKed, or all that was acknowledged.
        let prior_highest = self.highest_sacked();
        self.take_timestamp(env, segment);
        heard.has_data = segment.len > 0 || segment.flags & (flag::SYN | flag::FIN) != 0;
        self.take_window(env, segment, &mut heard);
        self.count.bytes_acked += u64::from(ack.wrapping_sub(prior_una));
        self.snd.una = ack;
        if self.terms.sack && !segment.sack().is_empty() {
            self.take_sack(env, segment, prior_una, &mut heard, &mut ages);
        }
        heard.ece = ecn::is_echo(self, segment);
        self.fate.soft_error = 0;
        self.rec.probes_out = 0;
        self.rcv.heard = env.now;
        if prior_packets == 0 {
            self.hear_accurately(segment, (delivered, waits), recent, &mut heard);
            if heard.dsack {
                let again = self.on_loss_news(env, prior_una, &mut heard);
                self.send_again(env, again);
            }
            self.tally_delivered(self.rec.delivered.wrapping_sub(delivered), &heard);
            self.on_probe_answer(env);
            if self.rec.tlp_end.is_some() {
                self.on_tail_loss_ack(env, ack, &heard);
            }
            return Verdict::Good;
        }
        self.clean(env, segment, (prior_una, prior_highest), &mut heard, &mut ages);
        self.update_reorder_window(&ages.rate.map_or(0, |(stamp, _)| stamp.delivered));
        self.hear_accurately(segment, (delivered, waits), recent, &mut heard);
        if self.rec.tlp_end.is_some() {
            self.on_tail_loss_ack(env, ack, &heard);
        }
        let mut again = Again::Nothing;
        if !heard.is_not_duplicate() || heard.alerts() || self.rec.ca != CaState::Open {
            heard.count_duplicate();
            again = self.on_loss_news(env, prior_una, &mut heard);
        }
        if heard.set_timer {
            self.set_transmit_timer(env);
        }
        ecn::after_ack(self, delivered, heard.ece);
        self.note_delivered(env, delivered, lost, &ages, &heard);
        self.follow_requests(heard.bytes, prior_state);
        self.send_again(env, again);
        Verdict::Good
    }

    /// Accurate ECN: marks that an ACK tells, where it tells anything new.
    fn hear_accurately(
        &mut self,
        segment: &Segment,
        (delivered, waits): (u32, u32),
        recent: Option<(u32, Us)>,
        heard: &mut Heard,
    ) {
        if !self.is_accurate() {
            return;
        }
        self.take_delivered(waits);
        let later = match (recent, self.rcv.recent) {
            (Some((before, _)), Some((now, _))) => after(now, before),
            _ => false,
        };
        let progress = heard.advanced || heard.sacked_data || later;
        let packets = self.rec.delivered.wrapping_sub(delivered);
        if progress {
            heard.marks = self.hear_marks(segment, packets, heard.acked_syn);
        }
        heard.ece = heard.marks > 0;
    }

    /// RFC 7323 section 4.3: the timestamp of a segment that covers the last ACK sent.
    pub fn take_timestamp(&mut self, env: &Env<'_>, segment: &Segment) {
        let Some((value, _)) = segment.stamp().filter(|_| self.terms.stamps) else { return };
        if after(segment.seq, self.rcv.wup) {
            return;
        }
        let newer = self.rcv.recent.is_none_or(|(recent, at)| {
            !after(recent, value) || env.now.saturating_sub(at) >= 24 * 86_400 * SECOND
        });
        if newer {
            self.rcv.recent = Some((value, env.now));
        }
    }

    /// RFC 9293 section 3.10.7.4: the send window.
    fn take_window(&mut self, env: &Env<'_>, segment: &Segment, heard: &mut Heard) {
        let scale = if segment.has(flag::SYN) { 0 } else { self.terms.send_scale };
        let window = u32::from(segment.window) << scale;
        let newer = after(segment.ack, self.snd.una)
            || after(segment.seq, self.snd.wl1)
            || (segment.seq == self.snd.wl1 && (window > self.snd.wnd || window == 0));
        if !newer {
            return;
        }
        heard.window = true;
        self.snd.wl1 = segment.seq;
        if window == self.snd.wnd {
            return;
        }
        self.snd.wnd = window;
        if !self.snd.queue.is_empty() {
            self.restart_after_idle(env);
        }
        if window > self.snd.max_window {
            self.snd.max_window = window;
            self.sync_mss(env);
        }
    }

    /// Payload of a full packet for the path's MTU.
    pub fn sync_mss(&mut self, env: &Env<'_>) {
        let mtu = env.route.mtu();
        self.snd.pmtu = mtu;
        if self.snd.mtu_high > mtu {
            self.snd.mtu_high = mtu;
        }
        let mut mss = self.mss_for(env, mtu);
        mss = self.half_window(mss);
        if self.snd.mtu_probing && self.snd.mtu_low > 0 {
            mss = mss.min(self.mss_for(env, self.snd.mtu_low));
        }
        self.snd.mss = mss;
    }

    /// Payload of a packet of `mtu` bytes with the options that every segment has.
    pub fn mss_for(&self, env: &Env<'_>, mtu: u32) -> u32 {
        let plain = mtu.saturating_sub(env.route.ip_header + 20).min(self.terms.mss_clamp);
        let floor = env.sysctls.of("tcp_min_snd_mss") as u32;
        plain.max(floor).saturating_sub(self.terms.header - 20)
    }

    /// Packets below the cumulative ACK leave the queue.
    fn clean(
        &mut self,
        env: &Env<'_>,
        segment: &Segment,
        (prior_una, prior_highest): (u32, u32),
        heard: &mut Heard,
        ages: &mut Ages,
    ) {
        let una = self.snd.una;
        let mut acked = 0;
        let mut reorder = None;
        while let Some(skb) = self.snd.out.front().copied() {
            if after(skb.end, una) {
                break;
            }
            self.drop_acked(env, &skb, heard, ages, &mut reorder);
            acked += 1;
            if skb.flags & flag::SYN == 0 {
                heard.acked_data = true;
            } else {
                heard.acked_syn = true;
                self.rec.retrans_stamp = None;
            }
            self.snd.out.pop_front();
            self.release(&skb);
        }
        acked += self.trim_first(env, heard, ages, &mut reorder);
        if self.snd.out.is_empty() && self.snd.queue.is_empty() {
            self.snd.memory = 0;
        }
        if self.snd.out.front().is_some_and(|skb| skb.marks.sacked) {
            heard.reneging = true;
        }
        if after(self.snd.urgent, prior_una) && !after(self.snd.urgent, una)
            || self.snd.urgent == prior_una
        {
            self.snd.urgent = una;
        }
        if self.errors.acknowledge(una) {
            self.wake(poll::ERR);
        }
        if !self.rec.returned.is_empty() {
            self.settle_returns();
        }
        self.measure_rtt(env, segment, acked, heard, ages);
        if heard.acked_data || heard.acked_syn {
            heard.set_timer = true;
            if !self.terms.sack {
                self.remove_duplicates(acked, heard.ece);
                if heard.retrans_acked {
                    heard.original_delivered = false;
                }
            } else if let Some(low) = reorder.filter(|&low| before(low, prior_highest)) {
                self.note_reordering(low, Mib::TCPSACKReorder);
            }
            self.on_mtu_probe_acked(env);
        }
    }

    /// The first packet's memory is free again; its descriptor is that of the whole piece.
    fn release(&mut self, skb: &Skb) {
        let rest = self.snd.out.front_mut().filter(|next| next.joined && next.overhead == 0);
        let descriptor = match rest {
            Some(next) => {
                next.overhead = skb.overhead;
                0
            }
            None => skb.overhead,
        };
        self.snd.memory = self.snd.memory.saturating_sub(skb.len() + descriptor);
    }

    /// An ACK within a piece of several packets: what it leaves is cut from there on. Returns how many are gone.
    fn trim_first(
        &mut self,
        env: &Env<'_>,
        heard: &mut Heard,
        ages: &mut Ages,
        reorder: &mut Option<u32>,
    ) -> u32 {
        let una = self.snd.una;
        let continued = self.snd.out.get(1).is_some_and(|next| next.joined);
        let Some(first) = self.snd.out.front_mut() else { return 0 };
        // It, or what came before it in its piece until now.
        let was_of_several = std::mem::take(&mut first.joined) || continued;
        if !was_of_several || !before(first.seq, una) {
            return 0;
        }
        let whole = *first;
        let rest = first.split(una.wrapping_sub(first.seq));
        *first = rest;
        let fewer = self.recut(0);
        if fewer > 0 {
            self.note_acked(&whole, heard, ages, reorder);
            heard.acked_data = true;
            if self.terms.sack {
                self.rec.delivered += fewer;
                self.note_rack(env, &whole);
            }
        }
        fewer
    }

    /// What the first ACK of a packet, or of a part of a piece, tells.
    fn note_acked(&self, skb: &Skb, heard: &mut Heard, ages: &mut Ages, reorder: &mut Option<u32>) {
        ages.note_rate(skb);
        if skb.marks.ever_retrans {
            heard.retrans_acked = true;
        } else if !skb.marks.sacked {
            Ages::note(&mut ages.acked, skb.sent);
            if reorder.is_none_or(|low| before(skb.seq, low)) {
                *reorder = Some(skb.seq);
            }
            if !after(skb.end, self.rec.high_seq) {
                heard.original_delivered = true;
            }
        }
    }

    fn note_rack(&mut self, env: &Env<'_>, skb: &Skb) {
        // An echo of before the retransmission: the original arrived, which says nothing of what left later.
        let sent = (skb.sent / MS) as u32;
        let spurious = skb.marks.ever_retrans
            && self.terms.stamps
            && self.rcv.echo.is_some_and(|echo| echo != 0 && before(echo, sent));
        if !spurious {
            self.advance_rack(env, skb);
        }
    }

    fn drop_acked(
        &mut self,
        env: &Env<'_>,
        skb: &Skb,
        heard: &mut Heard,
        ages: &mut Ages,
        reorder: &mut Option<u32>,
    ) {
        self.note_acked(skb, heard, ages, reorder);
        self.rec.retrans -= u32::from(skb.marks.ever_retrans && skb.marks.retrans);
        if skb.marks.sacked {
            self.rec.sacked -= 1;
        } else if self.terms.sack {
            self.rec.delivered += 1;
            self.note_rack(env, skb);
        }
        if skb.marks.lost {
            self.rec.lost -= 1;
        }
        if let Some(wishes) = skb.wishes.filter(|wishes| wishes.stamps & stamp::ACKED != 0) {
            self.errors.stamp(2, wishes.key, wishes.bytes(skb.len()), env.now);
            self.wake(poll::ERR);
        }
    }

    /// Samples of the round trip: of the oldest packet for the time-out, of the newest for congestion control.
    fn measure_rtt(
        &mut self,
        env: &Env<'_>,
        segment: &Segment,
        acked: u32,
        heard: &mut Heard,
        ages: &Ages,
    ) {
        let (mut seq_rtt, mut cc_rtt, mut sack_rtt) = (None, None, None);
        if let Some((first, last)) = ages.acked.filter(|_| !heard.retrans_acked) {
            seq_rtt = Some(env.now - first);
            cc_rtt = Some(env.now - last);
        }
        if let Some((first, last)) = ages.sacked {
            sack_rtt = Some(env.now - first);
            cc_rtt = Some(env.now - last);
        }
        let seq_rtt = seq_rtt.or(sack_rtt).or_else(|| {
            let rtt = self.rtt_by_echo(env, segment);
            let rtt = rtt.filter(|_| heard.acked_data || heard.acked_syn);
            cc_rtt = rtt.or(cc_rtt);
            rtt
        });
        if let Some(rtt) = seq_rtt {
            self.take_rtt(env, rtt, cc_rtt.unwrap_or(rtt));
            let waits = self.snd.out.front().map(|skb| env.now - skb.sent);
            heard.set_timer |=
                acked == 0 && sack_rtt.is_some_and(|of| waits.is_some_and(|w| of > w));
        }
        let timing = AckTiming { now: env.now, rtt: cc_rtt, una: self.snd.una, nxt: self.snd.nxt };
        if let Some([found, cwnd]) = self.cc.on_ack(&mut self.window, timing) {
            self.tally(found);
            self.tally_all(cwnd, self.window.cwnd);
        }
    }

    /// The round trip that a timestamp's echo tells (RFC 7323 section 4).
    pub(crate) fn rtt_by_echo(&self, env: &Env<'_>, segment: &Segment) -> Option<Us> {
        let (_, echo) = segment.stamp().filter(|_| self.terms.stamps)?;
        let delta = env.tick().wrapping_sub(echo);
        (echo != 0 && delta < i32::MAX as u32 / 1000).then(|| Us::from(delta.max(1)) * MS)
    }

    /// Takes a round trip for the time-out and the least one.
    pub fn take_rtt(&mut self, env: &Env<'_>, rtt: Us, least: Us) {
        let span = env.sysctls.of("tcp_min_rtt_wlen") as Us * SECOND;
        self.rtt.note_least(env.now, least.max(1), span);
        let floor = self.rto_min(env);
        self.rtt.sample(rtt, self.snd.una, self.snd.nxt, floor);
        let ceiling = self.rto_max(env);
        self.rtt.set_rto(ceiling);
        self.rtt.backoff = 0;
    }

    fn tally_delivered(&mut self, newly: u32, heard: &Heard) {
        self.tally_all(Mib::TCPDelivered, newly);
        let marked = match (heard.ece, self.is_accurate()) {
            (false, _) => 0,
            (true, true) => heard.marks,
            (true, false) => newly,
        };
        self.tally_all(Mib::TCPDeliveredCE, marked);
    }

    /// The window, after what this ACK delivered.
    fn note_delivered(
        &mut self,
        env: &Env<'_>,
        delivered: u32,
        lost: u32,
        ages: &Ages,
        heard: &Heard,
    ) {
        let newly = self.rec.delivered.wrapping_sub(delivered);
        self.tally_delivered(newly, heard);
        let lost = self.rec.lost_total.wrapping_sub(lost);
        let rate = self.note_rate(env, newly, ages.rate);
        if self.cc.model().is_some() {
            self.tell_model(env, (newly, lost), rate, heard);
        }
        if self.in_reduction() && !self.count.paces {
            self.reduce_window(newly, lost, heard.advanced);
        } else if self.cc.model().is_some() {
            self.follow_model();
        } else if self.may_grow(env, heard) {
            self.cc.grow(&mut self.window, newly, env.now);
            self.window.stamp = env.now;
        }
        self.update_pacing(env);
    }

    fn may_grow(&self, env: &Env<'_>, heard: &Heard) -> bool {
        if self.rec.reordering > env.sysctls.of("tcp_reordering") as u32 {
            heard.acked_data || heard.sacked_data
        } else {
            heard.acked_data
        }
    }

    fn on_probe_answer(&mut self, env: &Env<'_>) {
        let Some(head) = self.snd.queue.front() else { return };
        let mss = self.current_mss();
        let first = if head.len() > mss { head.seq.wrapping_add(mss) } else { head.end };
        let _ = first;
        if after(head.end, self.window_end()) {
            let base = self.probe_base(env);
            let when = (base << self.rtt.backoff.min(30)).min(self.rto_max(env));
            let when = self.bound_by_user(env, when);
            self.arm(Wait::Probe, env.now + when);
        } else {
            self.rtt.backoff = 0;
            self.rec.probes_since = None;
            if self.waits_for(Wait::Probe) {
                self.timers.transmit = None;
            }
        }
    }

    /// Writers are woken when a third of the send buffer is free.
    pub fn note_space(&mut self, env: &Env<'_>) {
        if self.snd.no_space && !self.opt.sndbuf_locked && self.in_flight() < self.window.cwnd {
            // Twice the window, where a writer waited and the window was not the limit.
            self.expand_sndbuf(env);
            self.window.stamp = env.now;
        }
        if self.snd.no_space && self.has_write_space(env) {
            self.snd.no_space = false;
            self.stop_chrono(env, 2);
            self.wake(poll::OUT | poll::WRNORM);
        }
    }

    /// Whether poll says that writing does not block.
    pub fn has_write_space(&self, env: &Env<'_>) -> bool {
        let free = i64::from(self.opt.sndbuf) - i64::from(self.snd.memory);
        free >= i64::from(self.snd.memory >> 1) && self.unsent_below(env, 1)
    }

    /// Whether unsent bytes are below TCP_NOTSENT_LOWAT; `shift`: twice as many are not.
    pub fn unsent_below(&self, env: &Env<'_>, shift: u32) -> bool {
        let unsent = u64::from(self.snd.write_seq.wrapping_sub(self.snd.nxt));
        let limit = if self.opt.notsent_lowat > 0 {
            u64::from(self.opt.notsent_lowat)
        } else {
            env.sysctls.of("tcp_notsent_lowat") as u64
        };
        (unsent << shift) < limit
    }
}

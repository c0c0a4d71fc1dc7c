//! One path: its numbers both ways and what belongs to them (docs/rudp.md sections 2, 4, 5, 6 and 8).
//! It owns the parts and passes on to each what concerns it.

use super::ack_requests::{AckRequests, Conditions};
use super::config::Config;
use super::congestion::{AckNews, PathCongestion, controller};
use super::counters::Counters;
use super::datagram_size::{BASE, DatagramSize};
use super::deadline::Deadline;
use super::ecn::EcnCheck;
use super::life::{Life, PathState, Verdict};
use super::loss::LossDetection;
use super::path_status::Agreement;
use super::protect::Entropy;
use super::rebinding::{Question, Rebinding};
use super::received::{Arrival, Received};
use super::report::{PathAddrs, PathStats};
use super::sent::{Item, Items, NeverSent, News, Sent};
use crate::wire::{AckFrame, Frame, PathStatus, ShortHeader, Writer, expand};
use acklab_core::cc::CoupledSample;
use acklab_core::packet::Ecn;
use acklab_core::time::{Span, Time};
use acklab_core::timer::TimerTable;

/// A peer that asks for slower ACKs than this gets this, us.
const MOST_ACK_DELAY_US: u64 = 1_000_000;

/// The state of one path.
#[derive(Debug)]
pub(super) struct Path {
    id: u8,
    addrs: PathAddrs,
    rebinding: Rebinding,
    life: Life,
    received: Received,
    loss: LossDetection,
    congestion: PathCongestion,
    requests: AckRequests,
    agreement: Agreement,
    ecn: EcnCheck,
    size: DatagramSize,
    counters: Counters,
    /// The last authentic packet of the peer's on this path.
    last_heard: Time,
    /// Numbers from this one on were sent under the present key.
    key_from: u64,
}

/// A packet that was written, ready to leave.
#[derive(Debug)]
pub(super) struct Departure {
    pub(super) len: usize,
    pub(super) eliciting: bool,
    pub(super) items: Items,
    /// It finds out whether datagrams of its size pass.
    pub(super) probes_size: bool,
}

impl Path {
    pub(super) fn new(now: Time, id: u8, addrs: PathAddrs, config: &Config, life: Life) -> Self {
        let size = DatagramSize::new(config.largest_datagram, addrs.remote);
        let congestion = PathCongestion::new(now, controller(config, id, size.current() as u64));
        Self {
            id,
            addrs,
            rebinding: Rebinding::default(),
            life,
            received: Received::new(config.ack.as_ref()),
            loss: LossDetection::new(now),
            ecn: EcnCheck::new(congestion.codepoint()),
            congestion,
            requests: AckRequests::new(config.asks),
            agreement: Agreement::new(),
            size,
            counters: Counters::default(),
            last_heard: now,
            key_from: 0,
        }
    }

    pub(super) const fn id(&self) -> u8 {
        self.id
    }

    pub(super) const fn addrs(&self) -> PathAddrs {
        self.addrs
    }

    /// It leads elsewhere than was thought when it began.
    pub(super) const fn set_addrs(&mut self, addrs: PathAddrs) {
        self.addrs = addrs;
    }

    /// The handshake found the peer there: nothing but greetings has left on it.
    pub(super) fn lead_to(&mut self, addrs: PathAddrs, config: &Config) {
        if addrs.remote.is_ipv4() != self.addrs.remote.is_ipv4() {
            self.size = DatagramSize::new(config.largest_datagram, addrs.remote);
        }
        self.addrs = addrs;
    }

    pub(super) const fn life(&self) -> &Life {
        &self.life
    }

    pub(super) const fn life_mut(&mut self) -> &mut Life {
        &mut self.life
    }

    pub(super) const fn loss(&self) -> &LossDetection {
        &self.loss
    }

    pub(super) const fn loss_mut(&mut self) -> &mut LossDetection {
        &mut self.loss
    }

    pub(super) const fn received(&self) -> &Received {
        &self.received
    }

    pub(super) const fn agreement_mut(&mut self) -> &mut Agreement {
        &mut self.agreement
    }

    pub(super) const fn size_mut(&mut self) -> &mut DatagramSize {
        &mut self.size
    }

    /// The peer hears nothing here.
    pub(super) fn is_silent_there(&self) -> bool {
        self.agreement.is_silent_there()
    }

    /// One of the ends wants it used only if no other is.
    pub(super) fn is_spare(&self) -> bool {
        self.agreement.is_spare()
    }

    pub(super) const fn status(&self) -> PathStatus {
        self.agreement.ours(self.life.state())
    }

    /// What the path carries in a round trip, bytes: the scheduler's window.
    pub(super) fn window(&self) -> u64 {
        self.congestion.window(self.loss.rtt().smoothed())
    }

    /// What it carries now, bytes per second, and its round trip, seconds; `None` where nothing is on the way.
    pub(super) fn load(&self) -> Option<(f64, f64)> {
        let srtt = self.loss.rtt().smoothed().as_secs_f64().max(1e-6);
        let busy = self.life.is_usable() && self.loss.sent().in_flight() > 0;
        busy.then(|| (self.window() as f64 / srtt, srtt))
    }

    /// What it is of the connection has changed.
    pub(super) fn on_coupled(&mut self, sample: &CoupledSample) {
        self.congestion.on_coupled(sample);
    }

    /// Bytes of a full datagram; the unit of the congestion control.
    const fn mss(&self) -> u64 {
        self.size.current() as u64
    }

    /// The probe time-out without back-off.
    pub(super) fn pto(&self) -> Span {
        self.loss.rtt().pto(self.requests.delay())
    }

    /// For reports.
    pub(super) fn stats(&self) -> PathStats {
        PathStats {
            id: self.id,
            addrs: self.addrs,
            state: self.life.state(),
            packets: self.counters.packets,
            bytes: self.counters.bytes,
            bytes_received: self.counters.bytes_received,
            content: self.counters.content,
            lost: self.counters.lost,
            in_flight: self.loss.sent().in_flight(),
            srtt: self.loss.rtt().measured(),
            least_rtt: self.loss.rtt().least(),
            delivered: self.counters.delivered,
            recoveries: self.counters.recoveries,
            timeouts: self.counters.timeouts,
            cwnd: self.congestion.cwnd(),
            ssthresh: self.congestion.ssthresh(),
            rate: self.congestion.pacing_rate(),
            datagram: self.size.current(),
        }
    }
}

/// What may leave, and what leaves.
impl Path {
    /// Whether the peer's address may get a full datagram.
    pub(super) fn may_reach(&self) -> bool {
        self.life.may_send(self.mss())
    }

    /// Nothing was asked for yet in this round of sending.
    pub(super) const fn begin_round(&mut self) {
        self.congestion.forget_paced();
    }

    /// Whether window and pacing let a packet of content leave now.
    pub(super) fn may_send(&mut self, now: Time) -> bool {
        if self.loss.probes() > 0 {
            self.congestion.forget_paced();
            return true;
        }
        let sent = self.loss.sent();
        self.congestion.may_send(now, sent.in_flight(), self.mss(), sent.is_full())
    }

    /// How many bytes one batch may hold, so that it does not burst.
    pub(super) fn batch(&self) -> u64 {
        self.congestion.batch(self.mss() as u32)
    }

    /// The mark of the next packets, and how many may bear it.
    pub(super) fn mark(&mut self, now: Time) -> (Ecn, usize) {
        self.ecn.mark(now)
    }

    /// Nothing waits to be sent here though, perhaps, something could be.
    pub(super) fn on_nothing_to_send(&mut self) {
        self.congestion.on_nothing_to_send(self.loss.sent().in_flight(), self.mss());
    }

    /// Whether it has something to say of itself: a challenge, a probe.
    pub(super) fn must_speak(&self, now: Time) -> bool {
        self.life.challenge_is_due(now) || self.loss.probes() > 0
    }

    /// Whether the request for an ACK frequency waits.
    pub(super) const fn asks(&self) -> bool {
        self.requests.is_due()
    }

    /// The request for an ACK frequency, if it waits and there is room.
    pub(super) fn write_request(&mut self, writer: &mut Writer<'_>) -> Option<Item> {
        self.requests.poll(self.id, writer.remaining())?.emit(writer);
        Some(Item::AckFrequency(self.id))
    }

    /// The packet with the request was lost.
    pub(super) const fn on_request_lost(&mut self) {
        self.requests.on_lost();
    }

    /// An ACK of what arrived here, if it is due or, where `news` is, if it would tell anything; on
    /// whichever path `writer` writes. Whether it was written.
    pub(super) fn write_ack(&mut self, now: Time, news: bool, writer: &mut Writer<'_>) -> bool {
        (self.received.is_due() || (news && self.received.has_news()))
            && self.received.write_ack(now, self.id, writer)
    }

    /// So many bytes of content were acknowledged for the first time.
    pub(super) const fn on_delivered(&mut self, bytes: u64) {
        self.counters.delivered += bytes;
    }

    /// Content of so many bytes was written.
    pub(super) const fn on_content(&mut self, bytes: u64) {
        self.counters.content += bytes;
    }

    /// The size of a datagram to probe for now.
    pub(super) fn probe_size(&self, now: Time) -> Option<usize> {
        let size = self.size.poll_probe(now)?;
        let ready = self.life.state() == PathState::Active
            && self.life.may_send(size as u64)
            && self.loss.sent().in_flight() + size as u64 <= self.window();
        ready.then_some(size)
    }

    /// A packet leaves.
    pub(super) fn on_sent(&mut self, now: Time, departure: Departure) {
        let Departure { len, eliciting, items, probes_size } = departure;
        let bytes = len as u32;
        let stamp = self.congestion.stamp(now, bytes, self.loss.sent().in_flight());
        let mut sent = Sent::new(now, bytes, eliciting, stamp, items);
        sent.probes_size = probes_size;
        self.loss.on_sent(now, sent);
        self.count_datagram(len);
        self.life.on_sent(len as u64);
        if probes_size {
            self.size.on_probe_sent();
        }
        if eliciting {
            let in_flight = self.loss.sent().in_flight();
            self.congestion.on_sent(now, bytes, in_flight, self.mss());
        } else {
            self.loss.forget(now, self.record_life());
        }
    }

    /// How long the records of packets are kept that nothing is to be heard of any more.
    fn record_life(&self) -> Span {
        self.pto() * 2
    }

    /// A datagram left, perhaps of the handshake.
    pub(super) const fn count_datagram(&mut self, len: usize) {
        self.counters.packets += 1;
        self.counters.bytes += len as u64;
    }

    /// The packet that has just left bears a mark.
    pub(super) fn on_marked(&mut self, now: Time) {
        self.loss.sent_mut().mark_last();
        self.ecn.on_sent(now, self.pto());
    }

    /// What leaves from now on does so under another key.
    pub(super) fn on_key_update(&mut self) {
        self.key_from = self.loss.sent().next_number();
    }
}

/// What arrives, and what time does.
impl Path {
    /// The number that a header means, if no such packet arrived yet, and whether it is the largest.
    pub(super) fn number_of(&self, header: &ShortHeader) -> Option<(u64, bool)> {
        let number = expand(header.number32, self.received.expected());
        self.received.is_fresh(number).then(|| (number, self.received.is_newest(number)))
    }

    /// An authentic packet of `bytes` arrived from `addrs`. The `newest` of a client's may come from elsewhere: it
    /// is behind another address now, or another host copies its packets. A server keeps its address. At a client
    /// it is this end that may have moved, if its socket does not choose.
    pub(super) fn on_authentic(
        &mut self,
        now: Time,
        bytes: usize,
        (addrs, newest): (PathAddrs, bool),
        client: bool,
        config: &Config,
    ) {
        self.last_heard = now;
        self.counters.bytes_received += bytes as u64;
        if client {
            if newest && addrs.local.ip() != self.addrs.local.ip() {
                self.move_to(now, PathAddrs { local: addrs.local, ..self.addrs }, config);
            }
        } else if newest && addrs != self.addrs {
            if self.life.is_validated() {
                self.rebinding.on_newest(now, addrs, bytes as u64);
            } else {
                self.move_to(now, addrs, config);
                self.life.on_rebound(now);
            }
        }
        self.life.on_received(bytes as u64);
    }

    /// It leads elsewhere now. Where but a port has changed the road is the same (RFC 9000 section 9.4).
    fn move_to(&mut self, now: Time, addrs: PathAddrs, config: &Config) {
        let ips = |addrs: PathAddrs| (addrs.local.ip(), addrs.remote.ip());
        let same = ips(self.addrs) == ips(addrs);
        self.addrs = addrs;
        if !same {
            self.restart(now, config);
        }
    }

    /// Before any address was validated, the peer turns out to be at another.
    pub(super) fn doubt(&mut self, now: Time) {
        self.life.on_rebound(now);
    }

    /// A challenge to an address from which packets came, if one is due.
    pub(super) fn poll_question(
        &mut self,
        now: Time,
        entropy: &mut dyn Entropy,
    ) -> Option<Question> {
        self.rebinding.poll(now, entropy)
    }

    /// The frames of a packet were taken.
    pub(super) fn on_taken(&mut self, now: Time, arrival: Arrival) {
        let srtt = self.loss.rtt().measured();
        self.received.on_packet(now, &Arrival { srtt, pto: self.pto(), ..arrival });
    }

    /// The peer asks for an ACK frequency; a delay below `least_us` is not believed.
    pub(super) fn on_asked(&mut self, frame: &Frame<'_>, least_us: u64) {
        if let Frame::AckFrequency { sequence, packets, delay_us, reordering, .. } = *frame {
            let delay = Span::from_micros(delay_us.clamp(least_us, MOST_ACK_DELAY_US));
            self.received.on_asked(sequence, packets, delay, reordering);
        }
    }

    /// An ACK frame about this path; `indirect` if it came by another. Whether it acknowledges what was
    /// sent under the present key.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ack: &AckFrame<'_>,
        indirect: bool,
        news: &mut News,
    ) -> Result<bool, NeverSent> {
        let before = self.loss.sent().in_flight();
        // Whatever it says, it counts as what was asked for at most.
        let delay = Span::from_micros(ack.delay_us.min(MOST_ACK_DELAY_US));
        let delay = delay.min(self.requests.delay());
        let congestion = &mut self.congestion;
        let stamps = &mut |stamp| congestion.on_delivered(stamp);
        let heard = self.loss.on_ack(now, ack.ranges(), (delay, indirect), stamps, news)?;
        let Some(heard) = heard else { return Ok(false) };
        self.detect_losses(now, news);
        let sums = news.tally();
        let lost = self.loss.take_lost(sums.delivered, self.mss());
        let told = AckNews {
            largest: heard.largest,
            next_number: self.loss.sent().next_number(),
            marked: self.ecn.on_ack(ack.ecn, sums.marked, heard.newest),
            delivered: sums.delivered,
            lost,
            mss: self.mss(),
            before,
            in_flight: self.loss.sent().in_flight(),
            rtt: heard.rtt,
            srtt: self.loss.rtt().measured(),
        };
        self.congestion.on_ack(now, &told);
        self.counters.lost = self.counters.lost.saturating_sub(sums.spurious);
        self.ask_for_acks(now);
        self.life.on_news(now);
        Ok(heard.largest >= self.key_from)
    }

    fn ask_for_acks(&mut self, now: Time) {
        let rtt = self.loss.rtt();
        if let Some(least_rtt) = rtt.least() {
            let window = self.congestion.cwnd() / self.mss();
            let lost = self.loss.share();
            let each = self.congestion.wants_each_ack();
            let conditions = Conditions { least_rtt, srtt: rtt.smoothed(), window, lost, each };
            self.requests.adapt(now, &conditions);
        }
    }

    /// Packets overtaken for too long are lost; the caller passes their items on.
    fn detect_losses(&mut self, now: Time, news: &mut News) {
        let by_time = self.congestion.codepoint() == Ecn::Ect1;
        let lost = self.loss.detect(now, self.record_life(), by_time, news);
        self.counters.lost += lost;
        let sums = news.tally();
        if sums.size_lost {
            self.size.on_lost(now);
        }
        if let Some(size) = sums.size_arrived {
            self.size.on_arrived(size);
        }
        if lost > 0
            && let Some(largest) = sums.largest_lost
        {
            let sent = self.loss.sent();
            let in_flight = sent.in_flight() + sums.lost;
            let next_number = sent.next_number();
            let begins = self.congestion.on_loss(now, largest, next_number, in_flight);
            self.counters.recoveries += u64::from(begins);
        }
    }

    /// A response to a challenge; true if it fits. A path that was dead begins anew.
    pub(super) fn on_response(&mut self, now: Time, data: [u8; 8], config: &Config) -> bool {
        if let Some(addrs) = self.rebinding.on_response(data) {
            self.move_to(now, addrs, config);
            return true;
        }
        let dead = self.life.state() == PathState::Dead;
        let fits = self.life.on_response(now, data);
        if fits && dead {
            self.restart(now, config);
        }
        fits
    }

    /// The connection's seed is that of `config` from now on.
    pub(super) fn reseed(&mut self, config: &Config) {
        self.congestion.reseed(config, self.id);
    }

    /// Begins anew after the path was dead (docs/rudp.md section 6, "Back").
    fn restart(&mut self, now: Time, config: &Config) {
        let fresh = controller(config, self.id, self.mss());
        self.congestion.restart(fresh, self.loss.sent().next_number());
        self.loss.restart(now);
        self.ecn.restart();
    }

    /// Since when it has been silent with something outstanding.
    pub(super) fn silent_since(&self) -> Option<Time> {
        self.loss.silent_since(self.last_heard)
    }

    fn timers(&self, silent: Option<Time>) -> TimerTable<Deadline, 6> {
        let pto = self.pto();
        TimerTable::of([
            (Deadline::Loss, self.loss.sent().loss_at()),
            (Deadline::Probe, self.loss.pto_at(pto)),
            (Deadline::Ack, self.received.deadline()),
            (Deadline::Pace, self.congestion.paced()),
            (Deadline::Life, self.life.deadline(silent, pto)),
            (Deadline::Rebinding, self.rebinding.deadline()),
        ])
    }

    /// When [`Self::handle_timeout`] must be called next; `silent`: since when it has been silent, where
    /// another path could take over.
    pub(super) fn poll_timeout(&self, silent: Option<Time>) -> Option<Time> {
        self.timers(silent).next()
    }

    /// Acts on every deadline that is due; what time made of the path.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        silent: Option<Time>,
        news: &mut News,
    ) -> Option<Verdict> {
        let pto = self.pto();
        if self.timers(silent).take_expired(Deadline::Ack, now) {
            self.received.handle_timeout(now, pto);
        }
        if self.timers(silent).take_expired(Deadline::Loss, now) {
            self.detect_losses(now, news);
        }
        // What is lost is outstanding no more.
        if self.timers(silent).take_expired(Deadline::Probe, now) {
            self.counters.timeouts += 1;
            self.on_pto(now);
        }
        let verdict = self.life.judge(now, silent, pto);
        if verdict == Some(Verdict::Dead) {
            self.ecn.on_silence();
            // Challenges are small: a path that swallows large datagrams would come back to die again.
            if self.loss.sent().has_larger(BASE as u32) {
                self.size.on_silence(now);
            }
        }
        verdict
    }

    /// The probe time-out expired.
    fn on_pto(&mut self, now: Time) {
        if self.loss.on_pto(now) {
            self.size.on_silence(now);
            self.ecn.on_silence();
            self.congestion.on_persistent(now, self.loss.sent().in_flight());
        }
    }
}

//! A connection: two streams that acknowledge each other, what is measured of them, and the two
//! observers that are told.

use acklab_core::time::Time;

use super::direction::Direction;
use super::facts::Offer;
use super::life::{Life, Reset};
use super::observe::{DirectionObserver, LiveObserver};
use super::report::{DirectionReport, Ending, FlowReport};
use super::rtt::SENT_AGAIN_MIN;
use super::told::Told;
use super::unseen::Unseen;
use super::vantage;
use crate::frame::Notice;
use crate::frame::notice::Reason;
use crate::segment::{Flags, Segment};

/// A live connection. Direction 0 is that of the client (who sent the SYN), else of the endpoint
/// seen first.
pub(super) struct Connection<O> {
    directions: [Direction<O>; 2],
    /// Times of the SYN and of the SYN-ACK, of the first copy and of the last, for the handshake's RTT.
    syn_times: Option<[Time; 2]>,
    syn_ack_times: Option<[Time; 2]>,
    handshake_done: bool,
    life: Life,
    id: u64,
    packets: u64,
    /// Packets that the capture lacks, put back.
    unseen: Unseen,
    inferred: u64,
    /// What the observers had noted when it was last looked for news.
    noted: u64,
    first_frame: u64,
    first_time: Time,
    pub(super) last_time: Time,
}

impl<O: DirectionObserver> Connection<O> {
    /// A connection that begins with `segment`, which is yet to be handled.
    pub(super) fn open(id: u64, segment: &Segment<'_>) -> Self {
        // A capture that begins with the SYN-ACK has seen the server first.
        let syn_ack = segment.flags.has(Flags::SYN.with(Flags::ACK));
        let (client, server) =
            if syn_ack { (segment.dst, segment.src) } else { (segment.src, segment.dst) };
        Self {
            directions: [Direction::open(client, server), Direction::open(server, client)],
            syn_times: None,
            syn_ack_times: None,
            handshake_done: false,
            life: Life::default(),
            id,
            packets: 0,
            unseen: Unseen::default(),
            inferred: 0,
            noted: 0,
            first_frame: segment.frame,
            first_time: segment.time,
            last_time: segment.time,
        }
    }

    /// Whether the connection is over, so that the next SYN is another's.
    pub(super) fn is_over(&self) -> bool {
        self.life.reset.is_some() || self.directions.iter().all(|d| d.stream.is_closed())
    }

    /// Whether `segment` belongs to a new connection between the same endpoints.
    pub(super) fn is_replaced_by(&self, segment: &Segment<'_>) -> bool {
        if !segment.flags.has(Flags::SYN) {
            return self.directions.iter().any(|d| d.stream.is_elsewhere());
        }
        let stream = &self.directions[self.sender(segment)].stream;
        let known = stream.offer.is_some();
        !stream.is_own_syn(segment.seq) && (known || self.is_over() || stream.bytes() > 0)
    }

    #[inline]
    fn sender(&self, segment: &Segment<'_>) -> usize {
        usize::from(segment.src != self.directions[0].from)
    }

    /// Takes a segment of this connection.
    pub(super) fn on_segment(&mut self, segment: &Segment<'_>) {
        if let Some(peers) = self.unseen.shown_by(segment) {
            self.inferred += 1;
            self.handle(&peers);
        }
        self.packets += 1;
        self.last_time = self.last_time.max(segment.time);
        self.directions[self.sender(segment)].note_ttl(segment.ttl);
        self.handle(segment);
    }

    fn handle(&mut self, segment: &Segment<'_>) {
        let sender = self.sender(segment);
        let own = &mut self.directions[sender];
        if own.is_captured_twice(segment) {
            return;
        }
        if segment.flags.has(Flags::RST) {
            self.life.reset.get_or_insert(Reset { by: sender, frame: segment.frame });
            return;
        }
        self.life.fin |= segment.flags.has(Flags::FIN);
        if segment.flags.has(Flags::SYN) {
            self.on_syn(sender, segment);
        } else if !self.handshake_done && self.syn_ack_times.is_some() && sender == 0 {
            self.on_handshake_done(segment);
        }

        let [a, b] = &mut self.directions;
        let (own, peer) = if sender == 0 { (a, b) } else { (b, a) };
        let has_data = segment.payload_len > 0 || segment.flags.has(Flags::FIN);
        let probe = own.stream.is_probe(segment);
        let unseen = peer.stream.unseen_bytes();
        if segment.flags.has(Flags::ACK) {
            peer.on_ack(segment, !has_data && !probe);
        }
        if has_data || probe {
            let hears_unseen = peer.stream.unseen_bytes() > unseen;
            own.on_data(segment, &peer.ack_times, hears_unseen);
        }
    }

    fn on_syn(&mut self, sender: usize, segment: &Segment<'_>) {
        let [a, b] = &mut self.directions;
        let (own, peer) = if sender == 0 { (a, b) } else { (b, a) };
        own.stream.on_syn(segment);
        if segment.flags.has(Flags::ACK) {
            self.life.answered = true;
            let before = self.syn_ack_times.map(|[_, last]| segment.time.since(last));
            if self.handshake_done && before.is_some_and(|before| before >= SENT_AGAIN_MIN) {
                peer.ack_times.on_answered_again();
            }
            copy_at(&mut self.syn_ack_times, segment.time);
            if let Some(syns) = self.syn_times {
                peer.ack_times.on_handshake(syns.map(|syn| segment.time.since(syn)));
            }
        } else {
            copy_at(&mut self.syn_times, segment.time);
            self.life.syns += 1;
        }
        if let (Some(ours), Some(theirs)) = (own.stream.offer, peer.stream.offer) {
            own.stream.agree(theirs);
            peer.stream.agree(ours);
            let scaled = ours.window_scale.is_some() && theirs.window_scale.is_some();
            let scale = |h: Offer| {
                Some(if scaled { h.window_scale.unwrap_or(0).min(WINDOW_SCALE_MAX) } else { 0 })
            };
            own.window.scale = scale(theirs);
            peer.window.scale = scale(ours);
        }
    }

    fn on_handshake_done(&mut self, segment: &Segment<'_>) {
        self.handshake_done = true;
        if let Some(syn_acks) = self.syn_ack_times {
            let since = syn_acks.map(|syn_ack| segment.time.since(syn_ack));
            self.directions[1].ack_times.on_handshake(since);
        }
    }

    /// Takes what was said of a packet of this connection.
    pub(super) fn on_notice(&mut self, notice: &Notice) {
        let of = usize::from(notice.src != self.directions[0].from);
        let life = &mut self.life;
        let too_big = matches!(notice.reason, Reason::TooBig { .. });
        Told::add(if too_big { &mut life.too_big } else { &mut life.unreachable }, notice, of);
    }

    /// Bytes that both observers hold.
    pub(super) fn held_bytes(&self) -> usize {
        self.directions.iter().map(|d| d.observer.held_bytes()).sum()
    }

    /// Has the observer that holds more shed it.
    pub(super) fn shed(&mut self) {
        let [a, b] = &mut self.directions;
        if a.observer.held_bytes() >= b.observer.held_bytes() {
            a.observer.shed();
        } else {
            b.observer.shed();
        }
    }

    /// How the connection ended, if it did.
    pub(super) fn ending(&self) -> Option<Ending> {
        match (self.life.reset.is_some(), self.is_over()) {
            (true, _) => Some(Ending::Reset),
            (false, true) => Some(Ending::Closed),
            (false, false) => None,
        }
    }

    /// Closes both observers and condenses everything into a report.
    pub(super) fn finish(mut self, ending: Ending) -> FlowReport<O::Report> {
        let observers = self.directions.each_mut().map(Direction::take_observer);
        self.report(ending, observers)
    }

    /// What `observers` make of the connection so far.
    fn report(&self, ending: Ending, observers: [O; 2]) -> FlowReport<O::Report> {
        let [a, b] = &self.directions;
        let (halves_a, halves_b) = (a.halves(b), b.halves(a));
        let ends = [a.end(halves_a.to_sender), b.end(halves_a.to_receiver)];
        let vantage = vantage::locate(ends);
        let facts_a = a.facts(halves_a, &b.ack_times, vantage);
        let facts_b = b.facts(halves_b, &a.ack_times, vantage.reversed());
        let [mut of_a, mut of_b] = observers;
        of_a.heed(&of_b);
        of_b.heed(&of_a);
        let observed_a = of_a.finish(&facts_a, &facts_b);
        let observed_b = of_b.finish(&facts_b, &facts_a);
        FlowReport {
            id: self.id,
            endpoints: [a.from, b.from],
            first_frame: self.first_frame,
            first_time: self.first_time,
            last_time: self.last_time,
            packets: self.packets,
            inferred: self.inferred,
            life: self.life,
            ending,
            directions: [
                DirectionReport { facts: facts_a, observed: observed_a },
                DirectionReport { facts: facts_b, observed: observed_b },
            ],
        }
    }
}

impl<O: LiveObserver> Connection<O> {
    /// Whether there may be something new to report since it was last asked.
    pub(super) fn has_news(&mut self) -> bool {
        let noted = self.directions.iter().map(|d| d.observer.noted()).sum();
        std::mem::replace(&mut self.noted, noted) != noted
    }

    /// What the report would be if the connection ended here.
    pub(super) fn look(&self) -> FlowReport<O::Report> {
        let observers = self.directions.each_ref().map(|d| d.observer.clone());
        self.report(self.ending().unwrap_or(Ending::CaptureEnd), observers)
    }

    /// Whether one of the directions has had so many segments since it began anew.
    pub(super) fn has_segments(&self, segments: u64) -> bool {
        self.directions.iter().any(|d| d.observer.segments() >= segments)
    }

    /// Forgets what was counted and noted, in the middle of the connection.
    pub(super) fn begin_anew(&mut self) {
        self.noted = 0;
        self.directions.iter_mut().for_each(Direction::begin_anew);
    }
}

/// Notes one more copy.
fn copy_at(times: &mut Option<[Time; 2]>, now: Time) {
    *times = Some([times.map_or(now, |[first, _]| first), now]);
}

/// RFC 7323 section 2.3.
const WINDOW_SCALE_MAX: u8 = 14;

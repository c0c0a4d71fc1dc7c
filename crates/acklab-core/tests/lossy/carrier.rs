//! A carrier that feeds a congestion control as the reliable UDP connection does (docs/rudp.md sections 4,
//! 5 and 8), over links of the core: a number per transmission, lost content sent again as a new packet,
//! ACKs of everything that arrived every 8 ms, loss by three packets or 9/8 of a round trip, a probe
//! time-out. Nothing else of a protocol.

use std::collections::VecDeque;

use acklab_core::cc::{Algorithm, Start};
use acklab_core::congestion::{Acked, Congestion, Departure};
use acklab_core::delivery_rate::Stamp;
use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::link::{Link, LinkConfig};
use acklab_core::packet::{Addr, Body, Ecn, Packet};
use acklab_core::time::{Span, Time};

/// Payload of a datagram and its size at the IP layer, bytes (docs/rudp.md section 2).
pub(crate) const PAYLOAD: u64 = 1416;
pub(crate) const WIRE: u64 = 1480;
const INITIAL_WINDOW: u64 = 32 * PAYLOAD;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Out,
    Delivered,
    Lost,
}

struct Sent {
    at: Time,
    stamp: Option<Stamp>,
    content: u64,
    fate: Fate,
}

/// Sender, links and receiver.
pub(crate) struct Carrier {
    pub(crate) congestion: Congestion,
    pub(crate) now: Time,
    /// Forward links, each from a time on.
    forward: Vec<(Time, Link)>,
    backward: Link,
    /// Contents to carry; `u64::MAX`: without end.
    contents: u64,
    next_content: u64,
    again: VecDeque<u64>,
    packets: Vec<Sent>,
    /// Every packet below has its fate.
    settled: usize,
    largest: Option<u64>,
    in_flight: u64,
    rtt: Option<(Span, Span)>,
    latest: Span,
    loss_timer: Option<Time>,
    probe_at: Option<Time>,
    backoff: u32,
    probes: u32,
    /// What the receiver got, in order of arrival: number and time.
    arrivals: Vec<(u64, Time)>,
    /// Acknowledged up to here, as the sender knows.
    known: usize,
    /// How much of `arrivals` each ACK covers, and when it left.
    acks: Vec<(usize, Time)>,
    acked: usize,
    ack_at: Option<Time>,
    /// A fifth of the least round trip, between 1 and 8 ms (docs/rudp.md section 5).
    ack_delay: Span,
    /// By content.
    held: Vec<bool>,
    pub(crate) delivered: u64,
}

impl Carrier {
    pub(crate) fn new(
        algorithm: &Algorithm,
        seed: u64,
        forward: &[(Time, LinkConfig)],
        backward: &LinkConfig,
    ) -> Self {
        let start = Start {
            mss: PAYLOAD as u32,
            initial_window: INITIAL_WINDOW,
            initial_ssthresh: u64::MAX,
            seed,
        };
        let link = |(index, (from, config)): (usize, &(Time, LinkConfig))| {
            (*from, Link::new(2 + index as u32, seed, config.clone()))
        };
        Self {
            congestion: Congestion::new(Time::ZERO, algorithm.controller(&start)),
            now: Time::ZERO,
            forward: forward.iter().enumerate().map(link).collect(),
            contents: u64::MAX,
            next_content: 0,
            again: VecDeque::new(),
            packets: Vec::new(),
            settled: 0,
            largest: None,
            in_flight: 0,
            rtt: None,
            latest: Span::ZERO,
            loss_timer: None,
            probe_at: None,
            backoff: 0,
            probes: 0,
            arrivals: Vec::new(),
            known: 0,
            acks: Vec::new(),
            acked: 0,
            ack_at: None,
            backward: Link::new(1, seed, backward.clone()),
            ack_delay: Span::from_nanos(
                (backward.delay.as_nanos() * 2 / 5).clamp(1_000_000, 8_000_000),
            ),
            held: Vec::new(),
            delivered: 0,
        }
    }

    /// Carries so much and no more.
    pub(crate) fn limit(&mut self, bytes: u64) {
        self.contents = bytes.div_ceil(PAYLOAD);
    }

    /// Bytes that left, at the IP layer.
    pub(crate) fn wire_bytes(&self) -> u64 {
        self.packets.len() as u64 * WIRE
    }

    /// Packets that arrived, copies of content too.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrivals.len() as u64
    }

    pub(crate) fn is_done(&self) -> bool {
        self.contents != u64::MAX && self.delivered == self.contents * PAYLOAD
    }

    /// Runs until then, or until all is delivered; `watch` sees it after each step.
    pub(crate) fn run_until(&mut self, end: Time, mut watch: impl FnMut(&Self)) {
        while let Some(next) = self.next_event().filter(|&next| next <= end && !self.is_done()) {
            self.now = self.now.max(next);
            self.step();
            watch(self);
        }
        if !self.is_done() {
            self.now = end;
        }
    }

    fn next_event(&self) -> Option<Time> {
        let links = self.forward.iter().map(|(_, link)| link.poll_timeout());
        let own = [self.backward.poll_timeout(), self.ack_at, self.loss_timer, self.probe_at];
        let send = self.may_send().then(|| self.congestion.pace_at(self.now).unwrap_or(self.now));
        links.chain(own).chain([send]).flatten().min()
    }

    fn has_content(&self) -> bool {
        !self.again.is_empty() || self.next_content < self.contents
    }

    fn may_send(&self) -> bool {
        let room = self.congestion.has_room(self.in_flight, PAYLOAD);
        self.probes > 0 || (room && self.has_content())
    }

    fn step(&mut self) {
        let (now, mut sink) = (self.now, Sink::default());
        for index in 0..self.forward.len() {
            self.forward[index].1.handle_timeout(now, &mut sink);
            while let Some(packet) = self.forward[index].1.poll_transmit(now, &mut sink) {
                self.receive(&packet);
            }
        }
        if self.ack_at.is_some_and(|at| at <= now) {
            self.acknowledge(&mut sink);
        }
        self.backward.handle_timeout(now, &mut sink);
        while let Some(packet) = self.backward.poll_transmit(now, &mut sink) {
            self.handle_ack(&packet);
        }
        if self.loss_timer.is_some_and(|at| at <= now) {
            let lost = self.find_lost();
            self.tell(0, lost, None);
        }
        if self.probe_at.is_some_and(|at| at <= now) {
            (self.probes, self.backoff) = (2, self.backoff + 1);
            self.arm_probe();
        }
        while self.may_send() && self.congestion.pace_at(now).is_none() {
            self.send(&mut sink);
        }
        if self.has_content() {
            // Window or pacing holds it back.
            self.congestion.on_held(now);
        }
    }

    fn send(&mut self, sink: &mut Sink) {
        let probe = self.probes > 0;
        self.probes = self.probes.saturating_sub(1);
        let content = self.again.pop_front().unwrap_or_else(|| {
            if self.next_content < self.contents {
                self.next_content += 1;
                return self.next_content - 1;
            }
            let oldest =
                self.packets[self.settled..].iter().find(|packet| packet.fate == Fate::Out);
            oldest.map_or(0, |packet| packet.content)
        });
        let number = self.packets.len() as u64;
        let stamp = self.congestion.stamp(self.now, PAYLOAD, self.in_flight);
        self.in_flight += PAYLOAD;
        self.packets.push(Sent { at: self.now, stamp, content, fate: Fate::Out });
        let departure = Departure::new(PAYLOAD as u32, self.in_flight);
        self.congestion.on_sent(self.now, &Departure { retransmission: probe, ..departure });
        let now = self.now;
        let link = self.forward.iter_mut().rev().find(|(from, _)| *from <= now);
        let packet = datagram(WIRE as u32, number);
        if let Some((_, link)) = link {
            link.handle_packet(now, packet, sink);
        }
        self.arm_probe();
    }

    fn receive(&mut self, packet: &Packet) {
        let Body::Datagram { words: [number, _], .. } = packet.body else { return };
        self.arrivals.push((number, self.now));
        let content = self.packets[number as usize].content as usize;
        if self.held.len() <= content {
            self.held.resize(content + 1, false);
        }
        if !std::mem::replace(&mut self.held[content], true) {
            self.delivered += PAYLOAD;
        }
        let waiting = self.arrivals.len() - self.acked;
        // Before the first ACK_FREQUENCY every second packet is acknowledged at once.
        let at_once = waiting >= if self.arrivals.len() < 32 { 2 } else { 64 };
        self.ack_at = Some(match self.ack_at {
            _ if at_once => self.now,
            Some(at) => at,
            None => self.now + self.ack_delay,
        });
    }

    fn acknowledge(&mut self, sink: &mut Sink) {
        self.ack_at = None;
        self.acked = self.arrivals.len();
        self.acks.push((self.acked, self.now));
        let packet = datagram(80, self.acks.len() as u64 - 1);
        self.backward.handle_packet(self.now, packet, sink);
    }

    fn handle_ack(&mut self, packet: &Packet) {
        let Body::Datagram { words: [ack, _], .. } = packet.body else { return };
        let (covers, left) = self.acks[ack as usize];
        if covers <= self.known {
            return;
        }
        let (mut delivered, mut rtt) = (0, None);
        for &(number, arrived) in &self.arrivals[self.known..covers] {
            let sent = &mut self.packets[number as usize];
            if sent.fate == Fate::Out {
                sent.fate = Fate::Delivered;
                delivered += PAYLOAD;
                sent.stamp.into_iter().for_each(|stamp| self.congestion.on_delivered(stamp));
            }
            if self.largest.is_none_or(|largest| number > largest) {
                self.largest = Some(number);
                rtt = Some(self.now.since(sent.at).saturating_sub(left.since(arrived)));
            }
        }
        self.known = covers;
        self.backoff = 0;
        if let Some(rtt) = rtt {
            self.latest = rtt;
            self.rtt = Some(self.rtt.map_or((rtt, Span::from_nanos(rtt.as_nanos() / 2)), |rtts| {
                let (srtt, var) = rtts;
                let off = srtt.saturating_sub(rtt).max(rtt.saturating_sub(srtt));
                ((srtt * 7 + rtt) / 8, (var * 3 + off) / 4)
            }));
        }
        let lost = self.find_lost();
        self.tell(delivered, lost, rtt);
        self.arm_probe();
    }

    /// RFC 9002 section 6.1.
    fn find_lost(&mut self) -> u64 {
        self.loss_timer = None;
        let Some(largest) = self.largest else { return 0 };
        let srtt = self.rtt.map_or(self.latest, |(srtt, _)| srtt);
        let patience = srtt.max(self.latest) * 9 / 8;
        let mut lost = 0;
        for number in self.settled as u64..largest {
            let packet = &mut self.packets[number as usize];
            if packet.fate != Fate::Out {
                continue;
            }
            let due = packet.at + patience;
            if number + 3 <= largest || due <= self.now {
                packet.fate = Fate::Lost;
                lost += PAYLOAD;
                self.again.push_back(packet.content);
            } else {
                self.loss_timer = self.loss_timer.into_iter().chain([due]).min();
            }
        }
        while self.packets.get(self.settled).is_some_and(|packet| packet.fate != Fate::Out) {
            self.settled += 1;
        }
        lost
    }

    fn tell(&mut self, delivered: u64, lost: u64, rtt: Option<Span>) {
        let in_flight = self.in_flight;
        self.in_flight -= delivered + lost;
        let srtt = self.rtt.map(|(srtt, _)| srtt);
        let news = Acked { lost, in_flight, rtt, srtt, ..Acked::of(delivered) };
        if delivered + lost > 0 {
            self.congestion.on_ack(self.now, &news);
        }
    }

    fn arm_probe(&mut self) {
        let (srtt, var) = self.rtt.unwrap_or((Span::from_millis(100), Span::ZERO));
        let pto = srtt + (var * 4).max(Span::from_millis(1)) + self.ack_delay;
        let pto = (pto * (1 << self.backoff.min(5))).min(Span::from_secs(2));
        self.probe_at = (self.in_flight > 0).then(|| self.now + pto);
    }
}

fn datagram(size: u32, number: u64) -> Packet {
    let len = size - Packet::IPV4_HEADER - Packet::UDP_HEADER;
    Packet {
        src: Addr::default(),
        dst: Addr::default(),
        ecn: Ecn::NotEct,
        returned: false,
        body: Body::Datagram { len, words: [number, 0] },
    }
}

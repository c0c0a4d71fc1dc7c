//! The model sender of the algorithms' tests: it drives [`Congestion`] as a transport does, over nothing at
//! all ([`Sender`]) or over one bottleneck ([`Path`]).

use std::collections::VecDeque;

use super::{CongestionControl, LossSample, RtoSample, Start};
use crate::congestion::{Acked, Congestion, Departure};
use crate::delivery_rate::Stamp;
use crate::rng::Rng;
use crate::time::{Span, Time};
use crate::units::BitRate;

/// Segment and packet, bytes.
pub(super) const MSS: u32 = 1000;

/// What a connection with an initial window of ten starts from.
pub(super) fn start() -> Start {
    let mss = u64::from(MSS);
    Start { mss: MSS, initial_window: 10 * mss, initial_ssthresh: u64::MAX, seed: 7 }
}

/// A sender of full segments.
#[derive(Debug)]
pub(super) struct Sender<C> {
    pub(super) congestion: Congestion<C>,
    pub(super) now: Time,
    /// Bytes.
    in_flight: u64,
    srtt: Option<Span>,
    recovering: bool,
}

impl<C: CongestionControl> Sender<C> {
    pub(super) fn new(now: Time, control: C) -> Self {
        let congestion = Congestion::new(now, control);
        Self { congestion, now, in_flight: 0, srtt: None, recovering: false }
    }

    pub(super) const fn control(&self) -> &C {
        self.congestion.control()
    }

    /// Segments on the way.
    pub(super) const fn segments(&self) -> u64 {
        self.in_flight / MSS as u64
    }

    /// Whether the window lets a segment leave.
    pub(super) fn has_room(&self) -> bool {
        self.congestion.has_room(self.in_flight, u64::from(MSS))
    }

    /// A segment leaves.
    pub(super) fn send(&mut self) -> Option<Stamp> {
        let stamp = self.congestion.stamp(self.now, u64::from(MSS), self.in_flight);
        self.in_flight += u64::from(MSS);
        self.congestion.on_sent(self.now, &Departure::new(MSS, self.in_flight));
        stamp
    }

    /// As many leave as the window lets, which holds the next one back.
    pub(super) fn fill(&mut self) {
        while self.has_room() {
            self.send();
        }
        self.congestion.on_held(self.now);
    }

    /// A segment is acknowledged, and `lost` bytes are found missing; `recovered`: that ends a recovery.
    pub(super) fn acknowledge(
        &mut self,
        rtt: Span,
        stamp: Option<Stamp>,
        lost: u64,
        recovered: bool,
    ) {
        if let Some(stamp) = stamp {
            self.congestion.on_delivered(stamp);
        }
        self.srtt = Some(self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        let in_fast_recovery = self.recovering;
        self.recovering &= !recovered;
        let acked = Acked {
            lost,
            in_flight: self.in_flight,
            rtt: Some(rtt),
            srtt: self.srtt,
            in_fast_recovery,
            recovered,
            ..Acked::of(u64::from(MSS))
        };
        self.in_flight = self.in_flight.saturating_sub(u64::from(MSS) + lost);
        self.congestion.on_ack(self.now, &acked);
    }

    /// A recovery begins.
    pub(super) fn lose(&mut self) {
        self.recovering = true;
        let in_flight = self.in_flight;
        self.congestion.on_loss(self.now, &LossSample { in_flight, ece: false });
    }

    /// A mark is echoed.
    pub(super) fn mark(&mut self) {
        self.congestion.on_ecn(self.now, self.in_flight);
    }

    /// Everything on the way is taken for lost.
    pub(super) fn time_out(&mut self) {
        let in_flight = std::mem::take(&mut self.in_flight);
        self.recovering = false;
        let sample = RtoSample { in_flight, ..RtoSample::default() };
        self.congestion.on_rto(self.now, &sample, in_flight);
    }
}

/// A drop-tail queue, its rate, and the way there and back.
#[derive(Debug)]
struct Bottleneck {
    rate: BitRate,
    /// Round trip without the queue.
    rtt: Span,
    /// Bytes.
    buffer: u64,
    loss: f64,
    rng: Rng,
    free_at: Time,
}

impl Bottleneck {
    /// Bytes that wait.
    fn queue(&self, now: Time) -> f64 {
        self.free_at.since(now).as_secs_f64() * self.rate.as_bps() as f64 / 8.0
    }

    /// A segment comes; when its ACK is back, if it is not lost.
    fn take(&mut self, now: Time) -> Option<Time> {
        let lost = self.queue(now) > self.buffer as f64 || self.rng.chance(self.loss);
        if lost {
            return None;
        }
        self.free_at = self.free_at.max(now) + self.rate.serialisation(u64::from(MSS));
        Some(self.free_at + self.rtt)
    }
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    sent: Time,
    stamp: Option<Stamp>,
    /// It arrived, or was given up.
    gone: bool,
}

/// What a stretch of time brought.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Share of the bottleneck's rate.
    pub(super) utilisation: f64,
    /// Mean queue that departing segments met, bytes.
    pub(super) queue_mean: f64,
    /// Share of the segments sent that were lost.
    pub(super) lost: f64,
}

/// A bulk sender before a bottleneck; a segment counts as lost once a third later one arrived.
#[derive(Debug)]
pub(super) struct Path<C> {
    pub(super) sender: Sender<C>,
    bottleneck: Bottleneck,
    /// (arrival of its ACK, index)
    acks: VecDeque<(Time, usize)>,
    segments: Vec<Segment>,
    /// Every segment below has arrived or is lost.
    settled: usize,
    delivered: u64,
    lost: u64,
    /// The ACK of this segment ends the recovery.
    recovery_end: Option<usize>,
}

impl<C: CongestionControl> Path<C> {
    pub(super) fn new(control: C, mbps: u64, rtt_ms: u64, buffer: u64, loss: f64) -> Self {
        let bottleneck = Bottleneck {
            rate: BitRate::from_bps(mbps * 1_000_000).unwrap(),
            rtt: Span::from_millis(rtt_ms),
            buffer,
            loss,
            rng: Rng::named(1, "path"),
            free_at: Time::ZERO,
        };
        Self {
            sender: Sender::new(Time::ZERO, control),
            bottleneck,
            acks: VecDeque::new(),
            segments: Vec::new(),
            settled: 0,
            delivered: 0,
            lost: 0,
            recovery_end: None,
        }
    }

    /// What fits on the path without a queue, bytes.
    pub(super) fn bdp(&self) -> f64 {
        self.bottleneck.rate.as_bps() as f64 / 8.0 * self.bottleneck.rtt.as_secs_f64()
    }

    pub(super) const fn control(&self) -> &C {
        self.sender.control()
    }

    /// Sends for that long; `watch` sees the control after each ACK.
    pub(super) fn run(&mut self, seconds: f64, mut watch: impl FnMut(Time, &C)) -> Outcome {
        let (begin, before, lost) = (self.sender.now, self.delivered, self.lost);
        let end = begin + Span::from_secs_f64(seconds);
        let (mut queued, mut sent) = (0.0, 0.0);
        while self.sender.now < end {
            let now = self.sender.now;
            let send_at =
                self.sender.has_room().then(|| self.sender.congestion.pace_at(now).unwrap_or(now));
            let ack_at = self.acks.front().map(|&(at, _)| at);
            match (send_at, ack_at) {
                (Some(at), ack) if ack.is_none_or(|ack| at <= ack) => {
                    self.sender.now = at;
                    queued += self.bottleneck.queue(at);
                    sent += 1.0;
                    self.send();
                }
                (_, Some(at)) => {
                    // Window or pacing holds the next segment back.
                    self.sender.congestion.on_held(now);
                    self.sender.now = at;
                    self.acknowledge();
                    watch(at, self.sender.control());
                }
                _ => self.time_out(),
            }
        }
        let seconds = self.sender.now.since(begin).as_secs_f64();
        let rate = (self.delivered - before) as f64 * 8.0 / seconds;
        Outcome {
            utilisation: rate / self.bottleneck.rate.as_bps() as f64,
            queue_mean: queued / sent,
            lost: (self.lost - lost) as f64 / (sent * f64::from(MSS)),
        }
    }

    fn send(&mut self) {
        let sent = self.sender.now;
        let stamp = self.sender.send();
        self.segments.push(Segment { sent, stamp, gone: false });
        if let Some(at) = self.bottleneck.take(sent) {
            self.acks.push_back((at, self.segments.len() - 1));
        }
    }

    fn acknowledge(&mut self) {
        let Some((now, index)) = self.acks.pop_front() else { return };
        let Segment { sent, stamp, gone } = self.segments[index];
        if gone {
            return; // It arrived after it was given up.
        }
        self.segments[index].gone = true;
        let lost = self.find_lost(index.saturating_sub(2));
        self.delivered += u64::from(MSS);
        let recovered = self.recovery_end.take_if(|end| index >= *end).is_some();
        self.sender.acknowledge(now.since(sent), stamp, lost, recovered);
        if lost > 0 && self.recovery_end.is_none() {
            // As in TCP: what the flight of now loses must be sent again and arrive, two round trips.
            self.recovery_end = Some(self.segments.len() + self.sender.segments() as usize);
            self.sender.lose();
        }
    }

    /// Gives up what is missing below that index; its bytes.
    fn find_lost(&mut self, below: usize) -> u64 {
        let mut lost = 0;
        while self.settled < below {
            let segment = &mut self.segments[self.settled];
            lost += u64::from(MSS) * u64::from(!segment.gone);
            segment.gone = true;
            self.settled += 1;
        }
        self.lost += lost;
        lost
    }

    fn time_out(&mut self) {
        self.sender.now += Span::from_secs(1);
        self.find_lost(self.segments.len());
        self.recovery_end = None;
        self.sender.time_out();
    }
}

//! [`Recorder`]: the observer that turns a run's events into its metrics and its hash.
//!
//! It watches one direction, from the sender under study to the receiver: when messages were
//! written, left and were delivered, what left in segments, and how the receiver acknowledged.

use acklab_core::event::{AckReason, Event, EventKind, FlowKey};
use acklab_core::packet::{Addr, NodeId, Packet};
use acklab_core::time::Time;
use acklab_sim::{Observer, ResultHash};

use super::hold::LongestHold;
use acklab_lab::held::HeldExchange;
use acklab_lab::measured::{Measured, Metrics};
use acklab_lab::scenario::Tap;

/// Watches one direction of one connection.
pub(super) struct Recorder<'a> {
    sender: Addr,
    hash: ResultHash,
    written: Vec<Time>,
    buffering_ms: Vec<f64>,
    delivery_ms: Vec<f64>,
    ack_delay_ms: Vec<f64>,
    hold_ms: Vec<f64>,
    segments: u64,
    retransmissions: u64,
    pure_acks: u64,
    timer_acks: u64,
    app_values: Vec<f64>,
    hold: LongestHold,
    tap: Option<Tap<'a>>,
}

impl<'a> Recorder<'a> {
    /// Watches what `sender` sends; expects about `messages` messages.
    pub(super) fn new(sender: Addr, messages: u64, tap: Option<Tap<'a>>) -> Self {
        let room = messages.min(1 << 20) as usize;
        Self {
            sender,
            hash: ResultHash::default(),
            written: Vec::with_capacity(room),
            buffering_ms: Vec::with_capacity(room),
            delivery_ms: Vec::with_capacity(room),
            ack_delay_ms: Vec::with_capacity(room),
            hold_ms: Vec::new(),
            segments: 0,
            retransmissions: 0,
            pure_acks: 0,
            timer_acks: 0,
            app_values: Vec::new(),
            hold: LongestHold::default(),
            tap,
        }
    }

    /// The hash over all events.
    pub(super) fn hash(&self) -> u64 {
        self.hash.finish()
    }

    /// What applications told of themselves, in order.
    pub(super) fn app_values(&self) -> &[f64] {
        &self.app_values
    }

    /// Takes out the exchange in which a message waited longest.
    pub(super) fn take_longest_hold(&mut self) -> Option<HeldExchange> {
        std::mem::take(&mut self.hold).into_longest()
    }

    /// The metrics that all scenarios of messages have.
    pub(super) fn into_metrics(self) -> Metrics {
        let messages = self.written.len() as u64;
        let mut metrics = Metrics::default();
        let undelivered = messages.saturating_sub(self.delivery_ms.len() as u64);
        let ratio = Measured::Ratio { of: messages as f64, per: self.segments as f64 };
        metrics.insert("messages", Measured::Total(messages));
        metrics.insert("undelivered_messages", Measured::Total(undelivered));
        metrics.insert("buffering_delay_ms", Measured::Samples(self.buffering_ms));
        metrics.insert("delivery_delay_ms", Measured::Samples(self.delivery_ms));
        metrics.insert("ack_delay_ms", Measured::Samples(self.ack_delay_ms));
        metrics.insert("holds", Measured::Total(self.hold_ms.len() as u64));
        metrics.insert("hold_ms", Measured::Samples(self.hold_ms));
        metrics.insert("segments", Measured::Total(self.segments));
        metrics.insert("messages_per_segment", ratio);
        metrics.insert("retransmissions", Measured::Total(self.retransmissions));
        metrics.insert("pure_acks", Measured::Total(self.pure_acks));
        metrics.insert("timer_acks", Measured::Total(self.timer_acks));
        metrics
    }

    fn is_sent_by_sender(&self, flow: FlowKey) -> bool {
        flow.local == self.sender
    }

    fn on_ack(&mut self, reason: AckReason, delay_ms: f64) {
        match reason {
            AckReason::Control => return,
            AckReason::Timer => self.timer_acks += 1,
            AckReason::Piggyback
            | AckReason::Policy
            | AckReason::Read
            | AckReason::OutOfOrder
            | AckReason::Window => {}
        }
        self.ack_delay_ms.push(delay_ms);
    }
}

impl Observer for Recorder<'_> {
    fn on_event(&mut self, event: &Event) {
        self.hash.event(event);
        match event.kind {
            EventKind::MessageWritten { flow, .. } if self.is_sent_by_sender(flow) => {
                self.written.push(event.time);
            }
            EventKind::MessageSent { flow, written_at, .. } if self.is_sent_by_sender(flow) => {
                self.hold.on_message_sent(written_at);
                self.buffering_ms.push(event.time.since(written_at).as_millis_f64());
            }
            EventKind::MessageDelivered { flow, id } if flow.remote == self.sender => {
                if let Some(&written) = self.written.get(id as usize) {
                    self.delivery_ms.push(event.time.since(written).as_millis_f64());
                }
            }
            EventKind::Released { flow, held, .. } if self.is_sent_by_sender(flow) => {
                self.hold_ms.push(held.as_millis_f64());
            }
            EventKind::SegmentSent { flow, len: 0, control: false, .. }
                if flow.remote == self.sender =>
            {
                self.pure_acks += 1;
            }
            EventKind::SegmentSent { flow, len, retransmission, .. }
                if len > 0 && self.is_sent_by_sender(flow) =>
            {
                self.hold.on_segment(event.time, len, retransmission);
                self.segments += u64::from(!retransmission);
                self.retransmissions += u64::from(retransmission);
            }
            EventKind::AckSent { flow, reason, delay } if flow.remote == self.sender => {
                self.hold.on_ack(event.time, delay, reason);
                self.on_ack(reason, delay.as_millis_f64());
            }
            EventKind::App { value, .. } => self.app_values.push(value),
            _ => {}
        }
    }

    fn on_packet(&mut self, now: Time, _node: NodeId, packet: &Packet) {
        if let Some(tap) = &mut self.tap {
            tap(now, packet);
        }
    }
}

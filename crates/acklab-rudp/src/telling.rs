//! What a connection tells about itself into the event stream, as TCP does: every datagram, every
//! acknowledgment, losses, and the congestion state of each path. Each path is a flow, named by its
//! addresses.

use std::mem;

use super::report::PathStats;
use super::sent::Item;
use acklab_core::event::{AckReason, EventKind, FlowKey, Interest, Sink};
use acklab_core::time::Time;

/// The sink, and what was last told of each path.
#[derive(Debug, Default)]
pub(super) struct Telling {
    sink: Sink,
    told: Vec<(u8, Told)>,
}

/// The state of a path as the event stream knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    cwnd: u64,
    ssthresh: u64,
    in_flight: u64,
    acked: u64,
    recoveries: u64,
    timeouts: u64,
}

impl Told {
    const fn of(stats: &PathStats) -> Self {
        Self {
            cwnd: stats.cwnd,
            ssthresh: stats.ssthresh,
            in_flight: stats.in_flight,
            // The handshake counts as one, as TCP's SYN does.
            acked: 1 + stats.delivered,
            recoveries: stats.recoveries,
            timeouts: stats.timeouts,
        }
    }
}

impl Telling {
    /// Exchanges the sink with the caller's, which is this one's while a verb runs: with no
    /// observer, telling costs no more than that.
    pub(super) const fn exchange(&mut self, sink: &mut Sink) {
        mem::swap(&mut self.sink, sink);
    }

    /// A datagram of the handshake leaves.
    pub(super) fn greeting(&mut self, now: Time, flow: FlowKey) {
        let (len, control, retransmission) = (0, true, false);
        self.sink.record(now, EventKind::SegmentSent { flow, len, control, retransmission });
    }

    /// A packet with these items leaves; `fresh` bytes of its content have never left before. `control`:
    /// without content it is no pure ACK.
    pub(super) fn packet(
        &mut self,
        now: Time,
        flow: FlowKey,
        items: &[Item],
        fresh: u64,
        control: bool,
    ) {
        if !self.sink.wants(Interest::TRANSPORT) {
            return;
        }
        let len: u32 =
            items.iter().map(|item| if let Item::Piece(p) = item { p.len() } else { 0 }).sum();
        let (control, retransmission) = (control && len == 0, u64::from(len) > fresh);
        self.sink.record(now, EventKind::SegmentSent { flow, len, control, retransmission });
    }

    /// An ACK leaves of what has waited since then.
    pub(super) fn ack(&mut self, now: Time, flow: FlowKey, since: Time, reason: AckReason) {
        let delay = now.since(since);
        self.sink.record(now, EventKind::AckSent { flow, reason, delay });
    }

    /// What has changed about the paths.
    pub(super) fn paths(&mut self, now: Time, paths: impl Iterator<Item = PathStats>) {
        if !self.sink.wants(Interest::TRANSPORT.with(Interest::CONGESTION)) {
            return;
        }
        for path in paths {
            let present = Told::of(&path);
            let index = self.told.iter().position(|(id, _)| *id == path.id).unwrap_or_else(|| {
                self.told.push((path.id, Told::default()));
                self.told.len() - 1
            });
            let before = mem::replace(&mut self.told[index].1, present);
            if present == before {
                continue;
            }
            let flow = path.addrs.flow();
            for _ in before.recoveries..present.recoveries {
                self.sink.record(now, EventKind::Loss { flow, timeout: false });
            }
            for _ in before.timeouts..present.timeouts {
                self.sink.record(now, EventKind::Loss { flow, timeout: true });
            }
            let Told { cwnd, ssthresh, in_flight, acked, .. } = present;
            self.sink.record(now, EventKind::Congestion { flow, cwnd, ssthresh, in_flight, acked });
        }
    }
}

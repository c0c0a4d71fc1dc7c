//! [`Closely`]: the recorder of a network and a closer look beside it.

use acklab_core::event::Event;
use acklab_core::packet::{Body, NodeId, Packet};
use acklab_core::time::Time;
use acklab_sim::Observer;

use super::recorder::{GraphRecorder, Measures, Shown};
use crate::monitor::{NetworkMonitor, NetworkRecord};
use crate::scenario::Replication;
use crate::scenario::network::Changes;
use crate::scenario::network_signals::Shows;

/// Two observers of one run.
pub(super) struct Closely<'a> {
    recorder: GraphRecorder<'a>,
    monitor: NetworkMonitor,
}

impl<'a> Closely<'a> {
    pub(super) const fn new(recorder: GraphRecorder<'a>, monitor: NetworkMonitor) -> Self {
        Self { recorder, monitor }
    }

    pub(super) fn finish(self, end: Time, events: u64) -> (Replication, NetworkRecord) {
        (self.recorder.finish(end, events), self.monitor.finish(end))
    }
}

impl Measures for Closely<'_> {
    fn begin(&mut self, now: Time) {
        self.recorder.begin(now);
        self.monitor.begin(now);
    }
}

impl Shows for Closely<'_> {
    type Source = Shown;

    fn changes_of(source: Shown) -> Changes {
        GraphRecorder::changes_of(source)
    }

    fn take_changes(&mut self) -> Changes {
        self.recorder.take_changes()
    }

    fn link(&self) -> u32 {
        self.recorder.link()
    }

    fn value(&self, source: Shown, now: Time) -> f64 {
        self.recorder.value(source, now)
    }
}

impl Observer for Closely<'_> {
    fn on_event(&mut self, event: &Event) {
        self.recorder.on_event(event);
        self.monitor.on_event(event);
    }

    fn on_packet(&mut self, now: Time, node: NodeId, packet: &Packet) {
        if !matches!(packet.body, Body::Datagram { .. }) {
            self.recorder.on_packet(now, node, packet);
            self.monitor.on_packet(now, node, packet);
            return;
        }
        // Only the recorder knows which of them are copies.
        let port = packet.dst.port;
        let before = self.recorder.datagram_bytes(port);
        self.recorder.on_packet(now, node, packet);
        let more = self.recorder.datagram_bytes(port) - before;
        if more > 0 {
            self.monitor.on_datagrams(now, port, more);
        }
    }
}

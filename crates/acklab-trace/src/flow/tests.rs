//! Conversations told segment by segment, and what the table makes of them.

use std::net::IpAddr;

use acklab_core::time::{Span, Time};

use super::facts::{CapturePoint, RttBasis};
use super::observe::DataKind::{
    self, Duplicate, New, NewAfterGap, Probe, Reordered, Retransmission,
};
use super::observe::{AckSeen, DataSeen};
use super::*;
use crate::segment::{Endpoint, Flags, SeenOptions, Segment, Timestamp};

/// An observer that keeps everything.
#[derive(Default)]
struct Witness {
    data: Vec<(DataKind, u64, u32, u64, Option<u64>)>,
    acks: Vec<AckSeen>,
}

impl DirectionObserver for Witness {
    type Report = Self;

    fn open(_from: Endpoint, _to: Endpoint) -> Self {
        Self::default()
    }

    fn on_data(&mut self, seen: &DataSeen<'_>) {
        let DataSeen { kind, offset, len, in_flight, window_left, .. } = *seen;
        self.data.push((kind, offset, len, in_flight, window_left));
    }

    fn on_ack(&mut self, seen: &AckSeen) {
        self.acks.push(*seen);
    }

    fn held_bytes(&self) -> usize {
        self.data.len() * 100
    }

    fn shed(&mut self) {
        self.data.clear();
    }

    fn finish(self, _facts: &DirectionFacts, _opposite: &DirectionFacts) -> Self {
        self
    }
}

/// A conversation between a client (0) and a server (1): times in ms, sequence numbers relative to
/// each side's first byte.
struct Script {
    table: FlowTable<Witness>,
    frame: u64,
    ms: f64,
    isn: [u32; 2],
    ports: [u16; 2],
    ip_id: [u16; 2],
    ttl: [u8; 2],
    timestamps: bool,
    options_cut: bool,
}

impl Script {
    fn new() -> Self {
        Self {
            table: FlowTable::default(),
            frame: 0,
            ms: 1_000.0,
            isn: [0xffff_ff00, 77],
            ports: [40_000, 502],
            ip_id: [100, 900],
            ttl: [64, 64],
            timestamps: false,
            options_cut: false,
        }
    }

    /// A packet from `from`: flags, relative sequence and acknowledgment number, payload length.
    fn packet(&mut self, from: usize, flags: Flags, seq: u32, ack: u32, len: u32) -> &mut Self {
        self.packet_with(from, flags, seq, ack, len, |_| {})
    }

    fn packet_with(
        &mut self,
        from: usize,
        flags: Flags,
        seq: u32,
        ack: u32,
        len: u32,
        change: impl FnOnce(&mut Segment<'_>),
    ) -> &mut Self {
        let end = |side: usize| Endpoint {
            addr: IpAddr::from([10, 0, 0, side as u8]),
            port: self.ports[side],
        };
        self.frame += 1;
        self.ip_id[from] = self.ip_id[from].wrapping_add(1);
        let syn = flags.has(Flags::SYN);
        let ms = self.ms as u32;
        let relative = |side: usize, n: u32| self.isn[side].wrapping_add(n).wrapping_add(1);
        let mut segment = Segment {
            frame: self.frame,
            time: Time::from_nanos((self.ms * 1e6) as u64),
            src: end(from),
            dst: end(1 - from),
            seq: if syn { self.isn[from] } else { relative(from, seq) },
            ack: relative(1 - from, ack),
            flags,
            window: 1_000,
            options: SeenOptions {
                mss: syn.then_some(1_460),
                window_scale: syn.then_some(2),
                sack_permitted: syn,
                timestamp: self.timestamps.then_some(Timestamp { value: ms, echo: ms }),
                cut: self.options_cut,
                ..SeenOptions::default()
            },
            payload_len: len,
            payload: &[],
            ttl: self.ttl[from],
            ip_id: self.ip_id[from],
        };
        change(&mut segment);
        self.table.on_segment(&segment);
        self
    }

    fn wait(&mut self, ms: f64) -> &mut Self {
        self.ms += ms;
        self
    }

    /// SYN, SYN-ACK after 30 ms, ACK after 0.05 ms: captured at the client.
    fn handshake(&mut self) -> &mut Self {
        self.packet(0, Flags::SYN, 0, 0, 0).wait(30.0);
        self.packet(1, Flags::SYN.with(Flags::ACK), 0, 0, 0).wait(0.05);
        self.packet(0, Flags::ACK, 0, 0, 0).wait(1.0)
    }

    fn data(&mut self, seq: u32, len: u32) -> &mut Self {
        self.packet(0, Flags::ACK.with(Flags::PSH), seq, 0, len)
    }

    fn ack(&mut self, ack: u32) -> &mut Self {
        self.packet(1, Flags::ACK, 0, ack, 0)
    }

    fn finish(&mut self) -> FlowReports<Witness> {
        std::mem::take(&mut self.table).finish()
    }

    /// The only flow's client-to-server direction.
    fn forward(&mut self) -> DirectionReport<Witness> {
        let mut reports = self.finish();
        assert_eq!(reports.flows.len(), 1);
        let [a, b] = reports.flows.remove(0).directions;
        if a.facts.from.port == self.ports[0] { a } else { b }
    }
}

fn kinds(report: &DirectionReport<Witness>) -> Vec<DataKind> {
    report.observed.data.iter().map(|d| d.0).collect()
}

#[test]
fn the_handshake_gives_rtt_mss_window_and_capture_point() {
    let mut script = Script::new();
    script.timestamps = true;
    script.ttl[1] = 57;
    let forward = script.handshake().data(0, 100).forward();
    let facts = &forward.facts;
    let rtt = facts.rtt.unwrap();
    assert_eq!(rtt.min, Span::from_micros(30_050));
    assert_eq!((rtt.samples, rtt.basis), (0, RttBasis::Handshake));
    assert_eq!(facts.stream.mss, 1_448);
    assert_eq!(facts.stream.offer.unwrap().window_scale, Some(2));
    assert_eq!(facts.vantage.point, CapturePoint::Sender);
    // The SYN-ACK's window is not scaled.
    assert_eq!(forward.observed.data, [(New, 0, 100, 0, Some(1_000))]);
}

#[test]
fn in_flight_window_and_ages_follow_data_and_acks() {
    let mut script = Script::new();
    script.handshake().data(0, 100).wait(5.0).data(100, 1_460).wait(1.0).data(1_560, 10);
    let forward = script.wait(30.0).ack(1_560).wait(40.0).ack(1_570).data(1_570, 1).forward();
    let data = &forward.observed.data;
    assert_eq!(data[1], (New, 100, 1_460, 100, Some(900)));
    assert_eq!(data[2], (New, 1_560, 10, 1_560, Some(0)));
    assert_eq!(data[3], (New, 1_570, 1, 0, Some(4_000)));
    let ack = forward.observed.acks[0];
    assert_eq!((ack.acked_to, ack.newly_acked, ack.newly_acked_segments), (1_560, 1_560, 2));
    assert_eq!(ack.oldest_age, Some(Span::from_millis(36)));
    assert_eq!(ack.newest_age, Some(Span::from_millis(31)));
    assert_eq!((ack.pure, ack.duplicate, ack.in_flight), (true, false, 10));
    assert_eq!(ack.window, Some(4_000));
    assert_eq!(forward.facts.stream.in_flight_max, 1_570);
    // The path takes 30 ms of each ACK's time; the receiver's wait is what is left.
    let delay = forward.facts.ack_delay.as_ref().unwrap();
    assert_eq!((delay.p50, delay.max), (Span::from_millis(6), Span::from_millis(40)));
}

/// A capture that swaps an ACK with data that came right before it shows a path of microseconds; a path that several packets
/// show to be shorter than a slow handshake is so short.
#[test]
fn one_time_far_below_the_handshake_is_no_round_trip_and_several_are() {
    let check = |soon: u32, of: u32, expect: f64| {
        let mut script = Script::new();
        script.handshake();
        for i in 0..of {
            let ms = if i < soon { 0.02 } else { 30.0 };
            script.data(i * 100, 100).wait(ms).ack((i + 1) * 100).wait(5.0);
        }
        let rtt = script.forward().facts.rtt.unwrap();
        let least = rtt.to_receiver_min.unwrap().as_millis_f64();
        assert!((least - expect).abs() < 0.001, "{soon} of {of}: {least}");
        assert!(rtt.min <= rtt.p50, "{soon} of {of}: median {} of at least {}", rtt.p50, rtt.min);
    };
    check(0, 20, 30.0);
    check(2, 20, 30.0);
    check(3, 20, 0.02);
    check(2, 3, 30.0);
}

#[test]
fn a_syn_with_cut_options_leaves_window_and_mss_open() {
    let mut script = Script::new();
    script.options_cut = true;
    let forward = script.handshake().data(0, 100).wait(40.0).ack(100).data(100, 100).forward();
    // The SYN-ACK's own window is never scaled; those after it may be.
    assert_eq!(forward.observed.data[0], (New, 0, 100, 0, Some(1_000)));
    assert_eq!(forward.observed.data[1], (New, 100, 100, 0, None));
    assert!(forward.facts.stream.offer.is_none());
    assert!(forward.facts.rtt.is_some());
}

#[test]
fn a_capture_that_begins_mid_connection_starts_at_offset_zero() {
    let mut script = Script::new();
    let forward = script.ack(5_000).data(5_000, 100).wait(40.0).ack(5_100).forward();
    let data = &forward.observed.data;
    assert_eq!((data[0].0, data[0].1, data[0].4), (New, 0, None));
    assert_eq!(forward.facts.stream.bytes, 100);
    assert_eq!(forward.observed.acks[1].newly_acked, 100);
    assert_eq!(forward.facts.stream.mss, 536);
}

#[test]
fn sequence_numbers_wrap_without_a_seam() {
    let mut script = Script::new();
    script.handshake();
    for i in 0..40 {
        script.data(i * 100, 100).wait(1.0).ack((i + 1) * 100);
    }
    let forward = script.forward();
    assert!(kinds(&forward).iter().all(|&kind| kind == New));
    assert_eq!(forward.facts.stream.bytes, 4_000);
    assert_eq!(forward.observed.data[39].1, 3_900);
}

#[test]
fn old_data_is_retransmitted_reordered_or_captured_twice() {
    let mut script = Script::new();
    script.handshake().data(0, 100).data(100, 100);
    // The same packet again, as a mirror port shows it: same identification.
    script.ip_id[0] -= 1;
    script.wait(0.01).data(100, 100);
    // A jump, then the missing segment with an older identification.
    script.data(300, 100);
    script.packet_with(0, Flags::ACK, 200, 0, 100, |s| s.ip_id -= 2);
    // A jump, then the missing one with a newer identification: lost before the capture point.
    script.data(500, 100).wait(1.0).data(400, 100);
    // Seen and sent again after an RTO.
    script.wait(250.0).data(0, 600);
    let forward = script.wait(30.0).ack(600).forward();
    let expect =
        [New, New, Duplicate, NewAfterGap, Reordered, NewAfterGap, Retransmission, Retransmission];
    assert_eq!(kinds(&forward), expect);
    let facts = &forward.facts;
    assert_eq!(
        (facts.packets.duplicates, facts.packets.reordered, facts.packets.retransmissions),
        (1, 1, 2)
    );
    assert_eq!((facts.stream.gaps, facts.packets.segments, facts.stream.bytes), (2, 7, 600));
    // Karn: an ACK for bytes sent twice times nothing.
    let ack = forward.observed.acks[0];
    assert_eq!((ack.newly_acked, ack.oldest_age, ack.newest_age), (600, None, None));
}

#[test]
fn without_identifications_time_tells_reordering_from_loss() {
    let check = |ms: f64, expect: DataKind| {
        let mut script = Script::new();
        let no_id = |s: &mut Segment<'_>| s.ip_id = 0;
        script.handshake().packet_with(0, Flags::ACK, 100, 0, 100, no_id).wait(ms);
        let forward = script.packet_with(0, Flags::ACK, 0, 0, 100, no_id).forward();
        assert_eq!(kinds(&forward), [NewAfterGap, expect], "{ms} ms");
    };
    check(0.5, Reordered);
    check(35.0, Retransmission);
}

#[test]
fn an_ack_for_data_that_the_capture_lacks_counts_it_as_unseen() {
    let mut script = Script::new();
    script.handshake().data(0, 100).wait(30.0).ack(300).data(300, 50);
    let forward =
        script.wait(1.0).packet_with(0, Flags::ACK, 100, 0, 200, |s| s.ip_id -= 2).forward();
    assert_eq!(kinds(&forward), [New, New, Reordered]);
    assert_eq!((forward.facts.stream.unseen_bytes, forward.facts.stream.bytes), (200, 350));
    assert_eq!(forward.observed.acks[0].oldest_age, Some(Span::from_millis(30)));
}

#[test]
fn keep_alives_and_zero_window_probes_are_no_data() {
    let mut script = Script::new();
    script.handshake().data(0, 100).wait(30.0);
    script.packet_with(1, Flags::ACK, 0, 100, 0, |s| s.window = 0);
    script.wait(200.0).packet(0, Flags::ACK, 99, 0, 0);
    script.wait(30.0).packet_with(1, Flags::ACK, 0, 100, 0, |s| s.window = 0);
    let forward = script.wait(200.0).packet(0, Flags::ACK, 99, 0, 1).forward();
    assert_eq!(kinds(&forward), [New, Probe, Probe]);
    let facts = &forward.facts;
    assert_eq!(
        (
            facts.packets.probes,
            facts.packets.zero_windows,
            facts.packets.segments,
            facts.stream.bytes
        ),
        (2, 2, 1, 100)
    );
    assert_eq!(facts.packets.duplicate_acks, 0);
    assert_eq!(forward.observed.data[1].4, Some(0));
}

#[test]
fn duplicate_acks_need_data_in_flight_and_an_unchanged_window() {
    let mut script = Script::new();
    script.handshake().data(0, 100).data(200, 100).wait(30.0).ack(100).ack(100);
    script.packet_with(1, Flags::ACK, 0, 100, 0, |s| s.window = 2_000);
    script.packet_with(1, Flags::ACK, 0, 100, 0, |s| {
        (s.window, s.options.sack_blocks) = (2_500, 1);
    });
    let forward = script.data(100, 100).wait(30.0).ack(300).forward();
    let duplicates: Vec<bool> = forward.observed.acks.iter().map(|a| a.duplicate).collect();
    assert_eq!(duplicates, [false, true, false, true, false]);
    assert_eq!((forward.facts.packets.duplicate_acks, forward.facts.packets.sack_acks), (2, 1));
    assert_eq!(forward.facts.window.unwrap().max, 10_000);
}

#[test]
fn a_pure_ack_captured_twice_counts_once() {
    let mut script = Script::new();
    script.handshake().data(0, 100).wait(30.0).ack(100);
    script.ip_id[1] -= 1;
    let reports = script.wait(0.01).ack(100).finish();
    let [forward, backward] = &reports.flows[0].directions;
    assert_eq!((forward.facts.packets.pure_acks, backward.facts.packets.duplicates), (1, 1));
}

#[test]
fn fin_closes_both_ways_and_a_new_syn_begins_a_new_connection() {
    let mut script = Script::new();
    let fin = Flags::FIN.with(Flags::ACK);
    script.handshake().data(0, 100).packet(0, fin, 100, 0, 0).wait(30.0);
    script.packet(1, fin, 0, 101, 0).wait(0.1).packet(0, Flags::ACK, 101, 1, 0);
    script.isn = [5_000_000, 6_000_000];
    script.wait(1.0).handshake().data(0, 50);
    let reports = script.finish();
    let endings: Vec<_> = reports.flows.iter().map(|f| (f.id, f.ending)).collect();
    assert_eq!(endings, [(1, Ending::Closed), (2, Ending::CaptureEnd)]);
    let [forward, backward] = &reports.flows[0].directions;
    assert_eq!((forward.facts.stream.bytes, backward.facts.stream.bytes), (100, 0));
    let fin = forward.observed.data[1];
    assert_eq!((fin.0, fin.1, fin.2), (New, 100, 0));
    assert_eq!(forward.observed.acks[0].newly_acked, 100);
}

#[test]
fn a_syn_sent_again_is_the_same_connection_and_times_nothing() {
    let mut script = Script::new();
    script.packet(0, Flags::SYN, 0, 0, 0).wait(1_000.0).handshake().data(0, 10);
    let forward = script.forward();
    assert_eq!(forward.facts.rtt, None);
    let reset = Script::new().handshake().packet(1, Flags::RST, 0, 0, 0).finish();
    assert_eq!(reset.flows[0].ending, Ending::Reset);
}

#[test]
fn timestamps_that_return_time_the_senders_half_at_the_receiver() {
    let mut script = Script::new();
    script.timestamps = true;
    let mut sent = 0;
    // Captured at the receiver: ACKs leave at once, the data they clock comes 50 ms later.
    for _ in 0..20 {
        script.packet(0, Flags::ACK, sent, 0, 1_448).packet(0, Flags::ACK, sent + 1_448, 0, 1_448);
        sent += 2_896;
        let echo = script.ms as u32;
        script.wait(0.02).ack(sent).wait(50.0);
        let stamp = script.ms as u32;
        script.packet_with(0, Flags::ACK, sent, 0, 1_448, |s| {
            s.options.timestamp = Some(Timestamp { value: stamp, echo });
        });
        sent += 1_448;
        script.ack(sent).wait(1.0);
    }
    let rtt = script.forward().facts.rtt.unwrap();
    assert_eq!(rtt.basis, RttBasis::TimestampEchoes);
    assert!(rtt.p50 > Span::from_micros(49_500) && rtt.p50 < Span::from_millis(51), "{}", rtt.p50);
    assert!(rtt.to_receiver_min.unwrap() < Span::from_micros(30));
}

#[test]
fn live_connections_and_reports_are_bounded_and_the_rest_is_summed_up() {
    let mut script = Script::new();
    let options = TableOptions { detailed_max: 10, live_max: 8, ..TableOptions::default() };
    script.table = FlowTable::new(options);
    for port in 1..=100 {
        script.ports[0] = port;
        script.data(0, u32::from(port)).wait(1.0);
        assert!(script.table.live() <= 8);
    }
    let reports = script.finish();
    assert_eq!((reports.total, reports.flows.len(), reports.others.flows), (100, 10, 90));
    // The biggest are kept, and come out in the order of their first packets.
    let bytes: Vec<u64> = reports.flows.iter().map(FlowReport::bytes).collect();
    assert_eq!(bytes, (91..=100).collect::<Vec<u64>>());
    assert_eq!(reports.others.bytes, (1..=90).sum::<u64>());
    assert!(reports.evicted > 0);
}

#[test]
fn a_stray_far_out_of_the_window_changes_nothing() {
    let mut script = Script::new();
    script.handshake().data(0, 100).data(0x7000_0000, 100).data(100, 100);
    let forward = script.wait(30.0).ack(0x7000_0000).ack(200).forward();
    assert_eq!(kinds(&forward), [New, New]);
    assert_eq!(forward.observed.acks.len(), 1);
}

#[test]
fn observers_that_hold_too_much_shed_it() {
    let mut script = Script::new();
    let options = TableOptions { observers_bytes_max: 2_000_000, ..TableOptions::default() };
    script.table = FlowTable::new(options);
    for i in 0..100_000 {
        script.ports[0] = if i % 10 == 0 { 1 } else { 2 };
        script.data(i, 1);
    }
    let reports = script.finish();
    let kept: Vec<usize> =
        reports.flows.iter().map(|f| f.directions[0].observed.data.len()).collect();
    // The busy one lost what it had at the third sweep, the other one nothing.
    assert!(kept[1] < 10_000 && kept[0] == 10_000, "{kept:?}");
}

#[test]
fn a_sender_that_stays_out_of_the_window_has_begun_a_new_connection() {
    let mut script = Script::new();
    script.handshake().data(0, 100);
    script.isn[0] = script.isn[0].wrapping_add(0x5000_0000);
    for i in 0..6 {
        script.wait(1.0).data(i * 100, 100);
    }
    let reports = script.finish();
    let bytes: Vec<u64> = reports.flows.iter().map(FlowReport::bytes).collect();
    assert_eq!(bytes, [100, 300]);
}

/// An observer whose report is heavy until it is lightened; the more data, the more stalled.
#[derive(Default)]
struct Heavy {
    bytes: u64,
    light: bool,
}

impl DirectionObserver for Heavy {
    type Report = Self;

    fn open(_from: Endpoint, _to: Endpoint) -> Self {
        Self::default()
    }

    fn on_data(&mut self, seen: &DataSeen<'_>) {
        self.bytes += u64::from(seen.len);
    }

    fn finish(self, _facts: &DirectionFacts, _opposite: &DirectionFacts) -> Self {
        self
    }

    fn stalled(report: &Self) -> Span {
        Span::from_millis(report.bytes)
    }

    fn lighten(report: &mut Self) {
        report.light = true;
    }
}

#[test]
fn one_report_alone_is_kept_whole() {
    // The most stalled one, wherever it stands; or the one that was asked for.
    for (closely, whole) in [(None, 3), (Some(2), 2), (Some(9), 0)] {
        let mut table =
            FlowTable::<Heavy>::new(TableOptions { closely, ..TableOptions::default() });
        for (port, payload_len) in [(1, 5), (2, 7), (3, 9), (4, 0), (5, 8)] {
            let end = |port| Endpoint { addr: IpAddr::from([192, 0, 2, 1]), port };
            table.on_segment(&Segment {
                frame: u64::from(port),
                time: Time::from_nanos(u64::from(port)),
                src: end(port),
                dst: end(502),
                seq: 1,
                ack: 1,
                flags: Flags::ACK,
                window: 1_000,
                options: SeenOptions::default(),
                payload_len,
                payload: &[],
                ttl: 64,
                ip_id: 0,
            });
        }
        let flows = table.finish().flows;
        let kept = flows.iter().filter(|flow| !flow.directions[0].observed.light);
        let kept: Vec<u64> = kept.map(|flow| flow.id).collect();
        assert_eq!(kept, if whole == 0 { vec![] } else { vec![whole] }, "{closely:?}");
    }
}

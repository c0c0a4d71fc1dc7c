//! The facts of real captures, counted packet by packet by others.
//!
//! The captures are not part of this repository. They are looked for in `$ACKLAB_CAPTURES`, else in
//! `../shared/captures` beside the workspace; where a file is absent its test says so and passes.

use std::path::PathBuf;

use acklab_core::time::{Span, Time};
use acklab_trace::capture::{CaptureReader, CaptureWriter, LinkType, WriterOptions};
use acklab_trace::flow::facts::CapturePoint;
use acklab_trace::flow::{DirectionFacts, Ending, FlowReports, FlowTable};
use acklab_trace::read::{CaptureSummary, read_capture};

/// Reads the capture, if it is there.
fn read(name: &str) -> Option<(CaptureSummary, FlowReports<()>)> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/captures"));
    let folder = std::env::var_os("ACKLAB_CAPTURES").map_or_else(beside, PathBuf::from);
    let path = folder.join(name);
    if !path.exists() {
        println!("skipped: {} is absent; set ACKLAB_CAPTURES to its folder", path.display());
        return None;
    }
    let mut reader = CaptureReader::open(&path).expect("the capture opens");
    let mut table = FlowTable::<()>::default();
    let summary = read_capture(&mut reader, &mut table, |_| {}).expect("it reads");
    Some((summary, table.finish()))
}

/// The direction of the whole capture that carries most bytes.
fn biggest(reports: &FlowReports<()>) -> &DirectionFacts {
    let directions = reports.flows.iter().flat_map(|flow| &flow.directions);
    &directions.max_by_key(|d| d.facts.stream.bytes).expect("a flow").facts
}

fn direction<'a>(reports: &'a FlowReports<()>, from: &str) -> &'a DirectionFacts {
    let mut directions = reports.flows.iter().flat_map(|flow| &flow.directions);
    &directions.find(|d| d.facts.from.to_string() == from).expect("the direction").facts
}

fn within(found: Span, low_ms: f64, high_ms: f64) {
    let ms = found.as_millis_f64();
    assert!((low_ms..=high_ms).contains(&ms), "{ms} ms is not within {low_ms} to {high_ms}");
}

#[test]
fn spindump_upload_has_7_24_segments_per_ack_and_a_loaded_rtt() {
    let Some((summary, reports)) = read("trace_tcp_medium_snap80.pcap") else { return };
    assert_eq!((summary.frames, summary.tcp_frames), (41_316, 41_316));
    let facts = biggest(&reports);
    assert_eq!((facts.packets.segments, facts.packets.pure_acks), (35_277, 4_873));
    assert!((facts.segments_per_ack().unwrap() / 7.24 - 1.0).abs() < 0.02);
    assert_eq!(facts.vantage.point, CapturePoint::Sender);
    let rtt = facts.rtt.unwrap();
    within(rtt.p50, 40.0, 46.0);
    within(rtt.p95, 88.0, 100.0);
    assert_eq!((facts.packets.retransmissions, facts.stream.gaps), (0, 0));
    assert_eq!(reports.flows[0].ending, Ending::Closed);
}

#[test]
fn timestamp_download_shows_the_path_although_captured_at_the_receiver() {
    let Some((summary, reports)) = read("timestamp.pcap") else { return };
    let facts = biggest(&reports);
    assert_eq!(
        (facts.stream.bytes, facts.packets.segments, facts.packets.pure_acks),
        (1_000_000, 691, 183)
    );
    assert_eq!(facts.vantage.point, CapturePoint::Receiver);
    let rtt = facts.rtt.unwrap();
    within(rtt.min, 50.9, 51.1);
    within(rtt.p50, 51.0, 55.0);
    assert!(rtt.to_receiver_min.unwrap() < Span::from_millis(1));
    assert!(summary.warnings().is_empty());
}

#[test]
fn pmu_streams_differ_in_segments_and_agree_in_ack_delay() {
    let Some((_, reports)) = read("C37.118_2PMUsInSync_TCP.pcap") else { return };
    let held = direction(&reports, "192.168.0.60:4712");
    // 609 x 96 B, 274 x 48 B, 3 x 144 B, and the configuration frame.
    assert_eq!((held.packets.segments, held.stream.bytes), (887, 72_422));
    let free = direction(&reports, "192.168.0.241:4712");
    assert_eq!(free.packets.segments, 1_502);
    for facts in [held, free] {
        assert_eq!(facts.vantage.point, CapturePoint::Receiver);
        assert_eq!(
            (facts.packets.retransmissions, facts.stream.gaps, facts.packets.zero_windows),
            (0, 0, 0)
        );
        within(facts.ack_delay.as_ref().unwrap().p50, 36.0, 40.0);
        within(facts.rtt.unwrap().min, 0.5, 1.0);
    }
}

#[test]
fn loopback_and_short_captures_read_whole() {
    for (name, frames, flows) in [
        ("C37.118_1PMU_TCP.pcap", 417, 1),
        ("of10_pf5240.pcap", 48, 3),
        ("open62541_client-server_mainloop-ActivateSession-diagInfo.pcap", 170, 2),
        ("rfc3030-bdat-multipart-chunked.pcap", 184, 1),
    ] {
        let Some((summary, reports)) = read(name) else { continue };
        assert_eq!((summary.tcp_frames, reports.total), (frames, flows), "{name}");
        assert!(summary.warnings().is_empty(), "{name}: {:?}", summary.warnings());
        let loopback = biggest(&reports).vantage.point == CapturePoint::Loopback;
        assert_eq!(loopback, name.contains("bdat") || name.contains("open62541"), "{name}");
    }
}

#[test]
fn an_unknown_link_type_and_a_capture_without_tcp_say_so() {
    let capture = |link, bytes: &[u8]| {
        let options = WriterOptions { link: LinkType(link), ..WriterOptions::default() };
        let mut writer = CaptureWriter::new(Vec::new(), options).unwrap();
        writer.write_frame(Time::from_nanos(1), bytes, bytes.len() as u32).unwrap();
        writer.finish().unwrap()
    };
    let read = |capture: &[u8]| {
        let mut reader = CaptureReader::new(capture).unwrap();
        read_capture(&mut reader, &mut FlowTable::<()>::default(), |_| {})
    };
    let error = read(&capture(119, &[0; 60])).unwrap_err().to_string();
    assert!(error.contains("link type 119 (IEEE 802.11 with Prism header)"), "{error}");
    let summary = read(&capture(1, &[0; 60])).unwrap();
    assert_eq!(summary.not_ip, 1);
    assert!(summary.warnings()[0].starts_with("no TCP in 1 frames"), "{:?}", summary.warnings());
}

//! Any bytes through the capture reader, the dissector, the flow table and the diagnosis: no panic,
//! bounded memory, and what comes out is in order.
#![no_main]

use acklab_core::time::Span;
use acklab_trace::capture::CaptureReader;
use acklab_trace::Analyst;
use acklab_trace::flow::{FlowTable, TableOptions};
use acklab_trace::read::read_capture;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = CaptureReader::new(bytes) else { return };
    // Small limits, so that short inputs reach them.
    let limits = TableOptions {
        detailed_max: 4,
        live_max: 8,
        observers_bytes_max: 100_000,
        ..TableOptions::default()
    };
    let mut table = FlowTable::<Analyst>::new(limits);
    let Ok(summary) = read_capture(&mut reader, &mut table, |_| {}) else { return };
    assert!(table.live() <= 8);
    assert!(summary.tcp_frames <= summary.frames);
    let _ = summary.warnings();
    let reports = table.finish();
    assert_eq!(reports.flows.len() as u64 + reports.others.flows, reports.total);
    assert!(reports.flows.is_sorted_by_key(|flow| flow.id));
    for direction in reports.flows.iter().flat_map(|flow| &flow.directions) {
        let facts = &direction.facts;
        if let Some(rtt) = facts.rtt {
            assert!(rtt.p50 <= rtt.p95 && rtt.p95 <= rtt.max);
            assert!(rtt.max >= rtt.min || rtt.max == Span::ZERO);
        }
        assert!(facts.stream.in_flight_max <= facts.stream.bytes);
    }
});

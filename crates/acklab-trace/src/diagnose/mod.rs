//! From a capture to a diagnosis in one pass.
//!
//! [`diagnose`] reads the file once; each direction is judged when its connection is over, so memory
//! is bounded by live connections. What it says stands in [`crate::diagnosis`].

mod analyst;
mod direction;
mod plots;

use std::path::Path;

use crate::capture::{CaptureError, CaptureReader};
use crate::diagnosis::{Capture, Diagnosis, Flow, Handshake, SCHEMA};
use crate::flow::facts::CapturePoint;
use crate::flow::{FlowReport, FlowReports, FlowTable, TableOptions};
use crate::read::{CaptureSummary, read_capture};
use crate::verdict;

pub use analyst::Analyst;

/// What to look at, and how much to keep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Limits of the flow table.
    pub table: TableOptions,
    /// Only this connection (numbered as in the result) is kept in detail.
    pub flow: Option<u64>,
}

/// Diagnoses the capture at `path` (`-` is standard input). `on_progress` is told the bytes read.
pub fn diagnose(
    path: &Path,
    options: &Options,
    on_progress: impl FnMut(u64),
) -> Result<Diagnosis, CaptureError> {
    let mut reader = CaptureReader::open(path)?;
    diagnose_reader(&mut reader, options, on_progress)
}

/// Diagnoses a capture that is already open.
pub fn diagnose_reader(
    reader: &mut CaptureReader<'_>,
    options: &Options,
    on_progress: impl FnMut(u64),
) -> Result<Diagnosis, CaptureError> {
    let mut table = FlowTable::<Analyst>::new(options.table);
    let summary = read_capture(reader, &mut table, on_progress)?;
    Ok(assemble(&summary, table.finish(), options))
}

fn assemble(
    summary: &CaptureSummary,
    reports: FlowReports<Box<crate::diagnosis::Direction>>,
    options: &Options,
) -> Diagnosis {
    let origin = summary.first_time.unwrap_or_default();
    let duration = summary.last_time.map_or(0.0, |last| last.since(origin).as_secs_f64());
    let mut notes = summary.warnings();
    if reports.evicted > 0 {
        notes.push(format!(
            "{} connections were closed early: more than {} were open at once",
            reports.evicted, options.table.live_max
        ));
    }
    let others = reports.others.flows;
    let mut flows: Vec<Flow> = reports
        .flows
        .into_iter()
        .filter(|f| options.flow.is_none_or(|id| f.id == id + 1))
        .filter(|f| f.bytes() > 0 || options.flow.is_some())
        .map(|f| flow_of(f, origin.as_secs_f64()))
        .collect();
    flows.sort_by(|a, b| seconds(b).total_cmp(&seconds(a)).then(a.id.cmp(&b.id)));
    let capture = Capture {
        packets: summary.frames,
        tcp_segments: summary.tcp_frames,
        duration_s: duration,
        connections: reports.total,
        notes,
    };
    let verdict = verdict::judge(&capture, &flows);
    Diagnosis { schema: SCHEMA, capture, verdict, flows, flows_not_listed: others }
}

/// Seconds that a flow lost in stalls.
fn seconds(flow: &Flow) -> f64 {
    flow.directions.iter().fold(0.0, |sum, d| sum + d.stalled_s())
}

fn flow_of(report: FlowReport<Box<crate::diagnosis::Direction>>, origin_s: f64) -> Flow {
    let [a, b] = &report.directions;
    let endpoints = report.endpoints.map(|e| e.to_string());
    let handshake = match (a.facts.stream.handshake, b.facts.stream.handshake) {
        (Some(client), Some(server)) => Some(Handshake {
            rtt_ms: a.facts.rtt.map_or(0.0, |r| r.min.as_millis_f64()),
            mss: [client.mss, server.mss],
            window_scale: [client.window_scale, server.window_scale],
            sack: client.sack_permitted && server.sack_permitted,
            timestamps: client.timestamps && server.timestamps,
        }),
        _ => None,
    };
    let captured_near = match a.facts.vantage.point {
        CapturePoint::Sender => Some(endpoints[0].clone()),
        CapturePoint::Receiver => Some(endpoints[1].clone()),
        CapturePoint::Loopback => Some("both".into()),
        CapturePoint::Between | CapturePoint::Unknown => None,
    };
    Flow {
        id: report.id - 1,
        endpoints,
        first_frame: report.first_frame,
        start_s: report.first_time.as_secs_f64() - origin_s,
        duration_s: report.last_time.since(report.first_time).as_secs_f64(),
        handshake,
        captured_near,
        directions: report.directions.into_iter().map(|d| *d.observed).collect(),
    }
}

//! From a capture to a diagnosis in one pass: each direction is judged when its connection is over, so
//! that memory is bounded by the live connections.

use std::path::Path;

use acklab_core::time::Span;

use crate::capture::{CaptureError, CaptureReader};
use crate::flow::observe::{AckSeen, DataSeen, DirectionObserver, LiveObserver};
use crate::flow::{DirectionFacts, FlowReports, FlowTable, TableOptions};
use crate::inferred::{Inference, script};
use crate::judged::{Capture, Diagnosis, Direction, Flow, Pair, SCHEMA, Verdict};
use crate::judged::{bare_acks, causes};
use crate::noted::Recorder;
use crate::noted::course::Course;
use crate::read::{CaptureSummary, read_capture};
use crate::segment::Endpoint;

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
    read_by::<Analyst>(reader, options, on_progress)
}

/// Diagnoses the capture at `path` and keeps each write of each direction in [`Direction::script`]: what it takes to play a
/// conversation again. Memory grows with the writes of the connections that are kept in detail.
pub fn explain(
    path: &Path,
    options: &Options,
    on_progress: impl FnMut(u64),
) -> Result<Diagnosis, CaptureError> {
    read_by::<Scribe>(&mut CaptureReader::open(path)?, options, on_progress)
}

/// Diagnoses the capture at `path` and keeps the first [`FIRST_WRITES`] writes of both directions of one connection: the
/// one asked for, else the most stalled.
pub fn explain_worst(
    path: &Path,
    options: &Options,
    on_progress: impl FnMut(u64),
) -> Result<Diagnosis, CaptureError> {
    explain_worst_reader(&mut CaptureReader::open(path)?, options, on_progress)
}

/// The same of a capture that is already open.
pub fn explain_worst_reader(
    reader: &mut CaptureReader<'_>,
    options: &Options,
    on_progress: impl FnMut(u64),
) -> Result<Diagnosis, CaptureError> {
    let table = TableOptions { closely: options.flow.map(|id| id + 1), ..options.table };
    let options = Options { table, ..*options };
    read_by::<Scribe<FIRST_WRITES>>(reader, &options, on_progress)
}

fn read_by<A: DirectionObserver<Report = Box<Direction>>>(
    reader: &mut CaptureReader<'_>,
    options: &Options,
    on_progress: impl FnMut(u64),
) -> Result<Diagnosis, CaptureError> {
    let mut table = FlowTable::<A>::new(options.table);
    let summary = read_capture(reader, &mut table, on_progress)?;
    Ok(assemble(&summary, table.finish(), options))
}

fn assemble(
    summary: &CaptureSummary,
    reports: FlowReports<Box<Direction>>,
    options: &Options,
) -> Diagnosis {
    let origin = summary.first_time.unwrap_or_default();
    let mut notes = summary.warnings();
    if reports.evicted > 0 {
        notes.push(format!(
            "{} connections were closed early: more than {} were open at once",
            reports.evicted, options.table.live_max
        ));
    }
    let others = reports.others.flows;
    let unopened = causes::unopened(reports.flows.iter());
    let flows: Vec<Flow> = reports
        .flows
        .into_iter()
        .filter(|f| options.flow.is_none_or(|id| f.id == id + 1))
        .filter(|f| f.bytes() > 0 || options.flow.is_some())
        .map(|f| Flow::of(f, origin.as_secs_f64()))
        .collect();
    let diagnosis = assembled(summary, flows, reports.total, others, notes);
    let causes = Flow::ranked_causes(&diagnosis.flows, unopened);
    Diagnosis { causes, ..diagnosis }
}

/// The diagnosis of `flows`, which are some of so many `connections`, of which so many are not listed.
pub(crate) fn assembled(
    summary: &CaptureSummary,
    mut flows: Vec<Flow>,
    connections: u64,
    others: u64,
    notes: Vec<String>,
) -> Diagnosis {
    let origin = summary.first_time.unwrap_or_default();
    let duration = summary.last_time.map_or(0.0, |last| last.since(origin).as_secs_f64());
    bare_acks::leave_open(&mut flows);
    flows.sort_by(|a, b| b.stalled_s().total_cmp(&a.stalled_s()).then(a.id.cmp(&b.id)));
    let capture = Capture {
        packets: summary.frames,
        tcp_segments: summary.tcp_frames,
        duration_s: duration,
        connections,
        notes,
        disordered: summary.is_disordered(),
    };
    let verdict = Verdict::of(&capture, &flows);
    let causes = Flow::ranked_causes(&flows, Vec::new());
    let flows_not_listed = others;
    Diagnosis {
        schema: SCHEMA,
        capture,
        verdict,
        flows,
        causes,
        flows_not_listed,
        pair: None,
        cure: None,
        checks: Vec::new(),
    }
}

/// The diagnosis of two captures of the same connections: of those that both hold, each direction as it is seen at its
/// sender.
pub(crate) fn assembled_pair(client: Diagnosis, server: Diagnosis, pair: Pair) -> Diagnosis {
    let mut at_servers = server.flows;
    let mut flows = client.flows;
    for flow in &mut flows {
        let there = pair.at_server(&flow.endpoints);
        let same = |other: &Flow| other.endpoints == there;
        let Some(at) = at_servers.iter().position(same) else { continue };
        let mut other = at_servers.swap_remove(at);
        flow.captured_near = Some("both".into());
        if let (Some(own), Some(its)) = (flow.directions.get_mut(1), other.directions.get_mut(1)) {
            its.from.clone_from(&own.from);
            its.to.clone_from(&own.to);
            std::mem::swap(own, its);
        }
    }
    let mut flows: Vec<Flow> = flows.into_iter().map(Flow::with_causes).collect();
    let unopened = client.causes.into_iter().filter(|cause| cause.flow.is_none()).collect();
    let causes = Flow::ranked_causes(&flows, unopened);
    let mut notes = client.capture.notes;
    let of_server = |note: String| format!("{}: {note}", pair.server);
    notes.extend(server.capture.notes.into_iter().map(of_server));
    let capture = Capture {
        packets: client.capture.packets + server.capture.packets,
        tcp_segments: client.capture.tcp_segments + server.capture.tcp_segments,
        duration_s: client.capture.duration_s.max(server.capture.duration_s),
        connections: client.capture.connections,
        notes,
        disordered: client.capture.disordered || server.capture.disordered,
    };
    flows.sort_by(|a, b| b.stalled_s().total_cmp(&a.stalled_s()).then(a.id.cmp(&b.id)));
    let verdict = Verdict::of(&capture, &flows);
    let flows_not_listed = client.flows_not_listed;
    Diagnosis {
        schema: SCHEMA,
        capture,
        verdict,
        flows,
        causes,
        flows_not_listed,
        pair: Some(pair),
        cure: None,
        checks: Vec::new(),
    }
}

/// Observes one direction and diagnoses it when it is over: the three floors, one above the other.
///
/// For those who feed a [`FlowTable`] themselves; [`diagnose`] does it for a capture.
#[derive(Clone, Debug, Default)]
pub struct Analyst {
    recorder: Recorder,
    course: Course,
}

impl DirectionObserver for Analyst {
    type Report = Box<Direction>;

    fn open(_from: Endpoint, _to: Endpoint) -> Self {
        Self::default()
    }

    fn on_data(&mut self, seen: &DataSeen<'_>) {
        self.recorder.on_data(seen);
        self.course.on_data(seen);
    }

    fn on_ack(&mut self, seen: &AckSeen) {
        self.recorder.on_ack(seen);
        self.course.on_ack(seen);
    }

    fn held_bytes(&self) -> usize {
        self.recorder.held_bytes()
    }

    fn shed(&mut self) {
        self.recorder.shed();
    }

    fn heed(&mut self, opposite: &Self) {
        self.recorder.heed(&opposite.recorder);
    }

    fn finish(self, facts: &DirectionFacts, opposite: &DirectionFacts) -> Box<Direction> {
        let notes = self.recorder.finish(facts, opposite);
        Box::new(Direction::of(&notes, Inference::of(&notes), self.course.facts()))
    }

    fn stalled(report: &Box<Direction>) -> Span {
        Span::from_secs_f64(report.stalled_s())
    }
}

/// An analyst who writes down the first so many writes: all of them, and of each connection; fewer, of one.
#[derive(Clone, Debug, Default)]
struct Scribe<const WRITES: usize = { usize::MAX }>(Analyst);

impl<const WRITES: usize> DirectionObserver for Scribe<WRITES> {
    type Report = Box<Direction>;

    fn open(_from: Endpoint, _to: Endpoint) -> Self {
        Self::default()
    }

    fn on_data(&mut self, seen: &DataSeen<'_>) {
        self.0.on_data(seen);
    }

    fn on_ack(&mut self, seen: &AckSeen) {
        self.0.on_ack(seen);
    }

    fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }

    fn shed(&mut self) {
        self.0.shed();
    }

    fn heed(&mut self, opposite: &Self) {
        self.0.heed(&opposite.0);
    }

    fn finish(self, facts: &DirectionFacts, opposite: &DirectionFacts) -> Box<Direction> {
        let Analyst { recorder, course } = self.0;
        let notes = recorder.finish(facts, opposite);
        let inference = Inference::of(&notes);
        let (script, script_cut) = script::of(&notes, &inference, WRITES);
        let direction = Direction::of(&notes, inference, course.facts());
        Box::new(Direction { script, script_cut, ..direction })
    }

    fn stalled(report: &Box<Direction>) -> Span {
        Analyst::stalled(report)
    }

    fn lighten(report: &mut Box<Direction>) {
        if WRITES < usize::MAX {
            report.script = Vec::new();
        }
    }
}

impl LiveObserver for Analyst {
    fn noted(&self) -> u64 {
        self.recorder.segments()
    }

    fn segments(&self) -> u64 {
        self.recorder.segments()
    }

    fn begin_anew(&mut self) {
        self.recorder.begin_anew();
        self.course.begin_anew();
    }
}

/// Writes of a direction that [`explain_worst`] keeps: played a dozen times in a tenth of a second.
pub const FIRST_WRITES: usize = 1_000;

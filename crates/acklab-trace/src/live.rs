//! A diagnosis of frames as they pass, which can be asked before it is over.
//!
//! The floors are those of a capture, and so is every verdict: after any number of frames the answer is the one that
//! a capture of these frames would get. Two things differ. What is new since the last look is told by direction and
//! mechanism. And a connection is judged in stretches of 4,096 segments, so that a look costs the same after a
//! day as after a second; the stretches' results are joined in the end.

use std::collections::BTreeMap;

use acklab_core::time::Time;

use crate::capture::{Frame, LinkType};
use crate::diagnose::{Analyst, assembled};
use crate::flow::{FlowReport, FlowTable, TableOptions};
use crate::inferred::Mechanism;
use crate::judged::{Diagnosis, Direction, Flow};
use crate::read::CaptureSummary;
use crate::segment::Endpoint;

/// Writes found to have been held since the last look.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct News {
    /// The connection, numbered from 0.
    pub flow: u64,
    /// Whose writes were held.
    pub from: Endpoint,
    /// Who was waited for.
    pub to: Endpoint,
    /// What ended the holds.
    pub mechanism: Mechanism,
    /// How many.
    pub count: u64,
    /// How long they waited, summed, seconds.
    pub seconds: f64,
}

/// Diagnoses frames as they pass.
///
/// ```
/// use acklab_core::time::Time;
/// use acklab_trace::capture::CaptureReader;
/// use acklab_trace::live::LiveDiagnosis;
///
/// let mut live = LiveDiagnosis::default();
/// let mut reader = CaptureReader::open("../../demo/nagle-linux.pcapng".as_ref())?;
/// while let Some(frame) = reader.next_frame()? {
///     live.on_frame(frame.time, frame.link, frame.original_len, frame.bytes);
/// }
/// let news = live.look(|_ends| true);
/// assert!(news[0].count > 10 && news[0].mechanism.name() == "delayed_ack_timer");
/// assert!(live.finish(|_ends| true, None).verdict.stalled == Some(true));
/// # Ok::<(), acklab_trace::capture::CaptureError>(())
/// ```
pub struct LiveDiagnosis {
    table: FlowTable<Analyst>,
    summary: CaptureSummary,
    followed: BTreeMap<u64, Followed>,
    /// Connections that are over.
    over: Vec<Flow>,
    /// More of these, which are only counted.
    others: u64,
}

/// What is known of a connection beside its present stretch.
#[derive(Default)]
struct Followed {
    past: Option<Flow>,
    /// Count and seconds already told, by direction and mechanism.
    told: BTreeMap<(usize, Mechanism), (u64, f64)>,
}

impl Default for LiveDiagnosis {
    fn default() -> Self {
        Self {
            table: FlowTable::new(LIMITS),
            summary: CaptureSummary::default(),
            followed: BTreeMap::new(),
            over: Vec::new(),
            others: 0,
        }
    }
}

impl LiveDiagnosis {
    /// Takes the next frame: its time, what its first bytes are, its length on the wire and the bytes captured.
    pub fn on_frame(&mut self, time: Time, link: LinkType, original_len: u32, bytes: &[u8]) {
        let number = self.summary.frames + 1;
        let frame = Frame { number, time, link, original_len, bytes };
        self.summary.on_frame(&frame, &mut self.table);
    }

    /// Frames so far, and those of them that were TCP.
    pub fn frames(&self) -> (u64, u64) {
        (self.summary.frames, self.summary.tcp_frames)
    }

    /// What is new since the last look, of connections whose ends are `wanted`.
    pub fn look(&mut self, wanted: impl Fn(&[Endpoint; 2]) -> bool) -> Vec<News> {
        let origin_s = self.summary.first_time.unwrap_or_default().as_secs_f64();
        let mut news = Vec::new();
        for (report, last_of_stretch) in self.table.news(STRETCH) {
            if wanted(&report.endpoints) {
                let (id, ends) = (report.id - 1, report.endpoints);
                let flow = Flow::of(report, origin_s);
                let followed = self.followed.entry(id).or_default();
                followed.tell(&flow, ends, &mut news);
                if last_of_stretch {
                    followed.past = Some(followed.joined(flow));
                }
            }
        }
        let (reports, others) = self.table.take_reports();
        self.others += others.flows;
        for report in reports {
            self.close(report, origin_s, &wanted, &mut news);
        }
        news
    }

    /// The diagnosis of `wanted` connections; `limit` is what else keeps it from knowing all.
    pub fn finish(
        mut self,
        wanted: impl Fn(&[Endpoint; 2]) -> bool,
        limit: Option<String>,
    ) -> Diagnosis {
        let origin_s = self.summary.first_time.unwrap_or_default().as_secs_f64();
        let reports = std::mem::take(&mut self.table).finish();
        let mut unheard = Vec::new();
        for report in reports.flows {
            self.close(report, origin_s, &wanted, &mut unheard);
        }
        let others = self.others + reports.others.flows;
        let connections = self.over.len() as u64 + others;
        let notes = self.summary.warnings();
        let flows = self.over.into_iter().filter(|f| f.directions.iter().any(|d| d.bytes > 0));
        let mut diagnosis = assembled(&self.summary, flows.collect(), connections, others, notes);
        diagnosis.verdict.limits.extend(limit);
        diagnosis
    }

    /// Keeps a connection that is over.
    fn close(
        &mut self,
        report: FlowReport<Box<Direction>>,
        origin_s: f64,
        wanted: impl Fn(&[Endpoint; 2]) -> bool,
        news: &mut Vec<News>,
    ) {
        let mut followed = self.followed.remove(&(report.id - 1)).unwrap_or_default();
        let ends = report.endpoints;
        if !wanted(&ends) {
            return;
        }
        let flow = Flow::of(report, origin_s);
        followed.tell(&flow, ends, news);
        self.over.push(followed.joined(flow));
        if self.over.len() >= 2 * OVER_MAX {
            self.over.sort_by(|a, b| b.stalled_s().total_cmp(&a.stalled_s()).then(a.id.cmp(&b.id)));
            self.others += (self.over.len() - OVER_MAX) as u64;
            self.over.truncate(OVER_MAX);
        }
    }
}

impl Followed {
    /// All stretches of the connection, `now` the last.
    fn joined(&mut self, now: Flow) -> Flow {
        match self.past.take() {
            Some(past) => past.followed_by(now),
            None => now,
        }
    }

    /// Tells what the connection has beyond what was told. A hold whose mechanism is understood better later on is
    /// told again under its new name.
    fn tell(&mut self, now: &Flow, ends: [Endpoint; 2], news: &mut Vec<News>) {
        for (index, direction) in now.directions.iter().enumerate() {
            for stall in &direction.stalls {
                let past = self.past.iter().flat_map(|past| &past.directions[index].stalls);
                let past = past.filter(|earlier| earlier.mechanism == stall.mechanism);
                let (count, seconds) = past
                    .chain([stall])
                    .fold((0, 0.0), |(count, seconds), s| (count + s.count, seconds + s.seconds));
                let told = self.told.entry((index, stall.mechanism)).or_default();
                if count > told.0 {
                    news.push(News {
                        flow: now.id,
                        from: ends[index],
                        to: ends[1 - index],
                        mechanism: stall.mechanism,
                        count: count - told.0,
                        seconds: (seconds - told.1).max(0.0),
                    });
                    *told = (count, seconds);
                }
            }
        }
    }
}

/// Segments of a direction that are judged together. A message in 1 ms fills it in 4 s, and one look at it takes less
/// than a millisecond; a hold that is rarer than one in so many segments is judged by itself.
const STRETCH: u64 = 4_096;
/// Connections that are over and kept in detail.
const OVER_MAX: usize = 512;
/// Less than for a file: the watched machine has other things to do.
const LIMITS: TableOptions = TableOptions {
    detailed_max: OVER_MAX,
    live_max: 8_192,
    idle: acklab_core::time::Span::from_secs(600),
    observers_bytes_max: 32_000_000,
    linger: acklab_core::time::Span::from_secs(5),
    closely: None,
};

//! All connections of a capture: which are live, and what is left of those that are over.
//!
//! Bounded: at most so many live connections (the longest idle quarter is closed when there are
//! more), so many detailed reports (the most stalled, then the biggest; the rest is summed up), and
//! so much memory for the observers (those that hold most shed it). Whether a connection has fallen
//! idle is looked at once every [`SWEEP_PACKETS`] packets. Reports come out in the order in which
//! their connections were first seen.

use std::cmp::Reverse;
use std::collections::HashMap;

use acklab_core::time::{Span, Time};

use super::connection::Connection;
use super::key::{BuildKeyHasher, FlowKey};
use super::observe::{DirectionObserver, LiveObserver};
use super::report::{Ending, FlowReport, FlowReports, Others};
use crate::frame::Notice;
use crate::segment::Segment;

/// Limits of a [`FlowTable`].
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    /// Connections reported in detail.
    pub detailed_max: usize,
    /// Connections followed at a time.
    pub live_max: usize,
    /// A connection without a packet for so long is over.
    pub idle: Span,
    /// Memory that all observers may hold, bytes; those that hold most are asked to shed.
    pub observers_bytes_max: usize,
    /// A connection that was closed or reset is dropped after so long without a packet.
    pub linger: Span,
    /// The connection to look closely at, by its report's number; else it is the most stalled.
    pub closely: Option<u64>,
}

/// 4096 reports, 32,768 live connections, one hour, 128 MB.
impl Default for TableOptions {
    fn default() -> Self {
        Self {
            detailed_max: 4_096,
            live_max: 32_768,
            idle: Span::from_secs(3_600),
            observers_bytes_max: 128_000_000,
            linger: Span::from_secs(5),
            closely: None,
        }
    }
}

/// Follows the connections of a capture.
pub struct FlowTable<O: DirectionObserver> {
    options: TableOptions,
    index: HashMap<FlowKey, u32, BuildKeyHasher>,
    slots: Vec<Option<(FlowKey, Box<Connection<O>>)>>,
    free: Vec<u32>,
    /// The connection of the last packet: the next one often belongs to it.
    latest: Option<(FlowKey, u32)>,
    until_sweep: u32,
    /// The closed connection to look closely at, by its report's number, and how long it stalled.
    closely: Option<(u64, Span)>,
    reports: FlowReports<O::Report>,
}

impl<O: DirectionObserver> Default for FlowTable<O> {
    fn default() -> Self {
        Self::new(TableOptions::default())
    }
}

impl<O: DirectionObserver> FlowTable<O> {
    /// An empty table.
    pub fn new(options: TableOptions) -> Self {
        Self {
            options,
            index: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            latest: None,
            until_sweep: SWEEP_PACKETS,
            closely: None,
            reports: FlowReports {
                flows: Vec::new(),
                others: Others::default(),
                total: 0,
                evicted: 0,
            },
        }
    }

    /// Takes the next segment of the capture.
    pub fn on_segment(&mut self, segment: &Segment<'_>) {
        self.until_sweep -= 1;
        if self.until_sweep == 0 {
            self.until_sweep = SWEEP_PACKETS;
            self.sweep(segment.time);
        }
        let key = FlowKey::new(segment.src, segment.dst);
        let slot = match self.latest {
            Some((latest, slot)) if latest == key => Some(slot),
            _ => self.index.get(&key).copied(),
        };
        let slot = match slot {
            Some(slot) if !self.is_replaced(slot, segment) => slot,
            Some(slot) => {
                let ending = self.ending(slot).unwrap_or(Ending::Replaced);
                self.close(slot, ending);
                self.open(key, segment)
            }
            None => self.open(key, segment),
        };
        self.latest = Some((key, slot));
        if let Some((_, connection)) = &mut self.slots[slot as usize] {
            connection.on_segment(segment);
        }
    }

    /// Takes what was said of a packet; nothing comes of it where its connection was not seen.
    pub(crate) fn on_notice(&mut self, notice: &Notice) {
        let slot = self.index.get(&FlowKey::new(notice.src, notice.dst));
        if let Some((_, connection)) = slot.and_then(|&slot| self.slots[slot as usize].as_mut()) {
            connection.on_notice(notice);
        }
    }

    #[inline]
    fn is_replaced(&self, slot: u32, segment: &Segment<'_>) -> bool {
        let connection = self.slots[slot as usize].as_ref();
        connection.is_some_and(|(_, connection)| connection.is_replaced_by(segment))
    }

    fn open(&mut self, key: FlowKey, segment: &Segment<'_>) -> u32 {
        if self.index.len() >= self.options.live_max {
            self.evict();
        }
        self.reports.total += 1;
        let connection = Some((key, Box::new(Connection::open(self.reports.total, segment))));
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = connection;
            slot
        } else {
            self.slots.push(connection);
            (self.slots.len() - 1) as u32
        };
        self.index.insert(key, slot);
        slot
    }

    fn close(&mut self, slot: u32, ending: Ending) {
        let Some((key, connection)) = self.slots[slot as usize].take() else { return };
        self.index.remove(&key);
        self.free.push(slot);
        self.latest = None;
        let mut report = connection.finish(ending);
        self.choose(&mut report);
        self.reports.flows.push(report);
        if self.reports.flows.len() >= 2 * self.options.detailed_max.max(1) {
            self.condense();
        }
    }

    /// Keeps one report whole: that of the connection to look closely at, as far as is known by now.
    fn choose(&mut self, report: &mut FlowReport<O::Report>) {
        let now = stalled::<O>(report);
        let better = match (self.options.closely, self.closely) {
            (Some(chosen), _) => report.id == chosen,
            (None, Some((_, most))) => now > most,
            (None, None) => now > Span::ZERO,
        };
        let other = if better {
            let before = self.closely.replace((report.id, now));
            before.and_then(|(id, _)| self.reports.flows.iter_mut().find(|flow| flow.id == id))
        } else {
            Some(report)
        };
        for direction in other.into_iter().flat_map(|report| &mut report.directions) {
            O::lighten(&mut direction.observed);
        }
    }

    /// How the connection ended, if there is one and it did.
    fn ending(&self, slot: u32) -> Option<Ending> {
        self.slots[slot as usize].as_ref().and_then(|(_, connection)| connection.ending())
    }

    /// Closes what is over or has fallen idle by `now`, and sees to the memory of the rest.
    fn sweep(&mut self, now: Time) {
        let mut held = 0;
        for slot in 0..self.slots.len() {
            let Some((_, connection)) = &self.slots[slot] else { continue };
            let silent = now.since(connection.last_time);
            match connection.ending() {
                Some(ending) if silent > self.options.linger => self.close(slot as u32, ending),
                None if silent > self.options.idle => self.close(slot as u32, Ending::Idle),
                _ => held += connection.held_bytes(),
            }
        }
        if held > self.options.observers_bytes_max {
            self.shed(held);
        }
    }

    /// Has the observers that hold most shed it, until a quarter of the limit is free.
    #[cold]
    fn shed(&mut self, mut held: usize) {
        let mut by_size: Vec<(Reverse<usize>, usize)> = Vec::with_capacity(self.slots.len());
        for (slot, entry) in self.slots.iter().enumerate() {
            if let Some((_, connection)) = entry {
                by_size.push((Reverse(connection.held_bytes()), slot));
            }
        }
        by_size.sort_unstable();
        let enough = self.options.observers_bytes_max / 4 * 3;
        for (Reverse(before), slot) in by_size {
            if held <= enough {
                break;
            }
            if let Some((_, connection)) = &mut self.slots[slot] {
                connection.shed();
                held -= before.saturating_sub(connection.held_bytes());
            }
        }
    }

    /// Closes the quarter of the connections that has been silent for longest.
    #[cold]
    fn evict(&mut self) {
        let mut by_age: Vec<(Time, u32)> = Vec::with_capacity(self.slots.len());
        for (slot, entry) in self.slots.iter().enumerate() {
            if let Some((_, connection)) = entry {
                by_age.push((connection.last_time, slot as u32));
            }
        }
        by_age.sort_unstable();
        for &(_, slot) in &by_age[..by_age.len().div_ceil(4)] {
            let ending = self.ending(slot);
            self.reports.evicted += u64::from(ending.is_none());
            self.close(slot, ending.unwrap_or(Ending::Idle));
        }
    }

    /// Keeps the reports that say most, and sums up the others.
    fn condense(&mut self) {
        let FlowReports { flows, others, .. } = &mut self.reports;
        let keep = self.options.detailed_max;
        if flows.len() <= keep {
            return;
        }
        // Most stalled first, then biggest, then earliest.
        flows.sort_by_cached_key(|flow| {
            (Reverse(stalled::<O>(flow)), Reverse(flow.bytes()), flow.id)
        });
        for flow in flows.drain(keep..) {
            others.flows += 1;
            others.packets += flow.packets;
            others.bytes += flow.bytes();
            others.stalled += stalled::<O>(&flow);
        }
    }

    /// Connections followed at the moment.
    pub fn live(&self) -> usize {
        self.index.len()
    }

    /// Closes every connection and hands out the reports.
    pub fn finish(mut self) -> FlowReports<O::Report> {
        for slot in 0..self.slots.len() {
            let ending = self.ending(slot as u32).unwrap_or(Ending::CaptureEnd);
            self.close(slot as u32, ending);
        }
        self.condense();
        let mut reports = self.reports;
        reports.flows.sort_unstable_by_key(|flow| flow.id);
        reports
    }
}

impl<O: LiveObserver> FlowTable<O> {
    /// Reports on live connections that may have something new to tell, as if they ended here. One with
    /// so many `segments` in a direction begins anew, and its report is marked as the last of a stretch.
    pub fn news(&mut self, segments: u64) -> Vec<(FlowReport<O::Report>, bool)> {
        let mut news = Vec::new();
        for (_, connection) in self.slots.iter_mut().flatten() {
            if connection.has_news() {
                let last = connection.has_segments(segments);
                news.push((connection.look(), last));
                if last {
                    connection.begin_anew();
                }
            }
        }
        news
    }

    /// Takes the reports of connections that are over, and how many there were beside them.
    pub fn take_reports(&mut self) -> (Vec<FlowReport<O::Report>>, Others) {
        let FlowReports { flows, others, .. } = &mut self.reports;
        (std::mem::take(flows), std::mem::take(others))
    }
}

/// Time that a connection lost in stalls, in the direction that lost more.
fn stalled<O: DirectionObserver>(flow: &FlowReport<O::Report>) -> Span {
    let [a, b] = &flow.directions;
    O::stalled(&a.observed).max(O::stalled(&b.observed))
}

/// Packets between two looks for idle connections: on average less than one connection per packet
/// is looked at.
const SWEEP_PACKETS: u32 = 32_768;

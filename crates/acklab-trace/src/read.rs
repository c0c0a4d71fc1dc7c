//! A whole capture through the reader, the dissector and the flow table.
//!
//! What cannot be read is counted with the first such frame, so that a warning can name it;
//! the reading goes on. Only a capture of which nothing can be read is an error.

use acklab_core::time::{Span, Time};

use crate::capture::{CaptureError, CaptureReader, Damage, Frame, LinkType};
use crate::flow::{DirectionObserver, FlowTable};
use crate::frame::{Skip, dissect, notice};

/// What a capture held, beside its connections.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CaptureSummary {
    /// Frames read.
    pub frames: u64,
    /// Frames that gave a TCP segment.
    pub tcp_frames: u64,
    /// Frames that are no IP.
    pub not_ip: u64,
    /// Frames that are IP, but no TCP.
    pub not_tcp: u64,
    /// IP fragments after the first, which are passed over.
    pub fragments: Occurrences,
    /// Frames cut off within the headers: the snap length is too short.
    pub snapped_headers: Occurrences,
    /// Frames whose IP or TCP header contradicts itself.
    pub malformed: Occurrences,
    /// Frames whose IP length lies; the length of the frame was used.
    pub length_lies: Occurrences,
    /// Frames earlier than one before them.
    pub backward_times: Occurrences,
    /// Frames of a link type that is not understood, and the first such type.
    pub unsupported_link: Occurrences,
    /// The first link type that is not understood.
    pub unsupported_link_type: Option<LinkType>,
    /// Least time of a frame.
    pub first_time: Option<Time>,
    /// Greatest time of a frame.
    pub last_time: Option<Time>,
    /// Whether the frames are in the order of their times.
    pub order: Order,
    /// Why the reading stopped before the end, if it did.
    pub damage: Option<Damage>,
}

/// Whether the frames are in the order of their times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// Time of the last frame.
    pub before: Option<Time>,
    /// Frames earlier than the one right before them by more than a clock's noise.
    pub far: u64,
}

/// How many frames something was found in, and which was the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// How many.
    pub frames: u64,
    /// The first, 0 if none.
    pub first_frame: u64,
}

impl Occurrences {
    #[cold]
    fn add(&mut self, frame: u64) {
        if self.frames == 0 {
            self.first_frame = frame;
        }
        self.frames += 1;
    }
}

/// Reads the whole capture into `table`. `on_progress` is told the bytes taken from the source so
/// far, every 65,536 frames.
pub fn read_capture<O: DirectionObserver>(
    reader: &mut CaptureReader<'_>,
    table: &mut FlowTable<O>,
    mut on_progress: impl FnMut(u64),
) -> Result<CaptureSummary, CaptureError> {
    let mut summary = CaptureSummary::default();
    loop {
        if summary.frames.is_multiple_of(PROGRESS_FRAMES) {
            on_progress(reader.source_bytes());
        }
        let Some(frame) = reader.next_frame()? else { break };
        summary.on_frame(&frame, table);
    }
    on_progress(reader.source_bytes());
    summary.damage = reader.damage().cloned();
    match summary.unsupported_link_type {
        Some(link) if summary.unsupported_link.frames == summary.frames => {
            Err(CaptureError::UnsupportedLink { link, frames: summary.frames })
        }
        _ => Ok(summary),
    }
}

impl CaptureSummary {
    /// Counts a frame, and hands its segment to `table` if it has one.
    #[inline]
    pub(crate) fn on_frame<O: DirectionObserver>(
        &mut self,
        frame: &Frame<'_>,
        table: &mut FlowTable<O>,
    ) {
        self.frames += 1;
        self.on_time(frame.number, frame.time);
        match dissect(frame) {
            Ok(dissected) => {
                self.tcp_frames += 1;
                if dissected.length_lies {
                    self.length_lies.add(frame.number);
                }
                table.on_segment(&dissected.segment);
            }
            Err(skip) => {
                self.on_skip(skip, frame.number, frame.link);
                if let Some(notice) = (skip == Skip::NotTcp).then(|| notice(frame)).flatten() {
                    table.on_notice(&notice);
                }
            }
        }
    }

    #[inline]
    fn on_time(&mut self, frame: u64, time: Time) {
        let before = self.order.before.replace(time);
        self.order.far += u64::from(before.is_some_and(|before| before.since(time) >= FAR));
        self.first_time = Some(self.first_time.map_or(time, |first| first.min(time)));
        match self.last_time {
            Some(last) if time < last => self.backward_times.add(frame),
            _ => self.last_time = Some(time),
        }
    }

    fn on_skip(&mut self, skip: Skip, frame: u64, link: LinkType) {
        match skip {
            Skip::NotIp => self.not_ip += 1,
            Skip::NotTcp => self.not_tcp += 1,
            Skip::Fragment => self.fragments.add(frame),
            Skip::Snapped => self.snapped_headers.add(frame),
            Skip::Malformed => self.malformed.add(frame),
            Skip::LinkType => {
                self.unsupported_link.add(frame);
                self.unsupported_link_type.get_or_insert(link);
            }
        }
    }

    /// Whether the frames are not in the order in which they passed, so that causes follow their effects.
    pub(crate) fn is_disordered(&self) -> bool {
        self.order.far * FAR_PART > self.frames
    }

    /// One sentence for each thing that a reader of the report should know, with the first such frame
    /// and what to do.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |occurred: Occurrences, what: &str| {
            if occurred.frames > 0 {
                let Occurrences { frames, first_frame } = occurred;
                warnings.push(format!("frame {first_frame} (of {frames} such): {what}"));
            }
        };
        warn(
            self.length_lies,
            "the IP length does not fit the frame; the frame's own length was used",
        );
        warn(self.malformed, "the IP or TCP header contradicts itself; passed over");
        warn(
            self.snapped_headers,
            "the capture does not hold the headers; record with a snap length of 128 or more",
        );
        warn(self.fragments, "an IP fragment after the first; passed over");
        warn(self.backward_times, "earlier than the frame before; sort with `reordercap IN OUT`");
        if let Some(link) = self.unsupported_link_type {
            let what = format!("link type {link} is not understood; passed over");
            warn(self.unsupported_link, &what);
        }
        warnings.extend(self.damage.as_ref().map(ToString::to_string));
        if self.tcp_frames == 0 {
            warnings.push(format!(
                "no TCP in {} frames: was the filter too narrow, or the interface the wrong one?",
                self.frames
            ));
        }
        warnings
    }
}

/// The noise of a clock is less.
const FAR: Span = Span::from_millis(20);
/// A clock is not set back as often as every so many frames.
const FAR_PART: u64 = 50;
/// How often progress is told: some 100 times a second.
const PROGRESS_FRAMES: u64 = 65_536;

//! The figures of one direction of a diagnosis.
//!
//! A capture knows the times at one point only. The ladder shifts each packet by half the least
//! round trip between the capture point and the host, which is an estimate and said to be one; no
//! answer is drawn as leaving before its cause arrived. The close-up draws the ladder's packets
//! again as a time-sequence plot; the overview draws the whole connection as two lines.

use acklab_trace::diagnosis::{self as found, Direction, Flow, Rung};

use crate::report::ladder::{Arrow, ArrowKind, CapturePoint, Hold, Host, Ladder, Note, Side};
use crate::report::page::{Block, Figure};
use crate::report::plot::{
    Cdf, CdfSeries, Histogram, Mark, SegmentKind, SequenceSegment, TimeSequence,
};
use crate::report::table::measure;

/// One hold, packet by packet.
pub(super) fn ladder(flow: &Flow, direction: &Direction) -> Option<Block> {
    Some(Block::Ladder(Figure {
        title: "One hold, packet by packet".into(),
        caption:
            "Time runs downwards; long waits are drawn shortened, so read the times. Those at \
                  the capture point are measured, those at the other host are estimated from the \
                  round trip. The shaded bands show who waits."
                .into(),
        drawing: draw_ladder(flow, direction)?,
    }))
}

pub(super) fn draw_ladder(flow: &Flow, direction: &Direction) -> Option<Ladder> {
    let rungs = around_the_hold(direction)?;
    let shift = Shift::of(flow, direction, rungs);
    let origin = rungs.first()?.t_ms;
    let at = |rung: &Rung| rung.t_ms - origin;
    let arrows = rungs.iter().map(|rung| shift.arrow(rung, at(rung))).collect();
    let (mut holds, mut notes) = (Vec::new(), Vec::new());
    for (index, rung) in rungs.iter().enumerate() {
        let Some(held_ms) = rung.held_ms else { continue };
        let leaves = at(rung) - shift.to_left_ms;
        let label = format!("{} bytes written", rung.len);
        notes.push(Note { side: Side::Left, at_ms: leaves - held_ms, label });
        holds.push(Hold {
            side: Side::Left,
            from_ms: leaves - held_ms,
            to_ms: leaves,
            label: "held back in the sender".into(),
        });
        holds.extend(late_ack(&rungs[..index], &shift, origin));
    }
    let nagle = match direction.nagle.state {
        found::NagleState::On => "sends, Nagle’s algorithm on",
        _ => "sends",
    };
    Some(Ladder {
        left: Host { name: direction.from.clone(), role: nagle.into() },
        right: Host { name: direction.to.clone(), role: "receives and acknowledges".into() },
        capture: shift.capture,
        arrows,
        holds,
        notes,
    })
}

/// The packets from the data whose acknowledgment was waited for to a little after the hold.
fn around_the_hold(direction: &Direction) -> Option<&[Rung]> {
    let rungs = &direction.plots.ladder.as_ref()?.rungs;
    let held = rungs.iter().position(|rung| rung.held_ms.is_some())?;
    let ack = rungs[..held].iter().rposition(|rung| !rung.rightward);
    let blocking =
        ack.and_then(|ack| rungs[..ack].iter().rposition(|data| acknowledges(&rungs[ack], data)));
    let first = blocking.unwrap_or(held.saturating_sub(RUNGS_BEFORE));
    Some(&rungs[first..rungs.len().min(held + RUNGS_AFTER + 1)])
}

/// The receiver's wait before the last ACK of `rungs`.
fn late_ack(rungs: &[Rung], shift: &Shift, origin: f64) -> Option<Hold> {
    let ack = rungs.iter().rev().find(|rung| !rung.rightward)?;
    let data = rungs.iter().rev().find(|rung| acknowledges(ack, rung))?;
    let from_ms = data.t_ms - origin + shift.to_right_ms;
    let to_ms = ack.t_ms - origin - shift.to_right_ms;
    (to_ms - from_ms > LATE_ACK_MS).then(|| Hold {
        side: Side::Right,
        from_ms,
        to_ms,
        label: "until the receiver acknowledges".into(),
    })
}

fn acknowledges(ack: &Rung, data: &Rung) -> bool {
    data.rightward && !ack.rightward && ack.ack == Some(data.seq + u64::from(data.len))
}

/// The least time from a packet to the next that answers it, ms: no more than a round trip there
/// and back can be drawn in it.
fn quickest_ms(rungs: &[Rung], answers: impl Fn(&Rung, &Rung) -> bool) -> f64 {
    let gap = |(index, answer): (usize, &Rung)| {
        let asked = rungs[..index].iter().rev().find(|rung| answers(answer, rung))?;
        Some(answer.t_ms - asked.t_ms)
    };
    rungs.iter().enumerate().filter_map(gap).fold(f64::INFINITY, f64::min)
}

/// How long packets travel between the capture point and the hosts, ms one way.
struct Shift {
    capture: CapturePoint,
    to_left_ms: f64,
    to_right_ms: f64,
}

impl Shift {
    fn of(flow: &Flow, direction: &Direction, rungs: &[Rung]) -> Self {
        let near = flow.captured_near.as_deref();
        let capture = match near {
            Some(near) if near == direction.from => CapturePoint::Left,
            Some(near) if near == direction.to => CapturePoint::Right,
            _ => CapturePoint::Between,
        };
        let half = |rtt: Option<f64>| rtt.unwrap_or(0.0).max(0.0) / 2.0;
        let to_right_ms =
            half(direction.rtt_to_receiver_ms).min(quickest_ms(rungs, acknowledges) * LIKELY_SHARE);
        let releases = |held: &Rung, ack: &Rung| held.held_ms.is_some() && !ack.rightward;
        let to_left_ms =
            half(direction.rtt_to_sender_ms).min(quickest_ms(rungs, releases) * LIKELY_SHARE);
        match capture {
            CapturePoint::Left => Self { capture, to_left_ms: 0.0, to_right_ms },
            CapturePoint::Right => Self { capture, to_left_ms, to_right_ms: 0.0 },
            _ => Self { capture, to_left_ms, to_right_ms },
        }
    }

    fn arrow(&self, rung: &Rung, at_ms: f64) -> Arrow {
        let (left, right) = if rung.rightward {
            (at_ms - self.to_left_ms, at_ms + self.to_right_ms)
        } else {
            (at_ms + self.to_left_ms, at_ms - self.to_right_ms)
        };
        let bytes = format!("{} bytes", rung.len);
        let (kind, label) = match rung {
            _ if rung.held_ms.is_some() => (ArrowKind::HeldData, format!("{bytes}, late")),
            _ if rung.rightward => (ArrowKind::Data, bytes),
            _ if rung.len > 0 => (ArrowKind::Ack, format!("ACK with {bytes}")),
            _ => (ArrowKind::Ack, "ACK".into()),
        };
        let (from, sent_ms, received_ms) =
            if rung.rightward { (Side::Left, left, right) } else { (Side::Right, right, left) };
        Arrow { from, sent_ms, received_ms, label, kind, frame: Some(rung.frame) }
    }
}

/// The ladder's packets as a time-sequence plot.
pub(super) fn close_up(direction: &Direction) -> Option<Block> {
    let rungs = &direction.plots.ladder.as_ref()?.rungs;
    let origin = rungs.first()?.t_ms;
    let seconds = |rung: &Rung| (rung.t_ms - origin) / 1e3;
    let segments = rungs.iter().filter(|rung| rung.rightward).map(|rung| SequenceSegment {
        time_s: seconds(rung),
        from_byte: rung.seq as f64,
        to_byte: rung.seq as f64 + f64::from(rung.len),
        kind: if rung.held_ms.is_some() { SegmentKind::Held } else { SegmentKind::New },
        frame: Some(rung.frame),
        held_ms: rung.held_ms,
    });
    let acks = rungs.iter().filter_map(|rung| Some((seconds(rung), rung.ack? as f64)));
    let sequence =
        TimeSequence { segments: segments.collect(), sent: vec![], acks: acks.collect() };
    Some(Block::plot(
        "The same hold as a time-sequence plot",
        "Each upright bar is a packet of data; the stepped line is what has been acknowledged. The flat bar \
         is the time for which the data waited in the sender: it leaves as the line steps up.",
        sequence,
    ))
}

/// The whole connection over time.
pub(super) fn overview(direction: &Direction) -> Option<Block> {
    let (sent, mut acks) = (points(&direction.plots.data), points(&direction.plots.acks));
    // What was acknowledged last stays so until the end.
    if let (Some((at, acked)), Some((end, _))) = (acks.last().copied(), sent.last().copied())
        && at < end
    {
        acks.push((end, acked));
    }
    (sent.len() > 2).then(|| {
        Block::plot(
            "The whole stream over time",
            "Bytes sent and bytes acknowledged, thinned to a few hundred points. Drag to move, hold Shift and \
             turn the wheel to zoom, double-click for the whole.",
            TimeSequence { segments: vec![], sent, acks },
        )
    })
}

fn points(found: &found::Points) -> Vec<(f64, f64)> {
    found.x.iter().copied().zip(found.y.iter().copied()).collect()
}

/// The distribution of the delay that holding added to each message.
pub(super) fn added_delay(direction: &Direction) -> Option<Block> {
    let found = &direction.plots.delay_cdf;
    if found.x.len() < 2 || direction.stalls.is_empty() {
        return None;
    }
    let points = points(found);
    let delay = &direction.added_delay_ms;
    let source = match delay.source {
        "in_band" => "read from the time stamps that the messages carry",
        "period" => "worked out from the messages’ regular period",
        _ => "taken as the most it can have been, the time since the packet before",
    };
    let mark = |at: f64, name: &str| Mark { at, label: format!("{name} = {} ms", measure(at)) };
    Some(Block::plot(
        "Delay added in the sender",
        format!(
            "How many of the {} messages were late by at most so much, {source}. Without Nagle’s algorithm the \
             line would stand upright at the left.",
            delay.messages
        ),
        Cdf {
            x_title: "added delay (ms)".into(),
            series: vec![CdfSeries { name: "messages".into(), points, straight: false }],
            marks: vec![mark(delay.p50, "p50"), mark(delay.p95, "p95")],
        },
    ))
}

/// How long the receiver took to acknowledge.
pub(super) fn ack_delay(direction: &Direction) -> Option<Block> {
    let found = &direction.plots.ack_delay_histogram;
    let last = found.y.iter().rposition(|count| *count > 0.0)?;
    // Bins are as wide as the first; the mark at 200 ms stays in the picture.
    let width = *found.x.first()?;
    let bins = (last + 1).max((ACK_DELAY_SHOWN_MS / width) as usize);
    let count = |bin: usize| found.y.get(bin).map_or(0, |count| *count as u64);
    let histogram = Histogram {
        x_title: "from the newest data to its ACK (ms)".into(),
        y_title: "acknowledgments".into(),
        edges: (0..=bins).map(|edge| edge as f64 * width).collect(),
        counts: (0..bins).map(count).collect(),
        marks: vec![
            Mark { at: 40.0, label: "40 ms: Linux, Windows 10".into() },
            Mark { at: 200.0, label: "200 ms: Windows 7, QNX".into() },
        ],
    };
    Some(Block::plot(
        "How long the receiver waits before it acknowledges",
        "Pure acknowledgments, as seen at the capture point. A heap just below 40 or 200 ms is the mark of a \
         delayed-ACK timer; the dashed lines show where common systems have theirs.",
        histogram,
    ))
}

/// One way's share of the quickest answer: less than a half, since the host takes some time too.
const LIKELY_SHARE: f64 = 0.49;
/// Packets drawn before the held one.
const RUNGS_BEFORE: usize = 4;
/// Packets drawn after it.
const RUNGS_AFTER: usize = 2;
/// An ACK that took less is not drawn as a wait.
const LATE_ACK_MS: f64 = 5.0;
/// Where the histogram ends at the earliest.
const ACK_DELAY_SHOWN_MS: f64 = 220.0;

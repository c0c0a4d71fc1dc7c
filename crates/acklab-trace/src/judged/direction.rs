//! One direction in the result: facts, inferred policies, stalls and the data for its plots.

use acklab_core::time::Span;
use schemars::JsonSchema;
use serde::Serialize;

use super::plots::{Plots, Points};
use super::stall::{Held, Stall, Stalls};
use crate::flow::DirectionFacts;
use crate::inferred::{
    AddedDelay, Delays, Inference, Lack, Nagle, ReceiverPolicy, UNSEEN, Wait, Writes, Written,
};
use crate::noted::Notes;
use crate::noted::course::CourseFacts;

/// The data from one end to the other, and the acknowledgments it got.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Direction {
    /// Data sender, `ip:port`.
    pub from: String,
    /// Data receiver, `ip:port`.
    pub to: String,
    /// Payload bytes, without retransmissions.
    pub bytes: u64,
    /// Segments with payload.
    pub segments: u64,
    /// Largest segment that may leave (effective MSS), bytes.
    pub mss: u32,
    /// Round trip of the whole path as the capture shows it, milliseconds.
    pub rtt_ms: Option<Spread>,
    /// Round trip from the capture point to the receiver and back, milliseconds, least seen.
    pub rtt_to_receiver_ms: Option<f64>,
    /// Round trip from the capture point to the sender and back, milliseconds, least seen.
    pub rtt_to_sender_ms: Option<f64>,
    /// Acknowledgments of this data.
    pub acks: AckFacts,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Segments that arrived out of order, not sent again.
    pub reordered: u64,
    /// Frames captured twice.
    pub duplicates: u64,
    /// Segments that were acknowledged and are not in the capture, roughly.
    pub missing_segments: u64,
    /// Times the receiver closed its window.
    pub zero_windows: u64,
    /// Whether the sender coalesces small writes.
    pub nagle: Nagle,
    /// How the receiver acknowledges.
    pub receiver_policy: ReceiverPolicy,
    /// What the application wrote.
    pub writes: Writes,
    /// The probability that a write was held for 10 ms or longer.
    pub stalled_probability: f64,
    /// What would decide it, where that is open.
    pub lacks: Option<Lack>,
    /// Held writes by mechanism; empty where none was held.
    pub stalls: Vec<Stall>,
    /// Each of them; not in the JSON, which stays small.
    #[serde(skip)]
    pub held: Vec<Held>,
    /// Each write, where the capture was explained ([`crate::explain`]) and its packets could all be kept; not in the JSON.
    #[serde(skip)]
    pub script: Vec<Written>,
    /// More writes followed.
    #[serde(skip)]
    pub script_cut: bool,
    /// What was noted beside holds, for the causes.
    #[serde(skip)]
    pub(crate) course: CourseFacts,
    /// The direction was too long to keep every packet's record: stalls are counted on its first
    /// part and scaled up to all of it.
    pub sampled: bool,
    /// Held writes that waited less than 10 ms, counted apart.
    pub small_holds: u64,
    /// Waits with another cause, never counted as stalls.
    pub waits: Vec<Wait>,
    /// The delay that holding added, over all messages of the direction.
    pub added_delay_ms: AddedDelay,
    /// The same by the general method, where time stamps in the data gave `added_delay_ms`.
    pub added_delay_estimate_ms: Option<AddedDelay>,
    /// Data for the report's figures.
    pub plots: Plots,
}

impl Direction {
    /// Judges one direction by its notes and what was inferred of them.
    pub(crate) fn of(notes: &Notes<'_>, inference: Inference, course: CourseFacts) -> Self {
        let DirectionFacts { from, to, packets, stream, .. } = notes.facts;
        let Stalls { each: held, by_mechanism: stalls, sampled, small_holds } =
            Stalls::of(notes, &inference);
        let Inference {
            round_trips,
            receiver,
            nagle,
            messages,
            holds,
            certainty,
            missing,
            waits,
            ..
        } = inference;
        let estimate = Delays::estimated(notes, &holds, &messages);
        let stamped = Delays::stamped(notes, &holds, &messages);
        let estimated_too = stamped.is_some().then_some(estimate.added);
        let delays = stamped.unwrap_or(estimate);
        Self {
            from: from.to_string(),
            to: to.to_string(),
            bytes: stream.bytes,
            segments: packets.segments,
            mss: stream.mss,
            rtt_ms: notes.facts.rtt.map(|r| Spread::of([r.min, r.p50, r.p95])),
            rtt_to_receiver_ms: round_trips.near_ms,
            rtt_to_sender_ms: round_trips.far_ms,
            acks: AckFacts::of(notes.facts),
            retransmissions: packets.retransmissions,
            reordered: packets.reordered,
            duplicates: packets.duplicates,
            missing_segments: missing,
            zero_windows: packets.zero_windows,
            nagle,
            receiver_policy: receiver.policy,
            writes: messages.writes(&holds, &notes.content.openings, notes.counts.segments),
            stalled_probability: certainty.stalled,
            lacks: certainty.lacks,
            stalls,
            held,
            script: Vec::new(),
            script_cut: false,
            course,
            sampled,
            small_holds,
            waits,
            added_delay_ms: delays.added,
            added_delay_estimate_ms: estimated_too,
            plots: Plots::of(notes, &holds, &delays.sample),
        }
    }

    /// The same, if it cannot tell, for lack of something, whether any write was held.
    pub(super) fn left_open(self, lacks: Lack) -> Self {
        if self.bytes == 0 {
            return self;
        }
        Self {
            nagle: Nagle::unknown(),
            stalled_probability: UNSEEN,
            lacks: Some(lacks),
            stalls: Vec::new(),
            held: Vec::new(),
            small_holds: 0,
            waits: Vec::new(),
            added_delay_ms: AddedDelay::none(),
            added_delay_estimate_ms: None,
            plots: Plots { ladder: None, delay_cdf: Points::default(), ..self.plots },
            ..self
        }
    }

    /// Held writes of 10 ms or longer.
    pub fn holds(&self) -> u64 {
        self.stalls.iter().map(|s| s.count).sum()
    }

    /// Time in which a write was held, seconds.
    pub fn stalled_s(&self) -> f64 {
        self.stalls.iter().fold(0.0, |sum, s| sum + s.seconds)
    }

    /// The same as a share of the direction's time.
    pub fn stalled_share(&self) -> f64 {
        self.stalls.iter().fold(0.0, |sum, s| sum + s.share_of_time).min(1.0)
    }
}

/// Least, middle and high value of a distribution, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Quantiles")]
#[non_exhaustive]
pub struct Spread {
    /// Least.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

impl Spread {
    fn of(times: [Span; 3]) -> Self {
        let [min, p50, p95] = times.map(Span::as_millis_f64);
        Self { min, p50, p95 }
    }
}

/// Acknowledgments of a direction's data.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct AckFacts {
    /// Packets that only acknowledge.
    pub pure: u64,
    /// Data segments per pure acknowledgment.
    pub segments_per_ack: Option<f64>,
    /// Data segments per acknowledgment, those that rode on data included.
    pub segments_per_ack_or_data: Option<f64>,
    /// MSS-sized amounts of data per pure acknowledgment.
    pub mss_per_ack: Option<f64>,
    /// How long pure ACKs waited at the receiver, from the arrival of the oldest segment that they
    /// acknowledge, milliseconds.
    pub delay_ms: Option<Spread>,
}

impl AckFacts {
    fn of(facts: &DirectionFacts) -> Self {
        let packets = facts.packets;
        let progress = packets.pure_acks + packets.acks_on_data;
        let delay = facts.ack_delay.as_ref();
        Self {
            pure: packets.pure_acks,
            segments_per_ack: facts.segments_per_ack(),
            segments_per_ack_or_data: (progress > 0)
                .then(|| packets.segments as f64 / progress as f64),
            mss_per_ack: facts.mss_per_ack(),
            delay_ms: delay.map(|d| Spread::of([Span::ZERO, d.p50, d.p95])),
        }
    }
}

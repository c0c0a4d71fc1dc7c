//! One connection in the result: facts, inferred policies, stalls and the data for its plots.

use schemars::JsonSchema;
use serde::Serialize;

use super::ladder::Ladder;

/// One connection.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Flow {
    /// Number of the connection, from 0 in order of its first packet (Wireshark's `tcp.stream`).
    pub id: u64,
    /// Both ends, `ip:port`, the one that sent first (the client, where the handshake was seen)
    /// first.
    pub endpoints: [String; 2],
    /// First frame of the connection.
    pub first_frame: u64,
    /// Start, seconds from the first packet of the capture.
    pub start_s: f64,
    /// First to last packet, seconds.
    pub duration_s: f64,
    /// The handshake, where it was captured.
    pub handshake: Option<Handshake>,
    /// Where the capture was taken: near which end, as `ip:port`; `None` if it cannot be told.
    pub captured_near: Option<String>,
    /// The two directions: from the first endpoint, then from the second.
    pub directions: Vec<Direction>,
}

/// What the handshake agreed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Handshake {
    /// Round trip of the whole path, milliseconds.
    pub rtt_ms: f64,
    /// MSS each end announced, client first.
    pub mss: [Option<u16>; 2],
    /// Window scale each end announced, client first.
    pub window_scale: [Option<u8>; 2],
    /// Both ends permit SACK.
    pub sack: bool,
    /// Both ends use timestamps.
    pub timestamps: bool,
}

/// The data from one end to the other, and the acknowledgments it got.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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
    pub rtt_ms: Option<Quantiles>,
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
    /// Times the receiver closed its window.
    pub zero_windows: u64,
    /// Whether the sender coalesces small writes.
    pub nagle: Nagle,
    /// How the receiver acknowledges.
    pub receiver_policy: ReceiverPolicy,
    /// What the application wrote.
    pub writes: Writes,
    /// Held writes by mechanism; empty where none was held.
    pub stalls: Vec<Stall>,
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
pub struct Quantiles {
    /// Least.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

/// Acknowledgments of a direction's data.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
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
    pub delay_ms: Option<Quantiles>,
}

/// Whether the sender holds small segments back.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Nagle {
    /// The finding.
    pub state: NagleState,
    /// `classic` (any unacknowledged byte blocks), `minshall` (only a small segment blocks, as in
    /// Linux), `None` where it cannot be told.
    pub variant: Option<&'static str>,
    /// How sure, 0 to 1.
    pub confidence: f64,
    /// Sentences with numbers.
    pub evidence: Vec<String>,
}

/// Nagle's algorithm at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NagleState {
    /// Small segments wait for the acknowledgment.
    On,
    /// Small segments leave at once (TCP_NODELAY).
    Off,
    /// The traffic never put it to the test often enough.
    Unknown,
}

/// How the receiver times its acknowledgments.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReceiverPolicy {
    /// The likeliest system profile.
    pub profile: Option<&'static str>,
    /// All profiles that fit, where they cannot be told apart.
    pub candidates: Vec<&'static str>,
    /// The timer, milliseconds: the delay (`fixed`), the tick (`tick`) or the least delay
    /// (`adaptive`).
    pub timer_ms: Option<f64>,
    /// How the timer runs.
    pub kind: PolicyKind,
    /// How sure, 0 to 1.
    pub confidence: f64,
    /// Sentences with numbers.
    pub evidence: Vec<String>,
}

/// How a delayed-ACK timer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyKind {
    /// A fixed time after the data arrived.
    Fixed,
    /// At the beats of a clock that runs on its own.
    Tick,
    /// After a time that follows the traffic.
    Adaptive,
    /// No delay seen.
    Immediate,
    /// Too little seen.
    Unknown,
}

/// What the application wrote.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Writes {
    /// Bytes of one message where one size dominates.
    pub message_bytes: Option<u32>,
    /// Time between messages, milliseconds, where they are periodic.
    pub period_ms: Option<f64>,
    /// Messages counted.
    pub messages: Option<u64>,
    /// Where boundaries come from: `framing`, `sizes`, `segments` or `unknown`.
    pub source: &'static str,
    /// The protocol whose framing fits.
    pub protocol: Option<&'static str>,
    /// Exchanges in which a request went out as two or more small writes.
    pub split_writes: u64,
    /// How sure, 0 to 1.
    pub confidence: f64,
}

/// What ended a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// The receiver's delayed-ACK timer.
    DelayedAckTimer,
    /// The queue grew to a full segment.
    MssFilled,
    /// An ordinary acknowledgment: after one round trip, on data, or in the peer's own cycle.
    AckClocked,
}

impl Mechanism {
    /// The name used in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DelayedAckTimer => "delayed_ack_timer",
            Self::MssFilled => "mss_filled",
            Self::AckClocked => "ack_clocked",
        }
    }
}

/// The holds of one mechanism in one direction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Stall {
    /// What ended them.
    pub mechanism: Mechanism,
    /// Segments held, at most since the one before them, 10 ms or longer.
    pub count: u64,
    /// Time in which the oldest held byte waited, summed, seconds.
    pub seconds: f64,
    /// The most it can have been (from the previous segment on), seconds.
    pub seconds_upper: f64,
    /// `seconds` over the direction's duration.
    pub share_of_time: f64,
    /// Delay added to each held message.
    pub added_delay_ms: AddedDelay,
    /// First held segment.
    pub first_frame: u64,
    /// The longest held, worst first, at most 10.
    pub worst_frames: Vec<u64>,
}

/// Distribution of a delay over messages, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct AddedDelay {
    /// Messages counted.
    pub messages: u64,
    /// Of these, messages delayed by 1 ms or more.
    pub delayed: u64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
    /// `in_band` (time stamps in the data), `period` (the writes are periodic) or `upper_bound`
    /// (time since the previous segment).
    pub source: &'static str,
}

/// Waits that are not Nagle's.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Wait {
    /// The cause.
    pub cause: WaitCause,
    /// How many, of 10 ms or longer.
    pub count: u64,
    /// Their sum, seconds.
    pub seconds: f64,
}

/// Why a sender was silent without being held by Nagle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    /// The application had nothing to send.
    Application,
    /// The receiver's window was full.
    Window,
    /// The congestion window was full.
    Congestion,
    /// Lost segments were being repaired.
    LossRecovery,
}

/// Data for the figures of the report; times in seconds from the first packet of the connection.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Plots {
    /// The packets around one typical or the worst hold.
    pub ladder: Option<Ladder>,
    /// Last byte of each data segment over time.
    pub data: Points,
    /// Acknowledgment line over time.
    pub acks: Points,
    /// Added delay per message: value in milliseconds, and the share of messages at or below it.
    pub delay_cdf: Points,
    /// Delay of pure acknowledgments after the newest segment they acknowledge: upper edge of each
    /// bin in milliseconds, and how many.
    pub ack_delay_histogram: Points,
}

/// A list of points as two columns of the same length.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Points {
    /// Horizontal values.
    pub x: Vec<f64>,
    /// Vertical values.
    pub y: Vec<f64>,
}

impl Points {
    /// Adds a point.
    pub fn push(&mut self, x: f64, y: f64) {
        self.x.push(x);
        self.y.push(y);
    }
}

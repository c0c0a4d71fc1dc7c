//! What a replay shows.

use acklab_core::time::Time;

use crate::noted::Notes;
use crate::noted::event::{Event, Kind};

/// A new small segment that left after one ACK had left nothing small (or nothing at all)
/// unacknowledged, or, against Nagle's rule, while something small was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) frame: u64,
    /// When it passed.
    pub(crate) time: Time,
    /// When the segment before it passed.
    pub(crate) before: Time,
    /// Since the sender's last segment or the last ACK, whichever came later, ns.
    pub(crate) silence: u64,
    /// When that ACK passed; of a segment that broke the rule, the one that it did not wait for.
    pub(crate) ack: Option<Time>,
    /// Time from the newest segment that the ACK acknowledged to it and from the oldest, ns; `None` by
    /// Karn.
    pub(crate) ages: Option<[u64; 2]>,
    /// The first data of the peer after that ACK, if any came before the segment.
    pub(crate) peer_after: Option<Time>,
    /// Data of the peer since the segment before.
    pub(crate) asked: Asked,
    /// Where the ACK rode on the last data of the peer: how many more of its messages this one leaves unanswered than the
    /// sender does when it has answered all that it will.
    pub(crate) owing: Option<i64>,
    /// It acknowledges data of the peer that the capture does not hold, and may be the answer to it.
    pub(crate) hears_unseen: bool,
    /// One past its last stream offset.
    pub(crate) end: u64,
    pub(crate) len: u32,
    /// Bytes in flight before the ACK.
    pub(crate) flight_before: u32,
    /// Largest flight seen by then.
    pub(crate) flight_max: u32,
    /// What else is known.
    pub(crate) marks: Marks,
}

/// Data of the peer that came since the sender's segment before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    /// When the first of it came to the sender, who could answer it then; of a departure, if that was before its ACK.
    pub(crate) at: Option<Time>,
    pub(crate) bytes: u32,
}

impl Departure {
    /// From the ACK to the segment, milliseconds; negative where the ACK passed later.
    pub(crate) fn gap_ms(&self) -> Option<f64> {
        Some(self.time.signed_since(self.ack?) as f64 / 1e6)
    }

    /// From the segment before to this one, milliseconds.
    pub(crate) fn interval_ms(&self) -> f64 {
        self.time.since(self.before).as_millis_f64()
    }
}

/// Yes-or-no facts about a [`Departure`].
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of one packet")]
pub(crate) struct Marks {
    /// It left while a small segment was unacknowledged.
    pub(crate) broke: bool,
    /// It did, right behind a full segment: the tail of a large write, which macOS and Windows let go.
    pub(crate) tail: bool,
    /// The ACK carried no data.
    pub(crate) pure: bool,
    /// The segment did not fit the receiver's window before the ACK.
    pub(crate) window: bool,
    /// Lost data was being repaired, or was sent again before this segment was acknowledged.
    pub(crate) recovery: bool,
    /// Lost data had been sent again before it left, and was not acknowledged.
    pub(crate) repairing: bool,
    /// The capture lacks what left just before, or more than a segment of it.
    pub(crate) gap: bool,
}

/// A new segment of exactly one MSS, alone after a pause, with data unacknowledged and no ACK
/// since the segment before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) frame: u64,
    /// When it passed.
    pub(crate) time: Time,
    /// When the segment before it passed.
    pub(crate) before: Time,
    /// Time since the last ACK of this direction's data, ns; `u64::MAX` if none.
    pub(crate) since_ack: u64,
    /// One past its last stream offset.
    pub(crate) end: u64,
    pub(crate) len: u32,
    /// A small segment was unacknowledged.
    pub(crate) small_outstanding: bool,
    /// More data followed at once.
    pub(crate) burst: bool,
    pub(crate) push: bool,
}

/// An acknowledgment that came some time after the data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckRecord {
    /// When it passed.
    pub(crate) time: Time,
    /// Time since the oldest segment it acknowledged passed, ns.
    pub(crate) oldest_age: u64,
    /// Time since the newest segment it acknowledged passed, ns.
    pub(crate) newest_age: u64,
    /// Segments it acknowledged.
    pub(crate) segments: u16,
    /// It carried no data.
    pub(crate) pure: bool,
    /// A small segment was unacknowledged.
    pub(crate) small: bool,
    /// The peer's own data followed at once, so its application had just read: Linux acknowledges
    /// on read (tcp_cleanup_rbuf), and no timer did.
    pub(crate) answered: bool,
}

impl AckRecord {
    /// Whether a delayed-ACK timer can have sent it.
    pub(crate) fn is_timed(&self) -> bool {
        self.pure && self.small && !self.answered
    }
}

/// A silence of the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    /// How long, ns.
    pub(crate) nanos: u64,
    /// Time since the last ACK when it ended, ns; `u64::MAX` if none.
    pub(crate) since_ack: u64,
    /// A small segment ended it.
    pub(crate) small: bool,
    /// The receiver's window had no room before the last ACK.
    pub(crate) blocked: bool,
    /// Lost data was being repaired.
    pub(crate) recovery: bool,
}

/// When the stream reached an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// When the segment passed.
    pub(crate) time: Time,
    /// One past its last stream offset.
    pub(crate) end: u64,
    /// Its bytes; less than since the end of the one before where the capture lacks some.
    pub(crate) len: u32,
    /// Messages complete by then, by their framing; 0 where none fits.
    pub(crate) frames: u64,
}

/// What the capture shows of its own damage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Damage {
    /// Share of the segments, of either host, that the capture does not hold although they were acknowledged.
    pub(crate) missing: f64,
    /// How many that is.
    pub(crate) segments: u64,
    /// How much earlier than its ACK a segment may seem to pass that the ACK let go, milliseconds.
    pub(crate) noise_ms: f64,
    /// Share of the segments that stand behind later ones.
    pub(crate) late: f64,
}

impl Damage {
    /// By the bytes that were acknowledged and never seen.
    pub(super) fn of(notes: &Notes<'_>) -> Self {
        let mss = u64::from(notes.mss().max(1));
        let (seen, missing) = if notes.bulk {
            (notes.counts.segments, notes.facts.stream.unseen_bytes.div_ceil(mss))
        } else {
            Self::count(&notes.events, mss)
        };
        let all = (seen + missing).max(1) as f64;
        let opposite = notes.opposite;
        let bytes = opposite.stream.bytes as f64 / opposite.packets.segments.max(1) as f64;
        let opposite_missing = opposite.stream.unseen_bytes as f64 / bytes.max(1.0);
        let there = opposite_missing / (opposite.packets.segments as f64 + opposite_missing + 1.0);
        let late = notes.facts.packets.reordered as f64 / all;
        Self {
            missing: (missing as f64 / all).max(there),
            segments: missing,
            late,
            noise_ms: noise_ms(&notes.events),
        }
    }

    /// Segments seen and missing.
    fn count(events: &[Event], mss: u64) -> (u64, u64) {
        let (mut next, mut seen, mut missing) = (0, 0u64, 0u64);
        let mut holes: Vec<(u64, u64)> = Vec::new();
        for event in events {
            match event {
                Event::Data(data) => {
                    seen += 1;
                    if matches!(data.kind, Kind::Again | Kind::Late) {
                        holes.retain(|hole| hole.0 < data.offset || hole.1 > data.end());
                    } else if data.kind == Kind::Gap && data.offset > next && next > 0 {
                        holes.push((next, data.offset));
                    }
                    next = next.max(data.end());
                }
                Event::Ack(ack) => {
                    // A hole that is acknowledged was filled by what the capture does not hold.
                    holes.retain(|hole| {
                        let filled = hole.1 <= ack.acked_to;
                        missing += if filled { (hole.1 - hole.0).div_ceil(mss) } else { 0 };
                        !filled
                    });
                    if ack.acked_to > next {
                        missing += if next > 0 { (ack.acked_to - next).div_ceil(mss) } else { 0 };
                        next = ack.acked_to;
                    }
                }
            }
        }
        (seen, missing)
    }
}

/// Times that go backwards, or data behind its own ACK, show a clock that is wrong by milliseconds; without
/// them one that is exact, but for frames that a busy host took in the wrong order.
fn noise_ms(events: &[Event]) -> f64 {
    let backwards = events.windows(2).filter(|pair| pair[1].time() < pair[0].time()).count();
    let behind = events.windows(2).filter(|pair| match (pair[0], pair[1]) {
        (Event::Ack(ack), Event::Data(data)) => ack.acked_to >= data.end(),
        _ => false,
    });
    if (backwards + behind.count()) * NOISY_SHARE > events.len() { NOISY_MS } else { EXACT_MS }
}

/// One pair of packets in so many the wrong way round shows a noisy clock.
const NOISY_SHARE: usize = 50;
/// No clock of captures is worse.
const NOISY_MS: f64 = 5.0;
/// Frames on the way from the network to the clock.
const EXACT_MS: f64 = 0.3;

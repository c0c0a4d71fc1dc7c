//! One held segment, whatever let it go.

use acklab_core::time::Time;

use super::RoundTrips;
use super::replay::{Departure, Fill};

/// One held segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    /// Frame of the segment.
    pub(crate) frame: u64,
    /// When the segment before it passed: the write came later than this.
    pub(crate) before: Time,
    /// When it passed itself.
    pub(crate) release: Time,
    /// When the ACK passed that let it go; for a segment that filled up, the same as `release`.
    pub(crate) ack: Time,
    /// The receiver's own delay of that ACK, milliseconds; `None` for a filled segment, or where
    /// retransmission hides it.
    pub(crate) ack_delay_ms: Option<f64>,
    /// The ACK carried no data.
    pub(crate) pure: bool,
    /// No ACK let it go: the queue reached one MSS.
    pub(crate) filled: bool,
    /// It answers what had come before the segment before it left.
    pub(crate) owing: bool,
    /// Last stream offset of the segment.
    pub(crate) end: u64,
    /// Estimated time of the oldest held write, in terms of the capture point; equals `before` where
    /// it cannot be told.
    pub(crate) written: Time,
    /// How likely it was one.
    pub(crate) probability: f64,
    /// How likely it was one of 10 ms or longer, if it was one.
    pub(crate) long: f64,
    /// What of 10 ms or longer is expected of it, if it was one: how long it lasted, where that counts, milliseconds.
    pub(crate) expected_ms: f64,
    /// The least that it lasted, but for one in twenty, milliseconds.
    pub(crate) least_ms: f64,
}

impl Hold {
    /// The hold of a segment that an ACK let go; `None` where no such ACK was seen.
    pub(super) fn released(d: &Departure, trips: &RoundTrips, probability: f64) -> Option<Self> {
        Some(Self {
            frame: d.frame,
            before: d.before,
            release: d.time,
            ack: d.ack?,
            ack_delay_ms: ack_delay_ms(d, trips),
            pure: d.marks.pure,
            filled: false,
            owing: false,
            end: d.end,
            written: d.before,
            probability,
            long: 1.0,
            expected_ms: 0.0,
            least_ms: 0.0,
        })
    }

    /// The hold of a segment that no ACK in the capture let go.
    pub(super) fn unreleased(d: &Departure, probability: f64) -> Self {
        Self::gathered(d.frame, d.before, d.time, d.end, probability)
    }

    /// The hold of a segment that left at `release`, up to the offset `end`, with what was written since `before`.
    pub(super) fn gathered(
        frame: u64,
        before: Time,
        release: Time,
        end: u64,
        probability: f64,
    ) -> Self {
        Self {
            frame,
            before,
            release,
            ack: release,
            ack_delay_ms: None,
            pure: false,
            filled: false,
            owing: false,
            end,
            written: before,
            probability,
            long: 1.0,
            expected_ms: 0.0,
            least_ms: 0.0,
        }
    }

    /// The hold of a segment that filled up.
    pub(super) fn filled(f: &Fill) -> Self {
        Self {
            frame: f.frame,
            before: f.before,
            release: f.time,
            ack: f.time,
            ack_delay_ms: None,
            pure: false,
            filled: true,
            owing: false,
            end: f.end,
            written: f.before,
            probability: 1.0,
            long: 1.0,
            expected_ms: 0.0,
            least_ms: 0.0,
        }
    }

    /// The same with its oldest write at `written`, as far as that can be.
    pub(super) fn written_at(self, written: Time) -> Self {
        Self { written: written.max(self.before).min(self.release), ..self }
    }

    /// How likely it was one that counts.
    pub(crate) fn counts(&self) -> f64 {
        self.probability * self.long
    }

    /// The most the hold can have lasted: since the segment before, milliseconds.
    pub(crate) fn upper_ms(&self) -> f64 {
        self.release.since(self.before).as_millis_f64()
    }

    /// From the oldest held write to the release, milliseconds.
    pub(crate) fn length_ms(&self) -> f64 {
        self.release.since(self.written).as_millis_f64()
    }
}

/// The receiver's own delay of the ACK: since the oldest segment it acknowledges, whose arrival starts
/// the timer, unless the newest one brought the ACK at once.
fn ack_delay_ms(d: &Departure, trips: &RoundTrips) -> Option<f64> {
    let own = |ns: u64| (ns as f64 / 1e6 - trips.near_ms.unwrap_or(0.0)).max(0.0);
    let [newest, oldest] = d.ages?;
    Some(if own(newest) < BROUGHT_MS { own(newest) } else { own(oldest) })
}

/// What is less likely held than this is left out of the bounds, too.
pub(super) const MAYBE: f64 = 0.05;
/// A message delayed by less than this counts as not delayed.
pub(super) const DELAYED_MS: f64 = 1.0;
/// A hold shorter than this is counted apart.
pub(crate) const SMALL_HOLD_MS: f64 = 10.0;
/// An ACK this soon after a segment was brought by it.
const BROUGHT_MS: f64 = 2.0;

//! The second floor: what follows from the notes of one direction, each answer with its evidence in
//! sentences with numbers; "unknown" is an answer.
//!
//! [`receiver`] says how the receiver times its acknowledgments, [`holds`] which segments an ACK let
//! go, [`fill`] which left because they had filled up, [`riding`] which waited for an ACK on data, [`unreleased`] which
//! for one that was not captured, or for a probe,
//! [`writes`] what the application wrote and when, [`nagle`] whether the sender holds small segments,
//! [`waits`] what its other silences were, and [`script`] each write, for those who play it again. They stand on
//! [`Notes`] and on each other in the order
//! of [`Inference::of`]; nothing here counts seconds or finds words.

mod behind_loss;
mod certainty;
mod delay;
mod fill;
mod gathered;
mod hold;
mod holds;
mod mechanism;
mod nagle;
mod receiver;
mod replay;
mod riding;
mod round_trips;
mod sample;
pub(crate) mod script;
mod unreleased;
mod untested;
mod waits;
mod writes;
mod written;

pub use certainty::Lack;
pub use delay::AddedDelay;
pub use mechanism::Mechanism;
pub use nagle::{Nagle, NagleState};
pub use receiver::{PolicyKind, ReceiverPolicy};
pub use script::Written;
pub use waits::{Wait, WaitCause};
pub use writes::Writes;

pub(crate) use certainty::{Certainty, OPEN, UNSEEN};
pub(crate) use delay::Delays;
pub(crate) use hold::{Hold, SMALL_HOLD_MS};
pub(crate) use receiver::Receiver;
pub(crate) use round_trips::RoundTrips;
pub(crate) use sample::Sample;
pub(crate) use writes::Messages;

use crate::noted::Notes;

/// What was inferred of one direction.
pub(crate) struct Inference {
    pub(crate) round_trips: RoundTrips,
    pub(crate) receiver: Receiver,
    pub(crate) nagle: Nagle,
    pub(crate) messages: Messages,
    /// Every held segment, in order of release.
    pub(crate) holds: Vec<Hold>,
    /// Those that may have been held, though likelier not: what the bounds of the seconds take in.
    pub(crate) maybe: Vec<Hold>,
    pub(crate) certainty: Certainty,
    /// Share of the segments that are missing, late or were sent again: holds that the capture hides.
    pub(crate) damage: f64,
    /// How coarse the clock is that stamped the packets: its step, and its noise by a mean of many, milliseconds.
    pub(crate) clock_ms: f64,
    /// Segments that were acknowledged and never seen.
    pub(crate) missing: u64,
    pub(crate) waits: Vec<Wait>,
}

impl Inference {
    /// First what needs no other answer (round trips, the receiver's timer), then the holds by ACKs,
    /// then the messages and what only they can show, then what all the holds say of the sender.
    pub(crate) fn of(notes: &Notes<'_>) -> Self {
        let by_handshake = RoundTrips::of(notes.facts, notes.opposite);
        let (mut replay, decision) = holds::decide(notes, &by_handshake);
        let round_trips = decision.shorter(by_handshake);
        let receiver = receiver::infer(&replay, &round_trips);
        let arrivals = std::mem::take(&mut replay.arrivals);
        let messages = Messages::of(notes, arrivals, decision.holds.len());
        let mut holds = decision.holds.clone();
        messages.place(&mut holds);
        let mut maybe = decision.maybe.clone();
        let mut take = |holds: &mut Vec<Hold>, found: Vec<Hold>| {
            let (held, open): (Vec<Hold>, Vec<Hold>) =
                found.into_iter().partition(|hold| hold.probability >= 0.5);
            holds.extend(held);
            maybe.extend(open);
        };
        take(&mut holds, riding::find(&replay, &decision, &round_trips, &messages));
        holds.sort_by_key(|h| (h.release, h.frame));
        let by_ack = holds.len();
        take(&mut holds, unreleased::find(&replay, &decision, &round_trips));
        let gathered = gathered::find(notes, &decision, &holds);
        take(&mut holds, gathered);
        let behind = behind_loss::find(notes, &decision, &round_trips, &holds);
        // The same segments, kept since before the loss.
        holds.retain(|hold| !behind.iter().any(|longer| longer.end == hold.end));
        take(&mut holds, behind);
        holds.sort_by_key(|h| (h.release, h.frame));
        let filled = fill::find(notes, &replay, &messages, &round_trips, &decision, &holds);
        let nagle = Nagle::of(notes, &decision, &replay, by_ack, filled.len());
        if filled.is_empty() {
            maybe.extend(fill::open(&replay, &round_trips, &decision, &holds));
        }
        holds.extend(filled);
        holds.sort_by_key(|h| (h.release, h.frame));
        written::place(&mut holds, &replay, &decision, &messages, notes.mss());
        let waits = waits::find(&replay.silences, &round_trips, &holds);
        let certainty = Certainty::of(notes, &replay, &round_trips, &decision, &holds);
        let missing = if notes.facts.packets.segments == 0 { 0 } else { replay.damage.segments };
        let packets = notes.facts.packets;
        let again = packets.retransmissions as f64 / packets.segments.max(1) as f64;
        let damage = decision.damage + again;
        Self {
            round_trips,
            receiver,
            nagle,
            messages,
            holds,
            maybe,
            certainty,
            damage,
            clock_ms: riding::step_ns(&replay) as f64 / 1e6 + replay.damage.noise_ms / NOISES,
            missing,
            waits,
        }
    }
}

/// Of the noise of single stamps so much less is left in a mean of many.
const NOISES: f64 = 10.0;

//! What the inference leaves open: other conversations that the capture may show as well. What they come to with the
//! change is the prediction's interval.

use acklab_trace::diagnosis::{NagleState, Written};

use super::conversation::Place;
use super::replay::{Play, Played, Receiver};
use super::{Change, Refusal, Subject};

/// One other reading of the capture.
pub(super) enum Open<'s> {
    /// The held writes came at their earliest or at their latest.
    Place(Place),
    /// What was held in one segment was two writes: no capture shows the second and third write of a message.
    Twice(Vec<Written>),
    /// Another system or timer that fits as well.
    Receiver(&'s Receiver),
    /// Nagle's algorithm is off, where nothing puts it to the test.
    NoNagle,
}

impl<'s> Open<'s> {
    /// All that `subject` leaves open.
    pub(super) fn of(subject: &'s Subject<'_>) -> Vec<Self> {
        let mut all = vec![Self::Place(Place::Earliest), Self::Place(Place::Latest)];
        let writes = &subject.own.writes;
        let unknown = writes.source == "segments" && writes.period_ms.is_none();
        let twice = if unknown { twice(subject.writes[0]) } else { Vec::new() };
        if twice.len() > subject.writes[0].len() {
            all.push(Self::Twice(twice));
        }
        all.extend(subject.others.iter().take(OTHERS_MAX).map(Self::Receiver));
        if subject.own.nagle.state == NagleState::Unknown {
            all.push(Self::NoNagle);
        }
        all
    }

    /// That conversation with `changes`.
    pub(super) fn play(
        &self,
        subject: &Subject<'_>,
        changes: &[Change],
    ) -> Result<Played, Refusal> {
        let mut play = match self {
            Self::Place(place) => subject.build(subject.writes, *place)?,
            Self::Twice(own) => subject.build([own, subject.writes[1]], Place::Likely)?,
            Self::Receiver(_) | Self::NoNagle => subject.build(subject.writes, Place::Likely)?,
        };
        let found = subject.receiver.as_ref();
        let receiver = if let Self::Receiver(other) = self { Some(*other) } else { found };
        if let Some(receiver) = receiver {
            play.receive_by(receiver);
        }
        if matches!(self, Self::NoNagle) {
            play.change(Change::NoDelay(true)).map_err(|why| Refusal::Change {
                set: Change::NoDelay(true).to_string(),
                why: why.into(),
            })?;
        }
        subject.run(&play, changes)
    }
}

/// The same with each write that was held alone in its segment as two, one right behind the other.
fn twice(writes: &[Written]) -> Vec<Written> {
    let mut all = Vec::with_capacity(2 * writes.len());
    for (i, write) in writes.iter().enumerate() {
        let shares = |other: Option<&Written>| other.is_some_and(|other| other.left == write.left);
        let alone =
            !shares(i.checked_sub(1).and_then(|i| writes.get(i))) && !shares(writes.get(i + 1));
        if write.held && alone && write.bytes >= 2 {
            let mut half = *write;
            half.bytes = write.bytes / 2;
            all.push(half);
            half.bytes = write.bytes - half.bytes;
            all.push(half);
        } else {
            all.push(*write);
        }
    }
    all
}

/// More receivers that fit as well say nothing new.
const OTHERS_MAX: usize = 3;

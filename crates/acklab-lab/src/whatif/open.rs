//! What the inference leaves open: other conversations that the capture may show as well. What they come to with the
//! change is the prediction's interval.

use acklab_trace::diagnosis::{Direction, NagleState, Written};

use super::conversation::Place;
use super::replay::Receiver;

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
    /// All that is left open of `own`, whose writes are these, where `others` explain its delays as well.
    pub(super) fn of(own: &Direction, writes: &[Written], others: &'s [Receiver]) -> Vec<Self> {
        let mut all = vec![Self::Place(Place::Earliest), Self::Place(Place::Latest)];
        let unknown = own.writes.source == "segments" && own.writes.period_ms.is_none();
        let twice = if unknown { twice(writes) } else { Vec::new() };
        if twice.len() > writes.len() {
            all.push(Self::Twice(twice));
        }
        all.extend(others.iter().take(OTHERS_MAX).map(Self::Receiver));
        if own.nagle.state == NagleState::Unknown {
            all.push(Self::NoNagle);
        }
        all
    }
}

/// The same with each write that was held alone in its segment as two, one right behind the other.
fn twice(writes: &[Written]) -> Vec<Written> {
    let mut all = Vec::with_capacity(2 * writes.len());
    for (i, write) in writes.iter().enumerate() {
        let shares = |other: Option<&Written>| other.is_some_and(|other| other.left == write.left);
        let alone =
            !shares(i.checked_sub(1).and_then(|i| writes.get(i))) && !shares(writes.get(i + 1));
        if write.delay_ms() > 0.0 && alone && write.bytes >= 2 {
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

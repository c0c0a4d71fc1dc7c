//! What is left to doubt where no hold was found, and nothing shows that Nagle's algorithm was off.
//!
//! A write that waited for an ACK on data leaves where a program that answers would leave, too. At the sender's kernel the
//! two differ (see [`super::riding`]), further away they do not: then a denial is worth less, the more segments come at
//! that place. Where the framing shows that they carry several messages each, which gathered while they waited or were
//! written at once, nothing can be said. The same, less so, goes for single segments that follow an ACK as a held one
//! would. How often holds were behind each was counted on the tuning half of docs/truth.md.

use super::replay::{Departure, Replay};
use super::{RoundTrips, SMALL_HOLD_MS};
use crate::noted::Notes;
use crate::noted::event::{Event, Kind};
use crate::noted::framing::Framing;

/// The probability that writes were held after all; `None` if it cannot be told.
pub(super) fn doubt(notes: &Notes<'_>, replay: &Replay, trips: &RoundTrips) -> Option<f64> {
    let departures = &replay.departures;
    let Some(far_ms) =
        trips.far_ms.filter(|_| !departures.iter().any(|d| d.marks.broke && !d.marks.tail))
    else {
        return Some(0.0);
    };
    let at_ack = |d: &&Departure| {
        let [early, late] = [0.9 * far_ms - EARLY_MS, 1.15 * far_ms + LATE_MS];
        let near = d.gap_ms().is_some_and(|gap| (early..=late).contains(&gap));
        near && d.interval_ms() >= SMALL_HOLD_MS
    };
    let (bare, riding): (Vec<&Departure>, Vec<&Departure>) =
        departures.iter().partition(|d| d.marks.pure);
    let all = riding.len();
    let riding: Vec<&Departure> = riding.into_iter().filter(at_ack).collect();
    let alike = far_ms >= AWAY_MS && riding.len() >= FEW && riding.len() * 10 >= all * 3;
    if alike && gathered(notes, &riding) * 2 >= riding.len() {
        return None;
    }
    Some(match alike {
        true => RIDING,
        false if bare.iter().any(at_ack) => BARE,
        false => 0.0,
    })
}

/// How many of these segments end two messages or more, by their framing. TLS writes several records at once.
fn gathered(notes: &Notes<'_>, these: &[&Departure]) -> usize {
    let told = |framing: &Framing| framing.protocol != "tls";
    if !notes.content.framing.as_ref().is_some_and(told) {
        return 0;
    }
    let (mut before, mut these, mut several) = (0, these.iter().peekable(), 0);
    for event in &notes.events {
        let Event::Data(data) = event else { continue };
        if !matches!(data.kind, Kind::New | Kind::Gap) {
            continue;
        }
        if these.next_if(|d| d.frame == data.frame).is_some() {
            several += usize::from(data.frames >= before + 2);
        }
        before = data.frames;
    }
    several
}

/// Of directions away from the sender in which three in ten segments behind ACKs on data came as held ones would,
/// writes were held in 17 of 70, all conversations alike; in the field, where answers are commoner, in fewer.
const RIDING: f64 = 0.15;
/// Of those with segments that follow a bare ACK so, in 6 of 57.
const BARE: f64 = 0.1;
/// How much sooner or later than the round trip to the sender.
const EARLY_MS: f64 = 0.5;
const LATE_MS: f64 = 1.5;
/// A capture so far from the sender is none at its kernel.
const AWAY_MS: f64 = 1.0;
/// Fewer segments are no habit.
const FEW: usize = 3;

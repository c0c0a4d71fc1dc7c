//! The ladder of a simulated hold: its times come from the simulation and are exact.

use acklab_core::event::AckReason;
use acklab_core::time::Time;

use super::ladder::{Arrow, ArrowKind, CapturePoint, Hold, Host, Ladder, Note, Side};
use crate::held::HeldExchange;

/// Draws an exchange between two hosts of these names. Time zero is the first segment's departure.
pub fn ladder(exchange: &HeldExchange, sender: String, receiver: String) -> Ladder {
    let ms = |time: Time| time.since(exchange.sent).as_millis_f64();
    let (arrived, acked, released) =
        (ms(exchange.arrived), ms(exchange.acked), ms(exchange.released));
    let arrow = |from, sent_ms, received_ms, label, kind| Arrow {
        from,
        sent_ms,
        received_ms,
        label,
        kind,
        frame: None,
    };
    let ack = match exchange.reason {
        AckReason::Piggyback => "data with the ACK",
        _ => "ACK",
    };
    let first = format!("{} bytes", exchange.bytes);
    let late = format!("{} bytes, late", exchange.held_bytes);
    let mut holds = Vec::new();
    if let Some(first) = exchange.written.first() {
        holds.push(Hold {
            side: Side::Left,
            from_ms: ms(*first),
            to_ms: released,
            label: "held back in the sender".into(),
        });
    }
    if acked - arrived > 0.0 {
        holds.push(Hold {
            side: Side::Right,
            from_ms: arrived,
            to_ms: acked,
            label: "until the receiver acknowledges".into(),
        });
    }
    Ladder {
        left: Host { name: sender, role: "writes and sends".into() },
        right: Host { name: receiver, role: "receives and acknowledges".into() },
        capture: CapturePoint::Simulated,
        arrows: vec![
            arrow(Side::Left, 0.0, arrived, first, ArrowKind::Data),
            arrow(Side::Right, acked, released, ack.into(), ArrowKind::Ack),
            arrow(Side::Left, released, released + arrived, late, ArrowKind::HeldData),
        ],
        holds,
        notes: notes(exchange, ms),
    }
}

/// The writes; where there are many, the first and the last stand for all.
fn notes(exchange: &HeldExchange, ms: impl Fn(Time) -> f64) -> Vec<Note> {
    let note = |at: &Time, label: String| Note { side: Side::Left, at_ms: ms(*at), label };
    let words = "message written";
    match exchange.written.as_slice() {
        [first, .., last] if exchange.written.len() > NOTES_MAX => vec![
            note(first, format!("first of {} {words}", exchange.written.len())),
            note(last, format!("last {words}")),
        ],
        few => few.iter().map(|at| note(at, words.into())).collect(),
    }
}

/// More writes than this would not be read one by one.
const NOTES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use acklab_core::time::Span;

    #[test]
    fn the_bands_are_as_long_as_the_waits() {
        let at = |millis: u64| Time::ZERO + Span::from_millis(1000 + millis);
        let exchange = HeldExchange {
            sent: at(0),
            bytes: 100,
            arrived: at(15),
            acked: at(215),
            reason: AckReason::Timer,
            released: at(230),
            held_bytes: 200,
            written: vec![at(100), at(200)],
        };
        let ladder = ladder(&exchange, "a".into(), "b".into());
        let bands: Vec<_> =
            ladder.holds.iter().map(|hold| (hold.side, hold.from_ms, hold.to_ms)).collect();
        assert_eq!(bands, [(Side::Left, 100.0, 230.0), (Side::Right, 15.0, 215.0)]);
        assert!((ladder.arrows[2].received_ms - 245.0).abs() < 1e-9);
        assert_eq!(ladder.notes.len(), 2);
    }
}

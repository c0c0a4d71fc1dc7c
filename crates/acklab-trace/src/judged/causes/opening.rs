//! Connections that never came about, or were cut off.

use std::collections::BTreeMap;

use acklab_core::time::Span;

use super::cause::{Cause, CauseKind, Conversation};
use super::unreachable;
use crate::flow::{FlowReport, Life, Told};
use crate::segment::Endpoint;

/// What is known of all attempts to reach one server that failed in one way.
struct Attempts {
    count: u64,
    sum: Span,
    longest: Span,
    frame: u64,
    tries: u64,
    told: Option<Told>,
}

/// The connections among `reports` that never came about, by server.
pub(crate) fn unopened<'r, R: 'r>(reports: impl Iterator<Item = &'r FlowReport<R>>) -> Vec<Cause> {
    let mut failed: BTreeMap<(Endpoint, CauseKind), Attempts> = BTreeMap::new();
    for report in reports {
        let Some(kind) = kind(&report.life, report.packets) else { continue };
        let lasted = report.last_time.since(report.first_time);
        let none = Attempts {
            count: 0,
            sum: Span::ZERO,
            longest: Span::ZERO,
            frame: report.first_frame,
            tries: 0,
            told: report.life.unreachable,
        };
        let attempts = failed.entry((report.endpoints[1], kind)).or_insert(none);
        attempts.count += 1;
        attempts.tries += u64::from(report.life.syns);
        attempts.sum += lasted;
        attempts.longest = attempts.longest.max(lasted);
    }
    failed.into_iter().map(|((server, kind), attempts)| cause(server, kind, &attempts)).collect()
}

/// A client that goes on after its SYN was answered, whether the capture holds the answer or not.
fn kind(life: &Life, packets: u64) -> Option<CauseKind> {
    let alone = !life.answered && life.syns > 0;
    let refused =
        life.reset.is_some_and(|reset| reset.by == 1) && packets <= u64::from(life.syns) * 2;
    // One SYN alone may have been answered after the capture's end.
    let silent = packets == u64::from(life.syns) && life.syns > 1;
    let told = life.unreachable.is_some_and(|told| told.of == 0);
    match (alone, refused, told, silent) {
        (true, true, ..) => Some(CauseKind::Refused),
        (true, _, true, _) => Some(CauseKind::Unreachable),
        (true, _, _, true) => Some(CauseKind::NoAnswer),
        _ => None,
    }
}

fn cause(server: Endpoint, kind: CauseKind, attempts: &Attempts) -> Cause {
    let Attempts { count, tries, frame, .. } = *attempts;
    let told = attempts.told.filter(|_| kind == CauseKind::Unreachable);
    let connections = if count == 1 { "connection" } else { "connections" };
    let (proof, remedy) = if let Some(told) = told {
        (
            format!(
                "{count} {connections} to {server} found no answer: {} said that their SYNs do not come there (first in frame {}): {}.",
                told.by,
                told.frame,
                unreachable::words(told.reason)
            ),
            unreachable::remedy(&told, &server.to_string()),
        )
    } else if kind == CauseKind::Refused {
        (
            format!(
                "{count} {connections} to {server} refused: its host answered the SYN with RST (first in frame {frame})."
            ),
            format!(
                "Nothing listens at {server}, its backlog overflows (tcp_abort_on_overflow), or a firewall rejects: look there."
            ),
        )
    } else {
        (
            format!(
                "{tries} SYNs of {count} {connections} to {server} found no answer at all (first in frame {frame}): none came past the \
                 capture point."
            ),
            format!(
                "The host of {server} is down, or a firewall or a route on the way drops packets; capture there to see whether the SYN comes."
            ),
        )
    };
    Cause {
        kind,
        flow: None,
        host: server.to_string(),
        count,
        seconds: attempts.sum.as_secs_f64(),
        longest_ms: attempts.longest.as_millis_f64(),
        frame,
        proof,
        remedy,
    }
}

/// A connection that was cut off: reset before either end had closed.
pub(in super::super) fn cut_off(talk: &Conversation<'_>, life: &Life) -> Option<Cause> {
    let reset = life.reset.filter(|_| !life.fin)?;
    let host = talk.endpoints[reset.by].clone();
    let proof = format!(
        "In frame {} {host} reset the connection, which neither end had closed: what was not yet acknowledged is gone.",
        reset.frame
    );
    let remedy = format!(
        "Look into the program on {host}: it was ended, closed its socket with data unread, or gave up (SO_LINGER 0). Whether {host} \
         sent the RST itself, or something on the way in its name, a capture there tells."
    );
    Some(Cause {
        kind: CauseKind::Reset,
        flow: Some(talk.flow),
        host,
        count: 1,
        seconds: 0.0,
        longest_ms: 0.0,
        frame: reset.frame,
        proof,
        remedy,
    })
}

//! One stalled direction in words: what happens, on which host, how bad it is, and what to change.
//!
//! Written for readers who run a plant or a service and never heard of Nagle. Every sentence is
//! made from numbers in the result; the remedies stand in [`super::remedy`].

use schemars::JsonSchema;
use serde::Serialize;

use super::direction::Direction;
use super::flow::Flow;
use super::protocol::{guess, spoken};
use super::remedy;
use super::stall::Stall;
use crate::inferred::Mechanism;

/// One stalled direction in words.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Finding {
    /// The flow's number.
    pub flow: u64,
    /// The host whose writes were held, `ip:port`.
    pub from: String,
    /// The host that was waited for, `ip:port`.
    pub to: String,
    /// The mechanism that held most.
    pub mechanism: Mechanism,
    /// One line.
    pub headline: String,
    /// What happens, step by step, in plain words.
    pub explanation: String,
    /// What to change on the sending host, best first.
    pub sender_fix: Vec<String>,
    /// What to change on the receiving host, best first.
    pub receiver_fix: Vec<String>,
}

impl Finding {
    pub(super) fn of(flow: &Flow, d: &Direction) -> Self {
        let worst = d
            .stalls
            .iter()
            .max_by(|a, b| a.seconds.total_cmp(&b.seconds))
            .map_or(Mechanism::AckClocked, |s| s.mechanism);
        Self {
            flow: flow.id,
            from: d.from.clone(),
            to: d.to.clone(),
            mechanism: worst,
            headline: headline(d),
            explanation: explanation(d, worst),
            sender_fix: remedy::at_sender(d, role(flow, d)),
            receiver_fix: remedy::at_receiver(d),
        }
    }
}

/// What the program that sends is in the connection.
fn role(flow: &Flow, d: &Direction) -> &'static str {
    match (&flow.handshake, d.from == flow.endpoints[0]) {
        (None, _) => "program",
        (Some(_), true) => "client",
        (Some(_), false) => "server",
    }
}

fn headline(d: &Direction) -> String {
    let (count, seconds, share) = (d.holds(), d.stalled_s(), d.stalled_share());
    let sum = |of: fn(&Stall) -> f64| d.stalls.iter().map(of).sum::<f64>();
    let delay = &d.added_delay_ms;
    let late = if delay.source == "upper_bound" {
        worst_held(&d.stalls)
    } else {
        format!(
            "{} of {} messages were late, by {:.1} ms at the median and {:.1} ms at the 95th percentile",
            delay.delayed, delay.messages, delay.p50, delay.p95
        )
    };
    format!(
        "{} held back its writes to {} {count} time{}, {seconds:.2} s in all (between {:.2} and {:.2}; \
         {:.0} % of the connection's time): {late}",
        d.from,
        d.to,
        if count == 1 { "" } else { "s" },
        sum(|stall| stall.seconds_lower),
        sum(|stall| stall.seconds_upper),
        share * 100.0
    )
}

fn worst_held(stalls: &[Stall]) -> String {
    let most = stalls.iter().max_by_key(|s| s.count);
    let p50 = most.map_or(0.0, |s| s.added_delay_ms.p50);
    let max = stalls.iter().map(|s| s.added_delay_ms.max).fold(0.0, f64::max);
    format!("a held write waited about {p50:.0} ms, at most {max:.0} ms")
}

fn explanation(d: &Direction, mechanism: Mechanism) -> String {
    let how = if d.nagle.is_lockstep() {
        "Its TCP keeps everything back, large segments as well, as long as the one before is not acknowledged: it has \
         one segment under way at a time, as some embedded stacks and proxies do. That is not Nagle's algorithm."
    } else {
        "Its TCP keeps a new piece back as long as the one before is not acknowledged (Nagle's algorithm, on by default)."
    };
    let start = format!("{} {how}", pieces(d));
    let then = match mechanism {
        Mechanism::DelayedAckTimer => delayed_ack_words(d),
        Mechanism::MssFilled => format!(
            "Pieces gather until they fill a whole segment of {} bytes; only then do they leave. No \
             timer limits this wait: the slower the data comes, the longer it takes.",
            d.mss
        ),
        Mechanism::AckClocked if d.rtt_to_receiver_ms.is_none() => format!(
            "Each piece waits for the acknowledgment of the one before. Whether that takes so long for \
             the network's round trip or because {} delays it cannot be told: the connection began \
             before the capture.",
            d.to
        ),
        Mechanism::AckClocked => {
            let rtt = d.rtt_ms.map_or(String::new(), |r| format!(" (round trip {:.1} ms)", r.p50));
            format!(
                "{} acknowledges without a delay worth naming, but each piece still waits \
                 for the acknowledgment of the one before to come back over the network{rtt} or with \
                 {}'s next own packet.",
                d.to, d.to
            )
        }
    };
    let mix = d
        .stalls
        .iter()
        .map(|s| format!("{} by {}", s.count, words(s.mechanism)))
        .collect::<Vec<_>>()
        .join(", ");
    format!("{start} {then} Released: {mix}.")
}

/// What is written, and how: in the protocol's words where it is known.
fn pieces(d: &Direction) -> String {
    let Direction { from, writes, .. } = d;
    let Some(protocol) = writes.protocol.map(spoken) else {
        let guess = guess(d).map_or(String::new(), |guess| format!(" ({guess})"));
        return format!("{from} sends small pieces of data{guess}.");
    };
    let apart = if writes.header_apart { ", the header apart from the body" } else { "" };
    let size = writes.message_bytes.map_or(String::new(), |bytes| format!(" of {bytes} bytes"));
    match (writes.split_writes, writes.messages) {
        (split @ 1.., Some(messages)) if writes.source == "framing" => {
            format!(
                "{from} speaks {protocol} and wrote {split} of its {messages} messages{size} in pieces{apart}."
            )
        }
        (split @ 1.., _) => {
            format!("{from} speaks {protocol} and wrote {split} of its messages in pieces{apart}.")
        }
        _ => format!("{from} speaks {protocol} and sends small messages{size}."),
    }
}

fn words(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::DelayedAckTimer => "the receiver's delayed-ACK timer",
        Mechanism::MssFilled => "a full segment",
        Mechanism::AckClocked => "an ordinary acknowledgment",
    }
}

fn delayed_ack_words(d: &Direction) -> String {
    let timer = match d.receiver_policy.timer_ms {
        Some(ms) => format!(" by up to {ms:.0} ms"),
        None => String::new(),
    };
    format!(
        "{} delays its acknowledgments{timer}, hoping to send them along with its own data (delayed \
         ACK). Neither side is broken; together they add the delay to the data.",
        d.to
    )
}

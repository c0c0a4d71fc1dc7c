//! A link's direction as two queue disciplines: queue and transmitter, then the wire.

use acklab_core::link::{ErrorRate, LinkConfig, Loss, LossModel, Packets};
use acklab_core::time::Span;
use acklab_core::units::BitRate;

use super::queue::{self, ETHERNET, Stage};

/// What stands behind `qdisc add dev NAME` for each stage.
pub(super) struct Stages {
    /// `None` where nothing ever waits.
    pub(super) queue: Option<Stage>,
    /// Empty where the wire does nothing.
    pub(super) wire: Vec<String>,
}

/// The stages of `link`, whose packets have at most `largest` bytes; the reason where the kernel has no part for it.
pub(super) fn stages(link: &LinkConfig, largest: u16) -> Result<Stages, String> {
    let rate = (link.rate != BitRate::INFINITE).then_some(link.rate);
    let mut words = impairments(link)?;
    let queue = rate.map(|rate| queue::lines(&link.queue, rate, largest)).transpose()?;
    // Behind HTB a packet has begun its transmission; the wire adds what that takes.
    let transmits = queue.as_ref().is_some_and(|queue| !queue.transmits);
    if link.jitter > Span::ZERO {
        let half = link.jitter / 2;
        words.insert(0, format!("delay {} {}", time(link.delay + half), time(half)));
    } else if link.delay > Span::ZERO {
        words.insert(0, format!("delay {}", time(link.delay)));
    }
    if transmits || link.jitter > Span::ZERO {
        // netem keeps packets in order where it has a rate.
        let rate = rate.filter(|_| transmits).map_or(FAST, BitRate::as_bps);
        words.push(format!("rate {rate}bit {}", -ETHERNET));
    }
    let wire = if words.is_empty() {
        Vec::new()
    } else {
        vec![format!("root netem limit {MANY} {}", words.join(" "))]
    };
    Ok(Stages { queue, wire })
}

fn impairments(link: &LinkConfig) -> Result<Vec<String>, String> {
    let all = |packets: Packets, what: &str| match packets {
        Packets::All => Ok(()),
        _ => Err(format!("netem chooses among all packets; leave `only` out of {what}")),
    };
    let impairments = &link.impairments;
    let mut words = Vec::new();
    if let Some(Loss { model, packets }) = &impairments.loss {
        all(*packets, "loss")?;
        words.push(match model {
            LossModel::Independent(share) => format!("loss random {}", percent(*share)),
            LossModel::GilbertElliott(chain) => {
                let parts = [chain.to_bad, chain.to_good, chain.loss_in_bad, chain.loss_in_good];
                format!("loss gemodel {}", parts.map(percent).join(" "))
            }
            LossModel::List(_) => return Err("netem cannot lose packets by a list".into()),
        });
    }
    if let Some(duplication) = &impairments.duplication {
        all(duplication.packets, "duplicate")?;
        words.push(format!("duplicate {}", percent(duplication.share.share)));
    }
    if let Some(corruption) = &impairments.corruption {
        all(corruption.packets, "corrupt")?;
        match corruption.rate {
            ErrorRate::PerPacket(share) => words.push(format!("corrupt {}", percent(share))),
            ErrorRate::PerBit(_) => {
                return Err("netem damages packets, not bits; give corrupt a share".into());
            }
        }
    }
    if impairments.reordering.is_some() {
        return Err("netem's reordering is another than this file's; leave `reorder` out".into());
    }
    if !impairments.outages.is_empty() {
        return Err("netem has no outages; leave them out".into());
    }
    Ok(words)
}

/// As tc takes it, to the nanosecond: it knows no ns.
fn time(span: Span) -> String {
    let ns = span.as_nanos();
    format!("{}.{:03}us", ns / 1000, ns % 1000)
}

fn percent(share: f64) -> String {
    format!("{}%", 100.0 * share)
}

/// More packets than any run has on the way.
const MANY: u32 = 1_000_000;
/// A rate that delays nothing, bit/s.
const FAST: u64 = 100_000_000_000;

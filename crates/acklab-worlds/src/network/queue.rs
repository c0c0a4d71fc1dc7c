//! A discipline as the kernel's queue discipline with the same parameters.

use acklab_core::queue::ecn::Treatment;
use acklab_core::queue::{Discipline, Limit, codel, fq_codel, pie};
use acklab_core::units::BitRate;

/// A stage that queues and transmits.
pub(super) struct Stage {
    /// What stands behind `qdisc add dev NAME`.
    pub(super) lines: Vec<String>,
    /// A packet leaves when its transmission ends, and not when it begins.
    pub(super) transmits: bool,
}

/// The stage of `discipline` at `rate`; the reason where the kernel has none.
pub(super) fn lines(discipline: &Discipline, rate: BitRate) -> Result<Stage, String> {
    let inner = match discipline {
        // netem's rate is exact, and its limit counts the packet in transmission.
        Discipline::DropTail(options) if options.limit.bytes == u64::MAX => {
            let limit = options.limit.packets.saturating_add(1);
            let line = format!("root netem limit {limit} rate {}bit {}", rate.as_bps(), -ETHERNET);
            return Ok(Stage { lines: vec![line], transmits: true });
        }
        Discipline::DropTail(options) => format!("bfifo limit {}", options.limit.bytes),
        Discipline::Red(_) => {
            return Err("the kernel's red cannot tell that its queue is idle behind the bucket that gives a link its \
                        rate (red_peek starts no idle period), and then drops nearly everything: use another queue"
                .into());
        }
        Discipline::Codel(options) => codel(options)?,
        Discipline::FqCodel(options) => fq_codel(options)?,
        Discipline::Pie(options) => pie(options)?,
        other => return Err(format!("this kernel has no queue discipline {:?}", other.name())),
    };
    let bucket = format!(
        "root handle 1: stab overhead {} linklayer ethernet tbf rate {}bit burst {BURST} limit {WIDE}",
        -ETHERNET,
        rate.as_bps()
    );
    Ok(Stage { lines: vec![bucket, format!("parent 1: handle 2: {inner}")], transmits: false })
}

fn codel(options: &codel::Options) -> Result<String, String> {
    let limit = packets(options.limit).unwrap_or(MANY);
    let ecn = if options.ecn == Treatment::Drop { " noecn" } else { ecn(options.ecn)? };
    let [target, interval] = [options.target, options.interval].map(|time| time.as_nanos() / 1000);
    Ok(format!("codel limit {limit} target {target}us interval {interval}us{ecn}"))
}

fn fq_codel(options: &fq_codel::Options) -> Result<String, String> {
    let limit = packets(options.limit).unwrap_or(MANY);
    let ecn = if options.ecn == Treatment::Drop { " noecn" } else { ecn(options.ecn)? };
    let [target, interval] = [options.target, options.interval].map(|time| time.as_nanos() / 1000);
    Ok(format!(
        "fq_codel limit {limit} flows {} target {target}us interval {interval}us quantum {}{ecn}",
        options.flows, options.quantum
    ))
}

fn pie(options: &pie::Options) -> Result<String, String> {
    let limit = packets(options.limit).unwrap_or(MANY);
    let [target, update] = [options.target, options.update].map(|time| time.as_nanos() / 1000);
    // The kernel's unit is a sixteenth: alpha 2 and beta 20 are the RFC's 1/8 and 1 1/4 (tc-pie(8)).
    let [alpha, beta] = [options.alpha, options.beta].map(|gain| (16.0 * gain).round() as u32);
    let ecn = ecn(options.ecn)?;
    Ok(format!(
        "pie limit {limit} target {target}us tupdate {update}us alpha {alpha} beta {beta}{ecn}"
    ))
}

fn ecn(treatment: Treatment) -> Result<&'static str, String> {
    match treatment {
        Treatment::Mark => Ok(" ecn"),
        Treatment::Drop => Ok(""),
        Treatment::Exempt => {
            Err("the kernel's disciplines drop what is not ECN-capable; set ecn = \"mark\"".into())
        }
    }
}

/// The limit in packets, where there is one.
const fn packets(limit: Limit) -> Option<u32> {
    if limit.packets == u32::MAX { None } else { Some(limit.packets) }
}

/// Bytes that the bucket holds: one full frame, so that nothing leaves ahead of its time by more.
const BURST: u32 = 1514;
/// Bytes, for a limit that must be given and never binds.
const WIDE: u32 = 1_000_000_000;
const MANY: u32 = 1_000_000;

/// Bytes of an Ethernet header, which files do not count.
pub(super) const ETHERNET: i32 = 14;

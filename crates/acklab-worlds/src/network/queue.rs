//! A discipline as the kernel's queue discipline with the same parameters.
//!
//! The rate is HTB's, of one class: it asks the discipline for a packet when the last one's transmission is over, as a
//! transmitter does. TBF would take each packet out one transmission earlier (`qdisc_peek_dequeued`), and
//! what judges by sojourn, or by what is left, would see other times and another queue than the link has.

use acklab_core::queue::ecn::Treatment;
use acklab_core::queue::{Discipline, Limit, codel, fq_codel, pie};
use acklab_core::units::BitRate;

/// A stage that queues and transmits.
pub(super) struct Stage {
    /// What is added to the interface: `qdisc` or `class`, and what stands behind its name.
    pub(super) lines: Vec<[String; 2]>,
    /// A packet leaves when its transmission ends, and not when it begins.
    pub(super) transmits: bool,
    /// Bytes of a packet of the size by which the discipline tells a queue that is too short to judge.
    pub(super) unit: Option<u16>,
}

/// A discipline behind the rate.
struct Inner {
    line: String,
    unit: Option<u16>,
}

/// The stage of `discipline` at `rate`, where no packet has more than `largest` bytes; the reason where the kernel
/// has none.
pub(super) fn lines(discipline: &Discipline, rate: BitRate, largest: u16) -> Result<Stage, String> {
    let inner = match discipline {
        // netem's rate is exact, and its limit counts the packet in transmission.
        Discipline::DropTail(options) if options.limit.bytes == u64::MAX => {
            let limit = options.limit.packets.saturating_add(1);
            let line = format!("root netem limit {limit} rate {}bit {}", rate.as_bps(), -ETHERNET);
            return Ok(Stage { lines: vec![["qdisc".into(), line]], transmits: true, unit: None });
        }
        Discipline::DropTail(options) => {
            Inner { line: format!("bfifo limit {}", options.limit.bytes), unit: None }
        }
        Discipline::Red(_) => {
            return Err("the kernel's red learns that its queue is idle when it is asked for a packet and has none, \
                        which what gives a link its rate never does; it then drops nearly everything: use another \
                        queue"
                .into());
        }
        Discipline::Codel(options) => codel(options, largest)?,
        Discipline::FqCodel(options) => fq_codel(options, largest)?,
        Discipline::Pie(options) => pie(options)?,
        other => return Err(format!("this kernel has no queue discipline {:?}", other.name())),
    };
    let root =
        format!("root handle 1: stab overhead {} linklayer ethernet htb default 1", -ETHERNET);
    let class = format!(
        "parent 1: classid 1:1 htb rate {0}bit ceil {0}bit burst {BURST} cburst {BURST} quantum 1514",
        rate.as_bps()
    );
    let below = format!("parent 1:1 handle 2: {}", inner.line);
    let lines = [("qdisc", root), ("class", class), ("qdisc", below)];
    let lines = lines.map(|(kind, line)| [kind.into(), line]).to_vec();
    Ok(Stage { lines, transmits: false, unit: inner.unit })
}

fn codel(options: &codel::Options, largest: u16) -> Result<Inner, String> {
    if options.variant != codel::Variant::Rfc8289 {
        return Err("the kernel's codel is RFC 8289's; leave `variant` out".into());
    }
    let limit = packets(options.limit).unwrap_or(MANY);
    let ecn = if options.ecn == Treatment::Drop { " noecn" } else { ecn(options.ecn)? };
    let [target, interval] = [options.target, options.interval].map(|time| time.as_nanos() / 1000);
    let largest = options.max_packet.map_or(largest, |bytes| bytes as u16);
    let line = format!("codel limit {limit} target {target}us interval {interval}us{ecn}");
    Ok(Inner { line, unit: Some(largest) })
}

fn fq_codel(options: &fq_codel::Options, largest: u16) -> Result<Inner, String> {
    let limit = packets(options.limit).unwrap_or(MANY);
    let ecn = if options.ecn == Treatment::Drop { " noecn" } else { ecn(options.ecn)? };
    let [target, interval] = [options.target, options.interval].map(|time| time.as_nanos() / 1000);
    let line = format!(
        "fq_codel limit {limit} flows {} target {target}us interval {interval}us quantum {}{ecn}",
        options.flows, options.quantum
    );
    Ok(Inner { line, unit: Some(largest) })
}

fn pie(options: &pie::Options) -> Result<Inner, String> {
    let &pie::Options { target, update, alpha, beta, mean_packet, delay, ecn, limit, .. } = options;
    let known = pie::Options {
        target,
        update,
        alpha,
        beta,
        mean_packet,
        delay,
        ecn,
        limit,
        ..Default::default()
    };
    if *options != known {
        return Err("the kernel's pie has RFC 8033's safeguards, tuning, burst and ceiling of marks: set limit, target, \
                    update, alpha, beta, mean_packet, delay_from and ecn alone"
            .into());
    }
    let limit = packets(limit).unwrap_or(MANY);
    let [target, update] = [target, update].map(|time| time.as_nanos() / 1000);
    // The kernel's unit is a sixteenth: alpha 2 and beta 20 are the RFC's 1/8 and 1 1/4 (tc-pie(8)).
    let [alpha, beta] = [alpha, beta].map(|gain| (16.0 * gain).round() as u32);
    // It knows no rate: where the file does, the kernel goes by time stamps, its default.
    let estimates = if delay == pie::Delay::Departures { " dq_rate_estimator" } else { "" };
    let line = format!(
        "pie limit {limit} target {target}us tupdate {update}us alpha {alpha} beta {beta}{}{estimates}",
        self::ecn(ecn)?
    );
    // Linux judges no queue of less than two packets of the interface's MTU, which stands for MEAN_PKTSIZE.
    Ok(Inner { line, unit: Some(mean_packet as u16) })
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

/// Bytes that the class may send at once after a pause: what makes up for timers that ring late by some 100 ns, and
/// too little for a packet to leave ahead of its time.
const BURST: u32 = 64;
/// Packets, for a limit that must be given and never binds.
const MANY: u32 = 1_000_000;

/// Bytes of an Ethernet header, which files do not count.
pub(super) const ETHERNET: i32 = 14;

//! A path that carries small segments and not full ones: no router says so (RFC 2923 section 2.1), or the sender does not
//! heed it.

use super::super::direction::Direction;
use super::cause::{Cause, CauseKind, Conversation, hosts};
use crate::flow::{Reason, Told};
use acklab_core::time::Time;

pub(super) fn of(talk: &Conversation<'_>, index: usize, direction: &Direction) -> Option<Cause> {
    let course = &direction.course;
    let stuck = course.stuck?;
    let told = talk.too_big.filter(|told| told.of == index && told.frame < stuck.frame);
    // Only what is longer than all that ever arrived, and no wonder where nothing did.
    let alone = stuck.len > course.acked_len && course.acked_len > 0 && stuck.len >= LEAST;
    if told.is_none() && !alone {
        return None;
    }
    let [from, to] = hosts(direction);
    let freed = stuck.freed.filter(|freed| freed.0 > Time::ZERO);
    let took = freed.map_or(0.0, |(at, _)| at.since(stuck.since).as_secs_f64());
    let end = match freed {
        Some((_, largest)) => {
            format!("it arrived after {took:.2} s, in segments of at most {largest} bytes")
        }
        None => "it never arrived".to_owned(),
    };
    let left = format!(
        "A segment of {} bytes from {from} left {} times (last in frame {})",
        stuck.len, stuck.times, stuck.frame
    );
    let lower = "lower the MTU or the MSS (MSS clamping on the tunnel or router), or set net.ipv4.tcp_mtu_probing=1 on a Linux \
                 sender";
    let (proof, remedy) = match told {
        Some(Told { by, frame, reason: Reason::TooBig { mtu }, .. }) => (
            // A router from before RFC 1191 names no size.
            match mtu {
                0 => format!(
                    "{left}, though {by} had said in frame {frame} that it is too big for the path, without what passes: {end}."
                ),
                _ => format!(
                    "{left}, though {by} had said in frame {frame} that packets of at most {mtu} bytes pass: {end}."
                ),
            },
            format!(
                "The host of {from} does not hear or heed it: let ICMP come to it through firewalls and NAT near it, {lower}."
            ),
        ),
        _ => (
            format!(
                "{left} and was not acknowledged, while segments of up to {} bytes were: {end}. The path to {to} drops what is \
                 larger and says nothing.",
                course.acked_len
            ),
            format!(
                "Let ICMP \"fragmentation needed\" (IPv6: \"packet too big\") pass on the path between {from} and {to}, {lower}."
            ),
        ),
    };
    Some(Cause {
        kind: CauseKind::PathMtu,
        flow: Some(talk.flow),
        host: to.to_owned(),
        count: u64::from(stuck.times),
        seconds: took,
        longest_ms: took * 1e3,
        frame: stuck.frame,
        proof,
        remedy,
    })
}

/// Every path of IPv4 carries 536 bytes (RFC 9293 section 3.7.1).
const LEAST: u32 = 537;

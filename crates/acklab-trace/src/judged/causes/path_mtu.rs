//! A path that carries small segments and not full ones, and no router that says so (RFC 2923 section 2.1).

use super::super::direction::Direction;
use super::cause::{Cause, CauseKind, Conversation, hosts};
use acklab_core::time::Time;

pub(super) fn of(talk: &Conversation<'_>, direction: &Direction) -> Option<Cause> {
    let course = &direction.course;
    let stuck = course.stuck?;
    // Only what is longer than all that ever arrived, and no wonder where nothing did.
    if stuck.len <= course.acked_len || course.acked_len == 0 || stuck.len < LEAST {
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
    let proof = format!(
        "A segment of {} bytes from {from} left {} times (last in frame {}) and was not acknowledged, while segments of up to {} \
         bytes were: {end}. The path to {to} drops what is larger and says nothing.",
        stuck.len, stuck.times, stuck.frame, course.acked_len
    );
    let remedy = format!(
        "Let ICMP \"fragmentation needed\" (IPv6: \"packet too big\") pass on the path between {from} and {to}, lower the MTU or \
         the MSS (MSS clamping on the tunnel or router), or set net.ipv4.tcp_mtu_probing=1 on a Linux sender."
    );
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

//! What to change, on either side.
//!
//! Sources: tcp(7) and ip-route(8) for Linux; Microsoft KB 328890 for TcpAckFrequency; FreeBSD's
//! tcp(4) for delacktime; NetBSD's sysctl(7) for delack_ticks, which QNX inherits; lwIP's opt.h. What each remedy
//! brings on Linux, and costs, is measured in docs/remedies.md.

use super::direction::Direction;
use super::protocol::spoken;
use crate::inferred::{Mechanism, NagleState};

/// Remedies on the sending host, best first; its program is `role` of the connection.
pub(super) fn at_sender(d: &Direction, role: &str) -> Vec<String> {
    let count = d.holds();
    let split = d.writes.split_writes * 2 > count && d.writes.period_ms.is_none();
    let mut fixes = Vec::new();
    if d.nagle.state == NagleState::Off {
        fixes.push(
            "The program sets TCP_NODELAY, but only after the first writes were held: set it right after \
             connect() or accept(), before anything is written."
                .into(),
        );
        return fixes;
    }
    if d.nagle.is_lockstep() {
        fixes.push(
            "TCP_NODELAY changes nothing here. Let its TCP have several segments under way (uIP and similar stacks: a \
             real TCP), or send less often and more at once."
                .into(),
        );
        return fixes;
    }
    if split {
        let how = "build header and body in one buffer, or send both with one writev()/sendmsg()";
        fixes.push(match d.writes.protocol.map(spoken) {
            Some(protocol) if d.writes.header_apart => format!(
                "Write each message in one piece: your {protocol} {role} writes the header apart from the body. \
                 Instead, {how}. Two small writes in a row are what triggers this."
            ),
            _ => format!(
                "Write each message in one piece: {how}. Two small writes in a row are what triggers this."
            ),
        });
    }
    fixes.push(
        "Switch Nagle's algorithm off for this connection: set the socket option TCP_NODELAY right \
         after connect() or accept(). In a product's configuration it is often called \"no delay\" or \
         \"disable Nagle\"."
            .into(),
    );
    fixes.push(format!(
        "Where the program cannot be changed and runs on Linux: `acklab fix --port {} --nodelay` on that host sets \
         TCP_NODELAY from outside.",
        service_port(d)
    ));
    if !split {
        fixes.push(
            "If many pieces belong to one message: collect them yourself (TCP_CORK or MSG_MORE on \
             Linux, TCP_NOPUSH on BSD) and push once at the end."
                .into(),
        );
    }
    fixes
}

/// Remedies on the receiving host, best first; none where its acknowledgments are not the cause of a good part.
pub(super) fn at_receiver(d: &Direction) -> Vec<String> {
    let by_timer = d.stalls.iter().filter(|s| s.mechanism == Mechanism::DelayedAckTimer);
    if by_timer.map(|s| s.seconds).sum::<f64>() < WORTH_IT * d.stalled_s() {
        return Vec::new();
    }
    let policy = &d.receiver_policy;
    let mut names = policy.candidates.clone();
    if let Some(profile) = policy.profile
        && !names.contains(&profile)
    {
        names.push(profile);
    }
    let mut fixes: Vec<String> = Vec::new();
    for name in names {
        if name == "linux" {
            fixes.extend(for_linux(d));
        } else if let Some(fix) = for_profile(name)
            && !fixes.iter().any(|f| f == fix)
        {
            fixes.push(fix.to_owned());
        }
    }
    if fixes.is_empty() {
        fixes.push(
            "Shorten or switch off its delayed ACK (Linux: `ip route change ... quickack 1`; Windows: \
             TcpAckFrequency=1; FreeBSD: net.inet.tcp.delayed_ack=0)."
                .into(),
        );
    }
    fixes
}

/// On Linux, with what each left of a stall of 44 ms on a short path (docs/remedies.md), and the round trip, which stays.
fn for_linux(d: &Direction) -> [String; 3] {
    let port = service_port(d);
    let trip = d.rtt_to_receiver_ms.unwrap_or(0.0) + d.rtt_to_sender_ms.unwrap_or(0.0);
    let left = |ms: f64| {
        if trip < 1.0 {
            return format!("{ms} ms are left");
        }
        format!("{:.0} ms are left, the round trip included", trip + ms)
    };
    let (at_once, bounded, floor) = (left(0.1), left(12.0), left(8.0));
    [
        format!(
            "Linux, without touching the program: `acklab fix --port {port} --quickack` acknowledges at once, by a \
             route with `quickack 1` ({at_once}; an ACK for every segment); `acklab fix --port {port} \
             --delack-max 8ms` bounds the delay ({bounded})."
        ),
        format!(
            "Linux, in the program: set TCP_DELACK_MAX_US once (Linux 6.15 and later; {bounded}), or TCP_QUICKACK \
             again after each read, for it is not permanent ({at_once})."
        ),
        format!(
            "Linux, for the whole host or a route: `sysctl net.ipv4.tcp_rto_min_us=5000` or `ip route change <route> \
             rto_min 5ms` ({floor}), which lowers the retransmission timeout, too: spurious retransmissions where \
             round trips jitter."
        ),
    ]
}

/// The receiver's timer is worth mending from this share of the held time on.
const WORTH_IT: f64 = 0.1;

/// The port that a service listens on, if one of both is: clients take theirs from higher up (RFC 6335 section 6).
fn service_port(d: &Direction) -> u16 {
    let port = |end: &str| end.rsplit(':').next().and_then(|port| port.parse().ok());
    [&d.from, &d.to].into_iter().filter_map(|end| port(end)).min().unwrap_or(0)
}

fn for_profile(name: &str) -> Option<&'static str> {
    Some(match name {
        "windows-10" | "windows-7" | "windows-2012" => {
            "Windows: set TcpAckFrequency=1 (DWORD) under HKLM\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\\
             Parameters\\Interfaces\\{interface} and restart."
        }
        "freebsd-12.1" | "freebsd-12.2" => {
            "FreeBSD: shorten the timer with `sysctl net.inet.tcp.delacktime=<ms>`, or switch it off with \
             `sysctl net.inet.tcp.delayed_ack=0`."
        }
        "qnx-7.0" | "bsd-4.4" | "bsd-slow-timer" => {
            "QNX, NetBSD: `sysctl -w net.inet.tcp.delack_ticks=1` shortens the timer; \
             net.inet.tcp.ack_on_push=1 acknowledges pushed data at once."
        }
        "macos" => "macOS: `sysctl -w net.inet.tcp.delayed_ack=0`.",
        "lwip" | "fixed-tick" => {
            "Embedded stack (lwIP and the like): lower TCP_TMR_INTERVAL, or call tcp_output() / send a reply \
             after each message so that the ACK leaves with it."
        }
        _ => return None,
    })
}

//! The standard mixes of traffic: who sends what, when, over which round trip.
//!
//! RFC 7928 names kinds of traffic and leaves most numbers open; those here are ours and said in the
//! scenario's parameters. The RFC's less-than-best-effort sender is LEDBAT, which is not built in:
//! Vegas stands for it, which yields to queues as LEDBAT does.

use acklab_core::cc::{Algorithm, cubic, vegas};
use acklab_core::time::{Span, Time};
use acklab_sim::app::RequestPattern;
use acklab_sim::arrivals::{Length, Pattern};

use super::parameters::{Mix, Set};

/// What one pair of hosts does.
pub(super) enum Traffic {
    /// A TCP flow that writes all the time.
    Bulk,
    /// A TCP flow that writes as the pattern says.
    Writer(Pattern),
    /// Web pages: the right host asks, the left one answers.
    Web(RequestPattern),
    /// Datagrams that nothing controls.
    Datagrams(Pattern),
}

/// One pair of hosts and what it does.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) traffic: Traffic,
    pub(super) cc: Algorithm,
    /// Initial window, segments.
    pub(super) initial_window: u32,
    pub(super) rtt: Span,
    pub(super) start: Time,
    pub(super) stop: Time,
    /// From right to left.
    pub(super) reverse: bool,
}

/// Who takes part in the mix that was set.
pub(super) fn members(set: &Set) -> Vec<Member> {
    let flows = set.flows as usize;
    let end = Time::ZERO + set.duration;
    let bulk = |index: usize| Member::bulk(set, index, end);
    // Of each pair of flows the second is of the other kind.
    let others = |change: &dyn Fn(&mut Member)| -> Vec<Member> {
        let mut members: Vec<Member> = (0..flows).map(bulk).collect();
        for member in members.iter_mut().skip(1).step_by(2) {
            change(member);
        }
        members
    };
    let with_algorithm = |cc: Algorithm| {
        others(&move |member| {
            member.name = format!("{} {}", cc.name(), member.name);
            member.cc = cc.clone();
        })
    };
    let plus = |mut members: Vec<Member>, more: Vec<Member>| {
        members.extend(more);
        members
    };
    match set.mix {
        Mix::DifferentWindows => others(&|member| {
            member.name = format!("iw10 {}", member.name);
            member.initial_window = 10;
        }),
        Mix::Aggressive => with_algorithm(Algorithm::Cubic(cubic::Options::default())),
        Mix::Background => with_algorithm(Algorithm::Vegas(vegas::Options::default())),
        Mix::Rtt => others(&|member| {
            member.name = format!("other {}", member.name);
            member.rtt = set.other_rtt;
        }),
        Mix::Unresponsive => {
            let share = set.udp_share / 100.0;
            let bps = set.rate.as_bps() as f64 * share;
            let period = Span::from_secs_f64(8.0 * f64::from(FULL_DATAGRAM + UDP_HEADERS) / bps);
            let pattern = Pattern::Constant { period, bytes: FULL_DATAGRAM };
            plus(others(&|_| {}), vec![Member::datagrams("udp", pattern, set, end)])
        }
        Mix::Bursts => plus(others(&|_| {}), bursts(set, end)),
        Mix::VaryingLoad => others(&|member| {
            let third = set.duration / 3;
            member.name = format!("middle {}", member.name);
            member.start = Time::ZERO + third;
            member.stop = Time::ZERO + third * 2;
        }),
        Mix::Together => plus(others(&|_| {}), plus(bursts(set, end), mixed(set, end))),
        Mix::Bidirectional => plus(
            others(&|_| {}),
            (0..flows)
                .map(|index| {
                    let name = format!("back {}", index + 1);
                    Member { name, reverse: true, ..bulk(flows + index) }
                })
                .collect(),
        ),
        Mix::SameWindow => others(&|_| {}),
    }
}

/// Section 7.2: web with an initial window of 10, bursty video, constant-rate datagrams.
fn bursts(set: &Set, end: Time) -> Vec<Member> {
    let web = RequestPattern {
        exchanges: u64::MAX,
        header: 400,
        body: 0,
        gap: Span::ZERO,
        reply: 100_000,
        service: Span::ZERO,
        think: Span::from_secs(1),
    };
    // A second of video at 2 Mbit/s in one write, as a player fetches it.
    let video = Pattern::Constant { period: Span::from_secs(1), bytes: 250_000 };
    let constant = Pattern::Constant { period: Span::from_millis(20), bytes: 1000 };
    vec![
        Member { initial_window: 10, traffic: Traffic::Web(web), ..Member::other("web", set, end) },
        Member {
            initial_window: 10,
            traffic: Traffic::Writer(video),
            ..Member::other("video", set, end)
        },
        Member::datagrams("constant", constant, set, end),
    ]
}

/// Section 9.1, beside the above: voice in both directions and an on/off writer.
fn mixed(set: &Set, end: Time) -> Vec<Member> {
    // G.711: 64 kbit/s in 20 ms of voice, with an RTP header.
    let voice = Pattern::Constant { period: Span::from_millis(20), bytes: 172 };
    let length = Length::Pareto { mean: Span::from_millis(500), shape: 1.5 };
    let on_off =
        Pattern::OnOff { on: length, off: length, period: Span::from_millis(5), bytes: 1000 };
    vec![
        Member::datagrams("voice", voice.clone(), set, end),
        Member { reverse: true, ..Member::datagrams("voice back", voice, set, end) },
        Member { traffic: Traffic::Writer(on_off), ..Member::other("on-off", set, end) },
    ]
}

impl Member {
    /// A flow that writes all the time; each starts a little after the one before.
    fn bulk(set: &Set, index: usize, end: Time) -> Self {
        let flow = Self::other(&format!("flow {}", index + 1), set, end);
        Self { start: Time::ZERO + set.stagger * index as u64, ..flow }
    }

    /// Anything else, from the beginning to the end.
    fn other(name: &str, set: &Set, stop: Time) -> Self {
        Self {
            name: name.to_owned(),
            traffic: Traffic::Bulk,
            cc: set.cc.clone(),
            initial_window: set.iw,
            rtt: set.rtt,
            start: Time::ZERO,
            stop,
            reverse: false,
        }
    }

    fn datagrams(name: &str, pattern: Pattern, set: &Set, end: Time) -> Self {
        Self { traffic: Traffic::Datagrams(pattern), ..Self::other(name, set, end) }
    }
}

/// Payload of a datagram that fills an Ethernet frame, bytes.
const FULL_DATAGRAM: u32 = 1472;
/// IPv4 and UDP headers, bytes.
const UDP_HEADERS: u32 = 28;

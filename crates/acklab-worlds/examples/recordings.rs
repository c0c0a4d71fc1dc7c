//! `make recordings`: what the running kernel does as sender and as receiver, as scripts of packetdrill.
//!
//!     recordings make DIR [WORD]
//!     recordings random DIR [FIRST [COUNT]]
//!
//! `random`: COUNT cases with paths, writes and congestion controls drawn from seeds from FIRST on, for the example
//! `replay` of acklab-packetdrill.
//!
//! Each case is a conversation of two programs over an emulated link; each end becomes a file: its calls and the
//! segments that came to it as events, and the segments that left it as expected packets, with the times at which
//! they were seen on its device. Headers only, without the values of its timestamps. The test
//! `recordings` of acklab-packetdrill plays calls and arrivals to the simulated host and compares what leaves it.

use std::cell::RefCell;
use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use acklab_core::rng::Rng;
use acklab_core::time::Span;
use acklab_host::segment::{Segment, TcpOption, ecn, flag};
use acklab_net::emulate;
use acklab_packetdrill::flags;
use acklab_packetdrill::wire::{self, Content};
use acklab_worlds::truth::lab::{Done, Lab, Side, play};
use acklab_worlds::truth::script::{Call, Case, End, Logged, Step};

const MS: u64 = 1_000_000;
/// What the script's end calls the first value of its timestamps.
const FIRST_STAMP: u32 = 1000;
/// A call that took no longer did not wait.
const AT_ONCE: u64 = MS;

fn main() {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let texts: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let outcome = match texts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["init", parent, ..] => exit(emulate::init::run(parent.parse().unwrap_or(0), &words[2..])),
        ["play", case, end, connects] => match serde_json::from_str::<Case>(case) {
            Ok(case) => exit(play(&case, usize::from(end == "1"), connects == "true")),
            Err(error) => Err(error.to_string()),
        },
        ["make", dir] => make(Path::new(dir), &cases()),
        ["make", dir, word] => {
            let meant: Vec<Case> =
                cases().into_iter().filter(|it| it.name.contains(word)).collect();
            make(Path::new(dir), &meant)
        }
        ["random", dir, ref rest @ ..] => {
            let number =
                |at: usize, usual| rest.get(at).and_then(|n| n.parse().ok()).unwrap_or(usual);
            let first: u64 = number(0, 1);
            let drawn: Vec<Case> = (first..first + number(1, 20)).map(drawn).collect();
            make(Path::new(dir), &drawn)
        }
        _ => Err("usage: recordings make DIR [WORD] | random DIR [FIRST [COUNT]]".to_owned()),
    };
    if let Err(reason) = outcome {
        eprintln!("recordings: {reason}");
        exit(1);
    }
}

/// Which end's data a case is about: the listening end sends it, for its handshake needs no connect.
fn case(name: &str, writes: Vec<Step>, link: [&str; 2], controls: &[(&str, &str)]) -> Case {
    let total: u64 = writes
        .iter()
        .map(|step| if let Step::Write(bytes) = step { u64::from(*bytes) } else { 0 })
        .sum();
    let usual =
        [("tcp_rmem", "4096 131072 6291456"), ("tcp_wmem", "4096 16384 4194304"), ("tcp_ecn", "2")];
    // A control that is set twice has its last value.
    let all = usual.iter().chain(controls).map(|&(n, v)| (n.to_owned(), v.to_owned()));
    let end = |steps| End {
        tracks: vec![steps],
        nodelay: true,
        controls: all.clone().collect(),
        congestion: Some(if name.ends_with("reno") { "reno" } else { "cubic" }.to_owned()),
        ..End::default()
    };
    Case {
        name: name.to_owned(),
        pattern: String::new(),
        ends: [end(vec![Step::Read(total)]), end(writes)],
        closes: 1,
        link: link.map(str::to_owned),
        seed: 7,
    }
}

fn each(count: u32, bytes: u32, apart: u64) -> Vec<Step> {
    (0..count)
        .flat_map(|index| [Step::Until(u64::from(index) * apart), Step::Write(bytes)])
        .collect()
}

/// Arrivals of the first link come to the sender.
fn cases() -> Vec<Case> {
    let bulk = || vec![Step::Write(50_000); 4];
    let plain = "delay 20ms";
    let mut idle = bulk();
    idle.truncate(2);
    idle.push(Step::Sleep(1500 * MS));
    idle.extend([Step::Write(50_000); 2]);
    let rate = "delay 20ms rate 10mbit limit 100ms";
    let ecn = "delay 20ms rate 5mbit limit 300ms queue codel target 5ms ecn mark";
    let mut asks = case("ping-pong", Vec::new(), [plain, plain], &[]);
    asks.ends[0].tracks = vec![
        (0..20).flat_map(|_| [Step::Write(60), Step::Read(200), Step::Sleep(7 * MS)]).collect(),
    ];
    asks.ends[1].tracks = vec![(0..20).flat_map(|_| [Step::Read(60), Step::Write(200)]).collect()];
    vec![
        case("small-messages", each(150, 100, 5 * MS), ["delay 50ms"; 2], &[]),
        case("small-messages-lossy", each(200, 100, 5 * MS), ["delay 50ms loss 2%"; 2], &[]),
        case("bulk-lossy", bulk(), [plain, "delay 20ms rate 10mbit limit 100ms loss 1%"], &[]),
        case("bulk-lossy-reno", bulk(), [plain, "delay 20ms rate 10mbit limit 100ms loss 1%"], &[]),
        case("application-limited", each(12, 20_000, 60 * MS), [plain, rate], &[]),
        case("idle-restart", idle, [plain, rate], &[]),
        case("reordering", bulk(), [plain, "delay 20ms rate 10mbit limit 100ms reorder 3%"], &[]),
        case("ecn", bulk(), [plain, ecn], &[("tcp_ecn", "1")]),
        asks,
    ]
}

/// A case of a seed: what one may meet between two programs.
fn drawn(seed: u64) -> Case {
    let random = RefCell::new(Rng::named(seed, "recordings"));
    let number = |from: u32, to: u32| from + random.borrow_mut().below(u64::from(to - from)) as u32;
    let one_of = |all: &[&str]| all[number(0, all.len() as u32) as usize].to_owned();
    let delay = one_of(&["2ms", "10ms", "20ms", "50ms", "100ms"]);
    let jitter = one_of(&["", "", "", " 3ms", " 10ms"]);
    let rate = one_of(&["", " rate 2mbit", " rate 10mbit", " rate 50mbit"]);
    let room = one_of(&[" limit 20ms", " limit 50ms", " limit 100ms", " limit 300ms"]);
    let room = if rate.is_empty() { "" } else { &room };
    let losses = ["", "", " loss 0.5%", " loss 2%", " loss 8%", " loss gemodel 1% 30%"];
    let (loss, back) = (one_of(&losses), one_of(&losses));
    let odd = one_of(&["", "", "", " reorder 1%", " reorder 5%", " duplicate 2%"]);
    let there = format!("delay {delay}{jitter}{rate}{room}{loss}{odd}");
    let back = format!("delay {delay}{back}");
    let congestion = one_of(&["reno", "cubic"]);
    let writes = match number(0, 4) {
        0 => vec![Step::Write(number(20_000, 100_000)); number(2, 6) as usize],
        1 => each(number(20, 200), number(20, 3000), u64::from(number(1, 30)) * MS),
        2 => each(number(3, 15), number(3000, 40_000), u64::from(number(20, 200)) * MS),
        _ => (0..number(5, 40))
            .flat_map(|_| {
                [Step::Write(number(1, 20_000)), Step::Sleep(u64::from(number(0, 80)) * MS)]
            })
            .collect(),
    };
    let on = |at: u32| if at == 0 { "0" } else { "1" };
    let (sack, stamps) = (on(number(0, 6)), on(number(0, 4)));
    let controls = [("tcp_sack", sack), ("tcp_timestamps", stamps)];
    let name = format!("random-{seed}-{congestion}");
    Case { seed, ..case(&name, writes, [&back, &there], &controls) }
}

fn make(folder: &Path, cases: &[Case]) -> Result<(), String> {
    let lab = Lab {
        program: env::current_exe().map_err(|error| error.to_string())?,
        init: "init",
        play: "play",
        // Whatever came is what the kernel answered.
        max_lateness: Span::from_secs(1),
        interrupted: Arc::new(AtomicBool::new(false)),
    };
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    for case in cases {
        let done = lab.run(case).map_err(|error| format!("{}: {error}", case.name))?;
        for (index, end) in ["receiver", "sender"].into_iter().enumerate() {
            let text = recording(case, index, &done)?;
            let path = folder.join(format!("{}-{end}.pkt", case.name));
            println!("{}: {} lines, {} B", path.display(), text.lines().count(), text.len());
            fs::write(path, text).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// One end of a conversation as a script.
fn recording(case: &Case, end: usize, done: &Done) -> Result<String, String> {
    let side = &done.sides[end];
    let controls = &case.ends[end].controls;
    let mut text = String::new();
    let _ = writeln!(text, "// Recorded of Linux {}: {}.", done.kernel, case.name);
    let _ = writeln!(text, "// Link to the receiver: {}; back: {}.", case.link[1], case.link[0]);
    let mut known: Vec<&str> = Vec::new();
    for (name, value) in controls.iter().rev() {
        if !known.contains(&name.as_str()) {
            let _ = writeln!(text, "`sysctl -q net.ipv4.{name}=\"{value}\"`");
            known.push(name);
        }
    }
    if let Some(name) = &case.ends[end].congestion {
        let _ = writeln!(text, "`sysctl -q net.ipv4.tcp_congestion_control={name}`");
    }
    let connects = end == 0;
    text.push_str("0.0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n");
    if !connects {
        text.push_str("0.0 bind(3, ..., ...) = 0\n0.0 listen(3, 1) = 0\n");
    }
    let numbers = Numbers::new(side, connects)?;
    let socket = if connects { 3 } else { 4 };
    if connects {
        text.push_str("0.0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n");
        text.push_str("0.1 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n");
    }
    let mut calls: Vec<&Logged> = side.log.iter().collect();
    calls.sort_by_key(|call| instant(call));
    let mut calls = calls.into_iter().peekable();
    let mut is_open = false;
    for (at, bytes) in &side.frames {
        let at = at.as_nanos();
        let Some(segment) = segment(bytes) else { continue };
        while let Some(call) = calls.next_if(|call| is_open && instant(call) <= at) {
            text.push_str(&numbers.call(call, socket));
        }
        let leaves = (segment.src.port == numbers.listener) != connects;
        text.push_str(&numbers.line(at, &segment, leaves));
        if !is_open && !leaves && (connects || !segment.has(flag::SYN)) {
            is_open = true;
            let at = numbers.time(at);
            if connects {
                let _ = writeln!(text, "{at} fcntl(3, F_SETFL, O_RDWR) = 0");
            } else {
                let _ = writeln!(text, "{at} accept(3, ..., ...) = 4");
            }
            let _ = writeln!(text, "{at} setsockopt({socket}, SOL_TCP, TCP_NODELAY, [1], 4) = 0");
        }
    }
    Ok(text)
}

fn segment(bytes: &[u8]) -> Option<Segment> {
    match wire::read(bytes, 0)?.content {
        Content::Segment(segment) => Some(segment),
        Content::Datagram(_) | Content::Icmp(_) => None,
    }
}

/// When a call did what it did: a read when it returned.
const fn instant(call: &Logged) -> u64 {
    if let Call::Read(_) = call.call { call.done } else { call.at }
}

/// What the script calls times and numbers.
struct Numbers {
    start: u64,
    listener: u16,
    /// Initial sequence numbers and first values of timestamps, of the host and of its peer.
    host: (u32, u32),
    peer: (u32, u32),
}

impl Numbers {
    fn new(side: &Side, connects: bool) -> Result<Self, String> {
        let segments = || side.frames.iter().filter_map(|(at, bytes)| Some((at, segment(bytes)?)));
        let of = |answers: bool| {
            let wanted = if answers { flag::SYN | flag::ACK } else { flag::SYN };
            segments().find(|(_, s)| s.flags & (flag::SYN | flag::ACK) == wanted)
        };
        let (Some((start, syn)), Some((_, answer))) = (of(false), of(true)) else {
            return Err("no handshake".to_owned());
        };
        let first = |s: &Segment| (s.seq, s.stamp().map_or(0, |(value, _)| value));
        let (host, peer) = if connects { (&syn, &answer) } else { (&answer, &syn) };
        Ok(Self {
            start: start.as_nanos() - 100 * MS,
            listener: syn.dst.port,
            host: first(host),
            peer: first(peer),
        })
    }

    fn time(&self, at: u64) -> String {
        format!("{:.6}", at.saturating_sub(self.start) as f64 / 1e9)
    }

    fn call(&self, call: &Logged, socket: u32) -> String {
        let (at, done) = (self.time(instant(call)), self.time(call.done));
        match call.call {
            Call::Write(bytes) if call.done - call.at > AT_ONCE => {
                format!("{at}...{done} write({socket}, ..., {bytes}) = {bytes}\n")
            }
            Call::Write(bytes) => format!("{at} write({socket}, ..., {bytes}) = {bytes}\n"),
            Call::Read(bytes) => {
                format!("{at} recv({socket}, ..., {bytes}, MSG_DONTWAIT) = {bytes}\n")
            }
            Call::Close => format!("{at} shutdown({socket}, SHUT_WR) = 0\n"),
            Call::Nodelay(_) | Call::WriteMore(_) => unreachable!("no case has it"),
        }
    }

    /// A segment as a line of a script; of one that leaves the host the value of its timestamps is 0.
    fn line(&self, at: u64, segment: &Segment, leaves: bool) -> String {
        let (own, other) = if leaves { (self.host, self.peer) } else { (self.peer, self.host) };
        let mut text = format!("{} {} ", self.time(at), if leaves { '>' } else { '<' });
        match segment.ecn {
            ecn::ECT0 => text.push_str("[ect0] "),
            ecn::ECT1 => text.push_str("[ect1] "),
            ecn::CE => text.push_str("[ce] "),
            _ => {}
        }
        text.push_str(&flags(segment.flags));
        let seq = segment.seq.wrapping_sub(own.0);
        let _ = write!(text, " {seq}:{}({})", seq.wrapping_add(segment.len), segment.len);
        if segment.has(flag::ACK) {
            let _ = write!(text, " ack {}", segment.ack.wrapping_sub(other.0));
        }
        let _ = write!(text, " win {}", segment.window);
        let options: Vec<String> = segment
            .options
            .iter()
            .map(|option| match option {
                TcpOption::Nop => "nop".to_owned(),
                TcpOption::Mss(mss) => format!("mss {mss}"),
                TcpOption::Scale(shift) => format!("wscale {shift}"),
                TcpOption::SackOk => "sackOK".to_owned(),
                TcpOption::Sack(blocks) => {
                    let edge = |edge: u32| edge.wrapping_sub(other.0);
                    let list = blocks.iter().map(|&(l, r)| format!("{}:{}", edge(l), edge(r)));
                    format!("sack {}", list.collect::<Vec<_>>().join(" "))
                }
                TcpOption::Stamp(value, echo) => self.stamps(*value, *echo, leaves),
                other => format!("{other:?}"),
            })
            .collect();
        if !options.is_empty() {
            let _ = write!(text, " <{}>", options.join(","));
        }
        text + "\n"
    }

    /// The script counts the host's clock from 1, and 0 is no echo.
    fn stamps(&self, value: u32, echo: u32, leaves: bool) -> String {
        let of_peer = |value: u32| value.wrapping_sub(self.peer.1).wrapping_add(FIRST_STAMP);
        let of_host = |value: u32| value.wrapping_sub(self.host.1).wrapping_add(1);
        if leaves {
            format!("TS val 0 ecr {}", if echo == 0 { 0 } else { of_peer(echo) })
        } else {
            format!("TS val {} ecr {}", of_peer(value), if echo == 0 { 0 } else { of_host(echo) })
        }
    }
}

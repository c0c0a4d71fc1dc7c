//! A script's run: its events in their order, the host in between, time that nobody waits for.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use acklab_host::errno;
use acklab_host::host::Host;
use acklab_host::info::tcp_info;
use acklab_host::segment::{Place, flag};
use acklab_host::settings::{MS, SECOND, Us};
use acklab_host::tcp::State;

use crate::call::{Caller, Pending, Progress, Trouble};
use crate::expression::{self, Datum, Fault, Names};
use crate::flow::{Flow, flags};
use crate::script::{Event, Icmp, Kind, Packet, Script, When, parse_with};
use crate::shell::{self, Surroundings};
use crate::symbols;

/// What a run may be told from outside.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Options as a script's head has them; they come before the script's own.
    pub options: Vec<(String, String)>,
    /// Names and their values (`-D`).
    pub defined: Vec<(String, String)>,
}

/// How a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every event was as expected.
    Pass,
    /// One was not.
    Fail,
    /// A construct is not supported.
    Unsupported,
}

impl Verdict {
    /// As in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unsupported => "unsupported",
        }
    }
}

/// A script's result.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub verdict: Verdict,
    /// The line that decided it; 0: none.
    pub line: usize,
    /// Why.
    pub message: String,
    /// What happened last, on both sides.
    pub timeline: Vec<String>,
}

/// When scripts begin: the clock of time stamps is not at 0 then.
const START: Us = 100 * SECOND;
/// Tolerance of times, where the script sets none.
const TOLERANCE: Us = 4 * MS;
/// Nothing is waited for longer.
const PATIENCE: Us = 3 * 3600 * SECOND;
/// Lines of the timeline that are kept.
const TIMELINE: usize = 400;

/// Why a run ended early.
#[derive(Clone, Debug)]
struct Stop {
    verdict: Verdict,
    line: usize,
    message: String,
}

fn fail<T>(line: usize, message: impl Into<String>) -> Result<T, Stop> {
    Err(Stop { verdict: Verdict::Fail, line, message: message.into() })
}

fn unsupported<T>(line: usize, message: impl Into<String>) -> Result<T, Stop> {
    Err(Stop { verdict: Verdict::Unsupported, line, message: message.into() })
}

/// Runs a script's text; `folder` is where files beside it are looked for.
pub fn run(text: &str, folder: &Path, settings: &Settings) -> Outcome {
    let script = match parse_with(text, &settings.defined) {
        Ok(script) => script,
        Err(error) => {
            return Outcome {
                verdict: Verdict::Unsupported,
                line: error.line,
                message: error.message,
                timeline: Vec::new(),
            };
        }
    };
    let mut runner = Runner::new(folder);
    let result = runner.whole(&script, settings);
    let (verdict, line, message) = match result {
        Ok(()) => (Verdict::Pass, 0, String::new()),
        Err(stop) => (stop.verdict, stop.line, stop.message),
    };
    Outcome { verdict, line, message, timeline: runner.timeline.into_iter().collect() }
}

struct Runner<'a> {
    caller: Caller,
    flow: Option<Flow>,
    folder: &'a Path,
    tolerance: Us,
    now: Us,
    /// Time of the last event.
    base: Us,
    /// A blocking call under way: its line and when it has to end.
    pending: Option<(usize, Pending, Option<Us>)>,
    timeline: VecDeque<String>,
    next_remote: u16,
}

impl<'a> Runner<'a> {
    fn new(folder: &'a Path) -> Self {
        let caller = Caller {
            host: Host::new(0x1234_5678),
            files: BTreeMap::new(),
            defined: BTreeMap::new(),
            local: Place { host: 1, port: 8080 },
            remote: Place { host: 2, port: 8080 },
            subject: None,
            changed: false,
            start: START,
        };
        Self {
            caller,
            flow: None,
            folder,
            tolerance: TOLERANCE,
            now: START,
            base: START,
            pending: None,
            timeline: VecDeque::new(),
            next_remote: 50_000,
        }
    }

    fn whole(&mut self, script: &Script, settings: &Settings) -> Result<(), Stop> {
        for (name, value) in settings.options.iter().chain(&script.options) {
            self.option(name, value)?;
        }
        let v6 = self.caller.host.route.ip_header == 40;
        let names = [
            ("CMSG_LEVEL_IP", if v6 { 41 } else { 0 }),
            ("CMSG_TYPE_RECVERR", if v6 { 25 } else { 11 }),
        ];
        for (name, value) in names {
            self.caller.defined.entry(name.to_owned()).or_insert(value);
        }
        for (name, value) in &settings.defined {
            if name == "TFO_COOKIE" {
                // The runner of a suite knows which cookie its addresses get.
                let bytes = (0..value.len() / 2).map(|i| value.get(2 * i..2 * i + 2));
                let bytes = bytes.map(|b| u8::from_str_radix(b?, 16).ok());
                self.caller.host.fastopen_cookie = bytes.flatten().collect();
            } else if self.define(name, value).is_err()
                && !value.bytes().all(|b| b.is_ascii_hexdigit())
            {
                return unsupported(0, format!("the definition {name}={value}"));
            }
        }
        for (line, command) in &script.setup {
            self.command(*line, command)?;
        }
        if script.events.is_empty() {
            return unsupported(0, "the script has no events");
        }
        for event in &script.events {
            self.event(event)?;
        }
        self.end(script)
    }

    fn define(&mut self, name: &str, value: &str) -> Result<(), Stop> {
        let number = value
            .parse()
            .ok()
            .or_else(|| value.strip_prefix("0x").and_then(|h| i64::from_str_radix(h, 16).ok()))
            .or_else(|| symbols::value(value));
        let Some(number) = number else {
            return unsupported(0, format!("the definition {name}={value}"));
        };
        self.caller.defined.insert(name.to_owned(), number);
        Ok(())
    }

    fn option(&mut self, name: &str, value: &str) -> Result<(), Stop> {
        let bad = || Stop {
            verdict: Verdict::Unsupported,
            line: 0,
            message: format!("the option --{name}={value}"),
        };
        let route = &mut self.caller.host.route;
        match name {
            "tolerance_usecs" => self.tolerance = value.parse().map_err(|_| bad())?,
            "mtu" => route.device_mtu = value.parse().map_err(|_| bad())?,
            "ip_version" => match value {
                "ipv4" | "ipv4-mapped-ipv6" => route.ip_header = 20,
                "ipv6" => route.ip_header = 40,
                _ => return Err(bad()),
            },
            "define" => {
                let (name, value) = value.split_once('=').ok_or_else(bad)?;
                self.define(name, value)?;
            }
            "connect_port" => self.caller.remote.port = value.parse().map_err(|_| bad())?,
            "bind_port" => self.caller.local.port = value.parse().map_err(|_| bad())?,
            // Of the program that runs scripts on a kernel; nothing that the host does depends on them. The MSS
            // that the host announces is its device's.
            "mss" | "local_ip" | "remote_ip" | "gateway_ip" | "netmask_ip" | "init_scripts"
            | "speed" | "verbose" | "debug" | "dry_run" | "non_fatal" | "tcp_ts_tick_usecs"
            | "send_omit_free" | "strict_segments" | "tolerance_percent" | "strict"
            | "so_filename" | "so_flags" => {}
            _ => return Err(bad()),
        }
        Ok(())
    }

    fn command(&mut self, line: usize, command: &str) -> Result<(), Stop> {
        let before = self.caller.host.route.mtu();
        let mut around = Surroundings {
            sysctls: &mut self.caller.host.sysctls,
            route: &mut self.caller.host.route,
            folder: self.folder,
        };
        let slept = match shell::run(command, &mut around, 0) {
            Ok(slept) => slept,
            Err(what) => return unsupported(line, what),
        };
        let _ = before;
        if slept > 0 {
            let until = self.now + slept;
            self.advance(line, until)?;
        }
        Ok(())
    }

    /// The time of an event: its beginning, and its end where it is a range.
    fn time_of(&self, when: When) -> (Option<Us>, Option<Us>) {
        match when {
            When::Any => (None, None),
            When::At { relative, from, to } => {
                let origin = if relative { self.base } else { START };
                (Some(origin + from), to.map(|to| origin + to))
            }
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), Stop> {
        let (at, to) = self.time_of(event.when);
        let line = event.line;
        if let Kind::Packet(packet) = &event.kind
            && !packet.inbound
        {
            return self.expect(line, packet, at, to);
        }
        if let Some(at) = at {
            self.advance(line, at)?;
            let latest = to.unwrap_or(at) + self.tolerance;
            if self.now > latest {
                return fail(
                    line,
                    format!(
                        "the event is due at {} and it is {}",
                        Self::show(at),
                        Self::show(self.now)
                    ),
                );
            }
        }
        match &event.kind {
            Kind::Packet(packet) => self.inject(line, packet)?,
            Kind::Call(_) => self.call(event, at)?,
            Kind::Command(command) => {
                self.note(line, format!("`{}`", command.trim().lines().next().unwrap_or("")));
                self.command(line, command)?;
            }
            Kind::Code(code) => self.assert(line, code)?,
        }
        self.base = match (at, to) {
            (Some(at), None) => at,
            _ => self.now,
        };
        Ok(())
    }

    fn show(at: Us) -> String {
        format!("{:.6} s", (at as f64 - START as f64) / SECOND as f64)
    }

    fn note(&mut self, line: usize, what: impl std::fmt::Display) {
        if self.timeline.len() == TIMELINE {
            self.timeline.pop_front();
        }
        let place = if line > 0 { format!("line {line}") } else { String::new() };
        self.timeline.push_back(format!("{:>13}  {place:<9} {what}", Self::show(self.now)));
    }
}

/// Time.
impl Runner<'_> {
    /// What the host sent is sorted to the script's connection.
    fn drain(&mut self) {
        while let Some((at, segment)) = self.caller.host.wire.pop_front() {
            let Some(flow) = self.flow.as_mut().filter(|flow| flow.has(&segment)) else { continue };
            flow.push(at, segment.clone());
            let text = flow.show(&segment);
            self.note(0, format!("host > {text}"));
        }
    }

    /// The next instant at which something happens by itself.
    fn next_deadline(&self) -> Option<Us> {
        let host = self.caller.host.deadline();
        let call = self.pending.as_ref().and_then(|(_, p, _)| self.wake_of(p));
        match (host, call) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn wake_of(&self, pending: &Pending) -> Option<Us> {
        // A poll that times out, and a close that lingers.
        let value = match pending.call.name.as_str() {
            "poll" => pending.call.args.get(2),
            "epoll_wait" => pending.call.args.get(3),
            "close" => {
                let index = usize::try_from(pending.taken - 1).ok()?;
                let linger = self.caller.host.sockets.get(index)?.tcp.opt.linger?;
                return Some(pending.began + linger).filter(|&at| at > self.now);
            }
            _ => None,
        }?;
        let timeout = self.caller.number(value).ok().filter(|&t| t >= 0)?;
        Some(pending.began + timeout as Us * MS).filter(|&at| at > self.now)
    }

    /// One step to the next deadline before `limit`; returns whether there was one.
    fn step(&mut self, line: usize, limit: Us) -> Result<bool, Stop> {
        let Some(next) = self.next_deadline().filter(|&next| next < limit) else {
            return Ok(false);
        };
        let next = next.max(self.now);
        self.now = next;
        self.caller.host.advance(next);
        self.drain();
        self.retry()?;
        if self.caller.host.deadline() == Some(next) {
            // What is due at an instant may make more due at once, but not for ever.
            for _ in 0..64 {
                self.caller.host.advance(next);
                self.drain();
                if self.caller.host.deadline() != Some(next) {
                    return Ok(true);
                }
            }
            return fail(
                line,
                format!("the host's timers do not come to rest at {}", Self::show(next)),
            );
        }
        Ok(true)
    }

    /// Lets time pass up to `until`; what is due then has not happened yet.
    fn advance(&mut self, line: usize, until: Us) -> Result<(), Stop> {
        while self.step(line, until)? {}
        self.now = self.now.max(until);
        Ok(())
    }

    /// Tries again what waits.
    fn retry(&mut self) -> Result<(), Stop> {
        let Some((line, mut pending, until)) = self.pending.take() else { return Ok(()) };
        match self.caller.attempt(self.now, &mut pending) {
            Ok(Progress::Waits(_)) => {
                self.pending = Some((line, pending, until));
                Ok(())
            }
            Ok(Progress::Done) => {
                self.drain();
                self.note(line, format!("{} returns", pending.call.name));
                self.check_end(line, &pending.call.name, until)
            }
            Err(trouble) => Err(stop_of(line, trouble)),
        }
    }

    fn check_end(&self, line: usize, name: &str, until: Option<Us>) -> Result<(), Stop> {
        let Some(until) = until else { return Ok(()) };
        if self.now.abs_diff(until) > self.tolerance {
            return fail(
                line,
                format!("{name} ended at {}, expected {}", Self::show(self.now), Self::show(until)),
            );
        }
        Ok(())
    }
}

fn stop_of(line: usize, trouble: Trouble) -> Stop {
    match trouble {
        Trouble::Wrong(message) => Stop { verdict: Verdict::Fail, line, message },
        Trouble::Unsupported(message) => Stop { verdict: Verdict::Unsupported, line, message },
    }
}

/// Events.
impl Runner<'_> {
    fn call(&mut self, event: &Event, at: Option<Us>) -> Result<(), Stop> {
        let Kind::Call(call) = &event.kind else { return Ok(()) };
        self.await_call(event.line)?;
        self.note(event.line, format!("{}()", call.name));
        let until = event.until.map(|until| match event.when {
            When::At { relative: false, .. } | When::Any => START + until,
            When::At { .. } => self.base + until,
        });
        let began = at.unwrap_or(self.now);
        let mut pending = Pending { call: call.clone(), began, taken: 0 };
        match self.caller.attempt(self.now, &mut pending) {
            Ok(Progress::Done) => {
                self.drain_after_call();
                self.check_end(event.line, &call.name, until)
            }
            Ok(Progress::Waits(_)) => {
                self.drain_after_call();
                self.pending = Some((event.line, pending, until));
                if until.is_none() { self.await_call(event.line) } else { Ok(()) }
            }
            Err(trouble) => {
                self.drain_after_call();
                Err(stop_of(event.line, trouble))
            }
        }
    }

    /// A call may have chosen the socket that packets belong to.
    fn drain_after_call(&mut self) {
        if std::mem::take(&mut self.caller.changed)
            && let Some(index) = self.caller.subject
        {
            let socket = &self.caller.host.sockets[index];
            match socket.tcp.state {
                State::Listen => {
                    self.flow = None;
                }
                State::SynSent => {
                    self.flow = Some(Flow::new(socket.tcp.local, socket.tcp.remote));
                }
                _ => {}
            }
        }
        self.drain();
    }

    /// A call is made only when the one before is over.
    fn await_call(&mut self, line: usize) -> Result<(), Stop> {
        let limit = self.now + PATIENCE;
        while self.pending.is_some() {
            if !self.step(line, limit)? {
                let (line, pending, _) = self.pending.take().expect("it waits");
                return fail(line, format!("{} does not return", pending.call.name));
            }
        }
        Ok(())
    }

    fn inject(&mut self, line: usize, packet: &Packet) -> Result<(), Stop> {
        if let Some(icmp) = &packet.icmp {
            return self.inject_icmp(line, icmp);
        }
        let begins = packet.flags & (flag::SYN | flag::ACK | flag::RST) == flag::SYN;
        if self.flow.is_none() {
            if !begins && self.listening().is_none() {
                return fail(line, "no socket is there for this packet");
            }
            self.next_remote += 1;
            let remote = Place { port: self.next_remote, ..self.caller.remote };
            let local = self.listening().unwrap_or(self.caller.local);
            self.flow = Some(Flow::new(local, remote));
        }
        let Some(flow) = &self.flow else { return fail(line, "no connection") };
        let segment = flow.inbound(packet);
        let (seq, len) = (packet.range.0, packet.range.2);
        let ack = packet.ack.map(|a| format!(" ack {a}")).unwrap_or_default();
        let text = format!("{} {seq}:{}({len}){ack}", flags(packet.flags), seq.wrapping_add(len));
        self.note(line, format!("     < {text}"));
        self.caller.host.receive(self.now, &segment);
        self.drain();
        self.retry()
    }

    /// Where the subject listens.
    fn listening(&self) -> Option<Place> {
        let socket = self.caller.host.sockets.get(self.caller.subject?)?;
        (socket.tcp.state == State::Listen).then_some(socket.bound?)
    }

    fn inject_icmp(&mut self, line: usize, icmp: &Icmp) -> Result<(), Stop> {
        let Some(flow) = &self.flow else { return fail(line, "no connection for ICMP") };
        let (local, remote) = (flow.local, flow.remote);
        let seq = icmp.seq.map_or_else(|| flow.to_host(1), |seq| flow.to_host(seq));
        self.note(line, format!("     < icmp {} {}", icmp.kind, icmp.code));
        let host = &mut self.caller.host;
        let error = |e: i32, hard: bool| Some((e, hard));
        let unreachable = match (icmp.kind.as_str(), icmp.code.as_str()) {
            ("unreachable", "frag_needed") | ("packet_too_big", _) => {
                let Some(mtu) = icmp.mtu else { return unsupported(line, "ICMP without its mtu") };
                host.fragmentation_needed(self.now, local, remote, seq, mtu);
                None
            }
            ("unreachable" | "destination_unreachable", code) => match code {
                "net_unreachable" | "no_route" => error(errno::ENETUNREACH, false),
                "host_unreachable" | "addr_unreachable" => error(errno::EHOSTUNREACH, false),
                "protocol_unreachable" => error(errno::ENOPROTOOPT, true),
                "port_unreachable" => error(errno::ECONNREFUSED, true),
                "source_route_failed" => error(errno::EOPNOTSUPP, false),
                "net_unknown" => error(errno::ENETUNREACH, true),
                "host_unknown" => error(errno::EHOSTDOWN, true),
                "host_prohibited" | "net_prohibited" | "admin_prohibited" | "pkt_filtered" => {
                    error(errno::EHOSTUNREACH, true)
                }
                _ => return unsupported(line, format!("ICMP {} {code}", icmp.kind)),
            },
            ("source_quench" | "redirect", _) => None,
            (kind, code) => return unsupported(line, format!("ICMP {kind} {code}")),
        };
        if let Some((error, hard)) = unreachable {
            host.unreachable(self.now, local, remote, seq, error, hard);
        }
        self.drain();
        self.retry()
    }

    /// A packet that the host is to send.
    fn expect(
        &mut self,
        line: usize,
        packet: &Packet,
        at: Option<Us>,
        to: Option<Us>,
    ) -> Result<(), Stop> {
        if packet.icmp.is_some() {
            return unsupported(line, "ICMP of the host");
        }
        let latest = at.map_or(self.now + PATIENCE, |at| to.unwrap_or(at) + self.tolerance);
        while self.flow.as_ref().is_none_or(|flow| flow.queue.is_empty()) {
            if !self.step(line, latest + 1)? {
                let due =
                    at.map_or_else(|| "at all".to_owned(), |at| format!("by {}", Self::show(at)));
                let pending = self
                    .next_deadline()
                    .map(|next| format!("; the host acts next at {}", Self::show(next)));
                return fail(
                    line,
                    format!("no packet left the host {due}{}", pending.unwrap_or_default()),
                );
            }
        }
        let Some(flow) = &mut self.flow else { return fail(line, "no connection") };
        let Some((left, segment)) = flow.take(packet) else { return fail(line, "no packet") };
        let compared = flow.compare(packet, &segment);
        let text = flow.show(&segment);
        if let Err(difference) = compared {
            return fail(
                line,
                format!("{difference} (the host sent {text} at {})", Self::show(left)),
            );
        }
        if let Some(at) = at {
            let last = to.unwrap_or(at);
            if left + self.tolerance < at || left > last + self.tolerance {
                return fail(
                    line,
                    format!("the packet left at {}, expected {}", Self::show(left), Self::show(at)),
                );
            }
        }
        self.note(line, format!("     > {text} as expected"));
        self.now = self.now.max(left);
        self.base = match (at, to) {
            (Some(at), None) => at,
            _ => left.max(self.base),
        };
        Ok(())
    }

    fn assert(&mut self, line: usize, code: &str) -> Result<(), Stop> {
        let mut names: Names =
            symbols::all().map(|(n, v)| (n.to_owned(), Datum::Int(v.into()))).collect();
        for (name, value) in &self.caller.defined {
            names.insert(name.clone(), Datum::Int((*value).into()));
        }
        let host = &self.caller.host;
        let of_flow = self.flow.as_ref().and_then(|flow| host.connection(flow.local, flow.remote));
        let index = of_flow.or_else(|| self.last_of_flow()).or(self.caller.subject);
        if let Some(index) = index {
            let env = host.env(self.now);
            for (name, value) in tcp_info(&host.sockets[index].tcp, &env) {
                names.insert(name.to_owned(), Datum::Int(value.into()));
            }
        }
        match expression::run(code, &mut names) {
            Ok(_) => Ok(()),
            Err(Fault::Assertion(message)) => fail(line, format!("assertion: {message}")),
            Err(Fault::Unsupported(what)) => unsupported(line, what),
        }
    }

    /// The socket of the script's connection after that is over.
    fn last_of_flow(&self) -> Option<usize> {
        let flow = self.flow.as_ref()?;
        self.caller
            .host
            .sockets
            .iter()
            .rposition(|s| s.tcp.remote == flow.remote && s.tcp.local.port == flow.local.port)
    }

    /// After the last event: nothing may be under way, and no packet may be left that had time to be expected.
    fn end(&mut self, script: &Script) -> Result<(), Stop> {
        let last = script.events.last().map_or(0, |event| event.line);
        if let Some((_, _, Some(until))) = &self.pending {
            let limit = *until + self.tolerance + 1;
            while self.pending.is_some() {
                if !self.step(last, limit)? {
                    break;
                }
            }
        }
        if let Some((line, pending, _)) = self.pending.take() {
            return fail(line, format!("{} did not return", pending.call.name));
        }
        let now = self.now;
        let Some(flow) = &self.flow else { return Ok(()) };
        // What leaves at the instant of the last event is beyond the script's end.
        if let Some((at, segment)) = flow.queue.front().filter(|(at, _)| *at < now) {
            let text = flow.show(segment);
            return fail(
                last,
                format!("a packet is left that no event expected: {text} at {}", Self::show(*at)),
            );
        }
        Ok(())
    }
}

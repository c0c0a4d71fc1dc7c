//! A script's run: its options, its events in their order (`events`), the host and time in between.

mod events;

use std::collections::VecDeque;
use std::path::Path;

use acklab_host::datagram::Datagram;
use acklab_host::segment::{Place, flag};
use acklab_host::settings::{MS, SECOND, Us};

use crate::call::{Caller, Pending, Progress, Trouble};
use crate::cookie::{USUAL_KEY, digits};
use crate::expression::Names;
use crate::flow::{Flow, Rules};
use crate::script::{Event, Script, parse_with};
use crate::shell::{Shown, Surroundings, machine};
use crate::symbols;
use crate::world::{Virtual, World};

/// What a run may be told from outside.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Options as a script's head has them; they come before the script's own.
    pub options: Vec<(String, String)>,
    /// Names and their values (`-D`).
    pub defined: Vec<(String, String)>,
    /// Nothing is judged: expected packets are passed over, and what the host did stands in [`Outcome::seen`].
    pub observe: bool,
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
    /// What the host did: its packets, without the value of its clock, results of calls, what code printed.
    pub seen: Vec<Seen>,
    /// The host's counters at the end: names and values.
    pub counters: Vec<(&'static str, u64)>,
}

/// Something that the host did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When, since the script began.
    pub at: Us,
    /// What.
    pub what: String,
}

/// When scripts begin: the clock of time stamps is not at 0 then.
const START: Us = 100 * SECOND;
/// Tolerance of times, where the script sets none.
const TOLERANCE: Us = 4 * MS;
/// Tolerance of times in thousandths of what was waited since the event before, where the script sets none: a kernel's
/// timers may be an eighth late.
const TOLERANCE_OF_WAIT: Us = 125;
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

/// Runs a script's text in virtual time; `folder` is where files beside it are looked for.
pub fn run(text: &str, folder: &Path, settings: &Settings) -> Outcome {
    run_in(&mut Virtual::new(), text, folder, settings)
}

/// Runs a script's text in a world that nothing was done to yet.
pub fn run_in(world: &mut dyn World, text: &str, folder: &Path, settings: &Settings) -> Outcome {
    let v6 = is_v6(text, settings);
    let usual = [("TFO_COOKIE", USUAL_KEY), ("TFO_COOKIE_ZERO", [0; 4])]
        .map(|(name, key)| (name.to_owned(), digits(key, v6)));
    let names: Vec<_> = usual.into_iter().chain(settings.defined.iter().cloned()).collect();
    let script = match parse_with(text, &names) {
        Ok(script) => script,
        Err(error) => {
            return Outcome {
                verdict: Verdict::Unsupported,
                line: error.line,
                message: error.message,
                timeline: Vec::new(),
                seen: Vec::new(),
                counters: Vec::new(),
            };
        }
    };
    let mut runner = Runner::new(world, folder);
    runner.observes = settings.observe;
    let result = runner.whole(&script, settings);
    let (verdict, line, message) = match result {
        Ok(()) => (Verdict::Pass, 0, String::new()),
        Err(stop) => (stop.verdict, stop.line, stop.message),
    };
    let counters = runner.caller.world().counters();
    Outcome {
        verdict,
        line,
        message,
        timeline: runner.told.timeline.into_iter().collect(),
        seen: runner.told.seen,
        counters,
    }
}

/// Whether the script's packets are of IPv6, which the cookies that it may name depend on.
fn is_v6(text: &str, settings: &Settings) -> bool {
    let given = settings.options.iter().rfind(|(name, _)| name == "ip_version");
    let head = text.lines().find_map(|line| line.trim().strip_prefix("--ip_version="));
    head.or(given.map(|(_, value)| value.as_str())).is_some_and(|value| value.trim() == "ipv6")
}

/// When a blocking call begins and ends.
#[derive(Clone, Copy, Debug)]
struct Ends {
    began: Us,
    until: Us,
}

/// Datagrams of the script's last ends, and what left the host and no event was compared with.
#[derive(Default)]
struct Datagrams {
    ends: Option<(Place, Place)>,
    queue: VecDeque<(Us, Datagram)>,
}

/// How much earlier or later than expected something may happen, and how packets are compared.
struct Tolerance {
    /// At the least.
    least: Us,
    /// In thousandths of what was waited.
    of_wait: Us,
    rules: Rules,
}

/// What an outcome will tell of the way there.
#[derive(Default)]
struct Told {
    timeline: VecDeque<String>,
    seen: Vec<Seen>,
    /// What the script's commands looked at.
    shown: Shown,
}

struct Runner<'a> {
    caller: Caller<'a>,
    flow: Option<Flow>,
    /// Connections that the script named by their ports, but not last.
    others: Vec<Flow>,
    /// Datagrams.
    datagrams: Datagrams,
    folder: &'a Path,
    tolerance: Tolerance,
    now: Us,
    /// Time of the last event.
    base: Us,
    /// A blocking call under way: its line and when it has to end.
    pending: Option<(usize, Pending, Option<Ends>)>,
    /// Calls for when it is over, of a run that only observes.
    later: VecDeque<(Event, Option<Us>)>,
    told: Told,
    observes: bool,
    /// A packet that no event expects fails the script, also behind the last one that an event expects.
    all_packets: bool,
    /// What code of the script assigned.
    variables: Names,
    next_remote: u16,
}

impl<'a> Runner<'a> {
    fn new(world: &'a mut dyn World, folder: &'a Path) -> Self {
        let caller = Caller::new(world, START);
        Self {
            caller,
            flow: None,
            others: Vec::new(),
            datagrams: Datagrams::default(),
            folder,
            tolerance: Tolerance {
                least: TOLERANCE,
                of_wait: TOLERANCE_OF_WAIT,
                rules: Rules::default(),
            },
            now: START,
            base: START,
            pending: None,
            later: VecDeque::new(),
            told: Told::default(),
            observes: false,
            all_packets: false,
            variables: Names::new(),
            next_remote: 50_000,
        }
    }

    fn whole(&mut self, script: &Script, settings: &Settings) -> Result<(), Stop> {
        for (name, value) in settings.options.iter().chain(&script.options) {
            self.option(name, value)?;
        }
        let (level, kind) = self.caller.errors_of_ip();
        let names = [("CMSG_LEVEL_IP", level), ("CMSG_TYPE_RECVERR", kind)];
        for (name, value) in names {
            if !self.caller.definitions().any(|(known, _)| known == name) {
                self.caller.define(name, value);
            }
        }
        for (name, value) in &settings.defined {
            if name == "TFO_COOKIE" {
                // The runner of a suite knows which cookie its addresses get.
                let bytes = (0..value.len() / 2).map(|i| value.get(2 * i..2 * i + 2));
                let bytes = bytes.map(|b| u8::from_str_radix(b?, 16).ok());
                self.caller.world().set_cookie(bytes.flatten().collect());
            } else if self.define(name, value).is_err()
                && !value.bytes().all(|b| b.is_ascii_hexdigit())
            {
                return unsupported(0, format!("the definition {name}={value}"));
            }
        }
        self.tolerance.rules.tolerance = self.tolerance.least;
        if let Err(what) = self.caller.world().begin(START) {
            return fail(0, what);
        }
        self.caller.tolerate(self.tolerance.least);
        let all = settings.options.iter().chain(&script.options);
        let scripts =
            all.filter(|(name, _)| name == "init_scripts").flat_map(|(_, v)| v.split(','));
        for command in scripts {
            self.command(0, command)?;
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
        match number {
            Some(number) => self.caller.define(name, number),
            // A text, a command or another word: the script was read with it.
            None if value.starts_with(|c: char| "\"`".contains(c) || c.is_ascii_alphabetic()) => {}
            None => return unsupported(0, format!("the definition {name}={value}")),
        }
        Ok(())
    }

    fn option(&mut self, name: &str, value: &str) -> Result<(), Stop> {
        let bad = || Stop {
            verdict: Verdict::Unsupported,
            line: 0,
            message: format!("the option --{name}={value}"),
        };
        let route = self.caller.world().settings().1;
        match name {
            "tolerance_usecs" => self.tolerance.least = value.parse().map_err(|_| bad())?,
            "tolerance_percent" => {
                let percent: f64 = value.parse().map_err(|_| bad())?;
                if !(0.0..=100.0).contains(&percent) {
                    return Err(bad());
                }
                self.tolerance.of_wait = (percent * 10.0) as Us;
            }
            "tcp_ts_tick_usecs" => {
                let known = |tick: &Us| *tick <= SECOND;
                self.tolerance.rules.tick = value.parse().ok().filter(known).ok_or_else(bad)?;
            }
            "tcp_ts_ecr_scaled" => self.tolerance.rules.scaled = true,
            "strict_segments" => self.tolerance.rules.strict = true,
            "all_packets" => self.all_packets = true,
            "mtu" => route.device_mtu = value.parse().map_err(|_| bad())?,
            // Of no other program.
            "header_room" => {
                route.header_room = value.parse().ok().filter(|&it| it <= 512).ok_or_else(bad)?;
            }
            "ip_version" => {
                route.ip_header = match value {
                    "ipv4" | "ipv4-mapped-ipv6" => 20,
                    "ipv6" => 40,
                    _ => return Err(bad()),
                };
                self.caller.use_v6_sockets(value != "ipv4");
            }
            "define" => {
                let (name, value) = value.split_once('=').ok_or_else(bad)?;
                self.define(name, value)?;
            }
            "connect_port" => self.caller.connect_to(value.parse().map_err(|_| bad())?),
            "bind_port" => self.caller.bind_to(value.parse().map_err(|_| bad())?),
            // Of the program that runs scripts on a kernel; nothing that the host does depends on them. The MSS
            // that the host announces is its device's.
            "mss" | "local_ip" | "remote_ip" | "gateway_ip" | "netmask_ip" | "init_scripts"
            | "speed" | "verbose" | "debug" | "dry_run" | "non_fatal" | "send_omit_free"
            | "strict" | "so_filename" | "so_flags" | "persistent_tun_dev" | "code_command"
            | "code_format" | "code_sockopt" | "is_anyip" => {}
            _ => return Err(bad()),
        }
        Ok(())
    }

    fn command(&mut self, line: usize, command: &str) -> Result<(), Stop> {
        let folder = self.folder;
        let shown = &mut self.told.shown;
        if command.contains("nstat") {
            shown.now = self.caller.world().counters();
        }
        let (sysctls, route) = self.caller.world().settings();
        let mut around = Surroundings { sysctls, route, folder, shown, changes: Vec::new() };
        let slept = match machine::run(command, &mut around) {
            Ok(Some(slept)) => slept,
            Ok(None) => return fail(line, format!("the command {:?} fails", command.trim())),
            Err(what) => return unsupported(line, what),
        };
        let changes = around.changes;
        if let Err(what) = self.caller.world().change(&changes) {
            return unsupported(line, what);
        }
        if slept > 0 {
            let until = self.now + slept;
            self.advance(line, until)?;
        }
        Ok(())
    }
}

/// Time: the host acts by itself, calls that wait are tried again, packets that left are noted.
impl Runner<'_> {
    fn show(at: Us) -> String {
        format!("{:.6} s", (at as f64 - START as f64) / SECOND as f64)
    }

    fn note(&mut self, line: usize, what: impl std::fmt::Display) {
        if self.told.timeline.len() == TIMELINE {
            self.told.timeline.pop_front();
        }
        let place = if line > 0 { format!("line {line}") } else { String::new() };
        self.told.timeline.push_back(format!("{:>13}  {place:<9} {what}", Self::show(self.now)));
    }

    /// What the host sent is sorted to the script's connection; a SYN of its own begins one.
    fn drain(&mut self) {
        if self.caller.begins_anew() {
            self.flow = None;
        }
        self.drain_datagrams();
        while let Some((at, segment)) = self.caller.world().sent() {
            let known = self.flow.as_ref().is_some_and(|flow| flow.has(&segment));
            if !known && segment.has(flag::SYN) && !segment.has(flag::ACK) {
                let v6 = self.caller.world().settings().1.ip_header == 40;
                self.flow = Some(Flow::new(
                    (segment.src, segment.dst),
                    self.tolerance.rules,
                    self.observes,
                    v6,
                ));
            }
            let flows = self.flow.iter_mut().chain(&mut self.others);
            let Some(flow) = flows.into_iter().find(|flow| flow.has(&segment)) else { continue };
            flow.push(at, segment.clone());
            let text = flow.show(&segment);
            let each = flow.show_each(&segment).into_iter();
            if self.observes {
                flow.forget();
            }
            self.told.seen.extend(each.map(|what| Seen { at: at.saturating_sub(START), what }));
            self.note(0, format!("host > {text}"));
        }
    }

    /// The same of datagrams.
    fn drain_datagrams(&mut self) {
        while let Some((at, datagram)) = self.caller.world().sent_datagram() {
            self.datagrams.ends = Some((datagram.src, datagram.dst));
            let what = format!("> udp ({})", datagram.len);
            self.note(0, format!("host {what}"));
            if self.observes {
                self.told.seen.push(Seen { at: at.saturating_sub(START), what });
            } else {
                self.datagrams.queue.push_back((at, datagram));
            }
        }
    }

    /// One step to the next instant before `limit` at which something happens; returns whether there was one.
    fn step(&mut self, line: usize, limit: Us) -> Result<bool, Stop> {
        let wake = self.pending.as_ref().and_then(|(_, pending, _)| pending.wake);
        let wake = wake.filter(|&wake| wake > self.now && wake < limit);
        let next = match self.caller.world().wait(self.now, wake.map_or(limit, |wake| wake + 1)) {
            Ok(next) => next.or(wake),
            Err(what) => return fail(line, format!("{what} at {}", Self::show(self.now))),
        };
        let Some(next) = next else { return Ok(false) };
        self.now = self.now.max(next);
        self.drain();
        self.retry()?;
        Ok(true)
    }

    /// Lets time pass up to `until`; what is due then has not happened yet.
    fn advance(&mut self, line: usize, until: Us) -> Result<(), Stop> {
        while self.step(line, until)? {}
        self.now = self.now.max(until);
        Ok(())
    }

    /// Keeps what the host did.
    fn saw(&mut self, what: String) {
        self.told.seen.push(Seen { at: self.now.saturating_sub(START), what });
    }

    /// What is not as the script says: the end, unless the run only observes.
    fn wrong(&mut self, line: usize, message: String) -> Result<(), Stop> {
        if self.observes {
            self.saw(message);
            return Ok(());
        }
        fail(line, message)
    }

    fn trouble(&mut self, line: usize, trouble: Trouble) -> Result<(), Stop> {
        match trouble {
            Trouble::Wrong(message) => self.wrong(line, message),
            Trouble::Unsupported(message) => unsupported(line, message),
        }
    }

    /// Tries again what waits.
    fn retry(&mut self) -> Result<(), Stop> {
        let Some((line, mut pending, until)) = self.pending.take() else { return Ok(()) };
        match self.caller.attempt(self.now, &mut pending) {
            Ok(Progress::Waits(wake)) => {
                pending.wake = wake;
                self.pending = Some((line, pending, until));
                Ok(())
            }
            Ok(Progress::Done) => {
                self.drain();
                self.note(line, format!("{} returns", pending.call.name));
                self.saw(format!("{} returns", pending.call.name));
                self.check_end(line, &pending.call.name, until)?;
                while self.pending.is_none()
                    && let Some((event, at)) = self.later.pop_front()
                {
                    self.call(&event, at)?;
                }
                Ok(())
            }
            Err(trouble) => self.trouble(line, trouble),
        }
    }

    /// How much earlier or later than expected something may happen that was waited for.
    fn tolerated(&self, waited: Us) -> Us {
        self.tolerance.least.max(waited * self.tolerance.of_wait / 1000)
    }

    fn check_end(&mut self, line: usize, name: &str, ends: Option<Ends>) -> Result<(), Stop> {
        let Some(Ends { began, until }) = ends else { return Ok(()) };
        let tolerance = self.tolerated(until.saturating_sub(began));
        if self.now.abs_diff(until) > tolerance {
            return self.wrong(
                line,
                format!("{name} ended at {}, expected {}", Self::show(self.now), Self::show(until)),
            );
        }
        Ok(())
    }
}

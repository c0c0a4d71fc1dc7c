//! Events of a script: packets in both directions, calls, assertions, and the end.

use acklab_host::datagram::Datagram;
use acklab_host::errno;
use acklab_host::segment::Place;
use acklab_host::settings::Us;

use super::{Ends, Runner, START, Stop, fail, unsupported};
use crate::call::{Pending, Progress};
use crate::expression::{self, Datum, Fault, Names};
use crate::flow::{Flow, flags};
use crate::script::{Event, Icmp, Kind, Packet, Script, When};
use crate::symbols;
use crate::wire::{UNREACHABLE, UNREACHABLE_V6};
use crate::world::{IcmpAbout, IcmpMessage, Quoted};

/// When a packet may leave.
struct Due {
    /// How much before it is expected.
    early: Us,
    /// Up to when.
    latest: Us,
}

impl Runner<'_> {
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

    pub(super) fn event(&mut self, event: &Event) -> Result<(), Stop> {
        let (at, to) = self.time_of(event.when);
        let line = event.line;
        if let Kind::Packet(packet) = &event.kind
            && !packet.inbound
        {
            if self.observes {
                let Some(at) = at else { return Ok(()) };
                self.base = at;
                return self.advance(line, at);
            }
            return self.expect(line, packet, at, to);
        }
        if let Some(at) = at {
            self.advance(line, at)?;
            let latest = to.unwrap_or(at) + self.tolerance.least;
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
        // A command may take its time; what is relative to it comes after.
        let takes = matches!(event.kind, Kind::Command(_));
        self.base = match (at, to) {
            (Some(at), None) if !takes => at,
            _ => self.now,
        };
        Ok(())
    }

    pub(super) fn call(&mut self, event: &Event, at: Option<Us>) -> Result<(), Stop> {
        let Kind::Call(call) = &event.kind else { return Ok(()) };
        if self.observes && self.pending.is_some() {
            // The program calls when its call before is over, and what comes meanwhile comes.
            self.later.push_back((event.clone(), at));
            return Ok(());
        }
        self.await_call(event.line)?;
        self.note(event.line, format!("{}()", call.name));
        let until = event.until.map(|until| match event.when {
            When::At { relative: false, .. } | When::Any => START + until,
            When::At { .. } => self.base + until,
        });
        let began = at.unwrap_or(self.now);
        let until = until.map(|until| Ends { began, until });
        let mut pending = Pending::new(call.clone(), began);
        match self.caller.attempt(self.now, &mut pending) {
            Ok(Progress::Done) => {
                self.drain();
                self.check_end(event.line, &call.name, until)
            }
            Ok(Progress::Waits(wake)) => {
                self.drain();
                pending.wake = wake;
                self.pending = Some((event.line, pending, until));
                if until.is_none() && !self.observes { self.await_call(event.line) } else { Ok(()) }
            }
            Err(trouble) => {
                self.drain();
                self.trouble(event.line, trouble)
            }
        }
    }

    /// A call is made only when the one before is over.
    fn await_call(&mut self, line: usize) -> Result<(), Stop> {
        let limit = self.now + self.caller.world().patience();
        while self.pending.is_some() {
            if !self.step(line, limit)? {
                let (line, pending, _) = self.pending.take().expect("it waits");
                return fail(line, format!("{} does not return", pending.call.name));
            }
        }
        Ok(())
    }

    /// The connection whose ends have the ports that a packet names becomes the one that packets belong to; `None`
    /// if there is none.
    fn select(&mut self, ports: Option<(u16, u16)>) {
        let Some((a, b)) = ports else { return };
        let is_meant = |flow: &Flow| {
            let (local, remote) = flow.ends();
            (local.port, remote.port) == (a, b) || (local.port, remote.port) == (b, a)
        };
        if self.flow.as_ref().is_some_and(is_meant) {
            return;
        }
        let found = self.others.iter().position(is_meant).map(|at| self.others.swap_remove(at));
        self.others.extend(std::mem::replace(&mut self.flow, found));
    }

    fn inject(&mut self, line: usize, packet: &Packet) -> Result<(), Stop> {
        if let Some(icmp) = &packet.icmp {
            return self.inject_icmp(line, icmp);
        }
        if packet.is_datagram {
            return self.inject_datagram(line, packet);
        }
        self.select(packet.ports);
        if self.flow.is_none() {
            let port = packet.ports.map_or(self.next_remote + 1, |(from, _)| from);
            let Some((local, remote)) = self.caller.incoming(port) else {
                return fail(line, "no socket is there for this packet");
            };
            self.next_remote += u16::from(packet.ports.is_none());
            let v6 = self.caller.world().settings().1.ip_header == 40;
            self.flow = Some(Flow::new((local, remote), self.tolerance.rules, self.observes, v6));
        }
        let Some(flow) = &self.flow else { return fail(line, "no connection") };
        let segment = flow.inbound(packet);
        let (seq, len) = (packet.range.0, packet.range.2);
        let ack = packet.ack.map(|a| format!(" ack {a}")).unwrap_or_default();
        let text = format!("{} {seq}:{}({len}){ack}", flags(packet.flags), seq.wrapping_add(len));
        self.note(line, format!("     < {text}"));
        if let Err(what) = self.caller.world().receive(self.now, &segment) {
            return fail(line, what);
        }
        self.drain();
        self.retry()
    }

    fn inject_datagram(&mut self, line: usize, packet: &Packet) -> Result<(), Stop> {
        let ends = match packet.ports {
            Some((from, _)) => self.caller.incoming_datagram(from),
            None => {
                self.datagrams.ends.or_else(|| self.caller.incoming_datagram(self.next_remote + 1))
            }
        };
        let Some((local, remote)) = ends else {
            return fail(line, "no socket is there for this datagram");
        };
        self.datagrams.ends = ends;
        let (len, tos) = (packet.range.2, packet.tos.unwrap_or(0));
        self.note(line, format!("     < udp ({len})"));
        let datagram = Datagram { src: remote, dst: local, len, tos, ttl: 0 };
        if let Err(what) = self.caller.world().receive_datagram(self.now, &datagram) {
            return fail(line, what);
        }
        self.drain();
        self.retry()
    }

    /// Where what an ICMP message quotes came from and went to, and what it is.
    fn quoted(&self, icmp: &Icmp) -> Option<((Place, Place), Quoted)> {
        if icmp.of_datagram || self.flow.is_none() {
            return Some((self.datagrams.ends?, Quoted::Datagram));
        }
        let flow = self.flow.as_ref()?;
        Some((flow.ends(), Quoted::Segment(flow.to_host(icmp.seq.unwrap_or(1)))))
    }

    fn inject_icmp(&mut self, line: usize, icmp: &Icmp) -> Result<(), Stop> {
        let Some(((local, remote), quoted)) = self.quoted(icmp) else {
            return fail(line, "nothing is there that ICMP could be about");
        };
        self.note(line, format!("     < icmp {} {}", icmp.kind, icmp.code));
        let v6 = self.caller.world().settings().1.ip_header == 40;
        let message = match icmp_message(icmp, v6) {
            Ok(message) => message,
            Err(what) => return unsupported(line, what),
        };
        let about = IcmpAbout { local, remote, quoted, message };
        if let Err(what) = self.caller.world().receive_icmp(self.now, &about) {
            return fail(line, what);
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
        if packet.is_datagram {
            return self.expect_datagram(line, packet, at, to);
        }
        self.select(packet.ports);
        let due = self.due(at, to);
        while self.flow.as_ref().is_none_or(Flow::is_quiet) {
            self.wait_for_packet(line, at, &due)?;
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
        Self::check_left(line, left, at, &due)?;
        self.note(line, format!("     > {text} as expected"));
        self.count_from(left);
        Ok(())
    }

    /// A datagram that the host is to send.
    fn expect_datagram(
        &mut self,
        line: usize,
        packet: &Packet,
        at: Option<Us>,
        to: Option<Us>,
    ) -> Result<(), Stop> {
        let due = self.due(at, to);
        while self.datagrams.queue.is_empty() {
            self.wait_for_packet(line, at, &due)?;
        }
        let Some((left, datagram)) = self.datagrams.queue.pop_front() else {
            return fail(line, "no datagram");
        };
        let ports = (datagram.src.port, datagram.dst.port);
        let differs = |what: &str, got: String, expected: String| {
            fail(line, format!("{what} {got}, expected {expected}"))
        };
        if datagram.len != packet.range.2 {
            return differs("bytes are", datagram.len.to_string(), packet.range.2.to_string());
        }
        if let Some(expected) = packet.ports.filter(|&expected| expected != ports) {
            return differs("ports are", format!("{ports:?}"), format!("{expected:?}"));
        }
        if let Some(expected) = packet.tos.filter(|&tos| tos != datagram.tos) {
            return differs("tos is", format!("{:#x}", datagram.tos), format!("{expected:#x}"));
        }
        let ttl = if datagram.ttl == 0 { 64 } else { datagram.ttl };
        if let Some(expected) = packet.ttl.filter(|&expected| expected != ttl) {
            return differs("ttl is", ttl.to_string(), expected.to_string());
        }
        let ecn = datagram.tos & 3;
        if packet.ecn.as_ref().is_some_and(|allowed| !allowed.contains(&ecn)) {
            return differs("ECN is", ecn.to_string(), format!("{:?}", packet.ecn));
        }
        Self::check_left(line, left, at, &due)?;
        self.note(line, format!("     > udp ({}) as expected", datagram.len));
        self.count_from(left);
        Ok(())
    }

    /// What follows counts from when something happened, not from when it was due.
    fn count_from(&mut self, left: Us) {
        self.now = self.now.max(left);
        self.base = self.now;
    }

    /// When a packet may leave that is expected at `at`, or up to `to`.
    fn due(&self, at: Option<Us>, to: Option<Us>) -> Due {
        let waited = at.map_or(0, |at| at.saturating_sub(self.base));
        let early = self.tolerated(waited);
        let late = early.max(self.tolerance.least + self.caller.world_ref().slack(waited));
        let latest =
            at.map_or(self.now + self.caller.world_ref().patience(), |at| to.unwrap_or(at) + late);
        Due { early, latest }
    }

    /// Lets time pass until something happens, be it the packet that is expected.
    fn wait_for_packet(&mut self, line: usize, at: Option<Us>, due: &Due) -> Result<(), Stop> {
        if self.step(line, due.latest + 1)? {
            return Ok(());
        }
        let due = at.map_or_else(|| "at all".to_owned(), |at| format!("by {}", Self::show(at)));
        let next = self.caller.world().due();
        let next = next.map(|next| format!("; the host acts next at {}", Self::show(next)));
        fail(line, format!("no packet left the host {due}{}", next.unwrap_or_default()))
    }

    fn check_left(line: usize, left: Us, at: Option<Us>, due: &Due) -> Result<(), Stop> {
        match at {
            Some(at) if left + due.early < at || left > due.latest => fail(
                line,
                format!("the packet left at {}, expected {}", Self::show(left), Self::show(at)),
            ),
            _ => Ok(()),
        }
    }

    fn assert(&mut self, line: usize, code: &str) -> Result<(), Stop> {
        let mut names: Names =
            symbols::all().map(|(n, v)| (n.to_owned(), Datum::Int(v.into()))).collect();
        for (name, value) in self.caller.definitions() {
            names.insert(name.clone(), Datum::Int(value.into()));
        }
        let ends = self.flow.as_ref().map(Flow::ends);
        for (name, value) in self.caller.world().info(self.now, ends) {
            names.insert(name.to_owned(), Datum::Int(value.into()));
        }
        for (name, value) in &self.variables {
            names.insert(name.clone(), value.clone());
        }
        let known = names.clone();
        let ran = expression::run(code, &mut names);
        self.variables.extend(names.into_iter().filter(|(n, value)| known.get(n) != Some(value)));
        match ran {
            Ok((_, printed)) => {
                for line in printed {
                    self.saw(line);
                }
                Ok(())
            }
            Err(Fault::Assertion(message)) => self.wrong(line, format!("assertion: {message}")),
            Err(Fault::Unsupported(what)) => unsupported(line, what),
        }
    }

    /// After the last event: nothing may be under way and, where that was asked for, no packet may be left.
    pub(super) fn end(&mut self, script: &Script) -> Result<(), Stop> {
        let last = script.events.last().map_or(0, |event| event.line);
        if let Some((_, _, Some(ends))) = &self.pending {
            let limit = ends.until + self.tolerated(ends.until - ends.began) + 1;
            while self.pending.is_some() {
                if !self.step(last, limit)? {
                    break;
                }
            }
        }
        if let Some((line, pending, _)) = self.pending.take() {
            return fail(line, format!("{} did not return", pending.call.name));
        }
        if !self.all_packets {
            return Ok(());
        }
        // What is due at the very instant of the last event still belongs to the script.
        while self.step(last, self.now + 1)? {}
        let mut flows = self.flow.iter().chain(&self.others);
        let segment = flows.find_map(|flow| Some((flow, flow.first_left()?)));
        let left = segment.map(|(flow, (at, segment))| (*at, flow.show(segment))).or_else(|| {
            let (at, datagram) = self.datagrams.queue.front()?;
            Some((*at, format!("udp ({})", datagram.len)))
        });
        match left {
            Some((at, what)) => fail(
                last,
                format!("a packet is left that no event expected: {what} at {}", Self::show(at)),
            ),
            None => Ok(()),
        }
    }
}

/// What an ICMP message of a script says.
fn icmp_message(icmp: &Icmp, v6: bool) -> Result<IcmpMessage, String> {
    let foreign = || Err(format!("ICMP {} {}", icmp.kind, icmp.code));
    let kind = match icmp.kind.as_str() {
        "type_3" if !v6 => "unreachable",
        "type_1" if v6 => "unreachable",
        "type_2" if v6 => "packet_too_big",
        "destination_unreachable" => "unreachable",
        kind => kind,
    };
    let number = icmp.code.strip_prefix("code_").and_then(|n| n.parse::<usize>().ok());
    let codes: &[(&str, i32, bool)] = if v6 { &UNREACHABLE_V6 } else { &UNREACHABLE };
    let code = match icmp.code.as_str() {
        // Code 0 of IPv6 has a name of its own and IPv4's.
        "" | "net_unreachable" => Some(0),
        name => number.or_else(|| codes.iter().position(|(known, ..)| *known == name)),
    };
    match (kind, code) {
        ("packet_too_big", _) | ("unreachable", Some(4)) if !v6 || kind == "packet_too_big" => {
            icmp.mtu.map(IcmpMessage::TooBig).ok_or_else(|| "ICMP without its mtu".to_owned())
        }
        ("unreachable", Some(code)) => match codes.get(code) {
            Some(&(_, errno, hard)) => {
                let kind = if v6 { 1 } else { 3 };
                Ok(IcmpMessage::Unreachable { errno, hard, kind, code: code as u8 })
            }
            None => foreign(),
        },
        ("time_exceeded", _) => {
            let code = u8::from(icmp.code == "exceeded_frag_time" || number == Some(1));
            let (errno, kind) = (errno::EHOSTUNREACH, if v6 { 3 } else { 11 });
            Ok(IcmpMessage::Unreachable { errno, hard: false, kind, code })
        }
        ("parameter_problem", _) => {
            let (errno, kind) = (errno::EPROTO, if v6 { 4 } else { 12 });
            Ok(IcmpMessage::Unreachable { errno, hard: true, kind, code: 0 })
        }
        ("source_quench", _) if !v6 => Ok(IcmpMessage::Ignored(4, 0)),
        ("redirect", _) if !v6 => Ok(IcmpMessage::Ignored(5, 1)),
        _ => foreign(),
    }
}

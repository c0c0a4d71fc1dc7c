//! Opening a connection (docs/rudp.md section 3): the client's schedule of INITIALs, the server's answers.
//!
//! The messages themselves come from the greeters ([`super::protect`]). Copies of an INITIAL leave from
//! 25 ms on, no more in the first second than an initial window of ten packets, because a handshake that
//! waits a second for a lost packet is the longest part of a short transfer.

use std::net::SocketAddr;

use super::code::Code;
use super::connection::{Connection, Event, Stage, Transmit};
use super::keys::Keys;
use super::life::Life;
use super::path::PathAddrs;
use super::protect::{Agreed, ClientGreeter};
use crate::wire::{Long, LongBody, PROLOGUE, Parameters, TOKEN, Writer};
use acklab_core::packet::Ecn;
use acklab_core::time::{Span, Time};

/// When the copies of an INITIAL leave, ms after the first; then each 400 ms.
const SCHEDULE: [u64; 10] = [0, 25, 50, 100, 150, 200, 300, 400, 600, 1000];
const AFTER: Span = Span::from_millis(400);
/// The client gives up.
const LIMIT: Span = Span::from_secs(10);
/// How long a message that says "no" waits for one that says "yes".
const DOUBT: Span = Span::from_secs(1);
/// The payload of ANSWER repeats so many bytes of its header, from the second on.
pub(super) const REPEATED: usize = 21;
/// REFUSE leaves so often, because nothing acknowledges it.
const REFUSALS: u32 = 3;

/// The client's side until it is open.
pub(super) struct Greeting {
    greeter: Box<dyn ClientGreeter>,
    message: Vec<u8>,
    token: Option<[u8; TOKEN]>,
    /// Departures of the copies.
    copies: Vec<Time>,
    started: Time,
    /// When the next copy leaves; never while there is no path.
    next_at: Time,
    /// Why it will fail if nothing better comes until then.
    doubt: Option<(Code, String, Time)>,
    /// Servers to be told that their answer could not be read.
    refusals: Option<(u64, u32)>,
}

impl std::fmt::Debug for Greeting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Greeting").field("copies", &self.copies.len()).finish_non_exhaustive()
    }
}

impl Greeting {
    pub(super) fn new(
        now: Time,
        mut greeter: Box<dyn ClientGreeter>,
        local_id: u64,
        parameters: &Parameters,
    ) -> Self {
        let mut prologue = [0; 1200];
        let (mode, ciphers) = (greeter.mode(), greeter.ciphers());
        let body = LongBody::Initial { mode, ciphers, copy: 0, token: None, message: &[] };
        let packet = Long { destination: 0, source: local_id, body };
        packet.emit(&mut Writer::new(&mut prologue));
        let message = greeter.initial(&prologue[..PROLOGUE], &parameters.encode());
        Self {
            greeter,
            message,
            token: None,
            copies: Vec::new(),
            started: now,
            next_at: Time::MAX,
            doubt: None,
            refusals: None,
        }
    }

    /// There is a path to greet on.
    pub(super) const fn begin(&mut self, now: Time) {
        self.started = now;
        self.next_at = now;
    }

    pub(super) fn deadline(&self) -> Time {
        let end = self.doubt.as_ref().map_or(self.started + LIMIT, |doubt| doubt.2);
        self.next_at.min(end)
    }

    /// The code with which greeting has failed by now.
    pub(super) fn failed(&self, now: Time) -> Option<(Code, String)> {
        match &self.doubt {
            Some((code, text, until)) if now >= *until => Some((*code, text.clone())),
            None if now >= self.started + LIMIT => {
                Some((Code::Idle, "no answer within 10 s".to_owned()))
            }
            _ => None,
        }
    }

    fn doubt(&mut self, now: Time, code: Code, text: String) {
        if self.doubt.is_none() {
            self.doubt = Some((code, text, now + DOUBT));
        }
    }

    /// The next datagram of the greeting: its length, and which copy it is.
    fn poll(&mut self, now: Time, local_id: u64, buffer: &mut [u8]) -> Option<(usize, usize)> {
        let writer = &mut Writer::new(buffer);
        if let Some((destination, left)) = &mut self.refusals
            && *left > 0
        {
            *left -= 1;
            let body = LongBody::Refuse { code: Code::WrongSecret as u8, text: b"" };
            Long { destination: *destination, source: local_id, body }.emit(writer);
            return Some((writer.position(), 0));
        }
        // In doubt too: what was refused may have been altered on the way, and the next copy may not.
        if self.next_at > now {
            return None;
        }
        let copy = self.copies.len();
        self.copies.push(now);
        let next = SCHEDULE.get(copy + 1).map_or(now + AFTER, |&ms| {
            (self.started + Span::from_millis(ms)).max(now + Span::from_millis(1))
        });
        self.next_at = next;
        let body = LongBody::Initial {
            mode: self.greeter.mode(),
            ciphers: self.greeter.ciphers(),
            copy: copy as u8,
            token: self.token.as_ref(),
            message: &self.message,
        };
        Long { destination: 0, source: local_id, body }.emit(writer);
        Some((writer.position(), copy))
    }
}

/// The server's side until the client has shown that it has the keys.
#[derive(Debug)]
pub(super) struct Answering {
    cipher: u8,
    message: Vec<u8>,
    /// The INITIAL that it answers: prologue and message.
    initial: Vec<u8>,
    /// The copies of the INITIAL that wait to be answered: the newest, and how many answers are owed.
    copy: u8,
    owed: u32,
    addrs: PathAddrs,
    until: Time,
    /// Somebody says that the client could not read the answer.
    refused: bool,
}

impl Answering {
    pub(super) fn new(
        now: Time,
        (cipher, message): (u8, Vec<u8>),
        initial: Vec<u8>,
        (copy, addrs): (u8, PathAddrs),
    ) -> Self {
        Self { cipher, message, initial, copy, owed: 1, addrs, until: now + LIMIT, refused: false }
    }

    pub(super) const fn deadline(&self) -> Time {
        self.until
    }

    /// Anybody who saw the answer can say so: a packet of the client's until then proves it wrong.
    fn on_refused(&mut self, now: Time) {
        self.refused = true;
        self.until = self.until.min(now + DOUBT);
    }

    /// Whether an INITIAL with this prologue and message is a copy of the one that is answered.
    pub(super) fn is_for(&self, initial: &[u8]) -> bool {
        self.initial == initial
    }

    /// Whether the last answer went to that address.
    pub(super) fn is_for_host(&self, remote: SocketAddr) -> bool {
        self.addrs.remote == remote
    }

    /// A copy of the INITIAL arrived, perhaps over another path: the answer returns there.
    pub(super) fn on_copy(&mut self, copy: u8, addrs: PathAddrs) {
        self.copy = copy;
        self.addrs = addrs;
        self.owed = (self.owed + 1).min(2);
    }
}

/// The first bytes of an ANSWER's payload.
pub(super) fn repeated(destination: u64, source: u64, cipher: u8) -> [u8; REPEATED] {
    let mut header = [0; 64];
    let body = LongBody::Answer { cipher, copy: 0, message: &[] };
    Long { destination, source, body }.emit(&mut Writer::new(&mut header));
    let mut bytes = [0; REPEATED];
    bytes.copy_from_slice(&header[1..=REPEATED]);
    bytes
}

impl Connection {
    /// A datagram of the handshake, if one is due.
    pub(super) fn transmit_handshake(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let first = self.paths.first()?.addrs;
        let (local_id, remote_id) = (self.local_id, self.remote_id);
        let (len, addrs) = match &mut self.stage {
            Stage::Greeting(greeting) => {
                let (len, copy) = greeting.poll(now, local_id, buffer)?;
                // Two copies on the first path, then all paths in turn: it may be dead.
                let turn = copy.saturating_sub(1) % (self.to_open.len() + 1);
                let other = turn.checked_sub(1).and_then(|index| self.to_open.get(index));
                (len, other.copied().unwrap_or(first))
            }
            Stage::Answering(answering) if answering.owed > 0 => {
                answering.owed -= 1;
                let Answering { cipher, copy, ref message, addrs, .. } = *answering;
                let body = LongBody::Answer { cipher, copy, message };
                let writer = &mut Writer::new(buffer);
                Long { destination: remote_id, source: local_id, body }.emit(writer);
                (writer.position(), addrs)
            }
            _ => return None,
        };
        self.telling.greeting(now, addrs.flow());
        let path = self.paths.first_mut()?;
        path.counters.packets += 1;
        path.counters.bytes += len as u64;
        self.last_sent = now;
        Some(Transmit { addrs, ecn: Ecn::NotEct, len, segment: len })
    }

    /// A long packet with this connection's id arrived.
    pub(super) fn handle_long(&mut self, now: Time, from: PathAddrs, packet: &Long<'_>) {
        if packet.destination != self.local_id {
            return;
        }
        match packet.body {
            LongBody::Answer { cipher, copy, message } => {
                if self.on_answer(now, packet.source, cipher, copy, message) {
                    self.begin_on(now, from);
                }
            }
            LongBody::Retry { token } => {
                if let Stage::Greeting(greeting) = &mut self.stage
                    && greeting.token.is_none()
                {
                    greeting.token = Some(*token);
                    greeting.next_at = now;
                }
            }
            LongBody::Refuse { code, text } => self.on_refuse(now, code, text),
            LongBody::Initial { .. } | LongBody::Reset { .. } => {}
        }
    }

    /// The path on which the answer came is the first; the others are opened now.
    fn begin_on(&mut self, now: Time, from: PathAddrs) {
        if let Some(first) = self.paths.first_mut()
            && let Some(other) = self.to_open.iter_mut().find(|addrs| **addrs == from)
        {
            std::mem::swap(&mut first.addrs, other);
        }
        for addrs in std::mem::take(&mut self.to_open) {
            self.add_path(now, addrs);
        }
    }

    /// Whether the answer opened the connection.
    fn on_answer(&mut self, now: Time, source: u64, cipher: u8, copy: u8, message: &[u8]) -> bool {
        let local_id = self.local_id;
        let Stage::Greeting(greeting) = &mut self.stage else { return false };
        let agreed = match greeting.greeter.answer(cipher, message) {
            Ok(agreed) => agreed,
            // Garbage.
            Err(Code::Protocol) => return false,
            Err(code) => {
                greeting.doubt(now, code, String::new());
                greeting.refusals.get_or_insert((source, REFUSALS));
                return false;
            }
        };
        let Some((header, parameters)) = agreed.payload.split_first_chunk::<REPEATED>() else {
            return false;
        };
        if *header != repeated(local_id, source, cipher) {
            return false;
        }
        let Ok(parameters) = Parameters::decode(parameters) else {
            greeting.doubt(now, Code::Protocol, "its transport parameters".to_owned());
            return false;
        };
        let rtt = greeting.copies.get(usize::from(copy)).map(|&at| now.since(at));
        self.remote_id = source;
        self.on_agreed(now, agreed, parameters);
        if let (Some(rtt), Some(path)) = (rtt, self.paths.first_mut()) {
            path.on_handshake_rtt(now, rtt);
        }
        // The server is open when it hears a packet of ours.
        self.ping = true;
        true
    }

    /// Both sides: the keys are there.
    fn on_agreed(&mut self, now: Time, agreed: Agreed, parameters: Parameters) {
        self.keys = Some(Keys::new(now, agreed.protection));
        self.content.on_parameters(&parameters);
        for path in &mut self.paths {
            path.size.limit(parameters.datagram_max as usize);
        }
        self.peer = Some(parameters);
        self.last_heard = now;
        self.stage = Stage::Open;
        self.events.push_back(Event::Opened { peer: agreed.peer });
    }

    fn on_refuse(&mut self, now: Time, code: u8, text: &[u8]) {
        let Some(code) = Code::from_wire(u64::from(code)) else { return };
        let text = String::from_utf8_lossy(text).into_owned();
        match &mut self.stage {
            Stage::Greeting(greeting) => greeting.doubt(now, code, text),
            Stage::Answering(answering) if code == Code::WrongSecret => answering.on_refused(now),
            _ => {}
        }
    }

    /// The client has not shown that it has the keys. What was told of it is taken back: it is nobody, and
    /// worth a word only where its user had another secret.
    pub(super) fn on_unproven(&mut self) {
        self.events.clear();
        let refused = matches!(&self.stage, Stage::Answering(answering) if answering.refused);
        if refused {
            self.on_ended(Code::WrongSecret, String::new(), true);
        } else {
            self.stage = Stage::Closed;
        }
    }

    /// The server's end of a connection whose INITIAL was read; it opens with the client's first packet.
    pub(super) fn answered(
        &mut self,
        now: Time,
        addrs: PathAddrs,
        remote_id: u64,
        (agreed, parameters): (Agreed, Parameters),
        answering: Answering,
    ) {
        self.remote_id = remote_id;
        self.next_path_id = 1;
        self.push_path(now, 0, addrs, Life::active(now));
        self.on_agreed(now, agreed, parameters);
        self.stage = Stage::Answering(answering);
    }
}

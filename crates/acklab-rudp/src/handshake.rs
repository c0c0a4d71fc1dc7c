//! Opening a connection (docs/rudp.md section 3): the client's schedule of INITIALs, the server's answers.
//!
//! The messages themselves come from the greeters ([`super::protect`]). Copies of an INITIAL leave from
//! 25 ms on, no more in the first second than an initial window of ten packets, because a handshake that
//! waits a second for a lost packet is the longest part of a short transfer.

use std::net::SocketAddr;

use super::code::Code;
use super::paths::PATHS;
use super::protect::{Agreed, ClientGreeter};
use super::report::PathAddrs;
use crate::wire::{Long, LongBody, PROLOGUE, Parameters, TOKEN, Writer};
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
    local_id: u64,
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
    /// Paths that the user named and that are opened once the handshake is done.
    others: Vec<PathAddrs>,
    /// Where the peer may be too: greeted, and no path unless the answer comes from there.
    alternatives: Vec<PathAddrs>,
}

/// The answer that opens a connection.
pub(super) struct Answered {
    pub(super) agreed: Agreed,
    pub(super) parameters: Parameters,
    /// How long the handshake took, where the answer says which copy it answers.
    pub(super) rtt: Option<Span>,
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
            local_id,
            message,
            token: None,
            copies: Vec::new(),
            started: now,
            next_at: Time::MAX,
            doubt: None,
            refusals: None,
            others: Vec::new(),
            alternatives: Vec::new(),
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

    pub(super) fn failed(&self, now: Time) -> Option<(Code, String)> {
        match &self.doubt {
            Some((code, text, until)) if now >= *until => Some((*code, text.clone())),
            None if now >= self.started + LIMIT => {
                Some((Code::Idle, "no answer within 10 s".to_owned()))
            }
            _ => None,
        }
    }

    /// Another path, which is greeted on too: how many there were besides the first, unless they are as many as
    /// allowed.
    pub(super) fn add_path(&mut self, addrs: PathAddrs) -> Option<usize> {
        let before = self.others.len();
        (before + 1 < PATHS).then(|| {
            self.others.push(addrs);
            before
        })
    }

    /// The peer may be there too.
    pub(super) fn add_alternative(&mut self, addrs: PathAddrs) {
        if self.alternatives.len() + 1 < PATHS {
            self.alternatives.push(addrs);
        }
    }

    /// The first path, which is `first` or the one on which the answer came, and the others.
    pub(super) fn into_paths(
        mut self,
        mut first: PathAddrs,
        from: PathAddrs,
    ) -> (PathAddrs, Vec<PathAddrs>) {
        if self.alternatives.iter().any(|addrs| addrs.leads_where(&from)) {
            // One host, two addresses: the other one is no second path.
            first = from;
        } else if let Some(other) = self.others.iter_mut().find(|addrs| addrs.leads_where(&from)) {
            std::mem::swap(&mut first, other);
        }
        (first, self.others)
    }

    /// RETRY arrived: the greeting goes on with its token.
    pub(super) fn on_retry(&mut self, now: Time, token: &[u8; TOKEN]) {
        if self.token.is_none() {
            self.token = Some(*token);
            self.next_at = now;
        }
    }

    /// ANSWER arrived; `None` where it does not open the connection.
    pub(super) fn on_answer(
        &mut self,
        now: Time,
        source: u64,
        body: (u8, u8, &[u8]),
    ) -> Option<Answered> {
        let (cipher, copy, message) = body;
        let agreed = match self.greeter.answer(cipher, message) {
            Ok(agreed) => agreed,
            // Garbage.
            Err(Code::Protocol) => return None,
            Err(code) => {
                self.doubt(now, code, String::new());
                self.refusals.get_or_insert((source, REFUSALS));
                return None;
            }
        };
        let (header, parameters) = agreed.payload.split_first_chunk::<REPEATED>()?;
        if *header != repeated(self.local_id, source, cipher) {
            return None;
        }
        let Ok(parameters) = Parameters::decode(parameters) else {
            self.doubt(now, Code::Protocol, "its transport parameters".to_owned());
            return None;
        };
        let rtt = self.copies.get(usize::from(copy)).map(|&at| now.since(at));
        Some(Answered { agreed, parameters, rtt })
    }

    /// The server, or who claims to be, refuses.
    pub(super) fn doubt(&mut self, now: Time, code: Code, text: String) {
        if self.doubt.is_none() {
            self.doubt = Some((code, text, now + DOUBT));
        }
    }

    /// The next datagram of the greeting: its length, and on which path it leaves, of which `first` is
    /// the first.
    pub(super) fn poll(
        &mut self,
        now: Time,
        first: PathAddrs,
        buffer: &mut [u8],
    ) -> Option<(usize, PathAddrs)> {
        let local_id = self.local_id;
        let writer = &mut Writer::new(buffer);
        if let Some((destination, left)) = &mut self.refusals
            && *left > 0
        {
            *left -= 1;
            let body = LongBody::Refuse { code: Code::WrongSecret as u8, text: b"" };
            Long { destination: *destination, source: local_id, body }.emit(writer);
            return Some((writer.position(), first));
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
        // Two copies on the first path, then all paths in turn: it may be dead.
        let turn = copy.saturating_sub(1) % (self.others.len() + self.alternatives.len() + 1);
        let mut beside = self.others.iter().chain(&self.alternatives);
        let other = turn.checked_sub(1).and_then(|index| beside.nth(index));
        Some((writer.position(), other.copied().unwrap_or(first)))
    }
}

/// The server's side until the client has shown that it has the keys.
#[derive(Debug)]
pub(super) struct Answering {
    local_id: u64,
    remote_id: u64,
    cipher: u8,
    message: Vec<u8>,
    /// The INITIAL that it answers: prologue and message.
    initial: Vec<u8>,
    /// The copies of the INITIAL that wait to be answered: the newest, and how many answers are owed.
    copy: u8,
    owed: u32,
    addrs: PathAddrs,
    until: Time,
    /// The client, or who claims to be, says that it could not read the answer.
    refused: bool,
}

impl Answering {
    /// `message` answers `initial`; the header names the two ids.
    pub(super) fn new(
        now: Time,
        (local_id, remote_id): (u64, u64),
        (cipher, message): (u8, Vec<u8>),
        initial: Vec<u8>,
        (copy, addrs): (u8, PathAddrs),
    ) -> Self {
        let until = now + LIMIT;
        let (owed, refused) = (1, false);
        Self { local_id, remote_id, cipher, message, initial, copy, owed, addrs, until, refused }
    }

    /// This end's id and the peer's.
    pub(super) const fn ids(&self) -> (u64, u64) {
        (self.local_id, self.remote_id)
    }

    /// The next copy of the answer, if one is owed: its length, and where it leaves.
    pub(super) fn poll(&mut self, buffer: &mut [u8]) -> Option<(usize, PathAddrs)> {
        self.owed = self.owed.checked_sub(1)?;
        let body =
            LongBody::Answer { cipher: self.cipher, copy: self.copy, message: &self.message };
        let writer = &mut Writer::new(buffer);
        Long { destination: self.remote_id, source: self.local_id, body }.emit(writer);
        Some((writer.position(), self.addrs))
    }

    /// Whether the client says that it could not read the answer.
    pub(super) const fn is_refused(&self) -> bool {
        self.refused
    }

    pub(super) const fn deadline(&self) -> Time {
        self.until
    }

    /// Anybody who saw the answer can say so: a packet of the client's until then proves it wrong.
    pub(super) fn on_refused(&mut self, now: Time) {
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

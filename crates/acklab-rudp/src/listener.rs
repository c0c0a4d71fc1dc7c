//! A server: greets clients, bounds what unauthenticated hosts cost, and hands datagrams to its connections
//! (docs/rudp.md section 3).

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use super::allowance::{self, Allowance};
use super::code::Code;
use super::config::Config;
use super::connection::Connection;
use super::handshake::{Answering, repeated};
use super::protect::{Entropy, Offer, ServerGreeter};
use super::refusals::Refusals;
use super::report::{Event, PathAddrs, Transmit};
use super::reset;
use super::session::random_id;
use crate::wire::{
    INITIAL_LEN, Long, LongBody, LongError, PROLOGUE, Parameters, RESET_TOKEN, ShortHeader, TOKEN,
    Writer,
};
use acklab_core::event::Sink;
use acklab_core::packet::Ecn;
use acklab_core::time::Time;

/// A connection of a listener; never used for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(u64);

/// Bounds of a listener.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections open at once.
    pub connections: usize,
    /// Handshakes pending at once.
    pub pending: usize,
    /// From so many pending ones on, clients must show that they receive what is sent to them.
    pub retry_pending: usize,
    /// The same, for those of one address.
    pub retry_address: u32,
    /// Guesses of a passphrase by all hosts: so many at once, then per second; 0 per second: so many wrong ones and no more,
    /// of which none is for clients that have not shown that they receive what is sent to them.
    pub guesses: (f64, f64),
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16,
            pending: 256,
            retry_pending: 64,
            retry_address: 4,
            guesses: GUESSES,
        }
    }
}

const GUESSES: (f64, f64) = (100.0, 20.0);

/// Answers without a connection that wait to leave, at most.
const REPLIES: usize = 1024;

/// A stateless answer: RETRY or REFUSE.
enum Reply {
    Retry([u8; TOKEN]),
    Refuse(Code),
    Reset([u8; RESET_TOKEN]),
}

/// Every connection of a server.
pub struct Listener {
    config: Config,
    entropy: Box<dyn FnMut() -> Box<dyn Entropy> + Send>,
    greeter: Box<dyn ServerGreeter>,
    limits: Limits,
    connections: BTreeMap<Handle, Connection>,
    /// By the id that this end has chosen.
    by_id: BTreeMap<u64, Handle>,
    /// Handshakes pending: the address, and whether it offered a passphrase. One client may
    /// have several: an INITIAL that was altered on the way must not stand in the way of its copies.
    pending: BTreeMap<Handle, (SocketAddr, bool)>,
    allowance: Allowance,
    refusals: Refusals,
    replies: VecDeque<(PathAddrs, u64, Reply)>,
    next: u64,
    /// Whose turn it is to send.
    turn: Handle,
    /// The last datagram was an answer without a connection.
    replied: bool,
    /// Where batches are made.
    pub(super) buffer: Vec<u8>,
}

/// The mode byte of a passphrase.
const MODE_PASSPHRASE: u8 = 1;

impl Listener {
    /// A server; `entropy` makes a source for each connection.
    pub fn new(
        now: Time,
        config: Config,
        entropy: impl FnMut() -> Box<dyn Entropy> + Send + 'static,
        greeter: Box<dyn ServerGreeter>,
        limits: Limits,
    ) -> Self {
        Self {
            config,
            entropy: Box::new(entropy),
            greeter,
            limits,
            connections: BTreeMap::new(),
            by_id: BTreeMap::new(),
            pending: BTreeMap::new(),
            allowance: Allowance::new(now, limits.guesses),
            refusals: Refusals::new(now),
            replies: VecDeque::new(),
            next: 0,
            turn: Handle(0),
            replied: false,
            buffer: Vec::new(),
        }
    }

    /// A connection, until its end was told.
    pub fn connection(&mut self, handle: Handle) -> Option<&mut Connection> {
        self.connections.get_mut(&handle)
    }

    /// Every connection.
    pub fn connections(&mut self) -> impl Iterator<Item = (Handle, &mut Connection)> {
        self.connections.iter_mut().map(|(&handle, connection)| (handle, connection))
    }

    /// From now on its connections draw what they would under `seed`, those to come too.
    pub(super) fn draw_from(&mut self, seed: u64) {
        self.config.seed ^= seed;
        self.connections.values_mut().for_each(|connection| connection.draw_from(seed));
    }

    /// Whether there is none, open or pending.
    pub fn is_idle(&self) -> bool {
        self.connections.is_empty()
    }

    /// Whether as many wrong guesses were made as [`Limits::guesses`] allows in all, so that no client comes in any more.
    pub fn is_spent(&self) -> bool {
        self.allowance.is_spent() && !self.pending.values().any(|&(_, guess)| guess)
    }

    /// What new clients are told in the handshake from now on.
    pub fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.config.parameters
    }

    /// A client that was refused in the handshake, and why; it may come again and again.
    pub fn poll_refused(&mut self) -> Option<(SocketAddr, Code)> {
        self.refusals.poll()
    }

    /// The next thing that a connection has to tell.
    pub(super) fn next_event(&mut self) -> Option<(Handle, Event)> {
        let waits = |(&handle, connection): (&Handle, &mut Connection)| {
            // A client that has not shown its keys is not authenticated yet.
            if connection.is_answering() {
                return None;
            }
            connection.next_event().map(|event| (handle, event))
        };
        if let Some(told) = self.connections.iter_mut().find_map(waits) {
            return Some(told);
        }
        self.settle_closed();
        self.connections.retain(|_, connection| !connection.is_closed());
        let connections = &self.connections;
        self.by_id.retain(|_, handle| connections.contains_key(handle));
        None
    }

    /// Takes a datagram that arrived at `now`; its bytes are decrypted in place.
    pub(super) fn on_datagram(
        &mut self,
        now: Time,
        from: PathAddrs,
        ecn: Ecn,
        datagram: &mut [u8],
        sink: &mut Sink,
    ) {
        let Some(&first) = datagram.first() else { return };
        if ShortHeader::is_short(first) {
            let Ok(header) = ShortHeader::parse(datagram) else { return };
            let Some(&handle) = self.by_id.get(&header.connection) else {
                self.reset(now, from, header.connection, datagram.len());
                return;
            };
            self.forward(now, handle, sink, |connection| {
                connection.on_datagram(now, from, ecn, datagram);
            });
            return;
        }
        let packet = match Long::parse(datagram) {
            Ok(packet) => packet,
            Err(LongError::OtherVersion { source }) if datagram.len() >= INITIAL_LEN => {
                self.refuse(now, from, source, Code::Version);
                return;
            }
            Err(_) => return,
        };
        if let LongBody::Initial { .. } = packet.body {
            self.on_initial(now, from, &packet, &datagram[..PROLOGUE]);
        } else if let Some(&handle) = self.by_id.get(&packet.destination) {
            self.forward(now, handle, sink, |connection| {
                connection.handle_long(now, from, &packet);
            });
        }
    }

    /// Lets a connection act and looks whether its handshake is over.
    fn forward(
        &mut self,
        now: Time,
        handle: Handle,
        sink: &mut Sink,
        act: impl FnOnce(&mut Connection),
    ) {
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        connection.telling(now, sink, act);
        self.settle(handle);
    }

    /// A connection that ends before it is open is pending no longer, whatever call ended it.
    fn settle_closed(&mut self) {
        let closed =
            |handle: &Handle| self.connections.get(handle).is_none_or(Connection::is_closed);
        let closed: Vec<Handle> = self.pending.keys().copied().filter(closed).collect();
        for handle in closed {
            self.settle(handle);
        }
    }

    fn settle(&mut self, handle: Handle) {
        let Some(connection) = self.connections.get(&handle) else { return };
        if connection.is_answering() {
            return;
        }
        if let Some((from, guess)) = self.pending.remove(&handle) {
            self.allowance.on_settled(from);
            if guess && connection.is_open() {
                self.allowance.give_back(from);
            }
        }
    }

    fn on_initial(&mut self, now: Time, from: PathAddrs, packet: &Long<'_>, prologue: &[u8]) {
        let LongBody::Initial { mode, ciphers, copy, token, message } = packet.body else { return };
        let source = packet.source;
        let initial = [prologue, message].concat();
        let mut known = self.connections.values_mut();
        if known.any(|connection| connection.takes_initial(source, &initial, copy, from)) {
            return;
        }
        let offer = Offer { mode, ciphers, prologue, message };
        if let Err(code) = self.greeter.inspect(&offer) {
            self.turn_away(now, from, source, code);
            return;
        }
        let proven = token.is_some_and(|token| {
            allowance::is_good(&*self.greeter, now, from.remote, source, token)
        });
        let guess = mode == MODE_PASSPHRASE;
        let allowed = self.allowance.allows(now, from.remote, guess, proven);
        let crowded = self.pending.len() >= self.limits.retry_pending
            || self.allowance.pending(from.remote) >= self.limits.retry_address;
        if !proven && (crowded || !allowed) {
            // Before it has cost anything: who receives this comes first from now on.
            let token = allowance::token(&*self.greeter, now, from.remote, source);
            self.reply(from, source, Reply::Retry(token));
            return;
        }
        if guess && self.is_spent() {
            self.refuse(now, from, source, Code::Spent);
            return;
        }
        if !allowed || self.pending.len() >= self.limits.pending {
            return;
        }
        if self.connections.len() - self.pending.len() >= self.limits.connections {
            self.refuse(now, from, source, Code::Busy);
            return;
        }
        self.greet(now, from, (source, copy), &offer);
    }

    /// An id that no other connection has: the other one would hear nothing from then on.
    fn fresh_id(&self, entropy: &mut dyn Entropy) -> u64 {
        let mut random = random_id(entropy);
        loop {
            let id = reset::id(&*self.greeter, random);
            if id != 0 && !self.by_id.contains_key(&id) {
                return id;
            }
            random = random.wrapping_add(1 << 32 | 1).max(1);
        }
    }

    /// A packet of `len` bytes came for a connection that is not known here, perhaps since a restart.
    fn reset(&mut self, now: Time, from: PathAddrs, id: u64, len: usize) {
        if len > reset::LEN
            && reset::is_ours(&*self.greeter, id)
            && self.refusals.may_reset(now)
            && let Some(token) = reset::token(&*self.greeter, id)
        {
            self.reply(from, id, Reply::Reset(token));
        }
    }

    /// Computes the answer; a client that cannot be answered is told why.
    fn greet(&mut self, now: Time, from: PathAddrs, (source, copy): (u64, u8), offer: &Offer<'_>) {
        self.allowance.on_computed(now, from.remote);
        let mut entropy = (self.entropy)();
        let local_id = self.fresh_id(&mut *entropy);
        let reset_token = reset::token(&*self.greeter, local_id);
        let parameters = Parameters { reset_token, ..self.config.parameters.clone() }.encode();
        let mut payload = |cipher| {
            let mut payload = repeated(source, local_id, cipher).to_vec();
            payload.extend_from_slice(&parameters);
            payload
        };
        let answer = match self.greeter.greet(offer, &mut payload) {
            Ok(answer) => answer,
            Err(code) => {
                self.turn_away(now, from, source, code);
                return;
            }
        };
        let Ok(parameters) = Parameters::decode(&answer.agreed.payload) else {
            self.refuse(now, from, source, Code::Protocol);
            return;
        };
        if offer.mode == MODE_PASSPHRASE {
            self.allowance.on_guess(now, from.remote);
        }
        let initial = [offer.prologue, offer.message].concat();
        let ids = (local_id, source);
        let message = (answer.cipher, answer.message);
        let answering = Answering::new(now, ids, message, initial, (copy, from));
        let mut config = self.config.clone();
        config.seed ^= local_id;
        let answered = (answer.agreed, parameters, answering);
        let connection = Connection::answer(now, config, entropy, from, answered);
        let handle = Handle(self.next);
        self.next += 1;
        self.connections.insert(handle, connection);
        self.by_id.insert(local_id, handle);
        self.pending.insert(handle, (from.remote, offer.mode == MODE_PASSPHRASE));
        self.allowance.on_pending(from.remote);
    }

    /// A client cannot be answered. Garbage deserves no word.
    fn turn_away(&mut self, now: Time, from: PathAddrs, source: u64, code: Code) {
        if code == Code::Protocol {
            return;
        }
        self.refusals.note(from.remote, source, code);
        self.refuse(now, from, source, code);
    }

    fn refuse(&mut self, now: Time, from: PathAddrs, client: u64, code: Code) {
        if self.refusals.may_answer(now) {
            self.reply(from, client, Reply::Refuse(code));
        }
    }

    fn reply(&mut self, from: PathAddrs, client: u64, reply: Reply) {
        if self.replies.len() < REPLIES {
            self.replies.push_back((from, client, reply));
        }
    }

    /// As [`Connection::transmit_into`]; connections take turns, and each second turn is theirs however
    /// many unauthenticated hosts are to be answered.
    pub(super) fn transmit_into(
        &mut self,
        now: Time,
        buffer: &mut [u8],
        sink: &mut Sink,
    ) -> Option<Transmit> {
        if !self.replied
            && let Some(transmit) = self.transmit_reply(buffer)
        {
            self.replied = true;
            return Some(transmit);
        }
        self.replied = false;
        self.transmit_turn(now, buffer, sink).or_else(|| self.transmit_reply(buffer))
    }

    fn transmit_reply(&mut self, buffer: &mut [u8]) -> Option<Transmit> {
        let (addrs, client, reply) = self.replies.pop_front()?;
        let body = match &reply {
            Reply::Retry(token) => LongBody::Retry { token },
            Reply::Refuse(code) => LongBody::Refuse { code: *code as u8, text: b"" },
            Reply::Reset(token) => LongBody::Reset { token },
        };
        let ids = if matches!(reply, Reply::Reset(_)) { (0, client) } else { (client, 0) };
        let (destination, source) = ids;
        let writer = &mut Writer::new(buffer);
        Long { destination, source, body }.emit(writer);
        let len = writer.position();
        Some(Transmit::one(addrs, len))
    }

    fn transmit_turn(&mut self, now: Time, buffer: &mut [u8], sink: &mut Sink) -> Option<Transmit> {
        let turn = self.turn;
        for turns in [turn..Handle(u64::MAX), Handle(0)..turn] {
            for (&handle, connection) in self.connections.range_mut(turns) {
                let transmit = connection
                    .telling(now, sink, |connection| connection.transmit_into(now, buffer));
                if transmit.is_some() {
                    self.turn = Handle(handle.0 + 1);
                    return transmit;
                }
            }
        }
        None
    }

    /// When [`Self::on_timeout`] must be called next, if nothing else happens before.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.connections.values().filter_map(Connection::next_deadline).min()
    }

    /// Acts on every deadline that is due at `now`; does nothing where none is.
    pub(super) fn on_timeout(&mut self, now: Time, sink: &mut Sink) {
        for connection in self.connections.values_mut() {
            connection.telling(now, sink, |connection| connection.on_timeout(now));
        }
        self.settle_closed();
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener")
            .field("connections", &self.connections.len())
            .field("pending", &self.pending.len())
            .finish_non_exhaustive()
    }
}

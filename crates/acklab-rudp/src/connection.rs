//! A connection: what its user calls, and what time does to it.
//!
//! It owns the parts and knows how far it has come: [`super::handshake`] opens it, [`super::paths`] are
//! what it runs over, [`super::content`] what it carries, [`super::notices`] what it says of paths,
//! [`super::closing`] how it ends. [`super::input`] takes datagrams, [`super::output`] makes them.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::closing::{Ending, printable};
use super::code::Code;
use super::config::Config;
use super::content::Content;
use super::handshake::{Answering, Greeting};
use super::idle::Idle;
use super::life::{Life, PathState, Verdict};
use super::notices::Notices;
use super::output::{Memory, Output};
use super::path::Path;
use super::paths::{PATHS, Paths};
use super::protect::{Agreed, ClientGreeter, Entropy};
use super::report::{Event, PathAddrs, PathStats, Transmit};
use super::sent::{Item, News};
use super::session::{Session, random_id};
use super::stage::Stage;
use super::telling::Telling;
use crate::wire::Parameters;
use acklab_core::time::Time;
use acklab_core::timer::{TimerKind, TimerTable};

/// The deadlines of an open connection.
#[derive(Clone, Copy, Debug)]
enum Timer {
    /// It was silent for too long.
    Idle,
    KeepAlive,
    /// A parcel's time is over.
    Content,
    /// One of the paths.
    Paths,
}

impl From<Timer> for usize {
    fn from(timer: Timer) -> Self {
        timer as Self
    }
}

impl TimerKind for Timer {
    const COUNT: usize = 4;
}

/// One end of a connection.
pub struct Connection {
    pub(super) config: Config,
    entropy: Box<dyn Entropy>,
    pub(super) stage: Stage,
    pub(super) client: bool,
    pub(super) local_id: u64,
    /// From the end of the handshake on.
    pub(super) session: Option<Session>,
    pub(super) paths: Paths,
    pub(super) notices: Notices,
    pub(super) content: Content,
    pub(super) idle: Idle,
    pub(super) events: VecDeque<Event>,
    /// Room that is used again and again while packets are read and written.
    pub(super) news: News,
    memory: Memory,
    pub(super) telling: Telling,
    /// Where batches are made, at a client; a listener has one for all its connections.
    pub(super) buffer: Vec<u8>,
}

impl Connection {
    /// Opens a connection over `paths`, whose first is the one that greets. Without any it waits for one to
    /// be added.
    pub fn connect(
        now: Time,
        config: Config,
        mut entropy: Box<dyn Entropy>,
        greeter: Box<dyn ClientGreeter>,
        paths: &[PathAddrs],
    ) -> Self {
        let local_id = random_id(&mut *entropy);
        let greeting = Box::new(Greeting::new(now, greeter, local_id, &config.parameters));
        let mut connection = Self::new(now, config, entropy, local_id, Stage::Greeting(greeting));
        for &addrs in paths {
            connection.add_path(now, addrs);
        }
        connection
    }

    /// The server's end of a connection whose INITIAL came from `addrs`; it opens with the client's first
    /// packet.
    pub(super) fn answer(
        now: Time,
        config: Config,
        entropy: Box<dyn Entropy>,
        addrs: PathAddrs,
        answered: (Agreed, Parameters, Answering),
    ) -> Self {
        let (agreed, parameters, answering) = answered;
        let (local_id, remote_id) = answering.ids();
        let mut connection = Self::new(now, config, entropy, local_id, Stage::Answering(answering));
        connection.push_path(now, 0, addrs, Life::active(now));
        connection.on_agreed(now, remote_id, agreed, parameters);
        connection
    }

    fn new(
        now: Time,
        config: Config,
        entropy: Box<dyn Entropy>,
        local_id: u64,
        stage: Stage,
    ) -> Self {
        let client = matches!(stage, Stage::Greeting(_));
        Self {
            entropy,
            stage,
            client,
            local_id,
            session: None,
            paths: Paths::default(),
            notices: Notices::default(),
            content: Content::new(client, &config.parameters),
            idle: Idle::new(now, config.parameters.idle_ms, config.keep_alive),
            events: VecDeque::new(),
            news: News::default(),
            memory: Memory::default(),
            telling: Telling::default(),
            buffer: Vec::new(),
            config,
        }
    }

    /// The id under which this end wants to be addressed.
    pub const fn id(&self) -> u64 {
        self.local_id
    }

    /// What the peer said of itself in the handshake.
    pub fn peer_parameters(&self) -> Option<&Parameters> {
        self.session.as_ref().map(Session::peer)
    }

    /// Whether the handshake is done and neither end has closed.
    pub const fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open)
    }

    /// Whether nothing is left to do.
    pub const fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closed)
    }

    /// Whether a server waits for the client to show that it has the keys.
    pub(super) const fn is_answering(&self) -> bool {
        matches!(self.stage, Stage::Answering(_))
    }

    /// Streams and parcels: to be written and read.
    pub const fn content(&mut self) -> &mut Content {
        &mut self.content
    }

    /// The next thing the layer above should know.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front().or_else(|| self.content.poll_event().map(Event::Content))
    }

    /// The paths, gone ones left out.
    pub fn path_stats(&self) -> impl Iterator<Item = PathStats> + '_ {
        self.paths.iter().map(Path::stats)
    }

    /// Opens another path; its id, or `None` where there are as many as allowed. A client's addresses
    /// are tried at once, and while it greets, it greets over them too; a server does not open paths.
    pub fn add_path(&mut self, now: Time, addrs: PathAddrs) -> Option<u8> {
        if let Stage::Greeting(greeting) = &mut self.stage {
            if self.paths.len() > 0 {
                let others = greeting.add_path(addrs)?;
                return Some(self.paths.next_id()? + 2 * others as u8);
            }
            greeting.begin(now);
            return Some(self.open_path(now, addrs, Life::active(now)));
        }
        let most =
            self.peer_parameters().map_or(PATHS, |peer| (peer.paths_max as usize).min(PATHS));
        if !self.is_open() || !self.client || self.paths.len() >= most {
            return None;
        }
        self.paths.next_id()?;
        Some(self.open_path(now, addrs, Life::opened(now)))
    }

    /// While a client greets, it greets the peer there too, whose address it is perhaps not sure of; no path
    /// leads there unless the answer comes from there, and then the first path does. A name with an IPv4 and an
    /// IPv6 address is found in the time of the one that works (RFC 8305).
    pub fn greet_also(&mut self, addrs: PathAddrs) {
        if let Stage::Greeting(greeting) = &mut self.stage {
            greeting.add_alternative(addrs);
        }
    }

    /// Tells the peer of other addresses at which this end can be reached.
    pub fn announce(&mut self, addresses: &[SocketAddr]) {
        self.notices.announce(addresses);
    }

    /// Keeps a path as a spare, at both ends: no content leaves on it while another is in use.
    pub fn set_spare(&mut self, id: u8, spare: bool) {
        if let Some(path) = self.paths.by_id(id) {
            path.agreement_mut().set_spare(spare);
            self.notices.push(Item::PathStatus(id));
        }
    }

    /// Removes a path; what is outstanding on it leaves on the others. The last one stays.
    pub fn remove_path(&mut self, now: Time, id: u8) {
        if self.paths.len() > 1 && self.paths.index_of(id).is_some() {
            self.notices.push(Item::RemovePath(id));
            self.drop_path(now, id);
        }
    }

    /// Ends the connection and tells the peer why; what is not delivered yet will not be. `text` is cut
    /// to 80 bytes of printable ASCII.
    pub fn close(&mut self, now: Time, code: Code, text: &str) {
        if matches!(self.stage, Stage::Ending(_) | Stage::Closed) {
            return;
        }
        let text = printable(text);
        if self.session.is_none() || self.is_answering() {
            self.on_ended(code, text, false);
            return;
        }
        self.events.push_back(Event::Closed { code, text: text.clone(), by_peer: false });
        self.stage = Stage::Ending(Ending::ours(now, code, text, &self.paths));
    }

    /// From now on it draws what it would under `seed`.
    pub(super) fn draw_from(&mut self, seed: u64) {
        self.entropy.reseed(seed);
        // Still other ones for each connection.
        self.config.seed ^= seed;
        self.paths.reseed(&self.config);
    }

    /// Fills `buffer` with datagrams for one path; `None` when all that may leave now has left. The
    /// buffer must hold at least one datagram of the largest size.
    pub(super) fn transmit_into(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let sent = self.transmit_next(now, buffer);
        if sent.is_some() || self.next_deadline().is_none_or(|at| at > now) {
            return sent;
        }
        // What left was the evidence that a path has been silent for long: its load leaves elsewhere.
        self.on_timeout(now);
        self.transmit_next(now, buffer)
    }

    fn transmit_next(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let first = self.paths.iter().next()?.addrs();
        let greeted = match &mut self.stage {
            Stage::Greeting(greeting) => greeting.poll(now, first, buffer)?,
            Stage::Answering(answering) => answering.poll(buffer)?,
            Stage::Open | Stage::Ending(_) => {
                let transmit = self.transmit(now, buffer)?;
                self.idle.on_sent(now);
                return Some(transmit);
            }
            Stage::Closed => return None,
        };
        let (len, addrs) = greeted;
        self.telling.greeting(now, addrs.flow());
        self.paths[0].count_datagram(len);
        self.idle.on_sent(now);
        Some(Transmit::one(addrs, len))
    }

    fn transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let mut output = Output {
            now,
            config: &self.config,
            entropy: &mut *self.entropy,
            session: self.session.as_mut()?,
            paths: &mut self.paths,
            notices: &mut self.notices,
            content: &mut self.content,
            memory: &mut self.memory,
            telling: &mut self.telling,
        };
        match &mut self.stage {
            Stage::Ending(ending) => {
                let (index, code, text) = ending.poll()?;
                output.close(index, code, &text, buffer)
            }
            _ => output.transmit(buffer),
        }
    }
}

/// Deadlines.
impl Connection {
    /// When [`Self::on_timeout`] must be called next, if nothing else happens before.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        match &self.stage {
            Stage::Greeting(greeting) => Some(greeting.deadline()),
            Stage::Answering(answering) => Some(answering.deadline()),
            Stage::Ending(ending) => Some(ending.deadline()),
            Stage::Closed => None,
            Stage::Open => self.timers().next(),
        }
    }

    fn timers(&self) -> TimerTable<Timer, 4> {
        let keep_alive = self.idle.keep_alive_at().filter(|_| !self.notices.is_pinging());
        TimerTable::of([
            (Timer::Idle, Some(self.idle.over_at())),
            (Timer::KeepAlive, keep_alive),
            (Timer::Content, self.content.poll_timeout()),
            (Timer::Paths, self.paths.poll_timeout()),
        ])
    }

    /// Acts on every deadline that is due at `now`; does nothing where none is.
    pub(super) fn on_timeout(&mut self, now: Time) {
        match &self.stage {
            Stage::Greeting(greeting) => {
                if let Some((code, text)) = greeting.failed(now) {
                    let by_peer = code != Code::Idle;
                    self.on_ended(code, text, by_peer);
                }
            }
            Stage::Answering(answering) if now >= answering.deadline() => {
                let refused = answering.is_refused();
                self.on_unproven(refused);
            }
            Stage::Ending(ending) if now >= ending.deadline() => self.stage = Stage::Closed,
            Stage::Open => self.handle_open_timeout(now),
            _ => {}
        }
    }

    fn handle_open_timeout(&mut self, now: Time) {
        let mut timers = self.timers();
        if timers.take_expired(Timer::Idle, now) {
            self.on_ended(Code::Idle, String::new(), false);
            return;
        }
        if timers.take_expired(Timer::KeepAlive, now) {
            self.notices.ping();
        }
        if timers.take_expired(Timer::Content, now) {
            self.content.handle_timeout(now);
        }
        if !timers.take_expired(Timer::Paths, now) {
            return;
        }
        let mut index = 0;
        while index < self.paths.len() {
            let id = self.paths[index].id();
            self.handle_path_timeout(now, index);
            // The path may have been removed.
            if self.paths.get_mut(index).is_some_and(|path| path.id() == id) {
                index += 1;
            }
        }
    }

    fn handle_path_timeout(&mut self, now: Time, index: usize) {
        let silent = self.paths.silent_since(index);
        let path = &mut self.paths[index];
        let (id, before) = (path.id(), path.life().state());
        self.news.clear();
        let verdict = path.handle_timeout(now, silent, &mut self.news);
        self.settle();
        match verdict {
            None => {}
            // What is outstanding on a silent path leaves on the others too.
            Some(Verdict::Suspect) => {
                for items in self.paths[index].loss().sent().outstanding() {
                    for item in items.as_slice() {
                        if let Item::Piece(piece) = item {
                            self.content.on_lost(piece);
                        }
                    }
                }
            }
            Some(Verdict::Dead) => {
                self.lose_path(now, index);
                self.notices.push(Item::PathStatus(id));
            }
            Some(Verdict::Gone) => {
                self.drop_path(now, id);
                return;
            }
        }
        self.tell_state(index, before);
    }
}

/// What several parts of the machine need.
impl Connection {
    /// Both sides: the keys are there.
    pub(super) fn on_agreed(
        &mut self,
        now: Time,
        remote_id: u64,
        agreed: Agreed,
        parameters: Parameters,
    ) {
        self.content.on_parameters(&parameters);
        self.paths.limit_datagrams(parameters.datagram_max as usize);
        self.idle.on_agreed(parameters.idle_ms);
        self.idle.on_heard(now);
        self.session = Some(Session::new(now, agreed.protection, remote_id, parameters));
        self.events.push_back(Event::Opened { peer: agreed.peer });
    }

    /// The connection failed or was refused: nothing more is sent.
    pub(super) fn on_ended(&mut self, code: Code, text: String, by_peer: bool) {
        self.events.push_back(Event::Closed { code, text, by_peer });
        self.stage = Stage::Closed;
    }

    /// The client has not shown that it has the keys: its user had another secret, as it says, or it is any
    /// host, perhaps one that guesses. What was told of it is taken back.
    fn on_unproven(&mut self, refused: bool) {
        self.events.clear();
        let code = if refused { Code::WrongSecret } else { Code::Idle };
        self.on_ended(code, String::new(), true);
    }

    fn open_path(&mut self, now: Time, addrs: PathAddrs, life: Life) -> u8 {
        let path = self.paths.open(now, addrs, &self.config, life);
        let id = path.id();
        self.events.push_back(Event::Path { id, state: life.state() });
        id
    }

    pub(super) fn push_path(&mut self, now: Time, id: u8, addrs: PathAddrs, life: Life) {
        self.paths.push(now, id, addrs, &self.config, life);
        self.events.push_back(Event::Path { id, state: life.state() });
    }

    /// The path is over: its load goes elsewhere.
    pub(super) fn drop_path(&mut self, now: Time, id: u8) {
        let Some(index) = self.paths.index_of(id) else { return };
        self.lose_path(now, index);
        self.paths.remove(index);
        self.events.push_back(Event::Path { id, state: PathState::Gone });
    }

    /// Everything outstanding on the path is lost, and no congestion told of it.
    fn lose_path(&mut self, now: Time, index: usize) {
        self.news.clear();
        self.paths[index].loss_mut().sent_mut().lose_all(now, &mut self.news);
        self.settle();
    }

    /// Tells the event stream what has changed of the paths.
    pub(super) fn tell_paths(&mut self, now: Time) {
        self.telling.paths(now, self.paths.iter().map(Path::stats));
    }

    /// Tells of a path's state if it is another than `before`.
    pub(super) fn tell_state(&mut self, index: usize, before: PathState) {
        let (id, state) = (self.paths[index].id(), self.paths[index].life().state());
        if state != before {
            self.events.push_back(Event::Path { id, state });
        }
    }

    /// Passes on what `self.news` says about the fate of items.
    pub(super) fn settle(&mut self) {
        for items in self.news.arrived_items.drain(..) {
            for item in items.as_slice() {
                match item {
                    Item::Piece(piece) => self.content.on_acked(piece),
                    Item::Control(control) => self.content.on_control_acked(*control),
                    _ => {}
                }
            }
        }
        for items in self.news.lost_items.drain(..) {
            for item in items.as_slice() {
                match *item {
                    Item::Piece(piece) => self.content.on_lost(&piece),
                    Item::Control(control) => self.content.on_control_lost(control),
                    Item::AckFrequency(id) => {
                        self.paths.by_id(id).into_iter().for_each(Path::on_request_lost);
                    }
                    notice @ (Item::PathStatus(_) | Item::RemovePath(_) | Item::AddPath(_)) => {
                        self.notices.push(notice);
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.local_id)
            .field("stage", &self.stage)
            .field("paths", &self.paths.len())
            .finish_non_exhaustive()
    }
}

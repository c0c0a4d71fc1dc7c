//! A connection: one block of state, to which the files beside this one add behaviour.
//!
//! [`super::input`] takes datagrams, [`super::output`] makes them, [`super::handshake`] opens the
//! connection, [`super::timing`] acts on deadlines, [`super::closing`] ends it. Paths keep what belongs to a
//! path ([`super::path`]), [`super::content`] keeps streams and parcels.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::closing::Ending;
use super::code::Code;
use super::config::Config;
use super::content::Content;
use super::handshake::{Answering, Greeting};
use super::keys::Keys;
use super::life::{Life, PathState};
use super::path::{Path, PathAddrs};
use super::piece::{ContentEvent, Piece};
use super::protect::{ClientGreeter, Entropy};
use super::scheduler::Scheduler;
use super::sent::{Item, Items, News};
use super::telling::Telling;
use crate::wire::Parameters;
use acklab_core::packet::Ecn;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;

/// What a connection tells the layer above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is done; the peer's public key where it has shown one.
    Opened {
        /// X25519 public key.
        peer: Option<[u8; 32]>,
    },
    /// A stream or parcel has something to say.
    Content(ContentEvent),
    /// A path changed its state.
    Path {
        /// Its id.
        id: u8,
        /// The new state.
        state: PathState,
    },
    /// The peer can be reached at this address too.
    Address(SocketAddr),
    /// The connection is over.
    Closed {
        /// Why.
        code: Code,
        /// The peer's words, or ours.
        text: String,
        /// The peer ended it.
        by_peer: bool,
    },
}

/// A batch of datagrams of one length, of which the last may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transmit {
    /// From where to where.
    pub(super) addrs: PathAddrs,
    /// ECN field of all.
    pub(super) ecn: Ecn,
    /// Bytes in all.
    pub(super) len: usize,
    /// Bytes of each but the last.
    pub(super) segment: usize,
}

/// What there is to say about a path.
#[derive(Clone, Copy, Debug)]
pub struct PathStats {
    /// Its id.
    pub id: u8,
    /// Its ends.
    pub addrs: PathAddrs,
    /// Whether it lives.
    pub state: PathState,
    /// Datagrams and bytes of UDP payload sent.
    pub packets: u64,
    /// Bytes of UDP payload sent.
    pub bytes: u64,
    /// Bytes of UDP payload received.
    pub bytes_received: u64,
    /// Bytes of content sent, copies included.
    pub content: u64,
    /// Bytes declared lost and not acknowledged since.
    pub lost: u64,
    /// Bytes on the way.
    pub in_flight: u64,
    /// Smoothed round trip, where measured.
    pub srtt: Option<Span>,
    /// Least round trip of the last 10 s, where measured.
    pub least_rtt: Option<Span>,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Pacing rate of the congestion control, if it has one.
    pub rate: Option<BitRate>,
    /// Bytes of UDP payload in a full datagram.
    pub datagram: usize,
}

/// How far a connection has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// The client greets.
    Greeting(Box<Greeting>),
    /// The server answers until the client shows that it has the keys.
    Answering(Answering),
    Open,
    /// CLOSE was sent or received, or the connection failed.
    Ending(Ending),
    /// Nothing is left to do.
    Closed,
}

/// One end of a connection.
pub struct Connection {
    pub(super) config: Config,
    pub(super) entropy: Box<dyn Entropy>,
    pub(super) stage: Stage,
    pub(super) client: bool,
    pub(super) local_id: u64,
    pub(super) remote_id: u64,
    pub(super) keys: Option<Keys>,
    pub(super) paths: Vec<Path>,
    /// Paths that the user named and that are opened once the handshake is done.
    pub(super) to_open: Vec<PathAddrs>,
    pub(super) next_path_id: u8,
    pub(super) scheduler: Scheduler,
    pub(super) content: Content,
    pub(super) peer: Option<Parameters>,
    pub(super) events: VecDeque<Event>,
    /// Pieces that are to leave a second time, on another path than this one.
    pub(super) redundant: VecDeque<(Piece, u8)>,
    /// Responses to challenges, with the path that they leave on.
    pub(super) responses: VecDeque<(u8, [u8; 8])>,
    /// Frames about paths that wait to be sent.
    pub(super) notices: VecDeque<Item>,
    pub(super) status_sequence: u64,
    /// Other addresses of this end.
    pub(super) announced: Vec<SocketAddr>,
    pub(super) last_heard: Time,
    pub(super) last_sent: Time,
    /// A packet that asks for an answer must leave, whatever it carries.
    pub(super) ping: bool,
    pub(super) forged: u64,
    /// Room that is used again and again while packets are written and read.
    pub(super) news: News,
    pub(super) items: Vec<Item>,
    /// Where batches are made, at a client; a listener has one for all its connections.
    pub(super) buffer: Vec<u8>,
    pub(super) telling: Telling,
}

/// At most so many paths at once (docs/rudp.md section 6).
pub(super) const PATHS: usize = 8;

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
        let mut connection =
            Self::new(now, config, entropy, local_id, true, Stage::Greeting(greeting));
        for &addrs in paths {
            connection.add_path(now, addrs);
        }
        connection
    }

    pub(super) fn new(
        now: Time,
        config: Config,
        entropy: Box<dyn Entropy>,
        local_id: u64,
        client: bool,
        stage: Stage,
    ) -> Self {
        let content = Content::new(client, &config.parameters);
        Self {
            config,
            entropy,
            stage,
            client,
            local_id,
            remote_id: 0,
            keys: None,
            paths: Vec::with_capacity(PATHS),
            to_open: Vec::new(),
            next_path_id: 0,
            scheduler: Scheduler::default(),
            content,
            peer: None,
            events: VecDeque::new(),
            redundant: VecDeque::new(),
            responses: VecDeque::new(),
            notices: VecDeque::new(),
            status_sequence: 0,
            announced: Vec::new(),
            last_heard: now,
            last_sent: now,
            ping: false,
            forged: 0,
            news: News::default(),
            items: Vec::new(),
            buffer: Vec::new(),
            telling: Telling::default(),
        }
    }

    /// The id under which this end wants to be addressed.
    pub const fn id(&self) -> u64 {
        self.local_id
    }

    /// What the peer said of itself in the handshake.
    pub const fn peer_parameters(&self) -> Option<&Parameters> {
        self.peer.as_ref()
    }

    /// Whether the handshake is done and nobody has closed.
    pub const fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open)
    }

    /// Whether nothing is left to do.
    pub const fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closed)
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
            if self.paths.is_empty() {
                greeting.begin(now);
                return Some(self.open_path(now, addrs, Life::active(now)));
            }
            let id = self.next_path_id + 2 * self.to_open.len() as u8;
            return (self.paths.len() + self.to_open.len() < PATHS).then(|| {
                self.to_open.push(addrs);
                id
            });
        }
        let most = self.peer.as_ref().map_or(PATHS, |peer| (peer.paths_max as usize).min(PATHS));
        if !self.is_open()
            || !self.client
            || self.paths.len() >= most
            || self.next_path_id > LAST_PATH_ID
        {
            return None;
        }
        Some(self.open_path(now, addrs, Life::opened(now)))
    }

    /// Tells the peer of other addresses at which this end can be reached.
    pub fn announce(&mut self, addresses: &[SocketAddr]) {
        for &address in addresses.iter().take(PATHS.saturating_sub(self.announced.len())) {
            self.notices.push_back(Item::AddPath(self.announced.len() as u8));
            self.announced.push(address);
        }
    }

    /// Keeps a path as a spare, at both ends: no content leaves on it while another is in use.
    pub fn set_spare(&mut self, id: u8, spare: bool) {
        if let Some(path) = self.paths.iter_mut().find(|path| path.id == id) {
            path.spare_here = spare;
            self.notices.push_back(Item::PathStatus(id));
        }
    }

    /// Removes a path; what is outstanding on it leaves on the others. The last one stays.
    pub fn remove_path(&mut self, now: Time, id: u8) {
        if self.paths.len() > 1 && self.paths.iter().any(|path| path.id == id) {
            self.notices.push_back(Item::RemovePath(id));
            self.drop_path(now, id);
        }
    }

    pub(super) fn open_path(&mut self, now: Time, addrs: PathAddrs, life: Life) -> u8 {
        let id = self.next_path_id;
        self.next_path_id += 2;
        self.push_path(now, id, addrs, life);
        id
    }

    pub(super) fn push_path(&mut self, now: Time, id: u8, addrs: PathAddrs, life: Life) {
        let mut path = Path::new(now, id, addrs, &self.config, life);
        if let Some(peer) = &self.peer {
            path.size.limit(peer.datagram_max as usize);
        }
        self.paths.push(path);
        self.events.push_back(Event::Path { id, state: life.state() });
    }

    pub(super) fn path_index(&self, id: u8) -> Option<usize> {
        self.paths.iter().position(|path| path.id == id)
    }

    /// The path is over: its load goes elsewhere.
    pub(super) fn drop_path(&mut self, now: Time, id: u8) {
        let Some(index) = self.path_index(id) else { return };
        self.lose_path(now, index);
        self.paths.remove(index);
        self.events.push_back(Event::Path { id, state: PathState::Gone });
    }

    /// Everything outstanding on the path is lost, and no congestion told of it.
    pub(super) fn lose_path(&mut self, now: Time, index: usize) {
        self.news.clear();
        self.paths[index].sent.lose_all(now, &mut self.news);
        self.settle();
    }

    /// Passes on what `self.news` says about the fate of items.
    pub(super) fn settle(&mut self) {
        for items in self.news.arrived.drain(..) {
            for item in items.as_slice() {
                match item {
                    Item::Piece(piece) => self.content.on_acked(piece),
                    Item::Control(control) => self.content.on_control_acked(*control),
                    _ => {}
                }
            }
        }
        let gone = std::mem::take(&mut self.news.gone);
        for items in &gone {
            self.on_gone(items);
        }
        self.news.gone = gone;
        self.news.gone.clear();
    }

    fn on_gone(&mut self, items: &Items) {
        for item in items.as_slice() {
            match *item {
                Item::Piece(piece) => self.content.on_lost(&piece),
                Item::Control(control) => self.content.on_control_lost(control),
                Item::AckFrequency(id) => {
                    if let Some(index) = self.path_index(id) {
                        self.paths[index].ask = true;
                    }
                }
                notice @ (Item::PathStatus(_) | Item::RemovePath(_) | Item::AddPath(_)) => {
                    self.notices.push_back(notice);
                }
            }
        }
    }

    /// The probe time-out of the slowest path.
    pub(super) fn slowest_pto(&self) -> Span {
        self.paths.iter().map(Path::pto).max().unwrap_or(Span::from_secs(1))
    }
}

/// Path ids end below 255 (docs/rudp.md section 2).
const LAST_PATH_ID: u8 = 252;

/// A connection id nobody can guess.
pub(super) fn random_id(entropy: &mut dyn Entropy) -> u64 {
    let mut bytes = [0; 8];
    entropy.fill(&mut bytes);
    // Zero stands for "none yet" in a client's INITIAL.
    u64::from_be_bytes(bytes).max(1)
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

//! `acklab recv`: receivers of transfers on the connections of a listener.
//!
//! The event loop of [`crate::rudp::driver`] calls [`Reception`] after every batch; it gives each
//! connection's bytes to that connection's [`Receiver`], which works on a thread of its own, so that no disk
//! stops the acknowledgments. A connection that is lost leaves what it brought for the next one.

mod remembered;
mod turned_away;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use acklab_core::endpoint::Endpoint as _;
use acklab_core::time::{Span, Time};
use acklab_rudp::protect::{PlainGreeter, ServerGreeter};
use acklab_rudp::{Code, Config, Connection, ContentEvent, Event, Handle, Limits, Listener};

use self::remembered::Remembered;
use self::turned_away::TurnedAway;
use super::directory::{Directory, StoreError};
use super::receiver::printer::Printer;
use super::receiver::{Destination, ReceiveError, Received, Receiver, Standing};
use super::report::Rhythm;
use super::stdout::Output;
use super::worker::{Call, Worker};
use crate::rudp::OsEntropy;
use crate::rudp::driver::{Application, Driver, Sockets, Waker};
use crate::rudp::keys::Identity;
use crate::rudp::noise::{KeysServer, PassphraseServer};
use crate::rudp::passphrase::Passphrase;
use crate::rudp::peers::KnownPeers;
use crate::rudp::socket::SocketError;

/// How a receiver knows who may send.
#[derive(Clone, Debug)]
pub enum Gate {
    /// Peers that know this.
    Passphrase(Passphrase),
    Keys(Identity, KnownPeers),
    /// Every host: for experiments.
    Insecure,
}

/// Where to receive, and from whom.
#[derive(Clone, Debug)]
pub struct Reception {
    /// Where it goes; `None`: one file or stream, to standard output.
    pub directory: Option<Directory>,
    /// Where senders find it.
    pub listen: Vec<SocketAddr>,
    pub gate: Gate,
    /// One transfer, and no more.
    pub once: bool,
    /// So many wrong guesses of the passphrase, and no more; `None`: some per second.
    pub guesses: Option<u32>,
    pub config: Config,
}

/// What is told on the way.
#[derive(Debug)]
pub enum News<'a> {
    /// The addresses that were bound.
    Listening(&'a [SocketAddr]),
    /// A sender came.
    Opened {
        from: SocketAddr,
        /// Its key, if it has shown one.
        key: Option<[u8; 32]>,
    },
    Problem(String),
    /// Five times a second, of each transfer.
    Status {
        from: SocketAddr,
        received: Received,
        /// Seconds since the sender came.
        seconds: f64,
    },
    /// A transfer is over.
    Ended {
        from: SocketAddr,
        end: &'a End,
        received: Received,
        /// Seconds since the sender came.
        seconds: f64,
        /// It is complete, and the sender may not have heard so: what was stored is remembered for ten
        /// minutes, and a receiver of one transfer stays for it.
        unheard: bool,
    },
    /// As many wrong guesses were made as were allowed: no sender comes in any more, and the reception ends with the
    /// transfers that run.
    Spent,
    /// Senders were turned away before they came in; told at most every 10 s, because any host can make
    /// as many of them as it likes.
    TurnedAway {
        /// From where the last of them came.
        from: SocketAddr,
        code: Code,
        /// How many there were since this was told last.
        count: u64,
    },
}

#[derive(Debug)]
pub enum End {
    /// Everything was stored or refused.
    Finished,
    /// It could not go on.
    Broken(ReceiveError),
    /// The connection ended before.
    Closed {
        code: Code,
        text: String,
        /// The sender closed it.
        by_peer: bool,
    },
}

/// How the reception as a whole ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// One transfer was asked for, and it is complete.
    Complete,
    /// It was stopped, or something of it was refused.
    Incomplete,
    /// The user stopped it.
    Interrupted,
}

#[derive(Debug, thiserror::Error)]
pub enum ReceptionError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("event loop: {0}")]
    Loop(#[from] io::Error),
}

/// Receives until `interrupted` becomes true, or one transfer is over if that was asked for. A sender that
/// has not shown that it has the secret ends nothing.
pub fn receive(
    reception: &Reception,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<Verdict, ReceptionError> {
    let sockets = Sockets::listen(&reception.listen)?;
    let bound: Vec<SocketAddr> = sockets.local().collect();
    let greeter: Box<dyn ServerGreeter> = match &reception.gate {
        Gate::Passphrase(passphrase) => Box::new(PassphraseServer::new(passphrase.clone())),
        Gate::Keys(identity, peers) => Box::new(KeysServer::new(identity.clone(), peers.clone())),
        Gate::Insecure => Box::new(PlainGreeter),
    };
    let mut driver = Driver::new(sockets)?;
    let mut config = reception.config.clone();
    config.keep_alive = true;
    config.parameters.idle_ms = IDLE_MS;
    let entropy = || Box::new(OsEntropy::default()) as _;
    let weak = matches!(&reception.gate, Gate::Passphrase(passphrase) if passphrase.is_weak());
    let mut limits = Limits::default();
    limits.guesses = match reception.guesses {
        Some(guesses) => (guesses.into(), 0.0),
        None if weak => WEAK_GUESSES,
        None => limits.guesses,
    };
    let mut listener = Listener::new(driver.now(), config, entropy, greeter, limits);
    let mut receiving = Receiving {
        directory: reception.directory.clone(),
        once: reception.once || reception.directory.is_none(),
        holds: reception.directory.as_ref().is_some_and(Directory::holds_anything),
        waker: driver.waker(),
        sessions: BTreeMap::new(),
        verdict: None,
        remembered: Remembered::default(),
        unheard: None,
        spent: false,
        leaving: Vec::new(),
        turned_away: TurnedAway::default(),
        rhythm: Rhythm::default(),
        interrupted,
        tell,
    };
    if let Some(directory) = receiving.directory.as_ref().filter(|_| receiving.once) {
        directory.take_one();
    }
    (receiving.tell)(News::Listening(&bound));
    receiving.announce(&mut listener);
    driver.run(&mut listener, &mut receiving)?;
    receiving.leave();
    Ok(receiving.verdict.unwrap_or(Verdict::Interrupted))
}

struct Receiving<'a> {
    directory: Option<Directory>,
    waker: Waker,
    once: bool,
    /// Something may lie in the folder that a sender has too.
    holds: bool,
    sessions: BTreeMap<Handle, Session>,
    verdict: Option<Verdict>,
    remembered: Remembered,
    /// What one transfer came to whose sender may not know it.
    unheard: Option<Verdict>,
    /// The passphrase is used up.
    spent: bool,
    /// Threads that are about to end.
    leaving: Vec<JoinHandle<()>>,
    turned_away: TurnedAway,
    rhythm: Rhythm,
    interrupted: &'a AtomicBool,
    tell: &'a mut dyn FnMut(News<'_>),
}

/// A connection that is open.
struct Session {
    work: Worker<Box<dyn Destination>>,
    from: SocketAddr,
    began: Time,
    /// When all was stored.
    finished: Option<Time>,
    /// What comes is left in the stream until then, unless it is much.
    read_at: Time,
    /// Something may have been left.
    left: bool,
    /// The sender has acknowledged the end.
    heard: bool,
    over: bool,
}

/// The stream that the sender opens: a client's first that goes both ways.
const STREAM: u64 = 0;
/// A sender may be silent for so long, unless it says that it would have come again by then.
pub(super) const IDLE_MS: u64 = 60_000;
/// A thread that wakes costs more than a few packets' bytes: they are given to it this often, or when this many bytes wait.
const READ_EVERY: Span = Span::from_millis(1);
const MUCH: u64 = 256 << 10;
/// Guesses of a weak passphrase: so many at once, then per second. That is 8640 a day.
const WEAK_GUESSES: (f64, f64) = (10.0, 0.1);

impl Application<Listener> for Receiving<'_> {
    fn on_progress(
        &mut self,
        now: Time,
        listener: &mut Listener,
        _sockets: &mut Sockets,
    ) -> ControlFlow<()> {
        while let Some((handle, event)) = listener.poll_event() {
            self.on_event(now, listener, handle, event);
        }
        while let Some((from, code)) = listener.poll_refused() {
            self.turned_away.note(from, code);
        }
        if let Some((from, code, count)) = self.turned_away.poll(now) {
            (self.tell)(News::TurnedAway { from, code, count });
        }
        let handles: Vec<Handle> = self.sessions.keys().copied().collect();
        for handle in handles {
            self.serve(now, listener, handle);
        }
        let tick = self.rhythm.is_due(now);
        if tick {
            self.sessions.values_mut().for_each(|session| session.work.tick(now));
            self.tell_status(now);
            let old = self.remembered.expire(now);
            let expired = !old.is_empty() && self.remembered.is_empty();
            self.leaving.extend(old);
            self.leaving.retain(|thread| !thread.is_finished());
            if listener.is_spent() {
                if !std::mem::replace(&mut self.spent, true) {
                    (self.tell)(News::Spent);
                }
                if self.sessions.is_empty() {
                    self.verdict.get_or_insert(Verdict::Incomplete);
                }
            }
            let interrupted = self.interrupted.load(Ordering::Relaxed);
            if (expired || interrupted) && self.once && self.sessions.is_empty() {
                self.verdict = self.verdict.or(self.unheard);
            }
            if interrupted {
                self.verdict.get_or_insert(Verdict::Interrupted);
            }
        }
        let (code, text) = match self.verdict {
            None => return ControlFlow::Continue(()),
            Some(Verdict::Interrupted) => (Code::Stopped, ""),
            Some(_) => (Code::Refused, "it was to take one transfer, which is over"),
        };
        for (_, connection) in listener.connections() {
            connection.close(now, code, text);
        }
        ControlFlow::Break(())
    }

    fn poll_timeout(&self) -> Option<Time> {
        let left = self.sessions.values().filter(|session| session.left);
        left.map(|session| session.read_at).chain([self.rhythm.next()]).min()
    }
}

impl Receiving<'_> {
    /// Starts to receive.
    fn work(&mut self) -> Worker<Box<dyn Destination>> {
        let (waker, directory) = (self.waker.clone(), self.directory.clone());
        let printed = self.remembered.printed();
        let before = std::mem::take(&mut self.leaving);
        let make = |call: Call| -> Box<dyn Destination> {
            match directory {
                Some(directory) => Box::new(Receiver::new(directory, move || call())),
                None => Box::new(Printer::new(Output::new(io::stdout(), move || call()), printed)),
            }
        };
        Worker::start(make, move || waker.wake(), before)
    }

    /// Waits for what the threads are about.
    fn leave(&mut self) {
        let sessions = std::mem::take(&mut self.sessions).into_values();
        self.leaving.extend(sessions.filter_map(|session| session.work.close(false)));
        self.leaving.append(&mut self.remembered.close());
        for thread in self.leaving.drain(..) {
            if let Err(panic) = thread.join() {
                panic::resume_unwind(panic);
            }
        }
    }

    /// Says in the handshake whether something is held here (docs/rudp.md section 10).
    fn announce(&self, listener: &mut Listener) {
        let held = self.holds || !self.sessions.is_empty() || !self.remembered.is_empty();
        listener.parameters_mut().application = vec![u8::from(held)];
    }

    fn on_event(&mut self, now: Time, listener: &mut Listener, handle: Handle, event: Event) {
        match event {
            Event::Opened { peer: key } => {
                let open = |connection: &&mut Connection| connection.is_open();
                let Some(connection) = listener.connection(handle).filter(open) else { return };
                let Some(from) = connection.path_stats().next().map(|path| path.addrs.remote)
                else {
                    return;
                };
                if self.directory.is_none() && !self.sessions.is_empty() {
                    // Standard output is one sender's.
                    connection.close(now, Code::Busy, &StoreError::Taken.to_string());
                    return;
                }
                let work = self.work();
                let (finished, heard, over) = (None, false, false);
                let read_at = now;
                let session =
                    Session { work, from, began: now, finished, read_at, left: false, heard, over };
                self.sessions.insert(handle, session);
                self.holds |= self.directory.is_some();
                self.announce(listener);
                (self.tell)(News::Opened { from, key });
            }
            Event::Content(ContentEvent::StreamDelivered { stream: STREAM }) => {
                if let Some(session) = self.sessions.get_mut(&handle) {
                    session.heard = true;
                }
                if let Some(connection) = listener.connection(handle) {
                    connection.close(now, Code::Done, "");
                }
            }
            Event::Closed { code, text, by_peer } => {
                self.on_closed(now, listener, handle, End::Closed { code, text, by_peer });
            }
            Event::Content(_) | Event::Path { .. } | Event::Address(_) => {}
        }
    }

    /// A session is over, or an attempt at one.
    fn on_closed(&mut self, now: Time, listener: &mut Listener, handle: Handle, end: End) {
        let Some(session) = self.sessions.remove(&handle) else {
            if let End::Closed {
                code: code @ (Code::WrongSecret | Code::Mode | Code::Idle), ..
            } = end
            {
                let path = listener.connection(handle).and_then(|it| it.path_stats().next());
                if let Some(from) = path.map(|path| path.addrs.remote) {
                    self.turned_away.note(from, code);
                }
            }
            return;
        };
        let Session { work, from, began, finished, heard, .. } = session;
        let Standing { received, is_spent, .. } = work.state();
        // The same sender has come again, and what it does decides.
        let superseded = matches!(end, End::Broken(ReceiveError::Store(StoreError::Superseded)));
        let silent = matches!(end, End::Closed { by_peer: false, code: Code::Idle, .. });
        let end = if finished.is_some() { End::Finished } else { end };
        let unheard = finished.is_some() && silent && !heard;
        let others = matches!(end, End::Broken(ReceiveError::Store(StoreError::Taken)));
        let waits = superseded
            || received.rehearsed
            || others
            || unheard
            || (silent && finished.is_none() && !is_spent);
        let seconds = finished.unwrap_or(now).since(began).as_secs_f64();
        (self.tell)(News::Ended { from, end: &end, received, seconds, unheard });
        let complete = finished.is_some() && received.is_whole();
        let verdict = if complete { Verdict::Complete } else { Verdict::Incomplete };
        if unheard {
            self.leaving.extend(self.remembered.add(now, work));
            self.unheard = Some(verdict);
        } else {
            self.leaving.extend(work.close(finished.is_some()));
        }
        // Where one transfer is complete already, another that fails changes nothing.
        if self.once && !waits && (finished.is_some() || self.unheard.is_none()) {
            self.verdict = Some(verdict);
        }
    }

    /// Gives a session's bytes to its receiver and sends what that has to say.
    fn serve(&mut self, now: Time, listener: &mut Listener, handle: Handle) {
        let Some(session) = self.sessions.get_mut(&handle).filter(|session| !session.over) else {
            return;
        };
        let Some(connection) = listener.connection(handle) else { return };
        session.go_on(now, connection);
        if let Some(error) = session.work.take_error() {
            let code = match error {
                ReceiveError::Peer(_) => Code::Protocol,
                ReceiveError::Version(_) => Code::Version,
                ReceiveError::Store(StoreError::Taken) => Code::Busy,
                ReceiveError::Store(_) | ReceiveError::NoRoom { .. } | ReceiveError::Output(_) => {
                    Code::Refused
                }
            };
            session.over = true;
            connection.close(now, code, &error.to_string());
            self.on_closed(now, listener, handle, End::Broken(error));
            return;
        }
        for problem in session.work.take_remarks() {
            (self.tell)(News::Problem(problem));
        }
    }

    fn tell_status(&mut self, now: Time) {
        for session in self.sessions.values() {
            let (from, received) = (session.from, session.work.state().received);
            let seconds = now.since(session.began).as_secs_f64();
            (self.tell)(News::Status { from, received, seconds });
        }
    }
}

impl Session {
    /// Carries bytes between the connection and the work.
    fn go_on(&mut self, now: Time, connection: &mut Connection) {
        let content = connection.content();
        self.left = now < self.read_at && content.readable(STREAM) < MUCH;
        if !self.left {
            let (mut room, mut blocks) = (self.work.room(), Vec::new());
            while room > 0
                && let Some(block) = content.read(now, STREAM)
            {
                room = room.saturating_sub(block.len());
                blocks.push(block.into());
                self.read_at = now + READ_EVERY;
            }
            self.work.give(now, &mut blocks);
        }
        // Asked first: what it says last stands in the outbox by then.
        let finished = self.work.state().is_finished;
        // A sender that reads no answers gets no more of them.
        while content.room(STREAM) > 0
            && let Some(block) = self.work.poll_block()
        {
            content.write(STREAM, block);
        }
        if finished && self.finished.is_none() && !self.work.has_block() {
            self.finished = Some(now);
            content.finish(STREAM);
        }
    }
}

//! `acklab send`: a transfer's sender on a connection of its own.
//!
//! One thread: the event loop of [`crate::rudp::driver`] calls [`Errand`] after every batch; it reads
//! what the receiver says, hands the next blocks over while the connection has room, and closes when all
//! is stored. The time that is told runs from the first datagram to the receiver's word that everything
//! is stored.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use acklab_core::rudp::protect::{ClientGreeter, PlainGreeter};
use acklab_core::rudp::{Code, Config, Connection, Event};
use acklab_core::time::Time;
use acklab_core::units::BitRate;

use super::limit::Limiter;
use super::report::{PathReport, Paths, Rhythm};
use super::sender::{BLOCK, Next, Progress, SendError, Sender};
use super::walk::{Survey, Totals, Walk};
use crate::rudp::OsEntropy;
use crate::rudp::driver::{Application, Driver, Sockets};
use crate::rudp::keys::{Identity, PublicKey};
use crate::rudp::noise::{KeysClient, PassphraseClient};
use crate::rudp::passphrase::Passphrase;
use crate::rudp::socket::SocketError;

/// How a sender shows who it is.
#[derive(Clone, Debug)]
pub enum Secret {
    /// What both ends know.
    Passphrase(Passphrase),
    /// A key of its own, and the receiver's.
    Keys(Identity, PublicKey),
    /// Not at all: for experiments.
    Insecure,
}

/// What is to be sent, and how.
#[derive(Clone, Debug)]
pub struct Errand {
    /// File or folder.
    pub what: PathBuf,
    /// The receiver.
    pub to: SocketAddr,
    /// Further paths: from where to where. One that leads to the receiver's address takes its place.
    pub paths: Vec<(IpAddr, SocketAddr)>,
    /// Who it is.
    pub secret: Secret,
    /// At most so much per second.
    pub rate: Option<BitRate>,
    /// Options of the connection.
    pub config: Config,
}

/// How a transfer ended.
#[derive(Debug)]
pub enum End {
    /// Everything was stored or refused.
    Finished,
    /// The user stopped it.
    Interrupted,
    /// The receiver said what cannot be.
    Broken(SendError),
    /// The connection ended before.
    Closed {
        /// Why.
        code: Code,
        /// In words.
        text: String,
        /// The receiver closed it.
        by_peer: bool,
    },
}

/// What was sent.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// How far it came.
    pub status: Status,
}

/// How far a transfer is.
#[derive(Clone, Debug)]
pub struct Status {
    /// Whether the receiver has answered.
    pub connected: bool,
    /// What it is about.
    pub totals: Totals,
    /// How far it is.
    pub progress: Progress,
    /// Seconds since the first datagram.
    pub seconds: f64,
    /// Files and folders that could not be read or were refused.
    pub failures: u64,
    /// Links, devices and the like that were left out.
    pub skipped: u64,
    /// Every path there was.
    pub paths: Vec<PathReport>,
}

impl Status {
    /// Bytes of IP packets sent.
    pub fn wire_bytes(&self) -> u64 {
        self.paths.iter().map(PathReport::wire_bytes).sum()
    }
}

/// What is told on the way.
#[derive(Debug)]
pub enum News<'a> {
    /// Five times a second.
    Status(&'a Status),
    /// Something was left out, could not be read or was refused.
    Problem(String),
}

/// Why nothing could be sent.
#[derive(Debug, thiserror::Error)]
pub enum ErrandError {
    /// The file or folder cannot be read.
    #[error("{}: {source}", path.display())]
    Source {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A socket cannot be had.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The event loop failed.
    #[error("event loop: {0}")]
    Loop(#[from] io::Error),
}

/// Sends until all is stored, the connection ends or `interrupted` becomes true.
pub fn send(
    errand: &Errand,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<Outcome, ErrandError> {
    let unreadable = |source| ErrandError::Source { path: errand.what.clone(), source };
    let survey = Survey::new(&errand.what).map_err(unreadable)?;
    let walk = Walk::new(&errand.what).map_err(unreadable)?;
    let mut sockets = Sockets::default();
    let mut paths = Vec::new();
    if errand.paths.iter().all(|&(_, remote)| remote != errand.to) {
        paths.push(sockets.add(None, errand.to)?);
    }
    for &(local, remote) in &errand.paths {
        paths.push(sockets.add(Some(local), remote)?);
    }
    let greeter: Box<dyn ClientGreeter> = match &errand.secret {
        Secret::Passphrase(passphrase) => Box::new(PassphraseClient::new(passphrase.clone())),
        Secret::Keys(identity, peer) => Box::new(KeysClient::new(identity.clone(), *peer)),
        Secret::Insecure => Box::new(PlainGreeter),
    };
    let mut driver = Driver::new(sockets)?;
    let (began, entropy) = (driver.now(), Box::new(OsEntropy::default()));
    let mut config = errand.config.clone();
    config.keep_alive = true;
    let mut connection = Connection::connect(began, config, entropy, greeter, &paths);
    let mut sending = Sending {
        walk: Some(walk),
        survey,
        sender: None,
        limiter: Limiter::new(began, errand.rate),
        rate: errand.rate,
        began,
        ended: None,
        closing: false,
        more: false,
        paths: Paths::default(),
        rhythm: Rhythm::default(),
        interrupted,
        tell,
    };
    driver.run(&mut connection, &mut sending)?;
    sending.paths.update(&connection);
    let (end, at) = sending.ended.take().unwrap_or((End::Interrupted, driver.now()));
    let status = sending.status(at);
    Ok(Outcome { end, status })
}

struct Sending<'a> {
    walk: Option<Walk>,
    survey: Survey,
    sender: Option<(Sender, u64)>,
    limiter: Limiter,
    rate: Option<BitRate>,
    began: Time,
    ended: Option<(End, Time)>,
    /// CLOSE is to leave before the loop ends.
    closing: bool,
    /// There is work that waits for nothing.
    more: bool,
    paths: Paths,
    rhythm: Rhythm,
    interrupted: &'a AtomicBool,
    tell: &'a mut dyn FnMut(News<'_>),
}

/// Blocks that are read, hashed and handed over before the connection may send again.
const BLOCKS: usize = 2;
/// Below so much room a block is not worth reading.
const ROOM_LEAST: u64 = 128 << 10;

impl Application<Connection> for Sending<'_> {
    fn on_progress(
        &mut self,
        now: Time,
        connection: &mut Connection,
        _sockets: &mut Sockets,
    ) -> ControlFlow<()> {
        if self.closing {
            return ControlFlow::Break(());
        }
        while let Some(event) = connection.poll_event() {
            self.on_event(now, connection, event);
        }
        if let Err(error) = self.read(now, connection) {
            connection.close(now, Code::Protocol, &error.to_string());
            self.end(now, End::Broken(error));
        }
        if self.sender.as_ref().is_some_and(|(sender, _)| sender.is_finished()) {
            connection.close(now, Code::Done, "");
            self.end(now, End::Finished);
        }
        if self.rhythm.is_due(now) {
            if self.interrupted.load(Ordering::Relaxed) {
                connection.close(now, Code::Stopped, "");
                self.end(now, End::Interrupted);
            }
            self.paths.update(connection);
            let status = self.status(now);
            (self.tell)(News::Status(&status));
        }
        if self.ended.is_some() {
            self.closing = true;
            return ControlFlow::Continue(());
        }
        self.write(now, connection);
        ControlFlow::Continue(())
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.closing || (self.more && self.rate.is_none()) {
            return Some(Time::ZERO);
        }
        let due = if self.more { self.limiter.due() } else { Time::MAX };
        Some(due.min(self.rhythm.next()))
    }
}

impl Sending<'_> {
    fn on_event(&mut self, now: Time, connection: &mut Connection, event: Event) {
        match event {
            Event::Opened { .. } => {
                let asks = connection
                    .peer_parameters()
                    .is_some_and(|peer| peer.application.first() == Some(&1));
                let stream = connection.content().open_stream(now, true);
                if let (Some(walk), Some(stream)) = (self.walk.take(), stream) {
                    self.sender = Some((Sender::new(walk, self.survey, asks), stream));
                }
            }
            Event::Closed { code, text, by_peer } => {
                self.end(now, End::Closed { code, text, by_peer });
            }
            Event::Content(_) | Event::Path { .. } | Event::Address(_) => {}
        }
    }

    fn end(&mut self, now: Time, end: End) {
        self.ended.get_or_insert((end, now));
    }

    fn read(&mut self, now: Time, connection: &mut Connection) -> Result<(), SendError> {
        let Some((sender, stream)) = &mut self.sender else { return Ok(()) };
        while let Some(block) = connection.content().read(now, *stream) {
            sender.handle_block(block.into())?;
        }
        Ok(())
    }

    /// Hands blocks over while there is room for them.
    fn write(&mut self, now: Time, connection: &mut Connection) {
        self.more = false;
        let Some((sender, stream)) = &mut self.sender else { return };
        for _ in 0..BLOCKS {
            let content = connection.content();
            if content.room(*stream) < ROOM_LEAST {
                break;
            }
            self.more = true;
            if !self.limiter.is_open(now) {
                break;
            }
            match sender.poll_block(self.limiter.room(now).min(BLOCK)) {
                Next::Block(block) => {
                    self.limiter.take(block.len());
                    content.write(*stream, block);
                }
                Next::Busy => {}
                Next::Waiting => {
                    self.more = false;
                    break;
                }
            }
        }
        for problem in sender.take_problems() {
            (self.tell)(News::Problem(problem));
        }
    }

    fn status(&self, now: Time) -> Status {
        let sender = self.sender.as_ref().map(|(sender, _)| sender);
        Status {
            connected: sender.is_some(),
            totals: self.survey.totals,
            progress: sender.map(Sender::progress).unwrap_or_default(),
            seconds: now.since(self.began).as_secs_f64(),
            failures: sender.map_or(0, Sender::failures),
            skipped: sender.map_or(0, Sender::skipped),
            paths: self.paths.to_vec(),
        }
    }
}

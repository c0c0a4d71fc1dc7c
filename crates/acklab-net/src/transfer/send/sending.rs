//! One connection of a transfer's sender, driven by the event loop.

use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use acklab_core::endpoint::Endpoint as _;
use acklab_core::time::{Span, Time};
use acklab_rudp::protect::{ClientGreeter, Entropy, PlainGreeter};
use acklab_rudp::{Code, Connection, Event, PathAddrs};
use nix::errno::Errno;

use super::errand::{Errand, ErrandError, Secret, What};
use super::status::{Before, End, News, Outcome, Status};
use super::ways::Ways;
use crate::rudp::OsEntropy;
use crate::rudp::driver::{Application, Driver, Sockets};
use crate::rudp::noise::{KeysClient, PassphraseClient};
use crate::transfer::limit::Limiter;
use crate::transfer::receive;
use crate::transfer::record::TransferId;
use crate::transfer::report::{Paths, Rhythm};
use crate::transfer::sender::{BLOCK, Next, SendError, Sender};
use crate::transfer::stdin::Input;
use crate::transfer::walk::{Survey, Totals, Walk};

/// Sends over one connection, until it ends.
pub(super) fn attempt(
    errand: &Errand,
    before: &Before,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<Outcome, ErrandError> {
    let (origin, name) = match &errand.what {
        What::Stream { name } => (None, Some(name.clone())),
        What::Tree { paths, exclude } => {
            (Some((Walk::new(paths, exclude)?, Survey::new(paths, exclude)?)), None)
        }
    };
    let mut sockets = Sockets::default();
    let (ways, paths) = Ways::open(errand, &mut sockets, !before.was_connected(), tell)?;
    let alternatives = ways.alternatives(errand, &paths, &mut sockets);
    let mut driver = Driver::new(sockets)?;
    let (began, waker) = (driver.now(), driver.waker());
    let input = name.map(|name| (Input::new(io::stdin(), move || waker.wake()), name));
    let mut connection = connect(errand, began, &paths);
    for addrs in alternatives {
        connection.greet_also(addrs);
    }
    let mut sending = Sending {
        totals: origin.as_ref().map_or_else(Totals::default, |(_, survey)| survey.totals),
        origin,
        input,
        sender: None,
        ways,
        limiter: Limiter::new(began, errand.rate),
        errand,
        began,
        before,
        ended: None,
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

fn connect(errand: &Errand, now: Time, paths: &[PathAddrs]) -> Connection {
    let greeter: Box<dyn ClientGreeter> = match &errand.secret {
        Secret::Passphrase(passphrase) => Box::new(PassphraseClient::new(passphrase.clone())),
        Secret::Keys(identity, peer) => Box::new(KeysClient::new(identity.clone(), *peer)),
        Secret::Insecure => Box::new(PlainGreeter),
    };
    let mut config = errand.config.clone();
    config.keep_alive = true;
    config.parameters.idle_ms = if errand.is_stream() { receive::IDLE_MS } else { IDLE_MS };
    Connection::connect(now, config, Box::new(OsEntropy::default()), greeter, paths)
}

/// A receiver that is silent for so long has died or lost its state: the sender greets anew
/// (docs/rudp.md section 3, "Close, idle, reset"). A stream cannot be sent anew, so its sender waits for as long
/// as the receiver does.
const IDLE_MS: u64 = 5000;

/// How long a receiver that has stored everything may take to close.
const GOODBYE: Span = Span::from_secs(1);

/// The application of the connection.
struct Sending<'a> {
    totals: Totals,
    /// What is to be sent, until the receiver has answered.
    origin: Option<(Walk, Survey)>,
    /// Standard input, and what it is called at the receiver, until then.
    input: Option<(Input, String)>,
    sender: Option<(Sender, u64)>,
    ways: Ways,
    limiter: Limiter,
    errand: &'a Errand,
    began: Time,
    before: &'a Before,
    ended: Option<(End, Time)>,
    /// There is work that waits for nothing.
    more: bool,
    paths: Paths,
    rhythm: Rhythm,
    interrupted: &'a AtomicBool,
    tell: &'a mut dyn FnMut(News<'_>),
}

/// A transfer that is never resumed.
fn once() -> TransferId {
    let mut id = TransferId::default();
    OsEntropy::default().fill(&mut id);
    id
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
        sockets: &mut Sockets,
    ) -> ControlFlow<()> {
        while let Some(event) = connection.poll_event() {
            self.on_event(now, connection, event);
        }
        for (remote, errno) in sockets.take_hints() {
            self.on_hint(remote, errno);
        }
        if let Err(error) = self.read(now, connection) {
            connection.close(now, Code::Protocol, &error.to_string());
            self.end(now, End::Broken(error));
        }
        // Also what came together with the end.
        self.tell_problems();
        if self.sender.as_ref().is_some_and(|(sender, _)| sender.is_finished()) {
            self.end(now, End::Finished);
        }
        if self.rhythm.is_due(now) {
            if self.interrupted.load(Ordering::Relaxed) {
                connection.close(now, Code::Stopped, "");
                self.end(now, End::Interrupted);
            }
            if self.sender.is_some()
                && !self.errand.is_stream()
                && now.since(self.began) > self.errand.renewal
            {
                // The receiver closes this one when the next one names the same transfer.
                self.end(now, End::Renewed);
            }
            for path in self.ways.retry(sockets) {
                connection.add_path(now, path);
            }
            self.paths.update(connection);
            let status = self.status(now);
            (self.tell)(News::Status(&status));
        }
        if let Some((end, at)) = &self.ended {
            let everything = matches!(end, End::Finished);
            // Its FIN is acknowledged, however often, until it closes, so that it knows that this end does.
            if everything && connection.is_open() && now.since(*at) < GOODBYE {
                return ControlFlow::Continue(());
            }
            if everything {
                connection.close(now, Code::Done, "");
            }
            return ControlFlow::Break(());
        }
        self.write(now, connection);
        ControlFlow::Continue(())
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.more && self.errand.rate.is_none() {
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
                let sender = match (self.origin.take(), self.input.take()) {
                    (Some((walk, survey)), _) if self.errand.rehearsal => {
                        Some(Sender::rehearsal(walk, survey))
                    }
                    (Some((walk, survey)), _) => Some(Sender::new(walk, survey, asks)),
                    (None, Some((input, name))) => Some(Sender::of_stream(input, &name, once())),
                    (None, None) => None,
                };
                self.sender = sender.zip(stream);
            }
            Event::Closed { code, text, by_peer } => {
                self.end(now, End::Closed { code, text, by_peer });
            }
            Event::Content(_) | Event::Path { .. } | Event::Address(_) => {}
        }
    }

    /// The kernel or ICMP says why no answer may come. It is tried on: that may pass, or be a forgery.
    fn on_hint(&mut self, remote: SocketAddr, errno: Errno) {
        if self.sender.is_none()
            && let Some(hint) = self.ways.on_hint(remote, errno)
        {
            (self.tell)(News::Problem(hint));
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
        self.tell_problems();
    }

    fn tell_problems(&mut self) {
        let Some((sender, _)) = &mut self.sender else { return };
        for problem in sender.take_problems() {
            (self.tell)(News::Problem(problem));
        }
        for due in sender.take_due() {
            (self.tell)(News::Due(&due));
        }
    }

    fn status(&self, now: Time) -> Status {
        let sender = self.sender.as_ref().map(|(sender, _)| sender);
        self.before.with(Status {
            connected: sender.is_some(),
            totals: self.totals,
            progress: sender.map(Sender::progress).unwrap_or_default(),
            seconds: now.since(self.began).as_secs_f64(),
            paths: self.paths.to_vec(),
        })
    }
}

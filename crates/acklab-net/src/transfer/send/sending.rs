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
use super::job::{Job, Remark};
use super::status::{Before, End, News, Outcome, Status};
use super::ways::Ways;
use crate::rudp::OsEntropy;
use crate::rudp::driver::{Application, Driver, Sockets, Waker};
use crate::rudp::noise::{KeysClient, PassphraseClient};
use crate::transfer::limit::Limiter;
use crate::transfer::receive;
use crate::transfer::record::TransferId;
use crate::transfer::report::{Paths, Rhythm};
use crate::transfer::sender::{BLOCK, Sender};
use crate::transfer::stdin::Input;
use crate::transfer::walk::{Survey, Totals, Walk};
use crate::transfer::worker::{Call, Worker};

/// Sends over one connection, until it ends.
pub(super) fn attempt(
    errand: &Errand,
    before: &Before,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(News<'_>),
) -> Result<Outcome, ErrandError> {
    let origin = match &errand.what {
        What::Stream { .. } => None,
        What::Tree { paths, exclude } => {
            Some((Walk::new(paths, exclude)?, Survey::new(paths, exclude)?))
        }
    };
    let mut sockets = Sockets::default();
    let (ways, paths) = Ways::open(errand, &mut sockets, !before.was_connected(), tell)?;
    let alternatives = ways.alternatives(errand, &paths, &mut sockets);
    let mut driver = Driver::new(sockets)?;
    let (began, waker) = (driver.now(), driver.waker());
    let mut connection = connect(errand, began, &paths);
    for addrs in alternatives {
        connection.greet_also(addrs);
    }
    let mut sending = Sending {
        totals: origin.as_ref().map_or_else(Totals::default, |(_, survey)| survey.totals),
        origin,
        waker,
        work: None,
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
    let (end, at) =
        sending.ended.take().map_or((End::Interrupted, driver.now()), |it| (it.end, it.at));
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
    waker: Waker,
    work: Option<(Worker<Job>, u64)>,
    ways: Ways,
    limiter: Limiter,
    errand: &'a Errand,
    began: Time,
    before: &'a Before,
    ended: Option<Ended>,
    /// There is work that waits for nothing.
    more: bool,
    paths: Paths,
    rhythm: Rhythm,
    interrupted: &'a AtomicBool,
    tell: &'a mut dyn FnMut(News<'_>),
}

/// How it ended, and when.
struct Ended {
    end: End,
    at: Time,
    /// What came before it is not understood yet, and may be another end.
    is_pending: bool,
}

/// A transfer that is never resumed.
fn once() -> TransferId {
    let mut id = TransferId::default();
    OsEntropy::default().fill(&mut id);
    id
}

/// Blocks that are handed over before the connection may send again.
const BLOCKS: usize = 2;
/// Below so much room a block is not handed over.
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
        self.read(now, connection);
        if let Some(error) = self.work.as_ref().and_then(|(work, _)| work.take_error()) {
            connection.close(now, Code::Protocol, &error.to_string());
            self.end(now, End::Broken(error));
        }
        // Asked first: what came together with the end is told by then.
        let finished = self.work.as_ref().is_some_and(|(work, _)| work.state().is_finished);
        self.tell_problems();
        if finished {
            self.end(now, End::Finished);
        }
        // The receiver closes when it has said everything, and that may not be understood yet.
        if let Some(ended) = self.ended.as_mut().filter(|ended| ended.is_pending) {
            ended.is_pending = self.work.as_ref().is_some_and(|(work, _)| work.is_behind());
        }
        if self.rhythm.is_due(now) {
            if let Some((work, _)) = &mut self.work {
                work.tick(now);
            }
            if self.interrupted.load(Ordering::Relaxed) {
                connection.close(now, Code::Stopped, "");
                self.end(now, End::Interrupted);
            }
            if self.work.is_some()
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
        if let Some(Ended { end, at, is_pending: false }) = &self.ended {
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
                self.work = stream.map(|stream| (self.work(asks), stream));
            }
            Event::Closed { code, text, by_peer } => {
                let end = End::Closed { code, text, by_peer };
                self.ended.get_or_insert(Ended { end, at: now, is_pending: true });
            }
            Event::Content(_) | Event::Path { .. } | Event::Address(_) => {}
        }
    }

    /// The kernel or ICMP says why no answer may come. It is tried on: that may pass, or be a forgery.
    fn on_hint(&mut self, remote: SocketAddr, errno: Errno) {
        if self.work.is_none()
            && let Some(hint) = self.ways.on_hint(remote, errno)
        {
            (self.tell)(News::Problem(hint));
        }
    }

    fn end(&mut self, now: Time, end: End) {
        if self.ended.as_ref().is_none_or(|ended| ended.is_pending) {
            self.ended = Some(Ended { end, at: now, is_pending: false });
        }
    }

    /// Starts to send.
    fn work(&mut self, asks: bool) -> Worker<Job> {
        let (origin, rehearsal) = (self.origin.take(), self.errand.rehearsal);
        let name = match &self.errand.what {
            What::Stream { name } => name.as_str(),
            What::Tree { .. } => "",
        };
        let make = |call: Call| match origin {
            Some((walk, survey)) if rehearsal => Sender::rehearsal(walk, survey),
            Some((walk, survey)) => Sender::new(walk, survey, asks),
            None => {
                let input = Input::new(io::stdin(), move || call());
                Sender::of_stream(input, name, once())
            }
        };
        let (block, waker) = (self.limiter.block(BLOCK), self.waker.clone());
        Worker::start(|call| Job::new(make(call), block), move || waker.wake(), Vec::new())
    }

    fn read(&mut self, now: Time, connection: &mut Connection) {
        let Some((work, stream)) = &mut self.work else { return };
        let (mut room, mut blocks) = (work.room(), Vec::new());
        while room > 0
            && let Some(block) = connection.content().read(now, *stream)
        {
            room = room.saturating_sub(block.len());
            blocks.push(block.into());
        }
        work.give(now, &mut blocks);
    }

    /// Hands blocks over while there is room for them.
    fn write(&mut self, now: Time, connection: &mut Connection) {
        self.more = false;
        let Some((work, stream)) = &mut self.work else { return };
        for _ in 0..BLOCKS {
            let content = connection.content();
            self.more = content.room(*stream) >= ROOM_LEAST && work.has_block();
            if !self.more || !self.limiter.is_open(now) {
                break;
            }
            if let Some(block) = work.poll_block() {
                self.limiter.take(block.len());
                content.write(*stream, block);
            }
        }
    }

    fn tell_problems(&mut self) {
        let Some((work, _)) = &mut self.work else { return };
        for remark in work.take_remarks() {
            match remark {
                Remark::Problem(problem) => (self.tell)(News::Problem(problem)),
                Remark::Due(due) => (self.tell)(News::Due(&due)),
            }
        }
    }

    fn status(&self, now: Time) -> Status {
        let work = self.work.as_ref().map(|(work, _)| work);
        let mut progress = work.map(Worker::state).unwrap_or_default().progress;
        // What was read ahead is not sent; the few bytes around content count as content here.
        progress.sent = progress.sent.saturating_sub(work.map_or(0, Worker::ahead) as u64);
        self.before.with(Status {
            connected: work.is_some(),
            totals: self.totals,
            progress,
            seconds: now.since(self.began).as_secs_f64(),
            paths: self.paths.to_vec(),
        })
    }
}

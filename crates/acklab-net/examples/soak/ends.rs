//! The two ends: one sends streams and parcels of every size, the other checks them, and now and then
//! reads nothing for a while.

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acklab_core::endpoint::Endpoint as _;
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_net::rudp::OsEntropy;
use acklab_net::rudp::driver::{Application, Driver, Sockets};
use acklab_net::rudp::noise::{PassphraseClient, PassphraseServer};
use acklab_net::rudp::passphrase::Passphrase;
use acklab_rudp::wire::Kind;
use acklab_rudp::{
    Code, Config, Connection, ContentEvent, Event, Handle, Limits, Listener, ParcelError,
};

use crate::ledger::{self, Ledger};
use crate::memory;
use crate::relay::HERE;

/// Streams under way at once.
const STREAMS: usize = 4;
/// Longest stream and parcel, bytes.
const STREAM_MOST: u64 = 8 << 20;
const PARCEL_MOST: u64 = 400_000;
/// Written at a time.
const BLOCK: u64 = 64 << 10;
/// Time between parcels, at most.
const PARCELS: Span = Span::from_millis(200);
/// All that was sent must have arrived so long after the last of it was written.
const PATIENCE: Span = Span::from_secs(120);
/// A receiver's pause, at most, and how often one begins, on average.
const PAUSE: Span = Span::from_secs(3);
const PAUSE_EVERY: Span = Span::from_secs(10);
/// Once all has arrived, the connection stays open for so long before memory is looked at: longer than a pause, and than an
/// EXPIRING parcel lives.
const REST: Span = Span::from_secs(4);
/// Whether all has arrived is looked at so often at least.
const LOOK: Span = Span::from_millis(100);
const PASSPHRASE: &str = "a long walk in the rain";

fn passphrase() -> Passphrase {
    PASSPHRASE.parse().expect("it is long enough")
}

/// The sending end.
pub(crate) struct Sender {
    rng: Rng,
    time: Span,
    ledger: Arc<Ledger>,
    /// What is left to write, by stream.
    streams: BTreeMap<u64, (u64, u64)>,
    serial: u64,
    next_parcel: Time,
    wake: Time,
    ends: Time,
    opened: bool,
    /// Since when all has arrived.
    even: Option<Time>,
    /// Bytes that were allocated when it closed, [`REST`] after that.
    open: Option<usize>,
    fault: Option<String>,
}

impl Sender {
    pub(crate) fn new(seed: u64, time: Span, ledger: Arc<Ledger>) -> Self {
        Self {
            rng: Rng::named(seed, "sender"),
            time,
            ledger,
            streams: BTreeMap::new(),
            serial: 0,
            next_parcel: Time::ZERO,
            wake: Time::ZERO,
            ends: Time::ZERO,
            opened: false,
            even: None,
            open: None,
            fault: None,
        }
    }

    /// Connects over all the roads and sends until the time is over and everything has arrived; returns what was allocated
    /// then, bytes.
    pub(crate) fn run(&mut self, fronts: &[SocketAddr]) -> Result<usize, Box<dyn Error>> {
        let mut sockets = Sockets::default();
        let paths =
            fronts.iter().map(|&to| sockets.add(Some(HERE), to)).collect::<Result<Vec<_>, _>>()?;
        let mut driver = Driver::new(sockets)?;
        let now = driver.now();
        self.ends = now + self.time;
        let mut connection = Connection::connect(
            now,
            Config::default(),
            Box::new(OsEntropy::default()),
            Box::new(PassphraseClient::new(passphrase())),
            &paths,
        );
        driver.run(&mut connection, self)?;
        match self.fault.take() {
            Some(fault) => Err(fault.into()),
            None => self.open.ok_or_else(|| "it ended before all had arrived".into()),
        }
    }

    fn send_streams(&mut self, now: Time, connection: &mut Connection) {
        while self.streams.len() < STREAMS
            && let Some(stream) = connection.content().open_stream(now, false)
        {
            let length = ledger::any_size(&mut self.rng, STREAM_MOST);
            self.streams.insert(stream, (0, length));
            ledger::add(&self.ledger.streams_sent, 1);
        }
    }

    fn write_streams(&mut self, connection: &mut Connection) {
        let content = connection.content();
        self.streams.retain(|&stream, (at, length)| {
            while *at < *length && content.room(stream) > 0 {
                let now = BLOCK.min(*length - *at);
                let mut block = vec![0; now as usize];
                ledger::stream_bytes(stream, *at, &mut block);
                content.write(stream, block);
                *at += now;
            }
            if *at == *length {
                content.finish(stream);
            }
            *at < *length
        });
    }

    fn send_parcels(&mut self, now: Time, connection: &mut Connection) {
        while self.next_parcel <= now {
            self.next_parcel = now + Span::from_nanos(self.rng.below(PARCELS.as_nanos()));
            let kind = match self.rng.below(3) {
                0 => Kind::Reliable,
                1 => Kind::OneShot,
                _ => Kind::Expiring { life_ms: 20 + self.rng.below(1000) },
            };
            // The parity of the serial number tells the receiver what must arrive.
            let serial = self.serial * 2 + u64::from(kind == Kind::Reliable);
            let length = ledger::any_size(&mut self.rng, PARCEL_MOST) as usize;
            let bytes = ledger::parcel(serial, length);
            let redundant = self.rng.chance(0.2);
            match connection.content().send_parcel(now, bytes, kind, 4, redundant) {
                Ok(_) => {
                    self.serial += 1;
                    ledger::add(&self.ledger.parcels_sent, 1);
                    let must = u64::from(kind == Kind::Reliable);
                    ledger::add(&self.ledger.reliable_sent, must);
                }
                Err(ParcelError::Full) => break,
                Err(error) => self.ledger.fault(format!("a parcel of {length} B: {error}")),
            }
        }
    }
}

impl Application<Connection> for Sender {
    fn on_progress(
        &mut self,
        now: Time,
        connection: &mut Connection,
        _: &mut Sockets,
    ) -> ControlFlow<()> {
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Opened { .. } => self.opened = true,
                Event::Closed { code, text, by_peer } => {
                    if !(self.open.is_some() && code == Code::Done) {
                        let who = if by_peer { "receiver" } else { "sender" };
                        let at = now.as_secs_f64();
                        self.fault =
                            Some(format!("the {who} ended it at {at:.1} s: {code}: {text}"));
                    }
                    return ControlFlow::Break(());
                }
                _ => {}
            }
        }
        self.wake = now + LOOK;
        if !self.opened || self.open.is_some() {
            return ControlFlow::Continue(());
        }
        if now < self.ends {
            self.send_streams(now, connection);
            self.send_parcels(now, connection);
            self.wake = self.wake.min(self.next_parcel);
        }
        self.write_streams(connection);
        if now >= self.ends && self.streams.is_empty() && self.ledger.is_even() {
            if now >= *self.even.get_or_insert(now) + REST {
                self.open = Some(memory::allocated());
                connection.close(now, Code::Done, "");
            }
        } else if now >= self.ends + PATIENCE {
            self.fault = Some(format!("not all arrived within {PATIENCE:?}: {:?}", self.ledger));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.wake)
    }
}

/// The receiving end.
pub(crate) struct Taker {
    rng: Rng,
    ledger: Arc<Ledger>,
    over: Arc<AtomicBool>,
    /// How far each stream was read.
    streams: BTreeMap<(Handle, u64), u64>,
    /// A bit per serial number that has arrived.
    seen: Vec<u64>,
    silent_until: Time,
    next_pause: Time,
    wake: Time,
}

impl Taker {
    pub(crate) fn new(seed: u64, ledger: Arc<Ledger>, over: Arc<AtomicBool>) -> Self {
        Self {
            rng: Rng::named(seed, "receiver"),
            ledger,
            over,
            streams: BTreeMap::new(),
            seen: Vec::new(),
            silent_until: Time::ZERO,
            next_pause: Time::ZERO + PAUSE_EVERY,
            wake: Time::ZERO,
        }
    }

    /// Serves until told that it is over.
    pub(crate) fn run(&mut self, driver: &mut Driver) -> std::io::Result<()> {
        let mut listener = Listener::new(
            driver.now(),
            Config::default(),
            || Box::new(OsEntropy::default()),
            Box::new(PassphraseServer::new(passphrase())),
            Limits::default(),
        );
        driver.run(&mut listener, self)
    }

    fn read(&mut self, now: Time, handle: Handle, connection: &mut Connection) {
        let streams: Vec<u64> =
            self.streams.range((handle, 0)..=(handle, u64::MAX)).map(|(&(_, id), _)| id).collect();
        for stream in streams {
            while let Some(block) = connection.content().read(now, stream) {
                self.check(handle, stream, &block, block.offset, block.fin);
            }
        }
        while let Some((_, bytes)) = connection.content().receive_parcel() {
            self.take_parcel(&bytes);
        }
    }

    fn check(&mut self, handle: Handle, stream: u64, bytes: &[u8], offset: u64, fin: bool) {
        let at = self.streams.entry((handle, stream)).or_insert(0);
        if *at != offset {
            self.ledger.fault(format!("stream {stream}: {offset} follows on {at}"));
        }
        if let Some(place) = ledger::first_wrong(stream, offset, bytes) {
            self.ledger.fault(format!("stream {stream}: byte {place} is wrong"));
        }
        *at += bytes.len() as u64;
        ledger::add(&self.ledger.bytes, bytes.len() as u64);
        if fin {
            self.streams.remove(&(handle, stream));
            ledger::add(&self.ledger.streams_whole, 1);
        }
    }

    fn take_parcel(&mut self, bytes: &[u8]) {
        let Some(serial) = ledger::read_parcel(bytes) else {
            self.ledger.fault(format!("a parcel of {} bytes arrived damaged", bytes.len()));
            return;
        };
        let (word, bit) = ((serial / 64) as usize, 1 << (serial % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            self.ledger.fault(format!("parcel {serial} arrived twice"));
        }
        self.seen[word] |= bit;
        let counts = &self.ledger;
        let count = if serial % 2 == 1 { &counts.reliable_arrived } else { &counts.other_arrived };
        ledger::add(count, 1);
    }
}

impl Application<Listener> for Taker {
    fn on_progress(
        &mut self,
        now: Time,
        listener: &mut Listener,
        _: &mut Sockets,
    ) -> ControlFlow<()> {
        if self.over.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        while let Some((handle, event)) = listener.poll_event() {
            if let Event::Content(ContentEvent::StreamOpened { stream }) = event {
                self.streams.insert((handle, stream), 0);
            }
        }
        if now >= self.next_pause {
            self.next_pause = now + Span::from_nanos(self.rng.below(2 * PAUSE_EVERY.as_nanos()));
            self.silent_until = now + Span::from_nanos(self.rng.below(PAUSE.as_nanos()));
            ledger::add(&self.ledger.pauses, 1);
        }
        self.wake = self.next_pause;
        if now < self.silent_until {
            self.wake = self.wake.min(self.silent_until);
        } else {
            for (handle, connection) in listener.connections() {
                self.read(now, handle, connection);
            }
        }
        ControlFlow::Continue(())
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.wake)
    }
}

//! acklab's reliable UDP from memory to memory, as the peers are measured: no files, no hashes, otherwise
//! what `acklab send` and `acklab recv` use.
//!
//!     rudp-peer recv ADDR:PORT...               one transfer
//!     rudp-peer send BYTES REMOTE [LOCAL,REMOTE]...

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use acklab_bench_transport::{CHUNK, say};
use acklab_core::endpoint::Endpoint as _;
use acklab_core::time::Time;
use acklab_net::rudp::OsEntropy;
use acklab_net::rudp::driver::{Application, Driver, Sockets};
use acklab_net::rudp::noise::{PassphraseClient, PassphraseServer};
use acklab_rudp::{Code, Config, Connection, ContentEvent, Event, Handle, Limits, Listener};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const PASSPHRASE: &str = "bench transport side by side";

fn main() -> Outcome {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["recv", ref addresses @ ..] => receive(addresses),
        ["send", bytes, ref paths @ ..] => send(bytes.parse()?, paths),
        _ => Err("usage: rudp-peer recv ADDR... | send BYTES REMOTE [LOCAL,REMOTE]...".into()),
    }
}

fn receive(addresses: &[&str]) -> Outcome {
    let addresses = addresses.iter().map(|word| word.parse()).collect::<Result<Vec<_>, _>>()?;
    let mut driver = Driver::new(Sockets::listen(&addresses)?)?;
    let mut listener = Listener::new(
        driver.now(),
        Config::default(),
        || Box::new(OsEntropy::default()),
        Box::new(PassphraseServer::new(PASSPHRASE.parse()?)),
        Limits::default(),
    );
    driver.run(&mut listener, &mut Counter(BTreeMap::new()))?;
    Ok(())
}

/// Counts what arrives on each stream and answers with the sum.
struct Counter(BTreeMap<(Handle, u64), u64>);

impl Application<Listener> for Counter {
    fn on_progress(
        &mut self,
        now: Time,
        listener: &mut Listener,
        _: &mut Sockets,
    ) -> ControlFlow<()> {
        while let Some((handle, event)) = listener.poll_event() {
            match event {
                Event::Content(ContentEvent::StreamOpened { stream }) => {
                    self.0.insert((handle, stream), 0);
                }
                Event::Closed { .. } => return ControlFlow::Break(()),
                _ => {}
            }
        }
        for ((handle, stream), total) in &mut self.0 {
            let Some(connection) = listener.connection(*handle) else { continue };
            while let Some(block) = connection.content().read(now, *stream) {
                *total += block.len() as u64;
                if block.fin {
                    connection.content().write(*stream, total.to_be_bytes().to_vec());
                    connection.content().finish(*stream);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn send(bytes: u64, paths: &[&str]) -> Outcome {
    let start = Instant::now();
    let mut sockets = Sockets::default();
    let mut addrs = Vec::new();
    for path in paths {
        let (local, remote) = match path.split_once(',') {
            Some((local, remote)) => (Some(local.parse::<IpAddr>()?), remote),
            None => (None, *path),
        };
        addrs.push(sockets.add(local, remote.parse::<SocketAddr>()?)?);
    }
    let mut driver = Driver::new(sockets)?;
    let mut connection = Connection::connect(
        driver.now(),
        Config::default(),
        Box::new(OsEntropy::default()),
        Box::new(PassphraseClient::new(PASSPHRASE.parse()?)),
        &addrs,
    );
    let mut source =
        Source { start, bytes, left: bytes, stream: None, answer: Vec::new(), took: None };
    driver.run(&mut connection, &mut source)?;
    for path in connection.path_stats() {
        eprintln!("{path:?}");
    }
    let answer = source.answer.first_chunk().copied().ok_or("the connection ended early")?;
    say(u64::from_be_bytes(answer), bytes, source.took.ok_or("no answer")?)
}

/// Writes so many bytes and waits for the sum.
struct Source {
    start: Instant,
    bytes: u64,
    left: u64,
    stream: Option<u64>,
    answer: Vec<u8>,
    took: Option<Duration>,
}

impl Application<Connection> for Source {
    fn on_progress(
        &mut self,
        now: Time,
        connection: &mut Connection,
        _: &mut Sockets,
    ) -> ControlFlow<()> {
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Opened { .. } => self.stream = connection.content().open_stream(now, true),
                Event::Closed { code, text, .. } => {
                    if self.took.is_none() {
                        eprintln!("closed after {} of {}: {code} {text}", self.left, self.bytes);
                    }
                    return ControlFlow::Break(());
                }
                _ => {}
            }
        }
        let (Some(stream), None) = (self.stream, self.took) else {
            return ControlFlow::Continue(());
        };
        let content = connection.content();
        while self.left > 0 && content.room(stream) > 0 {
            let block = vec![0x5a; self.left.min(CHUNK as u64) as usize];
            self.left -= block.len() as u64;
            content.write(stream, block);
            if self.left == 0 {
                content.finish(stream);
            }
        }
        while let Some(block) = content.read(now, stream) {
            self.answer.extend_from_slice(&block);
            if block.fin {
                self.took = Some(self.start.elapsed());
                connection.close(now, Code::Done, "");
                break;
            }
        }
        ControlFlow::Continue(())
    }
}

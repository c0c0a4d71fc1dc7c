//! What the socket layer alone costs: CPU seconds per gigabyte of payload, sending and receiving.
//!
//!     udp_floor recv ADDR:PORT
//!     udp_floor send ADDR:PORT BYTES [DATAGRAM]
//!
//! The receiver counts until half a second brings nothing. Nothing is acknowledged, so what a slower
//! receiver misses is lost; its figure is per gigabyte that it got.

use std::env;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;

use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::packet::Ecn;
use acklab_core::time::{Span, Time};
use acklab_net::rudp::driver::{Application, Driver, Sockets};
use acklab_rudp::{Batch, Datagram, PathAddrs};
use nix::sys::resource::{UsageWho, getrusage};

/// Sends so many bytes; counts those that come.
struct Flood {
    addrs: Option<PathAddrs>,
    datagram: usize,
    left: usize,
    got: usize,
    datagrams: usize,
    last: Time,
    train: Vec<u8>,
}

impl Endpoint for Flood {
    type Arrival<'a> = Datagram<'a>;
    type Departure<'a> = Batch<'a>;
    type AppEvent = ();

    fn handle_packet(&mut self, now: Time, arrival: Datagram<'_>, _sink: &mut Sink) {
        self.got += arrival.bytes.len();
        self.datagrams += 1;
        self.last = now;
    }

    fn handle_timeout(&mut self, _now: Time, _sink: &mut Sink) {}

    fn poll_transmit(&mut self, _now: Time, _sink: &mut Sink) -> Option<Batch<'_>> {
        let addrs = self.addrs?;
        let count = (self.train.len() / self.datagram).min(self.left.div_ceil(self.datagram));
        let len = count * self.datagram;
        self.left = self.left.saturating_sub(len);
        self.got += len;
        self.datagrams += count;
        let bytes = &self.train[..len];
        (count > 0).then_some(Batch { addrs, ecn: Ecn::Ect0, bytes, segment: self.datagram })
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

/// Until all is sent, or nothing more comes.
struct Idle(Time);

impl Application<Flood> for Idle {
    fn on_progress(&mut self, now: Time, flood: &mut Flood, _: &mut Sockets) -> ControlFlow<()> {
        self.0 = now + Span::from_millis(500);
        let over = if flood.addrs.is_some() {
            flood.left == 0
        } else {
            flood.got > 0 && now.since(flood.last) >= Span::from_millis(500)
        };
        if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.0)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let mut flood = Flood {
        addrs: None,
        datagram: 1452,
        left: 0,
        got: 0,
        datagrams: 0,
        last: Time::ZERO,
        train: vec![0; 65_000],
    };
    let mut sockets = Sockets::default();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["recv", address] => sockets = Sockets::listen(&[address.parse::<SocketAddr>()?])?,
        ["send", address, bytes, ref rest @ ..] => {
            flood.addrs = Some(sockets.add(None, address.parse()?)?);
            flood.left = bytes.parse()?;
            flood.datagram = rest.first().map_or(Ok(1452), |word| word.parse())?;
        }
        _ => return Err("usage: udp_floor recv ADDR | send ADDR BYTES [DATAGRAM]".into()),
    }
    let mut driver = Driver::new(sockets)?;
    driver.run(&mut flood, &mut Idle(Time::ZERO))?;
    let gigabytes = flood.got as f64 / 1e9;
    let [user, system] = cpu()?;
    println!(
        "{:.3} GB in {} datagrams, {:.3} s: CPU s/GB user {:.3} system {:.3} sum {:.3}",
        gigabytes,
        flood.datagrams,
        driver.now().as_secs_f64(),
        user / gigabytes,
        system / gigabytes,
        (user + system) / gigabytes
    );
    Ok(())
}

fn cpu() -> io::Result<[f64; 2]> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok([usage.user_time(), usage.system_time()]
        .map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6))
}

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

use acklab_core::packet::Ecn;
use acklab_core::time::{Span, Time};
use acklab_net::rudp::driver::{Application, Driver, Machine, Sockets};
use acklab_rudp::{PathAddrs, Transmit};
use nix::sys::resource::{UsageWho, getrusage};

/// Sends so many bytes; counts those that come.
struct Flood {
    addrs: Option<PathAddrs>,
    datagram: usize,
    left: usize,
    got: usize,
    datagrams: usize,
    last: Time,
}

impl Machine for Flood {
    fn handle_datagram(&mut self, now: Time, _from: PathAddrs, _ecn: Ecn, datagram: &mut [u8]) {
        self.got += datagram.len();
        self.datagrams += 1;
        self.last = now;
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time, _buffer: &mut [u8], most: usize) -> Option<Transmit> {
        let addrs = self.addrs?;
        let count = most.min(65_000 / self.datagram).min(self.left.div_ceil(self.datagram));
        let len = count * self.datagram;
        self.left = self.left.saturating_sub(len);
        self.got += len;
        self.datagrams += count;
        let transmit = Transmit { addrs, ecn: Ecn::Ect0, len, segment: self.datagram };
        (count > 0).then_some(transmit)
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
    let mut flood =
        Flood { addrs: None, datagram: 1452, left: 0, got: 0, datagrams: 0, last: Time::ZERO };
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

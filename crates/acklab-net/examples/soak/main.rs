//! `make soak`: two ends of reliable UDP on the loopback interface, and between them a road that loses,
//! reorders, copies and damages, whose paths die and move. Every byte is checked, and memory must not grow.
//!
//!     soak [TIME] [SEED]        TIME as in 30m or 2m
//!
//! A round is one connection of at most five minutes over two paths: streams of 1 B to 8 MB, parcels
//! of all three kinds, a receiver that stops reading now and then. It ends when all that must arrive has
//! arrived.

mod ends;
mod ledger;
mod memory;
mod relay;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use acklab_core::time::Span;
use acklab_net::rudp::driver::{Driver, Sockets};

use ends::{Sender, Taker};
use ledger::Ledger;
use memory::Held;
use relay::{HERE, Relay, Tally};

/// The longest a connection lasts.
const ROUND: Span = Span::from_secs(300);
/// A path's address changes so often.
const MOVE: Span = Span::from_secs(23);
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let total: Span = match words.next() {
        Some(word) => seconds(&word).ok_or("how long? as in 30m, 90s")?,
        None => Span::from_secs(1800),
    };
    let seed: u64 = words.next().map_or(Ok(1), |word| word.parse())?;
    let (stop, stopped) = mpsc::channel();
    let memory = thread::spawn(move || memory::watch(&stopped));
    let ledger = Arc::new(Ledger::default());
    let tally = Arc::new(Tally::default());
    let rounds = total.as_nanos().div_ceil(ROUND.as_nanos());
    let each = Span::from_nanos(total.as_nanos() / rounds);
    let mut held = Vec::new();
    for round in 0..rounds {
        let open = self::round(seed + round, each, &ledger, &tally)?;
        held.push(Held { open, after: memory::allocated() });
        println!("round {}: {ledger:?} {tally:?} {:?}", round + 1, held[held.len() - 1]);
    }
    drop(stop);
    let samples = memory.join().map_err(|_| "the memory's watcher panicked")?;
    memory::judge(&held, &samples)?;
    match ledger.wrong() {
        None => Ok(()),
        Some(fault) => Err(fault.into()),
    }
}

/// One connection; returns what was allocated when all had arrived, bytes.
fn round(
    seed: u64,
    time: Span,
    ledger: &Arc<Ledger>,
    tally: &Arc<Tally>,
) -> Result<usize, Box<dyn Error>> {
    let taker_sockets = Sockets::listen(&[(HERE, 0).into(), (HERE, 0).into()])?;
    let servers: Vec<_> = taker_sockets.local().collect();
    let (relay, road_sockets) = Relay::new(seed, &servers, tally.clone())?;
    let fronts = relay.fronts();
    let (mut taker_loop, road_loop) = (Driver::new(taker_sockets)?, Driver::new(road_sockets)?);
    let (taker_call, road_call) = (taker_loop.waker(), road_loop.waker());
    let over = Arc::new(AtomicBool::new(false));
    let road_over = over.clone();
    let road = thread::spawn(move || relay::run(relay, road_loop, road_over, MOVE));
    let mut taker = Taker::new(seed, ledger.clone(), over.clone());
    let receiving = thread::spawn(move || taker.run(&mut taker_loop));
    let outcome = Sender::new(seed, time, ledger.clone()).run(&fronts);
    over.store(true, Ordering::Relaxed);
    taker_call.wake();
    road_call.wake();
    receiving.join().map_err(|_| "the receiver panicked")??;
    road.join().map_err(|_| "the road panicked")??;
    let open = outcome?;
    ledger.wrong().map_or(Ok(open), |fault| Err(fault.into()))
}

fn seconds(word: &str) -> Option<Span> {
    let (number, unit) = match word.strip_suffix('m') {
        Some(number) => (number, 60.0),
        None => (word.strip_suffix('s').unwrap_or(word), 1.0),
    };
    number.parse::<f64>().ok().filter(|n| *n > 0.0).map(|n| Span::from_secs_f64(n * unit))
}

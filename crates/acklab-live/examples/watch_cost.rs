//! What a watch costs: CPU time of this program, which does nothing else, and what the traffic loses by it.
//!
//!     cargo build --release -p acklab-live --example watch_cost
//!     sudo unshare -n sh -c 'ip link set lo up; target/release/examples/watch_cost'
//!
//! In a network namespace with loopback alone it starts itself again as the traffic: nothing, 1,000 messages a second
//! (request and response), 100,000 segments a second of 100 bytes, and as many as the kernel carries, these once
//! without a watch and once with it.

#![expect(clippy::disallowed_methods, reason = "the real kernel runs by the real clock")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use acklab_live::chosen::Chosen;
use acklab_live::watch::Watch;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(rate) = arguments.get(1) {
        return traffic(rate.parse().expect("messages per second"));
    }
    for (what, rate) in [
        ("idle", None),
        ("1,000 messages/s", Some(1_000)),
        ("100,000 segments/s", Some(100_000)),
        ("200,000 segments/s", Some(200_000)),
    ] {
        println!("{what}: {}", measured(rate, true));
    }
    for watched in [false, true, false, true] {
        let how = if watched { "with a watch" } else { "without a watch" };
        println!("as many segments as possible, {how}: {}", measured(Some(0), watched));
    }
}

/// Watches for ten seconds while the traffic runs.
fn measured(rate: Option<u64>, watched: bool) -> String {
    let itself = std::env::current_exe().expect("this program");
    let traffic = rate.map(|rate| {
        let mut command = Command::new(itself);
        command.arg(rate.to_string()).stdout(Stdio::piped()).spawn().expect("the traffic starts")
    });
    thread::sleep(Duration::from_millis(500));
    let mut watch = watched.then(|| Watch::begin(&Chosen::default()).expect("a watch"));
    let (began, cpu) = (Instant::now(), cpu_seconds());
    while began.elapsed() < Duration::from_secs(10) {
        match &mut watch {
            Some(watch) => drop(watch.turn().expect("a turn")),
            None => thread::sleep(Duration::from_millis(100)),
        }
    }
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let (frames, dropped) = watch.as_mut().map_or((0, 0), Watch::frames);
    let end = Instant::now();
    let count = watch.map_or(0, |watch| watch.finish().0.count);
    let finish = end.elapsed().as_secs_f64() * 1e3;
    let carried = traffic.map_or(String::new(), |traffic| {
        let output = traffic.wait_with_output().expect("the traffic ends").stdout;
        String::from_utf8_lossy(&output).trim().to_owned()
    });
    format!(
        "{:.2} % of one CPU, {:.0} frames/s, {dropped} dropped, {count} holds, {finish:.1} ms to end; {carried}",
        100.0 * cpu / seconds,
        frames as f64 / seconds
    )
}

fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("usage");
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
}

/// Sends for 12 s: up to 10,000 a second messages that are answered, beside a client that writes twice and reads once;
/// else eight streams without Nagle's algorithm.
fn traffic(rate: u64) {
    let answers = (1..=10_000).contains(&rate);
    let mut streams: Vec<TcpStream> =
        (0..if answers { 1 } else { 8 }).map(|_| connected(100, answers)).collect();
    for stream in &streams {
        stream.set_nodelay(true).expect("set");
    }
    let began = Instant::now();
    let lasts = move || began.elapsed() < Duration::from_secs(12);
    let stalled = answers.then(|| {
        let mut stalled = connected(110, true);
        thread::spawn(move || {
            while lasts() {
                stalled.write_all(&[1; 10]).expect("sent");
                stalled.write_all(&[1; 100]).expect("sent");
                stalled.read_exact(&mut [0; 32]).expect("answered");
            }
        })
    });
    let mut sent = 0;
    while lasts() {
        let due = match rate {
            0 => sent + 1_000,
            rate => (began.elapsed().as_secs_f64() * rate as f64) as usize,
        };
        if sent >= due {
            thread::sleep(Duration::from_micros(200));
        }
        while sent < due {
            let at = sent % streams.len();
            streams[at].write_all(&[1; 100]).expect("sent");
            if answers {
                streams[at].read_exact(&mut [0; 32]).expect("answered");
            }
            sent += 1;
        }
    }
    println!("{:.0} messages/s", sent as f64 / began.elapsed().as_secs_f64());
    if let Some(stalled) = stalled {
        stalled.join().expect("it ends");
    }
}

/// A connection to a server that reads so many bytes and answers with 32, or reads what comes.
fn connected(request: usize, answers: bool) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
    let (mut server, _) = listener.accept().expect("accepted");
    thread::spawn(move || {
        let mut bytes = vec![0; if answers { request } else { 1 << 16 }];
        if answers {
            while server.read_exact(&mut bytes).is_ok() && server.write_all(&[1; 32]).is_ok() {}
        } else {
            while server.read(&mut bytes).is_ok_and(|read| read > 0) {}
        }
    });
    stream
}

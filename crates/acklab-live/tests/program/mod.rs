//! The program that stalls: over and over it writes 10 bytes, then 100, and waits for 32, to a server of its own. It
//! prints when each exchange began and how long it took. A line on its standard input has it connect anew.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Instant, SystemTime};

use nix::sched::{CloneFlags, unshare};

/// Moves the calling thread into a network namespace with loopback alone; what it writes down goes to a folder of its
/// own. False, with a message, where that is not permitted.
pub(crate) fn namespace() -> bool {
    let up = || Command::new("ip").args(["link", "set", "lo", "up"]).status();
    let made =
        unshare(CloneFlags::CLONE_NEWNET).is_ok() && up().is_ok_and(|status| status.success());
    if !made {
        eprintln!("SKIPPED: watching the kernel: no network namespace is permitted here");
    }
    made
}

/// The running program, which ends with this value.
pub(crate) struct Program {
    child: Child,
    /// When each exchange began, seconds since 1970, and how long it took, milliseconds.
    times: Receiver<(f64, f64)>,
}

fn now() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().expect("a clock").as_secs_f64()
}

impl Program {
    pub(crate) fn start(port: u16) -> Self {
        let itself = std::env::current_exe().expect("this program");
        let mut child = Command::new(itself)
            .args(["--exact", "the_program", "--nocapture"])
            .env(PORT, port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let (sender, times) = mpsc::channel();
        std::thread::spawn(move || {
            let times = lines.map_while(Result::ok).filter_map(|line| {
                let (began, took) = line.strip_prefix(MARK)?.split_once(' ')?;
                Some((began.parse().ok()?, took.parse().ok()?))
            });
            for time in times {
                let _ = sender.send(time);
            }
        });
        let program = Self { child, times };
        // Past the first exchanges of a connection, which are acknowledged at once.
        for _ in 0..WARM_UP {
            program.times.recv().expect("an exchange");
        }
        program
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The median of the exchanges from now on, milliseconds: many of before may still be on their way through the pipe.
    pub(crate) fn exchange_ms(&mut self) -> f64 {
        let from = now();
        let later = self.times.iter().filter(|&(began, _)| began >= from);
        let mut times: Vec<f64> = later.map(|(_, took)| took).skip(WARM_UP).take(21).collect();
        assert_eq!(times.len(), 21, "the program goes on");
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }

    pub(crate) fn connect_anew(&mut self) {
        self.child.stdin.as_mut().expect("its input").write_all(b"\n").expect("it listens");
        for _ in 0..WARM_UP {
            self.times.recv().expect("an exchange");
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the program does, where it was started as such.
pub(crate) fn run() {
    let Some(port) = std::env::var(PORT).ok().and_then(|port| port.parse::<u16>().ok()) else {
        return;
    };
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || serve(stream));
        }
    });
    let (sender, anew) = mpsc::channel();
    std::thread::spawn(move || {
        for _ in std::io::stdin().lines().map_while(Result::ok) {
            let _ = sender.send(());
        }
        // Whoever started it has gone.
        std::process::exit(0);
    });
    loop {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
        while anew.try_recv().is_err() {
            let (at, began) = (now(), Instant::now());
            stream.write_all(&[1; 10]).expect("written");
            stream.write_all(&[2; 100]).expect("written");
            stream.read_exact(&mut [0; 32]).expect("an answer");
            println!("{MARK}{at} {}", began.elapsed().as_secs_f64() * 1e3);
        }
    }
}

fn serve(mut stream: TcpStream) {
    while stream.read_exact(&mut [0; 10]).is_ok() && stream.read_exact(&mut [0; 100]).is_ok() {
        if stream.write_all(&[3; 32]).is_err() {
            return;
        }
    }
}

const PORT: &str = "ACKLAB_STALLING_PORT";
const MARK: &str = "exchange ";
const WARM_UP: usize = 10;

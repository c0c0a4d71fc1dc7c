//! The two commands of an emulation, from start to end.
//!
//! The server's command is started first and gets a while to begin listening, which is seen in its
//! namespace's socket tables (proc_pid_net(5)). The emulation is over when the client's command is; a
//! server that does not end by itself is then asked to (SIGTERM), and killed if it does not listen. An
//! interruption asks the client in the same way. Whatever still runs when a session is dropped is killed.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::emulation::{EmulateError, Emulation, Output};
use super::environment::Sysctls;
use super::host::{Ended, Launch, Report, Side};

/// A server gets this long to begin listening.
const SERVER_STARTS: Duration = Duration::from_secs(2);
/// How often that, and an interruption, is looked for.
const TICK: Duration = Duration::from_millis(10);
/// A server that has not ended this long after its client is asked to.
const SERVER_ENDS: Duration = Duration::from_millis(200);
/// A client that has not ended this long after an interruption, of which the terminal told it too.
const CLIENT_ENDS: Duration = Duration::from_secs(1);
/// Who was asked to end and has not is killed after this long.
const PATIENCE: Duration = Duration::from_secs(2);
/// `TCP_LISTEN`, net/tcp_states.h, as the tables write it.
const LISTENING: &str = "0A";

/// How the commands ended.
pub(super) struct Outcome {
    pub(super) client: Ended,
    pub(super) server: Option<Ended>,
    /// The server was asked to end, so that its status says nothing.
    pub(super) server_asked: bool,
    pub(super) interrupted: bool,
    /// The client's and the server's.
    pub(super) sysctls: [Sysctls; 2],
}

/// The commands and what is known of them.
pub(super) struct Session<'a> {
    emulation: &'a Emulation,
    inbox: Receiver<Report>,
    client: Command,
    server: Command,
    sysctls: [Sysctls; 2],
    interrupted: &'a AtomicBool,
}

/// One side's command.
#[derive(Clone, Copy, Debug, Default)]
struct Command {
    /// Its process, while it runs.
    pid: Option<Pid>,
    ended: Option<Ended>,
    asked: bool,
}

impl Command {
    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid {
            // It may end at this very moment.
            let _ = kill(pid, signal);
        }
    }

    /// Asks it to end, and kills it if it takes too long; `overdue` since it should have ended.
    fn urge(&mut self, overdue: Duration) {
        if overdue > PATIENCE {
            self.signal(Signal::SIGKILL);
        } else if !self.asked {
            self.asked = true;
            self.signal(Signal::SIGTERM);
        }
    }
}

impl<'a> Session<'a> {
    pub(super) fn new(
        emulation: &'a Emulation,
        inbox: Receiver<Report>,
        interrupted: &'a AtomicBool,
    ) -> Self {
        let (client, server) = (Command::default(), Command::default());
        let sysctls = [Sysctls::new(), Sysctls::new()];
        Self { emulation, inbox, client, server, sysctls, interrupted }
    }

    /// Starts the server's command, if there is one, and lets it begin to listen.
    #[expect(clippy::disallowed_methods, reason = "a command of the real world takes real time")]
    pub(super) fn start_server(&mut self, host: &Sender<Launch>) -> Result<(), EmulateError> {
        let Some(words) = &self.emulation.server else { return Ok(()) };
        self.launch(Side::Server, host, words)?;
        let began = Instant::now();
        while began.elapsed() < SERVER_STARTS && self.server.ended.is_none() {
            if self.server.pid.is_some_and(listens) || self.interrupted.load(Ordering::Relaxed) {
                break;
            }
            self.hear()?;
        }
        Ok(())
    }

    /// Runs the client's command to its end, and then the server's. Without the relay neither would end: both are
    /// given up when it is gone.
    #[expect(clippy::disallowed_methods, reason = "a command of the real world takes real time")]
    pub(super) fn attend(
        &mut self,
        host: &Sender<Launch>,
        relay_is_gone: impl Fn() -> bool,
    ) -> Result<Outcome, EmulateError> {
        self.launch(Side::Client, host, &self.emulation.client)?;
        let (mut interruption, mut end) = (None, None);
        loop {
            self.hear()?;
            if relay_is_gone() {
                return Err(EmulateError::Gone);
            }
            if self.interrupted.load(Ordering::Relaxed) {
                let overdue = interruption.get_or_insert_with(Instant::now).elapsed();
                if let Some(overdue) = overdue.checked_sub(CLIENT_ENDS) {
                    self.client.urge(overdue);
                }
            }
            let Some(client) = self.client.ended else { continue };
            if self.server.pid.is_none() {
                return Ok(Outcome {
                    client,
                    server: self.server.ended,
                    server_asked: self.server.asked,
                    interrupted: interruption.is_some(),
                    sysctls: std::mem::take(&mut self.sysctls),
                });
            }
            let overdue = end.get_or_insert_with(Instant::now).elapsed();
            if let Some(overdue) = overdue.checked_sub(SERVER_ENDS) {
                self.server.urge(overdue);
            }
        }
    }

    fn launch(
        &self,
        side: Side,
        host: &Sender<Launch>,
        words: &[std::ffi::OsString],
    ) -> Result<(), EmulateError> {
        let output = self.output(side).map_err(|source| EmulateError::Start { source })?;
        let init = self.emulation.init.clone();
        let launch = Launch { init, command: words.to_vec(), output };
        host.send(launch).map_err(|_| EmulateError::Gone)
    }

    fn output(&self, side: Side) -> io::Result<Option<OwnedFd>> {
        Ok(match &self.emulation.output {
            Output::Inherited => None,
            Output::Error => Some(io::stderr().as_fd().try_clone_to_owned()?),
            Output::Files(files) => {
                let file = &files[usize::from(side == Side::Server)];
                Some(file.as_fd().try_clone_to_owned()?)
            }
        })
    }

    /// Takes in the next report, if one comes within a tick.
    fn hear(&mut self) -> Result<(), EmulateError> {
        match self.inbox.recv_timeout(TICK) {
            Ok(Report::Started(side, pid)) => {
                self.command(side).pid = Some(Pid::from_raw(pid as i32));
            }
            Ok(Report::Settings(side, sysctls)) => {
                self.sysctls[usize::from(side == Side::Server)] = sysctls;
            }
            Ok(Report::Ended(side, ended)) => {
                let command = self.command(side);
                (command.pid, command.ended) = (None, Some(ended));
            }
            Ok(Report::Failed(error)) => return Err(error),
            Ok(Report::Ready(..)) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(EmulateError::Gone),
        }
        Ok(())
    }

    fn command(&mut self, side: Side) -> &mut Command {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.client.signal(Signal::SIGKILL);
        self.server.signal(Signal::SIGKILL);
    }
}

/// Whether anything in the network namespace of process `pid` listens: TCP, or a UDP socket that has a
/// port.
fn listens(pid: Pid) -> bool {
    let table = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}"));
    let tcp = ["tcp", "tcp6"].iter().filter_map(|name| table(name).ok()).any(|text| {
        text.lines().skip(1).any(|row| row.split_whitespace().nth(3) == Some(LISTENING))
    });
    let bound = |text: String| text.lines().nth(1).is_some();
    tcp || ["udp", "udp6"].iter().filter_map(|name| table(name).ok()).any(bound)
}

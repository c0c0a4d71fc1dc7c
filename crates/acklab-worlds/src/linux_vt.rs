//! The Linux kernel in virtual time: User-mode Linux with time travel, as a process that runs a [`Job`].
//!
//! The kernel's image is built once by `make linux-vt`. A guest sees the host's files read-only and one folder
//! that it may write; its processor costs nothing (`time-travel=inf-cpu`), its randomness comes from the
//! seed, and addresses are not randomised, so that the same job gives the same frames at the same times.

#![expect(
    clippy::disallowed_methods,
    reason = "a guest that takes too long in real time is stopped"
)]

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::personality::{self, Persona};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};
use tempfile::TempDir;

use crate::guest;
use crate::job::{Job, Log};

/// Why a guest gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// There is no kernel.
    #[error(
        "no Linux kernel for virtual time at {path}: `make {target}` builds it (about 10 minutes, Debian's \
         linux-source), or set {IMAGE} to one"
    )]
    NoImage {
        /// Where it was looked for.
        path: PathBuf,
        /// What builds it.
        target: &'static str,
    },
    /// A file or process of the host failed.
    #[error("{doing}: {source}")]
    Host {
        /// What was being attempted.
        doing: &'static str,
        /// Its reason.
        source: io::Error,
    },
    /// The guest said what it could not do.
    #[error("the guest: {0}")]
    Guest(String),
    /// It ended without a word.
    #[error("the guest ended (status {status}) without a result; its last words:\n{console}")]
    Silent {
        /// How it ended.
        status: String,
        /// The end of its console.
        console: String,
    },
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// It did not end.
    #[error(
        "the guest was still running after {seconds} s and was stopped; its last words:\n{console}"
    )]
    Stuck {
        /// How long it had.
        seconds: u64,
        /// The end of its console.
        console: String,
    },
}

impl GuestError {
    fn host(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Host { doing, source }
    }
}

/// The environment variable that names another kernel, for all jobs.
pub const IMAGE: &str = "ACKLAB_LINUX_VT";

/// What runs guests: the kernels that were built on this machine and the program that is their first process.
#[derive(Clone, Debug)]
pub struct Machine {
    verbs: Verbs,
    /// The most that a guest may take in real time.
    patience: Duration,
    /// Ends it before that.
    interrupted: Arc<AtomicBool>,
}

/// How this program is called again.
#[derive(Clone, Debug)]
pub struct Verbs {
    /// Its file.
    pub program: PathBuf,
    /// The verb that calls [`keep`] with what follows it.
    pub keeper: &'static str,
    /// The verb that calls [`become_kernel`] with what follows it.
    pub kernel: &'static str,
    /// The verb that calls [`guest::run`] with the folder that follows it.
    pub guest: &'static str,
}

/// Keeps one guest for the process at the other ends of standard input and output: makes its folder and tells its
/// path, starts `command` in it at the first line that comes, tells the exit status, and removes the folder when input
/// ends. So the guest and its folder are gone when that process is, however it ended.
pub fn keep(command: &[OsString]) -> io::Result<()> {
    let folder = TempDir::with_prefix("acklab-guest-")?;
    // The kernel stirs its command line into its randomness, so that no name in it may change.
    symlink(env::current_exe()?, folder.path().join("init"))?;
    let mut asker = io::stdin().lines();
    tell(&folder.path().display().to_string())?;
    if asker.next().transpose()?.is_none() {
        return Ok(());
    }
    let [program, arguments @ ..] = command else { return Err(io::Error::other("no kernel")) };
    let console = File::create(folder.path().join(CONSOLE))?;
    let mut kernel = Command::new(program)
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(console.try_clone()?)
        .stderr(console)
        .spawn()?;
    let pid = Pid::from_raw(kernel.id() as i32);
    let waiter = thread::spawn(move || tell(&exit_status(kernel.wait()?).to_string()));
    let _ = asker.next();
    let _ = kill(pid, Signal::SIGKILL);
    // The asker may not listen any more.
    let _ = waiter.join();
    folder.close()
}

/// Writes a line to the process that asked for a guest.
fn tell(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// As shells say it.
fn exit_status(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Becomes a guest's kernel: `command` is its file and arguments. It ends with the process that called, its
/// keeper, and its addresses are not randomised. Returns only where that failed.
pub fn become_kernel(command: &[OsString]) -> io::Error {
    let ready = || -> io::Result<()> {
        let keeper = getppid();
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // It may have ended before that.
        if getppid() != keeper {
            return Err(io::Error::other("the keeper is gone"));
        }
        personality::set(personality::get()? | Persona::ADDR_NO_RANDOMIZE)?;
        Ok(())
    };
    match (ready(), command) {
        (Err(error), _) => error,
        (Ok(()), [kernel, arguments @ ..]) => Command::new(kernel).args(arguments).exec(),
        (Ok(()), []) => io::Error::other("no kernel"),
    }
}

/// What a guest left behind: its log, and the captures in a folder that goes with this value.
#[derive(Debug)]
pub struct Done {
    /// What it saw.
    pub log: Log,
    guest: Guest,
}

impl Done {
    /// The capture of namespace `space`.
    pub fn capture(&self, space: &str) -> PathBuf {
        self.guest.folder.join(format!("{space}.pcapng"))
    }
}

/// A guest's keeper and folder; both go with this value.
#[derive(Debug)]
struct Guest {
    keeper: Child,
    folder: PathBuf,
    /// What the keeper tells, line by line.
    lines: Receiver<String>,
}

impl Drop for Guest {
    fn drop(&mut self) {
        // The end of its input is what the keeper waits for.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
        // It did that, unless it was killed.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Machine {
    /// A guest is stopped after `patience`, or soon after `interrupted` becomes true.
    pub const fn new(verbs: Verbs, patience: Duration, interrupted: Arc<AtomicBool>) -> Self {
        Self { verbs, patience, interrupted }
    }

    /// The kernel that runs `job`: the one that [`IMAGE`] names, else the one that was built for such jobs.
    pub fn image(job: &Job) -> Result<PathBuf, GuestError> {
        let (name, target) = if job.limits_acks() {
            ("linux-ack-limit", "linux-vt-ack-limit")
        } else {
            ("linux", "linux-vt")
        };
        let path = env::var_os(IMAGE).map_or_else(|| built().join(name), PathBuf::from);
        if path.is_file() { Ok(path) } else { Err(GuestError::NoImage { path, target }) }
    }

    /// Runs `job` with the randomness of `seed`.
    pub fn run(&self, job: &Job, seed: u64) -> Result<Done, GuestError> {
        let image = Self::image(job)?;
        let mut guest =
            self.keeper(&image, seed).map_err(GuestError::host("start the guest's keeper"))?;
        write(job, &guest.folder.join(guest::JOB)).map_err(GuestError::host("write the job"))?;
        if let Some(input) = &mut guest.keeper.stdin {
            input.write_all(b"go\n").map_err(GuestError::host("start the guest"))?;
        }
        let status = self.wait(&guest)?;
        if let Ok(reason) = fs::read_to_string(guest.folder.join(guest::ERROR)) {
            return Err(GuestError::Guest(reason));
        }
        let last_words = || last_lines(&guest.folder.join(CONSOLE));
        let Some(status) = status else {
            return Err(GuestError::Stuck {
                seconds: self.patience.as_secs(),
                console: last_words(),
            });
        };
        let Ok(log) = File::open(guest.folder.join(guest::LOG)) else {
            return Err(GuestError::Silent { status, console: last_words() });
        };
        let log = serde_json::from_reader(BufReader::new(log)).map_err(io::Error::from);
        Ok(Done { log: log.map_err(GuestError::host("read the guest's log"))?, guest })
    }

    fn keeper(&self, image: &Path, seed: u64) -> io::Result<Guest> {
        let Verbs { program, keeper, kernel, guest } = &self.verbs;
        let mut keeper = Command::new(program)
            .args([keeper.as_ref(), program.as_os_str(), kernel.as_ref(), image.as_os_str()])
            .args([
                "mem=512M",
                "rootfstype=hostfs",
                "rootflags=/",
                "ro",
                "norandmaps",
                "quiet",
                "panic=-1",
            ])
            .args(["con=null", "con0=null,fd:1", "time-travel=inf-cpu"])
            .arg(format!("time-travel-start={EPOCH}"))
            .args(["uml_dir=.", "umid=guest", "init=/proc/self/cwd/init", "--", guest, HERE])
            .env("UML_RANDOM_SEED", seed.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for the program that asked.
            .process_group(0)
            .spawn()?;
        let (sender, lines) = mpsc::channel();
        if let Some(output) = keeper.stdout.take() {
            thread::spawn(move || {
                let lines = BufReader::new(output).lines().map_while(Result::ok);
                lines.into_iter().try_for_each(|line| sender.send(line))
            });
        }
        let folder = lines.recv().map(PathBuf::from);
        folder
            .map(|folder| Guest { keeper, folder, lines })
            .map_err(|_| io::Error::other("it said nothing"))
    }

    /// The exit status; `None` where it took too long.
    fn wait(&self, guest: &Guest) -> Result<Option<String>, GuestError> {
        let end = Instant::now() + self.patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match guest.lines.recv_timeout(left.min(LOOK)) {
                Ok(status) => return Ok(Some(status)),
                Err(RecvTimeoutError::Disconnected) => return Ok(Some("its keeper ended".into())),
                Err(RecvTimeoutError::Timeout) if self.interrupted.load(Ordering::Relaxed) => {
                    return Err(GuestError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Where tools/linux-vt puts the kernels.
fn built() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache");
    cache.unwrap_or_else(home).join("acklab/linux-vt")
}

fn write(job: &Job, path: &Path) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    serde_json::to_writer(&mut file, job)?;
    file.flush()
}

fn last_lines(console: &Path) -> String {
    let text = fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

/// The job's folder, by a name that is the same for all guests.
const HERE: &str = "/proc/self/cwd";
/// The longest from Ctrl-C to the end.
const LOOK: Duration = Duration::from_millis(100);
const CONSOLE: &str = "console.txt";
/// The guest's time of day when it starts: 2001-09-09, s.
const EPOCH: u64 = 1_000_000_000;

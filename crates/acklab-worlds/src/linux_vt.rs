//! The Linux kernel in virtual time: User-mode Linux with time travel, as a process that runs a [`Job`].
//!
//! The kernel's image is built once by `make linux-vt`. A guest sees the host's files read-only and one folder
//! that it may write; its processor costs nothing (`time-travel=inf-cpu`), its randomness comes from the
//! seed, and addresses are not randomised, so that the same job gives the same frames at the same times.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::personality::{self, Persona};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getppid};
use tempfile::TempDir;

use crate::guest;
use crate::job::{Job, Log};

/// Why a guest gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// There is no kernel.
    #[error(
        "no Linux kernel for virtual time at {path}: `make linux-vt` builds it (about 10 minutes, Debian's \
         linux-source), or set {IMAGE} to one"
    )]
    NoImage {
        /// Where it was looked for.
        path: PathBuf,
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
    #[error("the guest ended ({status}) without a result; its last words:\n{console}")]
    Silent {
        /// How it ended.
        status: ExitStatus,
        /// The end of its console.
        console: String,
    },
    /// It did not end.
    #[error("the guest was still running after {seconds} s and was stopped; its last words:\n{console}")]
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

/// The environment variable that names another kernel.
pub const IMAGE: &str = "ACKLAB_LINUX_VT";

/// A guest's kernel and the program that is its first process.
#[derive(Clone, Debug)]
pub struct Machine {
    image: PathBuf,
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

/// Runs a guest for the process that holds the other end of standard input; returns the guest's exit status. When that
/// process is gone, however it ended, the guest is stopped and its folder, the present one, removed.
pub fn keep(command: &[OsString]) -> io::Result<i32> {
    let [program, arguments @ ..] = command else { return Err(io::Error::other("no kernel")) };
    let mut kernel = Command::new(program).args(arguments).stdin(Stdio::null()).spawn()?;
    let (pid, folder) = (Pid::from_raw(kernel.id() as i32), env::current_dir()?);
    thread::spawn(move || {
        // It ends when the other end is closed; nothing is ever written there.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = kill(pid, Signal::SIGKILL);
        let _ = fs::remove_dir_all(folder);
        process::exit(128 + Signal::SIGKILL as i32);
    });
    let status = kernel.wait()?;
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()))
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
    folder: TempDir,
}

impl Done {
    /// The capture of namespace `space`.
    pub fn capture(&self, space: &str) -> PathBuf {
        self.folder.path().join(format!("{space}.pcapng"))
    }
}

impl Machine {
    /// The kernel that was built on this machine.
    ///
    /// A guest is stopped after `patience`, or soon after `interrupted` becomes true.
    pub fn find(
        verbs: Verbs,
        patience: Duration,
        interrupted: Arc<AtomicBool>,
    ) -> Result<Self, GuestError> {
        let image = env::var_os(IMAGE).map_or_else(built, PathBuf::from);
        if !image.is_file() {
            return Err(GuestError::NoImage { path: image });
        }
        Ok(Self { image, verbs, patience, interrupted })
    }

    /// Runs `job` with the randomness of `seed`.
    pub fn run(&self, job: &Job, seed: u64) -> Result<Done, GuestError> {
        let folder = TempDir::with_prefix("acklab-guest-").map_err(GuestError::host("make a folder"))?;
        write(job, &folder.path().join(guest::JOB)).map_err(GuestError::host("write the job"))?;
        let console = folder.path().join(CONSOLE);
        let mut child = self.start(folder.path(), &console, seed).map_err(GuestError::host("start the guest"))?;
        let status = self.wait(&mut child).map_err(GuestError::host("wait for the guest"))?;
        if let Ok(reason) = fs::read_to_string(folder.path().join(guest::ERROR)) {
            return Err(GuestError::Guest(reason));
        }
        let last_words = || last_lines(&console);
        let Some(status) = status else {
            return Err(GuestError::Stuck { seconds: self.patience.as_secs(), console: last_words() });
        };
        let Ok(log) = File::open(folder.path().join(guest::LOG)) else {
            return Err(GuestError::Silent { status, console: last_words() });
        };
        let log = serde_json::from_reader(BufReader::new(log)).map_err(io::Error::from);
        Ok(Done { log: log.map_err(GuestError::host("read the guest's log"))?, folder })
    }

    fn start(&self, folder: &Path, console: &Path, seed: u64) -> io::Result<Child> {
        let Verbs { program, keeper, kernel, guest } = &self.verbs;
        // The kernel stirs its command line into its randomness, so that no name in it may change.
        symlink(program, folder.join("init"))?;
        let console = File::create(console)?;
        Command::new(program)
            .arg(keeper)
            .arg(program)
            .arg(kernel)
            .arg(&self.image)
            .args(["mem=512M", "rootfstype=hostfs", "rootflags=/", "ro", "norandmaps", "quiet", "panic=-1"])
            .args(["con=null", "con0=null,fd:1", "time-travel=inf-cpu"])
            .arg(format!("time-travel-start={EPOCH}"))
            .args(["uml_dir=.", "umid=guest", "init=/proc/self/cwd/init", "--", guest, HERE])
            .current_dir(folder)
            .env_clear()
            .env("UML_RANDOM_SEED", seed.to_string())
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/")
            .stdin(Stdio::piped())
            .stdout(console.try_clone()?)
            .stderr(console)
            .process_group(0)
            .spawn()
    }

    /// Its status; `None` where it took too long and was stopped.
    fn wait(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        let end = Instant::now() + self.patience;
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                self.stop(child)?;
                return Err(io::ErrorKind::Interrupted.into());
            }
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= end {
                self.stop(child)?;
                return Ok(None);
            }
            thread::sleep(LOOK);
        }
    }

    /// Keeper and kernel are a process group.
    fn stop(&self, child: &mut Child) -> io::Result<()> {
        let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
        child.wait().map(drop)
    }
}

/// Where `make linux-vt` puts the kernel.
fn built() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache");
    cache.unwrap_or_else(home).join("acklab/linux-vt/linux")
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
/// From one look at the guest to the next.
const LOOK: Duration = Duration::from_millis(10);
const CONSOLE: &str = "console.txt";
/// The guest's time of day when it starts: 2001-09-09, s.
const EPOCH: u64 = 1_000_000_000;

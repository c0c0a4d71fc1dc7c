//! A command whose CPU time, memory and output are written down: a process of its own around it, because
//! `getrusage(2)` tells of all children together and of the largest of them.

use std::error::Error;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// What to run and where to write.
#[derive(clap::Args)]
pub struct Metered {
    /// The file that gets the result
    file: PathBuf,
    /// Seconds after which the command is killed
    limit: f64,
    /// Run it in this network namespace
    #[arg(long)]
    net: Option<PathBuf>,
    /// The command
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// What was measured of one command.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// User and system time, seconds.
    pub cpu: f64,
    /// Largest resident set, bytes.
    pub memory: u64,
    /// It ran longer than allowed and was killed.
    pub overran: bool,
    /// It ended by itself and with exit status 0.
    pub fine: bool,
    /// What it printed.
    pub output: String,
}

impl Metered {
    /// Runs the command and writes the file.
    pub fn run(self) -> Result<(), Box<dyn Error>> {
        if let Some(path) = &self.net {
            setns(File::open(path)?, CloneFlags::CLONE_NEWNET)?;
        }
        let start = Instant::now();
        let mut child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.command[0]))?;
        let (ended, watch) = mpsc::channel::<()>();
        let (pid, limit) = (Pid::from_raw(child.id().cast_signed()), self.limit);
        let watchdog = thread::spawn(move || {
            let verdict = watch.recv_timeout(Duration::from_secs_f64(limit));
            let overran = verdict == Err(RecvTimeoutError::Timeout);
            if overran {
                let _ = kill(pid, Signal::SIGKILL);
            }
            overran
        });
        let mut output = String::new();
        child.stdout.take().ok_or("no pipe")?.read_to_string(&mut output)?;
        let status = child.wait()?;
        drop(ended);
        let overran = watchdog.join().map_err(|_| "the watchdog panicked")?;
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let seconds =
            |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        let result = json!({
            "cpu_s": seconds(usage.user_time()) + seconds(usage.system_time()),
            "max_rss_kib": usage.max_rss(),
            "overran": overran,
            "fine": status.success(),
            "wall_s": start.elapsed().as_secs_f64(),
            "output": output,
        });
        fs::write(&self.file, result.to_string())?;
        Ok(())
    }
}

impl Reading {
    /// The command line that runs `command` under a meter.
    pub fn wrap(file: &Path, limit: f64, net: Option<&Path>, command: Vec<String>) -> Vec<String> {
        let own = std::env::current_exe().map_or_else(|_| "bench-transport".into(), |path| path);
        let mut words = vec![text(&own), "metered".into(), text(file), limit.to_string()];
        if let Some(net) = net {
            words.extend(["--net".into(), text(net)]);
        }
        words.push("--".into());
        words.extend(command);
        words
    }

    /// Reads what a meter wrote; `None` where it did not come to that.
    pub fn take(file: &Path) -> Option<Self> {
        let value: Value = serde_json::from_str(&fs::read_to_string(file).ok()?).ok()?;
        fs::remove_file(file).ok()?;
        Some(Self {
            cpu: value["cpu_s"].as_f64()?,
            memory: value["max_rss_kib"].as_u64()? * 1024,
            overran: value["overran"].as_bool()?,
            fine: value["fine"].as_bool()?,
            output: value["output"].as_str()?.to_owned(),
        })
    }

    /// The last line of its output that is a JSON object.
    pub fn result(&self) -> Option<Value> {
        self.output.lines().rev().find_map(|line| serde_json::from_str(line).ok())
    }
}

/// A path as text.
pub fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

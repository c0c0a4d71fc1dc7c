//! Namespaces and what is in them, by iproute2 and ethtool.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use nix::sched::{CloneFlags, setns};

use crate::job::{ACK_LIMIT, Job};

/// Builds the job's network.
pub(super) fn build(job: &Job) -> io::Result<()> {
    batch(&["ip", "-batch", "-"], &job.links)?;
    for space in &job.spaces {
        for (name, value) in &space.sysctls {
            let (path, value) = (Path::new("/proc/sys/net").join(name), value.clone());
            inside(&space.name, move || {
                fs::write(&path, value)
                    .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))
            })?
            .map_err(|e| if name.starts_with(ACK_LIMIT) { cannot_limit(&e) } else { e })?;
        }
        for interface in &space.plain {
            let offloads = ["tx", "tso", "gso", "gro"].map(|name| [name, "off"]);
            let mut command = Command::new("ethtool");
            command.args(["-K", interface]).args(offloads.as_flattened());
            inside(&space.name, move || finish(&mut command, &[]))??;
        }
        batch(&["ip", "-n", &space.name, "-batch", "-"], &space.ip)?;
        batch(&["tc", "-n", &space.name, "-batch", "-"], &space.tc)?;
    }
    Ok(())
}

fn cannot_limit(error: &io::Error) -> io::Error {
    let reason = "the kernel does not limit ACKs; `make linux-vt-ack-limit` builds one that does";
    io::Error::new(error.kind(), format!("{error}: {reason}"))
}

/// The counters of namespace `name` that are not 0.
pub(super) fn counters(name: &str) -> io::Result<BTreeMap<String, u64>> {
    // /proc/net is that of the process's first thread.
    let text = inside(name, || fs::read_to_string("/proc/thread-self/net/netstat"))??;
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.chunks_exact(2).flat_map(|pair| {
        let [names, values] = [pair[0], pair[1]].map(|line| line.split_whitespace().skip(1));
        names.zip(values).filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
    });
    Ok(pairs.filter(|(_, value)| *value > 0).collect())
}

/// Runs `work` on a thread in namespace `name`.
pub(super) fn inside<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let space = File::open(Path::new("/run/netns").join(name))?;
    thread::scope(|scope| {
        let thread = scope.spawn(move || {
            setns(space.as_fd(), CloneFlags::CLONE_NEWNET)?;
            Ok(work())
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn batch(command: &[&str], lines: &[String]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    finish(Command::new(command[0]).args(&command[1..]), lines)
}

/// Runs a command that reads `lines`; its words where it fails.
fn finish(command: &mut Command, lines: &[String]) -> io::Result<()> {
    let doing = format!("{command:?}").replace('"', "");
    let failed = |reason: String| io::Error::other(format!("{doing}: {reason}"));
    let mut child = command
        .env("PATH", PATH)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        // A command that ended early says why below.
        let _ = input.write_all((lines.join("\n") + "\n").as_bytes());
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// Where Debian has iproute2 and ethtool.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

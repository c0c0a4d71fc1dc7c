//! File systems that are there for one test: mounted in a namespace of the calling thread's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// Runs a program to its end; what it complained of where it failed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<Output, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(output) } else { Err(format!("{program}: {said}")) }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// What the calling thread mounts from now on is seen by itself and the threads that it starts, and goes
/// with them.
pub(crate) fn private() -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|errno| format!("mount namespaces: {errno}"))?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
        .map_err(|errno| format!("mounts: {errno}"))
}

/// A tmpfs of so many bytes.
pub(crate) fn small(at: PathBuf, bytes: u64) -> Result<PathBuf, String> {
    fs::create_dir(&at).expect("a folder");
    let size = format!("size={bytes}");
    mount(Some("tmpfs"), &at, Some("tmpfs"), MsFlags::empty(), Some(size.as_str()))
        .map_err(|errno| format!("tmpfs: {errno}"))?;
    Ok(at)
}

//! File systems that are there for one test: mounted in a namespace of the calling thread's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::ends::Scratch;

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

/// An ext4 in the mount namespace of the calling thread.
pub(crate) struct Disk {
    image: PathBuf,
    pub(crate) at: PathBuf,
}

impl Disk {
    /// Or why there can be none.
    pub(crate) fn new(scratch: &Scratch) -> Result<Self, String> {
        private()?;
        run("python3", &["-V"])?;
        let disk = Self { image: scratch.join("image"), at: scratch.join("disk") };
        fs::create_dir(&disk.at).expect("a folder");
        fs::File::create(&disk.image).and_then(|it| it.set_len(128 << 20)).expect("an image");
        run("mkfs.ext4", &["-q", "-F", text(&disk.image)])?;
        disk.mount()?;
        Ok(disk)
    }

    fn mount(&self) -> Result<(), String> {
        run("mount", &["-o", "loop", text(&self.image), text(&self.at)]).map(|_| ())
    }

    /// Cuts the power: what is not on the disk yet never will be.
    pub(crate) fn cut(&self, flags: &str) {
        // EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32).
        self.control("0x8004587d", flags).expect("a shutdown");
    }

    /// Whatever writes to it waits, until it is thawed.
    pub(crate) fn freeze(&self) {
        // FIFREEZE, _IOWR('X', 119, int).
        self.control("0xc0045877", "0").expect("frozen");
    }

    pub(crate) fn thaw(&self) {
        // FITHAW, _IOWR('X', 120, int).
        self.control("0xc0045878", "0").expect("thawed");
    }

    fn control(&self, request: &str, value: &str) -> Result<Output, String> {
        let program = "import fcntl, os, struct, sys\n\
            fd = os.open(sys.argv[1], os.O_RDONLY)\n\
            fcntl.ioctl(fd, int(sys.argv[2], 0), struct.pack('I', int(sys.argv[3])))";
        run("python3", &["-c", program, text(&self.at), request, value])
    }

    /// As after the machine has started again.
    pub(crate) fn mount_again(&self) {
        // A thread of the receiver's may still be about to close a file.
        let gone = (0..1000).any(|_| {
            thread::yield_now();
            run("umount", &[text(&self.at)]).is_ok()
        });
        assert!(gone, "the disk is busy");
        self.mount().expect("mounted again");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run("umount", &[text(&self.at)]);
    }
}

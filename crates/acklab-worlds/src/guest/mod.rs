//! The first process of a guest in virtual time: it builds the job's network, lets its flows talk,
//! writes down what they saw and switches the guest off.
//!
//! The guest sees the host's files, read-only, and the job's folder, which it may write. Nothing in it may
//! wait without end: virtual time would pass as fast as the processor allows. So the main thread sleeps
//! until the job is over, and switches off whatever the others still wait for.

mod capture;
mod clock;
mod conversation;
mod space;

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::utsname::uname;
use nix::unistd::sync;

use self::clock::Clock;
use self::conversation::Record;
use crate::job::{Job, Log};

/// The job, in its folder.
pub const JOB: &str = "job.json";
/// The log, beside it.
pub const LOG: &str = "log.json";
/// Why the job could not be done, beside it.
pub const ERROR: &str = "error.txt";

/// Does the job of the host's folder `folder` as the first process of a guest; never returns.
pub fn run(folder: &Path) -> ! {
    if let Err(error) = prepare(folder).and_then(|()| work(Path::new(HERE)))
        && let Err(second) = fs::write(Path::new(HERE).join(ERROR), error.to_string())
    {
        eprintln!("acklab guest: {error}; and this could not be written down: {second}");
    }
    sync();
    let refused = reboot(RebootMode::RB_POWER_OFF);
    panic!("a guest that cannot be switched off: {refused:?}");
}

/// Where the guest sees the job's folder.
const HERE: &str = "/tmp/job";
/// From the end of the set-up to time zero, so that all threads are ready: virtual time, which costs nothing.
const LEAD: u64 = 1_000_000_000;

/// The file systems that programs expect.
fn prepare(folder: &Path) -> io::Result<()> {
    let none = None::<&str>;
    for (kind, at) in [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")] {
        mount(Some(kind), at, Some(kind), MsFlags::empty(), none)?;
    }
    fs::create_dir(HERE)?;
    mount(none, HERE, Some("hostfs"), MsFlags::empty(), Some(folder))?;
    // Threads sleep to the nanosecond; the kernel's default slack is 50 us.
    nix::sys::prctl::set_timerslack(1)?;
    Ok(())
}

fn work(folder: &Path) -> io::Result<()> {
    let job: Job = serde_json::from_reader(io::BufReader::new(File::open(folder.join(JOB))?))?;
    space::build(&job)?;
    let clock = Clock::starting_in(LEAD);
    let mut captures = Vec::new();
    for space in job.spaces.iter().filter(|space| space.capture) {
        let file = folder.join(format!("{}.pcapng", space.name));
        captures.push(capture::start(&space.name, &file, clock, job.duration)?);
    }
    let records = job.flows.iter().map(|flow| {
        let record = Arc::new(Record::default());
        conversation::start(flow, job.sampling, clock, &record).map(|()| record)
    });
    let records = records.collect::<io::Result<Vec<_>>>()?;
    clock.sleep_until(job.duration);
    let flows = records.iter().map(|record| record.take()).collect();
    let mut lost_frames = 0;
    for capture in captures {
        lost_frames += thread::JoinHandle::join(capture)
            .map_err(|_| io::Error::other("a capture's thread panicked"))??;
    }
    let kernel = uname()?.release().to_string_lossy().into_owned();
    let spaces = job.spaces.iter();
    let counters = spaces.map(|space| Ok((space.name.clone(), space::counters(&space.name)?)));
    let counters = counters.collect::<io::Result<_>>()?;
    let log = Log { kernel, zero: clock.zero(), flows, lost_frames, counters };
    let mut file = BufWriter::new(File::create(folder.join(LOG))?);
    serde_json::to_writer(&mut file, &log)?;
    io::Write::flush(&mut file)
}

//! A namespace with a TUN device in it, and what is set there.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::process::Command;
use std::time::{Instant, SystemTime};

use acklab_host::settings::{Route, Sysctls, Us};
use nix::sched::{CloneFlags, unshare};

use super::{calls, ends};

/// The device of scripts, as they name it.
pub(super) const DEVICE: &str = "tun0";
/// The key of fast open that runners of scripts set.
const FASTOPEN_KEY: &str = "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4";
/// What exists once the script's head is read.
pub(super) struct Lab {
    pub(super) device: File,
    /// Time on both clocks, and on the script's.
    pub(super) began: Instant,
    pub(super) began_at: SystemTime,
    pub(super) start: Us,
}

impl Lab {
    pub(super) fn open(route: &Route, sysctls: &Sysctls, start: Us) -> Result<Self, String> {
        let system =
            |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error} (needs root)");
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|error| system("make a network namespace", &error))?;
        let device = calls::open_tun(DEVICE).map_err(|error| system("/dev/net/tun", &error))?;
        let mtu = route.device_mtu.to_string();
        program(&["ip", "link", "set", "dev", "lo", "up"])?;
        let v4 = format!("{}/16", ends::inwards(false).to);
        let v6 = format!("{}/48", ends::inwards(true).to);
        program(&["ip", "addr", "add", &v4, "dev", DEVICE])?;
        program(&["ip", "-6", "addr", "add", &v6, "dev", DEVICE, "nodad"])?;
        program(&["ip", "link", "set", "dev", DEVICE, "mtu", &mtu, "up"])?;
        program(&["ip", "route", "add", "192.0.2.0/24", "dev", DEVICE])?;
        program(&["ip", "-6", "route", "add", "fd3d:fa7b:d17d::/48", "dev", DEVICE])?;
        for name in ["tcp_rmem", "tcp_wmem"] {
            let values: Vec<String> = (0..3).map(|at| sysctls.nth(name, at).to_string()).collect();
            write_control(&format!("net.ipv4.{name}"), &values.join(" "))?;
        }
        // The key whose cookies the interpreter knows.
        write_control("net.ipv4.tcp_fastopen_key", FASTOPEN_KEY)?;
        let (began, began_at) = clocks();
        Ok(Self { device, began, began_at, start })
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge of the real network reads the clock")]
pub(super) fn clocks() -> (Instant, SystemTime) {
    (Instant::now(), SystemTime::now())
}

/// Runs a program in the calling thread's namespace.
pub(super) fn program(words: &[&str]) -> Result<(), String> {
    let done = Command::new(words[0]).args(&words[1..]).output();
    let done = done.map_err(|error| format!("{}: {error}", words[0]))?;
    if done.status.success() {
        return Ok(());
    }
    let says = String::from_utf8_lossy(&done.stderr);
    Err(format!("{}: {}", words.join(" "), says.trim()))
}

/// Writes a system control of the namespace; those that only the first namespace has are left alone.
pub(super) fn write_control(name: &str, value: &str) -> Result<(), String> {
    let path = name.trim_start_matches("/proc/sys/").replace('.', "/");
    if path.ends_with("congestion_control") {
        return Ok(());
    }
    if !path.starts_with("net/") {
        return Err(format!("{name} is not of a network namespace"));
    }
    match fs::write(format!("/proc/sys/{path}"), value.trim_matches(['"', '\''])) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("{name} = {value}: {error}")),
        Ok(()) => Ok(()),
    }
}

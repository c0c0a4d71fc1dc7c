//! Bulk over a pair of veth devices between two network namespaces: CPU seconds per gigabyte of both ends.
//!
//! This process moves into a namespace of its own, a child holds the other one; both end with their
//! processes, so nothing is left behind. MTU 1500, the kernel's offloads as they are.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};

use crate::contender::{Contender, Workshop};
use crate::metered::Reading;
use crate::trial::intact;

/// What one bulk transfer cost.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// From connect to the application's last acknowledgment.
    pub seconds: f64,
    /// CPU seconds per gigabyte: sender and receiver.
    pub cpu: [f64; 2],
    /// Largest resident set, bytes: sender and receiver.
    pub memory: [u64; 2],
}

/// Two namespaces with a wire between them, as long as it lives.
pub struct Wire {
    holder: Child,
}

const HERE: &str = "10.78.0.1";
const THERE: &str = "10.78.0.2";
/// A transfer that takes longer has failed.
const LIMIT: f64 = 120.0;

impl Wire {
    /// Moves the calling thread into a new namespace and joins it to another; needs root.
    pub fn lay() -> Result<Self, Box<dyn Error>> {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|error| format!("a new namespace: {error}"))?;
        let mut holder = Command::new(std::env::current_exe()?)
            .arg("hold")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut ready = String::new();
        BufReader::new(holder.stdout.take().ok_or("no pipe")?).read_line(&mut ready)?;
        let wire = Self { holder };
        let pid = wire.holder.id().to_string();
        ip(&["link", "add", "wire", "mtu", "1500", "type", "veth", "peer", "name", "wire", "mtu"]
            .into_iter()
            .chain(["1500", "netns", &pid])
            .collect::<Vec<_>>())?;
        ip(&["address", "add", &format!("{HERE}/24"), "dev", "wire"])?;
        ip(&["link", "set", "wire", "up"])?;
        let there = wire.there();
        for words in [
            ["address", "add", &format!("{THERE}/24"), "dev", "wire"].as_slice(),
            &["link", "set", "wire", "up"],
        ] {
            inside(&there, words)?;
        }
        Ok(wire)
    }

    /// The other namespace.
    fn there(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.holder.id()).into()
    }

    /// One transfer from here to there.
    pub fn carry(
        &self,
        shop: &Workshop,
        contender: Contender,
        bytes: u64,
    ) -> Result<Bulk, Box<dyn Error>> {
        shop.clear_inbox()?;
        let files = ["sender.json", "receiver.json"].map(|name| shop.folder.join(name));
        let server = Reading::wrap(
            &files[1],
            LIMIT,
            Some(&self.there()),
            contender.receive(shop, &[THERE, THERE]),
        );
        let mut server = Command::new(&server[0]).args(&server[1..]).spawn()?;
        await_listener(&server)?;
        let send = contender.send(shop, &[HERE, HERE], &[THERE, THERE], bytes);
        let client = Reading::wrap(&files[0], LIMIT, None, send);
        Command::new(&client[0]).args(&client[1..]).status()?;
        server.wait()?;
        let [sender, receiver] =
            files.map(|file| Reading::take(&file).ok_or("a command was not measured"));
        let (sender, receiver) = (sender?, receiver?);
        let seconds = sender.result().and_then(|result| result["seconds"].as_f64());
        let seconds = seconds.ok_or_else(|| format!("{}: no result", contender.name()))?;
        if !intact(shop, contender, bytes) {
            return Err(format!("{}: the file that arrived is another", contender.name()).into());
        }
        let gigabytes = bytes as f64 / 1e9;
        Ok(Bulk {
            seconds,
            cpu: [sender.cpu / gigabytes, receiver.cpu / gigabytes],
            memory: [sender.memory, receiver.memory],
        })
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        drop(self.holder.kill());
        drop(self.holder.wait());
    }
}

/// What the child does: it holds a namespace until it is killed or its parent is gone.
pub fn hold() -> Result<(), Box<dyn Error>> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    println!("ready");
    std::io::stdout().flush()?;
    let mut nothing = String::new();
    std::io::stdin().read_line(&mut nothing)?;
    Ok(())
}

/// What `inside` runs: `ip` in another namespace.
pub fn enter(net: &std::path::Path, words: &[String]) -> Result<(), Box<dyn Error>> {
    nix::sched::setns(fs::File::open(net)?, CloneFlags::CLONE_NEWNET)?;
    ip(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn inside(net: &std::path::Path, words: &[&str]) -> Result<(), Box<dyn Error>> {
    let status = Command::new(std::env::current_exe()?)
        .arg("enter")
        .arg(net)
        .arg("--")
        .args(words)
        .status()?;
    if status.success() { Ok(()) } else { Err("ip in the other namespace failed".into()) }
}

fn ip(words: &[&str]) -> Result<(), Box<dyn Error>> {
    let status = Command::new("ip").args(words).status().map_err(|e| format!("ip: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("ip {} failed", words.join(" ")).into()) }
}

/// Waits until the metered command under `meter` has a socket that listens or is bound.
fn await_listener(meter: &Child) -> Result<(), Box<dyn Error>> {
    let until = Instant::now() + Duration::from_secs(5);
    // The tables of /proc/PID/net are those of the namespace that the process is in.
    let tables = ["tcp", "udp"].map(|name| format!("/proc/{}/net/{name}", meter.id()));
    while Instant::now() < until {
        let lines =
            |table: &String| fs::read_to_string(table).map_or(0, |text| text.lines().count());
        if tables.iter().any(|table| lines(table) > 1) {
            return Ok(());
        }
        std::thread::yield_now();
    }
    Err("the receiver does not listen after 5 s".into())
}

//! `acklab send` and `acklab recv` as processes.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use acklab_core::rng::Rng;
use serde_json::Value;

pub(crate) const PASSPHRASE: &str = "able-baker-cat-dog";

/// A process that does not outlive the test.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) out: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("acklab starts");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, out }
    }

    /// The next line, as JSON.
    pub(crate) fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        (!line.is_empty()).then(|| serde_json::from_str(&line).expect("an object per line"))
    }

    /// The last line, the exit status and what was said on standard error.
    pub(crate) fn end(mut self) -> (Option<Value>, i32, String) {
        let mut last = None;
        while let Some(line) = self.line() {
            last = Some(line);
        }
        let mut said = String::new();
        self.child.stderr.take().expect("stderr").read_to_string(&mut said).expect("its words");
        (last, self.child.wait().expect("an end").code().unwrap_or(-1), said)
    }

    pub(crate) fn kill(mut self) {
        // SIGKILL on Unix.
        self.child.kill().expect("kill");
        self.child.wait().expect("an end");
    }
}

pub(crate) fn acklab() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acklab"));
    command.env_remove("ACKLAB_PASSPHRASE");
    command
}

/// A receiver on a port of the kernel's choice, and where it listens.
pub(crate) fn receiver(folder: &Path, listen: &str, more: &[&str]) -> (Running, String) {
    let mut command = acklab();
    command.arg("recv").arg(folder).args(["--listen", listen, "--format", "json"]).args(more);
    let mut running = Running::start(&mut command);
    let first = running.line().expect("it says where it listens");
    let address = first["listen"][0].as_str().expect("an address").to_owned();
    (running, address)
}

pub(crate) fn sender(what: &Path, to: &str, more: &[&str]) -> Command {
    let mut command = acklab();
    command.arg("send").arg(what).arg(to).args(["--format", "json"]).args(more);
    command
}

pub(crate) fn content(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::named(seed, "content");
    let words = std::iter::repeat_with(|| rng.next_u64().to_le_bytes());
    words.flatten().take(len).collect()
}

pub(crate) fn same(one: &Path, other: &Path) -> bool {
    let hash = |path: &Path| {
        let mut bytes = Vec::new();
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).expect("a file");
        bytes
    };
    hash(one) == hash(other)
}

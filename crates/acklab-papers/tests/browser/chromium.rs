//! A headless Chromium that loads one file and reports its document and console.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An installed Chromium.
pub(crate) struct Chromium(PathBuf);

/// What a visit gave.
pub(crate) struct Visit {
    /// The document after the page's script has run.
    pub(crate) dom: String,
    /// Console messages of any level, uncaught errors and refused fetches included.
    pub(crate) console: Vec<String>,
}

impl Chromium {
    /// The browser, or `None` after saying that the test is skipped.
    pub(crate) fn find() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path)
            .flat_map(|folder| NAMES.map(|name| folder.join(name)))
            .find(|candidate| candidate.is_file());
        if found.is_none() {
            skip("no Chromium on the PATH (Debian: apt-get install chromium)");
        }
        found.map(Self)
    }

    /// Loads `html` from a new file.
    pub(crate) fn visit(&self, name: &str, html: &str) -> Visit {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a temporary folder");
        let file = folder.join("report.html");
        fs::write(&file, html).expect("the report is written");
        let output = Command::new(&self.0)
            .args(ARGUMENTS)
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .arg("--dump-dom")
            .arg(format!("file://{}", file.display()))
            .output()
            .expect("Chromium starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let console = String::from_utf8_lossy(&output.stderr)
            .lines()
            .filter(|line| line.contains(":CONSOLE"))
            .map(str::to_owned)
            .collect();
        Visit { dom: String::from_utf8_lossy(&output.stdout).into_owned(), console }
    }
}

fn skip(reason: &str) {
    eprintln!("SKIPPED: report in a browser: {reason}");
    if let Some(log) = std::env::var_os("ACKLAB_SKIP_LOG") {
        let mut log =
            fs::OpenOptions::new().create(true).append(true).open(log).expect("the skip log opens");
        writeln!(log, "SKIPPED: report in a browser: {reason}").expect("the skip log is written");
    }
}

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// No window, no first-run pages, no traffic of the browser's own; the virtual time budget lets the
/// page's script finish before the document is dumped.
const ARGUMENTS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--v=0",
    "--virtual-time-budget=20000",
    "--timeout=60000",
];

//! `acklab packetdrill`: scripts in the packetdrill language, against acklab's host in virtual time.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use acklab_packetdrill::run::{Outcome, Settings, Verdict};
use clap::Args;
use serde_json::json;

use crate::outcome::{Failure, Format, print, print_line};

/// Run scripts in the packetdrill language against a Linux-like TCP in virtual time
///
/// Each script passes, fails at a line, or has a construct that is not supported; nothing passes that was not
/// checked. What the script would do to a kernel (sysctl, ip route) is done to the simulated host; nothing is
/// executed. Folders are searched for *.pkt.
#[derive(Args)]
#[command(after_help = "\
Examples:
  acklab packetdrill handshake.pkt
  acklab packetdrill --format json tests/tcp/ | jq -r 'select(.result==\"fail\")'
  acklab packetdrill --ip-version ipv6 -D PORT=8080 'tests/**/fast_*.pkt'

Exit status: 0 all passed, 1 one failed, 2 unusable input or arguments, 3 none failed, but one has a construct that is
not supported.")]
pub(crate) struct Packetdrill {
    /// Scripts, folders of them, or patterns with *, ? and **
    #[arg(required = true, value_name = "FILE|FOLDER|GLOB")]
    scripts: Vec<String>,
    /// How to tell it: for people, or one JSON object per script and line
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// How much earlier or later than the script says something may happen [default: 4000]
    #[arg(long, alias = "tolerance_usecs", value_name = "MICROSECONDS")]
    tolerance_usecs: Option<u64>,
    /// Addresses: ipv4, ipv4-mapped-ipv6 or ipv6
    #[arg(long, alias = "ip_version", value_name = "VERSION")]
    ip_version: Option<String>,
    /// MTU of the host's device [default: 1500]
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u32>,
    /// A name that scripts use, and its value
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE")]
    define: Vec<String>,
    /// Run the scripts on this machine's kernel, in real time: needs root. Each has a network namespace of its own;
    /// of its commands only system controls of the network, ip, tc and ethtool are carried out, in there
    #[cfg(target_os = "linux")]
    #[arg(long)]
    kernel: bool,
    /// Play what the scripts do to this machine's kernel and to the simulated host, judge nothing, and show where
    /// the two part: needs root
    #[cfg(target_os = "linux")]
    #[arg(long, conflicts_with = "kernel")]
    compare: bool,
    /// Fail a script also where a packet leaves behind the last one that it expects
    #[arg(long)]
    all_packets: bool,
    /// Threads [default: one per processor]
    #[arg(long)]
    threads: Option<usize>,
}

impl Packetdrill {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let settings = self.settings()?;
        let mut paths = Vec::new();
        for given in &self.scripts {
            paths.extend(find(given)?);
        }
        #[cfg(target_os = "linux")]
        if self.compare {
            return self.beside(&paths, &settings);
        }
        let outcomes = run_all(&paths, &settings, self.world(), self.threads);
        for (path, outcome) in paths.iter().zip(&outcomes) {
            match self.format {
                Format::Json => print_line(&json!({
                    "script": path.display().to_string(),
                    "result": outcome.verdict.name(),
                    "line": outcome.line,
                    "message": outcome.message,
                }))?,
                Format::Text => print(&text(path, outcome))?,
            }
        }
        if self.format == Format::Text {
            print(&summary(&outcomes))?;
        }
        if outcomes.iter().any(|o| o.verdict == Verdict::Fail) {
            Err(Failure::Check)
        } else if outcomes.iter().any(|o| o.verdict == Verdict::Unsupported) {
            Err(Failure::Incomplete)
        } else {
            Ok(())
        }
    }

    /// The kernel and the simulated host beside each other.
    #[cfg(target_os = "linux")]
    fn beside(&self, paths: &[PathBuf], settings: &Settings) -> Result<(), Failure> {
        let all = in_parallel(paths, self.threads, |path| {
            let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
            let folder = path.parent().unwrap_or(Path::new("."));
            Ok::<_, String>(acklab_worlds::script::compare(&text, folder, settings))
        });
        let (mut apart, mut raced, mut miscounted) = (0, 0, 0);
        for (path, beside) in paths.iter().zip(all.into_iter().flatten()) {
            let beside = beside.map_err(|error| Failure::at(path.display(), error))?;
            let differs = beside.parts_at.is_some() || beside.stopped.is_some();
            raced += usize::from(differs && beside.races);
            apart += usize::from(differs && !beside.races);
            let word = match (differs, beside.races) {
                (true, true) => "races ",
                (true, false) => "parts ",
                _ => "agrees",
            };
            print(&format!("{word} {}\n", path.display()))?;
            if differs {
                let stopped = beside.stopped.as_ref().map(|why| format!("    {why}\n"));
                print(&format!("{}{}", stopped.unwrap_or_default(), beside.text()))?;
            }
            for (name, kernel, host) in &beside.counters {
                print(&format!("    {name} is {kernel} in the kernel, {host} in the host\n"))?;
            }
            miscounted += usize::from(!beside.counters.is_empty());
        }
        let agree = paths.len() - apart - raced;
        print(&format!(
            "{agree} agree, {apart} part, {raced} race; of those that agree {miscounted} count differently\n"
        ))?;
        if apart > 0 { Err(Failure::Check) } else { Ok(()) }
    }

    /// How a script is run.
    fn world(&self) -> Run {
        #[cfg(target_os = "linux")]
        if self.kernel {
            return acklab_worlds::script::run;
        }
        acklab_packetdrill::run::run
    }

    fn settings(&self) -> Result<Settings, Failure> {
        let mut settings = Settings::default();
        let mut set = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                settings.options.push((name.to_owned(), value));
            }
        };
        set("tolerance_usecs", self.tolerance_usecs.map(|us| us.to_string()));
        set("ip_version", self.ip_version.clone());
        set("mtu", self.mtu.map(|mtu| mtu.to_string()));
        set("all_packets", self.all_packets.then(String::new));
        for definition in &self.define {
            let Some((name, value)) = definition.split_once('=') else {
                return Err(Failure::at(format!("-D {definition}"), "expected NAME=VALUE"));
            };
            settings.defined.push((name.to_owned(), value.to_owned()));
        }
        Ok(settings)
    }
}

/// Runs one script's text.
type Run = fn(&str, &Path, &Settings) -> Outcome;

/// Runs scripts on so many threads; the results stand in the order of the paths.
fn run_all(
    paths: &[PathBuf],
    settings: &Settings,
    run: Run,
    threads: Option<usize>,
) -> Vec<Outcome> {
    let all = in_parallel(paths, threads, |path| run_one(path, settings, run));
    all.into_iter()
        .map(|outcome| outcome.unwrap_or_else(|| broken("the run was given up")))
        .collect()
}

/// Does something with each path, on so many threads; the results stand in the order of the paths.
fn in_parallel<T: Send>(
    paths: &[PathBuf],
    threads: Option<usize>,
    work: impl Fn(&Path) -> T + Sync,
) -> Vec<Option<T>> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or(cores).clamp(1, paths.len().max(1));
    let next = AtomicUsize::new(0);
    let all: Mutex<Vec<Option<T>>> = Mutex::new(paths.iter().map(|_| None).collect());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = paths.get(at) else { return };
                    let done = work(path);
                    if let Ok(mut all) = all.lock() {
                        all[at] = Some(done);
                    }
                }
            });
        }
    });
    all.into_inner().unwrap_or_default()
}

fn broken(message: impl Into<String>) -> Outcome {
    Outcome {
        verdict: Verdict::Fail,
        line: 0,
        message: message.into(),
        timeline: Vec::new(),
        seen: Vec::new(),
        counters: Vec::new(),
    }
}

fn run_one(path: &Path, settings: &Settings, run: Run) -> Outcome {
    let folder = path.parent().unwrap_or(Path::new("."));
    match fs::read(path) {
        Ok(bytes) => {
            let text = match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => {
                    let at = error.utf8_error().valid_up_to();
                    return broken(format!("not a text: byte {at} is not UTF-8"));
                }
            };
            // A defect of acklab's met by one script must not cost the results of the others.
            std::panic::catch_unwind(|| run(&text, folder, settings))
                .unwrap_or_else(|_| broken("acklab itself failed on this script: please report it"))
        }
        Err(error) => broken(error.to_string()),
    }
}

fn text(path: &Path, outcome: &Outcome) -> String {
    let name = path.display();
    let mut text = match outcome.verdict {
        Verdict::Pass => return format!("pass         {name}\n"),
        Verdict::Unsupported => {
            return format!("unsupported  {name}:{}: {}\n", outcome.line, outcome.message);
        }
        Verdict::Fail => format!("fail         {name}:{}: {}\n", outcome.line, outcome.message),
    };
    let skipped = outcome.timeline.len().saturating_sub(TIMELINE);
    for line in &outcome.timeline[skipped..] {
        let _ = writeln!(text, "    {line}");
    }
    text
}

fn summary(outcomes: &[Outcome]) -> String {
    let count = |verdict| outcomes.iter().filter(|o| o.verdict == verdict).count();
    format!(
        "{} passed, {} failed, {} not supported\n",
        count(Verdict::Pass),
        count(Verdict::Fail),
        count(Verdict::Unsupported)
    )
}

/// Lines that are shown of what happened before a failure.
const TIMELINE: usize = 24;

/// The scripts that an argument means.
fn find(given: &str) -> Result<Vec<PathBuf>, Failure> {
    let path = Path::new(given);
    let mut found = Vec::new();
    if path.is_dir() {
        walk(path, &mut found).map_err(|error| Failure::at(given, error))?;
        found.retain(|p| p.extension().is_some_and(|end| end == "pkt"));
    } else if path.exists() {
        return Ok(vec![path.to_path_buf()]);
    } else if given.contains(['*', '?']) {
        let fixed: PathBuf = path
            .components()
            .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?']))
            .collect();
        let root = if fixed.as_os_str().is_empty() { PathBuf::from(".") } else { fixed.clone() };
        walk(&root, &mut found).map_err(|error| Failure::at(given, error))?;
        let plain = fixed.as_os_str().is_empty();
        found.retain(|p| {
            let shown = if plain { p.strip_prefix(".").unwrap_or(p) } else { p };
            matches(given.trim_start_matches("./").as_bytes(), shown.to_string_lossy().as_bytes())
        });
    }
    if found.is_empty() {
        return Err(Failure::at(
            given,
            "no script is there: name a file, a folder with *.pkt or a pattern",
        ));
    }
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), found)?;
        } else {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Whether a path is of a pattern: `*` and `?` stop at `/`, `**` does not.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        ([b'*', b'*', b'/', rest @ ..], _) if matches(rest, path) => true,
        ([b'*', b'*', rest @ ..], _) => {
            matches(rest, path) || (!path.is_empty() && matches(pattern, &path[1..]))
        }
        ([b'*', rest @ ..], _) => {
            matches(rest, path)
                || (!path.is_empty() && path[0] != b'/' && matches(pattern, &path[1..]))
        }
        ([b'?', rest @ ..], [c, tail @ ..]) if *c != b'/' => matches(rest, tail),
        ([p, rest @ ..], [c, tail @ ..]) if p == c => matches(rest, tail),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_stop_at_folders_unless_they_have_two_stars() {
        for (pattern, path, is) in [
            ("a/*.pkt", "a/b.pkt", true),
            ("a/*.pkt", "a/b/c.pkt", false),
            ("a/**/*.pkt", "a/b/c.pkt", true),
            ("a/**/*.pkt", "a/c.pkt", true),
            ("a/?.pkt", "a/bc.pkt", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), path.as_bytes()), is, "{pattern} {path}");
        }
    }
}

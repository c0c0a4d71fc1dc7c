//! `acklab send`: files and folders to an `acklab recv`, over one path or several.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use acklab_net::rudp::keys::{Identity, PublicKey};
use acklab_net::transfer::exclude::Pattern;
use acklab_net::transfer::name::shown;
use acklab_net::transfer::report::PathReport;
use acklab_net::transfer::send::{self as transfer, Due, End, News, Outcome};
use acklab_net::transfer::send::{Errand, Secret, Status, What};
use acklab_rudp::{Code, Config};
use clap::Args;
use indicatif::{DecimalBytes, ProgressBar, ProgressStyle};

use crate::invitation::Invitation;
use crate::outcome::{Failure, Format, interruption, print, print_line, tell};
use crate::secret::PassphraseOptions;
use crate::set;
use crate::transfer::{self as lines, Line};

/// Send files and folders to an `acklab recv`, over lossy links and several paths (Linux)
///
/// What was interrupted goes on where it was: run the same command again. What the receiver has already, by size and
/// time, is not sent. Everything is encrypted, and both ends show each other that they know the same passphrase or
/// have the right keys. Permissions, times and symbolic links are kept, holes of sparse files are not sent.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Send {
    /// Files and folders to send; - sends standard input, which cannot go on after an interruption
    #[arg(value_name = "FILE|DIR|-", required = true)]
    what: Vec<PathBuf>,
    /// The code that the receiver shows; or where it listens: IPv4, IPv6 in brackets, or a name, with its port
    #[arg(value_name = "CODE|ADDR:PORT")]
    to: String,
    /// Leave out what has this name; * and ? stand for any characters and any one, and a pattern with a / in it is
    /// compared with the whole path, whose first part is the source's name
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Send nothing: print what would have to be sent
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// What standard input is called at the receiver [default: stdin]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// One more path: from an address of this machine to an address where the receiver listens; give it
    /// once per path. One that leads to ADDR:PORT takes the place of the first path
    #[arg(long, value_name = "LOCAL_IP,REMOTE_ADDR:PORT")]
    path: Vec<String>,
    #[command(flatten)]
    passphrase: PassphraseOptions,
    /// This end's key pair, made where the file is not there; needs --peer
    #[arg(long, value_name = "FILE", requires = "peer")]
    identity: Option<PathBuf>,
    /// The receiver's public key, as `acklab recv --identity` shows it
    #[arg(long, value_name = "KEY", requires = "identity")]
    peer: Option<String>,
    /// Neither encrypt nor check who it is: for experiments, and the receiver must say so too
    #[arg(long, conflicts_with_all = ["identity"])]
    insecure: bool,
    /// At most so much per second: 60mbyte, 480mbit
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Congestion control of each path [default: chosen by the protocol]
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    /// Set parameters of reliable UDP, this end's ACK policy among them: ack=tack; `--set help` lists them
    #[arg(long = "set", value_name = "NAME=VALUE", num_args = 1..)]
    sets: Vec<String>,
    /// How to write progress and result to standard output; json: one object per line
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Send {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.sets.iter().any(|set| set == "help") {
            return print(&set::help(&Config::default()));
        }
        let errand = self.errand()?;
        let interrupted = interruption()?;
        let bar = (self.format == Format::Text && !self.dry_run).then(bar);
        let mut rehearsed = Rehearsed::default();
        let mut report = |news: News<'_>| match news {
            News::Status(status) => match &bar {
                Some(bar) => show(bar, status),
                None if self.dry_run => {}
                // That no program reads along any more is no reason to stop a transfer.
                None => {
                    let _ = print_line(&lines::progress(status));
                }
            },
            News::Problem(problem) => {
                let line = format!("acklab: send: {problem}");
                bar.as_ref().map_or_else(|| tell(&line), |bar| bar.suspend(|| tell(&line)));
            }
            News::Due(due) => {
                rehearsed.count(due);
                let _ = match self.format {
                    Format::Json => print_line(&lines::due(due)),
                    Format::Text => {
                        print(&format!("{} ({})\n", shown(&due.name), DecimalBytes(due.bytes)))
                    }
                };
            }
        };
        let outcome = transfer::send(&errand, &interrupted, &mut report);
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        let outcome = outcome.map_err(|error| Failure::at("send", error))?;
        self.conclude(&outcome, &rehearsed)
    }

    fn errand(&self) -> Result<Errand, Failure> {
        let mut config = Config::default();
        if let Some(name) = &self.cc {
            config.algorithm = name.parse().map_err(|error| Failure::at("--cc", error))?;
        }
        set::all(&mut config, &self.sets)?;
        let paths = self.path.iter().map(|path| lines::path(path));
        let rate = self.rate.as_deref().map(lines::rate).transpose();
        let (to, secret) = self.peer()?;
        Ok(Errand {
            what: self.what()?,
            to,
            paths: paths.collect::<Result<_, _>>().map_err(|what| Failure::at("--path", what))?,
            secret,
            rehearsal: self.dry_run,
            renewal: transfer::RENEWAL,
            rate: rate.map_err(|what| Failure::at("--rate", what))?,
            config,
        })
    }

    fn what(&self) -> Result<What, Failure> {
        let unusable = |what: &str| Err(Failure::Unusable(format!("send: {what}")));
        if self.what.iter().any(|path| path.as_os_str() == "-") {
            if self.what.len() > 1 {
                return unusable("- is standard input, and is sent alone");
            }
            if self.dry_run {
                return unusable("standard input is sent as it comes: leave --dry-run out");
            }
            return Ok(What::Stream { name: self.name.clone().unwrap_or("stdin".to_owned()) });
        }
        if self.name.is_some() {
            return unusable("--name is for standard input (-): files keep theirs");
        }
        let patterns = self.exclude.iter().map(|text| text.parse::<Pattern>());
        let exclude = patterns.collect::<Result<_, _>>();
        let exclude = exclude.map_err(|error| Failure::at("--exclude", error))?;
        Ok(What::Tree { paths: self.what.clone(), exclude })
    }

    /// Where the receiver is, and how this end shows who it is.
    fn peer(&self) -> Result<(Vec<SocketAddr>, Secret), Failure> {
        let code = Invitation::read(&self.to).map_err(|what| Failure::at("CODE", what))?;
        let Some(Invitation { passphrase, addresses }) = code else {
            let to = lines::addresses(&self.to);
            return Ok((to.map_err(|what| Failure::at("ADDR:PORT", what))?, self.secret()?));
        };
        if self.insecure || self.identity.is_some() || self.passphrase.is_given() {
            let mend =
                "send: the code says what both ends have to know: leave the other secret out";
            return Err(Failure::Unusable(mend.to_owned()));
        }
        Ok((addresses, Secret::Passphrase(passphrase)))
    }

    fn secret(&self) -> Result<Secret, Failure> {
        if self.insecure {
            return Ok(Secret::Insecure);
        }
        if let (Some(path), Some(peer)) = (&self.identity, &self.peer) {
            let peer: PublicKey = peer.parse().map_err(|error| Failure::at("--peer", error))?;
            let identity =
                Identity::load_or_make(path).map_err(|error| Failure::at("--identity", error))?;
            return Ok(Secret::Keys(identity, peer));
        }
        self.passphrase.read()?.map(Secret::Passphrase).ok_or_else(|| {
            Failure::Unusable(
                "send: no secret: give the passphrase that the receiver shows with \
                 --passphrase-file or in ACKLAB_PASSPHRASE, or use --identity and --peer"
                    .to_owned(),
            )
        })
    }

    fn conclude(&self, outcome: &Outcome, rehearsed: &Rehearsed) -> Result<(), Failure> {
        let status = &outcome.status;
        match self.format {
            Format::Json if self.dry_run => {}
            Format::Json => print_line(&Line::new(status).to_json())?,
            Format::Text if self.dry_run => print(&rehearsed.summary(status))?,
            Format::Text => print(&summary(status))?,
        }
        let why = match &outcome.end {
            End::Finished if status.progress.failures == 0 => return Ok(()),
            End::Finished => {
                format!("{} not sent", count(status.progress.failures, "file or folder"))
            }
            End::Interrupted | End::Renewed => {
                "stopped; run the same command again to go on".to_owned()
            }
            End::Broken(error) => error.to_string(),
            End::Closed { code, text, by_peer } => {
                let said = if text.is_empty() { String::new() } else { format!(": {text}") };
                let hint = if *code == Code::Idle && !status.connected && self.peer.is_some() {
                    " (a receiver whose key is not the --peer given is silent)"
                } else {
                    ""
                };
                let who = if *by_peer { "the receiver ended it: " } else { "" };
                if lines::is_unusable(*code) {
                    return Err(Failure::at(format!("send: {}", self.to), self.mending(*code)));
                }
                let what = format!("send: {}: {who}{code}{said}{hint}", self.to);
                tell(&format!("acklab: {what}; run the same command again to go on"));
                return Err(Failure::Check);
            }
        };
        tell(&format!("acklab: send: {why}"));
        Err(Failure::Check)
    }
}

impl Send {
    /// What is wrong and how to mend it.
    fn mending(&self, code: Code) -> String {
        let own = self.identity.as_ref().and_then(|path| Identity::load_or_make(path).ok());
        match (code, own) {
            (Code::UnknownPeer, Some(own)) => format!(
                "the receiver does not know this end's key; add this line to its known peers: \
                 sender {}",
                own.public()
            ),
            (Code::WrongSecret, _) => format!("{code}: give what the receiver shows"),
            _ => code.to_string(),
        }
    }
}

/// What a rehearsal has found.
#[derive(Default)]
struct Rehearsed {
    files: u64,
    bytes: u64,
}

impl Rehearsed {
    fn count(&mut self, due: &Due) {
        self.files += 1;
        self.bytes += due.bytes;
    }

    fn summary(&self, status: &Status) -> String {
        let files = count(self.files, "file");
        let held = status.progress.stored;
        format!("{files} would be sent, {}; {held} are there already\n", DecimalBytes(self.bytes))
    }
}

/// A number of things, in words.
pub(crate) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Words alone until the receiver has answered: a bar without a length would be full.
fn bar() -> ProgressBar {
    style(ProgressBar::no_length(), "{msg}")
}

fn style(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn show(bar: &ProgressBar, status: &Status) {
    if !status.connected {
        bar.set_message("waiting for the receiver's answer");
        return;
    }
    let progress = &status.progress;
    if bar.length().is_none() {
        drop(style(bar.clone(), BAR));
        bar.reset();
    }
    // What was there already is no work: the bar begins empty, and its rate is that of the transfer.
    let due = status.totals.bytes.saturating_sub(progress.resumed);
    bar.set_length(due);
    bar.set_position(progress.sent.min(due));
    let mut lines = Vec::new();
    if progress.resumed > 0 {
        let share = 100 * progress.resumed / status.totals.bytes.max(1);
        lines.push(format!("{} ({share} %) were there before", DecimalBytes(progress.resumed)));
    }
    lines.extend(status.paths.iter().map(|path| path_line(path, status.seconds)));
    bar.set_message(lines.join("\n"));
}

const BAR: &str =
    "{wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}\n{msg}";

fn path_line(path: &PathReport, seconds: f64) -> String {
    let heard = path.rtt.map_or("no answer".to_owned(), |rtt| {
        format!("round trip {:.1} ms, {}", rtt.as_millis_f64(), path.state)
    });
    format!(
        "{} -> {}: {:.2} MB/s, {:.1} % lost, {heard}",
        path.local,
        path.remote,
        path.bytes as f64 / 1e6 / seconds.max(1e-3),
        path.loss() * 100.0,
    )
}

fn summary(status: &Status) -> String {
    let progress = &status.progress;
    let rate = progress.sent as f64 / 1e6 / status.seconds.max(1e-9);
    let mut text = format!(
        "{} stored, {}; sent {} in {:.3} s ({rate:.2} MB/s), {} on the wire",
        count(progress.stored, "file"),
        DecimalBytes(progress.stored_bytes),
        DecimalBytes(progress.sent),
        status.seconds,
        DecimalBytes(status.wire_bytes()),
    );
    if progress.resumed > 0 {
        let _ = write!(text, "; {} were there before", DecimalBytes(progress.resumed));
    }
    let kept = progress.confirmed.saturating_sub(progress.stored_bytes);
    if kept > 0 {
        let _ =
            write!(text, "; {} of files that are not whole yet are kept there", DecimalBytes(kept));
    }
    if status.progress.skipped > 0 {
        let _ = write!(text, "; {} left out", count(status.progress.skipped, "device or pipe"));
    }
    text.push('\n');
    if let Some(hash) = &progress.hash {
        let _ = writeln!(text, "BLAKE3 {}", lines::hash(hash));
    }
    for path in &status.paths {
        let _ = writeln!(text, "path {}", path_line(path, status.seconds));
    }
    text
}

const EXAMPLES: &str = "\
Examples (the receiver runs `acklab recv`, which shows a code):
  acklab send photos notes.txt kadu-fota-bili-runo@192.0.2.7:9000 --exclude '*.tmp'
  acklab send -n photos kadu-fota-bili-runo@192.0.2.7:9000
  ACKLAB_PASSPHRASE=able-baker-cat-dog acklab send photos host.example:9000
  acklab send disk.img 198.51.100.7:9000 --passphrase-file secret --rate 20mbyte
  acklab send disk.img 198.51.100.7:9000 --path 192.0.2.1,198.51.100.7:9000 \\
      --path 203.0.113.5,198.51.100.8:9000 --identity my.key --peer acklab1...

Other users of this machine can see a code in the list of processes, while the command runs; a passphrase in
ACKLAB_PASSPHRASE or a file they cannot.

Exit status: 0 all is stored, 1 it ended early or something was not sent (run it again to go on),
2 unusable arguments, a wrong secret, an unknown key or another version.";

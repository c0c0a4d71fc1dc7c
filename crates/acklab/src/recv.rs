//! `acklab recv`: takes what `acklab send` sends.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use acklab_net::rudp::keys::{Identity, PublicKey};
use acklab_net::rudp::own;
use acklab_net::rudp::passphrase::Passphrase;
use acklab_net::rudp::peers::KnownPeers;
use acklab_net::transfer::directory::Directory;
use acklab_net::transfer::policy::{Existing, Policy, Prompter};
use acklab_net::transfer::receive::{self as transfer, End, News};
use acklab_net::transfer::receive::{Gate, Reception, Verdict};
use acklab_net::transfer::receiver::Received;
use acklab_rudp::{Code, Config};
use clap::Args;
use indicatif::DecimalBytes;
use serde_json::json;

use crate::invitation::Invitation;
use crate::outcome::{Failure, Format, interruption, print, print_line, tell};
use crate::secret::PassphraseOptions;
use crate::send::count;
use crate::set;
use crate::transfer as lines;

/// Receive what `acklab send` sends into a folder (Linux)
///
/// It shows a code that says where it is and what a sender has to know: `acklab send FILE CODE` on the other machine.
/// Files appear under their names when they are complete and their hashes fit; until then they lie in
/// DIR/.acklab-part, from where an interrupted transfer goes on. Nothing is written outside of DIR,
/// whatever names a sender gives. Without any secret, a passphrase is made and shown, and is part of the code. What is
/// here already, by size and time, is not sent again. On a terminal it asks before it replaces other files.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "flags of the command line")]
pub(crate) struct Recv {
    /// Folder to receive into, made where it is not there; - writes one file or stream to standard output
    #[arg(value_name = "DIR|-", default_value = ".")]
    folder: PathBuf,
    /// Address and port to listen on; may be given again, for senders with several paths [default: port 9000, or
    /// another where that is taken, on all interfaces]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Vec<String>,
    #[command(flatten)]
    passphrase: PassphraseOptions,
    /// This end's key pair, made where the file is not there; needs --known-peers
    #[arg(long, value_name = "FILE", requires = "known_peers")]
    identity: Option<PathBuf>,
    /// Who may send: a name and a public key per line
    #[arg(long, value_name = "FILE", requires = "identity")]
    known_peers: Option<PathBuf>,
    /// Neither encrypt nor check who sends: for experiments, and the sender must say so too
    #[arg(long, conflicts_with_all = ["identity"])]
    insecure: bool,
    /// End after one transfer. A sender that vanishes is waited for, and so for 10 minutes is one that may not
    /// have heard that all is stored; one that does not know the secret is told of and changes nothing
    #[arg(long)]
    once: bool,
    /// End after so many wrong guesses of the passphrase, and let no sender in after them: for short ones. Any host that
    /// reaches the port can make them [default: 20 per second without an end]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with_all = ["identity", "insecure"])]
    guesses: Option<u32>,
    /// Refuse files that are there already and are others than the sender's
    #[arg(long)]
    keep: bool,
    /// Replace them without asking, which happens on a terminal alone
    #[arg(long, visible_alias = "yes", conflicts_with = "keep")]
    overwrite: bool,
    /// Compare the content of files that are there already with the sender's (BLAKE3), rather than their time
    #[arg(long)]
    checksum: bool,
    /// Take symbolic links also if they lead out of DIR
    #[arg(long)]
    any_links: bool,
    /// Set parameters of reliable UDP, this end's ACK policy among them: ack=tack; `--set help` lists them
    #[arg(long = "set", value_name = "NAME=VALUE", num_args = 1..)]
    sets: Vec<String>,
    /// How to write what happens to standard output; json: one object per line
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Recv {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.sets.iter().any(|set| set == "help") {
            return print(&set::help(&Config::default()));
        }
        let mut config = Config::default();
        set::all(&mut config, &self.sets)?;
        let (gate, shown) = self.gate()?;
        let listen = self.listen.iter().map(|text| lines::address(text)).collect::<Result<_, _>>();
        let reception = Reception {
            directory: self.directory()?,
            listen: listen.map_err(|what| Failure::at("--listen", what))?,
            gate,
            once: self.once,
            guesses: self.guesses,
            config,
        };
        let interrupted = interruption()?;
        let peers = match &reception.gate {
            Gate::Keys(_, peers) => Some(peers.clone()),
            Gate::Passphrase(_) | Gate::Insecure => None,
        };
        let mut report = |news: News<'_>| {
            // That no program reads along any more is no reason to stop a transfer.
            let _ = match self.format {
                Format::Text => say(&news, &shown, peers.as_ref(), self.prints()),
                Format::Json => print_line(&line(&news, &shown)),
            };
        };
        let verdict = transfer::receive(&reception, &interrupted, &mut report)
            .map_err(|error| Failure::at("recv", error))?;
        match verdict {
            Verdict::Complete => Ok(()),
            Verdict::Interrupted if !self.once && !self.prints() => Ok(()),
            Verdict::Incomplete | Verdict::Interrupted => Err(Failure::Check),
        }
    }

    /// Whether standard output is for what arrives.
    fn prints(&self) -> bool {
        self.folder.as_os_str() == "-"
    }

    fn directory(&self) -> Result<Option<Directory>, Failure> {
        if !self.prints() {
            let directory = Directory::open(&self.folder, self.policy());
            return directory.map(Some).map_err(|error| Failure::at("recv", error));
        }
        if self.format == Format::Json {
            return Err(Failure::Unusable(
                "recv -: standard output is for what arrives; leave --format json out".to_owned(),
            ));
        }
        Ok(None)
    }

    fn policy(&self) -> Policy {
        let asks = self.format == Format::Text
            && !self.overwrite
            && io::stdin().is_terminal()
            && io::stderr().is_terminal();
        let existing = match (self.keep, asks) {
            (true, _) => Existing::Keep,
            (false, true) => Existing::Ask(Prompter::new(question())),
            (false, false) => Existing::Replace,
        };
        Policy { existing, checksum: self.checksum, any_links: self.any_links }
    }

    fn gate(&self) -> Result<(Gate, Shown), Failure> {
        let mut shown = Shown::default();
        if self.insecure {
            return Ok((Gate::Insecure, shown));
        }
        if let (Some(path), Some(known)) = (&self.identity, &self.known_peers) {
            let identity =
                Identity::load_or_make(path).map_err(|error| Failure::at("--identity", error))?;
            let peers =
                KnownPeers::read(known).map_err(|error| Failure::at("--known-peers", error))?;
            shown.key = Some(identity.public());
            return Ok((Gate::Keys(identity, peers), shown));
        }
        let passphrase = self.passphrase.read()?.unwrap_or_else(|| {
            let made = Passphrase::generate();
            shown.passphrase = Some(made.clone());
            made
        });
        if passphrase.is_weak() {
            tell(
                "acklab: recv: the passphrase is easily guessed: 10 wrong ones are answered at once and then one \
                 in 10 s, from all hosts together; give none, and one is made",
            );
        }
        Ok((Gate::Passphrase(passphrase), shown))
    }
}

/// Asks on the terminal whether a file is to be replaced, until the user says it of all.
fn question() -> impl FnMut(&str) -> bool + Send + 'static {
    let mut of_all = None;
    move |question| {
        of_all.unwrap_or_else(|| {
            loop {
                tell(&format!("{question} [y]es, [n]o, [a]ll, n[o]ne:"));
                let mut line = String::new();
                match io::stdin().lock().read_line(&mut line) {
                    Ok(1..) => {}
                    // The terminal is gone.
                    _ => return false,
                }
                match line.trim().to_lowercase().as_str() {
                    "y" | "yes" => return true,
                    "n" | "no" => return false,
                    "a" | "all" => return *of_all.insert(true),
                    "o" | "none" => return *of_all.insert(false),
                    _ => {}
                }
            }
        })
    }
}

/// What the sender's user has to be told.
#[derive(Default)]
struct Shown {
    /// A passphrase that was made here.
    passphrase: Option<Passphrase>,
    key: Option<PublicKey>,
}

impl Shown {
    /// The code for a receiver with these addresses, if the passphrase was made here.
    fn code(&self, addresses: &[SocketAddr]) -> Option<String> {
        let passphrase = self.passphrase.clone()?;
        let all: Vec<_> = addresses.iter().flat_map(|&bound| own::reachable(bound)).collect();
        // Where one family leads out, the other's loopback address is of no use elsewhere.
        let far = |address: &SocketAddr| !address.ip().is_loopback();
        let alone = !all.iter().any(far);
        let addresses = all.into_iter().filter(|address| alone || far(address)).collect();
        Some(Invitation { passphrase, addresses }.to_string())
    }
}

/// Tells it to people: on standard output, or beside it where that is for what arrives.
fn say(
    news: &News<'_>,
    shown: &Shown,
    peers: Option<&KnownPeers>,
    beside: bool,
) -> Result<(), Failure> {
    let print = |text: &str| {
        if beside {
            tell(text.trim_end());
            return Ok(());
        }
        print(text)
    };
    match news {
        News::Listening(addresses) => print(&greeting(addresses, shown)),
        News::Opened { from, key } => {
            let key = key.map(PublicKey);
            let name = key.as_ref().and_then(|key| peers.and_then(|peers| peers.name(key)));
            let who = name.map_or(String::new(), |name| format!(" ({name})"));
            print(&format!("{from}{who}: began\n"))
        }
        News::Problem(problem) => {
            tell(&format!("acklab: recv: {problem}"));
            Ok(())
        }
        News::Status { .. } => Ok(()),
        News::Ended { from, end, received, seconds, unheard } => {
            print(&ended(*from, end, received, (*seconds, *unheard)))
        }
        News::Spent => {
            tell(
                "acklab: recv: wrong guesses have used up the passphrase: no sender comes in any more; start it again with another one",
            );
            Ok(())
        }
        News::TurnedAway { from, code, count } => {
            let more = if *count > 1 { format!(" (the last of {count})") } else { String::new() };
            let why = match code {
                Code::Idle => {
                    "it did not show that it knows the secret; perhaps it guesses".to_owned()
                }
                code => code.to_string(),
            };
            tell(&format!("acklab: recv: turned away: {from}: {why}{more}"));
            Ok(())
        }
    }
}

fn greeting(addresses: &[SocketAddr], shown: &Shown) -> String {
    let mut text = String::new();
    for address in addresses {
        let _ = writeln!(text, "listening on {address}");
    }
    if let Some(code) = shown.code(addresses) {
        // Brackets would be a pattern for some shells.
        let quote = if code.contains('[') { "'" } else { "" };
        let _ = writeln!(text, "code: {code}");
        let _ = writeln!(text, "on the other machine: acklab send FILE {quote}{code}{quote}");
    }
    if let Some(key) = &shown.key {
        let _ =
            writeln!(text, "this end's key for --peer: {key} (fingerprint {})", key.fingerprint());
    }
    text
}

fn ended(
    from: SocketAddr,
    end: &End,
    received: &Received,
    (seconds, unheard): (f64, bool),
) -> String {
    let Received { stored, stored_bytes, resumed, refused, failed, bytes, hash, .. } = received;
    let rate = *bytes as f64 / 1e6 / seconds.max(1e-9);
    let mut text = match end {
        End::Finished if received.rehearsed => {
            return format!("{from}: asked what it would have to send; nothing was written\n");
        }
        End::Finished if received.is_whole() => format!("{from}: complete: "),
        End::Finished => format!("{from}: not complete: "),
        End::Broken(error) => format!("{from}: ended: {error}; "),
        End::Closed { code, text, by_peer } => {
            let who = if *by_peer { " by the sender" } else { "" };
            let said = if text.is_empty() { String::new() } else { format!(" ({text})") };
            format!("{from}: ended early{who}: {code}{said}; what came is kept; ")
        }
    };
    let _ = write!(
        text,
        "{}, {}, in {seconds:.3} s ({rate:.2} MB/s)",
        count(*stored, "file"),
        DecimalBytes(*stored_bytes)
    );
    if *resumed > 0 {
        let _ = write!(text, "; {} were here before", DecimalBytes(*resumed));
    }
    if *refused > 0 {
        let _ = write!(text, "; {refused} refused");
    }
    if *failed > 0 {
        let _ = write!(text, "; {failed} could not be sent");
    }
    if let Some(hash) = hash {
        let _ = write!(text, "; BLAKE3 {}", lines::hash(hash));
    }
    if unheard {
        text.push_str(
            "; the sender may not know it yet, and is told if it comes within 10 minutes",
        );
    }
    text.push('\n');
    text
}

fn line(news: &News<'_>, shown: &Shown) -> serde_json::Value {
    match news {
        News::Listening(addresses) => json!({
            "schema": lines::LISTENING,
            "listen": addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "passphrase": shown.passphrase.as_ref().map(Passphrase::as_str),
            "code": shown.code(addresses),
            "key": shown.key.map(|key| key.to_string()),
        }),
        News::Opened { from, key } => json!({
            "schema": lines::OPENED,
            "from": from.to_string(),
            "key": key.map(|key| PublicKey(key).to_string()),
        }),
        News::Problem(problem) => json!({ "schema": lines::PROBLEM, "problem": problem }),
        News::Status { from, received, seconds } => {
            lines::received(lines::PROGRESS, *from, received, *seconds)
        }
        News::Ended { from, end, received, seconds, unheard } => {
            let mut line = lines::received(lines::RECEIVED, *from, received, *seconds);
            let (state, why) = match end {
                End::Finished if received.is_whole() => ("complete", None),
                End::Finished => ("not complete", None),
                End::Broken(error) => ("broken", Some(error.to_string())),
                End::Closed { code, .. } => ("ended early", Some(code.to_string())),
            };
            line["end"] = json!(state);
            line["why"] = json!(why);
            line["unheard"] = json!(unheard);
            line
        }
        News::Spent => json!({
            "schema": lines::PROBLEM,
            "problem": Code::Spent.to_string(),
        }),
        News::TurnedAway { from, code, count } => json!({
            "schema": lines::TURNED_AWAY,
            "from": from.to_string(),
            "why": code.to_string(),
            "count": count,
        }),
    }
}

const EXAMPLES: &str = "\
Examples:
  acklab recv
      receives into this folder and shows a code; the sender gives it: acklab send FILE CODE
  acklab recv inbox --listen 0.0.0.0:9000 --overwrite
  acklab recv inbox --listen 198.51.100.7:9000 --listen 198.51.100.8:9000 --passphrase-file secret --once
  acklab recv inbox --listen [::]:9000 --identity my.key --known-peers peers
  acklab recv - --listen 0.0.0.0:9000 | tar x

Exit status: 0 complete (without --once: stopped by Ctrl-C), 1 with --once or DIR -: it ended early
or something was refused, 2 unusable arguments.";

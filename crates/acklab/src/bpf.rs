//! `acklab bpf`: programs for the running kernel, without a kernel of one's own.
//!
//! Their sources are in kernel/, under the GPL, and travel in this binary as text: clang compiles them here, against the
//! running kernel's own types (BTF), and bpftool or tc loads the object. What is loaded stays until it is unloaded
//! by its name, also after this program was killed.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Output};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::outcome::{Failure, Format, print, print_json};

/// Load programs into the running kernel: ANCE, ENCN and TCP-Jersey as congestion controls, a filter of ACKs
///
/// Needs root, a kernel with BTF, and clang, bpftool and libbpf's headers (Debian: clang bpftool libbpf-dev).
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bpf {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Load(Load),
    Unload(Unload),
    Status(Status),
}

/// Compile a program and load it
#[derive(Args)]
struct Load {
    #[command(flatten)]
    which: Which,
    /// Set a parameter of the program
    ///
    /// ance: queue_min=3000 (bytes), spacing=delivery|smallest|second|round, bf_floor=1, rwnd=64. encn: bf_floor=1,
    /// rwnd=64. jersey: rtt=smallest|latest. ack-filter: every=4 (one in so many ACKs leaves), pause_ms=20 (one
    /// leaves after so long in any case).
    #[arg(long = "set", value_name = "NAME=VALUE", num_args = 1..)]
    sets: Vec<String>,
}

/// Unload a program; connections that use it keep it until they close
#[derive(Args)]
struct Unload {
    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
struct Which {
    #[arg(value_enum)]
    name: Program,
    /// The interface at which ACKs leave, of ack-filter
    #[arg(long, value_name = "INTERFACE", required_if_eq("name", "ack-filter"))]
    interface: Option<String>,
}

/// Tell what is loaded
#[derive(Args)]
struct Status {
    /// How to write the result to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Program {
    /// ANCE, a congestion control that keeps the path's queue near a threshold
    Ance,
    /// ENCN, which does so where routers mark packets while their queue is short; both ends need it
    Encn,
    /// TCP-Jersey, whose window is the bandwidth that it measures where routers warn; both ends need it
    Jersey,
    /// Of the pure ACKs in a row that leave an interface, one in four does
    AckFilter,
}

impl Bpf {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.verb {
            Verb::Load(load) => load.run(),
            Verb::Unload(unload) => unload.run(),
            Verb::Status(status) => status.run(),
        }
    }
}

/// What a setting may be, and clang's definition of it.
enum Kind {
    /// A whole number up to the second.
    Number(&'static str, u32),
    /// Words and what they define.
    Word(&'static [(&'static str, &'static str)]),
}

const SPACINGS: Kind = Kind::Word(&[
    ("smallest", "SPACING=SMALLEST"),
    ("second", "SPACING=SECOND"),
    ("round", "SPACING=ROUND"),
    ("delivery", "SPACING=DELIVERY"),
]);
const ROUND_TRIPS: Kind = Kind::Word(&[("smallest", "LATEST_RTT=0"), ("latest", "LATEST_RTT=1")]);
const BF_FLOOR: (&str, Kind) = ("bf_floor", Kind::Number("BF_FLOOR", 1000));
const RWND: (&str, Kind) = ("rwnd", Kind::Number("RWND", 1_000_000));

impl Program {
    const ALL: [Self; 4] = [Self::Ance, Self::Encn, Self::Jersey, Self::AckFilter];

    const fn name(self) -> &'static str {
        match self {
            Self::Ance => "ance",
            Self::Encn => "encn",
            Self::Jersey => "jersey",
            Self::AckFilter => "ack-filter",
        }
    }

    const fn source(self) -> &'static str {
        match self {
            Self::Ance => include_str!("../../../kernel/ance.bpf.c"),
            Self::Encn => include_str!("../../../kernel/encn.bpf.c"),
            Self::Jersey => include_str!("../../../kernel/jersey.bpf.c"),
            Self::AckFilter => include_str!("../../../kernel/ack-filter.bpf.c"),
        }
    }

    const fn is_control(self) -> bool {
        !matches!(self, Self::AckFilter)
    }

    const fn settings(self) -> &'static [(&'static str, Kind)] {
        match self {
            Self::Ance => &[
                ("queue_min", Kind::Number("QUEUE_MIN", 1_000_000_000)),
                ("spacing", SPACINGS),
                BF_FLOOR,
                RWND,
            ],
            Self::Encn => &[BF_FLOOR, RWND],
            Self::Jersey => &[("rtt", ROUND_TRIPS)],
            Self::AckFilter => &[
                ("every", Kind::Number("EVERY", 1000)),
                ("pause_ms", Kind::Number("PAUSE_MS", 1000)),
            ],
        }
    }

    /// A setting as clang defines it.
    fn definition(self, setting: &str) -> Result<String, Failure> {
        let refuse = |reason: &str| Failure::at("--set", format!("{setting}: {reason}"));
        let there_are = |names: Vec<&str>| refuse(&format!("there are {}", names.join(", ")));
        let (name, value) =
            setting.split_once('=').ok_or_else(|| refuse("write it as name=value"))?;
        let settings = self.settings();
        let Some((_, kind)) = settings.iter().find(|(known, _)| *known == name) else {
            return Err(there_are(settings.iter().map(|(known, _)| *known).collect()));
        };
        match kind {
            Kind::Word(words) => {
                let word = words.iter().find(|(word, _)| *word == value);
                let defined = word.map(|(_, definition)| format!("-D{definition}"));
                defined.ok_or_else(|| there_are(words.iter().map(|(word, _)| *word).collect()))
            }
            Kind::Number(defined, most) => {
                let number: u32 = value.parse().map_err(|_| refuse("a whole number is wanted"))?;
                if number > *most {
                    return Err(refuse(&format!("at most {most}")));
                }
                Ok(format!("-D{defined}={number}"))
            }
        }
    }
}

impl Which {
    /// Where the filter of ACKs is; a congestion control is everywhere.
    fn place(&self) -> Result<Option<&str>, Failure> {
        if self.name.is_control() && self.interface.is_some() {
            return Err(Failure::at("--interface", "a congestion control has none"));
        }
        Ok(self.interface.as_deref())
    }

    fn is_loaded(&self) -> Result<bool, Failure> {
        let name = self.name.name();
        match self.place()? {
            None => Ok(controls()?.iter().any(|(loaded, _)| *loaded == name)),
            Some(interface) => has_filter(interface),
        }
    }
}

impl Load {
    fn run(self) -> Result<(), Failure> {
        let program = self.which.name;
        let name = program.name();
        let sets = self.sets.iter();
        let definitions = sets.map(|set| program.definition(set)).collect::<Result<Vec<_>, _>>()?;
        if self.which.is_loaded()? {
            return Err(Failure::at(name, "it is loaded; acklab bpf unload takes it away"));
        }
        let folder = tempfile::TempDir::with_prefix("acklab-bpf-")
            .map_err(|e| Failure::at("a folder for temporary files", e))?;
        let object = compile(program, &definitions, folder.path())?;
        if let Some(interface) = self.which.place()? {
            add_filter(&object, interface)?;
            return print(&format!(
                "loaded; `acklab bpf unload {name} --interface {interface}` takes it away\n"
            ));
        }
        succeeded(&mut tool(
            "bpftool",
            ["struct_ops".as_ref(), "register".as_ref(), object.as_os_str()],
        ))?;
        print(&format!(
            "loaded: TCP_CONGESTION \"{name}\" or, in any network namespace, \
             `sysctl net.ipv4.tcp_congestion_control={name}` choose it; `acklab bpf unload {name}` takes it away\n"
        ))
    }
}

impl Unload {
    fn run(self) -> Result<(), Failure> {
        let name = self.which.name.name();
        if !self.which.is_loaded()? {
            return Err(Failure::at(name, "it is not loaded"));
        }
        match self.which.place()? {
            None => {
                // By its number: by name bpftool stumbles over one that goes with its connections.
                let found = controls()?.into_iter().find(|(loaded, _)| *loaded == name);
                let id = found.map_or(0, |(_, id)| id).to_string();
                succeeded(&mut tool("bpftool", ["struct_ops", "unregister", "id", id.as_str()]))?;
            }
            Some(interface) => remove_filter(interface)?,
        }
        print("unloaded\n")
    }
}

impl Status {
    fn run(self) -> Result<(), Failure> {
        let (controls, filters) = (controls()?, filters()?);
        match self.format {
            Format::Json => {
                let controls = controls.iter().map(|(name, id)| json!({ "name": name, "id": id }));
                print_json(&json!({
                    "schema": "acklab.bpf/1",
                    "congestion_controls": controls.collect::<Vec<_>>(),
                    "ack_filters": filters,
                }))
            }
            Format::Text if controls.is_empty() && filters.is_empty() => {
                print("nothing is loaded\n")
            }
            Format::Text => {
                let controls =
                    controls.iter().map(|(name, _)| format!("{name}: a congestion control\n"));
                let filters = filters.iter().map(|at| format!("ack-filter: at {at}\n"));
                print(&controls.chain(filters).collect::<String>())
            }
        }
    }
}

/// The congestion controls of ours that are loaded, with the numbers of their maps.
fn controls() -> Result<Vec<(&'static str, u64)>, Failure> {
    let maps = told(&mut tool("bpftool", ["--json", "struct_ops", "show"]))?;
    let available = fs::read_to_string(AVAILABLE).map_err(|e| Failure::at(AVAILABLE, e))?;
    let mut controls = Vec::new();
    for name in Program::ALL.map(Program::name) {
        let maps = maps.as_array().into_iter().flatten().filter(|map| map["name"] == name);
        // The newest: the map of one that was unloaded stays while connections use it.
        let newest = maps.filter_map(|map| map["id"].as_u64()).max();
        if available.split_whitespace().any(|there| there == name) {
            controls.extend(newest.map(|id| (name, id)));
        }
    }
    Ok(controls)
}

/// The interfaces of this network namespace that have the filter.
fn filters() -> Result<Vec<String>, Failure> {
    let links = told(&mut tool("ip", ["-json", "link", "show"]))?;
    let names = links.as_array().into_iter().flatten().filter_map(|link| link["ifname"].as_str());
    let mut found = Vec::new();
    for name in names {
        if has_filter(name)? {
            found.push(name.to_owned());
        }
    }
    Ok(found)
}

/// Whether any of the filter is there: a loader that was killed may have left half of it.
fn has_filter(interface: &str) -> Result<bool, Failure> {
    for side in SIDES {
        let list = told(&mut tool("tc", ["-json", "filter", "show", "dev", interface, side]))?;
        let names = list.as_array().into_iter().flatten();
        let mut names = names.filter_map(|filter| filter["options"]["prog"]["name"].as_str());
        if names.any(|name| FILTERS.contains(&name)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Adds both of the object's programs, with one map, to `interface`.
fn add_filter(object: &Path, interface: &str) -> Result<(), Failure> {
    let has_place = told(&mut tool("tc", ["-json", "qdisc", "show", "dev", interface, "clsact"]))?;
    if has_place.as_array().is_none_or(Vec::is_empty) {
        succeeded(&mut tool("tc", ["qdisc", "add", "dev", interface, "clsact"]))?;
    }
    let pins = object.with_file_name("pins");
    fs::create_dir(&pins).map_err(|e| Failure::at(pins.display(), e))?;
    let mut command = tool("unshare", ["--mount", "sh", "-ec", ATTACH, "sh"]);
    command.arg(&pins).arg(object).args([interface, PREFERENCE]);
    succeeded(&mut command).map(drop).inspect_err(|_| drop(remove_filter(interface)))
}

/// Removes them, and their place where nothing else is in it.
fn remove_filter(interface: &str) -> Result<(), Failure> {
    let mut others = false;
    for side in SIDES {
        let remove = ["filter", "del", "dev", interface, side, "pref", PREFERENCE];
        let _ = succeeded(&mut tool("tc", remove));
        let left = told(&mut tool("tc", ["-json", "filter", "show", "dev", interface, side]))?;
        others |= left.as_array().is_some_and(|left| !left.is_empty());
    }
    if !others {
        succeeded(&mut tool("tc", ["qdisc", "del", "dev", interface, "clsact"]))?;
    }
    Ok(())
}

/// The object, in `folder`.
fn compile(
    program: Program,
    definitions: &[String],
    folder: &Path,
) -> Result<std::path::PathBuf, Failure> {
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.join(name), bytes).map_err(|e| Failure::at(folder.join(name).display(), e))
    };
    if !Path::new(TYPES).exists() {
        return Err(Failure::at(
            TYPES,
            "this kernel does not tell its types (CONFIG_DEBUG_INFO_BTF)",
        ));
    }
    let types = succeeded(&mut tool("bpftool", ["btf", "dump", "file", TYPES, "format", "c"]))?;
    write("vmlinux.h", &types.stdout)?;
    HEADERS.iter().try_for_each(|(name, text)| write(name, text.as_bytes()))?;
    write("program.bpf.c", program.source().as_bytes())?;
    let object = folder.join("program.bpf.o");
    let mut failure = None;
    for clang in CLANGS {
        let mut command = Command::new(clang);
        command.args(["-O2", "-g", "-Wall", "-Wno-missing-declarations", "-target", "bpf", "-c"]);
        command.args(definitions).arg("-I").arg(folder);
        command.arg("-o").arg(&object).arg(folder.join("program.bpf.c"));
        match command.output() {
            // PATH may have folders that are closed to this user.
            Err(error) if ABSENT.contains(&error.kind()) => {
                failure.get_or_insert_with(|| missing("clang"));
            }
            Err(error) => return Err(Failure::at(clang, error)),
            Ok(output) if output.status.success() => return Ok(object),
            Ok(output) => return Err(said("clang", &output)),
        }
    }
    Err(failure.unwrap_or_else(|| missing("clang")))
}

/// A command of the system's administration.
fn tool<S: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = S>) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(name);
    command.args(arguments).env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

/// The JSON that a command answered; some say nothing where there is nothing.
fn told(command: &mut Command) -> Result<Value, Failure> {
    let output = succeeded(command)?;
    if output.stdout.trim_ascii().is_empty() {
        return Ok(Value::Null);
    }
    let name = command.get_program().to_string_lossy().into_owned();
    serde_json::from_slice(&output.stdout).map_err(|e| Failure::at(name, e))
}

/// What a command answered; its words where it failed.
fn succeeded(command: &mut Command) -> Result<Output, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Err(error) if ABSENT.contains(&error.kind()) => Err(missing(&name)),
        Err(error) => Err(Failure::at(name, error)),
        Ok(output) if output.status.success() => Ok(output),
        Ok(output) => Err(said(&name, &output)),
    }
}

fn said(name: &str, output: &Output) -> Failure {
    // bpftool --json tells errors on standard output.
    let bytes = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let told = serde_json::from_slice::<Value>(bytes).unwrap_or_default();
    let error = told.get(0).unwrap_or(&told)["error"].as_str().map(str::to_owned);
    let words = error.unwrap_or_else(|| String::from_utf8_lossy(bytes).trim().to_owned());
    let hint = if words.contains("not permitted") || words.contains("Permission denied") {
        " (BPF needs root, or CAP_BPF with CAP_NET_ADMIN)"
    } else {
        ""
    };
    Failure::at(name, format!("{words}{hint}"))
}

fn missing(name: &str) -> Failure {
    Failure::at(
        name,
        "it is not installed; Debian has what this needs in clang, bpftool and libbpf-dev",
    )
}

const ABSENT: [io::ErrorKind; 2] = [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied];
/// The names of the congestion controls that connections can choose.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// The running kernel's types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// Names of clang, with the versions that Debian and Ubuntu have beside.
const CLANGS: [&str; 8] =
    ["clang", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15"];

/// tc would give each program a map of its own; pins let it take programs that share one. The file system that has the
/// pins goes with this shell's view of mounts, and the filters keep the programs.
const ATTACH: &str = "\
mount -t bpf bpf \"$1\"
bpftool prog loadall \"$2\" \"$1/acklab\"
tc filter add dev \"$3\" ingress pref \"$4\" handle 1 bpf direct-action object-pinned \"$1/acklab/ack_filter_data\"
tc filter add dev \"$3\" egress pref \"$4\" handle 1 bpf direct-action object-pinned \"$1/acklab/ack_filter\"";
/// By which the filters are taken away.
const PREFERENCE: &str = "4933";
const SIDES: [&str; 2] = ["ingress", "egress"];
/// As the kernel has the names of its programs: 15 letters.
const FILTERS: [&str; 2] = ["ack_filter_data", "ack_filter"];
/// What the programs include.
const HEADERS: [(&str, &str); 3] = [
    ("control.bpf.h", include_str!("../../../kernel/control.bpf.h")),
    ("balance.bpf.h", include_str!("../../../kernel/balance.bpf.h")),
    ("marks.bpf.h", include_str!("../../../kernel/marks.bpf.h")),
];

const EXAMPLES: &str = "\
Examples:
  sudo acklab bpf load ance
  sudo acklab bpf load ance --set queue_min=15000 bf_floor=3
  iperf3 -c server -C ance
  sudo acklab bpf unload ance
  sudo acklab bpf load ack-filter --interface eth0 --set every=8
  sudo acklab bpf status";

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

/// Load programs into the running kernel: ANCE as a congestion control
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
    #[arg(value_enum)]
    name: Program,
    /// Set a parameter of the program: queue_min=3000 (bytes), spacing=smallest|second|round|delivery, bf_floor=1, rwnd=64
    #[arg(long = "set", value_name = "NAME=VALUE", num_args = 1..)]
    sets: Vec<String>,
}

/// Unload a program; connections that use it keep it until they close
#[derive(Args)]
struct Unload {
    #[arg(value_enum)]
    name: Program,
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

impl Program {
    const fn name(self) -> &'static str {
        match self {
            Self::Ance => "ance",
        }
    }

    const fn source(self) -> &'static str {
        match self {
            Self::Ance => include_str!("../../../kernel/ance.bpf.c"),
        }
    }

    /// A setting as clang defines it.
    fn definition(self, setting: &str) -> Result<String, Failure> {
        let refuse = |reason: &str| Failure::at("--set", format!("{setting}: {reason}"));
        let (name, value) =
            setting.split_once('=').ok_or_else(|| refuse("write it as name=value"))?;
        let (name, most) = match (self, name) {
            (Self::Ance, "spacing") => {
                let known = ["smallest", "second", "round", "delivery"];
                let Some(word) = known.iter().find(|word| **word == value) else {
                    return Err(refuse(&format!("there are {}", known.join(", "))));
                };
                let word = word.to_uppercase();
                return Ok(format!("-DSPACING={word}"));
            }
            (Self::Ance, "queue_min") => ("QUEUE_MIN", 1_000_000_000),
            (Self::Ance, "bf_floor") => ("BF_FLOOR", 1000),
            (Self::Ance, "rwnd") => ("RWND", 1_000_000),
            (Self::Ance, _) => {
                return Err(refuse("there are queue_min, spacing, bf_floor and rwnd"));
            }
        };
        let number: u32 = value.parse().map_err(|_| refuse("a whole number is wanted"))?;
        if number > most {
            return Err(refuse(&format!("at most {most}")));
        }
        Ok(format!("-D{name}={number}"))
    }

    fn is_loaded(self) -> Result<bool, Failure> {
        Ok(loaded()?.iter().any(|(name, _)| name == self.name()))
    }
}

impl Load {
    fn run(self) -> Result<(), Failure> {
        let program = self.name;
        let name = program.name();
        let definitions = self
            .sets
            .iter()
            .map(|setting| program.definition(setting))
            .collect::<Result<Vec<_>, _>>()?;
        if program.is_loaded()? {
            let reason = format!("it is loaded; acklab bpf unload {name} takes it away");
            return Err(Failure::at(name, reason));
        }
        let folder = tempfile::TempDir::with_prefix("acklab-bpf-")
            .map_err(|e| Failure::at("a folder for temporary files", e))?;
        let object = compile(program, &definitions, folder.path())?;
        succeeded(&mut bpftool([
            OsStr::new("struct_ops"),
            "register".as_ref(),
            object.as_os_str(),
        ]))?;
        print(&format!(
            "loaded: TCP_CONGESTION \"{name}\" or `sysctl net.ipv4.tcp_congestion_control={name}` choose it \
             (without CAP_NET_ADMIN once it is in net.ipv4.tcp_allowed_congestion_control); \
             `acklab bpf unload {name}` takes it away\n"
        ))
    }
}

impl Unload {
    fn run(self) -> Result<(), Failure> {
        let name = self.name.name();
        if !self.name.is_loaded()? {
            return Err(Failure::at(name, "it is not loaded"));
        }
        succeeded(&mut bpftool(["struct_ops", "unregister", "name", name]))?;
        print("unloaded\n")
    }
}

impl Status {
    fn run(self) -> Result<(), Failure> {
        let all = loaded()?;
        match self.format {
            Format::Json => {
                let programs = all.iter().map(|(name, id)| json!({ "name": name, "id": id }));
                print_json(&json!({
                    "schema": "acklab.bpf/1",
                    "congestion_controls": programs.collect::<Vec<_>>(),
                }))
            }
            Format::Text if all.is_empty() => print("nothing is loaded\n"),
            Format::Text => {
                let lines = all.iter().map(|(name, id)| format!("{name}: struct_ops {id}\n"));
                print(&lines.collect::<String>())
            }
        }
    }
}

/// The congestion controls of ours that are loaded, with the numbers of their maps.
fn loaded() -> Result<Vec<(String, u64)>, Failure> {
    let output = succeeded(&mut bpftool(["--json", "struct_ops", "show"]))?;
    let told: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| Failure::at("bpftool", e))?;
    let maps = told.as_array().into_iter().flatten();
    let ours = maps.filter_map(|map| Some((map["name"].as_str()?.to_owned(), map["id"].as_u64()?)));
    Ok(ours
        .filter(|(name, _)| Program::value_variants().iter().any(|p| p.name() == name))
        .collect())
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
    let types = succeeded(&mut bpftool(["btf", "dump", "file", TYPES, "format", "c"]))?;
    write("vmlinux.h", &types.stdout)?;
    write("program.bpf.c", program.source().as_bytes())?;
    let object = folder.join("program.bpf.o");
    let mut failure = None;
    for clang in CLANGS {
        let mut command = Command::new(clang);
        command.args(["-O2", "-g", "-Wall", "-Wno-missing-declarations", "-target", "bpf", "-c"]);
        command.args(definitions).arg("-I").arg(folder);
        command.arg("-o").arg(&object).arg(folder.join("program.bpf.c"));
        match command.output() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                failure.get_or_insert_with(|| missing("clang"));
            }
            Err(error) => return Err(Failure::at(clang, error)),
            Ok(output) if output.status.success() => return Ok(object),
            Ok(output) => return Err(said("clang", &output)),
        }
    }
    Err(failure.unwrap_or_else(|| missing("clang")))
}

fn bpftool<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("bpftool");
    command.args(arguments).env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

/// What a command answered; its words where it failed.
fn succeeded(command: &mut Command) -> Result<Output, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing(&name)),
        Err(error) => Err(Failure::at(name, error)),
        Ok(output) if output.status.success() => Ok(output),
        Ok(output) => Err(said(&name, &output)),
    }
}

fn said(name: &str, output: &Output) -> Failure {
    // bpftool --json tells errors on standard output.
    let bytes = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let words = String::from_utf8_lossy(bytes);
    let words = words.trim();
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

/// The running kernel's types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// Names of clang, with the versions that Debian and Ubuntu have beside.
const CLANGS: [&str; 8] =
    ["clang", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15"];

const EXAMPLES: &str = "\
Examples:
  sudo acklab bpf load ance
  sudo acklab bpf load ance --set queue_min=15000 bf_floor=3
  iperf3 -c server -C ance
  sudo acklab bpf unload ance";

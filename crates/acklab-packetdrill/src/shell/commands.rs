//! Single commands: what each sets, or that it is not understood.

use std::path::Path;

use acklab_host::settings::{BadSetting, SECOND, Us};

use super::machine::{Machine, Simple};
use super::{Surroundings, route};
use crate::world::Change;

/// Returns whether the command succeeds; an error: it is not understood.
pub(super) fn run(machine: &mut Machine<'_, '_>, command: &Simple) -> Result<bool, String> {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    let Some((&first, args)) = words.split_first() else { return Ok(true) };
    let whole = || format!("the command {:?}", command.words.join(" "));
    let name = first.rsplit('/').next().unwrap_or(first);
    match name {
        "sudo" | "command" | "exec" | "env" | "builtin" => {
            let rest = Simple { words: command.words[1..].to_vec(), ..command.clone() };
            run(machine, &rest)
        }
        "sysctl" => sysctl(args, machine.around),
        "ip" | "tc" | "ethtool" | "ifconfig" => route::program(name, args, machine.around),
        "echo" | "printf" => match &command.output {
            Some(target) => write(args, target, machine.around),
            None => Ok(true),
        },
        // What they show is not looked at; modules are there.
        "true" | ":" | "sync" | "ss" | "netstat" | "date" | "dmesg" | "cat" | "ls" | "modprobe"
        | "set" | "export" | "unset" | "local" | "trap" | "shopt" | "cd" | "umask" | "ulimit"
        | "wait" | "declare" | "readonly" | "typeset" | "which" | "type" | "hash" | "rm"
        | "mkdir" | "touch" | "chmod"
            if command.output.as_deref().is_none_or(is_nowhere) =>
        {
            Ok(true)
        }
        "false" => Ok(false),
        "sleep" | "usleep" => {
            let unit = if name == "sleep" { SECOND as f64 } else { 1.0 };
            let time = args.first().and_then(|a| a.trim_end_matches('s').parse::<f64>().ok());
            let time = time.map(|t| t * unit).filter(|t| (0.0..=86_400e6).contains(t));
            machine.sleep(time.ok_or_else(whole)? as Us);
            Ok(true)
        }
        "exit" | "return" => {
            machine.end(name == "return");
            Ok(args.first().is_none_or(|&code| code == "0" || code == "$?"))
        }
        "[" | "[[" | "test" => {
            let end = args.iter().position(|&w| w == "]" || w == "]]").unwrap_or(args.len());
            test(&args[..end], machine.around).ok_or_else(whole)
        }
        "sh" | "bash" | "dash" | "." | "source" | "eval" => {
            let args: Vec<&str> =
                args.iter().copied().filter(|a| !["-e", "-x", "-ex", "-u"].contains(a)).collect();
            match args.as_slice() {
                ["-c" | "-ec" | "-xc", text, ..] => machine.text(text),
                [file, ..] if is_script(file) => file_of_commands(machine, file),
                rest if name == "eval" => machine.text(&rest.join(" ")),
                _ => Err(whole()),
            }
        }
        "set_sysctls.py" => set_sysctls(args, machine.around),
        _ if name.starts_with("python") => match args {
            [file, rest @ ..] if file.ends_with("set_sysctls.py") => {
                set_sysctls(rest, machine.around)
            }
            _ => Err(whole()),
        },
        // What was set is of this script's host alone.
        _ if name.contains("sysctl_restore") => Ok(true),
        _ if is_script(name) => file_of_commands(machine, first),
        _ => Err(whole()),
    }
}

/// Whether nothing that a host reads is written there.
fn is_nowhere(path: &str) -> bool {
    path.starts_with("/tmp/") || path.starts_with("/dev/")
}

fn is_script(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "sh")
}

/// What `$(…)` stands for, where it asks for a setting.
pub(super) fn output(around: &Surroundings<'_>, words: &[&str]) -> Option<String> {
    let known = |name: &str| {
        let last = name.rsplit(['.', '/']).next()?;
        around.sysctls.text(last)
    };
    match words {
        ["sysctl", "-n", name] | ["cat", name] => known(name),
        ["uname", "-r"] => Some("6.18.0".to_owned()),
        ["id", "-u"] => Some("0".to_owned()),
        ["pwd"] | ["dirname" | "cd", ..] => Some(".".to_owned()),
        ["echo", rest @ ..] => Some(rest.join(" ")),
        _ => None,
    }
}

/// `[ … ]`: files, texts and numbers.
fn test(args: &[&str], around: &Surroundings<'_>) -> Option<bool> {
    let is_there = |path: &str| {
        if path.starts_with("/proc/sys/") {
            return around.sysctls.text(path.rsplit('/').next().unwrap_or(path)).is_some();
        }
        path.starts_with("/sys/") || path.starts_with("/dev/") || around.folder.join(path).exists()
    };
    match args {
        ["!", rest @ ..] => test(rest, around).map(|holds| !holds),
        ["-f" | "-e" | "-r" | "-w" | "-x" | "-d" | "-s", path] => Some(is_there(path)),
        ["-z", text] => Some(text.is_empty()),
        ["-z" | "-n"] | [] => Some(args == ["-z"]),
        ["-n", text] | [text] => Some(!text.is_empty()),
        [left, "=" | "==", right] => Some(left == right),
        [left, "!=", right] => Some(left != right),
        [left, sign, right] => {
            let (a, b): (i64, i64) = (left.parse().ok()?, right.parse().ok()?);
            match *sign {
                "-eq" => Some(a == b),
                "-ne" => Some(a != b),
                "-lt" => Some(a < b),
                "-le" => Some(a <= b),
                "-gt" => Some(a > b),
                "-ge" => Some(a >= b),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A script of commands beside the one that runs.
fn file_of_commands(machine: &mut Machine<'_, '_>, path: &str) -> Result<bool, String> {
    let is_defaults = path.ends_with("defaults.sh");
    let file = machine.around.folder.join(path);
    let Ok(text) = std::fs::read_to_string(&file) else {
        // The suites set the system's defaults there, which a host has from the start.
        return if is_defaults { Ok(true) } else { Err(format!("the file {}", file.display())) };
    };
    // Defaults of the system that this host does not have change nothing on it.
    let before = machine.lenient;
    machine.lenient |= is_defaults;
    let done = machine.text(&text).map_err(|what| format!("{}: {what}", file.display()));
    machine.lenient = before;
    done.map(|done| done || is_defaults)
}

fn set(name: &str, value: &str, around: &mut Surroundings<'_>) -> Result<bool, String> {
    match around.sysctls.set(name, value) {
        Ok(()) => {}
        // Settings of other protocols and of routing change nothing for TCP on one route.
        Err(BadSetting::Unknown) if is_foreign(name) => {}
        Err(BadSetting::Unknown) => return Err(format!("the system control {name}")),
        Err(BadSetting::Value) => {
            return Err(format!("{value:?} for the system control {name}"));
        }
    }
    around.changes.push(Change::Sysctl(name.to_owned(), value.to_owned()));
    Ok(true)
}

fn is_foreign(name: &str) -> bool {
    let dotted = name.replace('/', ".");
    let last = dotted.rsplit('.').next().unwrap_or("");
    !last.starts_with("tcp_")
}

/// `sysctl -q -w name=value name = value ...`; a value may be several numbers.
fn sysctl(args: &[&str], around: &mut Surroundings<'_>) -> Result<bool, String> {
    let whole = || format!("the command \"sysctl {}\"", args.join(" "));
    if args.iter().any(|a| a.starts_with("-p") || *a == "--system" || *a == "-f") {
        return Err(whole());
    }
    let mut settings: Vec<(String, String)> = Vec::new();
    let mut words = args.iter().filter(|a| !a.starts_with('-')).peekable();
    while let Some(&word) = words.next() {
        if let Some((name, value)) = word.split_once('=') {
            let value = if value.is_empty() { words.next().copied().unwrap_or("") } else { value };
            settings.push((name.trim().to_owned(), value.trim().to_owned()));
        } else if words.peek().is_some_and(|next| next.starts_with('=')) {
            let next = words.next().copied().unwrap_or("=");
            let value = if next == "=" { words.next().copied().unwrap_or("") } else { &next[1..] };
            settings.push((word.to_owned(), value.to_owned()));
        } else if let (Some((_, value)), true) =
            (settings.last_mut(), word.bytes().all(|b| b.is_ascii_digit()))
        {
            // Values of several numbers may stand without quotes.
            value.push(' ');
            value.push_str(word);
        }
        // A name alone is shown.
    }
    for (name, value) in settings {
        if !set(&name, &value, around)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `set_sysctls.py /proc/sys/net/ipv4/tcp_timestamps=0 ...`
fn set_sysctls(args: &[&str], around: &mut Surroundings<'_>) -> Result<bool, String> {
    for arg in args {
        let Some((name, value)) = arg.split_once('=') else { return Err(format!("{arg:?}")) };
        set(name, value, around)?;
    }
    Ok(true)
}

/// `echo value > /proc/sys/...`
fn write(args: &[&str], path: &str, around: &mut Surroundings<'_>) -> Result<bool, String> {
    let words: Vec<&str> =
        args.iter().copied().filter(|a| !["-n", "-e", "-ne"].contains(a)).collect();
    let value = words.join(" ");
    if path.starts_with("/proc/sys/") || path.starts_with("/sys/module/tcp_cubic/parameters/") {
        return set(path, value.trim_end_matches("\\n"), around);
    }
    if is_nowhere(path) {
        return Ok(true);
    }
    Err(format!("writing to {path}"))
}

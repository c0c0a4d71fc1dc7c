//! Shell commands of scripts, as settings of the host: nothing is executed.

use std::path::{Path, PathBuf};

use crate::world::Change;
use acklab_host::settings::{BadSetting, MS, Route, SECOND, Sysctls, Us};

/// What commands may change.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    /// System controls.
    pub(crate) sysctls: &'a mut Sysctls,
    /// The route.
    pub(crate) route: &'a mut Route,
    /// The folder of the script.
    pub(crate) folder: &'a Path,
    /// What was changed, for a world in which it has to be done.
    pub(crate) changes: Vec<Change>,
}

/// A command has an effect on time: it sleeps.
pub(crate) type Slept = Us;

/// Understands a command, which may be several lines; an error says which construct is not.
pub(crate) fn run(
    command: &str,
    around: &mut Surroundings<'_>,
    depth: usize,
) -> Result<Slept, String> {
    let mut slept = 0;
    let joined = command.replace("\\\n", " ");
    for line in joined.lines() {
        for part in line.split([';']).flat_map(|p| p.split("&&")) {
            let part = strip_comment(part).trim();
            if !part.is_empty() {
                slept += one(part, around, depth)?;
            }
        }
    }
    Ok(slept)
}

fn strip_comment(line: &str) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    line.split(" #").next().unwrap_or(line)
}

fn one(command: &str, around: &mut Surroundings<'_>, depth: usize) -> Result<Slept, String> {
    let command = command.split('|').next().unwrap_or(command).trim();
    let words: Vec<&str> =
        command.split_whitespace().filter(|w| !w.contains("/dev/null") && *w != "2>&1").collect();
    let Some((&first, args)) = words.split_first() else { return Ok(0) };
    let name = first.rsplit('/').next().unwrap_or(first);
    if matches!(name, "ip" | "tc" | "ethtool" | "ifconfig") {
        let all = std::iter::once(name).chain(args.iter().copied()).map(str::to_owned);
        around.changes.push(Change::Program(all.collect()));
    }
    match name {
        "sysctl" => sysctl(command, around).map(|()| 0),
        "ip" => ip(args, around).map(|()| 0),
        "tc" => tc(args).map(|()| 0),
        "ethtool" => {
            let off = args.windows(2).any(|w| (w[0] == "tso" || w[0] == "gso") && w[1] == "off");
            if off {
                around.route.gso_max_segs = 1;
            }
            Ok(0)
        }
        "true" | "sync" | "echo" if !command.contains('>') => Ok(0),
        "echo" => echo(command, around).map(|()| 0),
        "ifconfig" => interface(args, around).map(|()| 0),
        "sleep" | "usleep" => {
            let unit = if name == "sleep" { SECOND as f64 } else { 1.0 };
            let time = args.first().and_then(|a| a.parse::<f64>().ok());
            time.map(|t| (t * unit) as Us).ok_or_else(|| format!("the command {command:?}"))
        }
        "set_sysctls.py" => set_sysctls(args, around).map(|()| 0),
        "defaults.sh" => script_file(first, around, depth),
        _ if name.contains("sysctl_restore") => Ok(0),
        "nstat" if args.iter().all(|a| a.starts_with('-')) => Ok(0),
        "sh" | "bash" | "." | "source" if args.first().is_some_and(|file| is_script(file)) => {
            one(&args.join(" "), around, depth)
        }
        _ if is_script(name) => script_file(first, around, depth),
        _ => Err(format!("the command {command:?}")),
    }
}

fn is_script(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "sh")
}

/// A script of commands beside the one that runs.
fn script_file(path: &str, around: &mut Surroundings<'_>, depth: usize) -> Result<Slept, String> {
    if depth > 3 {
        return Err(format!("{path}: scripts that run each other"));
    }
    let file: PathBuf = around.folder.join(path);
    let Ok(text) = std::fs::read_to_string(&file) else {
        // The suites set the system's defaults there, which a host has from the start.
        return if path.ends_with("defaults.sh") {
            Ok(0)
        } else {
            Err(format!("the file {}", file.display()))
        };
    };
    let joined = text.replace("\\\n", " ");
    let mut slept = 0;
    for line in joined.lines() {
        let line = strip_comment(line).trim();
        let shell_words =
            ["set ", "if ", "then", "fi", "else", "for ", "do", "done", "exit", "export "];
        if line.is_empty() || shell_words.iter().any(|w| line.starts_with(w)) {
            continue;
        }
        let known = ["sysctl", "ip ", "tc ", "ethtool", "echo ", "ifconfig"];
        if known.iter().any(|k| line.contains(k)) || line.contains('/') {
            match run(line, around, depth + 1) {
                Ok(time) => slept += time,
                // Defaults of the system that this host does not have change nothing on it.
                Err(_) if path.ends_with("defaults.sh") => {}
                Err(what) => return Err(what),
            }
        }
    }
    Ok(slept)
}

fn set(name: &str, value: &str, around: &mut Surroundings<'_>) -> Result<(), String> {
    around.changes.push(Change::Sysctl(name.to_owned(), value.to_owned()));
    match around.sysctls.set(name, value) {
        Ok(()) => Ok(()),
        // Settings of other protocols and of routing change nothing for TCP on one route.
        Err(BadSetting::Unknown) if is_foreign(name) => Ok(()),
        Err(BadSetting::Unknown) => Err(format!("the system control {name}")),
        Err(BadSetting::Value) => Err(format!("{value:?} for the system control {name}")),
    }
}

fn is_foreign(name: &str) -> bool {
    let dotted = name.replace('/', ".");
    let last = dotted.rsplit('.').next().unwrap_or("");
    !last.starts_with("tcp_")
}

/// `sysctl -q -w name=value ...`, values with spaces in quotes.
fn sysctl(command: &str, around: &mut Surroundings<'_>) -> Result<(), String> {
    let mut rest = command.trim_start_matches(|c: char| !c.is_whitespace()).trim_start();
    while !rest.is_empty() {
        if rest.starts_with('-') {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            if rest[..end].starts_with("-p") || rest[..end].starts_with("-a") {
                return Err(format!("the command {command:?}"));
            }
            rest = rest[end..].trim_start();
            continue;
        }
        if rest.starts_with('>') || rest.starts_with("2>") {
            return Ok(());
        }
        let Some(equals) = rest.find('=') else { return Err(format!("the command {command:?}")) };
        let name = rest[..equals].trim().trim_matches(['"', '\'']);
        let outer = rest.starts_with(['"', '\'']).then(|| rest.as_bytes()[0] as char);
        let value = rest[equals + 1..].trim_start();
        let quote = outer.or_else(|| value.chars().next().filter(|c| matches!(c, '"' | '\'')));
        let (text, after) = if let Some(q) = quote {
            let inner = if outer.is_some() { value } else { &value[1..] };
            let end = inner.find(q).ok_or_else(|| format!("the command {command:?}"))?;
            (&inner[..end], &inner[end + 1..])
        } else {
            // Values of several numbers may stand without quotes.
            let end = value
                .split_inclusive(char::is_whitespace)
                .enumerate()
                .take_while(|(n, w)| {
                    *n == 0 || w.trim().bytes().all(|b| b.is_ascii_digit()) && !w.trim().is_empty()
                })
                .map(|(_, w)| w.len())
                .sum();
            (&value[..end], &value[end..])
        };
        set(name, text, around)?;
        rest = after.trim_start();
    }
    Ok(())
}

/// `set_sysctls.py /proc/sys/net/ipv4/tcp_timestamps=0 ...`
fn set_sysctls(args: &[&str], around: &mut Surroundings<'_>) -> Result<(), String> {
    for arg in args {
        let Some((name, value)) = arg.split_once('=') else { return Err(format!("{arg:?}")) };
        set(name, value, around)?;
    }
    Ok(())
}

/// `echo value > /proc/sys/...`
fn echo(command: &str, around: &mut Surroundings<'_>) -> Result<(), String> {
    let Some((value, path)) = command.trim_start_matches("echo").split_once('>') else {
        return Err(format!("the command {command:?}"));
    };
    let path = path.trim_start_matches('>').trim();
    let value = value.trim().trim_start_matches("-n").trim().trim_matches(['"', '\'']);
    if path.starts_with("/proc/sys/") || path.starts_with("/sys/module/tcp_cubic/parameters/") {
        return set(path, value, around);
    }
    Err(format!("the command {command:?}"))
}

fn ip(args: &[&str], around: &mut Surroundings<'_>) -> Result<(), String> {
    let args: Vec<&str> = args.iter().copied().filter(|a| !a.starts_with('-')).collect();
    let (what, rest) = match args.split_first() {
        Some((what, rest)) => (*what, rest),
        None => return Err("the command \"ip\"".to_owned()),
    };
    match what {
        "route" | "ro" | "r" => route(rest, around),
        "link" | "l" => interface(rest, around),
        "addr" | "address" | "a" | "rule" | "neigh" | "netns" => {
            Err(format!("the command \"ip {}\"", args.join(" ")))
        }
        "tcp_metrics" | "tcpmetrics" => Ok(()),
        _ => Err(format!("the command \"ip {}\"", args.join(" "))),
    }
}

fn interface(args: &[&str], around: &mut Surroundings<'_>) -> Result<(), String> {
    let mut words = args.iter();
    while let Some(&word) = words.next() {
        let value = || args.join(" ");
        match word {
            "mtu" => {
                let mtu = words.next().and_then(|v| v.parse().ok());
                around.route.device_mtu = mtu.ok_or_else(value)?;
            }
            "gso_max_size" => {
                let size = words.next().and_then(|v| v.parse().ok());
                around.route.gso_max_size = size.ok_or_else(value)?;
            }
            "gso_max_segs" => {
                let segs = words.next().and_then(|v| v.parse().ok());
                around.route.gso_max_segs = segs.ok_or_else(value)?;
            }
            "down" => return Err("a device that is taken down".to_owned()),
            _ => {}
        }
    }
    Ok(())
}

/// Queue disciplines without delay change nothing here.
fn tc(args: &[&str]) -> Result<(), String> {
    let harmless = ["fq", "pfifo", "pfifo_fast", "noqueue", "del", "mq", "fq_codel"];
    if args.first() == Some(&"qdisc") && args.iter().any(|a| harmless.contains(a)) {
        return Ok(());
    }
    Err(format!("the command \"tc {}\"", args.join(" ")))
}

fn time(text: &str) -> Option<Us> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let number: f64 = text[..split].parse().ok()?;
    let unit = match &text[split..] {
        "s" | "sec" => SECOND as f64,
        "us" | "usec" => 1.0,
        _ => MS as f64,
    };
    Some((number * unit) as Us)
}

fn route(args: &[&str], around: &mut Surroundings<'_>) -> Result<(), String> {
    let failed = || format!("the command \"ip route {}\"", args.join(" "));
    match args.first() {
        Some(&("replace" | "change" | "add" | "append" | "chg" | "repl")) => {}
        Some(&("flush" | "show" | "get" | "list")) => return Ok(()),
        _ => return Err(failed()),
    }
    let route = &mut *around.route;
    let (mtu, header, device) = (route.device_mtu, route.ip_header, *route);
    *route = Route {
        device_mtu: mtu,
        ip_header: header,
        gso_max_segs: device.gso_max_segs,
        gso_max_size: device.gso_max_size,
        path_mtu: device.path_mtu,
        ..Route::default()
    };
    let mut words = args[1..].iter();
    while let Some(&word) = words.next() {
        let mut locked = false;
        let mut value = || {
            let mut value = words.next().copied().unwrap_or("");
            if value == "lock" {
                locked = true;
                value = words.next().copied().unwrap_or("");
            }
            value
        };
        match word {
            "mtu" => {
                let text = value();
                route.mtu = text.parse().map_err(|_| failed())?;
                route.mtu_locked = locked;
            }
            "advmss" => route.advmss = value().parse().map_err(|_| failed())?,
            "initcwnd" => route.initcwnd = value().parse().map_err(|_| failed())?,
            "initrwnd" => route.initrwnd = value().parse().map_err(|_| failed())?,
            "quickack" => route.quickack = value() == "1",
            "rto_min" => route.rto_min = time(value()).ok_or_else(failed)?,
            "window" => route.window = value().parse().map_err(|_| failed())?,
            "cwnd" => route.cwnd = value().parse().map_err(|_| failed())?,
            "ssthresh" => route.ssthresh = value().parse().map_err(|_| failed())?,
            "reordering" => route.reordering = value().parse().map_err(|_| failed())?,
            "rtt" => route.rtt = time(value()).ok_or_else(failed)?,
            "rttvar" => route.rttvar = time(value()).ok_or_else(failed)?,
            "features" => route.ecn = value() == "ecn",
            "congctl" => return Err(failed()),
            "dev" | "via" | "src" | "proto" | "scope" | "metric" | "table" | "pref" => {
                value();
            }
            "onlink" | "default" | "unicast" | "local" => {}
            _ if word.contains(['.', ':', '/', '$', '{']) => {}
            _ => return Err(failed()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(command: &str) -> Result<(Sysctls, Route), String> {
        let (mut sysctls, mut route) = (Sysctls::default(), Route::default());
        let folder = Path::new("/nonexistent");
        let mut around =
            Surroundings { sysctls: &mut sysctls, route: &mut route, folder, changes: Vec::new() };
        run(command, &mut around, 0)?;
        Ok((sysctls, route))
    }

    #[test]
    fn system_controls_are_set_in_every_spelling() {
        for command in [
            "sysctl -q net.ipv4.tcp_sack=0",
            "sysctl -q -w net.ipv4.tcp_sack=0 net.ipv4.tcp_rmem=\"4096 1000 2000\"",
            "sysctl -qw \\\n net.ipv4.tcp_sack=0",
            "../common/set_sysctls.py /proc/sys/net/ipv4/tcp_sack=0",
            "echo 0 > /proc/sys/net/ipv4/tcp_sack",
        ] {
            assert_eq!(settings(command).unwrap().0.of("tcp_sack"), 0, "{command}");
        }
        assert_eq!(settings("sysctl net.ipv4.tcp_rmem='1 2 3' ").unwrap().0.nth("tcp_rmem", 2), 3);
    }

    #[test]
    fn routes_have_metrics_and_what_is_not_understood_is_named() {
        let route =
            settings("ip route replace 192.0.2.0/24 dev tun0 initcwnd 5 rto_min 5ms").unwrap().1;
        assert_eq!((route.initcwnd, route.rto_min), (5, 5 * MS));
        assert!(settings("iptables -A INPUT").unwrap_err().contains("iptables"));
        assert!(settings("sysctl net.ipv4.tcp_no_such=1").unwrap_err().contains("tcp_no_such"));
    }
}

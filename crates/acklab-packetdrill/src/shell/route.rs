//! What `ip`, `ifconfig`, `tc` and `ethtool` set: the route, the device.

use acklab_host::settings::{CONGESTION_CONTROLS, MS, Route, SECOND, Us};

use super::Surroundings;
use crate::world::Change;

type Done = Result<bool, String>;

/// A program of iproute2 or ethtool with its arguments.
pub(super) fn program(name: &str, args: &[&str], around: &mut Surroundings<'_>) -> Done {
    let shows = args.iter().any(|a| ["show", "list", "ls", "get"].contains(a));
    if shows {
        return Ok(true);
    }
    let understood = match name {
        "ip" => ip(args, around),
        "tc" => tc(args),
        "ifconfig" => interface(args, around).map(|()| true),
        // Without offload TCP makes the same bursts, which leave packet by packet.
        _ => Ok(true),
    }?;
    if understood {
        let all = std::iter::once(name).chain(args.iter().copied()).map(str::to_owned);
        around.changes.push(Change::Program(all.collect()));
    }
    Ok(true)
}

/// Returns whether it is of the script's version of IP.
fn ip(args: &[&str], around: &mut Surroundings<'_>) -> Done {
    let v6 = around.route.ip_header == 40;
    let other = if v6 { "-4" } else { "-6" };
    let foreign = args.contains(&other)
        || args.iter().any(|a| a.contains('/') && a.contains(if v6 { '.' } else { ':' }));
    let args: Vec<&str> = args.iter().copied().filter(|a| !a.starts_with('-')).collect();
    let (what, rest) = match args.split_first() {
        Some((what, rest)) => (*what, rest),
        None => return Err("the command \"ip\"".to_owned()),
    };
    match what {
        "route" | "ro" | "r" if foreign => Ok(false),
        "route" | "ro" | "r" => route(rest, around).map(|()| true),
        "link" | "li" | "l" => interface(rest, around).map(|()| true),
        "addr" | "address" | "a" | "rule" | "neigh" | "netns" => {
            Err(format!("the command \"ip {}\"", args.join(" ")))
        }
        "tcp_metrics" | "tcpmetrics" | "tcpm"
            if rest.first().is_some_and(|w| w.starts_with('f')) =>
        {
            around.changes.push(Change::Forget);
            Ok(true)
        }
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
fn tc(args: &[&str]) -> Done {
    let harmless = ["fq", "pfifo", "pfifo_fast", "noqueue", "del", "mq", "fq_codel"];
    if args.first() == Some(&"qdisc") && args.iter().any(|a| harmless.contains(a)) {
        return Ok(true);
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
        Some(&"flush") if args.contains(&"cache") => return Ok(()),
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
            "features" => route.ecn = value().split(',').any(|f| f == "ecn"),
            "congctl" => {
                let name = value();
                let known = CONGESTION_CONTROLS.into_iter().find(|known| *known == name);
                route.congestion = Some(known.ok_or_else(failed)?);
            }
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

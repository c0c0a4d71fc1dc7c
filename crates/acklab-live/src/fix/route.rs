//! Immediate ACKs for a peer: a route to it with `quickack 1` (ip-route(8); Linux 3.11), put in front of the one that
//! leads there.
//!
//! `ip route prepend` adds beside what is there, so taking ours away leaves the network as it was. Ours are marked with
//! protocol number 65, by which they are found: `ip route show table all proto 65`. For an address of this host the
//! route stands in the local table, which is asked first. IPv6 has no such `prepend`: there a route with a better
//! metric does it, and an address of this host cannot be served.

use std::io;
use std::net::IpAddr;
use std::process::Command;

use serde_json::Value;

use super::remedy::FixError;

/// The arguments of `ip` that add a route with immediate ACKs to `peer`; `Err` says why that cannot be.
pub(super) fn to(peer: IpAddr) -> Result<Vec<String>, FixError> {
    let doing = || format!("ask for the route to {peer}");
    let found = ip(&["-json", "route", "get", &peer.to_string()].map(str::to_owned));
    let found = found.map_err(|source| FixError::System { doing: doing(), source })?;
    let routes: Vec<Value> = serde_json::from_slice(&found)
        .map_err(|error| FixError::System { doing: doing(), source: error.into() })?;
    let route = routes.first().ok_or_else(|| FixError::Nothing(format!("no route to {peer}")))?;
    let field = |name: &str| route[name].as_str().map(str::to_owned);
    let local = route["type"] == "local";
    if local && peer.is_ipv6() {
        return Err(FixError::Nothing(format!(
            "{peer} is an IPv6 address of this host, whose routes cannot be added to; use --delack-max"
        )));
    }
    let mut words: Vec<String> = vec!["route".into()];
    words.push(if peer.is_ipv6() { "add" } else { "prepend" }.into());
    if local {
        words.push("local".into());
    }
    words.push(format!("{peer}/{}", if peer.is_ipv6() { 128 } else { 32 }));
    for (word, name) in [("via", "gateway"), ("dev", "dev"), ("src", "prefsrc")] {
        words.extend(field(name).into_iter().flat_map(|value| [word.to_owned(), value]));
    }
    let table = if local { "local" } else { "main" };
    let mut rest = vec!["table", table, "proto", PROTOCOL, "quickack", "1"];
    if peer.is_ipv6() {
        rest.extend(["metric", "1"]);
    }
    words.extend(rest.into_iter().map(str::to_owned));
    Ok(words)
}

/// The arguments that take such a route away again.
pub(super) fn without(added: &[String]) -> Vec<String> {
    let mut words = added.to_vec();
    words[1] = "delete".into();
    words
}

/// Runs `ip`.
pub(super) fn ip(words: &[String]) -> io::Result<Vec<u8>> {
    let run = Command::new("ip").args(words).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("the command `ip` (iproute2) is not installed"),
        _ => error,
    })?;
    if run.status.success() {
        return Ok(run.stdout);
    }
    let said = String::from_utf8_lossy(&run.stderr).trim().to_owned();
    let refused = said.contains("not permitted");
    let kind = if refused { io::ErrorKind::PermissionDenied } else { io::ErrorKind::Other };
    Err(io::Error::new(kind, said))
}

pub(super) const NEEDS: &str =
    "that takes CAP_NET_ADMIN, so run it as root (for example with sudo)";
/// `rtm_protocol` of our routes; linux/rtnetlink.h leaves numbers like it to whoever wants them.
const PROTOCOL: &str = "65";

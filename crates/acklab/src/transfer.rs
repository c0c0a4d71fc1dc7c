//! Transfer of files over reliable UDP (Linux): what the command line tells of it, as JSON.
//!
//! The transfer itself is acklab-net's. [`Line`] is the sender's last line, the contract's; the other
//! lines tell what happens on the way, one object per line, told apart by their `schema`.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use acklab_core::time::Span;
use acklab_core::units::BitRate;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use acklab_net::transfer::name::shown;
use acklab_net::transfer::receiver::Received;
use acklab_net::transfer::report::PathReport;
use acklab_net::transfer::send::{Due, Status};
use acklab_rudp::Code;

/// The sender's last line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Line {
    /// Always [`SCHEMA`].
    pub(crate) schema: &'static str,
    /// Bytes of the files that stand at the receiver, holes and what it held before included.
    pub(crate) bytes: u64,
    /// From the first datagram to the receiver's word that everything is stored.
    pub(crate) seconds: f64,
    /// Bytes of IP packets that the sender sent: UDP payload, and 28 (IPv6: 48) per datagram.
    pub(crate) wire_bytes: u64,
    /// Of `bytes`, what the receiver held from an interrupted transfer.
    pub(crate) resumed_bytes: u64,
    /// Every path there was.
    pub(crate) paths: Vec<PathLine>,
    /// BLAKE3 of the file, as hexadecimal digits, where one was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blake3: Option<String>,
}

/// A path in the sender's last line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct PathLine {
    /// The sender's address.
    pub(crate) local: String,
    /// The receiver's.
    pub(crate) remote: String,
    /// Bytes of UDP payload sent on it.
    pub(crate) bytes: u64,
    /// Of these, bytes that were lost.
    pub(crate) lost: u64,
    /// Smoothed round trip at the end, if one was measured.
    pub(crate) rtt_ms: Option<f64>,
    /// `validating`, `active`, `suspect`, `dead` or `gone`.
    pub(crate) state: String,
}

/// Name of the sender's last line.
pub(crate) const SCHEMA: &str = "acklab.transfer/1";
/// Name of the lines before it.
pub(crate) const PROGRESS: &str = "acklab.transfer-progress/1";
/// Name of a line about something that would have to be sent.
pub(crate) const DUE: &str = "acklab.transfer-due/1";
/// Name of a line about something left out or refused.
pub(crate) const PROBLEM: &str = "acklab.transfer-problem/1";
/// Name of the receiver's first line.
pub(crate) const LISTENING: &str = "acklab.transfer-listening/1";
/// Name of the receiver's line about a sender that came.
pub(crate) const OPENED: &str = "acklab.transfer-opened/1";
/// Name of the receiver's line about a transfer that is over.
pub(crate) const RECEIVED: &str = "acklab.transfer-received/1";
/// Name of the receiver's line about a sender that was turned away.
pub(crate) const TURNED_AWAY: &str = "acklab.transfer-turned-away/1";

impl Line {
    /// Of a transfer as it stands.
    pub(crate) fn new(status: &Status) -> Self {
        Self {
            schema: SCHEMA,
            bytes: status.progress.stored_bytes,
            seconds: status.seconds,
            wire_bytes: status.wire_bytes(),
            resumed_bytes: status.progress.resumed,
            paths: status.paths.iter().map(PathLine::new).collect(),
            blake3: status.progress.hash.as_ref().map(hash),
        }
    }

    /// As one line without its end.
    pub(crate) fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl PathLine {
    fn new(path: &PathReport) -> Self {
        Self {
            local: path.local.to_string(),
            remote: path.remote.to_string(),
            bytes: path.bytes,
            lost: path.lost,
            rtt_ms: path.rtt.map(Span::as_millis_f64),
            state: path.state.to_string(),
        }
    }
}

/// A line on the way.
pub(crate) fn progress(status: &Status) -> Value {
    let progress = &status.progress;
    json!({
        "schema": PROGRESS,
        "seconds": status.seconds,
        "bytes": status.totals.bytes,
        "sent_bytes": progress.sent,
        "confirmed_bytes": progress.confirmed,
        "resumed_bytes": progress.resumed,
        "files": status.totals.files,
        "stored_files": progress.stored,
        "paths": status.paths.iter().map(PathLine::new).collect::<Vec<_>>(),
    })
}

/// A rehearsal's line.
pub(crate) fn due(due: &Due) -> Value {
    json!({ "schema": DUE, "name": shown(&due.name), "bytes": due.bytes })
}

/// A hash as b3sum(1) writes it.
pub(crate) fn hash(value: &[u8; 32]) -> String {
    value.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A receiver's line on the way or at the end of a transfer.
pub(crate) fn received(schema: &str, from: SocketAddr, received: &Received, seconds: f64) -> Value {
    json!({
        "schema": schema,
        "from": from.to_string(),
        "seconds": seconds,
        "announced_bytes": received.bytes_announced,
        "received_bytes": received.bytes,
        "resumed_bytes": received.resumed,
        "stored_bytes": received.stored_bytes,
        "stored_files": received.stored,
        "refused": received.refused,
        "failed": received.failed,
        "rehearsed": received.rehearsed,
        "blake3": received.hash.as_ref().map(hash),
    })
}

/// The JSON Schema (draft 2020-12) of [`Line`], with a final newline.
#[cfg(test)]
pub(crate) fn json_schema() -> String {
    let schema = schemars::schema_for!(Line);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// An address with a port, by number or by name; of a name, the first.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    addresses(text).map(|found| found[0])
}

/// Every address that a name has, at least one.
pub(crate) fn addresses(text: &str) -> Result<Vec<SocketAddr>, String> {
    let example = "write for example 192.0.2.7:9000, [2001:db8::7]:9000 or host.example:9000";
    if !text.contains(':') {
        return Err(format!("\"{text}\" has no port; {example}"));
    }
    let found =
        text.to_socket_addrs().map_err(|error| format!("\"{text}\": {error}; {example}"))?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() { Err(format!("\"{text}\" has no address")) } else { Ok(found) }
}

/// A path: from a local address to a remote one with its port.
pub(crate) fn path(text: &str) -> Result<(IpAddr, SocketAddr), String> {
    let example = "write for example 192.0.2.1,198.51.100.7:9000";
    let (local, remote) =
        text.split_once(',').ok_or_else(|| format!("\"{text}\" has no comma; {example}"))?;
    let local: IpAddr =
        local.trim().parse().map_err(|_| format!("\"{local}\" is no IP address; {example}"))?;
    let remote = address(remote.trim())?;
    if local.is_ipv4() != remote.is_ipv4() {
        return Err(format!("\"{text}\" mixes IPv4 and IPv6"));
    }
    Ok((local, remote))
}

/// A rate in bytes or bits per second: `60mbyte`, `480mbit`.
pub(crate) fn rate(text: &str) -> Result<BitRate, String> {
    let wrong =
        || format!("\"{text}\" is no rate; write for example 60mbyte or 480mbit (per second)");
    let (bits, factor) = match text.strip_suffix("byte") {
        Some(number) => (format!("{number}bit"), 8),
        None => (text.to_owned(), 1),
    };
    let rate: BitRate = bits.parse().map_err(|_| wrong())?;
    let bps = rate.as_bps().checked_mul(factor).filter(|&bps| bps < u64::MAX / 2);
    bps.and_then(BitRate::from_bps).ok_or_else(wrong)
}

/// Whether a program that ended with that code was given what cannot work, rather than hindered.
pub(crate) fn is_unusable(code: Code) -> bool {
    matches!(code, Code::Version | Code::Mode | Code::WrongSecret | Code::UnknownPeer | Code::Spent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set `ACKLAB_WRITE_SCHEMA=1` to write the file anew after changing the types.
    #[test]
    fn the_schema_in_the_repository_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/transfer.schema.json");
        let now = json_schema();
        if std::env::var_os("ACKLAB_WRITE_SCHEMA").is_some() {
            std::fs::write(path, &now).expect("write the schema");
        }
        let stored = std::fs::read_to_string(path).expect("docs/schema/transfer.schema.json");
        assert_eq!(stored, now, "run this test with ACKLAB_WRITE_SCHEMA=1");
    }

    #[test]
    fn rates_are_read_in_bits_and_bytes() {
        for (text, bps) in [("60mbyte", 480_000_000), ("1.5kbit", 1500), ("2byte", 16)] {
            assert_eq!(rate(text).map(BitRate::as_bps), Ok(bps), "{text}");
        }
        for text in ["", "60", "60mb", "-1mbyte", "byte", "60 m", "infinitebyte", "infinite"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_and_paths_say_what_is_wrong_with_them() {
        assert!(address("127.0.0.1:9").is_ok() && address("[::1]:9").is_ok());
        assert!(address("localhost:9").is_ok());
        for text in ["127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", ":9x", ""] {
            assert!(address(text).is_err_and(|what| what.contains("write") || what.contains("no")));
        }
        assert!(path("127.0.0.1,127.0.0.2:9").is_ok());
        for text in ["127.0.0.1", "x,127.0.0.2:9", "::1,127.0.0.2:9", "127.0.0.1,127.0.0.2"] {
            assert!(path(text).is_err(), "{text}");
        }
    }
}

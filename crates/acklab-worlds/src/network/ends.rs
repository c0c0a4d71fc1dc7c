//! The ends of a flow as sockets, sysctls and attributes of routes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddrV4;

use acklab_core::ack::{Profile, ack_rate_limit};
use acklab_core::cc::Algorithm;
use acklab_core::packet::NodeId;
use acklab_lab::blueprint::{Blueprint, Conversation};
use acklab_tcp::{AckRequests, Config, InitialWindow, Nagle, System};

use super::cannot_build::CannotBuild;
use crate::job::{ACK_LIMIT, End};

/// One end of a flow: 0 connects.
pub(super) fn end(flow: &Conversation<'_>, side: usize) -> Result<End, CannotBuild> {
    let refuse = |reason: String| CannotBuild::new(format!("flow {:?}", flow.name), reason);
    let config = &flow.config[side];
    match &config.ack {
        Profile::Linux(_) => {}
        Profile::AckRateLimit(options) => limits(options).map_err(refuse)?,
        _ => {
            let reason = "it does not acknowledge as Linux does, and both ends are the Linux kernel: leave system, \
                          receiver and ack out, or ack = \"ack-rate-limit\"";
            return Err(refuse(reason.into()));
        }
    }
    if config.ack_requests != AckRequests::Off {
        return Err(refuse("Linux knows no requests for ACKs: leave ack_requests out".into()));
    }
    let nodelay = match config.nagle {
        Nagle::Off => true,
        Nagle::Minshall => false,
        Nagle::Classic | Nagle::Bsd => {
            return Err(refuse("its Nagle algorithm is not the one that Linux has".into()));
        }
    };
    let congestion = match &config.congestion {
        Algorithm::Bbr1 => "bbr",
        other if KERNELS.contains(&other.name()) => other.name(),
        other => {
            let (name, known) = (other.name(), KERNELS.join(", "));
            return Err(refuse(format!(
                "the kernel has no congestion control {name:?}; it has {known}, bbr1"
            )));
        }
    };
    let linux = System::Linux.config();
    let receive_buffer =
        (linux.receive_buffer != config.receive_buffer).then_some(config.receive_buffer);
    let addr = flow.ends[side];
    Ok(End {
        space: space_of(addr.node),
        address: SocketAddrV4::new(addr.node.address(), addr.port),
        congestion: congestion.to_owned(),
        nodelay,
        receive_buffer,
        foreign: None,
    })
}

/// Whether the kernel's patch has all of `options`.
fn limits(options: &ack_rate_limit::Options) -> Result<(), String> {
    let &ack_rate_limit::Options { start, round, step, least, acks, margin, .. } = options;
    let known = ack_rate_limit::Options {
        start: start.max(1),
        ..ack_rate_limit::Options { round, step, least, acks, margin, ..Default::default() }
    };
    if *options == known {
        return Ok(());
    }
    Err("the kernel limits ACKs with start (1 or more), round, step, least, acks and margin alone: leave judge, \
         fallback, forget, follow and reads out"
        .into())
}

/// Congestion controls that have the same name here and in the kernel.
const KERNELS: [&str; 6] = ["reno", "cubic", "vegas", "westwood", "dctcp", "cdg"];

/// A namespace's name: that of a node in a file may hold more than the file system allows.
pub(crate) fn space_of(node: NodeId) -> String {
    format!("n{}", node.0)
}

/// The size of a full packet at each host that has flows.
pub(super) fn packets(network: &Blueprint<'_>) -> Result<BTreeMap<NodeId, u16>, CannotBuild> {
    let mut packets = BTreeMap::new();
    for flow in &network.flows {
        for end in flow.ends {
            if *packets.entry(end.node).or_insert(flow.packet) != flow.packet {
                let place = format!("flow {:?}", flow.name);
                let reason =
                    "another flow of the same host has packets of another size: give each a host";
                return Err(CannotBuild::new(place, reason));
            }
        }
    }
    Ok(packets)
}

/// Settings that keep a namespace from sending anything by itself.
pub(super) fn quiet() -> Vec<(String, String)> {
    let settings = [
        ("ipv6/conf/all/disable_ipv6", "1"),
        ("ipv6/conf/default/disable_ipv6", "1"),
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
    ];
    settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// The settings of a node: those of its flows, which must agree.
pub(super) fn sysctls(
    network: &Blueprint<'_>,
    node: NodeId,
) -> Result<Vec<(String, String)>, CannotBuild> {
    let mut settings = quiet();
    settings.push(("ipv4/ip_forward".into(), "1".into()));
    settings.push(("ipv4/tcp_no_metrics_save".into(), "1".into()));
    let mut first = None;
    for flow in &network.flows {
        for (end, config) in flow.ends.iter().zip(flow.config) {
            if end.node != node {
                continue;
            }
            let own = of_config(config);
            if *first.get_or_insert_with(|| own.clone()) != own {
                let place = format!("flow {:?}", flow.name);
                let reason = "another flow of the same host differs in timestamps, recovery, ECN, restart after idle \
                              or the limit of ACKs, which are the host's: give each a host";
                return Err(CannotBuild::new(place, reason));
            }
        }
    }
    settings.extend(first.into_iter().flatten());
    Ok(settings)
}

fn of_config(config: &Config) -> Vec<(String, String)> {
    let flag = |on: bool| u8::from(on).to_string();
    // DCTCP asks for ECN itself; as a system-wide setting it would change nothing for it.
    let mut settings = vec![
        ("ipv4/tcp_timestamps".into(), flag(config.timestamps)),
        ("ipv4/tcp_sack".into(), flag(config.loss.recovery.is_selective())),
        ("ipv4/tcp_ecn".into(), flag(config.ecn)),
        ("ipv4/tcp_slow_start_after_idle".into(), flag(config.window.idle_restart)),
    ];
    if let Profile::AckRateLimit(limit) = &config.ack {
        settings.push((ACK_LIMIT.into(), flag(true)));
        let ack_rate_limit::Options { start, round, step, least, acks, margin, .. } = limit;
        let sysctls = [
            ("start", start),
            ("round", round),
            ("step", step),
            ("min", least),
            ("acks", acks),
            ("margin", margin),
        ];
        for (name, value) in sysctls {
            settings.push((format!("{ACK_LIMIT}_{name}"), value.to_string()));
        }
    }
    settings
}

/// What the route of one end says beyond the kernel's defaults.
pub(super) fn route_attributes(flow: &Conversation<'_>, connects: bool) -> String {
    let config = &flow.config[usize::from(!connects)];
    let linux = System::Linux.config();
    let mut words = String::new();
    if let InitialWindow::Segments(segments) = config.window.initial {
        let _ = write!(words, " initcwnd {segments}");
    }
    if let Some(bytes) = config.window.ssthresh {
        let _ = write!(words, " ssthresh {}", (bytes / u64::from(config.mss)).max(2));
    }
    if linux.rto.min != config.rto.min {
        let _ = write!(words, " rto_min {}ms", config.rto.min.as_nanos().div_ceil(1_000_000));
    }
    words
}

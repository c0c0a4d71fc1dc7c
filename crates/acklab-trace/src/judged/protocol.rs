//! The protocol of a connection: what both directions show of it, its name in words, and what a port suggests where
//! nothing is shown.

use super::direction::Direction;
use crate::noted::LINES;

/// Gives both directions the protocol that one of them shows, or what the server's port suggests.
pub(super) fn agree(directions: &mut [Direction]) {
    // Lines are the form of many protocols.
    let named = |d: &Direction| d.writes.protocol.filter(|name| *name != LINES);
    let shown: Vec<&'static str> = directions.iter().filter_map(named).collect();
    // What a handshake in HTTP agrees on is spoken from then on.
    let later = shown.iter().copied().find(|name| *name == "websocket");
    let Some(name) = later.or(shown.first().copied()) else {
        let suggested = suggested(directions);
        for direction in directions {
            direction.writes.protocol_by_port = suggested;
        }
        return;
    };
    for direction in directions.iter_mut().filter(|d| later.is_some() || named(d).is_none()) {
        direction.writes.protocol = Some(name);
    }
}

/// What the one port stands for, if the other one, which a client took, does not stand for anything.
fn suggested(directions: &[Direction]) -> Option<&'static str> {
    let names: Vec<_> = ports(directions.first()?).filter_map(by_port).collect();
    (names.len() == 1).then(|| names[0])
}

/// The guess in words, such as "port 502, probably Modbus/TCP".
pub(super) fn guess(direction: &Direction) -> Option<String> {
    let name = direction.writes.protocol_by_port?;
    let port = ports(direction).find(|port| by_port(*port) == Some(name))?;
    Some(format!("port {port}, probably {name}"))
}

fn ports(direction: &Direction) -> impl Iterator<Item = u16> {
    let ends = [&direction.from, &direction.to];
    ends.into_iter().filter_map(|end| end.rsplit(':').next().and_then(|port| port.parse().ok()))
}

/// IANA's Service Name and Transport Protocol Port Number Registry, and 6379 and 27017 as their servers' documentation
/// has them.
fn by_port(port: u16) -> Option<&'static str> {
    Some(match port {
        22 => "SSH",
        80 | 8080 => "HTTP",
        102 => "ISO on TCP (TPKT)",
        443 => "HTTPS",
        502 => "Modbus/TCP",
        1433 => "SQL Server",
        1521 => "Oracle Database",
        1883 => "MQTT",
        2404 => "IEC 60870-5-104",
        3306 => "MySQL",
        4712 => "IEEE C37.118",
        4840 => "OPC UA",
        5432 => "PostgreSQL",
        5672 => "AMQP",
        6379 => "Redis",
        6653 => "OpenFlow",
        8883 => "MQTT over TLS",
        11211 => "memcached",
        20000 => "DNP3",
        27017 => "MongoDB",
        44818 => "EtherNet/IP",
        48898 => "ADS/AMS",
        _ => return None,
    })
}

/// A protocol's name as its users write it.
pub(super) fn spoken(protocol: &'static str) -> &'static str {
    match protocol {
        "c37.118" => "IEEE C37.118",
        "dnp3" => "DNP3",
        "opc_ua" => "OPC UA",
        "ads_ams" => "ADS/AMS",
        "modbus_tcp" => "Modbus/TCP",
        "iec_60870_5_104" => "IEC 60870-5-104",
        "tpkt" => "ISO on TCP (TPKT)",
        "ethernet_ip" => "EtherNet/IP",
        "openflow" => "OpenFlow",
        LINES => "lines of text",
        "tls" => "TLS",
        "mqtt" => "MQTT",
        "mongodb" => "MongoDB",
        "websocket" => "WebSocket",
        "http" => "HTTP",
        "http2" => "HTTP/2",
        "rtsp" => "RTSP",
        "sip" => "SIP",
        "redis" => "Redis (RESP)",
        "ssh" => "SSH",
        "postgresql" => "PostgreSQL",
        "mysql" => "MySQL",
        "amqp" => "AMQP",
        "fix" => "FIX",
        "nats" => "NATS",
        other => other,
    }
}

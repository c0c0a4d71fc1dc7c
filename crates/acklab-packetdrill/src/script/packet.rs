//! Packets.

use acklab_host::accurate;
use acklab_host::segment::{AccEcn, TcpOption, ecn as mark, flag};

use super::cursor::Cursor;
use super::{Icmp, Options, Packet, SyntaxError};

/// The option of RFC 2385.
const MD5: u8 = 19;

/// Of an IPv4 packet with the largest length (RFC 768).
const MOST_DATAGRAM: u32 = 65_507;

/// A packet behind its `<` or `>`.
pub(super) fn packet(at: &mut Cursor<'_>, inbound: bool) -> Result<Packet, SyntaxError> {
    let mut packet = Packet { inbound, ..Packet::default() };
    ip(at, &mut packet)?;
    match at.next_word() {
        "icmp" | "icmpv6" => {
            at.word();
            packet.icmp = Some(icmp(at)?);
            return Ok(packet);
        }
        "udp" => {
            at.word();
            packet.is_datagram = true;
            packet.ports = ports(at)?;
            at.want("(")?;
            let bytes = at.u32()?;
            if bytes > MOST_DATAGRAM {
                return Err(at.error(format!("a datagram carries {MOST_DATAGRAM} bytes at most")));
            }
            packet.range = (0, 0, bytes);
            at.want(")")?;
            return Ok(packet);
        }
        word @ ("ipv4" | "ipv6" | "gre" | "mpls" | "raw") => {
            return Err(at.error(format!("unsupported: packets of {word}")));
        }
        _ => {}
    }
    packet.ports = ports(at)?;
    packet.flags = flags(at)?;
    packet.range = range(at)?;
    if at.take_word("ack") {
        packet.ack = Some(at.u32()?);
    }
    if at.take_word("win") && !at.take("*") {
        packet.window = Some(at.u16()?);
    }
    if at.take_word("urg") {
        packet.urgent = Some(at.u16()?);
    }
    if at.take_word("win") && !at.take("*") {
        packet.window = Some(at.u16()?);
    }
    // What follows on the same line in `<...>` are options; a new event may begin with `<` on no line of its own.
    let mut probe = at.clone();
    if probe.take("<") {
        *at = probe;
        packet.options = options(at)?;
    }
    Ok(packet)
}

/// `1234 > 8080`, before the flags.
fn ports(at: &mut Cursor<'_>) -> Result<Option<(u16, u16)>, SyntaxError> {
    let mut probe = at.clone();
    if probe.word().parse::<u16>().is_err() || !probe.take(">") {
        return Ok(None);
    }
    let from = at.u16()?;
    at.want(">")?;
    Ok(Some((from, at.u16()?)))
}

/// What stands of IP before the flags.
fn ip(at: &mut Cursor<'_>, packet: &mut Packet) -> Result<(), SyntaxError> {
    loop {
        let end = if at.take("(") {
            ")"
        } else if at.take("[") {
            "]"
        } else {
            return Ok(());
        };
        loop {
            let word = at.word();
            match word {
                "noecn" => packet.ecn = Some(vec![mark::NOT_ECT]),
                "ect0" => packet.ecn = Some(vec![mark::ECT0]),
                "ect1" => packet.ecn = Some(vec![mark::ECT1]),
                "ce" => packet.ecn = Some(vec![mark::CE]),
                "ect01" => packet.ecn = Some(vec![mark::ECT0, mark::ECT1]),
                "tos" => packet.tos = Some(at.u32()? as u8),
                "flowlabel" => packet.flow_label = Some(at.u32()?),
                "ttl" => packet.ttl = Some(at.u16()? as u8),
                _ => return Err(at.expected("noecn, ect0, ect1, ect01, ce, tos, ttl or flowlabel")),
            }
            at.take(",");
            if at.take(end) {
                break;
            }
        }
    }
}

fn flags(at: &mut Cursor<'_>) -> Result<u16, SyntaxError> {
    at.skip();
    let rest = at.rest();
    let len = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let mut flags = 0;
    let mut accurate = None;
    for c in rest[..len].chars() {
        flags |= match c {
            'S' => flag::SYN,
            'F' => flag::FIN,
            'R' => flag::RST,
            'P' => flag::PSH,
            '.' => flag::ACK,
            'U' => flag::URG,
            'E' => flag::ECE,
            'W' | 'C' => flag::CWR,
            'A' => flag::AE,
            '-' => 0,
            '0'..='7' => {
                accurate = c.to_digit(10);
                0
            }
            _ => return Err(at.expected("flags")),
        };
    }
    if len == 0 {
        return Err(at.expected("flags"));
    }
    at.advance(len);
    if let Some(value) = accurate {
        flags |= accurate::ace_flags(value as u8);
    }
    Ok(flags)
}

fn range(at: &mut Cursor<'_>) -> Result<(u32, u32, u32), SyntaxError> {
    let from = at.u32()?;
    if at.take("(") {
        let len = at.u32()?;
        at.want(")")?;
        return Ok((from, from.wrapping_add(len), len));
    }
    at.want(":")?;
    let to = at.u32()?;
    at.want("(")?;
    let len = at.u32()?;
    at.want(")")?;
    if to.wrapping_sub(from) != len {
        return Err(
            at.error(format!("{from}:{to}({len}): the range has {} bytes", to.wrapping_sub(from)))
        );
    }
    Ok((from, to, len))
}

fn icmp(at: &mut Cursor<'_>) -> Result<Icmp, SyntaxError> {
    let kind = at.word().to_owned();
    let mut icmp = Icmp { kind, code: String::new(), mtu: None, seq: None, of_datagram: false };
    let known = ["mtu", ""];
    if !known.contains(&at.next_word()) && !at.next_word().starts_with(|c: char| c.is_ascii_digit())
    {
        at.word().clone_into(&mut icmp.code);
    }
    if at.take_word("mtu") {
        icmp.mtu = Some(at.u32()?);
    }
    if at.take("[") {
        let rest = at.rest();
        let end = rest.find(']').ok_or_else(|| at.error("a quoted packet without its end"))?;
        let quoted = &rest[..end];
        let number = quoted.split_whitespace().find_map(|w| w.split_once(':')).map(|(n, _)| n);
        let number = number.or_else(|| quoted.split(':').next());
        icmp.seq = number.and_then(|n| n.trim().parse().ok());
        icmp.of_datagram = quoted.trim_start().starts_with("udp");
        at.advance(end + 1);
    }
    Ok(icmp)
}

fn options(at: &mut Cursor<'_>) -> Result<Options, SyntaxError> {
    if at.take("...") {
        at.want(">")?;
        return Ok(Options::Any);
    }
    let mut list = Vec::new();
    if at.take(">") {
        return Ok(Options::List(list));
    }
    loop {
        list.push(option(at)?);
        if at.take(">") {
            return Ok(Options::List(list));
        }
        at.want(",")?;
    }
}

fn option(at: &mut Cursor<'_>) -> Result<TcpOption, SyntaxError> {
    let here = at.clone();
    match at.word() {
        "mss" => Ok(TcpOption::Mss(at.u16()?)),
        "wscale" => Ok(TcpOption::Scale(at.u16()? as u8)),
        "sackOK" => Ok(TcpOption::SackOk),
        "nop" => Ok(TcpOption::Nop),
        "eol" => Ok(TcpOption::End),
        "sack" => {
            let mut blocks = Vec::new();
            loop {
                let left = at.u32()?;
                at.want(":")?;
                blocks.push((left, at.u32()?));
                at.skip();
                if !at.peek().is_some_and(|c| c.is_ascii_digit()) {
                    return Ok(TcpOption::Sack(blocks));
                }
            }
        }
        "TS" => {
            if !at.take_word("val") {
                return Err(at.expected("\"val\""));
            }
            let value = at.u32()?;
            if !at.take_word("ecr") {
                return Err(at.expected("\"ecr\""));
            }
            Ok(TcpOption::Stamp(value, at.u32()?))
        }
        name @ ("FO" | "FOEXP") => {
            let experimental = name == "FOEXP";
            at.skip();
            let ends = at.peek().is_none_or(|c| c == ',' || c == '>');
            let word = if ends { "" } else { at.word() };
            cookie(at.meaning(word))
                .map(|bytes| TcpOption::FastOpen(bytes, experimental))
                .ok_or_else(|| here.expected("a cookie in hexadecimal digits"))
        }
        "md5" => match cookie(at.word()) {
            Some(digest) => Ok(TcpOption::Other(MD5, digest)),
            None => Err(here.expected("a digest in hexadecimal digits")),
        },
        "ECN" | "AccECN" | "accecn" => accurate(at),
        "e0b" | "e1b" | "ceb" => {
            *at = here;
            accurate(at)
        }
        word => Err(here.error(format!("unsupported: TCP option {word:?}"))),
    }
}

fn cookie(word: &str) -> Option<Vec<u8>> {
    if word.len() % 2 == 1 {
        return None;
    }
    (0..word.len()).step_by(2).map(|i| u8::from_str_radix(word.get(i..i + 2)?, 16).ok()).collect()
}

fn accurate(at: &mut Cursor<'_>) -> Result<TcpOption, SyntaxError> {
    let mut counters = AccEcn::default();
    let mut first = true;
    loop {
        match at.next_word() {
            "e0b" => {
                at.word();
                counters.e0b = Some(at.u32()?);
            }
            "ceb" => {
                at.word();
                counters.ceb = Some(at.u32()?);
            }
            "e1b" => {
                at.word();
                if first {
                    counters.order = 1;
                }
                counters.e1b = Some(at.u32()?);
            }
            _ => return Ok(TcpOption::AccEcn(counters)),
        }
        first = false;
    }
}

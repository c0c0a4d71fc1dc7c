//! Makes the capture that the analyser's speed is measured on, and measures it:
//!
//!     bench_trace make FILE [--snap 80] [--bytes 1000000000]
//!     bench_trace repeat SOURCE FILE [--bytes 1000000000]
//!     bench_trace run FILE [--facts-only]
//!
//! 600 connections for as long as it takes to fill the file: a third of the packets are small
//! periodic messages held by Nagle's algorithm and answered by 40 ms ACKs, a third requests and
//! responses, a third bulk data with an ACK for every other segment, now and then a retransmission.
//! With `--snap 80` a record has some 90 bytes, as of `tcpdump -s 80`. `repeat` writes a real capture
//! again and again, each time later and with other port numbers, so that every copy is a new
//! connection.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::net::Ipv4Addr;
use std::path::Path;

use acklab_core::packet::{Addr, Body, Ecn, NodeId, Packet};
use acklab_core::segment::{Flags, TcpOptions, TcpRepr, Timestamp};
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::wire::emit_ipv4;
use acklab_trace::capture::{CaptureReader, CaptureWriter, LinkType, WriterOptions};
use acklab_trace::flow::FlowTable;
use acklab_trace::read::read_capture;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str, default: u64| -> u64 {
        let at = args.iter().position(|arg| arg == name);
        at.and_then(|at| args.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    match (args.first().map(String::as_str), args.get(1)) {
        (Some("make"), Some(file)) => {
            let snap_len = option("--snap", 65_535) as u32;
            make(Path::new(file), snap_len, option("--bytes", 1_000_000_000))?;
        }
        (Some("repeat"), Some(source)) if args.len() > 2 => {
            repeat(Path::new(source), Path::new(&args[2]), option("--bytes", 1_000_000_000))?;
        }
        (Some("run"), Some(file)) => {
            run(Path::new(file), args.iter().any(|arg| arg == "--facts-only"))?;
        }
        _ => println!(
            "bench_trace make FILE [--snap 80] [--bytes 1000000000] | \
             repeat SOURCE FILE [--bytes 1000000000] | run FILE [--facts-only]"
        ),
    }
    Ok(())
}

/// Diagnoses the capture with everything on, or only gathers the facts, and prints packets per CPU
/// second.
fn run(path: &Path, facts_only: bool) -> Result<(), Box<dyn std::error::Error>> {
    let (packets, connections, bytes) = if facts_only {
        let mut reader = CaptureReader::open(path)?;
        let mut table = FlowTable::<()>::default();
        let summary = read_capture(&mut reader, &mut table, |_| {})?;
        (summary.frames, table.finish().total, reader.source_bytes())
    } else {
        let mut read = 0;
        let options = acklab_trace::Options::default();
        let diagnosis = acklab_trace::explain_worst(path, &options, |bytes| read = bytes)?;
        (diagnosis.capture.packets, diagnosis.capture.connections, read)
    };
    let cpu_s = cpu_seconds()?;
    let gigabytes = bytes as f64 / 1e9;
    println!(
        "{packets} packets, {gigabytes:.2} GB, {connections} connections: {cpu_s:.2} CPU s, \
         {:.2} M packets per CPU s",
        packets as f64 / cpu_s / 1e6
    );
    Ok(())
}

/// User and system time of this process (proc(5), fields 14 and 15, in ticks of 10 ms).
fn cpu_seconds() -> io::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|f| f.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}

fn make(path: &Path, snap_len: u32, bytes: u64) -> io::Result<()> {
    let options =
        WriterOptions { snap_len, nanos: false, link: LinkType::ETHERNET, ..Default::default() };
    let sink = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut output = Output {
        writer: CaptureWriter::new(sink, options)?,
        frame: ETHERNET.to_vec(),
        snap_len,
        written: 24,
    };
    let mut talks: Vec<Talk> = (0..TALKS).map(Talk::new).collect();
    let mut due: BinaryHeap<_> = (0..TALKS).map(|i| Reverse((START + i * 37_000, i))).collect();
    while let Some(Reverse((at, i))) = due.pop() {
        let pause = talks[i as usize].step(Time::from_nanos(at), &mut output)?;
        due.push(Reverse((at + pause.as_nanos(), i)));
        if output.written >= bytes {
            break;
        }
    }
    output.writer.finish()?.flush()
}

/// Writes the capture again and again until the file has `bytes`. Ports move by one with each copy
/// in Ethernet frames that hold TCP over IPv4; others stay as they are.
fn repeat(source: &Path, path: &Path, bytes: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut reader = CaptureReader::open(source)?;
    let mut link = LinkType::ETHERNET;
    let mut frames: Vec<(Time, u32, Vec<u8>)> = Vec::new();
    while let Some(frame) = reader.next_frame()? {
        link = frame.link;
        frames.push((frame.time, frame.original_len, frame.bytes.to_vec()));
    }
    let (Some(first), Some(last)) = (frames.first(), frames.last()) else { return Ok(()) };
    let length = last.0.since(first.0) + Span::from_secs(1);
    let sink = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let options = WriterOptions { nanos: false, link, ..Default::default() };
    let mut writer = CaptureWriter::new(sink, options)?;
    let (mut written, mut copy) = (24, 0_u16);
    while written < bytes {
        for (time, original_len, frame) in &mut frames {
            if copy > 0 {
                move_ports(link, frame);
            }
            writer.write_frame(*time + length * u64::from(copy), frame, *original_len)?;
            written += 16 + frame.len() as u64;
        }
        copy = copy.wrapping_add(1);
    }
    writer.finish()?.flush()?;
    Ok(())
}

fn move_ports(link: LinkType, frame: &mut [u8]) {
    let is_tcp = link == LinkType::ETHERNET && frame.len() > 24 && frame[12..14] == [8, 0];
    if !is_tcp || frame[23] != 6 {
        return;
    }
    let at = 14 + usize::from(frame[14] & 15) * 4;
    for port in [at, at + 2] {
        if let Some([high, low]) = frame.get_mut(port..port + 2) {
            [*high, *low] = u16::from_be_bytes([*high, *low]).wrapping_add(1).to_be_bytes();
        }
    }
}

struct Output {
    writer: CaptureWriter<BufWriter<File>>,
    /// Begins with the Ethernet header.
    frame: Vec<u8>,
    snap_len: u32,
    written: u64,
}

impl Output {
    fn put(&mut self, at: Time, packet: &Packet, ip_id: u16) -> io::Result<()> {
        self.frame.truncate(ETHERNET.len());
        // Hosts 0 to 599 are clients in 10.1.0.0/16, the others servers in 10.2.0.0/16.
        self.frame.extend(emit_ipv4(packet, ip_id, |node| {
            let (net, host) = (node.0 / TALKS as u16 + 1, node.0 % TALKS as u16);
            let [high, low] = host.to_be_bytes();
            Ipv4Addr::new(10, net as u8, high, low)
        }));
        self.written += 16 + (self.frame.len() as u64).min(u64::from(self.snap_len));
        self.writer.write_frame(at, &self.frame, self.frame.len() as u32)
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Messages,
    Requests,
    Bulk,
}

/// One connection: where it stands in its cycle.
struct Talk {
    kind: Kind,
    ends: [Addr; 2],
    next: [u32; 2],
    acked: [u32; 2],
    phase: u32,
    ip_id: [u16; 2],
    random: u64,
}

impl Talk {
    fn new(number: u64) -> Self {
        let kind = match number % 60 {
            0 => Kind::Bulk,
            1..=9 => Kind::Requests,
            _ => Kind::Messages,
        };
        let client = Addr { node: NodeId(number as u16), port: 40_000 + number as u16 };
        let server = Addr { node: NodeId((TALKS + number % 16) as u16), port: 4_712 };
        let seq = (number as u32).wrapping_mul(0x9e37_79b9);
        Self {
            kind,
            ends: [client, server],
            next: [seq, !seq],
            acked: [seq.wrapping_add(1), (!seq).wrapping_add(1)],
            phase: 0,
            ip_id: [1, 1],
            random: number * 2 + 1,
        }
    }

    /// A number below `n` (Knuth's linear congruential generator).
    fn random(&mut self, n: u32) -> u32 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.random >> 33) as u32) % n
    }

    fn put(
        &mut self,
        output: &mut Output,
        at: Time,
        from: usize,
        flags: Flags,
        payload_len: u32,
    ) -> io::Result<()> {
        let ms = (at.as_nanos() / 1_000_000) as u32;
        let timestamps = !matches!(self.kind, Kind::Messages);
        let syn = flags.has(Flags::SYN);
        self.ip_id[from] = self.ip_id[from].wrapping_add(1).max(1);
        let segment = TcpRepr {
            seq: Seq(self.next[from]),
            ack: Seq(self.acked[1 - from]),
            flags,
            window: 0x2000,
            options: TcpOptions {
                mss: syn.then_some(1_460),
                window_scale: syn.then_some(7),
                sack_permitted: syn,
                timestamp: timestamps.then_some(Timestamp { value: ms, echo: ms.wrapping_sub(1) }),
                ..TcpOptions::default()
            },
            payload_len,
        };
        self.next[from] = self.next[from].wrapping_add(segment.seq_len());
        let (src, dst, body) = (self.ends[from], self.ends[1 - from], Body::Tcp(segment));
        let packet = Packet { src, dst, ecn: Ecn::NotEct, returned: false, body };
        output.put(at, &packet, self.ip_id[from])
    }

    /// Sends the next packet of the cycle; how long until the one after it.
    fn step(&mut self, at: Time, output: &mut Output) -> io::Result<Span> {
        const SYN_ACK: Flags = Flags::SYN.with(Flags::ACK);
        let phase = self.phase;
        self.phase += 1;
        match phase {
            0 => self.put(output, at, 0, Flags::SYN, 0).map(|()| Span::from_millis(2)),
            1 => self.put(output, at, 1, SYN_ACK, 0).map(|()| Span::from_micros(50)),
            2 => self.put(output, at, 0, Flags::ACK, 0).map(|()| Span::from_millis(5)),
            _ => match self.kind {
                Kind::Messages => self.step_messages(at, output),
                Kind::Requests => self.step_requests(at, output),
                Kind::Bulk => self.step_bulk(at, output),
            },
        }
    }

    /// Small data, its ACK some 38 ms later, the data held until then, and so on.
    fn step_messages(&mut self, at: Time, output: &mut Output) -> io::Result<Span> {
        if self.phase.is_multiple_of(2) {
            self.put(output, at, 0, Flags::ACK.with(Flags::PSH), 96)?;
            return Ok(Span::from_micros(36_000 + u64::from(self.random(4_000))));
        }
        self.acked[0] = self.next[0];
        self.put(output, at, 1, Flags::ACK, 0)?;
        Ok(Span::from_micros(200 + u64::from(self.random(50))))
    }

    /// A request, its response, an ACK, a pause.
    fn step_requests(&mut self, at: Time, output: &mut Output) -> io::Result<Span> {
        let jitter = Span::from_micros(u64::from(self.random(500)));
        Ok(match self.phase % 3 {
            0 => {
                self.put(output, at, 0, Flags::ACK.with(Flags::PSH), 60)?;
                Span::from_millis(2) + jitter
            }
            1 => {
                self.acked[0] = self.next[0];
                let len = 100 + self.random(400);
                self.put(output, at, 1, Flags::ACK.with(Flags::PSH), len)?;
                Span::from_micros(100) + jitter
            }
            _ => {
                self.acked[1] = self.next[1];
                self.put(output, at, 0, Flags::ACK, 0)?;
                Span::from_millis(8) + jitter
            }
        })
    }

    /// Two full segments, an ACK that trails 20 of them; every 400th is sent again.
    fn step_bulk(&mut self, at: Time, output: &mut Output) -> io::Result<Span> {
        if self.phase.is_multiple_of(3) {
            let trail = 20 * 1_448;
            if self.next[0].wrapping_sub(self.acked[0]) > trail {
                self.acked[0] = self.next[0].wrapping_sub(trail);
            }
            self.put(output, at, 1, Flags::ACK, 0)?;
        } else {
            if self.random(400) == 0 {
                self.next[0] = self.next[0].wrapping_sub(1_448);
            }
            self.put(output, at, 0, Flags::ACK, 1_448)?;
        }
        Ok(Span::from_micros(300 + u64::from(self.random(200))))
    }
}

/// Ethernet's header with made-up addresses, and the type of IPv4.
const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
/// Connections at a time.
const TALKS: u64 = 600;
/// The first packet: an instant in November 2023, nanoseconds.
const START: u64 = 1_700_000_000_000_000_000;

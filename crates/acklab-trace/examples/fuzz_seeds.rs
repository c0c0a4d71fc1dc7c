//! Writes a corpus for the fuzz target `capture_reader` into a folder: one conversation in every
//! format, byte order and link type, and the beginnings of the captures in `$ACKLAB_CAPTURES`:
//! `cargo run -p acklab-trace --example fuzz_seeds DIR`.

use std::fs;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use acklab_core::time::Time;
use acklab_trace::capture::{CaptureWriter, Format, LinkType, WriterOptions};
use acklab_trace::frame::encode;
use acklab_trace::segment::{Endpoint, Flags, Options, Segment};

const LINKS: [u16; 11] = [0, 1, 9, 12, 14, 101, 108, 113, 228, 229, 276];

fn main() -> io::Result<()> {
    let dir: PathBuf = std::env::args_os().nth(1).unwrap_or_else(|| "corpus".into()).into();
    fs::create_dir_all(&dir)?;
    for link in LINKS {
        for (format, big_endian, nanos) in [
            (Format::Pcap, false, true),
            (Format::Pcap, true, false),
            (Format::Pcapng, false, false),
            (Format::Pcapng, true, true),
        ] {
            let link = LinkType(link);
            let options =
                WriterOptions { format, link, big_endian, nanos, ..WriterOptions::default() };
            let v6 = link == LinkType::IPV6 || link == LinkType::LINUX_SLL2;
            let capture = conversation(options, v6)?;
            let name = format!("{format:?}-{}-{big_endian}-{nanos}", link.0);
            fs::write(dir.join(&name), &capture)?;
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            gzip.write_all(&capture)?;
            fs::write(dir.join(name + ".gz"), gzip.finish()?)?;
        }
    }
    if let Some(captures) = std::env::var_os("ACKLAB_CAPTURES") {
        copy_beginnings(Path::new(&captures), &dir)?;
    }
    Ok(())
}

fn copy_beginnings(captures: &Path, dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(captures)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "pcap" || e == "pcapng") {
            let bytes = fs::read(&path)?;
            let name = path.file_name().unwrap_or_default();
            fs::write(dir.join(name), &bytes[..bytes.len().min(16 * 1024)])?;
        }
    }
    Ok(())
}

/// A handshake, data with a loss, SACK, a retransmission, a zero window, a probe, and the end.
fn conversation(options: WriterOptions, v6: bool) -> io::Result<Vec<u8>> {
    let addr = |last: u8| -> IpAddr {
        if v6 {
            IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last)])
        } else {
            IpAddr::from([192, 0, 2, last])
        }
    };
    let client = Endpoint { addr: addr(1), port: 40_000 };
    let server = Endpoint { addr: addr(2), port: 502 };
    // From the client; sequence and acknowledgment number, flags, payload length, window.
    let steps: [(bool, u32, u32, u8, u32, u16); 14] = [
        (true, 0xffff_ff00, 0, Flags::SYN, 0, 1_000),
        (false, 100, 0xffff_ff01, Flags::SYN | Flags::ACK, 0, 1_000),
        (true, 0xffff_ff01, 101, Flags::ACK, 0, 1_000),
        (true, 0xffff_ff01, 101, Flags::ACK | Flags::PSH, 48, 1_000),
        (true, 0xffff_ff31, 101, Flags::ACK, 536, 1_000),
        (true, 0x361, 101, Flags::ACK, 536, 1_000),
        (false, 101, 0x149, Flags::ACK, 0, 1_000),
        (true, 0x149, 101, Flags::ACK, 536, 1_000),
        (false, 101, 0x579, Flags::ACK, 0, 0),
        (true, 0x578, 101, Flags::ACK, 0, 1_000),
        (false, 101, 0x579, Flags::ACK | Flags::PSH, 12, 1_000),
        (true, 0x579, 113, Flags::ACK | Flags::FIN, 0, 1_000),
        (false, 113, 0x57a, Flags::ACK | Flags::FIN, 0, 1_000),
        (true, 0x57a, 114, Flags::ACK, 0, 1_000),
    ];
    let payload = [0x5a; 536];
    let mut writer = CaptureWriter::new(Vec::new(), options)?;
    for (number, &(from_client, seq, ack, flags, len, window)) in (0_u32..).zip(&steps) {
        let (src, dst) = if from_client { (client, server) } else { (server, client) };
        let syn = flags & Flags::SYN != 0;
        let segment = Segment {
            frame: u64::from(number) + 1,
            time: Time::from_nanos(1_700_000_000_000_000_000 + u64::from(number) * 1_500_000),
            src,
            dst,
            seq,
            ack,
            flags: Flags(flags),
            window,
            options: Options {
                mss: syn.then_some(1_460),
                window_scale: syn.then_some(2),
                sack_permitted: syn,
                sack_blocks: u8::from(number == 6),
                sack_first: (number == 6).then_some((0x361, 0x579)),
                timestamp: Some((1_000 + number, 999 + number)),
                ..Options::default()
            },
            payload_len: len,
            payload: &payload[..len as usize],
            ttl: 64,
            ip_id: number as u16,
        };
        let mut frame = Vec::new();
        let wire_len = encode(options.link, &segment, &mut frame);
        writer.write_frame(segment.time, &frame, wire_len)?;
    }
    writer.finish()
}

//! Writes a corpus for the fuzz target `capture_reader` into a folder: one conversation in every
//! format, byte order and link type, and the beginnings of the captures in `$ACKLAB_CAPTURES`:
//! `cargo run -p acklab-trace --example fuzz_seeds DIR`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use acklab_core::segment::{Flags, SackBlock, TcpOptions, TcpRepr, Timestamp};
use acklab_core::seq::Seq;
use acklab_core::time::Time;
use acklab_trace::capture::{CaptureWriter, Format, LinkType, WriterOptions};

#[path = "../src/frame/made.rs"]
mod made;

fn main() -> io::Result<()> {
    let dir: PathBuf = std::env::args_os().nth(1).unwrap_or_else(|| "corpus".into()).into();
    fs::create_dir_all(&dir)?;
    for link in made::LINKS {
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
            let capture = conversation(link, v6, options)?;
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
fn conversation(link: LinkType, v6: bool, options: WriterOptions) -> io::Result<Vec<u8>> {
    // From the client; sequence and acknowledgment number, flags, payload length, window.
    let ack = Flags::ACK;
    let steps: [(bool, u32, u32, Flags, u32, u16); 14] = [
        (true, 0xffff_ff00, 0, Flags::SYN, 0, 1_000),
        (false, 100, 0xffff_ff01, Flags::SYN.with(ack), 0, 1_000),
        (true, 0xffff_ff01, 101, ack, 0, 1_000),
        (true, 0xffff_ff01, 101, Flags::PSH.with(ack), 48, 1_000),
        (true, 0xffff_ff31, 101, ack, 536, 1_000),
        (true, 0x361, 101, ack, 536, 1_000),
        (false, 101, 0x149, ack, 0, 1_000),
        (true, 0x149, 101, ack, 536, 1_000),
        (false, 101, 0x579, ack, 0, 0),
        (true, 0x578, 101, ack, 0, 1_000),
        (false, 101, 0x579, Flags::PSH.with(ack), 12, 1_000),
        (true, 0x579, 113, Flags::FIN.with(ack), 0, 1_000),
        (false, 113, 0x57a, Flags::FIN.with(ack), 0, 1_000),
        (true, 0x57a, 114, ack, 0, 1_000),
    ];
    let mut writer = CaptureWriter::new(Vec::new(), options)?;
    for (number, &(from_client, seq, ack, flags, payload_len, window)) in (0_u32..).zip(&steps) {
        let syn = flags.has(Flags::SYN);
        let mut options = TcpOptions {
            mss: syn.then_some(1_460),
            window_scale: syn.then_some(2),
            sack_permitted: syn,
            timestamp: Some(Timestamp { value: 1_000 + number, echo: 999 + number }),
            ..TcpOptions::default()
        };
        if number == 6 {
            options.sack.push(SackBlock { left: Seq(0x361), right: Seq(0x579) });
        }
        let segment = TcpRepr { seq: Seq(seq), ack: Seq(ack), flags, window, options, payload_len };
        let frame = made::frame(link.0, v6, !from_client, segment);
        let time = Time::from_nanos(1_700_000_000_000_000_000 + u64::from(number) * 1_500_000);
        writer.write_frame(time, &frame, frame.len() as u32)?;
    }
    writer.finish()
}

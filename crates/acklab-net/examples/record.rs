//! Records the Linux kernel's write-write-read exchange into a pcapng file; needs root.
//!
//! `cargo run -p acklab-net --example record -- FILE [nodelay]`
//!
//! The file is a section header with the kernel's version, one Ethernet interface with nanosecond
//! stamps, and one enhanced packet block per frame (draft-ietf-opsawg-pcapng, sections 4.1 to 4.3).

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use acklab_core::time::Time;
use acklab_net::record::{self, RecordOptions};

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const LINKTYPE_ETHERNET: u16 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file shall be written?")?;
    let nodelay = match arguments.next().as_deref() {
        None => false,
        Some("nodelay") => true,
        Some(other) => return Err(format!("{other}: the only option is nodelay").into()),
    };

    let mut frames = Vec::new();
    let options = RecordOptions { nodelay, ..RecordOptions::default() };
    record::run(&options, &mut |time, frame| frames.push((time, frame.to_vec())))?;

    let mut out = BufWriter::new(File::create(&path)?);
    write_head(&mut out)?;
    for (time, frame) in &frames {
        write_packet(&mut out, *time, frame)?;
    }
    out.flush()?;
    eprintln!("{path}: {} frames of {} exchanges", frames.len(), options.exchanges);
    Ok(())
}

fn write_head(out: &mut impl Write) -> io::Result<()> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mut section = Vec::new();
    section.extend(0x1A2B_3C4D_u32.to_le_bytes());
    section.extend([1, 0, 0, 0]); // version 1.0
    section.extend((-1i64).to_le_bytes()); // section length: not given
    push_option(&mut section, 3, format!("Linux {}", kernel.trim()).as_bytes());
    push_option(&mut section, 4, b"acklab-net, example record");
    push_option(&mut section, 0, &[]);
    write_block(out, SECTION_HEADER, &section)?;

    let mut interface = Vec::new();
    interface.extend(LINKTYPE_ETHERNET.to_le_bytes());
    interface.extend([0; 6]); // reserved; no snap length
    push_option(&mut interface, 2, b"lo");
    push_option(&mut interface, 9, &[9]); // nanoseconds
    push_option(&mut interface, 0, &[]);
    write_block(out, INTERFACE_DESCRIPTION, &interface)
}

fn write_packet(out: &mut impl Write, time: Time, frame: &[u8]) -> io::Result<()> {
    let length = (frame.len() as u32).to_le_bytes();
    let mut packet = Vec::from(0u32.to_le_bytes()); // interface 0
    packet.extend(((time.as_nanos() >> 32) as u32).to_le_bytes());
    packet.extend((time.as_nanos() as u32).to_le_bytes());
    packet.extend(length); // captured
    packet.extend(length); // on the wire
    packet.extend(frame);
    pad(&mut packet);
    write_block(out, ENHANCED_PACKET, &packet)
}

fn write_block(out: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let length = (12 + body.len() as u32).to_le_bytes();
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&length)?;
    out.write_all(body)?;
    out.write_all(&length)
}

fn push_option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    block.extend(code.to_le_bytes());
    block.extend((value.len() as u16).to_le_bytes());
    block.extend(value);
    pad(block);
}

fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(4), 0);
}

//! Captures of virtual time: the packets of a run as a pcapng file.
//!
//! Joins the simulator, whose packets are values with a payload length, and the capture writer,
//! which writes bytes. Time zero of the world is the epoch; node n has the address 10.0.0.(n+1);
//! payload bytes are zeros. A packet that the simulated path lost after the capture point is in the
//! file, one lost before it is not, as on a real path.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};

use acklab_core::packet::{Addr, Body, Packet};
use acklab_core::time::Time;
use acklab_trace::capture::{CaptureWriter, Format, LinkType, WriterOptions};
use acklab_trace::frame::encode;
use acklab_trace::segment::{Endpoint, Flags, Options, Segment};

use crate::plan::Plan;
use crate::run;
use crate::scenario::{Capture, CapturePoint};

/// Runs the first replication of the plan's first case again and writes what passes `at` to `sink`
/// as pcapng.
pub fn write(plan: &Plan, at: CapturePoint, sink: impl Write) -> io::Result<()> {
    let mut file = CaptureFile::new(sink)?;
    let mut outcome = Ok(());
    run::record(
        plan,
        Capture {
            at,
            tap: &mut |time, packet| {
                if outcome.is_ok() {
                    outcome = file.write(time, packet);
                }
            },
        },
    );
    outcome?;
    file.finish().map(drop)
}

/// A pcapng file of simulated packets.
pub struct CaptureFile<W: Write> {
    writer: CaptureWriter<W>,
    frame: Vec<u8>,
    payload: Vec<u8>,
    frames: u64,
}

impl<W: Write> CaptureFile<W> {
    /// Begins a file.
    pub fn new(sink: W) -> io::Result<Self> {
        let options = WriterOptions { format: Format::Pcapng, ..WriterOptions::default() };
        let writer = CaptureWriter::new(sink, options)?;
        Ok(Self { writer, frame: Vec::new(), payload: Vec::new(), frames: 0 })
    }

    /// Appends a packet; what is not TCP is passed over.
    pub fn write(&mut self, time: Time, packet: &Packet) -> io::Result<()> {
        let Body::Tcp(tcp) = &packet.body else { return Ok(()) };
        self.frames += 1;
        let len = tcp.payload_len as usize;
        if self.payload.len() < len {
            self.payload.resize(len, 0);
        }
        let segment = Segment {
            frame: self.frames,
            time,
            src: endpoint(packet.src),
            dst: endpoint(packet.dst),
            seq: tcp.seq.0,
            ack: tcp.ack.0,
            flags: Flags(tcp.flags.0),
            window: tcp.window,
            options: Options {
                mss: tcp.options.mss,
                window_scale: tcp.options.window_scale,
                sack_permitted: tcp.options.sack_permitted,
                sack_blocks: tcp.options.sack.as_slice().len() as u8,
                sack_first: tcp.options.sack.as_slice().first().map(|b| (b.left.0, b.right.0)),
                timestamp: tcp.options.timestamp.map(|stamp| (stamp.value, stamp.echo)),
                ..Options::default()
            },
            payload_len: tcp.payload_len,
            payload: &self.payload[..len],
            ttl: TTL,
            ip_id: self.frames as u16,
        };
        self.frame.clear();
        let original_len = encode(LinkType::ETHERNET, &segment, &mut self.frame);
        self.writer.write_frame(time, &self.frame, original_len)
    }

    /// Ends the file and hands the sink back.
    pub fn finish(self) -> io::Result<W> {
        self.writer.finish()
    }
}

fn endpoint(addr: Addr) -> Endpoint {
    let host = addr.node.0 + 1;
    let [high, low] = host.to_be_bytes();
    Endpoint { addr: IpAddr::V4(Ipv4Addr::new(10, 0, high, low)), port: addr.port }
}

/// What Linux and the BSDs set; the simulated path has no routers that would lower it.
const TTL: u8 = 64;

//! Captures of virtual time: the packets of a run as a pcapng file.
//!
//! Joins the simulator, whose packets are values with a payload length, and the capture writer,
//! which writes bytes. Time zero of the world is the epoch; nodes have the addresses of
//! [`NodeId::address`];
//! payload bytes are a pattern that depends on the place in the stream alone, a datagram's are zeros. A
//! packet that the simulated path lost after the capture point is in the file, one lost before it is
//! not, as on a real path.

use std::io::{self, Write};

use acklab_core::packet::{NodeId, Packet};
use acklab_core::time::Time;
use acklab_core::wire::emit_ipv4;
use acklab_trace::capture::{CaptureWriter, Format, WriterOptions};

use crate::plan::Plan;
use crate::run;
use crate::scenario::{Capture, CapturePoint};

/// Runs the first replication of the plan's first case again and writes what passes `at` to `sink`
/// as pcapng; tells how many packets passed.
pub fn write(plan: &Plan, at: CapturePoint, sink: impl Write) -> io::Result<u64> {
    let mut file = CaptureFile::new(sink)?;
    let (mut outcome, mut packets) = (Ok(()), 0);
    run::record(
        plan,
        Capture {
            at,
            tap: &mut |time, packet| {
                if outcome.is_ok() {
                    packets += 1;
                    outcome = file.write(time, packet);
                }
            },
        },
    );
    outcome?;
    file.finish().map(|_| packets)
}

/// A pcapng file of simulated packets.
pub struct CaptureFile<W: Write> {
    writer: CaptureWriter<W>,
    /// Begins with the Ethernet header.
    frame: Vec<u8>,
    frames: u16,
}

impl<W: Write> CaptureFile<W> {
    /// Begins a file.
    pub fn new(sink: W) -> io::Result<Self> {
        let options = WriterOptions { format: Format::Pcapng, ..WriterOptions::default() };
        let writer = CaptureWriter::new(sink, options)?;
        Ok(Self { writer, frame: ETHERNET.to_vec(), frames: 0 })
    }

    /// Appends a packet.
    pub fn write(&mut self, time: Time, packet: &Packet) -> io::Result<()> {
        self.frames = self.frames.wrapping_add(1);
        self.frame.truncate(ETHERNET.len());
        self.frame.extend(emit_ipv4(packet, self.frames, NodeId::address));
        self.writer.write_frame(time, &self.frame, self.frame.len() as u32)
    }

    /// Ends the file and hands the sink back.
    pub fn finish(self) -> io::Result<W> {
        self.writer.finish()
    }
}

/// Ethernet's header with made-up addresses, and the type of IPv4.
const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];

//! Writing captures: pcap and pcapng, any byte order and resolution that the reader reads.
//!
//! The caller gives the frame's bytes. The defaults are what tcpdump writes on a PC, with nanoseconds.

use std::io::{self, Write};

use acklab_core::time::Time;

use super::record::CAPTURED_MAX;
use super::{LinkType, pcap, pcapng};

/// The two capture formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The classic format: one link type, no metadata.
    Pcap,
    /// The block format.
    Pcapng,
}

/// How to write; see [`Default`].
#[derive(Clone, Copy, Debug)]
pub struct WriterOptions {
    /// The format.
    pub format: Format,
    /// The link type of every frame.
    pub link: LinkType,
    /// Bytes kept of each frame.
    pub snap_len: u32,
    /// Timestamps in nanoseconds, else in microseconds.
    pub nanos: bool,
    /// Big-endian, else little-endian.
    pub big_endian: bool,
}

/// Little-endian nanosecond pcap of whole Ethernet frames.
impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            format: Format::Pcap,
            link: LinkType::ETHERNET,
            snap_len: CAPTURED_MAX,
            nanos: true,
            big_endian: false,
        }
    }
}

/// Writes a capture to any sink; give it a `BufWriter` or a `Vec`.
///
/// ```
/// use acklab_core::time::Time;
/// use acklab_trace::capture::{CaptureReader, CaptureWriter, WriterOptions};
///
/// let mut writer = CaptureWriter::new(Vec::new(), WriterOptions::default())?;
/// writer.write_frame(Time::from_nanos(1_700_000_000_000_000_000), &[0xff; 60], 60)?;
/// let capture = writer.finish()?;
/// let mut reader = CaptureReader::new(&capture[..])?;
/// let frame = reader.next_frame()?.expect("one frame");
/// assert_eq!((frame.number, frame.bytes), (1, &[0xff; 60][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CaptureWriter<W: Write> {
    sink: W,
    options: WriterOptions,
}

impl<W: Write> CaptureWriter<W> {
    /// Starts a capture: writes the header.
    pub fn new(sink: W, options: WriterOptions) -> io::Result<Self> {
        let mut writer = Self { sink, options };
        match options.format {
            Format::Pcap => {
                writer.u32(if options.nanos { pcap::MAGIC_NANOS } else { pcap::MAGIC_MICROS })?;
                writer.u16(2)?;
                writer.u16(4)?;
                writer.u32(0)?;
                writer.u32(0)?;
                writer.u32(options.snap_len)?;
                writer.u32(u32::from(options.link.0))?;
            }
            Format::Pcapng => {
                writer.sink.write_all(&pcapng::MAGIC)?;
                writer.u32(28)?;
                writer.u32(0x1a2b_3c4d)?;
                writer.u16(1)?;
                writer.u16(0)?;
                writer.sink.write_all(&[0xff; 8])?;
                writer.u32(28)?;
                writer.add_interface(options.link)?;
            }
        }
        Ok(writer)
    }

    fn add_interface(&mut self, link: LinkType) -> io::Result<()> {
        self.u32(pcapng::INTERFACE)?;
        self.u32(32)?;
        self.u16(link.0)?;
        self.u16(0)?;
        self.u32(self.options.snap_len)?;
        self.u16(pcapng::OPT_RESOLUTION)?;
        self.u16(1)?;
        self.sink.write_all(&[if self.options.nanos { 9 } else { 6 }, 0, 0, 0])?;
        self.u32(0)?;
        self.u32(32)
    }

    /// Writes one frame of which `bytes` are at hand and that was `original_len` bytes on the wire.
    pub fn write_frame(&mut self, time: Time, bytes: &[u8], original_len: u32) -> io::Result<()> {
        let kept = &bytes[..bytes.len().min(self.options.snap_len.min(CAPTURED_MAX) as usize)];
        let (nanos, len) = (time.as_nanos(), kept.len() as u32);
        match self.options.format {
            Format::Pcap => {
                let fraction = nanos % 1_000_000_000;
                self.u32((nanos / 1_000_000_000) as u32)?;
                self.u32((if self.options.nanos { fraction } else { fraction / 1_000 }) as u32)?;
                self.u32(len)?;
                self.u32(original_len)?;
                self.sink.write_all(kept)
            }
            Format::Pcapng => {
                let ticks = if self.options.nanos { nanos } else { nanos / 1_000 };
                let padding = (len.next_multiple_of(4) - len) as usize;
                let length = 32 + len + padding as u32;
                self.u32(pcapng::ENHANCED_PACKET)?;
                self.u32(length)?;
                self.u32(0)?;
                self.u32((ticks >> 32) as u32)?;
                self.u32(ticks as u32)?;
                self.u32(len)?;
                self.u32(original_len)?;
                self.sink.write_all(kept)?;
                self.sink.write_all(&[0; 3][..padding])?;
                self.u32(length)
            }
        }
    }

    /// Flushes and hands the sink back.
    pub fn finish(mut self) -> io::Result<W> {
        self.sink.flush()?;
        Ok(self.sink)
    }

    fn u16(&mut self, value: u16) -> io::Result<()> {
        let big = self.options.big_endian;
        self.sink.write_all(&if big { value.to_be_bytes() } else { value.to_le_bytes() })
    }

    fn u32(&mut self, value: u32) -> io::Result<()> {
        let big = self.options.big_endian;
        self.sink.write_all(&if big { value.to_be_bytes() } else { value.to_le_bytes() })
    }
}

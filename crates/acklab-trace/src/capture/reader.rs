//! The streaming reader of a capture in any format.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::input::Input;
use super::record::Record;
use super::{CaptureError, Damage, DamageKind, Format, Frame, error, pcap, pcapng};

enum Parser {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

/// A streaming reader of a capture.
pub struct CaptureReader<'r> {
    input: Input<'r>,
    parser: Parser,
    frames: u64,
    damage: Option<Damage>,
}

impl<'r> CaptureReader<'r> {
    /// Reads the capture at `path`; `-` is standard input.
    pub fn open(path: &Path) -> Result<CaptureReader<'static>, CaptureError> {
        if path.as_os_str() == "-" {
            return CaptureReader::new(std::io::stdin().lock());
        }
        let open = |source| CaptureError::Open { path: path.to_owned(), source };
        let file = File::open(path).map_err(open)?;
        if file.metadata().map_err(open)?.is_dir() {
            return Err(open(std::io::Error::other("it is a directory; give a capture file")));
        }
        CaptureReader::new(file)
    }

    /// Reads a capture from any stream; it need not be buffered.
    pub fn new(source: impl Read + 'r) -> Result<Self, CaptureError> {
        let mut input = Input::new(Box::new(source));
        let parser = match Self::recognise(&mut input)? {
            Format::Pcap => pcap::Pcap::open(&mut input).map(Parser::Pcap),
            Format::Pcapng => Ok(Parser::Pcapng(pcapng::Pcapng::new())),
        };
        let parser = parser.map_err(|kind| {
            CaptureError::Damaged(Damage { frame: 1, offset: 0, kind: Self::blame(&input, kind) })
        })?;
        Ok(Self { input, parser, frames: 0, damage: None })
    }

    fn recognise(input: &mut Input<'_>) -> Result<Format, CaptureError> {
        if input.fill(4) {
            let magic = [0, 1, 2, 3].map(|i| input.bytes(4)[i]);
            if pcap::is_magic(magic) {
                return Ok(Format::Pcap);
            }
            if magic == pcapng::MAGIC {
                return Ok(Format::Pcapng);
            }
        }
        if let Some(e) = input.failure() {
            let kind = std::io::Error::new(e.kind(), e.to_string());
            return Err(CaptureError::Read(kind));
        }
        input.fill(64);
        let head = input.bytes(input.left().min(64));
        if head.is_empty() && !input.is_gzip() {
            return Err(CaptureError::Empty);
        }
        Err(error::not_a_capture(head, input.is_gzip()))
    }

    /// The next frame; `None` at the end, or where the damage begins. An error only where not one
    /// frame could be read.
    #[expect(clippy::inline_always, reason = "a frame returned through memory costs 10 % of a run")]
    #[inline(always)]
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, CaptureError> {
        if self.damage.is_some() {
            return Ok(None);
        }
        let record = match &mut self.parser {
            Parser::Pcap(pcap) => pcap.next_record(&mut self.input),
            Parser::Pcapng(pcapng) => pcapng.next_record(&mut self.input),
        };
        match record {
            Ok(Record::Frame { time, link, original_len, len, pad }) => {
                self.frames += 1;
                let bytes = &self.input.take(len + pad)[..len];
                Ok(Some(Frame { number: self.frames, time, link, original_len, bytes }))
            }
            Ok(Record::End) => Ok(None),
            Err(kind) => self.stop_at_damage(kind).map(|()| None),
        }
    }

    #[cold]
    fn stop_at_damage(&mut self, kind: DamageKind) -> Result<(), CaptureError> {
        let kind = Self::blame(&self.input, kind);
        let damage = Damage { frame: self.frames + 1, offset: self.input.offset(), kind };
        if self.frames == 0 {
            return Err(CaptureError::Damaged(damage));
        }
        self.damage = Some(damage);
        Ok(())
    }

    /// A record may be cut because the stream under it broke: then that is to blame.
    fn blame(input: &Input<'_>, kind: DamageKind) -> DamageKind {
        match (input.failure(), &kind) {
            (Some(e), DamageKind::Cut { .. }) if input.is_gzip() => {
                DamageKind::Unpack(e.to_string())
            }
            (Some(e), DamageKind::Cut { .. }) => DamageKind::Read(e.to_string()),
            _ => kind,
        }
    }

    /// Where and why the reading stopped short of the end, once [`next_frame`](Self::next_frame)
    /// has said `None`.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// Bytes taken from the source so far; packed ones where it is gzipped.
    pub fn source_bytes(&self) -> u64 {
        self.input.source_bytes()
    }
}

//! The bytes of a capture: one large buffer over a file, a pipe or a gzip stream.
//!
//! A record is always handed out as one slice of the buffer, so nothing is allocated or copied per
//! packet. The stream is read in chunks of 64 KB, always to the front of the buffer, where the
//! unread tail is moved: so the bytes in use stay in the second-level cache beside the connections.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::record::CAPTURED_MAX;

/// The buffer: the longest pcapng block.
const BUFFER_BYTES: usize = 2 * CAPTURED_MAX as usize;
/// Most bytes read at a time.
const CHUNK_BYTES: usize = 65_536;

/// Counts what was read from the source, for the progress bar.
struct Counted<'r> {
    source: Box<dyn Read + 'r>,
    bytes: u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(out)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

enum Source<'r> {
    Plain(Counted<'r>),
    Gzip(Box<MultiGzDecoder<io::Chain<io::Cursor<Vec<u8>>, Counted<'r>>>>),
}

/// A buffered byte stream that knows its offset and how it ended.
pub(super) struct Input<'r> {
    source: Source<'r>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `start` in the unpacked stream.
    offset: u64,
    ended: bool,
    failure: Option<io::Error>,
}

impl<'r> Input<'r> {
    /// Opens the stream and looks through gzip.
    pub(super) fn new(source: Box<dyn Read + 'r>) -> Self {
        let mut input = Self {
            source: Source::Plain(Counted { source, bytes: 0 }),
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
            failure: None,
        };
        if input.fill(3) && input.bytes(3) == GZIP_MAGIC {
            input.unpack();
        }
        input
    }

    fn unpack(&mut self) {
        let head = io::Cursor::new(self.buffer[self.start..self.end].to_vec());
        let empty = Source::Plain(Counted { source: Box::new(io::empty()), bytes: 0 });
        let Source::Plain(plain) = std::mem::replace(&mut self.source, empty) else { return };
        self.source = Source::Gzip(Box::new(MultiGzDecoder::new(head.chain(plain))));
        (self.start, self.end, self.ended) = (0, 0, false);
    }

    /// Whether the capture is gzipped.
    pub(super) fn is_gzip(&self) -> bool {
        matches!(self.source, Source::Gzip(_))
    }

    /// Offset of the next unread byte in the unpacked stream.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes taken from the source so far (packed ones where it is gzipped).
    pub(super) fn source_bytes(&self) -> u64 {
        match &self.source {
            Source::Plain(counted) => counted.bytes,
            Source::Gzip(decoder) => decoder.get_ref().get_ref().1.bytes,
        }
    }

    /// Why the stream ended, where it did not end by itself.
    pub(super) fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// Unread bytes at hand.
    pub(super) fn left(&self) -> usize {
        self.end - self.start
    }

    /// Makes `n` unread bytes available; false where the stream ends before. `n` is at most the
    /// buffer's size.
    #[inline]
    pub(super) fn fill(&mut self, n: usize) -> bool {
        self.left() >= n || self.refill(n)
    }

    #[cold]
    fn refill(&mut self, n: usize) -> bool {
        debug_assert!(n <= BUFFER_BYTES);
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < n && !self.ended {
            let space = &mut self.buffer[self.end..];
            let most = space.len().min(CHUNK_BYTES);
            let space = &mut space[..most];
            let read = match &mut self.source {
                Source::Plain(source) => source.read(space),
                Source::Gzip(source) => source.read(space),
            };
            match read {
                Ok(0) => self.ended = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.ended = true;
                    self.failure = Some(e);
                }
            }
        }
        self.end >= n
    }

    /// The next `n` bytes, which [`fill`](Self::fill) made available, without taking them.
    #[inline]
    pub(super) fn bytes(&self, n: usize) -> &[u8] {
        &self.buffer[self.start..self.start + n]
    }

    /// Takes `n` bytes that [`fill`](Self::fill) made available.
    #[inline]
    pub(super) fn take(&mut self, n: usize) -> &[u8] {
        let start = self.start;
        self.start += n;
        self.offset += n as u64;
        &self.buffer[start..start + n]
    }

    /// Passes over `n` bytes, however many; false where the stream ends before.
    pub(super) fn skip(&mut self, n: u64) -> bool {
        let mut left = n;
        loop {
            let step = left.min(self.left() as u64);
            self.take(step as usize);
            left -= step;
            if left == 0 {
                return true;
            }
            if !self.fill(1) {
                return false;
            }
        }
    }
}

/// ID1, ID2 and CM = deflate (RFC 1952 section 2.3.1).
const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];

//! What a stream carries: bytes of a file, a pipe or a terminal that go, and where those that come are put.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use acklab_core::time::Time;

use super::stream::Stream;

/// Bytes read from a file at a time.
const BLOCK: usize = 64 << 10;
/// So much a pipe takes without blocking when it says that it takes anything (pipe(7), PIPE_BUF).
const PIPE_BUF: usize = 4096;

/// A file, a pipe or a terminal.
#[derive(Debug)]
pub struct Handle {
    file: File,
    /// Reads and writes never wait.
    regular: bool,
}

impl Handle {
    /// Looks at what it is.
    pub fn new(file: File) -> io::Result<Self> {
        Ok(Self { regular: file.metadata()?.is_file(), file })
    }
}

/// Where bytes that came are put.
#[derive(Debug)]
pub enum Taker {
    /// Nowhere.
    Discard,
    /// They go back to the peer.
    Echo,
    /// Into a file, a pipe or a terminal.
    File(Handle),
}

/// What one stream carries, and how far it is.
#[derive(Debug)]
pub struct Payload {
    from: Option<Handle>,
    to: Taker,
    /// Read from the file and not written to the stream.
    waiting: Vec<u8>,
    sent: Side,
    received: Side,
}

/// One direction's bytes.
#[derive(Clone, Debug, Default)]
pub struct Side {
    bytes: u64,
    hash: Box<blake3::Hasher>,
}

impl Side {
    fn note(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hash.update(bytes);
    }

    /// How many.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// BLAKE3 of them all, in hexadecimal.
    pub fn hash(&self) -> String {
        self.hash.finalize().to_hex().to_string()
    }
}

/// What went wrong, and with which side.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// What is to be sent cannot be read.
    #[error("read what is to be sent: {0}")]
    Read(io::Error),
    /// What came cannot be written.
    #[error("write what came: {0}")]
    Write(io::Error),
}

impl Payload {
    /// What goes, if anything does, and where what comes is put.
    pub fn new(from: Option<Handle>, to: Taker) -> Self {
        let (sent, received) = (Side::default(), Side::default());
        Self { from, to, waiting: Vec::new(), sent, received }
    }

    /// What went.
    pub const fn sent(&self) -> &Side {
        &self.sent
    }

    /// What came.
    pub const fn received(&self) -> &Side {
        &self.received
    }

    /// The descriptors that it waits for: to read what goes on, and to write what came.
    pub(super) fn waits_for(&self, stream: &Stream) -> [Option<BorrowedFd<'_>>; 2] {
        let reads = self.waiting.is_empty() && stream.room() > 0;
        let writes = stream.unread().iter().any(|half| !half.is_empty());
        let taker = match &self.to {
            Taker::File(handle) if writes => Some(handle.file.as_fd()),
            _ => None,
        };
        [self.from.as_ref().filter(|_| reads).map(|handle| handle.file.as_fd()), taker]
    }

    /// Moves what can be moved without waiting; `ready` says which of the descriptors are.
    pub(super) fn progress(
        &mut self,
        now: Time,
        stream: &mut Stream,
        ready: [bool; 2],
    ) -> Result<(), PayloadError> {
        self.take(now, stream, ready[1]).map_err(PayloadError::Write)?;
        self.give(now, stream, ready[0]).map_err(PayloadError::Read)
    }

    /// What came is put where it belongs.
    fn take(&mut self, now: Time, stream: &mut Stream, ready: bool) -> io::Result<()> {
        loop {
            let [half, _] = stream.unread();
            if half.is_empty() {
                return Ok(());
            }
            let taken = match &mut self.to {
                Taker::Discard => half.len(),
                Taker::Echo => {
                    let bytes = half.to_vec();
                    let taken = stream.write(now, &bytes);
                    self.sent.note(&bytes[..taken]);
                    taken
                }
                Taker::File(Handle { regular, .. }) if !ready && !*regular => return Ok(()),
                Taker::File(Handle { file, regular }) => {
                    let most = if *regular { half.len() } else { PIPE_BUF };
                    match file.write(&half[..half.len().min(most)]) {
                        Err(error) if is_passing(&error) => return Ok(()),
                        written => written?,
                    }
                }
            };
            if taken == 0 {
                return Ok(());
            }
            let [half, _] = stream.unread();
            self.received.note(&half[..taken]);
            stream.consume(now, taken);
            if matches!(&self.to, Taker::File(handle) if !handle.regular) {
                return Ok(());
            }
        }
    }

    /// What goes is written to the stream, and then its end.
    fn give(&mut self, now: Time, stream: &mut Stream, mut ready: bool) -> io::Result<()> {
        loop {
            if !self.waiting.is_empty() {
                let taken = stream.write(now, &self.waiting);
                self.sent.note(&self.waiting[..taken]);
                self.waiting.drain(..taken);
            }
            let Some(Handle { file, regular }) = &mut self.from else { break };
            ready |= *regular;
            if !ready || !self.waiting.is_empty() || stream.room() == 0 {
                return Ok(());
            }
            self.waiting.resize(BLOCK.min(stream.room()), 0);
            let read = match file.read(&mut self.waiting) {
                Err(error) if is_passing(&error) => 0,
                Ok(0) => {
                    self.waiting.clear();
                    stream.close(now);
                    self.from = None;
                    return Ok(());
                }
                read => read?,
            };
            self.waiting.truncate(read);
            // A pipe is asked again when it says that there is more.
            ready = false;
            if read == 0 {
                return Ok(());
            }
        }
        // Who has nothing to say closes after the peer.
        if stream.is_read_out() && self.waiting.is_empty() {
            stream.close(now);
        }
        Ok(())
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

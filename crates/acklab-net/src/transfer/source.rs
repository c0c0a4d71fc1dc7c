//! A file as the sender reads it: its bytes, its holes, and whether it stayed as it was.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use acklab_core::ranges::RangeSet;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::{Whence, lseek};

use super::chunk::{CHUNK, CHUNKS_MAX, chunks};
use super::walk::Facts;

/// Holes that are told to the receiver; what is beyond is sent as zeros.
const HOLES_MAX: usize = 50_000;

#[derive(Debug)]
pub struct Source {
    file: File,
    facts: Facts,
}

impl Source {
    /// Opens a regular file; it must not be a link by now.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Non-blocking, so that a pipe that took the file's place does not stop the thread.
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("is no longer a regular file"));
        }
        let facts = Facts::new(&metadata);
        Ok(Self { file, facts })
    }

    /// What it was when it was opened.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Whether it is still what `facts` say, as far as its content goes.
    pub fn is_still(&self, facts: &Facts) -> bool {
        self.file.metadata().is_ok_and(|metadata| {
            let now = Facts::new(&metadata);
            (now.size, now.mtime, now.inode) == (facts.size, facts.mtime, facts.inode)
        })
    }

    /// An error where the file has not the size that it says, or more than a transfer can name.
    pub fn check_size(&self) -> io::Result<()> {
        let size = self.facts.size;
        if chunks(size) > CHUNKS_MAX {
            return Err(io::Error::other("is larger than 16 TiB, the most that one file may have"));
        }
        // Files of /proc say that they are empty.
        if size == 0 && self.file.read_at(&mut [0], 0)? > 0 {
            let mend =
                "says that it is empty and is not; send it as a stream: acklab send - < FILE";
            return Err(io::Error::other(mend));
        }
        Ok(())
    }

    /// The chunks that lie wholly in holes.
    pub fn holes(&self) -> io::Result<RangeSet> {
        let mut holes = RangeSet::default();
        let size = self.facts.size;
        // st_blocks counts 512 bytes whatever the file system's blocks are.
        if self.file.metadata()?.blocks() * 512 >= size {
            return Ok(holes);
        }
        let mut at = 0;
        while at < size && holes.len() < HOLES_MAX {
            let hole = match lseek(&self.file, at as i64, Whence::SeekHole) {
                Ok(hole) => hole as u64,
                Err(Errno::ENXIO | Errno::EINVAL) => break,
                Err(errno) => return Err(errno.into()),
            };
            at = match lseek(&self.file, hole as i64, Whence::SeekData) {
                Ok(data) => data as u64,
                Err(Errno::ENXIO) => size,
                Err(errno) => return Err(errno.into()),
            };
            let end = if at >= size { chunks(size) } else { at / CHUNK };
            holes.insert(hole.div_ceil(CHUNK)..end);
        }
        Ok(holes)
    }

    /// Appends `len` bytes from `offset` on to `block`. Fewer mean that the file has become shorter.
    pub fn read(&self, block: &mut Vec<u8>, offset: u64, len: usize) -> io::Result<usize> {
        let start = block.len();
        block.resize(start + len, 0);
        let mut done = 0;
        while done < len {
            match self.file.read_at(&mut block[start + done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

//! Records: what the two ends of a transfer say to each other (docs/rudp.md section 10).
//!
//! A record is its type (1 byte), the length of its fields (varint of RFC 9000 section 16), and the
//! fields. After a CHUNK follow, outside of its length, the bytes of the chunk and its 32-byte value.
//! Everything is checked while it is read; what is left for the state machines is whether a record may
//! come now.

use acklab_core::ranges::RangeSet;
use acklab_rudp::wire::{Malformed, Reader, Writer, varint};

use super::chunk::{CHUNKS_MAX, Value, chunks};
use super::name::{PATH_MAX, shown};

/// The version that is spoken.
pub const VERSION: u8 = 4;
/// Longest fields of a record, bytes. An ENTRY with as many holes as are told stays below it.
pub const RECORD_MAX: u64 = 1 << 20;
/// Longest reason for a refusal, bytes.
pub const REASON_MAX: usize = 200;

/// What cannot be understood or may not come now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub &'static str);

impl From<Malformed> for Broken {
    fn from(_: Malformed) -> Self {
        Self("a record ends within a field")
    }
}

/// A transfer, the same for every run of the same command.
pub type TransferId = [u8; 16];

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File = 0,
    /// A directory; what is in it follows.
    Directory = 1,
    /// A directory of which everything was named; its permissions and time are set now.
    DirectoryEnd = 2,
    /// Bytes of a length that ROOT tells.
    Stream = 3,
    /// A symbolic link; nothing follows.
    Link = 4,
}

/// A time of the file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime {
    /// Seconds since 1970.
    pub seconds: i64,
    /// And nanoseconds.
    pub nanos: u32,
}

/// A file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Counts the entries from 0.
    pub index: u64,
    pub kind: Kind,
    /// Permissions, the lowest 12 bits of `st_mode`.
    pub mode: u32,
    /// When it was changed.
    pub mtime: FileTime,
    /// Bytes; 0 unless it is a file.
    pub size: u64,
    /// Chunks that are holes.
    pub holes: RangeSet,
    /// Where a symbolic link leads; empty unless it is one.
    pub target: Vec<u8>,
    /// As the peer gave it; not to be used before `Name::new` has seen it.
    pub path: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The sender's first.
    Hello {
        version: u8,
        /// Whether the sender waits for what the receiver holds before it sends data.
        asks: bool,
        /// The sender sends no data: it wants to know what it would have to. Then it asks, too.
        rehearses: bool,
        transfer: TransferId,
        /// Entries in all.
        count: u64,
        /// Bytes in all.
        bytes: u64,
        /// Bytes of these that take room, at least: holes aside.
        data: u64,
    },
    /// Names a file.
    Entry(Entry),
    /// A chunk: its bytes and its value follow.
    Chunk {
        index: u64,
        chunk: u64,
        /// Bytes of it that follow.
        len: u64,
    },
    /// All chunks were sent.
    Root { index: u64, size: u64, hash: Value },
    /// The sender gives a file up: it changed while it was read, or the receiver refused it.
    Drop { index: u64 },
    /// The sender has named everything.
    Done,
    /// A file or folder will not come: it could not be read, or changed again and again. Before its DROP, if it
    /// was named, and else before DONE.
    Failed {
        /// Which one and why, for people.
        reason: String,
    },
    /// The receiver's first.
    Welcome {
        version: u8,
        /// Whether HAVE will answer each file; false: send all of it.
        held: bool,
    },
    /// What the receiver holds of a file.
    Have {
        index: u64,
        /// Verified chunks.
        chunks: RangeSet,
    },
    /// Chunks that are in the journal.
    Confirm { index: u64, chunks: RangeSet },
    /// A file stands under its name.
    Stored {
        index: u64,
        /// Whether it stood there before.
        held: bool,
    },
    /// A file will not be taken.
    Refused {
        index: u64,
        /// Why, for people.
        reason: String,
    },
    /// Chunks that must be sent again.
    Bad { index: u64, chunks: RangeSet },
    /// Everything is stored or refused.
    Finished {
        /// Entries stored.
        stored: u64,
        /// Entries refused.
        refused: u64,
    },
}

impl Record {
    fn number(&self) -> u8 {
        match self {
            Self::Hello { .. } => 1,
            Self::Entry(_) => 2,
            Self::Chunk { .. } => 3,
            Self::Root { .. } => 4,
            Self::Drop { .. } => 5,
            Self::Done => 6,
            Self::Failed { .. } => 7,
            Self::Welcome { .. } => 17,
            Self::Have { .. } => 18,
            Self::Confirm { .. } => 19,
            Self::Stored { .. } => 20,
            Self::Refused { .. } => 21,
            Self::Bad { .. } => 22,
            Self::Finished { .. } => 23,
        }
    }

    /// Appends the record.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut fields = Vec::new();
        self.put_fields(&mut fields);
        out.push(self.number());
        put_varint(out, fields.len() as u64);
        out.extend_from_slice(&fields);
    }

    fn put_fields(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello { version, asks, rehearses, transfer, count, bytes, data } => {
                out.extend_from_slice(&[*version, u8::from(*asks) | u8::from(*rehearses) << 1]);
                out.extend_from_slice(transfer);
                put_varints(out, [*count, *bytes, *data]);
            }
            Self::Entry(entry) => entry.put(out),
            Self::Chunk { index, chunk, len } => {
                put_varints(out, [*index, *chunk, *len]);
            }
            Self::Root { index, size, hash } => {
                put_varints(out, [*index, *size]);
                out.extend_from_slice(hash);
            }
            Self::Drop { index } => put_varint(out, *index),
            Self::Done => {}
            Self::Failed { reason } => put_reason(out, reason),
            Self::Welcome { version, held } => {
                out.extend_from_slice(&[*version, u8::from(*held)]);
            }
            Self::Have { index, chunks }
            | Self::Confirm { index, chunks }
            | Self::Bad { index, chunks } => {
                put_varint(out, *index);
                put_chunks(out, chunks);
            }
            Self::Stored { index, held } => {
                put_varint(out, *index);
                out.push(u8::from(*held));
            }
            Self::Refused { index, reason } => {
                put_varint(out, *index);
                put_reason(out, reason);
            }
            Self::Finished { stored, refused } => {
                put_varints(out, [*stored, *refused]);
            }
        }
    }

    /// The record at the start of `input` and its length; `None` where more bytes are needed.
    pub fn parse(input: &[u8]) -> Result<Option<(Self, usize)>, Broken> {
        let mut rest = Reader::new(input);
        let Ok(number) = rest.u8() else { return Ok(None) };
        if !matches!(number, 1..=7 | 17..=23) {
            return Err(Broken("a record has an unknown type"));
        }
        let Ok(len) = rest.varint() else { return Ok(None) };
        if len > RECORD_MAX {
            return Err(Broken("a record is longer than 1 MiB"));
        }
        let Ok(fields) = rest.take(len) else { return Ok(None) };
        let mut fields = Reader::new(fields);
        let record = Self::take(number, &mut fields)?;
        if !fields.is_empty() {
            return Err(Broken("a record is longer than its fields"));
        }
        Ok(Some((record, input.len() - rest.remaining())))
    }

    fn take(number: u8, input: &mut Reader<'_>) -> Result<Self, Broken> {
        Ok(match number {
            1 => {
                let (version, flags) = (input.u8()?, input.u8()?);
                // A rehearsal without questions would be none.
                if !matches!(flags, 0 | 1 | 3) {
                    return Err(Broken("HELLO has flags that are not known"));
                }
                Self::Hello {
                    version,
                    asks: flags & 1 > 0,
                    rehearses: flags & 2 > 0,
                    transfer: *input.array()?,
                    count: input.varint()?,
                    bytes: input.varint()?,
                    data: input.varint()?,
                }
            }
            2 => Self::Entry(Entry::take(input)?),
            3 => {
                Self::Chunk { index: input.varint()?, chunk: input.varint()?, len: input.varint()? }
            }
            4 => {
                Self::Root { index: input.varint()?, size: input.varint()?, hash: *input.array()? }
            }
            5 => Self::Drop { index: input.varint()? },
            6 => Self::Done,
            7 => Self::Failed { reason: take_reason(input)? },
            17 => Self::Welcome { version: input.u8()?, held: take_bool(input)? },
            18 => Self::Have { index: input.varint()?, chunks: take_chunks(input, CHUNKS_MAX)? },
            19 => Self::Confirm { index: input.varint()?, chunks: take_chunks(input, CHUNKS_MAX)? },
            20 => Self::Stored { index: input.varint()?, held: take_bool(input)? },
            21 => Self::Refused { index: input.varint()?, reason: take_reason(input)? },
            22 => Self::Bad { index: input.varint()?, chunks: take_chunks(input, CHUNKS_MAX)? },
            _ => Self::Finished { stored: input.varint()?, refused: input.varint()? },
        })
    }
}

impl Entry {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.index);
        out.push(self.kind as u8);
        put_varint(out, u64::from(self.mode));
        out.extend_from_slice(&self.mtime.seconds.to_be_bytes());
        put_varint(out, u64::from(self.mtime.nanos));
        put_varint(out, self.size);
        put_chunks(out, &self.holes);
        if self.kind == Kind::Link {
            put_varint(out, self.target.len() as u64);
            out.extend_from_slice(&self.target);
        }
        out.extend_from_slice(&self.path);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Broken> {
        let index = input.varint()?;
        let kind = match input.u8()? {
            0 => Kind::File,
            1 => Kind::Directory,
            2 => Kind::DirectoryEnd,
            3 => Kind::Stream,
            4 => Kind::Link,
            _ => return Err(Broken("an entry is neither a file nor a directory")),
        };
        let mode = input.varint()? as u32 & 0o7777;
        let seconds = i64::from_be_bytes(*input.array()?);
        let nanos = input.varint()?;
        if nanos >= 1_000_000_000 {
            return Err(Broken("a time has more than a second of nanoseconds"));
        }
        let size = input.varint()?;
        if chunks(size) > CHUNKS_MAX || (kind != Kind::File && size > 0) {
            return Err(Broken("an entry's size is not possible"));
        }
        let holes = take_chunks(input, chunks(size))?;
        let target = if kind == Kind::Link { input.varint()? } else { 0 };
        let target = input.take(target)?.to_vec();
        let path = input.rest().to_vec();
        if path.len() > PATH_MAX || target.len() > PATH_MAX {
            return Err(Broken("a path is longer than 4096 bytes"));
        }
        let mtime = FileTime { seconds, nanos: nanos as u32 };
        Ok(Self { index, kind, mode, mtime, size, holes, target, path })
    }
}

/// Appends a varint; what does not fit becomes the largest.
fn put_varint(out: &mut Vec<u8>, value: u64) {
    let (value, start) = (value.min(varint::MAX), out.len());
    out.resize(start + varint::len(value), 0);
    Writer::new(&mut out[start..]).put_varint(value);
}

fn put_varints<const N: usize>(out: &mut Vec<u8>, values: [u64; N]) {
    for value in values {
        put_varint(out, value);
    }
}

/// Appends words for people.
fn put_reason(out: &mut Vec<u8>, reason: &str) {
    let end = reason.floor_char_boundary(REASON_MAX);
    out.extend_from_slice(&reason.as_bytes()[..end]);
}

fn take_reason(input: &mut Reader<'_>) -> Result<String, Broken> {
    Ok(shown(input.take(input.remaining().min(REASON_MAX) as u64)?))
}

fn take_bool(input: &mut Reader<'_>) -> Result<bool, Broken> {
    match input.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Broken("a flag is neither 0 nor 1")),
    }
}

/// Appends the number of ranges, then for each the gap before it and its length.
fn put_chunks(out: &mut Vec<u8>, chunks: &RangeSet) {
    put_varint(out, chunks.len() as u64);
    let mut at = 0;
    for range in chunks.iter() {
        put_varints(out, [range.start - at, range.end - range.start]);
        at = range.end;
    }
}

/// Reads what [`put_chunks`] wrote; numbers must be below `end`.
fn take_chunks(input: &mut Reader<'_>, end: u64) -> Result<RangeSet, Broken> {
    let count = input.varint()?;
    let mut chunks = RangeSet::new();
    let mut at = 0_u64;
    for index in 0..count {
        let (gap, len) = (input.varint()?, input.varint()?);
        let start = at.checked_add(gap).filter(|_| index == 0 || gap > 0);
        let range = start.and_then(|start| Some(start..start.checked_add(len)?));
        let range = range
            .filter(|range| !range.is_empty() && range.end <= end)
            .ok_or(Broken("a list of chunks is out of order or too long"))?;
        at = range.end;
        chunks.insert(range);
    }
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Record> {
        let mut some = RangeSet::default();
        some.insert(0..3);
        some.insert(70..20_000);
        let entry = Entry {
            index: 900,
            kind: Kind::File,
            mode: 0o4755,
            mtime: FileTime { seconds: -5, nanos: 999_999_999 },
            size: 20_001 << 20,
            holes: some.clone(),
            target: Vec::new(),
            path: b"a/\xffb".to_vec(),
        };
        let link = Entry {
            kind: Kind::Link,
            size: 0,
            holes: RangeSet::default(),
            target: b"../a".to_vec(),
            ..entry.clone()
        };
        vec![
            Record::Hello {
                version: 1,
                asks: true,
                rehearses: true,
                transfer: [7; 16],
                count: 70_000,
                bytes: 1 << 61,
                data: 1 << 40,
            },
            Record::Entry(entry),
            Record::Entry(link),
            Record::Chunk { index: 1, chunk: 63, len: CHUNKS_MAX },
            Record::Root { index: 1, size: 64, hash: [9; 32] },
            Record::Drop { index: 16_384 },
            Record::Done,
            Record::Welcome { version: 1, held: false },
            Record::Have { index: 0, chunks: some.clone() },
            Record::Confirm { index: 0, chunks: RangeSet::default() },
            Record::Stored { index: 3, held: true },
            Record::Refused { index: 3, reason: "no room".to_owned() },
            Record::Bad { index: 3, chunks: some },
            Record::Finished { stored: 1, refused: 2 },
        ]
    }

    #[test]
    fn records_read_as_they_were_written_and_a_part_of_one_waits_for_the_rest() {
        for record in samples() {
            let mut bytes = Vec::new();
            record.put(&mut bytes);
            let len = bytes.len();
            bytes.extend_from_slice(b"more");
            assert_eq!(Record::parse(&bytes), Ok(Some((record, len))));
            assert!((0..len).all(|cut| Record::parse(&bytes[..cut]) == Ok(None)));
        }
    }

    #[test]
    fn damaged_records_are_refused_or_read_as_others_and_never_panic() {
        for record in samples() {
            let mut bytes = Vec::new();
            record.put(&mut bytes);
            for at in 0..bytes.len() {
                for flip in [1, 0x40, 0x80, 0xff] {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= flip;
                    if let Ok(Some((read, _))) = Record::parse(&damaged) {
                        let mut again = Vec::new();
                        read.put(&mut again);
                        assert_eq!(
                            Record::parse(&again).map(|it| it.map(|it| it.0)),
                            Ok(Some(read))
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn lists_of_chunks_that_lie_are_refused() {
        for bytes in [&[1_u8, 0, 0][..], &[2, 0, 1, 0, 1], &[1, 5, 6], &[1, 0], &[200]] {
            assert!(take_chunks(&mut Reader::new(bytes), 10).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn impossible_records_are_told_apart_from_unfinished_ones() {
        for bytes in [
            &[9_u8, 0][..],         // unknown type
            &[6, 1, 0],             // DONE with a field
            &[5, 0],                // DROP without one
            &[20, 2, 0, 2],         // a flag of 2
            &[6, 0x80, 0x10, 0, 1], // longer than a record may be
        ] {
            assert!(Record::parse(bytes).is_err(), "{bytes:?}");
        }
    }
}

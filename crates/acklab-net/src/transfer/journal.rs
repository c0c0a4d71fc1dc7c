//! The journal of a file that is not complete: which of its chunks were written and what they hash to.
//!
//! A header, then 40 bytes per verified chunk (number, value, check), appended after the chunk was
//! written. Killing the process loses no written page, so what the journal says holds; a torn last
//! record is cut off. A crash of the machine can lose pages that the journal vouches for; therefore what
//! it says is a claim until the end of the file, where the receiver hashes the data anew (proof.rs).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::chunk::{Value, Values};

const MAGIC: &[u8; 8] = b"acklabJ1";
/// Magic, file id, size, check.
const HEADER: usize = 8 + 16 + 8 + 4;
/// Chunk, value, check.
const RECORD: usize = 4 + 32 + 4;

/// Identifies a file of a transfer: path, size and time.
pub type FileId = [u8; 16];

#[derive(Debug)]
pub struct Journal {
    file: File,
    end: u64,
    id: FileId,
}

impl Journal {
    /// Begins a journal in an empty file.
    pub fn create(file: File, id: FileId, size: u64) -> io::Result<Self> {
        let mut journal = Self { file, end: 0, id };
        journal.begin(size)?;
        Ok(journal)
    }

    fn begin(&mut self, size: u64) -> io::Result<()> {
        self.file.set_len(0)?;
        self.end = 0;
        self.append(&header(self.id, size))
    }

    /// Opens a journal that was left, with the values of its chunks; `None` if it is of another file.
    pub fn open(file: File, id: FileId, size: u64) -> io::Result<Option<(Self, Values)>> {
        let mut bytes = vec![0; file.metadata()?.len().min(LEN_MAX) as usize];
        file.read_exact_at(&mut bytes, 0)?;
        let Some((values, count)) = parse(&bytes, id, size) else { return Ok(None) };
        let end = (HEADER + count * RECORD) as u64;
        file.set_len(end)?;
        Ok(Some((Self { file, end, id }, values)))
    }

    /// Adds chunks that were written.
    pub fn add(&mut self, chunks: &[(u64, Value)]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(chunks.len() * RECORD);
        for (chunk, value) in chunks {
            bytes.extend_from_slice(&record(self.id, *chunk as u32, value));
        }
        self.append(&bytes)
    }

    /// Writes the journal anew, with these chunks alone.
    pub fn rewrite(&mut self, size: u64, values: &Values) -> io::Result<()> {
        self.begin(size)?;
        let all: Vec<_> = values.iter().collect();
        self.add(&all)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(())
    }
}

/// More than the journal of the largest file has.
const LEN_MAX: u64 = (HEADER + RECORD) as u64 * (super::chunk::CHUNKS_MAX + 1);

fn header(id: FileId, size: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&id);
    bytes.extend_from_slice(&size.to_be_bytes());
    bytes.extend_from_slice(&check(id, &bytes[8..]));
    bytes
}

fn record(id: FileId, chunk: u32, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(RECORD);
    bytes.extend_from_slice(&chunk.to_be_bytes());
    bytes.extend_from_slice(value);
    bytes.extend_from_slice(&check(id, &bytes));
    bytes
}

fn check(id: FileId, bytes: &[u8]) -> [u8; 4] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&id).update(bytes);
    let [a, b, c, d, ..] = *hasher.finalize().as_bytes();
    [a, b, c, d]
}

/// The chunks and how many good records they came from.
fn parse(bytes: &[u8], id: FileId, size: u64) -> Option<(Values, usize)> {
    let (head, records) = bytes.split_at_checked(HEADER)?;
    if *head != header(id, size)[..] {
        return None;
    }
    let count = super::chunk::chunks(size);
    let (mut values, mut good) = (Values::default(), 0);
    for record in records.as_chunks::<RECORD>().0 {
        let chunk = u32::from_be_bytes([record[0], record[1], record[2], record[3]]);
        if record[36..] != check(id, &record[..36]) || u64::from(chunk) >= count {
            break;
        }
        values.set(u64::from(chunk), record[4..36].try_into().ok()?);
        good += 1;
    }
    Some((values, good))
}

/// What the bytes of a journal vouch for, whatever they are.
pub fn read(bytes: &[u8], id: FileId, size: u64) -> Option<Values> {
    parse(bytes, id, size).map(|(values, _)| values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: FileId = [3; 16];
    const SIZE: u64 = 100 << 20;

    fn written() -> Vec<u8> {
        let mut bytes = header(ID, SIZE);
        for chunk in [4_u32, 0, 99] {
            bytes.extend_from_slice(&record(ID, chunk, &[chunk as u8; 32]));
        }
        bytes
    }

    #[test]
    fn a_torn_last_record_is_cut_off_and_the_others_stay() {
        let bytes = written();
        for cut in HEADER..bytes.len() {
            let values = read(&bytes[..cut], ID, SIZE).expect("a journal");
            assert_eq!(values.iter().count(), (cut - HEADER) / RECORD, "cut at {cut}");
        }
        assert!((0..HEADER).all(|cut| read(&bytes[..cut], ID, SIZE).is_none()));
    }

    #[test]
    fn a_journal_of_another_file_or_size_is_none() {
        let bytes = written();
        assert!(read(&bytes, [4; 16], SIZE).is_none());
        assert!(read(&bytes, ID, SIZE + 1).is_none());
    }

    #[test]
    fn no_flipped_bit_makes_a_chunk_that_was_not_written() {
        let bytes = written();
        let truth = read(&bytes, ID, SIZE).expect("a journal");
        for at in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[at / 8] ^= 1 << (at % 8);
            let Some(values) = read(&damaged, ID, SIZE) else { continue };
            assert!(values.iter().all(|(chunk, value)| truth.of(chunk) == Some(value)), "bit {at}");
        }
    }
}

//! The list `done`: which files of a transfer were finished. One record each, so that a torn one costs one.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};

use super::journal::FileId;

/// What it is called in the folder of a transfer.
pub(super) const DONE_LIST: &str = "done";

/// Reads the list of finished files, cuts a torn record off and leaves it open at its end; an empty
/// list unless `resume`.
pub(super) fn read(list: &File, resume: bool) -> io::Result<BTreeSet<FileId>> {
    let mut bytes = Vec::new();
    let mut file = list;
    io::Seek::rewind(&mut file)?;
    if resume {
        file.read_to_end(&mut bytes)?;
    }
    let all = bytes.as_chunks::<LIST_RECORD>().0.iter();
    let good = all.map_while(|bytes| {
        let id: FileId = bytes[..16].try_into().ok()?;
        (record(&id) == *bytes).then_some(id)
    });
    let done: Vec<FileId> = good.collect();
    let end = (done.len() * LIST_RECORD) as u64;
    list.set_len(end)?;
    io::Seek::seek(&mut file, io::SeekFrom::Start(end))?;
    Ok(done.into_iter().collect())
}

/// File id and check.
const LIST_RECORD: usize = 20;

pub(super) fn record(id: &FileId) -> [u8; LIST_RECORD] {
    let mut record = [0; LIST_RECORD];
    record[..16].copy_from_slice(id);
    record[16..].copy_from_slice(&blake3::hash(id).as_bytes()[..4]);
    record
}

//! What may come: whether there is room, whether a name is free, where a link leads.

use std::io;

use super::destination::ReceiveError;
use super::incoming::Incoming;
use crate::transfer::name::Name;
use crate::transfer::policy::Existing;
use crate::transfer::record::Entry;
use crate::transfer::store::{Store, file_id};

/// Bytes of free space that are left alone.
const SPARE: u64 = 1 << 20;

/// Why a file may not come.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unwanted {
    #[error("is there already, and is not to be replaced")]
    Kept,
    #[error("the user is to be asked")]
    Question,
    #[error("{wanted} bytes do not fit: {free} are free")]
    NoRoom { wanted: u64, free: u64 },
    #[error("its folder is on another file system than DIR: receive into that one by itself")]
    Elsewhere,
    #[error("it leads out of the folder; recv --any-links takes such links")]
    Outside,
    #[error(transparent)]
    Unreadable(#[from] io::Error),
}

/// Whether a file may come; `asked`: its data wait until that is said.
pub(super) fn admit(file: &Incoming, store: &mut Store, asked: bool) -> Result<(), Unwanted> {
    let name = file.name().ok_or_else(|| io::Error::other("its name is gone"))?;
    let policy = store.directory().policy().clone();
    if !matches!(policy.existing, Existing::Replace) && store.exists(name)? {
        // A rehearsal asks nothing; and what is on its way already cannot wait for an answer.
        match policy.existing {
            Existing::Ask(_) if store.is_rehearsed() => {}
            Existing::Ask(_) if asked => return Err(Unwanted::Question),
            _ => return Err(Unwanted::Kept),
        }
    }
    if !store.is_here(name)? {
        return Err(Unwanted::Elsewhere);
    }
    let held = if asked { store.part_bytes(file.id()) } else { 0 };
    let wanted = (file.data_chunks().total() << 20).min(file.size()).saturating_sub(held);
    let free = store.free_bytes()?;
    if fits(wanted, free) { Ok(()) } else { Err(Unwanted::NoRoom { wanted, free }) }
}

/// Whether all of a transfer may come, of which nothing is here.
pub(super) fn check_room(store: &Store, data: u64) -> Result<(), ReceiveError> {
    // What is here takes none, and files that are kept refuse theirs.
    if store.held() || matches!(store.directory().policy().existing, Existing::Keep) {
        return Ok(());
    }
    let free = store.free_bytes().map_err(|error| store.directory().failed(error))?;
    if fits(data, free) {
        return Ok(());
    }
    let _ = store.end();
    Err(ReceiveError::NoRoom { wanted: data, free })
}

/// Whether so much more has room.
fn fits(wanted: u64, free: u64) -> bool {
    wanted <= SPARE || wanted.saturating_add(SPARE) <= free
}

/// Makes a symbolic link, if it may be made.
pub(super) fn link(store: &mut Store, entry: &Entry, name: &Name) -> Result<(), Unwanted> {
    let policy = store.directory().policy();
    if !policy.any_links && !name.keeps_within(&entry.target) {
        return Err(Unwanted::Outside);
    }
    // Of a file that is there the user is asked, of a link it would be too much.
    let keep = matches!(policy.existing, Existing::Keep | Existing::Ask(_));
    let id = file_id(store.transfer(), name.as_bytes(), entry.size, entry.mtime);
    match store.make_link(&id, name, &entry.target, entry.mtime, keep) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Unwanted::Kept),
        outcome => Ok(outcome?),
    }
}

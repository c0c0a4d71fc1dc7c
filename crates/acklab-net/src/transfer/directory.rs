//! The receiver's folder DIR, and which session writes which transfer into it.
//!
//! A sender that comes again takes its transfer over from its dead connection, whose thread may still be at
//! work: so a session changes files in its turns alone, and has none once a newer one has begun.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;

use super::finished::DONE_LIST;
use super::name::PART_FOLDER;
use super::places::{file_at, try_writing};
use super::policy::Policy;
use super::record::TransferId;

/// DIR, shared by the transfers that come in.
#[derive(Clone, Debug)]
pub struct Directory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    root: OwnedFd,
    path: PathBuf,
    policy: Policy,
    running: Mutex<Running>,
}

/// Who writes which transfer: a new connection takes over from one whose sender died.
#[derive(Debug, Default)]
struct Running {
    sessions: u64,
    /// One transfer is taken at a time.
    one: bool,
    /// Whose turn each transfer is, and the locked list of what it finished.
    owners: BTreeMap<TransferId, (Arc<Mutex<u64>>, Arc<File>)>,
}

/// A session's turn to work on its transfer: one at a time, and none once a newer one has taken it over.
#[derive(Clone, Debug)]
pub struct Turn {
    session: u64,
    /// The session whose turn it is.
    whose: Arc<Mutex<u64>>,
}

impl Turn {
    /// Waits until another session's turn is over; an error where that is a newer one.
    pub fn take(&self) -> Result<MutexGuard<'_, u64>, StoreError> {
        let whose = locked(&self.whose);
        if *whose == self.session { Ok(whose) } else { Err(StoreError::Superseded) }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a transfer cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("this transfer is being received into {} already", .0.display())]
    Busy(PathBuf),
    #[error("the sender has started the transfer anew")]
    Superseded,
    #[error("it takes one transfer, and that one is running")]
    Taken,
    #[error("{}: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
}

impl Directory {
    /// Opens DIR and makes it where it is not there.
    pub fn open(path: &Path, policy: Policy) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Folder { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(failed)?;
        let root = File::open(path).map_err(failed)?;
        if !root.metadata().map_err(failed)?.is_dir() {
            return Err(failed(Errno::ENOTDIR.into()));
        }
        let root = OwnedFd::from(root);
        try_writing(&root).map_err(|errno| failed(errno.into()))?;
        let path = path.to_owned();
        let running = Mutex::default();
        Ok(Self(Arc::new(Shared { root, path, policy, running })))
    }

    /// From now on one transfer is taken at a time.
    pub fn take_one(&self) {
        self.running().one = true;
    }

    /// Whether anything lies here that a sender may have too, or of an unfinished transfer.
    pub fn holds_anything(&self) -> bool {
        fs::read_dir(&self.0.path).is_ok_and(|mut entries| entries.next().is_some())
    }

    /// What becomes of names that are taken, and of links.
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// DIR itself.
    pub(super) fn root(&self) -> &OwnedFd {
        &self.0.root
    }

    /// The folder of what is not finished, by its path.
    pub(super) fn part_folder(&self) -> PathBuf {
        self.0.path.join(PART_FOLDER)
    }

    pub(super) fn failed(&self, source: impl Into<io::Error>) -> StoreError {
        StoreError::Folder { path: self.part_folder(), source: source.into() }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        locked(&self.0.running)
    }

    /// Gives a transfer to a new session, with the list of what was finished of it, which lies in `folder`. One that is
    /// `rehearsed` takes it from no other.
    pub(super) fn claim(
        &self,
        transfer: TransferId,
        folder: &OwnedFd,
        rehearsed: bool,
    ) -> Result<(Turn, Arc<File>), StoreError> {
        let mut running = self.running();
        if running.one && running.owners.keys().any(|other| *other != transfer) {
            return Err(StoreError::Taken);
        }
        let owner = if let Some(owner) = running.owners.get(&transfer) {
            if rehearsed {
                return Err(StoreError::Busy(self.0.path.clone()));
            }
            owner.clone()
        } else {
            let list = file_at(folder, OsStr::new(DONE_LIST), false);
            let list = File::from(list.map_err(|errno| self.failed(errno))?);
            match list.try_lock() {
                Ok(()) => (Arc::default(), Arc::new(list)),
                Err(TryLockError::WouldBlock) => return Err(StoreError::Busy(self.0.path.clone())),
                Err(TryLockError::Error(error)) => return Err(self.failed(error)),
            }
        };
        running.sessions += 1;
        let session = running.sessions;
        running.owners.insert(transfer, owner.clone());
        drop(running);
        // What the session before is at comes to its end first; that may have been all of it.
        let mut whose = locked(&owner.0);
        *whose = session.max(*whose);
        self.running().owners.insert(transfer, owner.clone());
        drop(whose);
        let (whose, list) = owner;
        Ok((Turn { session, whose }, list))
    }

    /// A session has left its transfer.
    pub(super) fn release(&self, transfer: &TransferId, turn: &Turn) {
        if let Ok(_turn) = turn.take() {
            self.running().owners.remove(transfer);
        }
    }
}

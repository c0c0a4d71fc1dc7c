//! What a receiver has written that need not be on the disk yet, and a thread that puts it there.
//!
//! Few files and folders are synced one by one, so that a small transfer does not wait for what other
//! programs have written; of more than that the whole file system is, because a journal that is committed
//! for each of thousands of small files takes several times as long as the copying does
//! (docs/measurements.md). The thread keeps the disk's time away from the event loop.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use nix::sys::stat::fstat;
use nix::unistd::{fsync, syncfs};

/// More files and folders than this are synced with their whole file system \[ours\].
const FEW: usize = 16;

/// Files and folders of one file system that have changed.
#[derive(Debug)]
pub struct Unsynced(Extent);

#[derive(Debug)]
enum Extent {
    /// By device and inode.
    Few(BTreeMap<(u64, u64), OwnedFd>),
    Everything,
}

impl Default for Unsynced {
    fn default() -> Self {
        Self(Extent::Few(BTreeMap::new()))
    }
}

impl Unsynced {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Extent::Few(few) if few.is_empty())
    }

    /// This file, or this folder's list of names, has changed.
    pub fn add(&mut self, changed: impl AsFd) -> io::Result<()> {
        let Extent::Few(few) = &mut self.0 else { return Ok(()) };
        let stat = fstat(&changed)?;
        let key = (stat.st_dev, stat.st_ino);
        if few.contains_key(&key) {
            return Ok(());
        }
        if few.len() == FEW {
            self.0 = Extent::Everything;
        } else {
            few.insert(key, changed.as_fd().try_clone_to_owned()?);
        }
        Ok(())
    }

    /// Waits until all of it is on the disk; `root` lies in the same file system.
    fn sync(&self, root: &OwnedFd) -> io::Result<()> {
        match &self.0 {
            Extent::Few(few) => few.values().try_for_each(|fd| Ok(fsync(fd)?)),
            Extent::Everything => Ok(syncfs(root)?),
        }
    }
}

/// At most one sync under way.
#[derive(Debug, Default)]
pub struct Syncing(Option<Receiver<io::Result<()>>>);

impl Syncing {
    /// Whether none is under way.
    pub fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// Begins one; `wake` is called when it is done. The one before must be done.
    pub fn start(&mut self, what: Unsynced, root: OwnedFd, wake: impl FnOnce() + Send + 'static) {
        let (tell, done) = channel();
        thread::spawn(move || {
            let outcome = what.sync(&root);
            // A descriptor of the list of stored files holds its lock: closed before the outcome is known.
            drop((what, root));
            // The receiver may be gone.
            let _ = tell.send(outcome);
            wake();
        });
        self.0 = Some(done);
    }

    /// What the one under way came to, once.
    pub fn poll(&mut self) -> Option<io::Result<()>> {
        let outcome = match self.0.as_ref()?.try_recv() {
            Ok(outcome) => outcome,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(io::Error::other("the disk's thread is gone")),
        };
        self.0 = None;
        Some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn few_changes_are_synced_one_by_one_and_many_at_once() {
        let scratch = tempfile::tempdir().expect("a folder");
        let root: OwnedFd = File::open(scratch.path()).expect("the folder").into();
        let mut unsynced = Unsynced::default();
        assert!(unsynced.is_empty());
        for number in 0..=FEW {
            let file = File::create(scratch.path().join(format!("{number}"))).expect("a file");
            for _ in 0..3 {
                unsynced.add(&file).expect("noted");
            }
            let few = matches!(&unsynced.0, Extent::Few(few) if few.len() == number + 1);
            assert_eq!(few, number < FEW, "{unsynced:?}");
            unsynced.sync(&root).expect("synced");
        }
    }

    #[test]
    fn the_thread_calls_when_it_is_done_and_tells_what_went_wrong() {
        let scratch = tempfile::tempdir().expect("a folder");
        let root: OwnedFd = File::open(scratch.path()).expect("the folder").into();
        let mut syncing = Syncing::default();
        for synced in [true, false] {
            let mut unsynced = Unsynced::default();
            if synced {
                unsynced.add(&root).expect("noted");
            } else {
                // A pipe cannot be synced.
                unsynced.add(nix::unistd::pipe().expect("a pipe").0).expect("noted");
            }
            let (wake, woken) = channel();
            let clone = root.try_clone().expect("a descriptor");
            syncing.start(unsynced, clone, move || wake.send(()).expect("the test waits"));
            assert!(!syncing.is_idle());
            woken.recv().expect("a call");
            assert_eq!(syncing.poll().map(|outcome| outcome.is_ok()), Some(synced));
            assert!(syncing.is_idle() && syncing.poll().is_none());
        }
    }
}

//! Files that are complete and proved, on their way to the disk and then to their names.
//!
//! A name vouches for what it names, and the list of finished files does so at a resume. So data are on
//! the disk before either says anything of them: complete files wait, without a name, until a batch of them is
//! synced; then they are renamed and noted. Before FINISHED the names are synced too. A crash of the
//! machine thus leaves right files under final names, and after FINISHED all of them.

use acklab_core::time::{Span, Time};

use super::file::Incoming;
use super::{NO_HELLO, ReceiveError, Receiver};
use crate::transfer::record::Record;

/// A batch is synced when it has so many bytes, or so many files, or its first file has waited so long.
const BATCH_BYTES: u64 = 64 << 20;
const BATCH_FILES: usize = 256;
const BATCH_AGE: Span = Span::from_secs(1);

/// Complete files.
#[derive(Default)]
pub(super) struct Batch {
    files: Vec<(u64, Incoming)>,
    bytes: u64,
    since: Time,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    fn is_due(&self, now: Time) -> bool {
        self.bytes >= BATCH_BYTES
            || self.files.len() >= BATCH_FILES
            || now.since(self.since) >= BATCH_AGE
    }
}

impl Receiver {
    /// A file is complete and proved.
    pub(super) fn ripen(&mut self, index: u64, mut file: Incoming) -> Result<(), ReceiveError> {
        let store = self.store.as_mut().ok_or(NO_HELLO)?;
        if let Err(error) = file.seal(store) {
            self.fail_file(index, file, &error);
            return Ok(());
        }
        if self.ripe.is_empty() {
            self.ripe.since = self.now;
        }
        self.ripe.bytes += file.size;
        self.ripe.files.push((index, file));
        Ok(())
    }

    /// Gives what was synced its names, and syncs what is due. Whether nothing is left to be synced.
    pub(super) fn settle(&mut self, drained: bool) -> Result<bool, ReceiveError> {
        if let Some(outcome) = self.syncing.poll() {
            let synced = std::mem::take(&mut self.synced).files;
            if let (Err(_), Some(store)) = (&outcome, &self.store) {
                // What could not be written is gone from the cache too, so a resume could not find that out.
                for (_, file) in &synced {
                    store.remove_part(&file.id);
                }
            }
            outcome.map_err(|error| self.directory.failed(error))?;
            for (index, file) in synced {
                self.store_file(index, file)?;
            }
            self.note_stored()?;
        }
        let store = self.store.as_mut().ok_or(NO_HELLO)?;
        let waits = !self.ripe.is_empty();
        let due = waits && (drained || self.ripe.is_due(self.now));
        // At the end the names are synced too.
        let last = drained && !store.unsynced().is_empty();
        if self.syncing.is_idle() && (due || last) {
            let taken = store.take_unsynced();
            let (unsynced, root) = taken.map_err(|error| self.directory.failed(error))?;
            let wake = self.wake.clone();
            self.syncing.start(unsynced, root, move || wake());
            self.synced = std::mem::take(&mut self.ripe);
            return Ok(false);
        }
        Ok(self.syncing.is_idle() && !waits)
    }

    /// Gives a file its name.
    fn store_file(&mut self, index: u64, mut file: Incoming) -> Result<(), ReceiveError> {
        let store = self.store.as_mut().ok_or(NO_HELLO)?;
        if let Err(error) = file.place(store) {
            self.fail_file(index, file, &error);
            return Ok(());
        }
        self.received.stored += 1;
        self.received.stored_bytes += file.size;
        self.stored.push((index, file.id));
        Ok(())
    }

    /// Says what was stored. The list of finished files is written first, so that nothing that was said is
    /// forgotten.
    fn note_stored(&mut self) -> Result<(), ReceiveError> {
        let ids: Vec<_> = self.stored.iter().map(|&(_, id)| id).collect();
        let store = self.store.as_mut().ok_or(NO_HELLO)?;
        if !ids.is_empty() {
            store.note_done(&ids).map_err(|error| store.directory().failed(error))?;
        }
        for (index, _) in self.stored.drain(..) {
            Record::Stored { index, held: false }.put(&mut self.out);
        }
        Ok(())
    }
}

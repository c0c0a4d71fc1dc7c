//! Files that are complete and proved, on their way to the disk and then to their names.
//!
//! A name vouches for what it names, and the list of finished files does so at a resume. So data are on
//! the disk before either says anything of them: complete files wait, without a name, until a batch of them is
//! synced; then they are renamed and noted. Before FINISHED the names are synced too. A crash of the
//! machine thus leaves right files under final names, and after FINISHED all of them.

use std::io;
use std::sync::Arc;

use acklab_core::time::{Span, Time};

use super::incoming::Incoming;
use crate::transfer::store::Store;
use crate::transfer::sync::Syncing;

/// A batch is synced when it has so many bytes, or so many files, or its first file has waited so long.
const BATCH_BYTES: u64 = 64 << 20;
const BATCH_FILES: usize = 256;
const BATCH_AGE: Span = Span::from_secs(1);

/// Complete files that wait for a sync, and those of the sync under way.
pub(super) struct Ripe {
    waiting: Batch,
    synced: Vec<Incoming>,
    syncing: Syncing,
    /// Called when a sync is done.
    wake: Arc<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Batch {
    files: Vec<Incoming>,
    bytes: u64,
    since: Time,
}

impl Batch {
    fn is_due(&self, now: Time) -> bool {
        self.bytes >= BATCH_BYTES
            || self.files.len() >= BATCH_FILES
            || now.since(self.since) >= BATCH_AGE
    }
}

impl Ripe {
    pub(super) fn new(wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        let (waiting, synced, syncing) = (Batch::default(), Vec::new(), Syncing::default());
        Self { waiting, synced, syncing, wake }
    }

    pub(super) fn is_syncing(&self) -> bool {
        !self.syncing.is_idle()
    }

    /// The files that have no name yet.
    pub(super) fn files(&self) -> impl Iterator<Item = &Incoming> {
        self.waiting.files.iter().chain(&self.synced)
    }

    /// A file is complete and proved, and its data wait to be synced.
    pub(super) fn add(&mut self, now: Time, file: Incoming) {
        if self.waiting.files.is_empty() {
            self.waiting.since = now;
        }
        self.waiting.bytes += file.size();
        self.waiting.files.push(file);
    }

    /// How many those are.
    pub(super) const fn len(&self) -> usize {
        self.waiting.files.len() + self.synced.len()
    }

    /// Files whose data are on the disk since the last call.
    pub(super) fn take_synced(&mut self, store: &Store) -> io::Result<Vec<Incoming>> {
        let Some(outcome) = self.syncing.poll() else { return Ok(Vec::new()) };
        let synced = std::mem::take(&mut self.synced);
        if outcome.is_err() {
            // What could not be written is gone from the cache too, so a resume could not find that out.
            for file in &synced {
                store.remove_part(file.id());
            }
        }
        outcome.map(|()| synced)
    }

    /// Begins to sync what is due; `drained`: no more will come. Whether nothing is left to be synced.
    pub(super) fn sync(&mut self, now: Time, drained: bool, store: &mut Store) -> io::Result<bool> {
        let waits = !self.waiting.files.is_empty();
        let due = waits && (drained || self.waiting.is_due(now));
        // At the end the names are synced too.
        let last = drained && !store.unsynced().is_empty();
        if self.syncing.is_idle() && (due || last) {
            let (unsynced, root) = store.take_unsynced()?;
            let wake = self.wake.clone();
            self.syncing.start(unsynced, root, move || wake());
            self.synced = std::mem::take(&mut self.waiting).files;
            return Ok(false);
        }
        Ok(self.syncing.is_idle() && !waits)
    }
}

//! What a receiver and its sender say to each other, and where a sender's stream may go.

use acklab_core::ranges::RangeSet;
use acklab_core::time::Time;

use crate::transfer::chunk::Value;
use crate::transfer::directory::StoreError;
use crate::transfer::inlet::Inlet;
use crate::transfer::journal::FileId;
use crate::transfer::name::shown;
use crate::transfer::record::{Broken, Record, TransferId, VERSION};
use crate::transfer::worker::Work;

#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error("the sender broke a rule of the transfer: {0}")]
    Peer(#[from] Broken),
    #[error("the sender speaks version {0} of the transfer, and this is version {VERSION}")]
    Version(u8),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{wanted} bytes do not fit: {free} are free")]
    NoRoom {
        /// Bytes that the sender announced, holes aside.
        wanted: u64,
        /// Bytes that are free.
        free: u64,
    },
    #[error("standard output: {0}")]
    Output(#[source] std::io::Error),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Entries that the sender announced.
    pub entries: u64,
    /// Bytes that it announced, holes included.
    pub bytes_announced: u64,
    /// Bytes of content received.
    pub bytes: u64,
    /// Bytes that were here before.
    pub resumed: u64,
    /// Files that stand under their names.
    pub stored: u64,
    pub stored_bytes: u64,
    /// Entries refused.
    pub refused: u64,
    /// Entries that the sender could not send.
    pub failed: u64,
    /// The sender only wanted to know what it would have to send.
    pub rehearsed: bool,
    /// The BLAKE3 of the one file that was stored, if it was one and came now.
    pub hash: Option<Value>,
}

impl Received {
    /// Whether everything that was to come is here.
    pub const fn is_whole(&self) -> bool {
        self.refused == 0 && self.failed == 0
    }
}

pub(super) const UNKNOWN: Broken = Broken("a record names a file that was not named or is settled");
pub(super) const NO_HELLO: Broken = Broken("the first record is not HELLO");

/// Where a sender's stream goes, sans-IO as far as the network goes: a folder, or standard output.
pub trait Destination: Send {
    /// What its sender and it have said.
    fn dialogue(&self) -> &Dialogue;

    /// The same.
    fn dialogue_mut(&mut self) -> &mut Dialogue;

    /// Works for a millisecond or so; true: there is more to do. It wants to be called after `wake` was, and
    /// several times a second.
    fn advance(&mut self, now: Time) -> Result<bool, ReceiveError>;

    /// Whether everything is stored or refused, and the sender will be told.
    fn is_finished(&self) -> bool;

    /// All is stored or refused, and the sender knows: nothing of the transfer is kept for its next try, unless
    /// there was no room for some of it, or the disk failed.
    fn dismiss(&self) {}

    /// Whether a sender that went silent may come again and go on.
    fn may_go_on(&self) -> bool {
        true
    }

    /// What has gone to standard output as a whole.
    fn printed(&self) -> Option<Printed> {
        None
    }

    /// Takes bytes of the sender's stream. [`Destination::advance`] works on them.
    fn handle_block(&mut self, block: Vec<u8>) {
        self.dialogue_mut().inlet.push(block);
    }

    /// Bytes that were taken and not worked on; above a few MiB no more should be given.
    fn waiting(&self) -> usize {
        self.dialogue().inlet.waiting()
    }

    /// Bytes for the stream back to the sender.
    fn poll_block(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.dialogue_mut().out)).filter(|out| !out.is_empty())
    }

    /// What was refused, since the last call, in words.
    fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.dialogue_mut().problems)
    }

    fn received(&self) -> Received {
        self.dialogue().received
    }
}

impl Work for Box<dyn Destination> {
    type State = Standing;
    type Remark = String;
    type Error = ReceiveError;

    fn handle_block(&mut self, block: Vec<u8>) -> Result<(), ReceiveError> {
        (**self).handle_block(block);
        Ok(())
    }

    fn advance(&mut self, now: Time) -> Result<bool, ReceiveError> {
        (**self).advance(now)
    }

    fn poll_block(&mut self) -> Option<Vec<u8>> {
        (**self).poll_block()
    }

    fn waiting(&self) -> usize {
        (**self).waiting()
    }

    fn state(&self) -> Standing {
        let (received, is_finished) = (self.received(), Destination::is_finished(&**self));
        Standing { received, is_finished, is_spent: !self.may_go_on(), printed: self.printed() }
    }

    fn take_remarks(&mut self) -> Vec<String> {
        self.take_problems()
    }

    fn is_finished(&self) -> bool {
        (**self).is_finished()
    }

    fn dismiss(&self) {
        (**self).dismiss();
    }
}

/// How far a destination is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing {
    pub received: Received,
    /// Everything is stored or refused, and the sender will be told.
    pub is_finished: bool,
    /// A sender that went silent cannot go on when it comes again.
    pub is_spent: bool,
    pub printed: Option<Printed>,
}

/// A file that went to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed {
    pub(super) transfer: TransferId,
    pub(super) id: FileId,
}

/// What has come from a sender and goes back to it.
#[derive(Default)]
pub struct Dialogue {
    inlet: Inlet,
    out: Vec<u8>,
    /// Chunks written since the last CONFIRM, and of which file.
    confirm: Option<(u64, RangeSet)>,
    received: Received,
    problems: Vec<String>,
}

impl Dialogue {
    /// The next record, if it is there as a whole.
    pub(super) fn record(&mut self) -> Result<Option<Record>, Broken> {
        self.inlet.record()
    }

    /// At most `most` of the bytes that follow the last record.
    pub(super) fn data(&mut self, most: usize) -> Option<&[u8]> {
        self.inlet.data(most)
    }

    pub(super) fn put(&mut self, record: &Record) {
        record.put(&mut self.out);
    }

    /// What HELLO says of the transfer.
    pub(super) const fn note_announced(&mut self, entries: u64, bytes: u64) {
        self.received.entries = entries;
        self.received.bytes_announced = bytes;
    }

    /// The sender only wants to know what it would have to send.
    pub(super) const fn note_rehearsal(&mut self, rehearsed: bool) {
        self.received.rehearsed = rehearsed;
    }

    /// So much was said to be here and is another file's.
    pub(super) const fn have_not(&mut self, bytes: u64) {
        self.received.resumed -= bytes;
    }

    /// So much of a file is here.
    pub(super) fn have(&mut self, index: u64, chunks: RangeSet, bytes: u64) {
        self.received.resumed += bytes;
        self.put(&Record::Have { index, chunks });
    }

    /// Bytes of content have come.
    pub(super) const fn count(&mut self, bytes: u64) {
        self.received.bytes += bytes;
    }

    /// A chunk is in the journal: to be told with its neighbours.
    pub(super) fn confirm(&mut self, index: u64, chunk: u64) {
        if self.confirm.as_ref().is_some_and(|&(other, _)| other != index) {
            self.tell_confirmed();
        }
        let (_, chunks) = self.confirm.get_or_insert_with(|| (index, RangeSet::new()));
        chunks.insert(chunk..chunk + 1);
    }

    pub(super) fn tell_confirmed(&mut self) {
        if let Some((index, chunks)) = self.confirm.take() {
            self.put(&Record::Confirm { index, chunks });
        }
    }

    /// A file has its name; the sender is told when the list of finished files says so too.
    pub(super) fn count_stored(&mut self, size: u64, hash: Option<Value>) {
        self.received.hash = hash.filter(|_| self.received.stored == 0);
        self.received.stored += 1;
        self.received.stored_bytes += size;
    }

    /// A file has stood under its name before.
    pub(super) fn held(&mut self, index: u64, size: u64) {
        self.count_stored(size, None);
        self.received.resumed += size;
        self.put(&Record::Stored { index, held: true });
    }

    pub(super) fn refuse(&mut self, index: u64, path: &[u8], why: &str) {
        self.received.refused += 1;
        let path = shown(path);
        // The end of a long path tells more than its start.
        let start = path.ceil_char_boundary(path.len().saturating_sub(100));
        let reason = format!("{}: {why}", &path[start..]);
        self.remark(format!("refused: {reason}"));
        self.put(&Record::Refused { index, reason });
    }

    /// The sender could not send something.
    pub(super) fn fail(&mut self, reason: &str) {
        self.received.failed += 1;
        self.remark(format!("not sent: {reason}"));
    }

    /// Tells this end's user.
    pub(super) fn remark(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// Everything is stored or refused.
    pub(super) fn finish(&mut self) {
        let Received { stored, refused, .. } = self.received;
        self.put(&Record::Finished { stored, refused });
    }
}

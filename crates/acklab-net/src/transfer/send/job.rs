//! A sender as what a thread does: it makes blocks ahead of the connection.

use acklab_core::time::Time;

use crate::transfer::sender::{Due, Next, Progress, SendError, Sender};
use crate::transfer::worker::Work;

pub(super) struct Job {
    sender: Sender,
    /// Bytes of a block.
    size: usize,
    block: Option<Vec<u8>>,
}

/// How far a sender is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    pub(super) progress: Progress,
    /// Everything is stored or refused.
    pub(super) is_finished: bool,
}

/// What is told.
pub(super) enum Remark {
    Problem(String),
    Due(Due),
}

impl Job {
    pub(super) const fn new(sender: Sender, size: usize) -> Self {
        Self { sender, size, block: None }
    }
}

impl Work for Job {
    type State = Standing;
    type Remark = Remark;
    type Error = SendError;

    fn handle_block(&mut self, block: Vec<u8>) -> Result<(), SendError> {
        self.sender.handle_block(block)
    }

    fn advance(&mut self, _now: Time) -> Result<bool, SendError> {
        let next = self.sender.poll_block(self.size);
        let more = !matches!(next, Next::Waiting);
        if let Next::Block(block) = next {
            self.block = Some(block);
        }
        Ok(more)
    }

    fn poll_block(&mut self) -> Option<Vec<u8>> {
        self.block.take()
    }

    fn waiting(&self) -> usize {
        // Every record is understood at once, and the start of the next one is short.
        0
    }

    fn state(&self) -> Standing {
        Standing { progress: self.sender.progress(), is_finished: self.sender.is_finished() }
    }

    fn take_remarks(&mut self) -> Vec<Remark> {
        let problems = self.sender.take_problems().into_iter().map(Remark::Problem);
        let problems: Vec<_> = problems.collect();
        problems.into_iter().chain(self.sender.take_due().into_iter().map(Remark::Due)).collect()
    }

    fn is_finished(&self) -> bool {
        self.sender.is_finished()
    }
}

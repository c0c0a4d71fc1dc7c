//! Who takes what a connection brings: a folder, or standard output.

use acklab_core::time::Time;

use crate::transfer::receiver::printer::{Printed, Printer};
use crate::transfer::receiver::{ReceiveError, Received, Receiver};

/// Who takes what a connection brings.
pub(super) enum Taker {
    Folder(Box<Receiver>),
    Output(Box<Printer>),
}

/// Calls the same method of either.
macro_rules! either {
    ($taker:expr, $method:ident($($argument:expr),*)) => {
        match $taker {
            Taker::Folder(receiver) => receiver.$method($($argument),*),
            Taker::Output(printer) => printer.$method($($argument),*),
        }
    };
}

impl Taker {
    /// As [`Receiver::handle_block`].
    pub(super) fn handle_block(&mut self, block: Vec<u8>) {
        either!(self, handle_block(block));
    }

    /// As [`Receiver::waiting`].
    pub(super) fn waiting(&self) -> usize {
        either!(self, waiting())
    }

    /// As [`Receiver::advance`].
    pub(super) fn advance(&mut self, now: Time) -> Result<bool, ReceiveError> {
        either!(self, advance(now))
    }

    /// As [`Receiver::poll_block`].
    pub(super) fn poll_block(&mut self) -> Option<Vec<u8>> {
        either!(self, poll_block())
    }

    /// As [`Receiver::received`].
    pub(super) fn received(&self) -> Received {
        either!(self, received())
    }

    /// As [`Receiver::is_finished`].
    pub(super) fn is_finished(&self) -> bool {
        either!(self, is_finished())
    }

    /// As [`Receiver::take_problems`].
    pub(super) fn take_problems(&mut self) -> Vec<String> {
        either!(self, take_problems())
    }

    /// What has gone to standard output as a whole.
    pub(super) fn printed(&self) -> Option<Printed> {
        match self {
            Self::Folder(_) => None,
            Self::Output(printer) => printer.printed(),
        }
    }

    /// The sender knows that all is stored: nothing is kept for its next try.
    pub(super) fn dismiss(&self) {
        if let Self::Folder(receiver) = self {
            receiver.dismiss();
        }
    }

    /// Whether a sender that went silent may come again and go on.
    pub(super) fn may_go_on(&self) -> bool {
        match self {
            Self::Folder(_) => true,
            Self::Output(printer) => !printer.has_begun(),
        }
    }
}

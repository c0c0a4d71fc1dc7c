//! What becomes of a name that is taken, and of links: the receiver's choices.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;

/// The receiver's choices.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub existing: Existing,
    /// A file that is there is the sender's if its content is, whatever its time says; without this, if its size and
    /// time are.
    pub checksum: bool,
    /// Symbolic links are made wherever they lead; without this, only if they stay in the folder.
    pub any_links: bool,
}

/// What becomes of a file that is there and is another.
#[derive(Clone, Debug, Default)]
pub enum Existing {
    /// It is replaced when the new one is complete.
    #[default]
    Replace,
    /// It stays, and the new one is refused.
    Keep,
    /// The user says.
    Ask(Prompter),
}

/// Asks the user one question at a time, in a thread, so that nothing else waits.
#[derive(Clone, Debug)]
pub struct Prompter(Sender<Question>);

struct Question {
    text: String,
    answer: Sender<bool>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Question").field("text", &self.text).finish_non_exhaustive()
    }
}

impl Prompter {
    /// `ask` shows a question and waits for the answer.
    pub fn new(mut ask: impl FnMut(&str) -> bool + Send + 'static) -> Self {
        let (sender, questions) = channel::<Question>();
        thread::spawn(move || {
            for Question { text, answer, wake } in questions {
                // The transfer may have ended meanwhile.
                if answer.send(ask(&text)).is_ok() {
                    wake();
                }
            }
        });
        Self(sender)
    }

    /// Asks; `wake` is called when the answer is there.
    pub(super) fn ask(&self, text: String, wake: Arc<dyn Fn() + Send + Sync>) -> Asked {
        let (answer, answered) = channel();
        // Without a thread the answer is no.
        let _ = self.0.send(Question { text, answer, wake });
        Asked(answered)
    }
}

/// A question that was asked.
#[derive(Debug)]
pub(super) struct Asked(Receiver<bool>);

impl Asked {
    /// The answer, if it is there.
    pub(super) fn poll(&self) -> Option<bool> {
        match self.0.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(false),
        }
    }
}

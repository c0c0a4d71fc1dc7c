//! Work that may wait for a disk, on a thread of its own.
//!
//! The event loop gives it what came and takes what is to go, and never waits for it; so a disk that stands
//! still stops neither acknowledgments nor keep-alives, and a second processor hashes and writes. Both queues
//! are bounded: what the work has not used up holds the peer back by the stream's window, and what the
//! loop has not taken holds the work back.

use std::collections::VecDeque;
use std::panic;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use acklab_core::time::Time;

/// Bytes of a stream that may wait to be worked on before the peer is held back.
const WAITING_MAX: usize = 1 << 20;
/// Bytes that may wait for the loop before the work pauses.
const AHEAD_MAX: usize = 1 << 20;

/// One end of a transfer: what its thread does.
pub(super) trait Work: Send + 'static {
    /// How far it is.
    type State: Clone + Default + Send;
    /// What is told to the user.
    type Remark: Send;
    type Error: Send;

    /// Takes bytes of the peer's stream.
    fn handle_block(&mut self, block: Vec<u8>) -> Result<(), Self::Error>;

    /// Works for a millisecond or so, if nothing makes it wait; true: there is more to do.
    fn advance(&mut self, now: Time) -> Result<bool, Self::Error>;

    /// Bytes for the stream to the peer.
    fn poll_block(&mut self) -> Option<Vec<u8>>;

    /// Bytes that were taken and not worked on.
    fn waiting(&self) -> usize;

    fn state(&self) -> Self::State;

    /// What is to be told, since the last call.
    fn take_remarks(&mut self) -> Vec<Self::Remark>;

    /// Whether nothing more will be said to the peer.
    fn is_finished(&self) -> bool;

    /// The peer knows that all is over: nothing is kept for its next try.
    fn dismiss(&self) {}
}

/// Calls a thread at work from another one.
pub(super) type Call = Arc<dyn Fn() + Send + Sync>;

/// The loop's end of a thread at work. The thread ends by itself when this is dropped.
pub(super) struct Worker<W: Work> {
    desk: Arc<Desk<W>>,
    thread: Option<JoinHandle<()>>,
}

impl<W: Work> Worker<W> {
    /// Starts what `make` makes, once the threads `before` it have ended. `wake` calls the loop; what `make` is given
    /// calls the thread.
    pub(super) fn start(
        make: impl FnOnce(Call) -> W,
        wake: impl Fn() + Send + 'static,
        before: Vec<JoinHandle<()>>,
    ) -> Self {
        let desk = Arc::new(Desk { papers: Mutex::new(Papers::new()), bell: Condvar::new() });
        let (called, its) = (Arc::clone(&desk), Arc::clone(&desk));
        let work = make(Arc::new(move || called.lock().call(&called.bell)));
        let thread = thread::spawn(move || {
            for thread in before {
                // One that has panicked has ended too.
                let _ = thread.join();
            }
            its.run(work, &wake);
        });
        Self { desk, thread: Some(thread) }
    }

    /// Lets it look whether the time has come for something; wanted several times a second. A panic of the thread's
    /// goes on here.
    pub(super) fn tick(&mut self, now: Time) {
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished())
            && let Err(panic) = thread.join()
        {
            panic::resume_unwind(panic);
        }
        let mut papers = self.desk.lock();
        papers.now = now;
        papers.call(&self.desk.bell);
    }

    /// How many more bytes it takes. Where that is none, the loop is called when it is otherwise.
    pub(super) fn room(&self) -> usize {
        let mut papers = self.desk.lock();
        let room = WAITING_MAX.saturating_sub(papers.waiting);
        papers.wanted.room = room == 0;
        room
    }

    /// Gives it blocks of the peer's stream.
    pub(super) fn give(&self, now: Time, blocks: &mut Vec<Vec<u8>>) {
        if blocks.is_empty() {
            return;
        }
        let mut papers = self.desk.lock();
        papers.now = now;
        papers.waiting += blocks.iter().map(Vec::len).sum::<usize>();
        papers.inbox.append(blocks);
        papers.call(&self.desk.bell);
    }

    /// Whether there is a block for the peer. Where there is none, the loop is called when there is.
    pub(super) fn has_block(&self) -> bool {
        let mut papers = self.desk.lock();
        papers.wanted.block = papers.outbox.is_empty();
        !papers.wanted.block
    }

    /// The next block for the peer; as for [`Self::has_block`] where there is none.
    pub(super) fn poll_block(&self) -> Option<Vec<u8>> {
        let mut papers = self.desk.lock();
        let block = papers.outbox.pop_front();
        papers.wanted.block = block.is_none();
        let len = block.as_ref().map_or(0, Vec::len);
        papers.ahead -= len;
        // Not for each block: a thread that wakes costs more than it.
        if papers.pose == Pose::Paused && papers.ahead <= AHEAD_MAX / 2 {
            papers.call(&self.desk.bell);
        }
        block
    }

    /// Whether it has not worked on all that it was given. Where that is so, the loop is called when it is otherwise.
    pub(super) fn is_behind(&self) -> bool {
        let mut papers = self.desk.lock();
        papers.wanted.end = papers.pose == Pose::Working || !papers.inbox.is_empty();
        papers.wanted.end
    }

    /// Bytes for the peer that the loop has not taken.
    pub(super) fn ahead(&self) -> usize {
        self.desk.lock().ahead
    }

    /// How far it is.
    pub(super) fn state(&self) -> W::State {
        self.desk.lock().state.clone()
    }

    /// What is to be told, since the last call.
    pub(super) fn take_remarks(&self) -> Vec<W::Remark> {
        std::mem::take(&mut self.desk.lock().remarks)
    }

    /// Why it cannot go on, once.
    pub(super) fn take_error(&self) -> Option<W::Error> {
        self.desk.lock().error.take()
    }

    /// Ends it, after what it is about; `dismissed`: the peer knows that all is over.
    pub(super) fn close(mut self, dismissed: bool) -> Option<JoinHandle<()>> {
        self.leave(dismissed);
        self.thread.take()
    }

    fn leave(&self, dismissed: bool) {
        let mut papers = self.desk.lock();
        papers.closed.get_or_insert(dismissed);
        papers.call(&self.desk.bell);
    }
}

impl<W: Work> Drop for Worker<W> {
    fn drop(&mut self) {
        self.leave(false);
    }
}

/// Between the loop and the thread.
struct Desk<W: Work> {
    papers: Mutex<Papers<W>>,
    bell: Condvar,
}

struct Papers<W: Work> {
    /// The loop's time.
    now: Time,
    /// For the work, and bytes that it has not used up.
    inbox: Vec<Vec<u8>>,
    waiting: usize,
    /// From the work, and how many bytes.
    outbox: VecDeque<Vec<u8>>,
    ahead: usize,
    state: W::State,
    remarks: Vec<W::Remark>,
    error: Option<W::Error>,
    pose: Pose,
    /// The thread has been called.
    is_called: bool,
    wanted: Wanted,
    /// The loop has left; true: the work is dismissed.
    closed: Option<bool>,
}

/// What the thread does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pose {
    Working,
    /// It is about to look for work.
    Between,
    /// It waits to be called; with work left where the outbox is full.
    Asleep,
    Paused,
}

/// What the loop waits for.
#[derive(Clone, Copy)]
struct Wanted {
    block: bool,
    room: bool,
    /// The end of what the thread is about.
    end: bool,
}

impl<W: Work> Papers<W> {
    fn new() -> Self {
        Self {
            now: Time::ZERO,
            inbox: Vec::new(),
            waiting: 0,
            outbox: VecDeque::new(),
            ahead: 0,
            state: W::State::default(),
            remarks: Vec::new(),
            error: None,
            pose: Pose::Between,
            is_called: true,
            wanted: Wanted { block: true, room: false, end: false },
            closed: None,
        }
    }

    fn call(&mut self, bell: &Condvar) {
        self.is_called = true;
        if matches!(self.pose, Pose::Asleep | Pose::Paused) {
            self.pose = Pose::Between;
            bell.notify_one();
        }
    }
}

impl<W: Work> Desk<W> {
    fn lock(&self) -> MutexGuard<'_, Papers<W>> {
        self.papers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until the loop has left.
    fn run(&self, mut work: W, wake: &impl Fn()) {
        let (mut more, mut failed) = (true, false);
        while let Some((now, blocks)) = self.next(more && !failed) {
            if failed {
                continue;
            }
            let outcome = self.turn(&mut work, now, blocks);
            (more, failed) = (matches!(outcome, Ok(true)), outcome.is_err());
            if self.tell(&mut work, outcome.err()) {
                wake();
            }
        }
        if self.lock().closed == Some(true) {
            work.dismiss();
        }
    }

    /// Waits for something to do; `None`: the loop has left.
    fn next(&self, more: bool) -> Option<(Time, Vec<Vec<u8>>)> {
        let mut papers = self.lock();
        let paused = more && papers.ahead >= AHEAD_MAX;
        while papers.closed.is_none() && !papers.is_called && (!more || paused) {
            papers.pose = if paused { Pose::Paused } else { Pose::Asleep };
            papers = self.bell.wait(papers).unwrap_or_else(PoisonError::into_inner);
        }
        (papers.is_called, papers.pose) = (false, Pose::Working);
        let next = (papers.now, std::mem::take(&mut papers.inbox));
        papers.closed.is_none().then_some(next)
    }

    fn turn(&self, work: &mut W, now: Time, blocks: Vec<Vec<u8>>) -> Result<bool, W::Error> {
        for block in blocks {
            work.handle_block(block)?;
        }
        if self.lock().ahead >= AHEAD_MAX { Ok(true) } else { work.advance(now) }
    }

    /// Puts down what the work has come to; whether the loop is to be called.
    fn tell(&self, work: &mut W, error: Option<W::Error>) -> bool {
        let mut papers = self.lock();
        while let Some(block) = work.poll_block() {
            papers.ahead += block.len();
            papers.outbox.push_back(block);
        }
        papers.waiting = work.waiting() + papers.inbox.iter().map(Vec::len).sum::<usize>();
        papers.state = work.state();
        papers.remarks.append(&mut work.take_remarks());
        let failed = error.is_some();
        papers.error = papers.error.take().or(error);
        papers.pose = Pose::Between;
        let Wanted { block, room, end } = papers.wanted;
        let (fed, relieved) =
            (block && !papers.outbox.is_empty(), room && papers.waiting <= WAITING_MAX / 2);
        papers.wanted = Wanted { block: block && !fed, room: room && !relieved, end: false };
        fed || relieved || end || failed || work.is_finished() || !papers.remarks.is_empty()
    }
}

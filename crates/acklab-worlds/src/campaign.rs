//! Many runs, several at once: what failed for a reason that passes is tried again, and what ended is handed over at
//! once, so that an interruption loses only what was under way.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How runs are made.
#[derive(Clone, Copy, Debug)]
pub struct Campaign<'a> {
    /// At once.
    pub parallel: usize,
    /// From one start to the next at the beginning: who starts everything at one instant measures the start.
    pub apart: Duration,
    /// How often a run is tried before all is given up.
    pub attempts: u32,
    /// Ends everything that is under way.
    pub interrupted: &'a AtomicBool,
}

/// What became of one attempt at a run.
#[derive(Debug)]
pub enum News<D, E> {
    /// It gave this.
    Done(D),
    /// It will be tried again.
    Repeated(E),
}

impl Campaign<'_> {
    /// Does every task and hands over each with its news, in the order in which they come; the first failure that
    /// does not pass, or that `hear` answers with, ends all.
    pub fn run<T: Sync, D: Send, E: Send>(
        &self,
        tasks: &[T],
        attempt: impl Fn(&T) -> Result<D, E> + Sync,
        passes: impl Fn(&E) -> bool,
        mut hear: impl FnMut(&T, News<D, E>) -> Result<(), E>,
    ) -> Result<(), E> {
        let waiting: Mutex<VecDeque<(usize, u32)>> =
            Mutex::new((0..tasks.len()).map(|index| (index, 1)).collect());
        let queue = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let working = AtomicUsize::new(0);
        let (sender, outcomes) = mpsc::channel();
        thread::scope(|scope| {
            let mut open = tasks.len();
            let mut failure = None;
            while open > 0 && failure.is_none() {
                if !queue().is_empty() && working.load(Ordering::Relaxed) < self.parallel {
                    working.fetch_add(1, Ordering::Relaxed);
                    let (sender, queue, attempt, working) =
                        (sender.clone(), &queue, &attempt, &working);
                    scope.spawn(move || {
                        loop {
                            // Counted out under the lock, so that nothing is left for no worker.
                            let mut waiting = queue();
                            let Some((index, count)) = waiting.pop_front() else {
                                working.fetch_sub(1, Ordering::Relaxed);
                                return;
                            };
                            drop(waiting);
                            if sender.send((index, count, attempt(&tasks[index]))).is_err() {
                                return;
                            }
                        }
                    });
                }
                match outcomes.recv_timeout(self.apart) {
                    Ok((index, _, Ok(done))) => {
                        open -= 1;
                        failure = hear(&tasks[index], News::Done(done)).err();
                    }
                    Ok((index, count, Err(error))) if passes(&error) && count < self.attempts => {
                        // Behind the others: until then the machine may be quieter.
                        queue().push_back((index, count + 1));
                        failure = hear(&tasks[index], News::Repeated(error)).err();
                    }
                    Ok((_, _, Err(error))) => failure = Some(error),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
                }
            }
            let Some(error) = failure else { return Ok(()) };
            queue().clear();
            self.interrupted.store(true, Ordering::Relaxed);
            drop(outcomes);
            Err(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicUsize;

    fn campaign(interrupted: &AtomicBool) -> Campaign<'_> {
        Campaign { parallel: 3, apart: Duration::from_millis(1), attempts: 3, interrupted }
    }

    #[test]
    fn what_passes_is_tried_again_and_everything_is_done_once() {
        let interrupted = AtomicBool::new(false);
        let tried: Vec<AtomicUsize> = (0..10).map(|_| AtomicUsize::new(0)).collect();
        let tasks: Vec<usize> = (0..10).collect();
        let (mut done, mut repeated) = (BTreeMap::<usize, u32>::new(), 0);
        let outcome = campaign(&interrupted).run(
            &tasks,
            |&task| match tried[task].fetch_add(1, Ordering::Relaxed) {
                count if task % 2 == 1 && count < 2 => Err("late"),
                _ => Ok(task),
            },
            |_| true,
            |&task, news| {
                match news {
                    News::Done(of) => {
                        assert_eq!(of, task);
                        *done.entry(task).or_default() += 1;
                    }
                    News::Repeated(_) => repeated += 1,
                }
                Ok(())
            },
        );
        assert_eq!((outcome, repeated), (Ok(()), 10));
        assert!(done.len() == 10 && done.values().all(|count| *count == 1), "{done:?}");
    }

    #[test]
    fn what_does_not_pass_ends_all_at_the_third_time() {
        let interrupted = AtomicBool::new(false);
        let tried = AtomicUsize::new(0);
        let attempt = |(): &()| -> Result<(), _> { Err(tried.fetch_add(1, Ordering::Relaxed)) };
        let outcome = campaign(&interrupted).run(&[()], attempt, |_| true, |(), _| Ok(()));
        assert_eq!(outcome, Err(2), "the third attempt's reason");
        assert!(interrupted.load(Ordering::Relaxed), "whatever is under way is ended");
    }
}

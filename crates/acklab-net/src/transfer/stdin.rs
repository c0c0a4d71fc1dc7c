//! Standard input as something to send: a thread reads it chunk by chunk, so that a pipe that pauses
//! stops neither acknowledgments nor keep-alives.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;

use super::chunk::CHUNK;

/// Chunks that are read ahead.
const AHEAD: usize = 2;

/// Chunks of a stream as they come.
#[derive(Debug)]
pub struct Input(Receiver<io::Result<Vec<u8>>>);

/// What a stream has at the moment.
#[derive(Debug)]
pub enum Poured {
    /// A chunk; all but the last are full.
    Chunk(Vec<u8>),
    /// Nothing yet.
    Nothing,
    End,
    /// It cannot be read.
    Failed(io::Error),
}

impl Input {
    /// Reads `from` until its end; `wake` is called whenever there is something new.
    pub fn new(from: impl Read + Send + 'static, wake: impl Fn() + Send + 'static) -> Self {
        let (sender, receiver) = sync_channel(AHEAD);
        thread::spawn(move || {
            let mut from = from;
            loop {
                let mut chunk = Vec::with_capacity(CHUNK as usize);
                let outcome = (&mut from).take(CHUNK).read_to_end(&mut chunk);
                let last = outcome.is_err() || chunk.len() < CHUNK as usize;
                let gone = match outcome {
                    Err(error) => sender.send(Err(error)).is_err(),
                    Ok(0) => false,
                    Ok(_) => sender.send(Ok(chunk)).is_err(),
                };
                if last || gone {
                    break;
                }
                wake();
            }
            // The reader sees the end when no sender is left.
            drop(sender);
            wake();
        });
        Self(receiver)
    }

    /// The next chunk.
    pub fn poll(&self) -> Poured {
        match self.0.try_recv() {
            Ok(Ok(chunk)) => Poured::Chunk(chunk),
            Ok(Err(error)) => Poured::Failed(error),
            Err(TryRecvError::Empty) => Poured::Nothing,
            Err(TryRecvError::Disconnected) => Poured::End,
        }
    }
}

//! A capture of everything that leaves or reaches a namespace.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use acklab_core::time::Time;
use acklab_net::tap::{Frames, Tap};
use acklab_trace::capture::{CaptureWriter, Format, WriterOptions};

use super::clock::Clock;
use super::space;

/// Captures namespace `name` into `file` until `end`, ns after time zero; the thread returns how many frames it
/// lost. It listens when this returns.
pub(super) fn start(
    name: &str,
    file: &Path,
    clock: Clock,
    end: u64,
) -> io::Result<JoinHandle<io::Result<u64>>> {
    let options = WriterOptions { format: Format::Pcapng, ..WriterOptions::default() };
    let mut writer =
        CaptureWriter::new(BufWriter::with_capacity(1 << 20, File::create(file)?), options)?;
    let mut tap = space::inside(name, || Tap::open(Frames::Both))??;
    let until = Time::from_nanos(clock.zero() + end);
    let (ready, listening) = mpsc::channel();
    let thread = thread::spawn(move || {
        let _ = ready.send(());
        loop {
            match tap.poll_frame()? {
                Some((time, frame)) if time < until => {
                    writer.write_frame(time, frame, frame.len() as u32)?;
                }
                None if clock.now() < end => {}
                _ => break,
            }
        }
        let lost = u64::from(tap.lost_frames());
        let _ = writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(lost)
    });
    let _ = listening.recv();
    Ok(thread)
}

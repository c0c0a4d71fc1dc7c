//! Recordings of the real kernel (Linux, root): a write-write-read exchange as a pcapng file.
//!
//! Joins the recorder, which knows no file format, and the capture writer, which knows no kernel.
//! The same exchange in virtual time is the scenario `write-write-read`. A file that is there
//! already is kept until the first frame arrives, so that a recording which is not permitted
//! leaves the last one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use acklab_core::time::{Span, Time};
use acklab_net::record::{RecordError, RecordOptions};
use acklab_trace::capture::{CaptureWriter, Format, WriterOptions};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recording {
    /// How often the client asked and the server answered.
    pub(crate) exchanges: u32,
    /// Frames in the file.
    pub(crate) frames: u64,
    /// From the first frame to the last.
    pub(crate) duration: Span,
}

/// Why there is no recording, or no whole one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordingError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    File(#[from] io::Error),
}

/// Records one exchange into the file at `path`; blocks until it is over, or `ended`.
pub(crate) fn record(
    path: &Path,
    options: &RecordOptions,
    ended: &AtomicBool,
) -> Result<Recording, RecordingError> {
    // Opened before anything is recorded, truncated only when there is something to write.
    let mut file = Some(OpenOptions::new().write(true).create(true).truncate(false).open(path)?);
    let mut capture = None;
    let mut written = Ok(());
    let (mut frames, mut first, mut last) = (0, Time::ZERO, Time::ZERO);
    let recorded = acklab_net::record::run(options, ended, &mut |time, frame| {
        if frames == 0 {
            first = time;
            match file.take().map(begin) {
                Some(Ok(writer)) => capture = Some(writer),
                Some(Err(error)) => written = Err(error),
                None => {}
            }
        }
        if let (Some(writer), Ok(())) = (&mut capture, &written) {
            written = writer.write_frame(time, frame, frame.len() as u32);
        }
        (frames, last) = (frames + 1, time);
    });
    if frames == 0 && fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
        fs::remove_file(path)?;
    }
    if let (Some(writer), Ok(())) = (capture, &written) {
        written = writer.finish().map(drop);
    }
    let exchanges = recorded?;
    written?;
    Ok(Recording { exchanges, frames, duration: last.since(first) })
}

fn begin(file: File) -> io::Result<CaptureWriter<BufWriter<File>>> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    let options = WriterOptions { format: Format::Pcapng, ..WriterOptions::default() };
    CaptureWriter::new(BufWriter::new(file), options)
}

//! The demonstration: a real capture and the same exchange in virtual time, judged alike.
//!
//! The capture was recorded from the Linux kernel; `write-write-read` with its defaults is the same
//! exchange. The simulated packets are written as a second capture and go through the same
//! diagnosis, so that what is compared comes from one instrument.

use acklab_trace::capture::{CaptureError, CaptureReader};
use acklab_trace::diagnosis::{AddedDelay, Diagnosis, Stall};
use acklab_trace::{Options, diagnose_reader};

use crate::scenario::WriteWriteRead;
use acklab_lab::capture;
use acklab_lab::parameter::SetError;
use acklab_lab::plan::Plan;
use acklab_lab::results::Results;
use acklab_lab::run;
use acklab_lab::scenario::{self, CapturePoint};

/// The exchange in virtual time.
pub struct Twin {
    /// What the run measured.
    pub results: Results,
    /// Its packets, as pcapng.
    pub packets: Vec<u8>,
    pub diagnosis: Diagnosis,
}

/// Why there is no twin.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error(transparent)]
    Set(#[from] SetError),
    #[error("the simulated packets: {0}")]
    Write(#[from] std::io::Error),
    #[error("the simulated packets: {0}")]
    Read(#[from] CaptureError),
}

/// Runs the recorded exchange in virtual time and diagnoses its packets.
pub fn simulate() -> Result<Twin, DemoError> {
    let plan = Plan::single(&WriteWriteRead, scenario::defaults(&WriteWriteRead), 1, None)?;
    let mut packets = Vec::new();
    capture::write(&plan, CapturePoint::Sender, &mut packets)?;
    let mut reader = CaptureReader::new(packets.as_slice())?;
    let diagnosis = diagnose_reader(&mut reader, &Options::default(), |_| ())?;
    drop(reader);
    Ok(Twin { results: run::run(&plan), packets, diagnosis })
}

/// The stalls of a diagnosis in three numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stalls {
    /// Held writes.
    pub count: u64,
    /// Time lost, seconds.
    pub seconds: f64,
    /// The delay added to each held message.
    pub delay_ms: AddedDelay,
}

impl Stalls {
    /// The worst stalled direction's stalls; zeros where there is none.
    pub fn of(diagnosis: &Diagnosis) -> Self {
        let stalls =
            diagnosis.flows.iter().flat_map(|flow| &flow.directions).flat_map(|d| &d.stalls);
        let worst: Option<&Stall> = stalls.max_by(|a, b| a.seconds.total_cmp(&b.seconds));
        worst.map_or_else(Self::default, |stall| Self {
            count: stall.count,
            seconds: stall.seconds,
            delay_ms: stall.added_delay_ms,
        })
    }
}

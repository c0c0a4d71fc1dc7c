//! What all verbs of `acklab dataset` do with files.

use std::fs;
use std::path::Path;

use acklab_worlds::dataset::case::CaseFiles;
use acklab_worlds::dataset::{Fault, columns};

use crate::outcome::Failure;

/// A fault as the end of a verb.
pub(super) fn unusable(fault: &Fault) -> Failure {
    Failure::Unusable(fault.to_string())
}

/// The table of all messages.
pub(super) fn write_parquet(cases: &[CaseFiles], folder: &Path) -> Result<(), Failure> {
    let path = folder.join("messages.parquet");
    let mut bytes = Vec::new();
    columns(cases).write_parquet(&mut bytes).map_err(|error| Failure::at(path.display(), error))?;
    fs::write(&path, bytes).map_err(|error| Failure::at(path.display(), error))
}

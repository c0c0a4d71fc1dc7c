//! The folder that a run writes.
//!
//! `result.json` (the contract's JSON), `samples.parquet` (one row per sample of the main metric),
//! `report.html`, and `scenario.toml`, with which the run can be repeated. The scenario is written
//! first, before anything is computed, so that a folder that cannot be written is told at once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::file::ScenarioFile;
use crate::plan::Plan;
use crate::results::Results;

/// A folder for a run's files.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

/// Why a folder could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A file or the folder itself.
    #[error("{file}: {source}")]
    File {
        /// Its name.
        file: String,
        /// The system's reason.
        source: io::Error,
    },
}

impl Folder {
    /// Makes the folder where it is not there and writes `scenario.toml` into it.
    pub fn create(path: &Path, plan: &Plan) -> Result<Self, OutputError> {
        fs::create_dir_all(path)
            .map_err(|source| OutputError::File { file: path.display().to_string(), source })?;
        let folder = Self { path: path.to_owned() };
        folder.write_file("scenario.toml", ScenarioFile::of(plan).to_text().as_bytes())?;
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the results.
    pub fn write(&self, results: &Results) -> Result<(), OutputError> {
        let json = format!("{:#}\n", results.to_json());
        self.write_file("result.json", json.as_bytes())
    }

    fn write_file(&self, name: &str, bytes: &[u8]) -> Result<(), OutputError> {
        fs::write(self.path.join(name), bytes)
            .map_err(|source| OutputError::File { file: name.into(), source })
    }
}

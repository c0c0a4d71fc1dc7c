//! Runs on the running kernel in a folder, one file each, so that what was interrupted goes on where it was.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::kernel::Done;
use crate::nagle::Experiment;

/// A folder of runs.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// A run in its file.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    schema: String,
    /// As text: numbers with a fraction may be others when they are read back.
    experiment: String,
    run: Done,
}

/// A file of the store cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct StoreError {
    /// Its path.
    pub path: PathBuf,
    /// What is wrong, and how to mend it.
    pub what: String,
}

impl Store {
    /// The runs in `folder`, which is made where it is not there.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let store = Self { folder: folder.to_owned() };
        fs::create_dir_all(folder).map_err(|error| wrong(folder, error))?;
        // Left by a process that was killed while it wrote.
        for entry in fs::read_dir(folder).map_err(|error| wrong(folder, error))? {
            let path = entry.map_err(|error| wrong(folder, error))?.path();
            if path.extension().is_some_and(|extension| extension == UNFINISHED) {
                fs::remove_file(&path).map_err(|error| wrong(&path, error))?;
            }
        }
        Ok(store)
    }

    /// The run of `experiment` called `name`, if it is there. A file of another experiment is refused.
    pub fn find(&self, name: &str, experiment: &Experiment) -> Result<Option<Done>, StoreError> {
        let path = self.path(name);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| wrong(&path, error))?,
        };
        let kept: Kept = serde_json::from_reader(BufReader::new(file))
            .map_err(|error| wrong(&path, format!("{error}; remove it to make the run again")))?;
        if kept.experiment == words(experiment) && kept.schema == SCHEMA {
            return Ok(Some(kept.run));
        }
        let what = "is a run with other settings or another seed; take another folder, or the same settings";
        Err(wrong(&path, what))
    }

    /// Keeps a run: whole, or not at all.
    pub fn keep(&self, name: &str, experiment: &Experiment, run: &Done) -> Result<(), StoreError> {
        let path = self.path(name);
        let unfinished = path.with_extension(UNFINISHED);
        let (schema, experiment) = (SCHEMA.to_owned(), words(experiment));
        let kept = Kept { schema, experiment, run: run.clone() };
        let write = || -> io::Result<()> {
            let mut file = BufWriter::new(File::create(&unfinished)?);
            serde_json::to_writer(&mut file, &kept)?;
            file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
            fs::rename(&unfinished, &path)
        };
        write().map_err(|error| {
            // What does not fit is not left lying about.
            let _ = fs::remove_file(&unfinished);
            wrong(&path, error)
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }
}

fn wrong(path: &Path, what: impl std::fmt::Display) -> StoreError {
    StoreError { path: path.to_owned(), what: what.to_string() }
}

fn words(experiment: &Experiment) -> String {
    serde_json::to_string(experiment).unwrap_or_default()
}

/// Name of a file's form.
const SCHEMA: &str = "acklab.kernel-run/1";
/// Of files that are being written.
const UNFINISHED: &str = "unfinished";

//! The data set of Al-Hammouri and Olsen, "A dataset for buffering delays due to the interaction between the Nagle
//! algorithm and the delayed acknowledgement algorithm in cyber-physical systems communication", Data in Brief 39
//! (2021) 107530, in its published layout: written of runs in any world, read, checked.
//!
//! `Data/<ReceiverOS>-<NagleOn|NagleOff>-<RTT>ms/` has 42 files for ten runs: what the sender's application made and
//! when (`Sender-out-i.txt`), what left its host (`Sniffer-i.txt`), the same message by message
//! (`SnifferTimestamp-i.txt`), both side by side with their difference (`App-Net-Delay-Sniffer-i.txt`), the differences of all
//! runs (`App-Net-Delay-ALL.txt`), and their distribution (`CDF.txt`). Times are in seconds, delays in microseconds, those of
//! the distribution in milliseconds.

pub mod case;
pub mod compare;
mod decimal;
pub mod layout;
mod rows;
mod tidy;
mod verify;

use std::fs;
use std::path::{Path, PathBuf};

pub use acklab_stats::Summary;

pub use self::rows::Fault;
pub use self::tidy::columns;

use self::case::CaseFiles;
use self::layout::CaseName;

/// The folder of the cases below that of a data set.
pub const DATA: &str = "Data";

/// The cases' folders of the data set in `folder`, which is the folder that has `Data`, or `Data` itself; in the order of their
/// names.
pub fn folders(folder: &Path) -> Result<Vec<(PathBuf, CaseName)>, Fault> {
    let data = folder.join(DATA);
    let data = if data.is_dir() { data } else { folder.to_owned() };
    let entries = fs::read_dir(&data).map_err(|error| Fault::in_file(&data, error))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| Fault::in_file(&data, error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let (true, Ok(case)) = (path.is_dir(), CaseName::parse(&name)) {
            found.push((path, case));
        }
    }
    if found.is_empty() {
        let what = "no folder is called <ReceiverOS>-<NagleOn|NagleOff>-<RTT>ms, such as Windows-NagleOff-30ms";
        return Err(Fault::in_file(&data, what));
    }
    found.sort_by(|a, b| a.1.cmp(&b.1));
    Ok(found)
}

/// A data set as it was read, and everything that is wrong with it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Case after case.
    pub cases: Vec<CaseFiles>,
    /// In the order of the files.
    pub faults: Vec<Fault>,
}

/// Reads the data set in `folder` and checks it.
pub fn check(folder: &Path) -> Result<Checked, Fault> {
    let (mut cases, mut faults) = (Vec::new(), Vec::new());
    for (path, name) in folders(folder)? {
        let before = faults.len();
        let case = CaseFiles::read(&path, name, &mut faults);
        // What cannot be read need not agree.
        if faults.len() == before {
            verify::check(&case, &mut faults);
        }
        cases.push(case);
    }
    Ok(Checked { cases, faults })
}

/// Reads the data set in `folder`; the first thing that cannot be read ends it.
pub fn read(folder: &Path) -> Result<Vec<CaseFiles>, Fault> {
    let mut faults = Vec::new();
    let read = |(path, name): (PathBuf, CaseName)| CaseFiles::read(&path, name, &mut faults);
    let cases = folders(folder)?.into_iter().map(read).collect();
    faults.into_iter().next().map_or(Ok(cases), Err)
}

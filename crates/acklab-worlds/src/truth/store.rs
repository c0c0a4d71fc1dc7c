//! A case as a folder: `truth.json` (schema `acklab.truth/1`), `client.pcap`, `middle.pcap` and `server.pcap`.
//!
//! Half of the cases are kept out of all tuning: which, a hash of the name decides, so that repetitions of a case are on
//! one side, and a new case never moves an old one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use acklab_core::rng::Rng;
use acklab_trace::capture::{CaptureReader, CaptureWriter, LinkType, WriterOptions};
use serde::{Deserialize, Serialize};

use super::hold::Direction;
use super::script::Case;
use super::vantage::Frame;

/// What is known of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Truth {
    /// `acklab.truth/1`.
    pub schema: String,
    /// The case.
    pub case: Case,
    /// Which repetition, from 1.
    pub run: u32,
    /// The kernel's release.
    pub kernel: String,
    /// How late the emulator was, p99, us.
    pub lateness_us: f64,
    /// How far along from client to server the capture in the middle lies, 0 to 1.
    pub middle: f64,
    /// From the client, then from the server.
    pub directions: Vec<Direction>,
}

/// Name and version.
pub const SCHEMA: &str = "acklab.truth/1";
/// The captures' names, without ending.
pub const VANTAGES: [&str; 3] = ["client", "middle", "server"];

/// A case that was made, with its captures.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its folder.
    pub folder: PathBuf,
    /// What happened.
    pub truth: Truth,
    /// Client, middle, server.
    pub captures: [Vec<Frame>; 3],
}

/// Whether cases of this name are kept out of tuning; what follows `__` is a change to the same case.
pub fn is_kept_out(name: &str) -> bool {
    Rng::named(0, name.split("__").next().unwrap_or(name)).chance(0.5)
}

impl Kept {
    /// `name.run` in `tune` or `kept` below `root`.
    pub fn place(root: &Path, case: &Case, run: u32) -> PathBuf {
        let half = if is_kept_out(&case.name) { "kept" } else { "tune" };
        root.join(half).join(format!("{}.{run}", case.name))
    }

    /// Writes the folder; it is there whole or not at all.
    pub fn write(&self) -> io::Result<()> {
        let unfinished = self.folder.with_extension("unfinished");
        fs::create_dir_all(&unfinished)?;
        (0..VANTAGES.len()).try_for_each(|vantage| self.write_into(&unfinished, vantage))?;
        fs::write(unfinished.join("truth.json"), serde_json::to_vec(&self.truth)?)?;
        fs::rename(&unfinished, &self.folder)
    }

    /// Writes one of the captures anew.
    pub fn write_capture(&self, vantage: usize) -> io::Result<()> {
        self.write_into(&self.folder, vantage)
    }

    fn write_into(&self, folder: &Path, vantage: usize) -> io::Result<()> {
        let options = WriterOptions { link: LinkType::RAW, ..WriterOptions::default() };
        let mut writer = CaptureWriter::new(Vec::new(), options)?;
        for (at, bytes) in &self.captures[vantage] {
            writer.write_frame(*at, bytes, bytes.len() as u32)?;
        }
        fs::write(folder.join(format!("{}.pcap", VANTAGES[vantage])), writer.finish()?)
    }

    /// Reads a folder.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let named = |path: &Path, error: &dyn std::fmt::Display| {
            io::Error::other(format!("{}: {error}", path.display()))
        };
        let path = folder.join("truth.json");
        let text = fs::read(&path).map_err(|error| named(&path, &error))?;
        let truth: Truth = serde_json::from_slice(&text).map_err(|error| named(&path, &error))?;
        let mut captures = [const { Vec::new() }; 3];
        for (name, frames) in VANTAGES.iter().zip(&mut captures) {
            let path = folder.join(format!("{name}.pcap"));
            let mut reader = CaptureReader::open(&path).map_err(|error| named(&path, &error))?;
            while let Some(frame) = reader.next_frame().map_err(|error| named(&path, &error))? {
                frames.push((frame.time, frame.bytes.to_vec()));
            }
        }
        Ok(Self { folder: folder.to_owned(), truth, captures })
    }

    /// Every case below `root`, by name.
    pub fn list(root: &Path) -> io::Result<Vec<PathBuf>> {
        let mut folders = Vec::new();
        for entry in fs::read_dir(root)? {
            let path = entry?.path();
            if path.join("truth.json").exists() {
                folders.push(path);
            } else if path.is_dir() && path.extension().is_none() {
                folders.extend(Self::list(&path)?);
            }
        }
        folders.sort();
        Ok(folders)
    }
}

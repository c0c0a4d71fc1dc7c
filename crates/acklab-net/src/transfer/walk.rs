//! The sender's tree: files and folders in a fixed order, each folder before what it holds and once
//! more after it, one source after the other, without what is excluded.
//!
//! Only the names of the folders on the way down are in memory. Devices, sockets and pipes are skipped and told;
//! what cannot be read is told too. Symbolic links are not followed, but for those that the user names.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::utsname::uname;

use super::exclude::Exclude;
use super::record::{FileTime, Kind, TransferId};

/// What a file or folder is, as far as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Permissions.
    pub mode: u32,
    /// When it was changed.
    pub mtime: FileTime,
    /// Bytes.
    pub size: u64,
    /// Device and inode: whether a name still means the same file.
    pub inode: (u64, u64),
}

impl Facts {
    /// Of what the kernel says.
    pub fn new(metadata: &Metadata) -> Self {
        Self {
            mode: metadata.mode() & 0o7777,
            mtime: FileTime { seconds: metadata.mtime(), nanos: metadata.mtime_nsec() as u32 },
            size: if metadata.is_file() { metadata.size() } else { 0 },
            inode: (metadata.dev(), metadata.ino()),
        }
    }
}

/// A file or folder to send.
#[derive(Clone, Debug)]
pub struct Item {
    pub path: PathBuf,
    /// What it is called at the receiver.
    pub name: Vec<u8>,
    pub kind: Kind,
    /// And more.
    pub facts: Facts,
    /// Bytes that are not holes, as far as the file system says.
    pub data: u64,
    /// Where a symbolic link leads.
    pub target: Vec<u8>,
}

/// What a step through the tree finds.
#[derive(Debug)]
pub enum Found {
    Item(Item),
    /// A device, socket or pipe.
    Skipped(PathBuf, &'static str),
    /// Something that cannot be read.
    Unreadable(PathBuf, io::Error),
}

/// How much a transfer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Entries: files and folders, a folder twice.
    pub entries: u64,
    pub files: u64,
    /// Bytes of the files, holes included.
    pub bytes: u64,
    /// The same without holes, as far as file systems say.
    pub data: u64,
}

/// What cannot be sent at all.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct SourceError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// A walk through files and folders.
#[derive(Debug)]
pub struct Walk {
    /// What the user named, the first last: where it is, and what it is called at the receiver.
    roots: Vec<(PathBuf, Vec<u8>)>,
    levels: Vec<Level>,
    exclude: Exclude,
}

#[derive(Debug)]
struct Level {
    item: Item,
    /// Names in falling order; the last is the next.
    names: Vec<OsString>,
}

/// What a walk will come to.
#[derive(Clone, Copy, Debug)]
pub struct Survey {
    /// How much it is.
    pub totals: Totals,
    /// The same for every run of the same command on the same machine.
    pub transfer: TransferId,
}

impl Survey {
    /// Walks through `paths` once without reading any file.
    pub fn new(paths: &[impl AsRef<Path>], exclude: &Exclude) -> Result<Self, SourceError> {
        let mut totals = Totals::default();
        let walk = Walk::new(paths, exclude)?;
        let mut hasher = blake3::Hasher::new_derive_key("acklab transfer 1");
        hasher.update(&fs::read("/etc/machine-id").unwrap_or_default());
        // Copies of a machine and containers may have one id, or none.
        if let Ok(machine) = uname() {
            hasher.update(machine.nodename().as_bytes()).update(b"\0");
        }
        for (index, (path, _)) in walk.roots.iter().rev().enumerate() {
            // No path holds a zero byte.
            hasher.update(if index == 0 { b"" } else { b"\0" });
            hasher.update(path.as_os_str().as_bytes());
        }
        for found in walk {
            let Found::Item(item) = found else { continue };
            totals.entries += 1;
            totals.files += u64::from(item.kind == Kind::File);
            totals.bytes += item.facts.size;
            totals.data += item.data;
        }
        let mut transfer = [0; 16];
        transfer.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Ok(Self { totals, transfer })
    }
}

impl Walk {
    /// From `paths` down, without what is excluded; at the receiver each has its last part for a name.
    pub fn new(paths: &[impl AsRef<Path>], exclude: &Exclude) -> Result<Self, SourceError> {
        let mut roots: Vec<(PathBuf, Vec<u8>)> = Vec::new();
        for path in paths.iter().map(AsRef::as_ref) {
            let failed = |source| SourceError { path: path.to_owned(), source };
            let root = root(path).map_err(failed)?;
            if roots.iter().any(|(_, name)| *name == root.1) {
                let mend =
                    "another of the sources has the same name: send them one after the other";
                return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, mend)));
            }
            roots.push(root);
        }
        roots.reverse();
        Ok(Self { roots, levels: Vec::new(), exclude: exclude.clone() })
    }

    fn visit(&mut self, path: PathBuf, name: Vec<u8>) -> Found {
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) => return Found::Unreadable(path, error),
        };
        let facts = Facts::new(&metadata);
        if metadata.is_file() {
            let data = facts.size.min(metadata.blocks() * 512);
            let target = Vec::new();
            return Found::Item(Item { path, name, kind: Kind::File, facts, data, target });
        }
        if metadata.is_symlink() {
            return match fs::read_link(&path) {
                Ok(target) => {
                    let target = target.into_os_string().into_vec();
                    Found::Item(Item { path, name, kind: Kind::Link, facts, data: 0, target })
                }
                Err(error) => Found::Unreadable(path, error),
            };
        }
        if !metadata.is_dir() {
            return Found::Skipped(path, "neither file nor folder");
        }
        let names = fs::read_dir(&path)
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
        let mut names: Vec<OsString> = match names {
            Ok(names) => names,
            Err(error) => return Found::Unreadable(path, error),
        };
        names.sort_unstable_by(|a, b| b.cmp(a));
        let (kind, target) = (Kind::Directory, Vec::new());
        let item = Item { path, name, kind, facts, data: 0, target };
        self.levels.push(Level { item: item.clone(), names });
        Found::Item(item)
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let Some(level) = self.levels.last_mut() else {
                let (path, name) = self.roots.pop()?;
                return Some(self.visit(path, name));
            };
            let Some(next) = level.names.pop() else {
                let item = self.levels.pop()?.item;
                return Some(Found::Item(Item { kind: Kind::DirectoryEnd, ..item }));
            };
            let path = level.item.path.join(&next);
            let mut name = level.item.name.clone();
            name.push(b'/');
            name.extend_from_slice(&next.into_vec());
            let is_folder = || path.is_dir() && !path.is_symlink();
            if !self.exclude.has(&name, is_folder) {
                return Some(self.visit(path, name));
            }
        }
    }
}

/// Where a source is and what it is called at the receiver.
fn root(path: &Path) -> io::Result<(PathBuf, Vec<u8>)> {
    let kind = fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        let mend = "is neither a file nor a folder; to send what can be read from it: \
                    acklab send - ADDR:PORT < FILE";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, mend));
    }
    let real = path.canonicalize()?;
    let name = path.file_name().or_else(|| real.file_name()).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "name a file or folder below /")
    })?;
    let name = name.as_bytes().to_vec();
    Ok((real, name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn machines_with_one_id_and_two_names_send_two_transfers() {
        let scratch = tempfile::tempdir().expect("a folder");
        let transfer =
            |path: &Path| Survey::new(&[path], &Exclude::default()).expect("a survey").transfer;
        let (path, here) = (scratch.path().to_owned(), transfer(scratch.path()));
        assert_eq!(here, transfer(scratch.path()), "each run of the same command");
        let renamed = std::thread::spawn(move || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUTS).ok()?;
            fs::write("/proc/sys/kernel/hostname", "another-name").ok()?;
            Some(transfer(&path))
        });
        match renamed.join().expect("the thread") {
            Some(there) => assert_ne!(here, there),
            None => eprintln!("SKIPPED: another machine's name: not permitted here"),
        }
    }

    #[test]
    fn a_tree_is_walked_in_order_and_folders_end_after_what_they_hold() {
        let scratch = tempfile::tempdir().expect("a folder");
        let root = scratch.path().join("top");
        fs::create_dir_all(root.join("b/empty")).expect("folders");
        fs::write(root.join("b/x"), b"12").expect("a file");
        fs::write(root.join("a"), b"1").expect("a file");
        symlink("a", root.join("link")).expect("a link");
        let seen: Vec<String> = Walk::new(&[&root], &Exclude::default())
            .expect("a walk")
            .map(|found| match found {
                Found::Item(item) => {
                    let name = String::from_utf8_lossy(&item.name).into_owned();
                    format!("{:?} {name} {}", item.kind, item.facts.size)
                }
                Found::Skipped(path, what) => format!("{}: {what}", path.display()),
                Found::Unreadable(path, error) => format!("{}: {error}", path.display()),
            })
            .collect();
        let expected = [
            "Directory top 0",
            "File top/a 1",
            "Directory top/b 0",
            "Directory top/b/empty 0",
            "DirectoryEnd top/b/empty 0",
            "File top/b/x 2",
            "DirectoryEnd top/b 0",
            "Link top/link 0",
            "DirectoryEnd top 0",
        ];
        assert_eq!(seen, expected);
    }
}

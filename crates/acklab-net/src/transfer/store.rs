//! Where one transfer's files go: what a peer names goes below DIR and nowhere else.
//!
//! Every folder is opened from the one above it, one part of the path at a time, never through a
//! symbolic link; so no name and no link in DIR leads out of it. What is not finished lies in
//! `.acklab-part/TRANSFER/` under the hash of what it is, and gets its name by `rename` when it is
//! complete. A list `done` there says which files of a transfer were finished, so that an interrupted
//! one does not take them again. docs/rudp.md section 10.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, RenameFlags, openat, readlinkat, renameat, renameat2};
use nix::sys::stat::{FileStat, Mode, SFlag, UtimensatFlags, fstat, fstatat, utimensat};
use nix::sys::statvfs::fstatvfs;
use nix::sys::time::TimeSpec;
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

use super::directory::{Directory, StoreError, Turn};
use super::finished;
use super::journal::FileId;
use super::name::{Name, PART_FOLDER};
use super::places::{close_again, dress, file_at, folder_at, open_folder_at, open_up, permissions};
use super::policy::Existing;
use super::record::{FileTime, TransferId};
use super::sync::Unsynced;

/// One transfer's files.
#[derive(Debug)]
pub struct Store {
    directory: Directory,
    turn: Turn,
    transfer: TransferId,
    parts: OwnedFd,
    folder: OwnedFd,
    list: Arc<File>,
    done: BTreeSet<FileId>,
    /// The folder that was used last.
    parent: Option<(Vec<u8>, OwnedFd)>,
    unsynced: Unsynced,
    held: bool,
    /// Nothing is to be changed.
    rehearsed: bool,
    /// A file or folder could not be given its permissions or time.
    bare: bool,
}

impl Store {
    /// Begins a transfer into `directory`, or goes on with one if `resume` and something of it is here. One that is
    /// `rehearsed` changes nothing here.
    pub fn begin(
        directory: &Directory,
        transfer: TransferId,
        resume: bool,
        rehearsed: bool,
    ) -> Result<Self, StoreError> {
        let failed = |errno: Errno| directory.failed(errno);
        let parts = folder_at(directory.root(), OsStr::new(PART_FOLDER)).map_err(failed)?;
        let folder = OsString::from(HEXLOWER.encode(&transfer));
        let held = fstatat(&parts, &*folder, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok();
        let folder = folder_at(&parts, &folder).map_err(failed)?;
        let (turn, list) = directory.claim(transfer, &folder, rehearsed)?;
        let held = held && resume;
        let done = finished::read(&list, held).map_err(|error| directory.failed(error))?;
        let (directory, unsynced) = (directory.clone(), Unsynced::default());
        Ok(Self {
            directory,
            turn,
            transfer,
            parts,
            folder,
            list,
            done,
            parent: None,
            unsynced,
            held,
            rehearsed,
            bare: false,
        })
    }

    /// Whether a file or folder could not be given its permissions or time.
    pub fn is_bare(&self) -> bool {
        self.bare
    }

    /// Whether something of this transfer was here when it began.
    pub fn held(&self) -> bool {
        self.held
    }

    /// Whether nothing is to be changed.
    pub fn is_rehearsed(&self) -> bool {
        self.rehearsed
    }

    pub fn transfer(&self) -> &TransferId {
        &self.transfer
    }

    /// The folder's options.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// This session's turns: nothing is changed but in one.
    pub fn turn(&self) -> Turn {
        self.turn.clone()
    }

    /// What has changed since the last sync.
    pub fn unsynced(&mut self) -> &mut Unsynced {
        &mut self.unsynced
    }

    /// The same, to be synced, and a folder of the same file system.
    pub fn take_unsynced(&mut self) -> io::Result<(Unsynced, OwnedFd)> {
        Ok((std::mem::take(&mut self.unsynced), self.directory.root().try_clone()?))
    }

    /// Bytes that are free for this user.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let stat = fstatvfs(self.directory.root())?;
        Ok(stat.blocks_available() * stat.fragment_size())
    }

    /// Makes a folder, or takes the one that is there, open to its owner while it is filled.
    pub fn make_folder(&mut self, name: &Name) -> io::Result<()> {
        if self.rehearsed {
            return Ok(());
        }
        let folder = self.within(name, folder_at)?;
        self.check_is_no_part(&folder)?;
        open_up(&folder)?;
        self.parent_changed()
    }

    /// Sets a folder's permissions and time, when what it holds is there.
    pub fn finish_folder(&mut self, name: &Name, mode: u32, mtime: FileTime) -> io::Result<()> {
        if self.rehearsed {
            return Ok(());
        }
        let folder = self.within(name, folder_at)?;
        self.check_is_no_part(&folder)?;
        let sticky = Mode::from_bits_truncate(mode & Mode::S_ISVTX.bits());
        self.bare |= dress(&folder, permissions(mode) | sticky, Some(mtime))?;
        self.unsynced.add(folder)
    }

    /// An error for the folder of unfinished files, whatever it is called: file systems that fold case take other names
    /// for it too (U+212A for k), and it may be mounted elsewhere.
    fn check_is_no_part(&self, folder: &OwnedFd) -> io::Result<()> {
        let here = |folder| fstat(folder).map(|stat| (stat.st_dev, stat.st_ino));
        if here(folder)? == here(&self.parts)? {
            return Err(io::Error::other("the path leads into the folder of unfinished files"));
        }
        Ok(())
    }

    /// Names in the folder that was used last have changed.
    fn parent_changed(&mut self) -> io::Result<()> {
        let parent = self.parent.as_ref().map_or(self.directory.root(), |(_, folder)| folder);
        self.unsynced.add(parent)
    }

    /// Whether a name is taken.
    pub fn exists(&mut self, name: &Name) -> io::Result<bool> {
        Ok(self.stat(name)?.is_some())
    }

    /// Whether a file is there that has this size and time: the sender's, unless content is to be compared, in which
    /// case it must have been finished earlier in this transfer.
    pub fn has(&mut self, id: &FileId, name: &Name, size: u64, mtime: FileTime) -> bool {
        let believed = !self.directory.policy().checksum || self.done.contains(id);
        believed
            && self.stat(name).ok().flatten().is_some_and(|stat| {
                is_regular(&stat)
                    && stat.st_size == size as i64
                    && (stat.st_mtime, stat.st_mtime_nsec)
                        == (mtime.seconds, i64::from(mtime.nanos))
            })
    }

    /// Whether a file of this size is there, whose content is to be compared with the sender's.
    pub fn compares(&mut self, name: &Name, size: u64) -> bool {
        size > 0
            && self.directory.policy().checksum
            && self
                .stat(name)
                .ok()
                .flatten()
                .is_some_and(|stat| is_regular(&stat) && stat.st_size == size as i64)
    }

    /// Opens the file of that name, which is there already.
    pub fn open_existing(&mut self, name: &Name) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        self.within(name, |parent, last| openat(parent, last, flags, Mode::empty())).map(File::from)
    }

    /// Gives a file that is there, and is the sender's, the sender's permissions and time.
    pub fn dress_existing(&mut self, name: &Name, mode: u32, mtime: FileTime) -> io::Result<()> {
        let file = self.open_existing(name)?;
        self.bare |= dress(&file, permissions(mode), Some(mtime))?;
        self.unsynced.add(file)
    }

    /// Makes a symbolic link, which is never followed here.
    pub fn make_link(
        &mut self,
        id: &FileId,
        name: &Name,
        target: &[u8],
        mtime: FileTime,
        keep: bool,
    ) -> io::Result<()> {
        if self.rehearsed {
            return Ok(());
        }
        let target = OsStr::from_bytes(target);
        let there = self.within(name, |parent, last| Ok(readlinkat(parent, last).ok()))?;
        if there.is_some_and(|there| there == target) {
            return Ok(());
        }
        let (folder, part) = (self.folder.try_clone()?, part_name(id));
        let _ = unlinkat(&folder, part.as_str(), UnlinkatFlags::NoRemoveDir);
        symlinkat(target, &folder, part.as_str())?;
        let mtime = TimeSpec::new(mtime.seconds, i64::from(mtime.nanos));
        let (now, follow) = (TimeSpec::UTIME_OMIT, UtimensatFlags::NoFollowSymlink);
        // File systems without times for links do no harm.
        let _ = utimensat(&folder, part.as_str(), &now, &mtime, follow);
        self.within(name, |parent, last| rename(&folder, &part, parent, last, keep))?;
        self.parent_changed()
    }

    fn stat(&mut self, name: &Name) -> io::Result<Option<FileStat>> {
        let found = self.within(name, |parent, last| {
            match fstatat(parent, last, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(stat) => Ok(Some(stat)),
                Err(Errno::ENOENT) => Ok(None),
                Err(errno) => Err(errno),
            }
        });
        match found {
            // Its folder is not there either.
            Err(error) if self.rehearsed && error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found,
        }
    }

    /// Whether a name lies on the file system of DIR, so that data can be given it by `rename`.
    pub fn is_here(&mut self, name: &Name) -> io::Result<bool> {
        let here = fstat(&self.folder)?.st_dev;
        match self.within(name, |parent, _| Ok(fstat(parent)?.st_dev == here)) {
            Err(error) if self.rehearsed && error.kind() == io::ErrorKind::NotFound => Ok(true),
            found => found,
        }
    }

    /// Opens a file's data, from the start or as it was left.
    pub fn open_part(&self, id: &FileId, fresh: bool) -> io::Result<File> {
        Ok(file_at(&self.folder, OsStr::new(&part_name(id)), fresh)?.into())
    }

    /// Length of an unfinished file's data, where there are any.
    pub fn part_len(&self, id: &FileId) -> Option<u64> {
        let stat = fstatat(&self.folder, part_name(id).as_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
        stat.ok().map(|stat| stat.st_size as u64)
    }

    pub fn has_journal(&self, id: &FileId) -> bool {
        fstatat(&self.folder, journal_name(id).as_str(), AtFlags::AT_SYMLINK_NOFOLLOW).is_ok()
    }

    /// Opens a file's journal, from the start or as it was left.
    pub fn open_journal(&self, id: &FileId, fresh: bool) -> io::Result<File> {
        Ok(file_at(&self.folder, OsStr::new(&journal_name(id)), fresh)?.into())
    }

    /// Bytes of the disk that the data of an unfinished file take.
    pub fn part_bytes(&self, id: &FileId) -> u64 {
        let stat = fstatat(&self.folder, part_name(id).as_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
        stat.map_or(0, |stat| stat.st_blocks as u64 * 512)
    }

    /// Forgets what there is of a file.
    pub fn remove_part(&self, id: &FileId) {
        for name in [part_name(id), journal_name(id)] {
            let _ = unlinkat(&self.folder, name.as_str(), UnlinkatFlags::NoRemoveDir);
        }
    }

    /// Gives complete data, which are on the disk, permissions, time and name. A folder of the transfer's may
    /// have been finished before, and stays as it is.
    pub fn place(&mut self, id: &FileId, as_what: &Finish<'_>) -> io::Result<()> {
        let &Finish { name, size, mode, mtime, journal } = as_what;
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(&self.folder, part_name(id).as_str(), flags, Mode::empty())?;
        if fstat(&file)?.st_size != size as i64 {
            return Err(io::Error::other("its data were altered"));
        }
        self.bare |= dress(&file, permissions(mode), mtime)?;
        let named = !name.parent().is_empty();
        let (folder, part, keep) = (
            self.folder.try_clone()?,
            part_name(id),
            matches!(self.directory.policy().existing, Existing::Keep),
        );
        self.within(name, |parent, last| {
            let before = if named { Some(open_up(parent)?) } else { None };
            let outcome = rename(&folder, &part, parent, last, keep);
            before.map_or(Ok(()), |stat| close_again(parent, &stat))?;
            outcome
        })?;
        self.parent_changed()?;
        if journal {
            let _ = unlinkat(&self.folder, journal_name(id).as_str(), UnlinkatFlags::NoRemoveDir);
        }
        Ok(())
    }

    /// Notes files as finished.
    pub fn note_done(&mut self, ids: &[FileId]) -> io::Result<()> {
        let bytes: Vec<u8> = ids.iter().flat_map(finished::record).collect();
        (&*self.list).write_all(&bytes)?;
        self.unsynced.add(&*self.list)
    }

    /// The transfer is over: nothing of it stays in the folder of unfinished files.
    pub fn end(&self) -> io::Result<()> {
        let _turn = self.turn.take().map_err(io::Error::other)?;
        if self.rehearsed && self.held {
            return Ok(());
        }
        let folder = HEXLOWER.encode(&self.transfer);
        let path = self.directory.part_folder().join(&folder);
        for entry in fs::read_dir(path)? {
            unlinkat(&self.folder, &*entry?.file_name(), UnlinkatFlags::NoRemoveDir)?;
        }
        unlinkat(&self.parts, folder.as_str(), UnlinkatFlags::RemoveDir)?;
        // Another transfer may have its parts here.
        let _ = unlinkat(self.directory.root(), PART_FOLDER, UnlinkatFlags::RemoveDir);
        Ok(())
    }

    /// Calls `act` with the folder of a name and its last part.
    fn within<T>(
        &mut self,
        name: &Name,
        act: impl FnOnce(&OwnedFd, &OsStr) -> Result<T, Errno>,
    ) -> io::Result<T> {
        let (parts, last) = name.split();
        if self.parent.as_ref().is_none_or(|(path, _)| path != name.parent()) {
            let mut folder = self.directory.root().try_clone()?;
            let open = if self.rehearsed { open_folder_at } else { folder_at };
            for part in parts {
                folder = open(&folder, part)?;
                self.check_is_no_part(&folder)?;
            }
            self.parent = Some((name.parent().to_vec(), folder));
        }
        let parent = self.parent.as_ref().map_or(self.directory.root(), |(_, folder)| folder);
        Ok(act(parent, last)?)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.directory.release(&self.transfer, &self.turn);
    }
}

/// Gives a part its name; an error where `keep` and the name is taken.
fn rename(
    folder: &OwnedFd,
    part: &str,
    parent: &OwnedFd,
    name: &OsStr,
    keep: bool,
) -> Result<(), Errno> {
    if keep {
        renameat2(folder, part, parent, name, RenameFlags::RENAME_NOREPLACE)
    } else {
        renameat(folder, part, parent, name)
    }
}

fn is_regular(stat: &FileStat) -> bool {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFREG
}

/// How a complete file appears.
#[derive(Debug)]
pub struct Finish<'a> {
    pub name: &'a Name,
    /// Its length, bytes.
    pub size: u64,
    pub mode: u32,
    /// When it was changed; `None`: now.
    pub mtime: Option<FileTime>,
    /// Whether it had a journal.
    pub journal: bool,
}

fn part_name(id: &FileId) -> String {
    HEXLOWER.encode(id)
}

fn journal_name(id: &FileId) -> String {
    part_name(id) + ".journal"
}

/// What a file's data is called while it is not complete: the hash of all that tells it from others.
pub fn file_id(transfer: &TransferId, path: &[u8], size: u64, mtime: FileTime) -> FileId {
    let mut hasher = blake3::Hasher::new_derive_key("acklab transfer file 1");
    hasher.update(transfer);
    hasher.update(&size.to_be_bytes());
    hasher.update(&mtime.seconds.to_be_bytes()).update(&mtime.nanos.to_be_bytes());
    hasher.update(path);
    let mut id = [0; 16];
    id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    id
}

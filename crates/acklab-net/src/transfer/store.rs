//! The receiver's folder DIR: what a peer names goes below it and nowhere else.
//!
//! Every folder is opened from the one above it, one part of the path at a time, never through a
//! symbolic link; so no name and no link in DIR leads out of it. What is not finished lies in
//! `.acklab-part/TRANSFER/` under the hash of what it is, and gets its name by `rename` when it is
//! complete. A list `done` there says which files of a transfer were finished, so that an interrupted
//! one does not take them again. docs/rudp.md section 10.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use data_encoding::HEXLOWER;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, RenameFlags, openat, renameat, renameat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat, futimens, mkdirat};
use nix::sys::statvfs::fstatvfs;
use nix::sys::time::TimeSpec;
use nix::unistd::{AccessFlags, UnlinkatFlags, faccessat, unlinkat};

use super::journal::FileId;
use super::name::{Name, PART_FOLDER};
use super::record::{FileTime, TransferId};
use super::sync::Unsynced;

/// DIR, shared by the transfers that come in.
#[derive(Clone, Debug)]
pub struct Directory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    root: OwnedFd,
    path: PathBuf,
    keep: bool,
    running: Mutex<Running>,
}

/// Who writes which transfer: a new connection takes over from one whose sender died.
#[derive(Debug, Default)]
struct Running {
    sessions: u64,
    /// One transfer is taken at a time.
    one: bool,
    /// The session that owns a transfer, and the locked list of what it finished.
    owners: BTreeMap<TransferId, (u64, Arc<File>)>,
}

/// Why a transfer cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("another process is receiving this transfer into {}", .0.display())]
    Busy(PathBuf),
    #[error("the sender has started the transfer anew")]
    Superseded,
    #[error("it takes one transfer, and that one is running")]
    Taken,
    #[error("{}: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
}

impl Directory {
    /// Opens DIR and makes it where it is not there. `keep` refuses to replace files.
    pub fn open(path: &Path, keep: bool) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Folder { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(failed)?;
        let root = File::open(path).map_err(failed)?;
        if !root.metadata().map_err(failed)?.is_dir() {
            return Err(failed(Errno::ENOTDIR.into()));
        }
        let root = OwnedFd::from(root);
        try_writing(&root).map_err(|errno| failed(errno.into()))?;
        let path = path.to_owned();
        let running = Mutex::default();
        Ok(Self(Arc::new(Shared { root, path, keep, running })))
    }

    /// From now on one transfer is taken at a time.
    pub fn take_one(&self) {
        self.running().one = true;
    }

    /// Whether anything of an unfinished transfer lies here.
    pub fn holds_anything(&self) -> bool {
        let parts = self.0.path.join(PART_FOLDER);
        fs::read_dir(parts).is_ok_and(|mut entries| entries.next().is_some())
    }

    /// Whether files that exist are to be refused.
    pub fn keeps(&self) -> bool {
        self.0.keep
    }

    pub(super) fn failed(&self, source: impl Into<io::Error>) -> StoreError {
        StoreError::Folder { path: self.0.path.join(PART_FOLDER), source: source.into() }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a transfer, or goes on with one if `resume` and something of it is here.
    pub fn begin(&self, transfer: TransferId, resume: bool) -> Result<Store, StoreError> {
        let failed = |errno: Errno| self.failed(errno);
        let parts = folder_at(&self.0.root, OsStr::new(PART_FOLDER)).map_err(failed)?;
        let folder = OsString::from(HEXLOWER.encode(&transfer));
        let held = fstatat(&parts, &*folder, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok();
        let folder = folder_at(&parts, &folder).map_err(failed)?;
        let mut running = self.running();
        if running.one && running.owners.keys().any(|other| *other != transfer) {
            return Err(StoreError::Taken);
        }
        let list = if let Some((_, list)) = running.owners.get(&transfer) {
            Arc::clone(list)
        } else {
            let list = File::from(file_at(&folder, OsStr::new(DONE_LIST), false).map_err(failed)?);
            match list.try_lock() {
                Ok(()) => Arc::new(list),
                Err(TryLockError::WouldBlock) => return Err(StoreError::Busy(self.0.path.clone())),
                Err(TryLockError::Error(error)) => return Err(self.failed(error)),
            }
        };
        running.sessions += 1;
        let session = running.sessions;
        running.owners.insert(transfer, (session, Arc::clone(&list)));
        drop(running);
        let held = held && resume;
        let done = read_list(&list, held).map_err(|error| self.failed(error))?;
        let directory = self.clone();
        let (parent, unsynced) = (None, Unsynced::default());
        Ok(Store {
            directory,
            session,
            transfer,
            parts,
            folder,
            list,
            done,
            parent,
            unsynced,
            held,
            bare: false,
        })
    }
}

/// Where one transfer's files go.
#[derive(Debug)]
pub struct Store {
    directory: Directory,
    session: u64,
    transfer: TransferId,
    parts: OwnedFd,
    folder: OwnedFd,
    list: Arc<File>,
    done: BTreeSet<FileId>,
    /// The folder that was used last.
    parent: Option<(Vec<u8>, OwnedFd)>,
    unsynced: Unsynced,
    held: bool,
    /// A file or folder could not be given its permissions or time.
    bare: bool,
}

impl Store {
    /// Whether a file or folder could not be given its permissions or time.
    pub fn is_bare(&self) -> bool {
        self.bare
    }

    /// Whether something of this transfer was here when it began.
    pub fn held(&self) -> bool {
        self.held
    }

    pub fn transfer(&self) -> &TransferId {
        &self.transfer
    }

    /// The folder's options.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// An error once a newer connection has taken the transfer over.
    pub fn check_owner(&self) -> Result<(), StoreError> {
        match self.directory.running().owners.get(&self.transfer) {
            Some(&(session, _)) if session == self.session => Ok(()),
            _ => Err(StoreError::Superseded),
        }
    }

    /// What has changed since the last sync.
    pub fn unsynced(&mut self) -> &mut Unsynced {
        &mut self.unsynced
    }

    /// The same, to be synced, and a folder of the same file system.
    pub fn take_unsynced(&mut self) -> io::Result<(Unsynced, OwnedFd)> {
        Ok((std::mem::take(&mut self.unsynced), self.directory.0.root.try_clone()?))
    }

    /// Bytes that are free for this user.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let stat = fstatvfs(&self.directory.0.root)?;
        Ok(stat.blocks_available() * stat.fragment_size())
    }

    /// Makes a folder, or takes the one that is there, open to its owner while it is filled.
    pub fn make_folder(&mut self, name: &Name) -> io::Result<()> {
        self.within(name, |parent, last| {
            let folder = folder_at(parent, last)?;
            open_up(&folder).map(|_| ())
        })?;
        self.parent_changed()
    }

    /// Sets a folder's permissions and time, when what it holds is there.
    pub fn finish_folder(&mut self, name: &Name, mode: u32, mtime: FileTime) -> io::Result<()> {
        let (folder, bare) = self.within(name, |parent, last| {
            let folder = folder_at(parent, last)?;
            let sticky = Mode::from_bits_truncate(mode & Mode::S_ISVTX.bits());
            dress(&folder, permissions(mode) | sticky, Some(mtime)).map(|bare| (folder, bare))
        })?;
        self.bare |= bare;
        self.unsynced.add(folder)
    }

    /// Names in the folder that was used last have changed.
    fn parent_changed(&mut self) -> io::Result<()> {
        let parent = self.parent.as_ref().map_or(&self.directory.0.root, |(_, folder)| folder);
        self.unsynced.add(parent)
    }

    /// Whether a name is taken.
    pub fn exists(&mut self, name: &Name) -> io::Result<bool> {
        Ok(self.stat(name)?.is_some())
    }

    /// Whether the file was finished earlier in this transfer and still looks as it did then.
    pub fn is_done(&mut self, id: &FileId, name: &Name, size: u64, mtime: FileTime) -> bool {
        self.done.contains(id)
            && self.stat(name).ok().flatten().is_some_and(|stat| {
                SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFREG
                    && stat.st_size == size as i64
                    && (stat.st_mtime, stat.st_mtime_nsec)
                        == (mtime.seconds, i64::from(mtime.nanos))
            })
    }

    fn stat(&mut self, name: &Name) -> io::Result<Option<FileStat>> {
        self.within(name, |parent, last| {
            match fstatat(parent, last, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(stat) => Ok(Some(stat)),
                Err(Errno::ENOENT) => Ok(None),
                Err(errno) => Err(errno),
            }
        })
    }

    /// Whether a name lies on the file system of DIR, so that data can be given it by `rename`.
    pub fn is_here(&mut self, name: &Name) -> io::Result<bool> {
        let here = fstat(&self.folder)?.st_dev;
        self.within(name, |parent, _| Ok(fstat(parent)?.st_dev == here))
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
        let (folder, part, keep) =
            (self.folder.try_clone()?, part_name(id), self.directory.keeps());
        self.within(name, |parent, last| {
            let before = if named { Some(open_up(parent)?) } else { None };
            let outcome = if keep {
                renameat2(&folder, part.as_str(), parent, last, RenameFlags::RENAME_NOREPLACE)
            } else {
                renameat(&folder, part.as_str(), parent, last)
            };
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
        let bytes: Vec<u8> = ids.iter().flat_map(list_record).collect();
        (&*self.list).write_all(&bytes)?;
        self.unsynced.add(&*self.list)
    }

    /// The transfer is over: nothing of it stays in the folder of unfinished files.
    pub fn end(&self) -> io::Result<()> {
        self.check_owner().map_err(io::Error::other)?;
        let folder = HEXLOWER.encode(&self.transfer);
        let path = self.directory.0.path.join(PART_FOLDER).join(&folder);
        for entry in fs::read_dir(path)? {
            unlinkat(&self.folder, &*entry?.file_name(), UnlinkatFlags::NoRemoveDir)?;
        }
        unlinkat(&self.parts, folder.as_str(), UnlinkatFlags::RemoveDir)?;
        // Another transfer may have its parts here.
        let _ = unlinkat(&self.directory.0.root, PART_FOLDER, UnlinkatFlags::RemoveDir);
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
            let mut folder = self.directory.0.root.try_clone()?;
            for part in parts {
                folder = folder_at(&folder, part)?;
            }
            self.parent = Some((name.parent().to_vec(), folder));
        }
        let parent = self.parent.as_ref().map_or(&self.directory.0.root, |(_, folder)| folder);
        Ok(act(parent, last)?)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let mut running = self.directory.running();
        if running.owners.get(&self.transfer).is_some_and(|owner| owner.0 == self.session) {
            running.owners.remove(&self.transfer);
        }
    }
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

/// Lets this process write into a folder of ours that was finished; gives what it was.
fn open_up(folder: &OwnedFd) -> Result<FileStat, Errno> {
    let stat = fstat(folder)?;
    if stat.st_mode & 0o700 != 0o700 {
        fchmod(folder, permissions(stat.st_mode | 0o700))?;
    }
    Ok(stat)
}

/// Gives a folder the permissions and the time back that it had.
fn close_again(folder: &OwnedFd, stat: &FileStat) -> Result<(), Errno> {
    let mode = Mode::from_bits_truncate(stat.st_mode & 0o1777);
    let mtime = FileTime { seconds: stat.st_mtime, nanos: stat.st_mtime_nsec as u32 };
    dress(folder, mode, Some(mtime)).map(|_| ())
}

/// An error where parts of files could not be written into DIR: better at the start than when a sender comes.
fn try_writing(root: &OwnedFd) -> Result<(), Errno> {
    match mkdirat(root, PART_FOLDER, Mode::S_IRWXU) {
        Ok(()) => unlinkat(root, PART_FOLDER, UnlinkatFlags::RemoveDir),
        Err(Errno::EEXIST) => faccessat(root, PART_FOLDER, AccessFlags::W_OK, AtFlags::AT_EACCESS),
        Err(errno) => Err(errno),
    }
}

const DONE_LIST: &str = "done";

/// The folder of that name in `parent`, made where there is none. A symbolic link is an error.
fn folder_at(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::ENOENT) => {}
        other => return other,
    }
    match mkdirat(parent, name, Mode::S_IRWXU) {
        Ok(()) | Err(Errno::EEXIST) => openat(parent, name, flags, Mode::empty()),
        Err(errno) => Err(errno),
    }
}

/// The file of that name in a folder of ours, made where there is none, for its owner alone.
fn file_at(folder: &OwnedFd, name: &OsStr, empty: bool) -> Result<OwnedFd, Errno> {
    let mut flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    flags.set(OFlag::O_TRUNC, empty);
    openat(folder, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)
}

/// Permissions without set-user-id, set-group-id and sticky bits.
fn permissions(mode: u32) -> Mode {
    Mode::from_bits_truncate(mode & 0o777)
}

/// Gives a file or folder permissions and time; true where its file system does not keep them, as vfat, exFAT and
/// CIFS do.
fn dress(file: impl AsFd, mode: Mode, mtime: Option<FileTime>) -> Result<bool, Errno> {
    let mode = fchmod(&file, mode);
    let time = mtime.map_or(Ok(()), |mtime| {
        let mtime = TimeSpec::new(mtime.seconds, i64::from(mtime.nanos));
        futimens(&file, &TimeSpec::UTIME_OMIT, &mtime)
    });
    let refused = |outcome| match outcome {
        Ok(()) => Ok(false),
        Err(Errno::EPERM | Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL) => Ok(true),
        Err(errno) => Err(errno),
    };
    Ok(refused(mode)? | refused(time)?)
}

/// Reads the list of finished files, cuts a torn record off and leaves it open at its end; an empty
/// list unless `resume`.
fn read_list(list: &File, resume: bool) -> io::Result<BTreeSet<FileId>> {
    let mut bytes = Vec::new();
    let mut file = list;
    io::Seek::rewind(&mut file)?;
    if resume {
        file.read_to_end(&mut bytes)?;
    }
    let records = bytes.as_chunks::<LIST_RECORD>().0.iter();
    let good = records.map_while(|record| {
        let id: FileId = record[..16].try_into().ok()?;
        (list_record(&id) == *record).then_some(id)
    });
    let done: Vec<FileId> = good.collect();
    let end = (done.len() * LIST_RECORD) as u64;
    list.set_len(end)?;
    io::Seek::seek(&mut file, io::SeekFrom::Start(end))?;
    Ok(done.into_iter().collect())
}

/// File id and check.
const LIST_RECORD: usize = 20;

fn list_record(id: &FileId) -> [u8; LIST_RECORD] {
    let mut record = [0; LIST_RECORD];
    record[..16].copy_from_slice(id);
    record[16..].copy_from_slice(&blake3::hash(id).as_bytes()[..4]);
    record
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

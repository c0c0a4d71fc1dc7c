//! Folders and files on the disk, opened one part of a path at a time and never through a symbolic link.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, fchmod, fstat, futimens, mkdirat};
use nix::sys::time::TimeSpec;
use nix::unistd::{AccessFlags, UnlinkatFlags, faccessat, unlinkat};

use super::name::PART_FOLDER;
use super::record::FileTime;

/// Lets this process write into a folder of ours that was finished; gives what it was.
pub(super) fn open_up(folder: &OwnedFd) -> Result<FileStat, Errno> {
    let stat = fstat(folder)?;
    if stat.st_mode & 0o700 != 0o700 {
        fchmod(folder, permissions(stat.st_mode | 0o700))?;
    }
    Ok(stat)
}

/// Gives a folder the permissions and the time back that it had.
pub(super) fn close_again(folder: &OwnedFd, stat: &FileStat) -> Result<(), Errno> {
    let mode = Mode::from_bits_truncate(stat.st_mode & 0o1777);
    let mtime = FileTime { seconds: stat.st_mtime, nanos: stat.st_mtime_nsec as u32 };
    dress(folder, mode, Some(mtime)).map(|_| ())
}

/// An error where parts of files could not be written into DIR: better at the start than when a sender comes.
pub(super) fn try_writing(root: &OwnedFd) -> Result<(), Errno> {
    match mkdirat(root, PART_FOLDER, Mode::S_IRWXU) {
        Ok(()) => unlinkat(root, PART_FOLDER, UnlinkatFlags::RemoveDir),
        Err(Errno::EEXIST) => faccessat(root, PART_FOLDER, AccessFlags::W_OK, AtFlags::AT_EACCESS),
        Err(errno) => Err(errno),
    }
}

/// The folder of that name in `parent`, made where there is none. A symbolic link is an error.
pub(super) fn folder_at(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    match open_folder_at(parent, name) {
        Err(Errno::ENOENT) => {}
        other => return other,
    }
    match mkdirat(parent, name, Mode::S_IRWXU) {
        Ok(()) | Err(Errno::EEXIST) => open_folder_at(parent, name),
        Err(errno) => Err(errno),
    }
}

/// The folder of that name in `parent`. A symbolic link is an error.
pub(super) fn open_folder_at(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// The file of that name in a folder of ours, made where there is none, for its owner alone.
pub(super) fn file_at(folder: &OwnedFd, name: &OsStr, empty: bool) -> Result<OwnedFd, Errno> {
    let mut flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    flags.set(OFlag::O_TRUNC, empty);
    openat(folder, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)
}

/// Permissions without set-user-id, set-group-id and sticky bits.
pub(super) fn permissions(mode: u32) -> Mode {
    Mode::from_bits_truncate(mode & 0o777)
}

/// Gives a file or folder permissions and time; true where its file system does not keep them, as vfat, exFAT and
/// CIFS do.
pub(super) fn dress(file: impl AsFd, mode: Mode, mtime: Option<FileTime>) -> Result<bool, Errno> {
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

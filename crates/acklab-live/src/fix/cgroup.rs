//! Connections that will be opened: a BPF program on a cgroup, which the kernel runs at the end of each handshake.
//!
//! `sock_ops` programs hear of `BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB` and `BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB` and may
//! set options then (`bpf_setsockopt`; TCP_NODELAY since Linux 6.1, the delayed ACK since 5.10). The program is 14
//! instructions, or 18 with a port, so they are written here and no compiler, loader or library is needed. It is
//! attached beside others (`BPF_F_ALLOW_MULTI`) and by the cgroup itself, not by a link: it works until it is detached
//! or the cgroup is gone, also after this program was killed, and is found again by its name (`bpftool cgroup tree`
//! shows it, too). No file system of BPF is needed.
//!
//! The licence that the program declares to the kernel is that of this crate; the helper is not for GPL programs alone.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::remedy::{FixError, Remedy, SocketOption};
use crate::kernel;

/// A program that is to be attached.
#[derive(Clone, Debug)]
pub(super) struct OnCgroup {
    pub(super) folder: PathBuf,
    pub(super) name: String,
    instructions: Vec<u64>,
}

impl OnCgroup {
    /// For connections of the processes in `folder`; with `port`, for those that have it at one end.
    pub(super) fn new(
        folder: PathBuf,
        remedy: Remedy,
        option: SocketOption,
        port: Option<u16>,
    ) -> Self {
        let (whole, short) = match remedy {
            Remedy::NoDelay => ("acklab_nodelay", "acklab_nd"),
            Remedy::DelackMax(_) | Remedy::QuickAck => ("acklab_delack", "acklab_da"),
        };
        // At most 15 bytes, and another name for another port: several may stand on one cgroup.
        let name = port.map_or(whole.to_owned(), |port| format!("{short}_{port}"));
        Self { folder, name, instructions: program(option, port) }
    }

    /// Whether this kernel would take the program, and the file to attach it to.
    pub(super) fn load(&self) -> Result<Loaded, FixError> {
        let doing = || format!("load the BPF program {}", self.name);
        let program = kernel::load_sock_ops(&self.instructions, &self.name, LICENCE)
            .map_err(FixError::refused(doing(), NEEDS))?;
        let doing = format!("open the cgroup {}", self.folder.display());
        let cgroup =
            File::open(&self.folder).map_err(|source| FixError::System { doing, source })?;
        Ok(Loaded { program, cgroup })
    }
}

/// A program that the verifier has accepted.
pub(super) struct Loaded {
    program: std::os::fd::OwnedFd,
    cgroup: File,
}

impl Loaded {
    pub(super) fn attach(&self) -> Result<(), FixError> {
        let doing = "attach the BPF program to the cgroup";
        kernel::attach_to_cgroup(&self.cgroup, &self.program)
            .map_err(FixError::refused(doing, NEEDS))
    }
}

/// Detaches every program of that name from the cgroup itself; how many there were.
pub(super) fn detach(folder: &Path, name: &str) -> Result<usize, FixError> {
    let doing = || format!("detach {name} from {}", folder.display());
    let Ok(cgroup) = File::open(folder) else { return Ok(0) };
    let refused = |error| FixError::refused(doing(), NEEDS)(error);
    let mut detached = 0;
    for number in kernel::programs_of_cgroup(&cgroup).map_err(refused)? {
        // Gone meanwhile.
        let Ok((program, its_name)) = kernel::program(number) else { continue };
        if its_name == name {
            kernel::detach_from_cgroup(&cgroup, &program)
                .map_err(|error| FixError::refused(doing(), NEEDS)(error))?;
            detached += 1;
        }
    }
    Ok(detached)
}

/// All programs of acklab, wherever they are attached: the folder and the name of each.
pub(super) fn attached() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = root().into_iter().collect();
    while let Some(folder) = folders.pop() {
        let numbers = File::open(&folder).and_then(|cgroup| kernel::programs_of_cgroup(&cgroup));
        for number in numbers.unwrap_or_default() {
            if let Ok((_, name)) = kernel::program(number)
                && name.starts_with("acklab_")
            {
                found.push((folder.clone(), name));
            }
        }
        let below = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(below.filter(|e| e.file_type().is_ok_and(|k| k.is_dir())).map(|e| e.path()));
    }
    found
}

/// Where the second version of cgroups is mounted.
pub(super) fn root() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut fields = mounts.lines().map(|line| line.split(' '));
    fields.find_map(|mut line| {
        let folder = line.nth(1)?;
        (line.next()? == "cgroup2").then(|| PathBuf::from(folder))
    })
}

/// The cgroup of a process.
pub(super) fn of_process(pid: u32) -> io::Result<Option<PathBuf>> {
    let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let path = cgroups.lines().find_map(|line| line.strip_prefix("0::/"));
    Ok(path.and_then(|path| Some(root()?.join(path))))
}

/// `struct bpf_insn`, eight bytes.
fn instruction(code: u8, to: u8, from: u8, offset: i16, value: i32) -> u64 {
    let [o0, o1] = offset.to_ne_bytes();
    let [v0, v1, v2, v3] = value.to_ne_bytes();
    let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
    u64::from_ne_bytes([code, registers, o0, o1, v0, v1, v2, v3])
}

/// At the end of a handshake, at either end: `bpf_setsockopt(context, IPPROTO_TCP, name, &value, 4)`.
fn program(option: SocketOption, port: Option<u16>) -> Vec<u64> {
    let set = [
        instruction(STORE_WORD, STACK, 0, -4, option.value),
        instruction(MOVE, 1, CONTEXT, 0, 0),
        instruction(MOVE_VALUE, 2, 0, 0, IPPROTO_TCP),
        instruction(MOVE_VALUE, 3, 0, 0, option.in_bpf),
        instruction(MOVE, 4, STACK, 0, 0),
        instruction(ADD_VALUE, 4, 0, 0, -4),
        instruction(MOVE_VALUE, 5, 0, 0, 4),
        instruction(CALL, 0, 0, 0, BPF_FUNC_SETSOCKOPT),
    ];
    let end = [instruction(MOVE_VALUE, 0, 0, 0, 1), instruction(EXIT, 0, 0, 0, 0)];
    let with_port = port.map_or(Vec::new(), |port| {
        let over = set.len() as i16;
        // The remote port is stored in network byte order in 32 bits, the local one as a number.
        let remote = u32::from(port).to_be() as i32;
        vec![
            instruction(LOAD_WORD, 2, CONTEXT, LOCAL_PORT, 0),
            instruction(IF_EQUAL, 2, 0, 2, port.into()),
            instruction(LOAD_WORD, 2, CONTEXT, REMOTE_PORT, 0),
            instruction(IF_NOT_EQUAL, 2, 0, over, remote),
        ]
    });
    let over = (with_port.len() + set.len()) as i16;
    let mut program = vec![
        instruction(MOVE, CONTEXT, 1, 0, 0),
        instruction(LOAD_WORD, 2, CONTEXT, OP, 0),
        instruction(IF_EQUAL, 2, 0, 1, ACTIVE_ESTABLISHED),
        instruction(IF_NOT_EQUAL, 2, 0, over, PASSIVE_ESTABLISHED),
    ];
    program.extend(with_port);
    program.extend(set);
    program.extend(end);
    program
}

/// Registers: the frame pointer, and one that calls leave alone.
const STACK: u8 = 10;
const CONTEXT: u8 = 6;
/// Codes of instructions, RFC 9669 appendix A: 64-bit moves, words in memory, 32-bit compares.
const MOVE: u8 = 0xbf;
const MOVE_VALUE: u8 = 0xb7;
const ADD_VALUE: u8 = 0x07;
const LOAD_WORD: u8 = 0x61;
const STORE_WORD: u8 = 0x62;
const IF_EQUAL: u8 = 0x16;
const IF_NOT_EQUAL: u8 = 0x56;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// linux/bpf.h: the helper, the callbacks, and where `struct bpf_sock_ops` has its fields.
const BPF_FUNC_SETSOCKOPT: i32 = 49;
const ACTIVE_ESTABLISHED: i32 = 4;
const PASSIVE_ESTABLISHED: i32 = 5;
const OP: i16 = 0;
const REMOTE_PORT: i16 = 64;
const LOCAL_PORT: i16 = 68;
const IPPROTO_TCP: i32 = 6;
/// What the kernel is told; it need not be one of its own words, as no helper here demands GPL.
const LICENCE: &std::ffi::CStr = c"Dual MIT/GPL";
const NEEDS: &str =
    "that takes CAP_BPF and CAP_NET_ADMIN, so run it as root (for example with sudo)";

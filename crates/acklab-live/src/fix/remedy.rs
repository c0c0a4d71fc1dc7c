//! The remedies, as options of sockets, and why one could not be applied.

use std::io;

use acklab_core::time::Span;

/// What is to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nagle's algorithm off, at the sender.
    NoDelay,
    /// The receiver delays no ACK for longer than this.
    DelackMax(Span),
    /// The receiver delays no ACK.
    QuickAck,
}

impl Remedy {
    /// As it stands on the command line.
    pub fn words(self) -> String {
        match self {
            Self::NoDelay => "--nodelay".to_owned(),
            Self::DelackMax(most) => format!("--delack-max {}us", most.as_nanos() / 1_000),
            Self::QuickAck => "--quickack".to_owned(),
        }
    }

    /// The socket option: its number, the value, and the number that BPF's `bpf_setsockopt` knows it by. There is none
    /// for immediate ACKs: `TCP_QUICKACK` is not permanent (tcp(7)).
    pub(super) fn option(self) -> Option<SocketOption> {
        match self {
            Self::NoDelay => {
                Some(SocketOption { name: TCP_NODELAY, value: 1, in_bpf: TCP_NODELAY })
            }
            Self::DelackMax(most) => {
                let value = i32::try_from(most.as_nanos() / 1_000).unwrap_or(i32::MAX);
                Some(SocketOption { name: TCP_DELACK_MAX_US, value, in_bpf: TCP_BPF_DELACK_MAX })
            }
            Self::QuickAck => None,
        }
    }
}

/// An option of TCP as open sockets and those of a cgroup have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SocketOption {
    pub(super) name: i32,
    pub(super) value: i32,
    pub(super) in_bpf: i32,
}

/// Why a fix could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FixError {
    /// The kernel refused for want of privilege.
    #[error("{doing}: not permitted; {needs}")]
    Privilege {
        /// What was tried.
        doing: String,
        /// What it takes.
        needs: &'static str,
    },
    /// The kernel, or `ip`, refused something else.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: String,
        /// What was said.
        source: io::Error,
    },
    /// Nothing would change.
    #[error("there is nothing to mend: {0}")]
    Nothing(String),
}

impl FixError {
    /// What the kernel said to `doing`, which takes `needs`.
    pub(super) fn refused(
        doing: impl Into<String>,
        needs: &'static str,
    ) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Privilege { doing, needs },
            _ => Self::System { doing, source },
        }
    }
}

/// linux/tcp.h; `TCP_DELACK_MAX_US` since Linux 6.15.
const TCP_NODELAY: i32 = 1;
const TCP_DELACK_MAX_US: i32 = 46;
/// linux/bpf.h.
const TCP_BPF_DELACK_MAX: i32 = 1003;

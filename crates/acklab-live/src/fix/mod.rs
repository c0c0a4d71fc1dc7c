//! Mends sockets of programs that cannot be changed: from outside, shown before, measured, and undone.
//!
//! Three doors, each for what the others do not reach:
//!
//! - `open`: connections that are open already, and listeners, whose connections take over their options. The
//!   socket is copied out of the process (`pidfd_getfd(2)`) and its option set.
//! - `cgroup`: connections that will be opened. A BPF program on the cgroup sets the option when the handshake is
//!   over (`sock_ops`).
//! - `route`: immediate ACKs, which no permanent option gives. A route to the peer with `quickack`.
//!
//! What is to be done is a [`Plan`], made without a change. It is written down (`record`) before its first step, so
//! that it can be undone also after this program was killed.

mod cgroup;
mod open;
mod plan;
mod record;
mod remedy;
mod route;

pub use plan::{Plan, plan};
pub use record::{Undone, records, undo};
pub use remedy::{FixError, Remedy};

//! Goal: transfers survive what networks, disks and unauthenticated hosts do to them, as docs/transfer.md promises.
//! Method: [`acklab_net::transfer`] itself on real sockets and real disks; between the two ends a relay that
//! decides about each datagram, network namespaces whose interfaces go down, file systems that fill or
//! lose what was not written yet. What needs root says `SKIPPED` without it.

#![cfg(target_os = "linux")]

mod crashes;
mod disks;
mod endings;
mod ends;
mod flood;
mod hostile;
mod marks;
mod mounts;
mod outages;
mod relay;
mod sources;
mod unauthenticated;

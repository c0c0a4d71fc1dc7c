//! Transfer of files over a reliable byte stream each way: what `acklab send` and `acklab recv` do.
//!
//! [`sender::Sender`] and [`receiver::Receiver`] are sans-IO towards the network: blocks of bytes in and
//! out, whatever carries them. Towards the disk the sender reads through [`source`] and [`walk`], and
//! the receiver writes through [`store`], which alone decides where a peer's names may lead. Records
//! are in [`record`], hashes in [`chunk`]; docs/rudp.md section 10 is the specification.

pub mod chunk;
pub mod directory;
pub mod exclude;
mod finished;
pub mod inlet;
pub mod journal;
pub mod limit;
pub mod name;
mod places;
pub mod policy;
pub mod receive;
pub mod receiver;
pub mod record;
pub mod report;
pub mod send;
pub mod sender;
pub mod source;
pub mod stdin;
pub mod stdout;
pub mod store;
pub mod sync;
#[cfg(test)]
mod tests;
pub mod walk;
mod worker;

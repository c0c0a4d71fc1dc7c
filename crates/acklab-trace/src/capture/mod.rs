//! Capture files: a streaming reader of pcap and pcapng, plain or gzipped, and a writer of both.
//!
//! Formats: draft-ietf-opsawg-pcap (magic a1b2c3d4 and a1b23c4d, both byte orders) and
//! draft-ietf-opsawg-pcapng (section header, interface description, enhanced, simple and obsolete
//! packet blocks; time resolution and offset per interface; sections of different byte order).
//! Other blocks and all options but `if_tsresol` and `if_tsoffset` are passed over.
//!
//! The reader borrows: a [`Frame`] is a slice of its buffer, good until the next call. It never
//! allocates by a length that it read, and a damaged capture is read up to the damage
//! ([`CaptureReader::damage`]). Left out: the "modified" pcap variants, snoop, ERF and other
//! formats, which are named in the error.

mod byte_order;
mod error;
mod input;
mod link;
mod pcap;
mod pcapng;
mod reader;
mod record;
mod writer;

pub use error::{CaptureError, Damage, DamageKind};
pub use link::LinkType;
pub use reader::CaptureReader;
pub use record::Frame;
pub use writer::{CaptureWriter, Format, WriterOptions};

#[cfg(test)]
mod tests;

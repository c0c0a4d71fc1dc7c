//! A link's queue: a discipline by name, with its options where they are given, and its room.

use acklab_core::queue::{Discipline, Limit};

use super::reader::{Field, Mistake};

/// The queue that `queue`, `buffer` and `buffer_bytes` describe; drop-tail without limit by default.
pub(super) fn read(
    queue: Option<&Field<'_>>,
    buffer: Option<&Field<'_>>,
    bytes: Option<&Field<'_>>,
) -> Result<Discipline, Mistake> {
    let limit = Limit {
        packets: buffer.map_or(Ok(u64::from(u32::MAX)), |field| field.count(1, MOST_PACKETS))?
            as u32,
        bytes: bytes.map_or(Ok(u64::MAX), |field| field.count(LEAST_BYTES, MOST_BYTES))?,
    };
    let Some(queue) = queue else { return Ok(Discipline::drop_tail(limit)) };
    let (name, table) = queue.named(Discipline::NAMES, "a queue", "red")?;
    let mut discipline =
        Discipline::by_name(name, limit.packets).map_err(|error| queue.refuse(error))?;
    if let Some(mut table) = table {
        discipline.options().map_or(Ok(()), |options| table.options(options))?;
        table.finish()?;
    }
    Ok(discipline.with_limit(limit))
}

const MOST_PACKETS: u64 = 100_000_000;
/// A full packet of Ethernet must fit.
const LEAST_BYTES: u64 = 1500;
const MOST_BYTES: u64 = 1 << 40;

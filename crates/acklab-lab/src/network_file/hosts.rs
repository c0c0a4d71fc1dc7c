//! `[[host]]` tables: nodes whose packets cost processor time.

use std::ops::Range;

use acklab_sim::ProcessorOptions;

use super::reader::{Field, Fields, Mistake};

/// A host as it was written.
pub(super) struct Host {
    pub(super) name: String,
    /// Where its name is.
    pub(super) name_at: Range<usize>,
    pub(super) processor: ProcessorOptions,
}

pub(super) fn read(mut table: Fields<'_>) -> Result<Host, Mistake> {
    let name = table.need("name", "name = \"a\", a node of a link")?;
    let cpu = table.need("cpu", "cpu = { receive = \"10us\", send = \"10us\" }")?;
    table.finish()?;
    Ok(Host { name: name.string()?.to_owned(), name_at: name.span(), processor: processor(&cpu)? })
}

fn processor(field: &Field<'_>) -> Result<ProcessorOptions, Mistake> {
    let mut options = ProcessorOptions::default();
    let mut table = field.fields("a processor")?;
    table.options(&mut options)?;
    table.finish()?;
    Ok(options)
}

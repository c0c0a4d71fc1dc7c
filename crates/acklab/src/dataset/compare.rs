//! `acklab dataset compare`.

use std::path::Path;

use acklab_worlds::dataset;
use acklab_worlds::dataset::compare::Comparison;
use acklab_worlds::dataset::layout::CaseName;
use acklab_worlds::nagle::SCENARIO;
use clap::Args;

use super::files::unusable;
use super::read::expected;
use crate::file;
use crate::outcome::{Failure, Format, print, print_json};

/// Put data sets side by side, case by case: delays, how far apart their distributions are, and how far from theory
#[derive(Args)]
pub(super) struct Compare {
    /// Data sets, with the name that each has in the tables
    #[arg(value_name = "NAME=DIR", required = true)]
    sets: Vec<String>,
    /// How to write the result to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Compare {
    pub(super) fn run(self) -> Result<(), Failure> {
        let read = |pair: &String| {
            let (name, dir) = pair
                .split_once('=')
                .ok_or_else(|| Failure::at(pair, "write for example kernel=out/kernel"))?;
            let cases = dataset::read(Path::new(dir)).map_err(|fault| unusable(&fault))?;
            Ok((name.to_owned(), cases))
        };
        let sets = self.sets.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
        let scenario = file::asked(SCENARIO, &[])?.scenario;
        let law = |name: &CaseName| expected(scenario, name).map(|expected| expected.law);
        let comparison = Comparison::new(&sets, law);
        match self.format {
            Format::Text => print(&comparison.to_text()),
            Format::Json => print_json(&comparison.to_json()),
        }
    }
}

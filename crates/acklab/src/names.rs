//! Names that a shell can complete: scenarios, and the parameters behind `--set`.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use acklab_papers::scenario::SCENARIOS;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};

/// Takes any text, and offers names for completion.
#[derive(Clone)]
pub(crate) struct Offers(fn() -> BTreeSet<&'static str>);

/// The built-in scenarios; a file's name is fine, too.
pub(crate) fn scenarios() -> Offers {
    Offers(|| SCENARIOS.iter().map(|scenario| scenario.declaration().name).collect())
}

/// Every parameter of a built-in scenario.
pub(crate) fn parameters() -> Offers {
    Offers(|| {
        let parameters = SCENARIOS.iter().flat_map(|scenario| scenario.declaration().parameters);
        parameters.map(|parameter| parameter.name).collect()
    })
}

impl TypedValueParser for Offers {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        _argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        let text = value.to_str().map(str::to_owned);
        text.ok_or_else(|| Error::new(ErrorKind::InvalidUtf8).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

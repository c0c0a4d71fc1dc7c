//! `--set NAME=VALUE` of whatever has settings.

use acklab_core::options::{Options, Parameter, Value};

use crate::outcome::Failure;

/// Sets each of `pairs`, and sees whether all go together.
pub(crate) fn all(config: &mut impl Options, pairs: &[String]) -> Result<(), Failure> {
    for pair in pairs {
        one(config, pair).map_err(|error| Failure::at("--set", error))?;
    }
    let refused = |conflict: acklab_core::options::Conflict| {
        Failure::at("--set", format!("{} {}", conflict.name, conflict.reason))
    };
    config.check().map_err(refused)
}

fn one(config: &mut impl Options, pair: &str) -> Result<(), String> {
    let (name, text) = pair
        .split_once('=')
        .ok_or_else(|| format!("{pair:?} has no =; write for example ack=tack"))?;
    let list = config.list();
    let Some(setting) = list.iter().find(|setting| setting.name == name) else {
        let names: Vec<_> = list.iter().map(|setting| setting.name).collect();
        return Err(format!("there is no {name:?}; there are {}", names.join(", ")));
    };
    let value = setting.kind.parse(text).map_err(|why| format!("{name}={text}: {why}"))?;
    if config.set(name, value) { Ok(()) } else { Err(format!("{name}={text}: is refused")) }
}

/// What can be set, as `--set help` shows it.
pub(crate) fn help(config: &impl Options) -> String {
    let line = |one: &Parameter<Value>| {
        format!("{} = {}  ({})\n    {}\n", one.name, one.default, one.kind.allowed(), one.doc)
    };
    config.list().iter().map(line).collect()
}

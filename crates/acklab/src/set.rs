//! `--set NAME=VALUE` of whatever has settings.

use acklab_core::options::{Options, Parameter, Value};

use crate::outcome::Failure;

/// Sets each of `pairs`, and sees whether all go together.
pub(crate) fn all(config: &mut impl Options, pairs: &[String]) -> Result<(), Failure> {
    distinct(pairs)?;
    for pair in pairs {
        one(config, pair).map_err(|error| Failure::at("--set", error))?;
    }
    let refused = |conflict: acklab_core::options::Conflict| {
        Failure::at("--set", format!("{} {}", conflict.name, conflict.reason))
    };
    config.check().map_err(refused)
}

/// Refuses a parameter that is set twice: which value was meant is not known.
pub(crate) fn distinct(pairs: &[String]) -> Result<(), Failure> {
    let named = |pair: &String| pair.split_once('=').map(|(name, _)| name.trim().to_owned());
    for (index, pair) in pairs.iter().enumerate() {
        let name = named(pair);
        if let Some(first) =
            pairs[..index].iter().find(|first| name.is_some() && named(first) == name)
        {
            let mend = "leave one out, or give a list: NAME=VALUE,VALUE";
            return Err(Failure::at(
                "--set",
                format!("{first} and {pair}: the same parameter twice; {mend}"),
            ));
        }
    }
    Ok(())
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

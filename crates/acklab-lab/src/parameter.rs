//! Typed parameters of a scenario: what `--set name=value` may say, and what it means.
//!
//! A scenario declares its [`Parameter`]s once; the parser, `acklab scenarios NAME`, the scenario
//! file beside a result and the report all read that declaration. A text that does not fit is
//! refused with the parameter, the reason and the nearest thing that would have been accepted.

pub use acklab_core::options::{Kind, Parameter, Value};
use acklab_core::options::{Options, Typed, spells};
use acklab_core::time::Span;

/// Reads a value of `kind`; a word that is none is answered with the nearest.
pub fn read(kind: Kind, text: &str) -> Result<Value, String> {
    kind.parse(text).map_err(|reason| match kind {
        Kind::Choice(words) => nearest(text, words.iter().copied()) + &reason,
        _ => reason,
    })
}

acklab_core::words! {
    /// On or off.
    pub enum Switch {
        /// On.
        On = "on",
        /// Off.
        Off = "off",
    }
}

impl Switch {
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

/// Why a `--set` was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// No equals sign.
    #[error("{text:?} is not a setting; write name=value, for example rtt=30ms")]
    NoValue {
        /// What was given.
        text: String,
    },
    #[error(
        "scenario {scenario} has no parameter {name:?}; {hint}`acklab scenarios {scenario}` lists \
         them all"
    )]
    UnknownName {
        scenario: String,
        /// What was given.
        name: String,
        /// The nearest name as a question, or empty.
        hint: String,
    },
    /// The value does not fit the parameter.
    #[error("{name}={text}: {reason}")]
    BadValue {
        name: String,
        /// What was given.
        text: String,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// Each value is fine, but the whole is too large.
    #[error(
        "this would send about {packets} packets, and a plan may send {limit}: a shorter duration, fewer or smaller \
         messages, fewer --replications or a longer time between reads would do"
    )]
    TooMuch {
        /// What the plan would send, by a rough estimate.
        packets: u128,
        /// What a plan may send.
        limit: u128,
    },
    /// The world has no part for it.
    #[error("--world {world}: {reason}")]
    World {
        /// Its name.
        world: &'static str,
        /// What it lacks.
        reason: String,
    },
}

/// The values of all parameters of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    scenario: &'static str,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    name: &'static str,
    kind: Kind,
    value: Value,
    chosen: bool,
}

impl Settings {
    /// The defaults of `scenario`.
    ///
    /// # Panics
    /// If a default does not fit its own parameter: a mistake in the declaration, which the
    /// registry's test finds.
    pub fn defaults(scenario: &'static str, parameters: &[Parameter]) -> Self {
        let entries = parameters
            .iter()
            .map(|parameter| Entry {
                name: parameter.name,
                kind: parameter.kind,
                value: parameter.kind.parse(parameter.default).expect("a default fits its kind"),
                chosen: false,
            })
            .collect();
        Self { scenario, entries }
    }

    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SetError> {
        let Some(entry) = self.entries.iter_mut().find(|entry| spells(name, entry.name)) else {
            return Err(SetError::UnknownName {
                scenario: self.scenario.into(),
                name: name.into(),
                hint: nearest(name, self.entries.iter().map(|entry| entry.name)),
            });
        };
        entry.value = read(entry.kind, text).map_err(|reason| SetError::BadValue {
            name: name.into(),
            text: text.into(),
            reason,
        })?;
        entry.chosen = true;
        Ok(())
    }

    /// The values as the struct that declares them; what it does not declare is left out.
    pub fn read<T: Options + Default>(&self) -> T {
        let mut read = T::default();
        for (name, value) in self.values() {
            read.set(name, value);
        }
        read
    }

    /// Sets one parameter from `name=value`.
    pub fn set_pair(&mut self, pair: &str) -> Result<(), SetError> {
        match pair.split_once('=') {
            Some((name, value)) => self.set(name.trim(), value.trim()),
            None => Err(SetError::NoValue { text: pair.into() }),
        }
    }

    /// What a scenario answers to a value that it cannot use.
    pub fn refuse(&self, name: &str, reason: impl Into<String>) -> SetError {
        let value = self.values().find(|(other, _)| *other == name);
        let text = value.map_or_else(String::new, |(_, value)| value.to_string());
        SetError::BadValue { name: name.into(), text, reason: reason.into() }
    }

    /// Every parameter with its value, in the order of their declaration.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.entries.iter().map(|entry| (entry.name, entry.value))
    }

    /// The parameters that were set, in the order of their declaration.
    pub fn chosen(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.entries.iter().filter(|entry| entry.chosen).map(|entry| (entry.name, entry.value))
    }

    /// Whether `name` was set rather than left at its default.
    pub fn is_chosen(&self, name: &str) -> bool {
        self.chosen().any(|(chosen, _)| chosen == name)
    }

    /// The value of the parameter called `name`, if there is one of that name and type: for what asks of
    /// any scenario. A scenario reads its own as a struct.
    pub fn get<T: Typed>(&self, name: &str) -> Option<T> {
        let (_, value) = self.values().find(|(other, _)| *other == name)?;
        T::from_value(value)
    }

    /// How long a run is: of scenarios whose signals can be watched, and some others.
    pub fn duration(&self) -> Option<Span> {
        self.get(DURATION)
    }
}

/// The parameter of that meaning.
pub const DURATION: &str = "duration";

/// `did you mean "…"? ` for the candidate nearest to `text`, if any is near; else empty.
pub fn nearest<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    candidates
        .map(|candidate| {
            let distance = strsim::osa_distance(&text.to_lowercase(), &candidate.to_lowercase());
            (distance, candidate)
        })
        .min()
        .filter(|(distance, candidate)| {
            let shorter = candidate.len().min(text.len());
            *distance <= 1 + shorter / 5 && *distance < shorter
        })
        .map_or_else(String::new, |(_, candidate)| format!("did you mean {candidate:?}? "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: &[Parameter] = &[
        Parameter { name: "rtt", default: "30ms", kind: Kind::Span, doc: "round trip" },
        Parameter {
            name: "receiver",
            default: "linux",
            kind: Kind::Choice(&["linux", "windows-7"]),
            doc: "system",
        },
        Parameter {
            name: "messages",
            default: "1005",
            kind: Kind::Count { min: 1, max: 2000 },
            doc: "how many",
        },
    ];

    fn settings() -> Settings {
        Settings::defaults("demo", PARAMETERS)
    }

    #[test]
    fn a_setting_replaces_its_default_and_is_remembered_as_chosen() {
        let mut settings = settings();
        settings.set_pair("rtt = 1.5s").unwrap();
        assert_eq!(settings.get("rtt"), Some(Span::from_millis(1500)));
        assert_eq!(
            (settings.get("messages"), settings.get::<Span>("messages")),
            (Some(1005_u64), None)
        );
        let chosen: Vec<_> =
            settings.chosen().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(chosen, ["rtt=1500ms"]);
        settings.set_pair("receiver=windows_7").unwrap();
        assert_eq!(settings.chosen().last().unwrap().1.to_string(), "windows-7");
    }

    #[test]
    fn refusals_say_what_is_wrong_and_what_would_be_right() {
        let check = |pair: &str, message: &str| {
            let error = settings().set_pair(pair).unwrap_err().to_string();
            assert!(error.contains(message), "{pair}: {error}");
        };
        check("rtt", "write name=value");
        check("rrt=30ms", "did you mean \"rtt\"?");
        check("colour=red", "acklab scenarios demo");
        check("rtt=30", "the unit must be one of");
        check("rtt=100000s", "must be at most 86400s");
        check("receiver=windows7", "did you mean \"windows-7\"? must be one of linux, windows-7");
        check("wat=1", "no parameter \"wat\"; `acklab scenarios");
        check("messages=0", "from 1 to 2000");
        check("messages=-1", "from 1 to 2000");
    }
}

//! Typed parameters of a scenario: what `--set name=value` may say, and what it means.
//!
//! A scenario declares its [`Parameter`]s once; the parser, `acklab scenarios NAME`, the scenario
//! file beside a result and the report all read that declaration. A text that does not fit is
//! refused with the parameter, the reason and the nearest thing that would have been accepted.

use std::fmt;

use acklab_core::time::Span;
use acklab_core::units::BitRate;

/// One parameter of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name as in `--set name=value`.
    pub name: &'static str,
    /// Value where nothing is set, as text.
    pub default: &'static str,
    /// What values are allowed.
    pub kind: Kind,
    /// What it does, one or two sentences.
    pub doc: &'static str,
}

/// The values that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A length of time with its unit: `30ms`, `1.5s`, `0`.
    Span,
    /// A rate with its unit: `10mbit`, `infinite`.
    Rate,
    /// A whole number from `min` to `max`.
    Count {
        /// Least value allowed.
        min: u64,
        /// Greatest value allowed.
        max: u64,
    },
    /// A number from `min` to `max`, in `unit`.
    Number {
        /// Least value allowed.
        min: f64,
        /// Greatest value allowed.
        max: f64,
        /// Its unit, as shown.
        unit: &'static str,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// A value of a [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Of [`Kind::Span`].
    Span(Span),
    /// Of [`Kind::Rate`].
    Rate(BitRate),
    /// Of [`Kind::Count`].
    Count(u64),
    /// Of [`Kind::Number`].
    Number(f64),
    /// Of [`Kind::Choice`].
    Choice(&'static str),
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
    /// The scenario has no such parameter.
    #[error(
        "scenario {scenario} has no parameter {name:?}; {hint}`acklab scenarios {scenario}` lists \
         them all"
    )]
    UnknownName {
        /// The scenario.
        scenario: String,
        /// What was given.
        name: String,
        /// The nearest name as a question, or empty.
        hint: String,
    },
    /// The value does not fit the parameter.
    #[error("{name}={text}: {reason}")]
    BadValue {
        /// The parameter.
        name: String,
        /// What was given.
        text: String,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// Each value is fine, but the whole is too large.
    #[error(
        "this would send about {packets} packets, and a plan may send {limit}: a shorter duration, fewer or smaller \
         messages, fewer --reps or a longer time between reads would do"
    )]
    TooMuch {
        /// What the plan would send, by a rough estimate.
        packets: u128,
        /// What a plan may send.
        limit: u128,
    },
}

impl Kind {
    /// Reads a value of this kind.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Span => match text.parse() {
                Ok(span) if span <= LONGEST => Ok(Value::Span(span)),
                Ok(_) => Err(format!("must be at most {LONGEST}")),
                Err(error) => Err(format!("{error}")),
            },
            Self::Rate => text.parse().map(Value::Rate).map_err(|error| format!("{error}")),
            Self::Count { min, max } => match text.parse() {
                Ok(count) if (min..=max).contains(&count) => Ok(Value::Count(count)),
                _ => Err(format!("must be a whole number from {min} to {max}")),
            },
            Self::Number { min, max, .. } => match text.parse() {
                Ok(number) if (min..=max).contains(&number) => Ok(Value::Number(number)),
                _ => Err(format!("must be a number from {min} to {max}")),
            },
            Self::Choice(words) => match words.iter().find(|word| **word == text) {
                Some(word) => Ok(Value::Choice(word)),
                None => Err(format!(
                    "{}must be one of {}",
                    nearest(text, words.iter().copied()),
                    words.join(", ")
                )),
            },
        }
    }

    /// The unit, as `acklab scenarios` shows it; empty for words and counts.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Span => "time",
            Self::Rate => "rate",
            Self::Number { unit, .. } => unit,
            Self::Count { .. } | Self::Choice(_) => "",
        }
    }

    /// The allowed values in words.
    pub fn allowed(self) -> String {
        match self {
            Self::Span => "a time: 30ms, 1.5s, 200us, 0".into(),
            Self::Rate => "a rate: 10mbit, 100kbit, infinite".into(),
            Self::Count { min, max } => format!("{min} to {max}"),
            Self::Number { min, max, .. } => format!("{min} to {max}"),
            Self::Choice(words) => words.join(" | "),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Span(span) => span.fmt(f),
            Self::Rate(rate) => rate.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Choice(word) => f.write_str(word),
        }
    }
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

    /// Sets one parameter from its text.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SetError> {
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.name == name) else {
            return Err(SetError::UnknownName {
                scenario: self.scenario.into(),
                name: name.into(),
                hint: nearest(name, self.entries.iter().map(|entry| entry.name)),
            });
        };
        entry.value = entry.kind.parse(text).map_err(|reason| SetError::BadValue {
            name: name.into(),
            text: text.into(),
            reason,
        })?;
        entry.chosen = true;
        Ok(())
    }

    /// Whether there is a parameter called `name`.
    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == name)
    }

    /// Gives a parameter that was not set the value `text`, without counting as set: what a preset does.
    ///
    /// # Panics
    /// If there is no such parameter or the text does not fit it: a mistake in the preset, which its
    /// test finds.
    pub fn assume(&mut self, name: &str, text: &str) {
        let entry = self.entries.iter_mut().find(|entry| entry.name == name);
        let entry = entry.expect("a preset names parameters of its scenario");
        if !entry.chosen {
            entry.value = entry.kind.parse(text).expect("a preset's value fits its parameter");
        }
    }

    /// Sets one parameter from `name=value`.
    pub fn set_pair(&mut self, pair: &str) -> Result<(), SetError> {
        match pair.split_once('=') {
            Some((name, value)) => self.set(name.trim(), value.trim()),
            None => Err(SetError::NoValue { text: pair.into() }),
        }
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

    /// The time called `name`.
    pub fn span(&self, name: &str) -> Span {
        match self.value(name) {
            Value::Span(span) => span,
            other => unreachable!("{name} is {other:?}, not a time"),
        }
    }

    /// The rate called `name`.
    pub fn rate(&self, name: &str) -> BitRate {
        match self.value(name) {
            Value::Rate(rate) => rate,
            other => unreachable!("{name} is {other:?}, not a rate"),
        }
    }

    /// The count called `name`.
    pub fn count(&self, name: &str) -> u64 {
        match self.value(name) {
            Value::Count(count) => count,
            other => unreachable!("{name} is {other:?}, not a count"),
        }
    }

    /// The number called `name`.
    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Number(number) => number,
            other => unreachable!("{name} is {other:?}, not a number"),
        }
    }

    /// The word called `name`.
    pub fn choice(&self, name: &str) -> &'static str {
        match self.value(name) {
            Value::Choice(word) => word,
            other => unreachable!("{name} is {other:?}, not a word"),
        }
    }

    fn value(&self, name: &str) -> Value {
        self.values()
            .find_map(|(other, value)| (other == name).then_some(value))
            .unwrap_or_else(|| unreachable!("{} declares no {name}", self.scenario))
    }
}

/// The longest time a parameter may be, a day: sums of many then stay within what [`Span`] holds.
const LONGEST: Span = Span::from_secs(86_400);

/// `did you mean "…"? ` for the candidate nearest to `text`, if any is near; else empty.
pub fn nearest<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    candidates
        .map(|candidate| (edit_distance(text, candidate), candidate))
        .min()
        .filter(|(distance, candidate)| {
            let shorter = candidate.len().min(text.len());
            *distance <= 1 + shorter / 4 && *distance < shorter
        })
        .map_or_else(String::new, |(_, candidate)| format!("did you mean {candidate:?}? "))
}

/// Levenshtein's distance over bytes, case ignored.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, byte_a) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, byte_b) in b.bytes().enumerate() {
            let substitution = diagonal + usize::from(byte_a != byte_b);
            diagonal = row[j + 1];
            row[j + 1] = substitution.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
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
        assert_eq!(settings.span("rtt"), Span::from_millis(1500));
        assert_eq!(settings.count("messages"), 1005);
        let chosen: Vec<_> =
            settings.chosen().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(chosen, ["rtt=1500ms"]);
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
        check("messages=0", "from 1 to 2000");
        check("messages=-1", "from 1 to 2000");
    }

    #[test]
    fn distances_count_edits() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("RTT", "rtt"), 0);
    }
}

//! Several values for one parameter: lists and ranges behind `--set`, and the cases that they make.
//!
//! `--set queue=codel,pie rate=10mbit..100mbit:10mbit` has two axes of 2 and 10 values, so 20 cases. A comma
//! inside brackets, braces or quotation marks belongs to the value; a range goes from its first value to its
//! last, both included, by its step: times, rates and plain numbers have ranges, words have none.

use acklab_core::time::Span;
use acklab_core::units::BitRate;

use crate::parameter::{SetError, Settings, split_pair};

/// A parameter with the values that a plan gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Name of the parameter.
    pub parameter: &'static str,
    /// Its values as text; two at least.
    pub values: Vec<String>,
}

/// Settings of which some have several values.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    first: Settings,
    axes: Vec<Axis>,
}

impl From<Settings> for Choices {
    fn from(settings: Settings) -> Self {
        Self { first: settings, axes: Vec::new() }
    }
}

impl Choices {
    /// Every parameter; of those with several values, the first.
    pub const fn settings(&self) -> &Settings {
        &self.first
    }

    /// Sets one parameter from `name=value`, `name=value,value` or `name=first..last:step`.
    pub fn set_pair(&mut self, pair: &str) -> Result<(), SetError> {
        let (name, text) = split_pair(pair)?;
        self.set(name, text)
    }

    /// Sets one parameter from the text of its value or values.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SetError> {
        let wrong = |reason| SetError::BadValue { name: name.into(), text: text.into(), reason };
        // A word with a comma in it, such as the name of a link, is one value.
        if self.first.clone().set(name, text).is_ok() {
            self.axes.retain(|axis| axis.parameter != name);
            return self.first.set(name, text);
        }
        let values = values(text).map_err(wrong)?;
        for value in &values {
            self.first.set(name, value)?;
        }
        if let Some(first) = values.first() {
            self.first.set(name, first)?;
        }
        let known = self.first.values().find(|(known, _)| *known == name);
        let Some((parameter, _)) = known else { return Ok(()) };
        self.axes.retain(|axis| axis.parameter != parameter);
        if values.len() > 1 {
            self.axes.push(Axis { parameter, values });
        }
        Ok(())
    }

    /// The axes in the order in which the scenario declares its parameters, so that the cases do not depend
    /// on the order in which they were named.
    pub fn axes(&self) -> Vec<Axis> {
        let place = |axis: &Axis| {
            self.first.values().position(|(name, _)| name == axis.parameter).unwrap_or(usize::MAX)
        };
        let mut axes = self.axes.clone();
        axes.sort_by_key(place);
        axes
    }
}

/// Every combination of the axes' values, the last axis fastest.
pub(crate) fn cases(settings: &Settings, axes: &[Axis]) -> Result<Vec<Settings>, SetError> {
    let all = axes.iter().map(|axis| axis.values.len() as u128).product::<u128>();
    if all > MOST_CASES {
        return Err(SetError::TooManyCases { cases: all, limit: MOST_CASES });
    }
    let mut cases = vec![settings.clone()];
    for axis in axes {
        let mut varied = Vec::with_capacity(cases.len() * axis.values.len());
        for case in &cases {
            for value in &axis.values {
                let mut case = case.clone();
                case.set(axis.parameter, value)?;
                varied.push(case);
            }
        }
        cases = varied;
    }
    Ok(cases)
}

/// The values that a text lists.
pub(crate) fn values(text: &str) -> Result<Vec<String>, String> {
    let mut values = Vec::new();
    for part in parts(text) {
        match range(part)? {
            Some(range) => values.extend(range),
            None => values.push(part.to_owned()),
        }
    }
    for (index, value) in values.iter().enumerate() {
        if values[..index].contains(value) {
            return Err(format!("{value} stands in it twice"));
        }
    }
    Ok(values)
}

/// What stands between commas outside of brackets, braces and quotation marks.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut from) = (0_i32, false, 0);
    let mut parts = Vec::new();
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '[' | '{' | '(' if !quoted => depth += 1,
            ']' | '}' | ')' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// What is counted in whole steps: nanoseconds, bits per second, millionths of a plain number or of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Time,
    Rate,
    Plain,
    Percent,
}

impl Scale {
    fn read(self, text: &str) -> Option<u64> {
        let text = text.trim();
        match self {
            Self::Time => text.parse().ok().map(Span::as_nanos),
            Self::Rate => {
                let rate = text.parse().ok().filter(|rate| *rate != BitRate::INFINITE);
                rate.map(BitRate::as_bps)
            }
            Self::Percent => Self::Plain.read(text.strip_suffix('%')?),
            Self::Plain => {
                let millionths = text.parse::<f64>().ok()? * MILLION;
                let fits = (0.0..9e15).contains(&millionths)
                    && (millionths.round() - millionths).abs() < 1e-3;
                fits.then_some(millionths.round() as u64)
            }
        }
    }

    fn write(self, units: u64) -> String {
        match self {
            Self::Time => Span::from_nanos(units).to_string(),
            Self::Rate => {
                BitRate::from_bps(units).as_ref().map_or_else(String::new, ToString::to_string)
            }
            Self::Plain => (units as f64 / MILLION).to_string(),
            Self::Percent => format!("{}%", units as f64 / MILLION),
        }
    }

    /// The scale on which all of these are.
    fn of<const N: usize>(texts: [&str; N]) -> Option<(Self, [u64; N])> {
        [Self::Plain, Self::Time, Self::Rate, Self::Percent].into_iter().find_map(|scale| {
            let mut units = [0; N];
            for (slot, text) in units.iter_mut().zip(texts) {
                *slot = scale.read(text)?;
            }
            Some((scale, units))
        })
    }
}

/// The values of `first..last:step`; nothing where the text is no range.
fn range(text: &str) -> Result<Option<Vec<String>>, String> {
    let Some((first, rest)) = text.split_once("..") else { return Ok(None) };
    let Some((last, step)) = rest.split_once(':') else {
        return Err(format!("a range needs its step: write {text}:STEP"));
    };
    let Some((scale, [first, last, step])) = Scale::of([first, last, step]) else {
        return Err(
            "a range is of times, rates or numbers, such as 10mbit..100mbit:10mbit or 0%..10%:2%"
                .into(),
        );
    };
    if step == 0 || last < first {
        return Err("a range rises from its first value to its last by a step above 0".into());
    }
    let count = (last - first) / step + 1;
    if u128::from(count) > MOST_CASES {
        return Err(format!("these are {count} values; at most {MOST_CASES} are possible"));
    }
    Ok(Some((0..count).map(|index| scale.write(first + index * step)).collect()))
}

/// Value number `index` of `count` that are spread evenly from the first to the last of `first..last`;
/// nothing where the text is no such range.
pub(crate) fn spread(text: &str, index: usize, count: usize) -> Option<String> {
    let (first, last) = text.split_once("..")?;
    let (scale, [first, last]) = Scale::of([first, last])?;
    let steps = (count.max(2) - 1) as f64;
    let at = first as f64 + (last as f64 - first as f64) * index as f64 / steps;
    Some(scale.write(at.round() as u64))
}

/// Cases of one plan.
pub(crate) const MOST_CASES: u128 = 10_000;
const MILLION: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::{Kind, Parameter};

    #[test]
    fn lists_and_ranges_are_read() {
        for (text, expected) in [
            ("codel", vec!["codel"]),
            ("codel, pie", vec!["codel", "pie"]),
            ("10mbit..30mbit:10mbit", vec!["10mbit", "20mbit", "30mbit"]),
            ("500kbit..2mbit:500kbit", vec!["500kbit", "1mbit", "1500kbit", "2mbit"]),
            ("1ms..2ms:400us,5ms", vec!["1ms", "1400us", "1800us", "5ms"]),
            ("0%..5%:2.5%", vec!["0%", "2.5%", "5%"]),
            ("0..40ms:20ms", vec!["0s", "20ms", "40ms"]),
            ("0..1:0.25", vec!["0", "0.25", "0.5", "0.75", "1"]),
            ("{ kind = \"red\", min = 5 },codel", vec!["{ kind = \"red\", min = 5 }", "codel"]),
        ] {
            assert_eq!(values(text).unwrap(), expected, "{text}");
        }
        for (text, reason) in [
            ("1..2", "needs its step"),
            ("a..b:c", "of times, rates or numbers"),
            ("1ms..2mbit:1", "of times, rates or numbers"),
            ("5..1:1", "rises"),
            ("1..2:0", "step above 0"),
            ("0..1000000:0.1", "at most 10000"),
            ("pie,codel,pie", "pie stands in it twice"),
        ] {
            let error = values(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_spread_begins_and_ends_where_it_says() {
        let of = |text: &str, count| {
            (0..count).filter_map(|index| spread(text, index, count)).collect::<Vec<_>>()
        };
        assert_eq!(of("14ms..166ms", 3), ["14ms", "90ms", "166ms"]);
        assert_eq!(of("14ms..166ms", 20)[1], "22ms");
        assert_eq!(of("3s..1s", 3), ["3s", "2s", "1s"]);
        assert_eq!(of("5ms..6ms", 1), ["5ms"]);
        assert_eq!(spread("codel", 0, 2), None);
    }

    #[test]
    fn the_order_of_axes_is_that_of_the_declaration() {
        let parameters = [
            Parameter {
                name: "queue",
                default: "pie",
                kind: Kind::Choice(&["pie", "codel", "a,b"]),
                doc: "",
            },
            Parameter { name: "rate", default: "1mbit", kind: Kind::Rate, doc: "" },
        ];
        let mut choices = Choices::from(Settings::defaults("demo", &parameters));
        choices.set_pair("rate=1mbit..3mbit:1mbit").unwrap();
        choices.set_pair("queue=codel,pie").unwrap();
        let axes = choices.axes();
        assert_eq!(axes.iter().map(|axis| axis.parameter).collect::<Vec<_>>(), ["queue", "rate"]);
        let cases = cases(choices.settings(), &axes).unwrap();
        let text = |case: &Settings| {
            case.chosen()
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(cases.len(), 6);
        assert_eq!(
            (text(&cases[0]), text(&cases[5])),
            ("queue=codel rate=1mbit".into(), "queue=pie rate=3mbit".into())
        );
        // One value is no axis, and a word may have a comma.
        choices.set_pair("queue=a,b").unwrap();
        assert_eq!(choices.axes().len(), 1);
        assert!(choices.set_pair("queue=codel,fifo").is_err());
    }
}

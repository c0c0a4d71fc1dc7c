//! [`vary`]: an algorithm's options from bytes.

use super::choices::Choices;
use crate::options::{Kind, Options, Value};
use crate::time::Span;

/// Gives about half of the options other values, as the bytes decide: any word, flag and share, and
/// times, counts and numbers between the least and the default. What does not go together with the others
/// keeps its value; bytes of zero leave everything as it is.
pub fn vary(options: &mut dyn Options, choices: &mut Choices<'_>) {
    for one in options.list() {
        if !choices.flip() {
            continue;
        }
        let part = f64::from(choices.byte()) / 255.0;
        let value = match (one.kind, one.default) {
            (Kind::Flag, Value::Flag(flag)) => Value::Flag(!flag),
            (Kind::Choice(words), _) => {
                Value::Choice(words[(part * words.len() as f64) as usize % words.len()])
            }
            (Kind::Share | Kind::PositiveShare, _) => Value::Number(part.max(0.001)),
            (Kind::Number { min, .. }, Value::Number(most)) => {
                Value::Number(min + part * (most - min))
            }
            (Kind::Count { min, .. }, Value::Count(most)) => {
                Value::Count(min + (part * most.saturating_sub(min) as f64) as u64)
            }
            (_, Value::Span(most)) => Value::Span(
                Span::from_secs_f64(part * most.as_secs_f64()).max(Span::from_micros(1)),
            ),
            _ => continue,
        };
        let fits = options.set(one.name, value);
        assert!(fits, "{} takes no {value}, which its kind allows", one.name);
        if options.check().is_err() {
            options.set(one.name, one.default);
        }
    }
}

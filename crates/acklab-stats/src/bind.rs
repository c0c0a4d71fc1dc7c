//! Signals by name become slots of an observation.

use crate::monitor::RunMonitor;
use crate::query::error::{QueryError, Span};
use crate::query::expression::{Expression, SignalName};
use crate::query::syntax::{Filter, Limit, Measure, Path, Query, Value, Window};

/// A query whose signals are found.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundQuery {
    query: Query<usize>,
    text: String,
    signals: Vec<usize>,
}

impl Query {
    /// Finds the query's signals in `names`: slot i of an observation is the value of `names[i]`.
    ///
    /// `text` is what was parsed, for the places in errors.
    ///
    /// # Errors
    /// A signal that is not there, with the nearest name; a bound by steps, which a trace has not.
    pub fn bind(&self, text: &str, names: &[impl AsRef<str>]) -> Result<BoundQuery, QueryError> {
        let mut signals = Vec::new();
        let mut find = |signal: &SignalName| {
            let slot = names
                .iter()
                .position(|name| name.as_ref() == signal.name)
                .ok_or_else(|| unknown_signal(text, signal, names))?;
            signals.push(slot);
            Ok(slot)
        };
        let query = self.try_map(&mut find)?;
        if query.windows().any(|window| matches!(window.limit, Limit::Steps(_))) {
            let start = text.find('#').unwrap_or(0);
            return Err(QueryError::new(
                text,
                Span { start, end: start + 1 },
                "`#` counts the transitions of an automaton, which a run of packets does not have",
                "bound the time, such as [<=30], or a signal, such as [queue.arrivals<=1000]",
            ));
        }
        signals.sort_unstable();
        signals.dedup();
        Ok(BoundQuery { query, text: self.to_string(), signals })
    }
}

impl BoundQuery {
    /// The query, its signals as slots.
    pub fn query(&self) -> &Query<usize> {
        &self.query
    }

    /// The query in one canonical line.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The slots that it reads, in rising order; the others need not be filled.
    pub fn signals(&self) -> &[usize] {
        &self.signals
    }

    /// The longest time that a run needs, in seconds; `None` if a signal is the clock, so that the
    /// scenario's own duration is the limit.
    pub fn duration_s(&self) -> Option<f64> {
        let mut longest = Some(0.0_f64);
        for window in self.query.windows() {
            longest = match (&window.limit, longest) {
                (Limit::Time(seconds), Some(longest)) => Some(longest.max(*seconds)),
                _ => None,
            };
        }
        longest
    }

    /// The judge of run number `run`, counted from 0 in the order of seeds. It matters to a
    /// comparison only: its even runs are those of the left formula, its odd ones of the right.
    pub fn monitor(&self, run: u64) -> RunMonitor {
        match &self.query {
            Query::Probability(measure) | Query::Hypothesis { measure, .. } => {
                RunMonitor::of_measure(measure)
            }
            Query::Comparison { left, right } => {
                RunMonitor::of_measure(if run.is_multiple_of(2) { left } else { right })
            }
            Query::Expectation { window, value, .. } | Query::Quantile { window, value, .. } => {
                RunMonitor::of_value(window, value)
            }
            Query::SteadyState { window, value } => RunMonitor::of_steady_state(window, value),
            Query::Simulation { window, values, filter } => {
                RunMonitor::of_simulation(window, values, filter.as_ref())
            }
        }
    }
}

impl<S> Query<S> {
    /// Its one window, or the two of a comparison.
    pub fn windows(&self) -> impl Iterator<Item = &Window<S>> {
        let (first, second) = match self {
            Self::Probability(measure) | Self::Hypothesis { measure, .. } => {
                (&measure.window, None)
            }
            Self::Comparison { left, right } => (&left.window, Some(&right.window)),
            Self::Expectation { window, .. }
            | Self::Quantile { window, .. }
            | Self::SteadyState { window, .. }
            | Self::Simulation { window, .. } => (window, None),
        };
        std::iter::once(first).chain(second)
    }

    fn try_map<T, E>(&self, signal: &mut impl FnMut(&S) -> Result<T, E>) -> Result<Query<T>, E> {
        Ok(match self {
            Self::Probability(measure) => Query::Probability(measure.try_map(signal)?),
            Self::Hypothesis { measure, bound } => {
                Query::Hypothesis { measure: measure.try_map(signal)?, bound: *bound }
            }
            Self::Comparison { left, right } => {
                Query::Comparison { left: left.try_map(signal)?, right: right.try_map(signal)? }
            }
            Self::Expectation { window, value, bound } => Query::Expectation {
                window: window.try_map(signal)?,
                value: value.try_map(signal)?,
                bound: *bound,
            },
            Self::Quantile { window, p, value } => Query::Quantile {
                window: window.try_map(signal)?,
                p: *p,
                value: value.try_map(signal)?,
            },
            Self::SteadyState { window, value } => Query::SteadyState {
                window: window.try_map(signal)?,
                value: value.try_map(signal)?,
            },
            Self::Simulation { window, values, filter } => {
                let window = window.try_map(signal)?;
                let values: Result<Vec<Expression<T>>, E> =
                    values.iter().map(|value| value.try_map(signal)).collect();
                let filter = match filter {
                    Some(Filter { runs, condition }) => {
                        Some(Filter { runs: *runs, condition: condition.try_map(signal)? })
                    }
                    None => None,
                };
                Query::Simulation { window, values: values?, filter }
            }
        })
    }
}

impl<S> Measure<S> {
    fn try_map<T, E>(&self, signal: &mut impl FnMut(&S) -> Result<T, E>) -> Result<Measure<T>, E> {
        let window = self.window.try_map(signal)?;
        let path = match &self.path {
            Path::Eventually(within, goal) => Path::Eventually(*within, goal.try_map(signal)?),
            Path::Always(within, goal) => Path::Always(*within, goal.try_map(signal)?),
            Path::Until(hold, within, goal) => {
                Path::Until(hold.try_map(signal)?, *within, goal.try_map(signal)?)
            }
        };
        Ok(Measure { window, path })
    }
}

impl<S> Value<S> {
    fn try_map<T, E>(&self, signal: &mut impl FnMut(&S) -> Result<T, E>) -> Result<Value<T>, E> {
        let Self { reduction, within, per, expression } = self;
        let per = per.as_ref().map(&mut *signal).transpose()?;
        let expression = expression.try_map(signal)?;
        Ok(Value { reduction: *reduction, within: *within, per, expression })
    }
}

impl<S> Window<S> {
    fn try_map<T, E>(&self, signal: &mut impl FnMut(&S) -> Result<T, E>) -> Result<Window<T>, E> {
        let limit = match &self.limit {
            Limit::Time(seconds) => Limit::Time(*seconds),
            Limit::Steps(steps) => Limit::Steps(*steps),
            Limit::Signal(name, value) => Limit::Signal(signal(name)?, *value),
        };
        Ok(Window { limit, runs: self.runs })
    }
}

fn unknown_signal(text: &str, signal: &SignalName, names: &[impl AsRef<str>]) -> QueryError {
    let what = format!("there is no signal `{}` here", signal.name);
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let wanted = signal.name.to_lowercase();
    let distance = |name: &str| strsim::levenshtein(&wanted, &name.to_lowercase());
    let distances = names.iter().map(|name| (distance(name), *name));
    // A third of the letters may be wrong; beyond that the guess would mislead.
    let near = distances.min().filter(|(distance, _)| *distance * 3 <= signal.name.len().max(3));
    // A name that several begin with stands for none of them: all are told.
    let longer: Vec<String> = names
        .iter()
        .filter(|name| name.strip_prefix(wanted.as_str()).is_some_and(|rest| rest.starts_with('_')))
        .map(|name| format!("`{name}`"))
        .collect();
    let guess = match (longer.as_slice(), near) {
        ([_, _, ..], _) => format!("did you mean {}? ", longer.join(" or ")),
        (_, Some((_, name))) => format!("did you mean `{name}`? "),
        _ => String::new(),
    };
    let list = match names.len() {
        0 => "this scenario has no signals".to_owned(),
        1..=12 => format!("the signals are {}", names.join(", ")),
        count => format!("the signals are {} and {} more", names[..12].join(", "), count - 12),
    };
    QueryError::new(text, signal.span, what, format!("{guess}{list}"))
}

//! What is random about a flow: sizes and times by a distribution, and link rates that change.
//!
//! `50_000` is a constant; a table names the distribution: `{ kind = "pareto", mean = 50_000, shape = 1.3 }`.

use acklab_core::link::RateChanges;
use acklab_core::time::Span;
use acklab_core::units::BitRate;
use acklab_sim::distribution::Distribution;

use super::reader::{Field, Fields, Mistake};

/// What is distributed: each reads a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    /// Bytes, from 1 to this.
    Bytes(u64),
    /// A time; its values are seconds.
    Time,
}

impl Of {
    fn value(self, field: &Field<'_>) -> Result<f64, Mistake> {
        match self {
            Self::Bytes(most) => field.count(1, most).map(|bytes| bytes as f64),
            Self::Time => field.time().map(Span::as_secs_f64),
        }
    }

    const fn example(self) -> &'static str {
        match self {
            Self::Bytes(_) => "mean = 50_000",
            Self::Time => "mean = \"1s\"",
        }
    }
}

/// A distribution, or a constant.
pub(super) fn read(field: &Field<'_>, of: Of) -> Result<Distribution, Mistake> {
    if !field.is_table() {
        return of.value(field).map(Distribution::Constant);
    }
    let mut table = field.fields("a distribution")?;
    let kind = table.need("kind", "kind = \"exponential\"")?.word(KINDS)?;
    table.describe(format!("a distribution of kind {kind}"));
    let distribution =
        if kind == "listed" { listed(&mut table, of)? } else { about(&mut table, kind, of)? };
    table.finish()?;
    Ok(distribution)
}

/// One of several values.
fn listed(table: &mut Fields<'_>, of: Of) -> Result<Distribution, Mistake> {
    let values = table.need("values", "values = [100, 1000, 1000]")?;
    let listed =
        values.items()?.iter().map(|item| of.value(item)).collect::<Result<Vec<_>, _>>()?;
    if listed.is_empty() {
        return Err(values.refuse("has no values"));
    }
    Ok(Distribution::Listed(listed.into()))
}

/// A distribution with a mean.
fn about(table: &mut Fields<'_>, kind: &str, of: Of) -> Result<Distribution, Mistake> {
    let mean = of.value(&table.need("mean", of.example())?)?;
    Ok(match kind {
        "exponential" => Distribution::Exponential { mean },
        "pareto" => {
            let shape = table.need("shape", "shape = 1.5")?.number(1.01, 100.0)?;
            Distribution::Pareto { mean, shape }
        }
        "lognormal" => {
            let sigma = table.need("sigma", "sigma = 1.0")?.number(0.0, 10.0)?;
            Distribution::LogNormal { mean, sigma }
        }
        _ => Distribution::Constant(mean),
    })
}

/// A link's rate, and how it changes if it does.
pub(super) fn rate(field: &Field<'_>) -> Result<(BitRate, Option<RateChanges>), Mistake> {
    if !field.is_table() {
        return Ok((field.rate()?, None));
    }
    let mut table = field.fields("a rate that changes")?;
    let changes =
        if table.has("steps") { schedule(&mut table)? } else { gauss_markov(&mut table)? };
    table.finish()?;
    Ok(changes)
}

fn finite(field: &Field<'_>) -> Result<BitRate, Mistake> {
    match field.rate()? {
        BitRate::INFINITE => Err(field.refuse("must be finite")),
        rate => Ok(rate),
    }
}

fn schedule(table: &mut Fields<'_>) -> Result<(BitRate, Option<RateChanges>), Mistake> {
    let listed = table.need("steps", STEPS)?;
    let mut steps: Vec<(Span, BitRate)> = Vec::new();
    for item in listed.items()? {
        let [at, rate] = item.pair("[\"5s\", \"2mbit\"]")?;
        let (time, rate) = (at.time()?, finite(&rate)?);
        match steps.last() {
            None if !time.is_zero() => return Err(at.refuse("the first step is at 0")),
            Some((last, _)) if time <= *last => {
                return Err(at.refuse(format!("must be after {last}")));
            }
            _ => steps.push((time, rate)),
        }
    }
    let Some((last, greatest)) =
        steps.last().map(|last| last.0).zip(steps.iter().map(|step| step.1).max())
    else {
        return Err(listed.refuse("has no steps"));
    };
    let repeat = table.take("repeat");
    let period = repeat.as_ref().map(Field::time).transpose()?;
    if let (Some(field), Some(_)) = (repeat, period.filter(|period| *period <= last)) {
        return Err(field.refuse(format!("must be after the last step, at {last}")));
    }
    Ok((greatest, Some(RateChanges::Schedule { steps: steps.into(), period })))
}

fn gauss_markov(table: &mut Fields<'_>) -> Result<(BitRate, Option<RateChanges>), Mistake> {
    let mean = finite(&table.need("mean", STEPS)?)?;
    let sd = finite(&table.need("sd", "sd = \"2mbit\"")?)?.as_bps() as f64;
    let memory = table.take("memory").map_or(Ok(0.9), |field| field.share())?;
    let every = table.need("every", "every = \"100ms\"")?.time_above_zero()?;
    let least = table.take("least").map_or(Ok(least_of(mean)), |field| finite(&field))?;
    Ok((mean, Some(RateChanges::GaussMarkov { mean, sd, memory, every, least })))
}

/// A hundredth of the mean.
fn least_of(mean: BitRate) -> BitRate {
    BitRate::from_bps(mean.as_bps().div_ceil(100)).unwrap_or(mean)
}

const KINDS: &[&str] = &["constant", "exponential", "pareto", "lognormal", "listed"];
const STEPS: &str =
    "steps = [[\"0s\", \"10mbit\"], [\"5s\", \"2mbit\"]], or mean = \"10mbit\", sd and every";

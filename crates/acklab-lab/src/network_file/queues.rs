//! A link's queue: a discipline by name, with its parameters where they are given, and its room.

use acklab_core::queue::ecn::Treatment;
use acklab_core::queue::{Discipline, Limit};
use acklab_core::time::Span;

use super::reader::{Field, Fields, Mistake};

/// The queue that `queue`, `buffer` and `buffer_bytes` describe; drop-tail without limit by default.
pub(super) fn read(
    queue: Option<&Field<'_>>,
    buffer: Option<&Field<'_>>,
    bytes: Option<&Field<'_>>,
) -> Result<Discipline, Mistake> {
    let limit = Limit {
        packets: buffer.map_or(Ok(u64::from(u32::MAX)), |field| field.count(1, MOST_PACKETS))?
            as u32,
        bytes: bytes.map_or(Ok(u64::MAX), |field| field.count(LEAST_BYTES, MOST_BYTES))?,
    };
    let Some(queue) = queue else { return Ok(Discipline::DropTail(limit)) };
    if !queue.is_table() {
        let name = queue.word(Discipline::NAMES)?;
        return Ok(named(name, limit));
    }
    let mut table = queue.fields("a queue")?;
    let name = table.need("kind", "kind = \"red\"")?.word(Discipline::NAMES)?;
    table.describe(format!("a queue of kind {name}"));
    let mut discipline = named(name, limit);
    parameters(&mut discipline, &mut table)?;
    if !matches!(name, "drop-tail" | "encn" | "jersey")
        && let Some(ecn) = table.take("ecn")
    {
        discipline = discipline.with_ecn(match ecn.word(&["mark", "drop", "exempt"])? {
            "mark" => Treatment::MARK,
            "drop" => Treatment::DROP,
            _ => Treatment::EXEMPT,
        });
    }
    table.finish()?;
    Ok(discipline)
}

fn named(name: &str, limit: Limit) -> Discipline {
    Discipline::by_name(name, limit.packets).unwrap_or_default().with_limit(limit)
}

fn parameters(discipline: &mut Discipline, table: &mut Fields<'_>) -> Result<(), Mistake> {
    match discipline {
        Discipline::Red(red) => {
            number(table, "min", 0.0, &mut red.min_threshold)?;
            let max = table.take("max");
            if let Some(max) = &max {
                red.max_threshold = max.number(0.0, MOST_THRESHOLD)?;
            }
            if red.min_threshold >= red.max_threshold {
                let message = format!(
                    "min is {} and max is {}: min must be less than max",
                    red.min_threshold, red.max_threshold
                );
                return Err(Mistake::new(&max.map_or(table.span().clone(), |f| f.span()), message));
            }
            share(table, "probability", &mut red.max_probability)?;
            share(table, "weight", &mut red.weight)?;
            if let Some(gentle) = table.take("gentle") {
                red.gentle = gentle.flag()?;
            }
        }
        Discipline::Codel(codel) => {
            time(table, "target", &mut codel.target)?;
            time(table, "interval", &mut codel.interval)?;
        }
        Discipline::FqCodel(fq_codel) => {
            time(table, "target", &mut fq_codel.target)?;
            time(table, "interval", &mut fq_codel.interval)?;
            if let Some(flows) = table.take("flows") {
                fq_codel.flows = flows.count(1, 65_536)? as u32;
            }
            if let Some(quantum) = table.take("quantum") {
                fq_codel.quantum = quantum.count(100, 1_000_000)? as u32;
            }
        }
        Discipline::Pie(pie) => time(table, "target", &mut pie.target)?,
        Discipline::DualPi2(dualpi2) => time(table, "target", &mut dualpi2.target)?,
        Discipline::Encn(encn) => number(table, "threshold", 0.0, &mut encn.q_min)?,
        Discipline::Jersey(jersey) => {
            number(table, "threshold", 0.0, &mut jersey.threshold)?;
            share(table, "weight", &mut jersey.weight)?;
        }
        Discipline::Edctcp(threshold) | Discipline::Threshold(threshold) => {
            number(table, "threshold", 0.0, &mut threshold.threshold)?;
        }
        Discipline::DropTail(_) | Discipline::Custom(_) => {}
    }
    Ok(())
}

fn number(
    table: &mut Fields<'_>,
    key: &'static str,
    min: f64,
    slot: &mut f64,
) -> Result<(), Mistake> {
    if let Some(field) = table.take(key) {
        *slot = field.number(min, MOST_THRESHOLD)?;
    }
    Ok(())
}

fn share(table: &mut Fields<'_>, key: &'static str, slot: &mut f64) -> Result<(), Mistake> {
    if let Some(field) = table.take(key) {
        *slot = field.share()?;
        if *slot == 0.0 {
            return Err(field.refuse("must be above 0"));
        }
    }
    Ok(())
}

fn time(table: &mut Fields<'_>, key: &'static str, slot: &mut Span) -> Result<(), Mistake> {
    if let Some(field) = table.take(key) {
        *slot = field.time_above_zero()?;
    }
    Ok(())
}

const MOST_PACKETS: u64 = 100_000_000;
/// A full packet of Ethernet must fit.
const LEAST_BYTES: u64 = 1500;
const MOST_BYTES: u64 = 1 << 40;
/// Packets, of a threshold.
const MOST_THRESHOLD: f64 = 1e9;

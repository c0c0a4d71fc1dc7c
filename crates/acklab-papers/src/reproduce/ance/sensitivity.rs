//! What each thing that the paper leaves open does to the order of its table 4.
//!
//! Starting from a preset, one parameter at a time takes each of its other values. For each, the share
//! of runs in which the ITAE passes the paper's threshold, technique by technique, and whether the
//! paper's order remains: drop tail first, ENCN and ANCE last.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use super::configuration::{Exceedance, Measured, TABLE_4, Topology};
use acklab_lab::parameter::SetError;
use acklab_lab::report::{Column, Table};

use crate::reproduce::{Course, Stop};

/// One parameter and a value that differs from both presets' or from one's.
const VARIATIONS: &str = "\
    actuation=tick actuation=arrival phase=fixed integration=backward-euler integration=tustin \
    missing=zero saturation=24 ncs_access=750us ncs_access=2ms ncs_access=3ms ncs_early=drop \
    rx_access=2ms rx_access=25ms rx_spread=8ms start=random start_spread=100ms host_jitter=0 \
    host_jitter=2ms recovery=reno recovery=sack delack=on iw=10 ssthresh=16 ssthresh=30 \
    rto_min=200ms service=within ecn=off ecn_echo=each-ack red_weight=0.2 red_count=uniform \
    red_above=mark red_above=gentle codel=rfc8289 pie=hpsr2013 pie_target=15ms pie_rate=measured \
    qmin=1 qmin=10 bf_floor=1 slow_start=prose ance_bandwidth=true ance_equation_2=ack-length \
    ance_equation_2=literal ance_spacing=second-smallest ance_spacing=per-round-trip";

/// A row: what was varied, and the shares.
#[derive(Clone, Debug)]
pub struct Row {
    /// `parameter=value`, or the preset itself.
    pub name: String,
    /// One per technique of table 4.
    pub shares: Vec<Exceedance>,
    /// The mean ITAE of each.
    pub means: Vec<f64>,
}

impl Row {
    fn measure(
        name: String,
        sets: &[(&str, &str)],
        seed: u64,
        replications: u64,
        ended: &AtomicBool,
    ) -> Result<Self, SetError> {
        let run = |technique| {
            Measured::run(Topology::Dumbbell, technique, sets, seed, replications, ended)
        };
        let measured: Vec<Measured> = TABLE_4.into_iter().map(run).collect::<Result<_, _>>()?;
        Ok(Self {
            name,
            shares: measured.iter().map(Measured::exceedance).collect(),
            means: measured.iter().map(|measured| measured.mean("itae_rad_s")).collect(),
        })
    }

    /// Whether drop tail has the highest mean ITAE and ENCN and ANCE the two lowest.
    pub fn keeps_the_ends(&self) -> bool {
        let [drop_tail, middle @ .., encn, ance] = self.means.as_slice() else { return false };
        middle.iter().all(|mean| mean < drop_tail && mean > encn && mean > ance)
    }

    /// Whether RED passes the threshold more often than CoDel, and that more often than PIE.
    pub fn keeps_the_middle(&self) -> bool {
        let [_, red, codel, pie, ..] = self.shares.as_slice() else { return false };
        red.exceeded > codel.exceeded && codel.exceeded > pie.exceeded
    }

    /// What is left of the paper's order.
    fn order(&self) -> &'static str {
        match (self.keeps_the_ends(), self.keeps_the_middle()) {
            (true, true) => "kept",
            (true, false) => "ends kept",
            (false, true) => "middle kept",
            (false, false) => "broken",
        }
    }
}

/// Every variation of `preset` up to the end of the course, a part each.
pub fn run(
    preset: &'static str,
    seed: u64,
    replications: u64,
    course: &mut Course<'_>,
) -> Result<Vec<Row>, Stop> {
    let mut rows = Vec::new();
    let variations = VARIATIONS.split(' ').filter_map(|pair| pair.split_once('='));
    for variation in std::iter::once(("preset", preset)).chain(variations) {
        let (name, value) = variation;
        let (title, sets): (_, &[_]) = match name {
            "preset" => (format!("preset {preset}"), &[variation]),
            _ => (format!("{name}={value}"), &[("preset", preset), variation]),
        };
        let run = |ended: &AtomicBool| Row::measure(title.clone(), sets, seed, replications, ended);
        match course.part(format!("{preset}: {title}"), run, |_| vec![]) {
            Ok(row) => rows.push(row?),
            Err(Stop::Ended) => break,
            Err(refused) => return Err(refused),
        }
    }
    Ok(rows)
}

/// The tables of the presets as a Markdown document.
pub fn markdown(tables: &[(&str, Vec<Row>)], seed: u64, replications: u64) -> String {
    let mut text = format!(
        "# What decides the order of the ANCE paper's table 4\n\n\
         Made by `acklab reproduce ance --sensitivity`; do not edit. Share of {replications} runs (seed \
         {seed}) of `ance-dumbbell` in which the ITAE passes 8727 rad s within 30 s, in percent, and in \
         parentheses the mean ITAE in thousands of rad s. Each row changes one thing about the preset; \
         rows whose value is the preset's own, or changes nothing at all, are left out. `order`: `kept` \
         if drop tail has the highest mean, ENCN and ANCE the two lowest (the ends), and RED passes the \
         threshold more often than CoDel, and that than PIE (the middle). The paper has DT 90 to 100, RED 65 to 75, CoDel 46 to 56, PIE 7 \
         to 17, ENCN and ANCE 0 to 10.\n"
    );
    for (preset, rows) in tables {
        let _ = write!(text, "\n## {preset}\n\n{}", table(rows).to_markdown());
    }
    text
}

fn table(rows: &[Row]) -> Table {
    let preset = rows.first().map(|row| &row.means);
    let changed =
        rows.iter().enumerate().filter(|(index, row)| *index == 0 || preset != Some(&row.means));
    let rows: Vec<&Row> = changed.map(|(_, row)| row).collect();
    let mut columns =
        vec![Column::text("").plain("change", 0).over(&rows, |row| row.name.as_str())];
    columns.extend(TABLE_4.iter().enumerate().map(|(index, technique)| {
        let column = Column::number("", "").plain(technique.name, 0);
        column.over(&rows, |row| {
            let share = 100.0 * row.shares[index].share();
            format!("{share:.0} ({})", thousands(row.means[index]))
        })
    }));
    columns.push(Column::text("").plain("order", 0).over(&rows, |row| row.order()));
    Table::new("", columns)
}

/// Thousands with one decimal; what has run away as such.
fn thousands(value: f64) -> String {
    if value > 1e6 { "unstable".to_owned() } else { format!("{:.1}", value / 1000.0) }
}

//! What was judged and measured, column by column, and the tables that are made of it.

use acklab_lab::report::{Claim, Column, Outcome, Table, Unit};
use serde_json::json;

use super::configuration::{Measured, Topology};
use super::preset::PRESETS;
use super::table4::{Reading, Row};

/// The paper's sentences under each reading.
pub(super) fn claims(claims: &[Claim]) -> Table {
    let mut columns = vec![Claim::places(claims), Claim::texts(claims)];
    let outcomes = PRESETS.iter().enumerate();
    columns.extend(outcomes.map(|(index, name)| Claim::outcomes(claims, index, name)));
    columns.push(Claim::figures(claims, 0).named("Figures under the first"));
    let doubtful = |claim: &Claim| claim.outcomes[..2].iter().any(|it| *it != Outcome::Holds);
    Table::new(
        "Marked at the left: does not hold, or is open, under one of the first two readings.",
        columns,
    )
    .flag(claims.iter().map(doubtful))
}

/// The same under one reading, as JSON has it.
pub(super) fn claims_under(claims: &[Claim], reading: usize) -> Table {
    let columns = vec![
        Claim::places(claims),
        Claim::texts(claims),
        Claim::outcomes(claims, reading, PRESETS[reading]),
        Claim::figures(claims, reading),
    ];
    Table::new("", columns)
}

/// The probability that the ITAE passes the threshold, the paper's intervals beside ours.
pub(super) fn table4(reading: &Reading) -> Table {
    let rows = &reading.rows;
    let of = |successes: u64, runs: u64| format!("{successes} of {runs}");
    let columns = vec![
        Column::text("Technique")
            .key("technique")
            .plain("technique", 0)
            .over(rows, |row| row.paper.technique.name),
        Column::text("Paper’s interval")
            .plain("paper", 0)
            .over(rows, |row| format!("{} to {}", row.paper.interval.0, row.paper.interval.1)),
        Column::text("from").over(rows, |row| of(row.paper.counts.0, row.paper.counts.1)),
        Column::text("Ours").plain("here", 0).over(rows, |row| {
            let (low, high) = row.interval();
            format!("{low:.3} to {high:.3}")
        }),
        Column::text("from").plain("runs", 0).over(rows, |row| {
            let (successes, runs) = row.counts();
            of(successes, runs)
        }),
        Column::number("p", "").key("p_value").plain("p", 4).over(rows, Row::p_value),
        Column::text("Agrees").key("agrees").plain("agrees", 0).over(rows, Row::agrees),
        Column::in_json("paper").over(rows, |row| {
            let ((low, high), (successes, runs)) = (row.paper.interval, row.paper.counts);
            json!({"low": low, "high": high, "successes": successes, "runs": runs})
        }),
        Column::in_json("low").over(rows, |row| row.interval().0),
        Column::in_json("high").over(rows, |row| row.interval().1),
        Column::in_json("successes").over(rows, |row| row.counts().0),
        Column::in_json("runs").over(rows, |row| row.counts().1),
    ];
    let caption =
        format!("{}: probability that the ITAE passes 8727 rad s within 30 s", reading.name);
    Table::new(caption, columns).flag(rows.iter().map(|row| !row.agrees())).note(
        "Ours: Clopper-Pearson, 95 % confidence. The paper's: sequential, stopped when at most 0.1 wide; it \
         prints intervals only, the counts are those that give them, truncated. p: Fisher's exact test of \
         both counts, two-sided; a row agrees unless p is below 0.05 / 6 (six rows, Bonferroni).",
    )
}

/// What JSON and the page have of a topology.
pub(super) fn of(topology: Topology, measured: &[Measured]) -> [Table; 2] {
    let shown = match topology {
        Topology::Daisy => daisy(measured),
        Topology::Dumbbell => dumbbell(measured),
    };
    [means(measured), shown]
}

/// The means of the dumbbell.
pub(super) fn dumbbell(measured: &[Measured]) -> Table {
    let mut columns = router(measured);
    columns.extend([
        mean(measured, "Jain’s index", "", "jain"),
        mean(measured, "ITAE, mean", "rad s", "itae_rad_s"),
        Column::number("ITAE over 8727", Unit::percent("% of runs"))
            .over(measured, |one| one.exceedance().share()),
        mean(measured, "Loop delay, mean", "ms", "loop_delay_ms"),
    ]);
    Table::new("Dumbbell (section 4)", columns)
}

/// The means of the daisy chain.
pub(super) fn daisy(measured: &[Measured]) -> Table {
    Table::new("Daisy chain (section 3)", router(measured))
}

/// What the bottleneck's router did.
fn router(measured: &[Measured]) -> Vec<Column> {
    let percent = || Unit::percent("%");
    vec![
        technique(measured),
        mean(measured, "Throughput", Unit::mega("Mbit/s"), "throughput_bps"),
        mean(measured, "Queue, mean", "packets", "queue_packets"),
        Column::number("Queue, p95", "packets").over(measured, |one| one.p95("queue_packets")),
        mean(measured, "Queue empty", percent(), "queue_empty_share"),
        mean(measured, "Link idle", percent(), "idle_share"),
        mean(measured, "Drops", "packets", "drops"),
        mean(measured, "Marks", "packets", "marks"),
    ]
}

/// The means that JSON has.
pub(super) fn means(measured: &[Measured]) -> Table {
    let metrics = [
        "throughput_bps",
        "jain",
        "queue_mean_packets",
        "queue_empty_share",
        "idle_share",
        "itae_rad_s",
    ];
    let mean = |metric| Column::in_json(metric).over(measured, |one| one.mean(metric));
    let name = Column::in_json("technique").over(measured, |one| one.technique.name);
    let mut columns = vec![name];
    columns.extend(metrics.map(mean));
    Table::new("", columns)
}

fn technique(measured: &[Measured]) -> Column {
    Column::text("Technique")
        .key("technique")
        .plain("technique", 0)
        .over(measured, |one| one.technique.name)
}

fn mean(measured: &[Measured], name: &str, unit: impl Into<Unit>, metric: &str) -> Column {
    Column::number(name, unit).plain(name, 2).over(measured, |one| one.mean(metric))
}

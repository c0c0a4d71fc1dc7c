//! What was judged and measured, column by column, and the tables that are made of it.

use acklab_lab::report::{Cell, Claim, Column, Outcome, Table, Unit};
use serde_json::{Map, Value, json};

use super::campaigns::Stopping;
use super::dead_path::DeadPath;
use super::emulated::{self, Real, Transfer};
use super::experiment::{Experiment, Experiments, FITTED, MACHINES};
use super::paper::{LOSSES, ROWS, Row};
use super::reproduction::Reproduction;
use super::today::Today;

/// The paper's sentences under each reading of the hosts' costs.
pub(super) fn claims(claims: &[Claim]) -> Table {
    let mut columns = vec![Claim::places(claims), Claim::texts(claims)];
    let outcomes = MACHINES.iter().enumerate();
    columns.extend(outcomes.map(|(index, it)| Claim::outcomes(claims, index, it.name)));
    columns.push(Claim::figures(claims, 0));
    let doubtful = |claim: &Claim| claim.outcomes.iter().any(|it| *it != Outcome::Holds);
    Table::new(
        "Marked at the left: does not hold, or is open, under one reading of the hosts’ costs.",
        columns,
    )
    .flag(claims.iter().map(doubtful))
    .note(
        "Times are compared by 95 % intervals over repetitions with the same seeds. What does not depend on the \
         hosts has the same word in every column.",
    )
}

/// The same with all outcomes together, as JSON and the terminal have it.
pub(super) fn claims_in_a_word(claims: &[Claim]) -> Table {
    let words = |claim: &Claim| {
        let words: Vec<&str> = claim.outcomes.iter().map(|outcome| outcome.word()).collect();
        words.join(", ")
    };
    let by_machine = |claim: &Claim| -> Value {
        let outcomes = MACHINES.iter().zip(&claim.outcomes);
        let pairs = outcomes.map(|(machine, it)| (machine.name.to_owned(), it.word().into()));
        pairs.collect::<Map<_, _>>().into()
    };
    let columns = vec![
        Column::on_terminal("holds?", 0).over(claims, words),
        Claim::places(claims),
        Claim::texts(claims),
        Column::in_json("outcomes").over(claims, by_machine),
        Claim::figures(claims, 0),
    ];
    Table::new("", columns)
}

/// Tables 1 and 2 of the paper beside ours, for the terminal.
pub(super) fn times(reproduction: &Reproduction) -> Table {
    let mut columns: Vec<Column> = experiments(&ROWS).into();
    columns.push(paper(&ROWS).plain("paper, s", 2));
    columns.extend(reproduction.experiments.iter().map(|all| time(all, &all.measured)));
    Table::new("", columns)
}

/// Table 1, of one path, or table 2, of two.
pub(super) fn times_through(reproduction: &Reproduction, paths: usize) -> Table {
    let range = LOSSES.len() * (paths - 1)..LOSSES.len() * paths;
    let rows = &ROWS[range.clone()];
    let margin = |row: &Row| Cell::Interval { mean: row.mean, half_width: row.margin_seconds() };
    let mut columns = vec![loss(rows), Column::number("Paper", "s").over(rows, margin)];
    for experiments in &reproduction.experiments {
        let measured = &experiments.measured[range.clone()];
        columns.push(time(experiments, measured));
        columns.push(
            Column::number("of the paper’s", "%")
                .over(measured, |one| 100.0 * one.mean() / one.paper.mean),
        );
    }
    let through = if paths == 1 { "one router" } else { "two routers" };
    Table::new(format!("Table {paths}: transfer time through {through}"), columns)
}

/// What a packet costs.
pub(super) fn costs(reproduction: &Reproduction) -> Table {
    let [loss, paths, _] = experiments(&ROWS);
    let ideal = Column::number("1/(1-p)^4", "transmissions").over(&ROWS, |row| {
        let passes = (1.0 - row.loss) * (1.0 - row.loss);
        1.0 / (passes * passes)
    });
    let mut columns = vec![loss, paths, ideal];
    columns.extend(reproduction.experiments.iter().map(tries));
    let fitted = reproduction.experiments.iter().find(|e| e.machine == FITTED);
    columns.extend(fitted.into_iter().flat_map(vain_ends));
    Table::new("What a packet costs, and what becomes of the end", columns).note(format!(
        "Transmissions per packet of the file. The receiver answers the end packet once and is gone; where that \
         answer is lost, the sender repeats the end a thousand times, after the time that it reports (with {}).",
        FITTED.name
    ))
}

/// The experiments on one kind of machine, as JSON has them.
pub(super) fn machine(all: &Experiments) -> Table {
    let rows: Vec<Row> = all.measured.iter().map(|measured| measured.paper).collect();
    let mut columns: Vec<Column> = experiments(&rows).into();
    columns.extend([paper(&rows).key("paper_s"), time(all, &all.measured), tries(all)]);
    columns.extend(vain_ends(all));
    columns.push(Column::in_json("seconds").over(&all.measured, |one| json!(one.seconds())));
    Table::new("", columns)
}

/// Today's protocol beside the course's.
pub(super) fn today(today: &[Today], ideal: &Experiments, emulated: &[Real], size: usize) -> Table {
    let rows: Vec<Row> = today.iter().map(|today| today.paper).collect();
    let mut columns: Vec<Column> = experiments(&rows).into();
    columns.extend([
        paper(&rows),
        Column::number("Course, no processor time", "s")
            .plain("course, s", 2)
            .over(&ideal.measured, Experiment::interval),
        Column::number("acklab", "s").keys("s").plain("acklab, s", 2).over(today, Today::interval),
        Column::number("median", "s").key("median_s").plain("median", 2).over(today, Today::median),
        Column::number("longest", "s").key("longest_s").over(today, Today::longest),
        Column::number("Times as fast", "by the median")
            .over(today.iter().zip(&ideal.measured), |(today, course)| {
                Some(course.mean() / today.median()?)
            }),
        Column::number("Course, sent", "packets per packet")
            .over(&ideal.measured, |course| course.tries(ideal.chunks)),
        Column::number("acklab, on the wire", "of the file")
            .key("wire_bytes_per_byte")
            .over(today, |today| today.wire_share(size)),
    ]);
    if !emulated.is_empty() {
        let on_terminal = |heading: &str, transfers: fn(&Real) -> &[Transfer]| {
            Column::on_terminal(heading, 2).over(emulated, |one| real_time(transfers(one)))
        };
        columns.push(on_terminal("course, emulated", |one| &one.course));
        columns.push(on_terminal("acklab send, emulated", |one| &one.today));
    }
    Table::new("The same file, the same losses", columns)
        .flag(today.iter().map(|today| today.interval().is_none()))
}

/// Real packets beside virtual time.
pub(super) fn emulated(reproduction: &Reproduction) -> Table {
    let (real, size) = (&reproduction.emulated, reproduction.plan.size);
    let rows: Vec<Row> = real.iter().map(|one| one.paper).collect();
    let [loss, paths, _] = experiments(&rows);
    let time = |name: &str, transfers: fn(&Real) -> &[Transfer]| {
        Column::number(name, "s").over(real, |one| real_time(transfers(one)))
    };
    let wire = |name: &str, transfers: fn(&Real) -> &[Transfer]| {
        let column = Column::number(name, "of the file");
        column.over(real, |one| emulated::wire_share(transfers(one), size))
    };
    let courses = real.iter().zip(&reproduction.ideal().measured);
    let todays = real.iter().zip(&reproduction.today);
    let columns = vec![
        loss,
        paths,
        Column::number("Course, virtual time", "s").over(courses, |(_, course)| course.interval()),
        time("Course, emulated", |one| &one.course),
        Column::number("acklab, virtual time", "s").over(todays, |(_, today)| today.interval()),
        time("acklab send, emulated", |one| &one.today),
        wire("Course, on the wire", |one| &one.course),
        wire("acklab send, on the wire", |one| &one.today),
        Column::number("Lateness, p99 at most", "us").over(real, Real::lateness_us),
        Column::number("Runs", "in doubt")
            .over(real, |one| format!("{} of {}", one.doubtful(), one.transfers().count())),
        Column::in_json("course").over(real, |one| json!(one.course)),
        Column::in_json("today").over(real, |one| json!(one.today)),
    ];
    let runs = real.first().map_or(0, |one| one.course.len());
    let caption = format!("Both protocols over emulated links, {runs} repetitions each");
    Table::new(caption, columns).flag(real.iter().map(|one| one.doubtful() > 0)).note(
        "The course protocol’s sender is not slowed down here. acklab send is encrypted, hashes the file, and is \
         timed until the receiver has said that everything is stored. A run is in doubt where the emulator was \
         more than 1 ms late with 1 % of the packets, or the course’s sender with 1 % of its time-outs: then a \
         busy machine makes it slower than it is.",
    )
}

/// Real packets of one experiment.
#[cfg(target_os = "linux")]
pub(super) fn real(one: &Real) -> Table {
    let mut columns: Vec<Column> = experiments(&[one.paper]).into();
    for (name, key, transfers) in
        [("course", "course", &one.course), ("acklab send", "today", &one.today)]
    {
        let time = Column::number(name, "s").plain(format!("{name}, s"), 2);
        columns.push(time.over([real_time(transfers)], |cell| cell));
        columns.push(Column::in_json(key).over([json!(transfers)], |json| json));
    }
    Table::new("Emulated links", columns)
}

/// Each stop rule on each experiment.
pub(super) fn stop_rules(stopping: &[Stopping]) -> Table {
    let rows: Vec<Row> = stopping.iter().map(|one| one.row).collect();
    let mut columns: Vec<Column> = experiments(&rows).into();
    let runs = |one: &Stopping| {
        let end = if one.campaign.stopped { "" } else { " (no end)" };
        let words = format!("{}{end}", one.campaign.runs);
        Cell::Ranked { words, value: one.campaign.runs as f64 }
    };
    let interval = |one: &Stopping| Cell::Interval {
        mean: one.campaign.mean,
        half_width: one.campaign.margin,
    };
    let campaigns = |name: &str| Column::number(name, Unit::percent("% of campaigns"));
    columns.extend([
        Column::text("Rule").plain("stop rule", 0).over(stopping, |one| one.rule.name()),
        Column::in_json("rule").over(stopping, |one| one.rule.formula()),
        Column::number("Runs", "").plain("runs", 0).over(stopping, runs),
        Column::in_json("runs").over(stopping, |one| one.campaign.runs),
        Column::in_json("stopped").over(stopping, |one| one.campaign.stopped),
        Column::number("Mean", "s").key("mean_s").over(stopping, |one| one.campaign.mean),
        Column::number("Interval", "s").plain("mean, s", 2).over(stopping, interval),
        Column::in_json("margin_s").over(stopping, |one| one.campaign.margin),
        Column::number("Time of the runs", "h")
            .over(stopping, |one| one.campaign.mean * one.campaign.runs as f64 / 3600.0),
        Column::number("Runs, median", "of campaigns")
            .key("median_runs")
            .plain("median runs", 0)
            .over(stopping, |one| one.campaigns.median_runs),
        campaigns("Stops at once")
            .key("stopped_at_once")
            .over(stopping, |one| one.campaigns.at_once),
        campaigns("Holds the mean")
            .key("coverage")
            .plain_percent("holds the mean", 1)
            .over(stopping, |one| one.campaigns.coverage),
    ]);
    let campaigns = stopping.first().map_or(0, |one| one.campaigns.campaigns);
    Table::new(format!("Each rule on each experiment, {}", FITTED.name), columns)
        .flag(stopping.iter().map(|one| one.campaigns.coverage < 0.93))
        .note(format!(
            "Runs, mean and interval: one campaign, runs in the order of the seeds. The last three columns: \
             {campaigns} campaigns each, of runs drawn from the repetitions, whose mean is the truth then. An \
             interval of 95 % should hold it in 95 % of campaigns; marked: in less than 93 %."
        ))
}

/// A router's death.
pub(super) fn dead_path(dead: &[DeadPath]) -> Table {
    let columns = vec![
        Column::text("Hosts").key("machine").over(dead, |one| one.machine.name),
        Column::number("Both alive", "s").key("alive_s").over(dead, |one| one.alive_s),
        Column::number("Second dies", "s").key("died_s").over(dead, |one| one.died_s),
        Column::number("Longest time without an ACK", "s")
            .key("longest_wait_s")
            .over(dead, |one| one.longest_wait_s),
    ];
    Table::new("5 % loss, two paths; the second router is dead from 5 s on", columns)
        .flag(dead.iter().map(|one| one.longest_wait_s >= 1.0))
        .note(
            "The window is shared: packets of the dead path fill it, and nothing moves until one of them has had \
             a thousand time-outs.",
        )
}

/// Loss and number of paths; and the loss again behind it, where the terminal has it.
fn experiments(rows: &[Row]) -> [Column; 3] {
    [
        loss(rows),
        Column::number("Paths", "").key("paths").plain("paths", 0).over(rows, |row| row.paths),
        Column::number("", Unit::percent("%")).plain_percent("loss", 0).over(rows, |row| row.loss),
    ]
}

fn loss(rows: &[Row]) -> Column {
    Column::number("Loss", Unit::percent("%")).key("loss").over(rows, |row| row.loss)
}

/// The paper's mean.
fn paper(rows: &[Row]) -> Column {
    Column::number("Paper", "s").over(rows, |row| row.mean)
}

/// Transfer times of some of the experiments on one kind of machine.
fn time(experiments: &Experiments, measured: &[Experiment]) -> Column {
    let name = experiments.machine.name;
    Column::number(name, "s")
        .keys("s")
        .plain(name, 2)
        .missing("not all ended")
        .over(measured, Experiment::interval)
}

/// What a packet costs on one kind of machine.
fn tries(all: &Experiments) -> Column {
    Column::number(all.machine.name, "transmissions")
        .key("transmissions_per_packet")
        .over(&all.measured, |one| one.tries(all.chunks))
}

/// What becomes of the end on one kind of machine.
fn vain_ends(all: &Experiments) -> [Column; 2] {
    [
        Column::number("Ends unanswered", Unit::percent("% of transfers"))
            .key("ends_unanswered")
            .over(&all.measured, Experiment::vain_ends),
        Column::number("tried for", "s")
            .key("end_unanswered_s")
            .over(&all.measured, Experiment::vain_end_seconds),
    ]
}

/// The mean time of real transfers with its interval, which one alone does not have.
fn real_time(transfers: &[Transfer]) -> Cell {
    match transfers {
        [alone] => alone.seconds.into(),
        several => emulated::interval(several).into(),
    }
}

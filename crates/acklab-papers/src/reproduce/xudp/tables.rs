//! What was measured, column by column, and the tables that are made of it.

use acklab_lab::report::{Column, Table, Unit};
use serde_json::json;

use super::experiment::{Figures, STEP};
use super::paper::{self, Printed};
use super::parameters::PARAMETERS;
use super::policies::PolicyRow;
use super::reproduction::Reproduction;
use super::runs::Run;
use super::sensitivity::Changed;

/// Tables 8.1 and 8.2, with the corners between them.
pub fn stream(reproduction: &Reproduction) -> Table {
    let runs: Vec<&Run> = reproduction.stream.iter().collect();
    let mut columns = vec![name(&runs), table(&runs)];
    columns.extend(beside_the_thesis(&runs));
    columns.push(Column::number("Factor", "").over(&runs, |run| reproduction.factor(run.name)));
    Table::new(
        "A stream of 10,240-byte RELIABLE parcels in packets of 512 bytes over 10 Mbit/s; KB are 1000 bytes.",
        columns,
    )
    .note(format!("The thesis’s factor, from table 8.1 to table 8.2, is {:.1}.", paper::FACTOR))
}

/// What else the thesis prints of these runs.
pub fn totals(reproduction: &Reproduction) -> Table {
    let runs: Vec<&Run> = reproduction.stream.iter().collect();
    let columns = vec![
        name(&runs),
        acknowledged(figures(&runs)),
        printed(&runs, "KB", 0, |table| table.kilobytes),
        time(figures(&runs)),
        printed(&runs, "s", 0, |table| table.seconds),
        peak(figures(&runs)),
    ];
    Table::new("Totals of the same runs.", columns).note(
        "The thesis counts some bytes more than those of the parcels. It reads 750 KB/s off the steepest part of \
         its second run; with a fixed time per packet no part is that steep here.",
    )
}

/// Frames: tables 8.5 to 8.9.
pub fn frames(runs: &[Run]) -> Table {
    let runs: Vec<&Run> = runs.iter().collect();
    let [received, all] = parcels(&runs);
    let thesis = Column::number("thesis", "parcels");
    let thesis = thesis.over(&runs, |run| Some(run.printed?.parcels?.0));
    let mut columns = vec![name(&runs), received, thesis, all];
    columns.extend(beside_the_thesis(&runs));
    Table::new(
        "Bursts of 14,400-byte parcels at the start of each second; all but the first of each are obsolete after \
         2 s.",
        columns,
    )
    .note(
        "What limits twenty frames a second is the server’s time per packet: without it (host=0) every parcel \
         arrives. The thesis says the same of its unoptimised architecture (section 8.6). Loaded: the time per \
         packet is fitted to the rate, and the round trip follows; the thesis’s run went on for eight seconds \
         more.",
    )
}

/// All runs of the thesis's protocol, for the terminal.
pub fn runs(reproduction: &Reproduction) -> Table {
    let runs: Vec<&Run> = reproduction.stream.iter().chain(&reproduction.frames).collect();
    let thesis = |run: &&Run| run.printed?.parcels.map(|(received, all)| of(received, all));
    let mut columns = vec![name(&runs), table(&runs)];
    columns.extend(beside_the_thesis(&runs));
    columns.push(received_of_all(&runs));
    columns.push(Column::on_terminal("thesis", 0).over(&runs, thesis));
    Table::new("", columns)
}

/// Today's protocol on the same wire.
pub fn today(runs: &[Run]) -> Table {
    let runs: Vec<&Run> = runs.iter().collect();
    let [rate, round_trip, window] = means(figures(&runs));
    let [received, all] = parcels(&runs);
    let time = time(figures(&runs));
    let counted = received_of_all(&runs);
    Table::new(
        "The same parcels over reliable UDP as this program has it (docs/rudp.md), on computers that take no \
         time; and the protocol of 1997 on such.",
        vec![name(&runs), rate, time, received, all, round_trip, window, counted],
    )
    .note(
        "Today’s packets are 1472 bytes, and its round trip is smoothed and has the delay taken off that the \
         receiver reports for each ACK, so a timer shows in the rate more than in it.",
    )
}

/// The stream under other ACK policies.
pub fn policies(rows: &[PolicyRow]) -> Table {
    let mut columns = vec![policy(rows)];
    columns.extend(means(rows.iter().map(|row| &row.figures)));
    Table::new(
        "The stream under the first day’s window, with other policies at both servers.",
        columns,
    )
}

/// The same as JSON has it.
pub fn policy_logs(rows: &[PolicyRow]) -> Table {
    let mut columns = vec![policy(rows)];
    columns.extend(all_figures(rows.iter().map(|row| &row.figures)));
    Table::new("", columns)
}

/// What each open parameter decides.
pub fn changes(rows: &[Changed]) -> Table {
    let words = |row: &Changed| match row.change.as_str() {
        "" => "nothing".to_owned(),
        change => change.to_owned(),
    };
    let [rate, round_trip, window] = means(rows.iter().map(|row| &row.timer));
    let [rate_without, round_trip_without, window_without] =
        means(rows.iter().map(|row| &row.removed));
    let columns = vec![
        Column::text("Changed").plain("changed", 0).over(rows, words),
        rate.named("Rate, timer").plain("KB/s with the timer", 2),
        round_trip.named("Round trip").plain("RTT, ms", 1),
        window.named("Window"),
        rate_without.named("Rate, removed").plain("KB/s without", 2),
        round_trip_without.named("Round trip").plain("RTT, ms", 1),
        window_without.named("Window"),
        Column::number("Factor", "").plain("factor", 1).over(rows, Changed::factor),
    ];
    Table::new("The stream with one parameter changed, under the first day’s window.", columns)
}

/// The same as JSON has it.
pub fn change_logs(rows: &[Changed]) -> Table {
    let logs = |pick: fn(&Changed) -> &Figures| {
        let figures = Table::new("", all_figures(rows.iter().map(pick)));
        figures.to_json().as_array().cloned().unwrap_or_default()
    };
    let columns = vec![
        Column::in_json("change").over(rows, |row| row.change.as_str()),
        Column::in_json("timer").over(logs(|row| &row.timer), |figures| figures),
        Column::in_json("timer_removed").over(logs(|row| &row.removed), |figures| figures),
        Column::in_json("factor").over(rows, Changed::factor),
    ];
    Table::new("", columns)
}

/// What the thesis's tables say about how parcels follow each other.
pub fn one_at_a_time() -> Table {
    let tables = &paper::TABLES;
    let means = |name: &str, unit: &str, pick: fn(&Printed) -> f64| {
        Column::number(name, unit).over(tables, |(table, _)| pick(table))
    };
    let columns = vec![
        Column::text("Table").over(tables, |(table, _)| table.table),
        means("Round trip", "ms", |table| table.rtt_ms),
        means("Window", "packets", |table| table.window),
        means("Window always full", "KB/s", Printed::window_full_kbps),
        Column::number("One parcel at a time", "KB/s")
            .over(tables, |(table, bytes)| table.one_at_a_time_kbps(*bytes)),
        means("Printed", "KB/s", |table| table.rate_kbps),
    ];
    Table::new(
        "Why we let parcels follow one at a time: the thesis’s own means, put together.",
        columns,
    )
    .note(
        "One parcel at a time: its packets in rounds of the mean window, and one round trip more. That comes \
         within 17 % of tables 8.2, 8.7, 8.9 and 8.11. In 8.5 there was nothing to send for half of the time; in \
         8.1 something else took nearly as long again, which we take for the exchange of commands.",
    )
}

/// Every parameter.
pub fn parameters(reproduction: &Reproduction) -> Table {
    let settings = &reproduction.settings;
    let columns = vec![
        Column::text("Parameter").over(settings.values(), |(name, _)| name),
        Column::text("Value").over(settings.values(), |(_, value)| value.to_string()),
        Column::text("What it is").over(PARAMETERS, |parameter| parameter.doc),
    ];
    Table::new("Every parameter, as run; --set name=value changes one.", columns)
        .flag(settings.values().map(|(name, _)| settings.is_chosen(name)))
}

/// What can be set, for the terminal.
pub fn declared() -> Table {
    let columns = vec![
        Column::on_terminal("name", 0).over(PARAMETERS, |parameter| parameter.name),
        Column::on_terminal("default", 0).over(PARAMETERS, |parameter| parameter.default),
        Column::on_terminal("allowed", 0).over(PARAMETERS, |parameter| parameter.kind.allowed()),
        Column::on_terminal("what it is", 0).over(PARAMETERS, |parameter| parameter.doc),
    ];
    Table::new("", columns)
}

/// Runs with their logs, as JSON has them.
pub fn logs(runs: &[Run]) -> Table {
    let runs: Vec<&Run> = runs.iter().collect();
    let values = |points: Vec<(f64, f64)>| -> Vec<f64> {
        points.into_iter().map(|(_, value)| value).collect()
    };
    let log = |run: &&Run| {
        let (came_ms, rtt_ms): (Vec<f64>, Vec<f64>) = run.log.scatter().into_iter().unzip();
        json!({
            "step_ms": STEP.as_millis_f64(),
            "acknowledged_bytes": values(run.log.progress()),
            "window_packets": values(run.log.windows()),
            "round_trips": {"came_ms": came_ms, "rtt_ms": rtt_ms},
        })
    };
    let mut columns = vec![name(&runs)];
    columns.extend(parcels(&runs));
    columns.extend(all_figures(figures(&runs)));
    columns.push(Column::in_json("paper").over(&runs, |run| json!(run.printed)));
    columns.push(Column::in_json("log").over(&runs, log));
    Table::new("", columns)
}

fn name(runs: &[&Run]) -> Column {
    Column::text("Run").key("run").plain("run", 0).over(runs, |run| run.name)
}

fn policy(rows: &[PolicyRow]) -> Column {
    let column = Column::text("Acknowledges").key("policy").plain("acknowledges", 0);
    column.over(rows, |row| row.name)
}

/// The thesis's table of each.
fn table(runs: &[&Run]) -> Column {
    Column::text("Table").plain("table", 0).over(runs, |run| run.printed.map(|table| table.table))
}

/// What the thesis prints.
fn printed(runs: &[&Run], unit: &str, decimals: usize, pick: fn(&Printed) -> f64) -> Column {
    let column = Column::number("thesis", unit).plain("thesis", decimals);
    column.over(runs, |run| run.printed.as_ref().map(pick))
}

/// Rate, round trip and window, the thesis's beside ours.
fn beside_the_thesis(runs: &[&Run]) -> [Column; 6] {
    let [rate, round_trip, window] = means(figures(runs));
    [
        rate.plain("KB/s", 2),
        printed(runs, "KB/s", 2, |table| table.rate_kbps),
        round_trip,
        printed(runs, "ms", 1, |table| table.rtt_ms),
        window,
        printed(runs, "packets", 1, |table| table.window),
    ]
}

/// Parcels received, and all of them.
fn parcels(runs: &[&Run]) -> [Column; 2] {
    [
        Column::number("Received", "parcels")
            .key("parcels_received")
            .over(runs, |run| run.received),
        Column::number("of", "parcels").key("parcels").over(runs, |run| run.parcels),
    ]
}

/// The same for the terminal.
fn received_of_all(runs: &[&Run]) -> Column {
    Column::on_terminal("parcels", 0).over(runs, |run| of(run.received, run.parcels))
}

fn of(received: u64, all: u64) -> String {
    format!("{received} of {all}")
}

fn figures<'a>(runs: &[&'a Run]) -> impl Iterator<Item = &'a Figures> + Clone {
    runs.iter().map(|run| &run.figures)
}

/// Rate, round trip and window.
fn means<'a>(figures: impl Iterator<Item = &'a Figures> + Clone) -> [Column; 3] {
    [
        Column::number("Rate", Unit::kilo("KB/s"))
            .key("bytes_per_second")
            .plain("KB/s", 1)
            .over(figures.clone(), Figures::rate),
        Column::number("Round trip, mean", "ms")
            .key("rtt_ms")
            .plain("RTT ms", 1)
            .over(figures.clone(), |figures| figures.rtt_ms),
        Column::number("Window, mean", "packets")
            .key("window_packets")
            .plain("window", 1)
            .over(figures, |figures| figures.window),
    ]
}

fn acknowledged<'a>(figures: impl Iterator<Item = &'a Figures>) -> Column {
    let column = Column::number("Acknowledged", Unit::kilo("KB")).key("acknowledged_bytes");
    column.over(figures, |figures| figures.bytes)
}

fn time<'a>(figures: impl Iterator<Item = &'a Figures>) -> Column {
    Column::number("Time", "s").key("seconds").over(figures, |figures| figures.seconds)
}

fn peak<'a>(figures: impl Iterator<Item = &'a Figures>) -> Column {
    let column = Column::number("Most in 100 ms", Unit::kilo("KB/s")).key("peak_bytes_per_second");
    column.over(figures, |figures| figures.peak)
}

/// All that a log says.
fn all_figures<'a>(figures: impl Iterator<Item = &'a Figures> + Clone) -> Vec<Column> {
    let mut columns: Vec<Column> = means(figures.clone()).into();
    columns.extend([acknowledged(figures.clone()), time(figures.clone()), peak(figures)]);
    columns
}

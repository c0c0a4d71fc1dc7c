//! The report: the answer, tables 8.1 and 8.2, the three graphs of each run, frames, policies, sensitivity.

use super::experiment::Figures;
use super::today::{TODAY, TODAY_ENDS, TODAY_ENDS_ONE, TODAY_ONE, TODAY_TIMER, TODAY_TIMER_ONE};
use super::{
    REMOVED, Reproduction, Run, TIMER, TIMER_TWEAKED, TWEAKED, paper, sensitivity, tables,
};
use acklab_lab::report::{
    Block, Figure, LineSeries, Lines, Page, Plot, ReportError, Section, Tone, Verdict,
};

/// The report as one HTML file.
pub fn html(reproduction: &Reproduction) -> Result<String, ReportError> {
    let stream = vec![
        Block::Table(tables::stream(reproduction)),
        Block::Table(tables::totals(reproduction)),
        Block::Figure(together(reproduction)),
    ];
    let mut sections = vec![section("Tables 8.1 and 8.2", stream)];
    for run in &reproduction.stream {
        if run.name != TIMER_TWEAKED {
            sections.push(section(&format!("The three graphs: {}", run.name), graphs(run)));
        }
    }
    sections.push(section("Today’s protocol on the same wire", today_blocks(&reproduction.today)));
    sections
        .push(section("Other ACK policies", vec![Block::Table(tables::policies(reproduction))]));
    let mut frames = vec![Block::Table(tables::frames(&reproduction.frames))];
    frames.extend(reproduction.frames.iter().map(|run| Block::Figure(received(run))));
    sections.push(section("Frames: tables 8.5 and 8.7", frames));
    let open =
        [tables::changes(reproduction), tables::one_at_a_time(), tables::parameters(reproduction)];
    let open = open.map(Block::Table).into();
    sections.push(section("What the thesis leaves open", open));
    let page = Page {
        title: "acklab reproduce xudp".into(),
        subject: "Andrews: XUDP, A Real-Time Multimedia Networking Protocol (1997), sections 8.1, 8.2, 8.5, \
                  8.6"
        .into(),
        verdict: verdict(reproduction),
        sections,
        terms: vec!["delayed-ack", "rtt"],
        conditions: vec![
            ("command".into(), command(reproduction)),
            ("version".into(), env!("CARGO_PKG_VERSION").into()),
            ("world".into(), "virtual time".into()),
        ],
    };
    page.to_html()
}

fn section(title: &str, blocks: Vec<Block>) -> Section {
    Section { title: title.into(), choice: None, blocks }
}

fn command(reproduction: &Reproduction) -> String {
    let sets = reproduction.settings.chosen().map(|(name, value)| format!(" --set {name}={value}"));
    format!("acklab reproduce xudp --seed {}{}", reproduction.seed, sets.collect::<String>())
}

fn verdict(reproduction: &Reproduction) -> Verdict {
    let [timer, removed, tweaked, corner] =
        [TIMER, REMOVED, TWEAKED, TIMER_TWEAKED].map(|name| reproduction.stream_run(name).figures);
    let kilobytes = |figures: Figures| figures.rate() / 1e3;
    Verdict {
        tone: Tone::Neutral,
        headline: format!(
            "Removing the 100 ms acknowledgment timer, and nothing else, makes the stream {:.1} times as fast: \
             {:.2} becomes {:.1} KB/s.",
            reproduction.factor(REMOVED),
            kilobytes(timer),
            kilobytes(removed),
        ),
        explanation: vec![
            format!(
                "The thesis has {} and {} KB/s, a factor of {:.1}; but between its two runs it also tweaked the \
                 window. Here that alone takes {:.2} to {:.1} KB/s with the timer, and {:.1} to {:.1} without.",
                paper::TABLE_8_1.rate_kbps,
                paper::TABLE_8_2.rate_kbps,
                paper::FACTOR,
                kilobytes(timer),
                kilobytes(corner),
                kilobytes(removed),
                kilobytes(tweaked),
            ),
            "Two things that the thesis does not tell are fitted to its figures: how long the server takes for a \
             packet (`host`) and how many commands about a complete parcel pass before the next begins \
             (`exchange`). With the timer each of these commands waits for it. What every open point does \
             stands in the last section."
                .into(),
            format!(
                "The timer is dear because everything waits for acknowledgments: a small window that starts \
                 again with every parcel, and one parcel at a time. With 64 parcels under way it costs next to \
                 nothing: {}.",
                many_ahead(reproduction)
            ),
            words_on_today(reproduction),
        ],
        fixes: vec![],
    }
}

/// What today's protocol does with the parcels, and with the timer.
fn words_on_today(reproduction: &Reproduction) -> String {
    let [many, one, timer, timer_one, ends, ends_one] =
        [TODAY, TODAY_ONE, TODAY_TIMER, TODAY_TIMER_ONE, TODAY_ENDS, TODAY_ENDS_ONE]
            .map(|name| reproduction.today_run(name).figures.rate() / 1e3);
    format!(
        "Today’s protocol carries the same parcels over the same wire at {many:.0} KB/s, and at {one:.0} one \
         parcel at a time. With a tick of 100 ms at the receiver it falls to {timer:.0} and {timer_one:.0} KB/s, by \
         factors of {:.1} and {:.1}. What it does by itself, acknowledge the end of a parcel at once, takes \
         nearly all of that back, tick or not: {ends:.0} and {ends_one:.0} KB/s.",
        many / timer,
        one / timer_one,
    )
}

/// What the stream does with many parcels under way.
fn many_ahead(reproduction: &Reproduction) -> String {
    let row = reproduction.sensitivity.iter().find(|row| row.change == sensitivity::MANY_AHEAD);
    row.map_or_else(String::new, |row| {
        let [timer, removed] = [row.timer, row.removed].map(|figures| figures.rate() / 1e3);
        format!("{timer:.0} KB/s with it and {removed:.0} without")
    })
}

fn figure(
    title: String,
    caption: &str,
    y_title: &str,
    series: Vec<LineSeries>,
    scatter: bool,
) -> Figure<Plot> {
    let x_title = "time (ms)".into();
    let lines = Lines { x_title, y_title: y_title.into(), series, scatter, ..Lines::default() };
    Figure { title, caption: caption.into(), drawing: Plot::Lines(lines) }
}

fn kilobytes(run: &Run) -> LineSeries {
    let points = run.log.progress().into_iter().map(|(at, bytes)| (at, bytes / 1e3)).collect();
    LineSeries { name: run.name.into(), points }
}

fn together(reproduction: &Reproduction) -> Figure<Plot> {
    let today = [TODAY, TODAY_TIMER_ONE].map(|name| reproduction.today_run(name));
    figure(
        "Acknowledged bytes of all runs".into(),
        "The steeper, the faster. Without the timer the stream is over when the others have hardly begun.",
        "acknowledged (KB)",
        reproduction.stream.iter().chain(today).map(kilobytes).collect(),
        false,
    )
}

/// The three graphs of a run of the protocol of 1997.
fn graphs(run: &Run) -> Vec<Block> {
    let captions = [
        "Sum of the parcels’ bytes acknowledged, each 20 ms, as in figures 8.1 and 8.4.",
        "Each packet: from its departure to its acknowledgment, over the 20 ms step in which that came, as in \
         figures 8.2 and 8.5.",
        "The window, each 20 ms, as in figures 8.3 and 8.6.",
    ];
    three_graphs(run, captions)
}

/// The same of today's protocol, which tells other things.
fn graphs_of_today(run: &Run) -> Vec<Block> {
    let captions = [
        "Sum of the bytes of parcels acknowledged whole, each 20 ms.",
        "The smoothed round trip whenever it changed, over the 20 ms step in which it did.",
        "The congestion window in full datagrams, each 20 ms.",
    ];
    three_graphs(run, captions)
}

fn three_graphs(run: &Run, [acknowledged, round_trips, window]: [&str; 3]) -> Vec<Block> {
    let one = |points| vec![LineSeries { name: run.name.into(), points }];
    let of = |what: &str| format!("{what}: {}", run.name);
    let (title, axis) = (of("Bytes acknowledged"), "acknowledged (KB)");
    let bytes = figure(title, acknowledged, axis, vec![kilobytes(run)], false);
    let (title, axis) = (of("Round trip times"), "round trip (ms)");
    let times = figure(title, round_trips, axis, one(run.log.scatter()), true);
    let (title, axis) = (of("Packets in network"), "window (packets)");
    let windows = figure(title, window, axis, one(run.log.windows()), false);
    [bytes, times, windows].map(Block::Figure).into()
}

/// The stream over today's protocol, with the graphs of two of its runs.
fn today_blocks(runs: &[Run]) -> Vec<Block> {
    let mut blocks = vec![Block::Table(tables::today(runs))];
    for run in runs.iter().filter(|run| [TODAY, TODAY_TIMER_ONE].contains(&run.name)) {
        blocks.extend(graphs_of_today(run));
    }
    blocks
}

fn received(run: &Run) -> Figure<Plot> {
    let points =
        run.log.received.iter().map(|(at, id)| (at.as_secs_f64() * 1e3, *id as f64)).collect();
    figure(
        format!("Parcels received: {}", run.name),
        "Number of each parcel over the time at which the receiver had all of it; gaps are parcels whose two \
         seconds ran out.",
        "parcel number",
        vec![LineSeries { name: run.name.into(), points }],
        true,
    )
}

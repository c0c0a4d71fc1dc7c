//! The report: the answer, tables 8.1 and 8.2, the three graphs of each run, frames, policies, sensitivity.

use acklab_lab::report::{Block, LineSeries, Lines, Page, Section, Verdict, conditions};

use super::experiment::Figures;
use super::reproduction::Reproduction;
use super::runs::{REMOVED, Run, TIMER, TIMER_TWEAKED, TWEAKED};
use super::today::{TODAY, TODAY_ENDS, TODAY_ENDS_ONE, TODAY_ONE, TODAY_TIMER, TODAY_TIMER_ONE};
use super::{paper, sensitivity, tables};

pub(super) fn page(reproduction: &Reproduction) -> Page {
    let stream = vec![
        tables::stream(reproduction).into(),
        tables::totals(reproduction).into(),
        together(reproduction),
    ];
    let mut sections = vec![Section::new("Tables 8.1 and 8.2", stream)];
    let thesis = reproduction.stream.iter().filter(|run| run.name != TIMER_TWEAKED);
    sections.extend(
        thesis.map(|run| Section::new(format!("The three graphs: {}", run.name), graphs(run))),
    );
    let mut frames = vec![tables::frames(&reproduction.frames).into()];
    frames.extend(reproduction.frames.iter().map(received));
    let open = vec![
        tables::changes(&reproduction.sensitivity).into(),
        tables::one_at_a_time().into(),
        tables::parameters(reproduction).into(),
    ];
    let policies = vec![tables::policies(&reproduction.policies).into()];
    sections.extend([
        Section::new("Today’s protocol on the same wire", today(&reproduction.today)),
        Section::new("Other ACK policies", policies),
        Section::new("Frames: tables 8.5 and 8.7", frames),
        Section::new("What the thesis leaves open", open),
    ]);
    Page {
        title: "acklab reproduce xudp".into(),
        subject: "Andrews: XUDP, A Real-Time Multimedia Networking Protocol (1997), sections 8.1, 8.2, 8.5, \
                  8.6"
        .into(),
        verdict: verdict(reproduction),
        sections,
        terms: vec!["delayed-ack", "rtt"],
        conditions: conditions(command(reproduction)),
    }
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
        ..Verdict::default()
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

fn kilobytes(run: &Run) -> LineSeries {
    let points = run.log.progress().into_iter().map(|(at, bytes)| (at, bytes / 1e3)).collect();
    LineSeries { name: run.name.into(), points }
}

fn together(reproduction: &Reproduction) -> Block {
    let today = [TODAY, TODAY_TIMER_ONE].map(|name| reproduction.today_run(name));
    let series = reproduction.stream.iter().chain(today).map(kilobytes).collect();
    Block::plot(
        "Acknowledged bytes of all runs",
        "The steeper, the faster. Without the timer the stream is over when the others have hardly begun.",
        Lines { series, ..over_time("acknowledged (KB)") },
    )
}

/// The three graphs of a run of the protocol of 1997.
fn graphs(run: &Run) -> Vec<Block> {
    three_graphs(
        run,
        &Captions {
            acknowledged: "Sum of the parcels’ bytes acknowledged, each 20 ms, as in figures 8.1 and 8.4.",
            round_trips: "Each packet: from its departure to its acknowledgment, over the 20 ms step in which that \
                          came, as in figures 8.2 and 8.5.",
            window: "The window, each 20 ms, as in figures 8.3 and 8.6.",
        },
    )
}

/// The same of today's protocol, which tells other things.
fn graphs_of_today(run: &Run) -> Vec<Block> {
    three_graphs(
        run,
        &Captions {
            acknowledged: "Sum of the bytes of parcels acknowledged whole, each 20 ms.",
            round_trips: "The smoothed round trip whenever it changed, over the 20 ms step in which it did.",
            window: "The congestion window in full datagrams, each 20 ms.",
        },
    )
}

/// How to read the three graphs of a run.
struct Captions {
    acknowledged: &'static str,
    round_trips: &'static str,
    window: &'static str,
}

fn three_graphs(run: &Run, captions: &Captions) -> Vec<Block> {
    let series = |points| vec![LineSeries { name: run.name.into(), points }];
    let bytes = Lines { series: vec![kilobytes(run)], ..over_time("acknowledged (KB)") };
    let round_trips =
        Lines { series: series(run.log.scatter()), scatter: true, ..over_time("round trip (ms)") };
    let window = Lines { series: series(run.log.windows()), ..over_time("window (packets)") };
    let title = |what: &str| format!("{what}: {}", run.name);
    vec![
        Block::plot(title("Bytes acknowledged"), captions.acknowledged, bytes),
        Block::plot(title("Round trip times"), captions.round_trips, round_trips),
        Block::plot(title("Packets in network"), captions.window, window),
    ]
}

/// The stream over today's protocol, with the graphs of two of its runs.
fn today(runs: &[Run]) -> Vec<Block> {
    let mut blocks = vec![tables::today(runs).into()];
    let drawn = runs.iter().filter(|run| [TODAY, TODAY_TIMER_ONE].contains(&run.name));
    blocks.extend(drawn.flat_map(graphs_of_today));
    blocks
}

fn received(run: &Run) -> Block {
    let points =
        run.log.received.iter().map(|(at, id)| (at.as_secs_f64() * 1e3, *id as f64)).collect();
    let series = vec![LineSeries { name: run.name.into(), points }];
    Block::plot(
        format!("Parcels received: {}", run.name),
        "Number of each parcel over the time at which the receiver had all of it; gaps are parcels whose two \
         seconds ran out.",
        Lines { series, scatter: true, ..over_time("parcel number") },
    )
}

/// An empty graph over time.
fn over_time(y_title: &str) -> Lines {
    Lines { x_title: "time (ms)".into(), y_title: y_title.into(), ..Lines::default() }
}

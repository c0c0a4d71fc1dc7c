//! Pages for the browser to load: one of every block, a choice, and hostile names.

use acklab_lab::expected::Expected;
use acklab_lab::file::ScenarioFile;
use acklab_lab::plan::Plan;
use acklab_lab::report::run::{RunCase, RunReport};
use acklab_lab::report::{
    Arrow, ArrowKind, Band, Block, BoxOf, Boxes, CapturePoint, Cdf, CdfSeries, Column, ErrorBar,
    Figure, Fix, Histogram, Hold, Host, Ladder, LineSeries, Lines, Mark, Note, Page, Plot, Section,
    SegmentKind, SequenceSegment, Side, Table, TimeSequence, Tone, Verdict,
};
use acklab_lab::scenario::Catalog;
use acklab_papers::scenario::NAGLE_DELACK_FIGURES;

/// A page with every kind of block, shaped like a diagnosis.
pub(crate) fn every_block() -> Page {
    let blocks = vec![
        Block::Text("How the messages of this direction fared.".into()),
        Block::Facts(vec![("Round trip".into(), "0.2 ms".into())]),
        ladder(),
        figure("Time-sequence", time_sequence()),
        figure("Added delay", cdf(&["192.168.0.60", "192.168.0.241"])),
        figure("ACK delay", histogram()),
        figure("Mean delay", lines(false)),
        figure("Delay of each message", lines(true)),
        figure("Delay case by case", boxes()),
        table().into(),
    ];
    Page {
        title: "Why are the messages late?".into(),
        subject: "sample.pcap: 5 908 packets in 30.0 s, 2 TCP connections".into(),
        verdict: verdict(),
        sections: vec![Section::new("The evidence", blocks)],
        terms: vec!["nagle", "delayed-ack", "interaction", "cdf"],
        conditions: vec![("Command".into(), "acklab diagnose sample.pcap".into())],
    }
}

/// Two sections of which one is shown at a time.
pub(crate) fn two_choices() -> Page {
    let section = |key: &str| Section {
        title: format!("Direction {key}"),
        choice: Some(key.into()),
        blocks: vec![figure("Added delay", cdf(&[key]))],
    };
    let keys = ["a", "b"];
    let table = Table::new(
        "Choose a direction.",
        vec![
            Column::text("Direction").over(keys, |key| key),
            Column::number("Delay", "ms").over(keys, |_| 40.0),
        ],
    )
    .choose(keys.map(|key| Some(key.to_owned())));
    let first = Section::new("All", vec![table.into()]);
    Page { sections: vec![first, section("a"), section("b")], ..Page::default() }
}

/// A page whose every word tries to be more than a word.
pub(crate) fn hostile() -> Page {
    let words = "</script><img src=x onerror=\"document.body.dataset.owned=1\"><!--${1}&amp;";
    let mut page = every_block();
    page.title = words.into();
    page.subject = words.into();
    page.verdict.headline = words.into();
    let hostile_cdf = Cdf { x_title: words.into(), ..cdf(&[words, "other"]) };
    page.sections[0].blocks = vec![
        Block::Text(words.into()),
        figure(words, hostile_cdf),
        Table::new("", vec![Column::text(words).over([words], |words| words)]).into(),
    ];
    page
}

fn verdict() -> Verdict {
    Verdict {
        tone: Tone::Fault,
        headline: "Messages from 192.168.0.60 wait up to 39 ms in the sender: Nagle’s algorithm \
                   meets a delayed ACK."
            .into(),
        explanation: vec![
            "The PMU at 192.168.0.60 does not send a new message until the concentrator at \
             192.168.0.20 has confirmed the one before, and the concentrator waits up to 40 ms \
             before it confirms. 833 messages were held, 21.8 s of 30.0 s."
                .into(),
        ],
        fixes: vec![
            Fix {
                host: "On the sender, 192.168.0.60".into(),
                changes: vec!["Switch Nagle’s algorithm off: set `TCP_NODELAY`.".into()],
            },
            Fix {
                host: "On the receiver, 192.168.0.20".into(),
                changes: vec!["Confirm at once: `ip route change … quickack 1`.".into()],
            },
        ],
    }
}

fn figure(title: &str, plot: impl Into<Plot>) -> Block {
    Block::plot(title, format!("{title}: how to read it, in a sentence or two."), plot)
}

fn ladder() -> Block {
    let arrow = |from, sent_ms, received_ms, kind, label: &str, frame| Arrow {
        from,
        sent_ms,
        received_ms,
        label: label.into(),
        kind,
        frame: Some(frame),
    };
    let ladder = Ladder {
        left: Host { name: "192.168.0.60:4712".into(), role: "sender, Nagle on".into() },
        right: Host { name: "192.168.0.20:48212".into(), role: "receiver, Linux".into() },
        capture: CapturePoint::Right,
        arrows: vec![
            arrow(Side::Left, -0.1, 0.0, ArrowKind::Data, "48 B", 101),
            arrow(Side::Right, 38.5, 38.6, ArrowKind::Ack, "ACK", 102),
            arrow(Side::Left, 38.7, 38.8, ArrowKind::HeldData, "96 B", 103),
            arrow(Side::Right, 76.9, 77.0, ArrowKind::Ack, "ACK", 104),
        ],
        holds: vec![
            Hold {
                side: Side::Left,
                from_ms: 18.0,
                to_ms: 38.7,
                label: "two messages wait for the ACK".into(),
            },
            Hold {
                side: Side::Right,
                from_ms: 0.0,
                to_ms: 38.5,
                label: "delayed-ACK timer runs".into(),
            },
        ],
        notes: [18.0, 38.0]
            .map(|at_ms| Note { side: Side::Left, at_ms, label: "writes 48 B".into() })
            .into(),
    };
    Block::Ladder(Figure {
        title: "One hold, packet by packet".into(),
        caption: "Time runs downwards. Long waits are drawn shortened; times are written.".into(),
        drawing: ladder,
    })
}

fn time_sequence() -> TimeSequence {
    let segment = |index: u32| SequenceSegment {
        time_s: f64::from(index) * 0.0393,
        from_byte: f64::from(index) * 96.0,
        to_byte: f64::from(index + 1) * 96.0,
        kind: if index % 7 == 3 { SegmentKind::New } else { SegmentKind::Held },
        frame: Some(u64::from(index) * 2 + 1),
        held_ms: (index % 7 != 3).then_some(19.5),
    };
    TimeSequence {
        segments: (0..40).map(segment).collect(),
        sent: vec![],
        acks: (0..40)
            .map(|index| (f64::from(index) * 0.0393 + 0.0391, f64::from(index + 1) * 96.0))
            .collect(),
    }
}

fn cdf(names: &[&str]) -> Cdf {
    let series = names.iter().enumerate().map(|(index, name)| CdfSeries {
        name: (*name).into(),
        straight: false,
        points: (0..=100)
            .map(|step| {
                (f64::from(step) * 0.39 / (1.0 + 60.0 * index as f64), f64::from(step) / 100.0)
            })
            .collect(),
    });
    Cdf {
        x_title: "added delay (ms)".into(),
        series: series.collect(),
        marks: vec![Mark { at: 38.6, label: "p95 = 38.6 ms".into() }],
    }
}

fn histogram() -> Histogram {
    let mut counts = vec![0; 50];
    (counts[0], counts[4], counts[7]) = (41, 289, 597);
    Histogram {
        x_title: "time from data to its ACK (ms)".into(),
        y_title: "ACKs".into(),
        edges: (0..=50).map(|edge| f64::from(edge) * 5.0).collect(),
        counts,
        marks: vec![
            Mark { at: 40.0, label: "40 ms: Linux".into() },
            Mark { at: 200.0, label: "200 ms: Windows, QNX".into() },
        ],
    }
}

fn lines(scatter: bool) -> Lines {
    let series = ["QNX", "Linux"].iter().enumerate().map(|(index, name)| LineSeries {
        name: (*name).into(),
        points: [10.0, 30.0, 100.0, 500.0, 1000.0]
            .map(|rtt| (rtt, rtt / 2.0 + 100.0 * (1.0 - index as f64)))
            .into(),
    });
    Lines {
        x_title: "round-trip time (ms)".into(),
        y_title: "mean delay (ms)".into(),
        series: series.collect(),
        scatter,
        log_x: !scatter,
        solid: false,
        areas: usize::from(!scatter),
        intervals: vec![ErrorBar { series: "Linux".into(), x: 100.0, low: 40.0, high: 60.0 }],
        bands: vec![Band {
            series: "QNX".into(),
            points: [10.0, 100.0, 1000.0].map(|rtt| (rtt, rtt / 2.0, rtt)).into(),
        }],
    }
}

fn boxes() -> Boxes {
    let one = |(index, (category, series)): (usize, (&str, &str))| {
        let at = 10.0 * (index + 1) as f64;
        BoxOf {
            category: category.into(),
            series: series.into(),
            ends: [0.0, 1.0, 2.0, 4.0, 9.0].map(|end| at + end),
            mean: (index > 0).then_some([at + 3.0, at + 1.0, at + 5.0]),
        }
    };
    let cases = [("codel", "reno"), ("codel", "cubic"), ("pie", "reno"), ("pie", "cubic")];
    Boxes {
        x_title: "queue".into(),
        y_title: "delay (ms)".into(),
        series: vec!["reno".into(), "cubic".into()],
        boxes: cases.into_iter().enumerate().map(one).collect(),
        limit: Some(Mark { at: 20.0, label: "at most 20".into() }),
    }
}

fn table() -> Table {
    let rows = [("192.168.0.60:4712", 38.6, true), ("192.168.0.241:4712", 0.39, false)];
    let columns = vec![
        Column::text("From").over(rows, |(name, ..)| name),
        Column::number("Messages", "").over(rows, |_| 1501_u64),
        Column::number("Added delay, p95", "ms").over(rows, |(_, delay, _)| delay),
    ];
    Table::new("Both directions of each connection.", columns)
        .flag(rows.map(|(.., flagged)| flagged))
}

/// Delays spread evenly over a cycle that grows with `case`.
pub(crate) fn uniform_delays(case: usize) -> Vec<f64> {
    (0..1005).map(|message| f64::from(message) * (case + 1) as f64 * 0.03).collect()
}

/// A grid of 4 receivers, Nagle on and off, and 5 round trips over `delays`.
pub(crate) fn grid(delays: &[Vec<f64>]) -> RunReport<'_> {
    let mut cases = Vec::new();
    for receiver in ["qnx-7.0", "windows-7", "linux", "freebsd-12.1"] {
        for nagle in ["on", "off"] {
            for rtt in ["10ms", "30ms", "100ms", "500ms", "1000ms"] {
                let samples = &delays[cases.len()];
                let max = samples.last().copied().unwrap_or(0.0);
                let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
                cases.push(RunCase {
                    axes: vec![pair("receiver", receiver), pair("nagle", nagle), pair("rtt", rtt)],
                    samples,
                    numbers: vec![1.0 + max / 100.0, 1005.0],
                    expected: Some(Expected {
                        mean_low: max / 2.0 - 5.0,
                        mean_high: max / 2.0,
                        max,
                        law: vec![(0.0, 0.0), (max, 1.0)],
                    }),
                });
            }
        }
    }
    RunReport {
        scenario: "nagle-delack".into(),
        summary: "small messages at a period".into(),
        metric: "buffering delay".into(),
        unit: "ms".into(),
        numbers: vec![
            ("Messages per segment".into(), String::new()),
            ("Segments".into(), String::new()),
        ],
        cases,
        replications: 10,
        figures: NAGLE_DELACK_FIGURES,
        courses: vec![],
        ladder: None,
        notes: vec![],
        terms: vec!["nagle", "delayed-ack", "cdf"],
        conditions: vec![("Seed".into(), "1".into())],
    }
}

/// Three short replications of the parking lot with two links watched.
pub(crate) fn parking_lot() -> Plan {
    let text = include_str!("../../../../scenarios/parking-lot.toml");
    let text =
        text.replace("\"r2 -> r3\"", "[\"r1 -> r2\", \"r2 -> r3\"]").replace("\"30s\"", "\"6s\"");
    let file = ScenarioFile::parse(&text).expect("a file of the repository");
    file.plan(Catalog(&[])).expect("a plan of it")
}

//! The report: claims, what each policy did, and its course.

use acklab_lab::monitor::{Course, FlowRecord};
use acklab_lab::report::{Block, Claim, LineSeries, Lines, Page, Section, Verdict, conditions};

use super::reproduction::Reproduction;
use super::testbed::{LIMITED, POLICIES, Testbed};
use super::{claims, gain};

pub(super) fn page(reproduction: &Reproduction) -> Page {
    let plan = reproduction.plan;
    let mut sections =
        vec![Section::new("The paper’s claims", vec![claims::table(&reproduction.claims).into()])];
    let figures = ["5, 6, 7, 8", "11 to 16", "18, 19"];
    for (testbed, figures) in reproduction.testbeds().into_iter().zip(figures) {
        sections
            .push(Section::new(format!("{} (figures {figures})", testbed.name), blocks(testbed)));
    }
    for (name, gains) in
        ["Routers of 2009", "Virtual machines"].into_iter().zip(&reproduction.gains)
    {
        let blocks = vec![gain::plot(name, gains), gain::table(name, gains).into()];
        sections.push(Section::new(format!("{name}: what rarer ACKs are worth"), blocks));
    }
    Page {
        title: "acklab reproduce ack-rate".into(),
        subject: "Statkus, Paulikas, Krukonis: TCP Acknowledgment Optimization in Low Power and Embedded Devices".into(),
        verdict: verdict(&reproduction.claims),
        sections,
        terms: vec!["rtt"],
        conditions: conditions(format!(
            "acklab reproduce ack-rate --seed {} --replications {} --seconds {}",
            plan.seed, plan.replications, plan.seconds
        )),
    }
}

fn verdict(claims: &[Claim]) -> Verdict {
    let headline = format!(
        "Of {} claims hold here: {}.",
        claims.len(),
        Claim::held(claims, &["instructions counted"], "with")
    );
    let explanation = vec![
        "Hosts are processors that take their time for each packet: instructions of Linux 6.12 that were counted, at the \
         clock of the paper’s machines; what an interrupt and leaving a virtual machine cost are assumptions \
         (docs/ack-rate.md). What ACKs cost beside data decides what limiting them can gain."
            .into(),
    ];
    Verdict { headline, explanation, ..Verdict::default() }
}

fn blocks(testbed: &Testbed) -> Vec<Block> {
    vec![
        testbed.table().into(),
        course(testbed, "Data segments (figures 5, 6)", "data segments (1/s)", 1.0, |flow| {
            &flow.segments
        }),
        course(testbed, "ACKs (figures 5, 6)", "ACKs (1/s)", 1.0, |flow| &flow.acks),
        ack_rate(testbed),
        ratio(testbed),
        course(testbed, "Throughput", "throughput (Mbit/s)", 1e-6, |flow| &flow.throughput),
        course(testbed, "Round trip", "round trip (ms)", 1.0, |flow| &flow.round_trip),
        course(testbed, "Congestion window", "congestion window (segments)", 1.0, |flow| {
            &flow.window
        }),
    ]
}

/// What the paper's policy allows, and what it may at most.
fn ack_rate(testbed: &Testbed) -> Block {
    let flow = testbed.case(LIMITED).network.as_ref().and_then(|network| network.flows.first());
    let series = [
        ("ack_rate_val", flow.map(|flow| &flow.ack_rate)),
        ("ack_rate_max", flow.map(|flow| &flow.ack_rate_most)),
    ];
    let series = series.into_iter().map(|(name, course)| LineSeries {
        name: name.into(),
        points: course.map(Course::median).unwrap_or_default(),
    });
    let lines = Lines {
        x_title: "time (s)".into(),
        y_title: "segments per ACK".into(),
        series: series.collect(),
        ..Lines::default()
    };
    let caption = "What ack-rate-limit allows, and the most that it may: a third of the window. The median of the replications.";
    Block::plot("Segments per ACK (figure 10)", caption, lines)
}

/// ACKs for each segment with data.
fn ratio(testbed: &Testbed) -> Block {
    let series = POLICIES.iter().enumerate().filter_map(|(index, name)| {
        let flow = testbed.case(index).network.as_ref()?.flows.first()?;
        let both = flow.acks.median().into_iter().zip(flow.segments.median());
        let points = both.filter(|(_, (_, data))| *data > 0.0);
        let points = points.map(|((at, acks), (_, data))| (at, acks / data)).collect();
        Some(LineSeries { name: (*name).to_owned(), points })
    });
    let lines = Lines {
        x_title: "time (s)".into(),
        y_title: "ACKs per data segment".into(),
        series: series.collect(),
        ..Lines::default()
    };
    Block::plot("ACKs per data segment (figure 17)", "The median of the replications.", lines)
}

/// A quantity over time under each policy, the median of the replications.
fn course(
    testbed: &Testbed,
    title: &str,
    y_title: &str,
    factor: f64,
    of: impl Fn(&FlowRecord) -> &Course,
) -> Block {
    let series = POLICIES.iter().enumerate().filter_map(|(index, name)| {
        let flow = testbed.case(index).network.as_ref()?.flows.first()?;
        let points = of(flow).median().iter().map(|(at, value)| (*at, factor * value)).collect();
        Some(LineSeries { name: (*name).to_owned(), points })
    });
    let lines = Lines {
        x_title: "time (s)".into(),
        y_title: y_title.into(),
        series: series.collect(),
        ..Lines::default()
    };
    Block::plot(title, "The median of the replications.", lines)
}

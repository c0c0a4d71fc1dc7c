//! The report: claims, what each policy did, and its course.

use acklab_lab::monitor::{Course, FlowRecord};
use acklab_lab::report::{Block, Claim, LineSeries, Lines, Page, Section, Verdict, conditions};

use super::{POLICIES, Reproduction, Testbed, claims};

pub(super) fn page(reproduction: &Reproduction) -> Page {
    let plan = reproduction.plan;
    let mut sections =
        vec![Section::new("The paper’s claims", vec![claims::table(&reproduction.claims).into()])];
    let figures = ["5, 6, 7, 8", "11 to 16", "18, 19"];
    for (testbed, figures) in reproduction.testbeds().into_iter().zip(figures) {
        sections
            .push(Section::new(format!("{} (figures {figures})", testbed.name), blocks(testbed)));
    }
    Page {
        title: "acklab reproduce ack-rate".into(),
        subject: "Statkus, Paulikas, Krukonis: TCP Acknowledgment Optimization in Low Power and Embedded Devices".into(),
        verdict: verdict(&reproduction.claims),
        sections,
        terms: vec!["rtt"],
        conditions: conditions(format!(
            "acklab reproduce ack-rate --seed {} --replications {}",
            plan.seed, plan.replications
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
        course(testbed, "Throughput", "Mbit/s", 1e-6, |flow| &flow.throughput),
        course(testbed, "Round trip", "ms", 1.0, |flow| &flow.round_trip),
        course(testbed, "Congestion window", "segments", 1.0, |flow| &flow.window),
    ]
}

/// A quantity over time under each policy, the median of the replications.
fn course(
    testbed: &Testbed,
    title: &str,
    unit: &str,
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
        y_title: format!("{} ({unit})", title.to_lowercase()),
        series: series.collect(),
        ..Lines::default()
    };
    Block::plot(title, "The median of the replications.", lines)
}

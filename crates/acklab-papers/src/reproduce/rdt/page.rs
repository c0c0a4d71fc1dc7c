//! The report: claims, the paper's tables beside ours, time against loss, today's protocol, real packets,
//! stop rules, a router's death.

use std::fmt::Write as _;

use acklab_lab::report::{Block, Claim, Page, Section, Verdict, conditions};

use super::experiment::{Experiment, Experiments, MACHINES};
use super::paper::SIZE;
use super::reproduction::Reproduction;
use super::stopping::Rule;
use super::{claims, graphs, tables, today};

pub(super) fn page(reproduction: &Reproduction) -> Page {
    let graphs = reproduction.experiments.iter().map(graphs::of_machine).collect();
    let formulas = Rule::ALL.map(|rule| (rule.name().to_owned(), rule.formula().to_owned()));
    let rules = tables::stop_rules(&reproduction.stopping);
    Page {
        title: "acklab reproduce rdt".into(),
        subject:
            "Sehlaver, Yalcinkaya: CENG 435 term project part II, a reliable transfer over UDP"
                .into(),
        verdict: verdict(reproduction),
        sections: vec![
            Section::new("The paper’s claims", vec![tables::claims(&reproduction.claims).into()]),
            Section::new("Tables 1 and 2", times(reproduction)),
            Section::new("Time against loss", graphs),
            Section::new("Today’s protocol in the same network", todays(reproduction)),
            Section::new("Real packets", vec![real(reproduction)]),
            Section::new(
                "When to stop repeating",
                vec![Block::Facts(formulas.into()), rules.into()],
            ),
            Section::new("A router that dies", vec![tables::dead_path(&reproduction.dead).into()]),
        ],
        terms: vec!["rtt"],
        conditions: conditions(command(reproduction)),
    }
}

fn command(reproduction: &Reproduction) -> String {
    let plan = reproduction.plan;
    let mut command = format!(
        "acklab reproduce rdt --seed {} --replications {} --size {}",
        plan.seed, plan.repetitions, plan.size
    );
    if let Some(measured) = reproduction.emulated.first() {
        let _ = write!(command, " --emulate {}", measured.course.len());
    }
    command
}

fn verdict(reproduction: &Reproduction) -> Verdict {
    let claims = &reproduction.claims;
    let held = Claim::held(claims, &MACHINES.map(|machine| machine.name), "with");
    let mut explanation = vec![
        "The protocol is the authors’ own, odd parts included, in the network that they describe: 3 ms and the \
         same loss on each of four interfaces there and back, and half a millisecond per hop that is ours."
            .into(),
    ];
    if reproduction.plan.size == SIZE {
        explanation.extend(reproduction.experiments.iter().map(distance));
    } else {
        explanation.push(format!(
            "The file has {} bytes and not the paper’s {SIZE}: times cannot be compared with its tables.",
            reproduction.plan.size
        ));
    }
    let headline = format!("Of {} claims hold here: {held}.", claims.len());
    Verdict { headline, explanation, ..Verdict::default() }
}

/// How far a machine is from the paper, in a sentence.
fn distance(experiments: &Experiments) -> String {
    let off = |one: &Experiment| 100.0 * (one.mean() / one.paper.mean - 1.0);
    let offs: Vec<f64> = experiments.measured.iter().map(off).collect();
    let low = offs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = offs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!(
        "With {}: our six means are {low:+.0} to {high:+.0} % from the paper’s, and two paths gain {} \
         (paper: {}).",
        experiments.machine.name,
        claims::times(&claims::ratios(experiments)),
        claims::times(&claims::paper_ratios()),
    )
}

fn times(reproduction: &Reproduction) -> Vec<Block> {
    let text = "A margin of the paper is in seconds: its program compares seconds with 0.1, and its tables print \
                them times a hundred as percent. Ours are 95 % intervals by Student’s t.";
    vec![
        Block::Text(text.into()),
        tables::times_through(reproduction, 1).into(),
        tables::times_through(reproduction, 2).into(),
        tables::costs(reproduction).into(),
    ]
}

fn todays(reproduction: &Reproduction) -> Vec<Block> {
    let text = format!(
        "acklab’s reliable UDP over the same interfaces, in virtual time. It has no fixed window, so each path \
         has a rate here, {} Mbit/s with {:.0} ms of queue, of which the course protocol would use a twentieth. \
         Its time has the handshake in it.",
        today::RATE.as_bps() / 1_000_000,
        today::QUEUE.as_millis_f64(),
    );
    vec![
        Block::Text(text),
        graphs::protocols(reproduction),
        graphs::today(reproduction),
        reproduction.todays().into(),
    ]
}

fn real(reproduction: &Reproduction) -> Block {
    if reproduction.emulated.is_empty() {
        let text = "Not run. `acklab reproduce rdt --emulate 3`, as root on Linux, sends real packets; that \
                    takes as long as the transfers do, about five minutes for each repetition.";
        return Block::Text(text.into());
    }
    tables::emulated(reproduction).into()
}

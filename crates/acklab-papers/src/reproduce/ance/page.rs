//! The report: claims first, then table 4, then the numbers, then every figure in the paper's order.

use acklab_lab::report::{Claim, Page, Section, Verdict, conditions};

use super::configuration::TABLE_4;
use super::preset::PRESETS;
use super::reproduction::Reproduction;
use super::{figures, tables};

/// The report.
pub(super) fn page(reproduction: &Reproduction) -> Page {
    let presets = &reproduction.presets;
    let table4 = presets.iter().map(|preset| tables::table4(preset).into()).collect();
    let mut sections = vec![
        Section::new("The paper’s claims", vec![tables::claims(&reproduction.claims).into()]),
        Section::new("Table 4", table4),
    ];
    sections.extend(presets.iter().map(|preset| {
        let numbers = [tables::dumbbell(&preset.dumbbell), tables::daisy(&preset.daisy)];
        let title = format!("What was measured: {}", preset.name);
        Section::new(title, numbers.map(Into::into).into())
    }));
    let title = format!("Figures 2 to 5 and 10 to 35, preset {}", presets[0].name);
    sections.push(Section::new(title, figures::blocks(&reproduction.traces, &presets[0].table4)));
    let command = format!(
        "acklab reproduce ance --seed {} --reps {}",
        reproduction.seed, reproduction.replications
    );
    Page {
        title: "acklab reproduce ance".into(),
        subject: "Sup, de Moraes, Bauchspiess: Acknowledge-Based Non-Congestion Estimation (2020)"
            .into(),
        verdict: verdict(reproduction),
        sections,
        terms: vec!["rtt", "cdf"],
        conditions: conditions(command),
    }
}

fn verdict(reproduction: &Reproduction) -> Verdict {
    let claims = &reproduction.claims;
    let overlaps: Vec<String> = reproduction
        .presets
        .iter()
        .map(|preset| {
            let rows = preset.table4.iter().filter(|row| row.overlaps()).count();
            format!("{rows} under `{}`", preset.name)
        })
        .collect();
    Verdict {
        headline: format!(
            "Of the paper’s {} claims hold here: {}.",
            claims.len(),
            Claim::held(claims, &PRESETS, "under")
        ),
        explanation: vec![
            format!(
                "Of the {} intervals of its table 4, ours overlap: {}.",
                TABLE_4.len(),
                overlaps.join(", ")
            ),
            "The paper leaves open what decides much of this; `plain` and `paper-fit` are two readings of \
             it, `literal` takes its words and today’s RFCs as they stand. What each open point does \
             stands in docs/ance-sensitivity.md."
                .into(),
            format!(
                "{} replications of each configuration. A claim of more or less holds if the 95 % interval \
                 of the mean difference, over the same seeds, lies on its side for every technique named; \
                 it fails if one lies on the other side, and is open otherwise.",
                reproduction.replications
            ),
        ],
        ..Verdict::default()
    }
}

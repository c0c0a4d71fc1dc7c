//! The report: claims first, then table 4, then the numbers, then every figure in the paper's order.

use acklab_lab::report::{Claim, Page, Section, Verdict, conditions};

use super::configuration::TABLE_4;
use super::preset::PRESETS;
use super::reproduction::Reproduction;
use super::table4::Reading;
use super::{figures, tables};

pub(super) fn page(reproduction: &Reproduction) -> Page {
    let presets = &reproduction.presets;
    let table4 = readings(reproduction).map(|reading| tables::table4(reading).into()).collect();
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
    sections
        .push(Section::new(title, figures::blocks(&reproduction.traces, &presets[0].table4.rows)));
    let command = format!(
        "acklab reproduce ance --seed {} --replications {} --table4-runs {}",
        reproduction.seed, reproduction.replications, reproduction.table4_runs
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

/// Table 4 under the presets and their variants.
pub(super) fn readings(reproduction: &Reproduction) -> impl Iterator<Item = &Reading> {
    reproduction.presets.iter().map(|preset| &preset.table4).chain(&reproduction.variants)
}

fn verdict(reproduction: &Reproduction) -> Verdict {
    let claims = &reproduction.claims;
    let agreeing: Vec<String> = readings(reproduction)
        .map(|reading| format!("{} under `{}`", reading.agreeing(), reading.name))
        .collect();
    Verdict {
        headline: format!(
            "Of the paper’s {} claims hold here, by how one reads what it leaves open: {}.",
            claims.len(),
            Claim::held(claims, &PRESETS, "under")
        ),
        explanation: vec![
            format!(
                "Of the {} rows of its table 4, ours agree by Fisher's exact test ({} runs each): {}.",
                TABLE_4.len(),
                reproduction.table4_runs,
                agreeing.join(", ")
            ),
            "The paper leaves open what decides much of this; `plain` and `paper-fit` are two readings of \
             it, `literal` takes its words and today’s RFCs as they stand. The first two were looked for: \
             docs/ance.md says how, and docs/ance-sensitivity.md what each open point does."
                .into(),
            format!(
                "{} replications of each configuration. A claim holds if the 95 % interval of the mean \
                 difference, or of the distance from both ends of its tolerance, over the same seeds, lies on \
                 its side for every technique named; it fails if one lies on the other side (95 % for all of a \
                 claim together), and is open otherwise. Tolerances are ours. There is no correction for the \
                 number of claims: of 25 at 95 %, one may well be called wrongly.",
                reproduction.replications
            ),
        ],
        ..Verdict::default()
    }
}

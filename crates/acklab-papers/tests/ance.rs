//! Goal: the ANCE paper's results that must show, do, under both readings in which they can.
//! Method: a few replications of each configuration; differences are taken over the same seeds.

use std::sync::atomic::AtomicBool;

use acklab_lab::report::Outcome;
use acklab_papers::reproduce::Course;
use acklab_papers::reproduce::ance::claims::SENTENCES;
use acklab_papers::reproduce::ance::configuration::{
    ANCE, CODEL, DAISY, DROP_TAIL, ENCN, Measured, PIE, RED, TABLE_4, Topology,
};
use acklab_papers::reproduce::ance::{sensitivity, table4};

static NEVER: AtomicBool = AtomicBool::new(false);

fn measured(topology: Topology, preset: &str, seed: u64, replications: u64) -> Vec<Measured> {
    let techniques = if topology == Topology::Daisy { &DAISY[..] } else { &TABLE_4[..] };
    let run = |technique: &_| {
        Measured::run(topology, *technique, &[("preset", preset)], seed, replications, &NEVER)
    };
    techniques.iter().map(run).collect::<Result<_, _>>().expect("declared settings")
}

fn mean(
    measured: &[Measured],
    technique: acklab_papers::reproduce::ance::configuration::Technique,
    metric: &str,
) -> f64 {
    let one = measured.iter().find(|one| one.technique == technique).expect("it was run");
    one.mean(metric)
}

#[test]
fn drop_tail_is_worst_for_the_motor_and_encn_and_ance_are_best() {
    for preset in ["plain", "paper-fit"] {
        for seed in [3, 1_000_003] {
            let measured = measured(Topology::Dumbbell, preset, seed, 6);
            let itae = |technique| mean(&measured, technique, "itae_rad_s");
            for middle in [RED, CODEL, PIE] {
                assert!(itae(DROP_TAIL) > itae(middle), "{preset} {seed} {}", middle.name);
                assert!(
                    itae(middle) > itae(ENCN).max(itae(ANCE)),
                    "{preset} {seed} {}",
                    middle.name
                );
            }
        }
    }
}

#[test]
fn ance_and_encn_keep_the_queue_at_qmin_and_the_link_busy() {
    for preset in ["plain", "paper-fit"] {
        let measured = measured(Topology::Daisy, preset, 11, 4);
        for claim in SENTENCES.iter().filter(|claim| claim.text.contains("around Qmin")) {
            let found = claim.judge(&measured);
            assert_eq!(found.outcome, Outcome::Holds, "{preset} {}: {}", claim.text, found.figures);
        }
        for technique in [ANCE, ENCN] {
            let queue = mean(&measured, technique, "queue_mean_packets");
            assert!((1.0..4.0).contains(&queue), "{preset} {}: {queue}", technique.name);
            let idle = mean(&measured, technique, "idle_share");
            assert!(idle < 0.04, "{preset} {}: {idle}", technique.name);
            for other in [RED, CODEL, PIE] {
                let theirs = mean(&measured, other, "idle_share");
                assert!(
                    idle < theirs,
                    "{preset} {} {idle} {} {theirs}",
                    technique.name,
                    other.name
                );
            }
        }
    }
}

#[test]
fn a_balance_without_a_floor_lets_the_queue_run_dry_more_often() {
    let empty = |floor| {
        let sets = [("bf_floor", floor)];
        let one =
            Measured::run(Topology::Daisy, ANCE, &sets, 1, 3, &NEVER).expect("declared settings");
        one.mean("queue_empty_share")
    };
    assert!(empty("1") > 1.5 * empty("3"), "{} {}", empty("1"), empty("3"));
}

#[test]
fn the_papers_counts_give_its_intervals_and_never_take_the_claims_for_granted() {
    for row in table4::PAPER {
        let (successes, runs) = row.counts;
        let method = acklab_lab::verify::ProportionMethod::ClopperPearson;
        let interval = method.interval(successes, runs, 0.95).expect("counts");
        for (ours, printed) in [(interval.low, row.interval.0), (interval.high, row.interval.1)] {
            // Printed with three digits, truncated.
            assert!((0.0..0.001).contains(&(ours - printed)), "{}: {ours}", row.technique.name);
        }
    }
    // Judged on nothing, no claim holds.
    assert!(SENTENCES.iter().all(|sentence| sentence.judge(&[]).outcome == Outcome::Open));
}

#[test]
fn agreement_with_table_4_is_a_test_of_counts_not_an_overlap() {
    let red = table4::PAPER.into_iter().find(|row| row.technique == RED).expect("a row");
    // 237 of 377 overlaps the paper's interval; 1197 of 2000, the same share nearly, differs.
    let p = |counts| acklab_stats::fisher_exact(red.counts, counts).expect("counts");
    assert!(p((237, 377)) > 0.04 && p((1197, 2000)) < 0.001);

    let course = &mut Course::new(&NEVER, |_| {});
    let sets = [("preset", "plain")];
    let plain = table4::Reading::run("table 4".into(), "plain".into(), &sets, (3, 60), course);
    let plain = plain.expect("declared settings");
    let agrees: Vec<bool> = plain.rows.iter().map(table4::Row::agrees).collect();
    let codel = plain.rows.iter().position(|row| row.paper.technique == CODEL).expect("a row");
    let ance = plain.rows.iter().position(|row| row.paper.technique == ANCE).expect("a row");
    assert!(!agrees[codel] && agrees[ance], "{agrees:?}");
    assert_eq!(plain.rows[codel].counts().1, 60);
}

#[test]
fn the_table_of_what_decides_names_every_technique_and_keeps_its_columns() {
    let text = sensitivity::markdown(&[("plain", vec![])], 1, 40);
    let header = text.lines().find(|line| line.starts_with("| change")).expect("a header");
    assert!(TABLE_4.iter().all(|technique| header.contains(technique.name)));
}

//! Figure 20: what rarer ACKs are worth, by the share of ACKs that is left out and by how busy the processors are.
//!
//! Each testbed runs with one ACK for 4, 8, ... 64 segments at several costs of a packet: at the clocks of the routers, with
//! the exits of the virtual machines. How busy the busier end is under Linux's policy is the load.

use std::sync::atomic::AtomicBool;

use acklab_lab::report::{Block, Column, LineSeries, Lines, Table, Unit};
use acklab_lab::results::CaseResult;
use acklab_lab::run;
use acklab_lab::scenario::Scenario;
use acklab_lab::sweep::Choices;

use super::testbed::{Plan, runs_over};

/// The gain at one cost of a packet.
pub struct Gains {
    /// "680mhz", "12us".
    pub cost: &'static str,
    /// Share of its time that the busier end's processor worked under Linux's policy.
    pub load: f64,
    /// Of each rarer policy: share of ACKs left out, and throughput over that under Linux's, less one.
    pub points: Vec<(f64, f64)>,
}

/// Runs a scenario under [`RARER`] policies at each of `costs`, values of its parameter `by`.
pub(super) fn run(
    scenario: &'static dyn Scenario,
    (by, costs): (&str, &'static [&'static str]),
    plan: Plan,
    ended: &AtomicBool,
) -> Result<Vec<Gains>, String> {
    let gains = |cost: &&'static str| {
        let mut choices = Choices::from(acklab_lab::plan::Plan::defaults(scenario));
        let seconds = plan.seconds.min(LONGEST);
        let sets = [
            format!("ack={}", RARER.join(",")),
            format!("{by}={cost}"),
            format!("duration={seconds}s"),
        ];
        for set in sets {
            choices.set_pair(&set).map_err(|error| error.to_string())?;
        }
        let runs = runs_over(scenario, &choices, plan)?;
        Ok(gains_of(cost, &run::run_until(&runs, ended, &|| ()).cases))
    };
    costs.iter().map(gains).collect()
}

fn gains_of(cost: &'static str, cases: &[CaseResult]) -> Gains {
    let number = |case: &CaseResult, metric| case.metrics.number(metric);
    // Ended early, there is none.
    let [linux, rarer @ ..] = cases else {
        return Gains { cost, load: f64::NAN, points: vec![] };
    };
    let of = |case: &CaseResult| {
        let share = number(case, "acks_per_data_segment") / number(linux, "acks_per_data_segment");
        let speed = number(case, "throughput_bps") / number(linux, "throughput_bps");
        (1.0 - share, speed - 1.0)
    };
    let load = number(linux, "cpu_share.sender").max(number(linux, "cpu_share.receiver"));
    Gains { cost, load, points: rarer.iter().map(of).collect() }
}

/// What each row says: cost, load, and the gain of each policy.
pub(super) fn table(name: &str, gains: &[Gains]) -> Table {
    let mut columns = vec![
        Column::text("Cost").key("cost").plain("cost", 0).over(gains, |gain| gain.cost),
        Column::number("Load under linux", Unit::percent("% busy"))
            .key("load")
            .plain("load", 1)
            .over(gains, |gain| gain.load),
    ];
    for (index, policy) in RARER[1..].iter().enumerate() {
        let gain = Column::number(*policy, Unit::percent("% faster"));
        columns.push(gain.key(policy).plain(*policy, 1).over(gains, |gain| gain.points[index].1));
    }
    Table::new(format!("{name}: throughput over that under Linux’s policy."), columns)
}

/// Gain against the share of ACKs left out, a line for each load.
pub(super) fn plot(name: &str, gains: &[Gains]) -> Block {
    let series = gains.iter().map(|gain| LineSeries {
        name: format!("{}: {:.0} % busy", gain.cost, 100.0 * gain.load),
        points: gain.points.iter().map(|(less, more)| (100.0 * less, 100.0 * more)).collect(),
    });
    let lines = Lines {
        x_title: "ACKs left out (%)".into(),
        y_title: "more throughput (%)".into(),
        series: series.collect(),
        ..Lines::default()
    };
    let caption = "One ACK for 4, 8, 16 and 64 segments beside Linux’s policy; busy is the busier end under the latter.";
    Block::plot(format!("{name}: gain (figure 20)"), caption, lines)
}

/// Linux's policy, and rarer ones.
const RARER: [&str; 5] = ["linux", "one-in-4", "one-in-8", "one-in-16", "one-in-64"];
/// Costs of the routers' packets, by clock, and of the virtual machines', by what an exit takes.
pub(super) const CLOCKS: (&str, &[&str]) = ("speed", &["340mhz", "680mhz", "2720mhz"]);
pub(super) const EXITS: (&str, &[&str]) = ("exit", &["8us", "12us", "20us"]);
/// Seconds of each run: the rate is steady after the first.
const LONGEST: u64 = 10;

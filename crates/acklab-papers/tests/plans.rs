//! Goal: what a scenario offers without any setting starts. Method: plan each alone and with its whole grid.

use acklab_lab::plan::Plan;
use acklab_lab::scenario::defaults;
use acklab_papers::scenario::SCENARIOS;

#[test]
fn every_scenario_and_every_grid_starts_at_its_defaults() {
    for scenario in SCENARIOS.iter() {
        let name = scenario.declaration().name;
        for plan in [Plan::single, Plan::all] {
            let planned = plan(scenario, defaults(scenario), 1, None);
            assert!(planned.is_ok(), "{name}: {}", planned.map(drop).unwrap_err());
        }
    }
}

//! The built-in scenarios. One file per scenario; a new one is added to [`SCENARIOS`].

mod ack_rate;
pub mod ance;
mod bench;
mod hold;
mod motor_loop;
mod nagle_delack;
mod path;
mod recorder;
mod rfc7928;
mod system;
mod write_write_read;

use acklab_lab::scenario::Catalog;

pub use ack_rate::{Filed, ROUTER as ACK_RATE_ROUTER, VM as ACK_RATE_VM};
pub use ance::Ance;
pub use bench::Bench;
pub use motor_loop::MotorLoop;
pub use nagle_delack::{NAGLE_DELACK_FIGURES, NagleDelack, simulate as simulate_nagle_delack};
pub use rfc7928::Rfc7928;
pub use write_write_read::{WriteWriteRead, simulate as simulate_write_write_read};

/// The built-in scenarios, in the order in which they are listed.
pub static SCENARIOS: Catalog = Catalog(&[
    &NagleDelack,
    &WriteWriteRead,
    &MotorLoop,
    &Ance::Daisy,
    &Ance::Dumbbell,
    &Rfc7928,
    &ACK_RATE_ROUTER,
    &ACK_RATE_VM,
    &Bench::Reference,
    &Bench::Hundred,
    &Bench::Gigabit,
]);

#[cfg(test)]
mod tests {
    use super::*;
    use acklab_lab::scenario;

    #[test]
    fn every_scenario_is_declared_without_a_mistake() {
        for scenario in SCENARIOS.iter() {
            let defaults = scenario::defaults(scenario);
            scenario.check(&defaults).unwrap();
            for axis in scenario.declaration().grid {
                for value in axis.values {
                    defaults.clone().set(axis.parameter, value).unwrap();
                }
            }
            let documented =
                |name| scenario.declaration().metrics.iter().any(|metric| metric.name == name);
            assert!(
                documented(scenario.declaration().main_metric),
                "{}",
                scenario.declaration().name
            );
            let replication = scenario.run(&defaults, 1, None);
            let measured: Vec<_> = replication.metrics.iter().map(|(name, _)| name).collect();
            // A network without flows of a kind measures nothing of it.
            let of_kinds = |name: &str| {
                ["datagram", "exchange_", "message_", "transfer_", "un"]
                    .iter()
                    .any(|kind| name.starts_with(kind))
            };
            let mut declared: Vec<_> =
                scenario.declaration().metrics.iter().map(|m| m.name).collect();
            declared.retain(|name| measured.contains(name) || !of_kinds(name));
            declared.sort_unstable();
            assert_eq!(measured, declared, "{}", scenario.declaration().name);
        }
    }

    #[test]
    fn a_mistyped_scenario_is_answered_with_the_nearest() {
        let error = SCENARIOS.find("nagle-delak").err().unwrap().to_string();
        assert!(error.contains("did you mean \"nagle-delack\"?"), "{error}");
    }
}

//! Whatever can be chosen, attacked by bytes.

use super::{
    Choices, attack_ack_policy, attack_congestion_control, attack_link, attack_queue,
    operate_congestion_control, vary,
};
use crate::ack::Profile;
use crate::cc::{Algorithm, Start};
use crate::link::{Link, LinkConfig};
use crate::queue::{Discipline, Setup};
use crate::time::Span;
use crate::units::BitRate;

/// Attacks one congestion control, ACK policy or queue of the registries, which the first two bytes choose,
/// with options that the next ones vary; its name. So a fuzz target reaches whatever is registered.
///
/// # Panics
/// Where it does not keep its contract.
pub fn attack_choosable(bytes: &[u8]) -> &'static str {
    let mut choices = Choices::new(bytes);
    match choices.below(5) {
        kind @ (0 | 1) => {
            let mut algorithm = choices.one_of(&Algorithm::all());
            if let Some(options) = algorithm.options() {
                vary(options, &mut choices);
            }
            let mss = 88 + u32::from(choices.word() % 9000);
            let initial_window = u64::from(1 + choices.below(12)) * u64::from(mss);
            let start = Start { mss, initial_window, initial_ssthresh: u64::MAX, seed: 1 };
            if kind == 0 {
                let mut control = algorithm.controller(&start);
                attack_congestion_control(&mut control, mss, choices.rest());
            } else {
                operate_congestion_control(&algorithm, &start, choices.rest());
            }
            algorithm.name()
        }
        2 => {
            let mut profile = choices.one_of(&Profile::all());
            if let Some(options) = profile.options() {
                vary(options, &mut choices);
            }
            let phase = f64::from(choices.byte()) / 256.0;
            attack_ack_policy(&mut profile.policy(phase), choices.rest());
            profile.name()
        }
        kind => {
            let packets = u32::from(1 + choices.below(40));
            let mut discipline = choices.one_of(&Discipline::all()).for_packets(packets);
            if let Some(options) = discipline.options() {
                vary(options, &mut choices);
            }
            let rate =
                BitRate::from_bps(10_000 + u64::from(choices.long())).unwrap_or(BitRate::INFINITE);
            let name = discipline.name();
            if kind == 3 {
                let setup = Setup { rate, seed: 1, name: "link/0" };
                attack_queue(&mut *discipline.build(&setup), choices.rest());
            } else {
                let delay = Span::from_micros(u64::from(choices.word()));
                let config = LinkConfig::new(rate, delay).with_queue(discipline);
                attack_link(&mut Link::new(0, 7, config), choices.rest());
            }
            name
        }
    }
}

//! The contract's property tests: arbitrary peers against a client and a server, and an arbitrary network
//! between honest ones.

use acklab_core::rng::Rng;
use acklab_rudp::harness::{attack_network, attack_peers};
use proptest::prelude::*;

/// No key changes within a script.
const ONE_KEY: u64 = 1 << 22;

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_ends_keep_the_contract_whatever_the_peers_send(
        bytes in proptest::collection::vec(any::<u8>(), 0..1500)
    ) {
        attack_peers(&bytes);
    }
}

#[test]
fn honest_ends_lose_nothing_over_a_hostile_network_and_the_same_input_gives_the_same_output() {
    for seed in 0..500 {
        let script = script(seed);
        assert_eq!(attack_network(&script, ONE_KEY), attack_network(&script, ONE_KEY), "{seed}");
    }
}

#[test]
fn no_script_stalls_a_transfer_after_the_network_relents() {
    // An INITIAL that was altered or repeated made a second connection of the same id, which took the
    // first one's packets.
    for seed in [51_020, 51_898] {
        attack_network(&script(seed), ONE_KEY);
    }
}

#[test]
fn a_path_that_ten_unanswered_packets_prove_silent_is_judged_in_the_turn_in_which_they_leave() {
    // Its deadline was still due after it had been handled.
    attack_network(&script(27), ONE_KEY);
}

#[test]
fn keys_that_change_every_fifty_packets_stall_no_transfer() {
    for seed in 0..200 {
        attack_network(&script(seed), 50);
    }
}

/// Up to 1000 bytes.
fn script(seed: u64) -> Vec<u8> {
    let mut rng = Rng::named(seed, "t");
    let len = rng.below(1000);
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

#[test]
fn second_copies_leave_in_one_turn_though_those_before_them_are_of_no_use_any_more() {
    // Found by `make fuzz-rudp_connection`: the copies of another path waited for the next packet or deadline.
    attack_peers(&[
        255, 62, 255, 0, 236, 236, 206, 206, 206, 206, 0, 0, 136, 206, 206, 236, 206, 238, 206,
        206, 206, 43, 0, 206, 206, 206, 206, 206, 206, 206, 45, 1, 35, 149, 149, 149, 17, 17, 149,
        149, 149, 0, 149, 0, 247, 65, 67, 238, 206, 206, 248, 0, 0, 0, 206,
    ]);
}

//! The contract's property tests: arbitrary peers against a client and a server, and an arbitrary network
//! between honest ones.

use acklab_rudp::harness::{attack_network, attack_peers};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_ends_keep_the_contract_whatever_the_peers_send(
        bytes in proptest::collection::vec(any::<u8>(), 0..1500)
    ) {
        attack_peers(&bytes);
    }

    #[test]
    fn honest_ends_lose_nothing_over_a_hostile_network_and_the_same_input_gives_the_same_output(
        bytes in proptest::collection::vec(any::<u8>(), 0..1000)
    ) {
        prop_assert_eq!(attack_network(&bytes), attack_network(&bytes));
    }
}

//! The contract's property tests: arbitrary scripts against one connection, and against two with a
//! hostile network between them.

use acklab_tcp::harness::{attack_connection, attack_pair};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_connection_keeps_the_contract_whatever_the_peer_sends(
        bytes in proptest::collection::vec(any::<u8>(), 0..1500)
    ) {
        attack_connection(&bytes);
    }

    #[test]
    fn honest_ends_lose_nothing_over_a_hostile_network_and_the_same_input_gives_the_same_output(
        bytes in proptest::collection::vec(any::<u8>(), 0..600)
    ) {
        prop_assert_eq!(attack_pair(&bytes), attack_pair(&bytes));
    }
}

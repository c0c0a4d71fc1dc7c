//! Any bytes as the script of hostile peers of reliable UDP, and of a hostile network between honest ones.
#![no_main]

use acklab_rudp::harness::{attack_network, attack_peers};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    if first & 1 == 0 {
        attack_peers(bytes);
    } else {
        attack_network(bytes, 1 << 22);
    }
});

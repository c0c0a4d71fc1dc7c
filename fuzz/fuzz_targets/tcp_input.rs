//! Arbitrary segments, deadlines and calls into one TCP connection, and an arbitrary network between
//! two; the first byte chooses. `acklab_tcp::harness` says what must hold.
#![no_main]

use acklab_tcp::harness::{attack_connection, attack_pair};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some((&first, rest)) = bytes.split_first() {
        if first & 1 == 0 {
            attack_connection(rest);
        } else {
            attack_pair(rest);
        }
    }
});

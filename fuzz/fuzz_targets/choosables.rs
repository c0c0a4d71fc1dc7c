//! Any bytes against a congestion control, ACK policy or queue of the registries, with any options: the bytes
//! choose, so that a new one is fuzzed by being registered.
#![no_main]

use acklab_core::contract::attack_choosable;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    attack_choosable(bytes);
});
